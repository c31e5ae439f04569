//! Few prefixes for many addresses.
//!
//! A node with several devices has a way out for every address of the plan. Thousands of routes in
//! hundreds of nodes take seconds to install, so they are merged: the optimal set of prefixes whose
//! longest match gives each address its way (Draves, King, Venkatachary, Zill, *Constructing
//! optimal IP routing tables*, INFOCOM 1999), where addresses that no interface has may go
//! anywhere.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Addresses that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Prefix {
    /// The first of them.
    pub address: IpAddr,
    /// How many bits are alike; 0: every address of the family.
    pub length: u8,
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.length {
            0 => f.write_str("default"),
            length => write!(f, "{}/{length}", self.address),
        }
    }
}

/// The fewest prefixes that give each of `ways` (addresses of one family with the position of a
/// device) its device, next to a default route by device `default`.
pub(crate) fn merge(mut ways: Vec<(IpAddr, usize)>, default: usize) -> Vec<(Prefix, usize)> {
    ways.sort_unstable();
    ways.dedup_by_key(|(address, _)| *address);
    let mut found = Vec::new();
    if let Some((first, _)) = ways.first() {
        let width = if first.is_ipv4() { 32 } else { 128 };
        let bits: Vec<(u128, usize)> = ways.iter().map(|(a, way)| (bits(*a), *way)).collect();
        Trie::new(&bits, width).choose(default, &mut found);
        let like = *first;
        return found
            .into_iter()
            .map(|(at, length, way)| (prefix(at, length, like), way))
            .collect();
    }
    Vec::new()
}

/// A prefix of its own for each of `ways` that does not go by device `default`.
pub(crate) fn single(mut ways: Vec<(IpAddr, usize)>, default: usize) -> Vec<(Prefix, usize)> {
    ways.sort_unstable();
    ways.dedup_by_key(|(address, _)| *address);
    ways.retain(|(_, way)| *way != default);
    let whole = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
    let own = |(address, way)| (Prefix { address, length: whole(address) }, way);
    ways.into_iter().map(own).collect()
}

/// A tree of the addresses, without vertices that have one branch only.
struct Trie {
    /// The first address below, and how many bits all below have in common.
    first: u128,
    length: u8,
    /// Devices that are equally good here, sorted.
    candidates: Vec<usize>,
    branches: Option<Box<[Trie; 2]>>,
}

impl Trie {
    /// `ways` is sorted and not empty.
    fn new(ways: &[(u128, usize)], width: u8) -> Trie {
        let (first, way) = ways[0];
        let differing = first ^ ways[ways.len() - 1].0;
        if differing == 0 {
            return Trie { first, length: width, candidates: vec![way], branches: None };
        }
        let top = 127 - u8::try_from(differing.leading_zeros()).unwrap_or(127);
        let middle = ways.partition_point(|(address, _)| address >> top & 1 == 0);
        let branches = [Trie::new(&ways[..middle], width), Trie::new(&ways[middle..], width)];
        let [left, right] = [&branches[0].candidates, &branches[1].candidates];
        let mut candidates: Vec<usize> =
            left.iter().filter(|way| right.binary_search(way).is_ok()).copied().collect();
        if candidates.is_empty() {
            candidates = left.iter().chain(right).copied().collect();
            candidates.sort_unstable();
        }
        let length = width - top - 1;
        Trie { first, length, candidates, branches: Some(Box::new(branches)) }
    }

    /// Notes the prefixes that are needed where packets would leave by `inherited` otherwise.
    fn choose(&self, inherited: usize, found: &mut Vec<(u128, u8, usize)>) {
        let mut here = inherited;
        // A prefix of no bits would be a second default route.
        if self.length > 0 && self.candidates.binary_search(&inherited).is_err() {
            here = self.candidates[0];
            found.push((self.first, self.length, here));
        }
        for branch in self.branches.iter().flat_map(|branches| branches.iter()) {
            branch.choose(here, found);
        }
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// The prefix that holds an address, of the family of `like`.
fn prefix(address: u128, length: u8, like: IpAddr) -> Prefix {
    let width = if like.is_ipv4() { 32u8 } else { 128 };
    let spare = u32::from(width - length);
    let address = address.checked_shr(spare).unwrap_or(0).checked_shl(spare).unwrap_or(0);
    let address = match like {
        IpAddr::V4(_) => IpAddr::V4(u32::try_from(address).unwrap_or(0).into()),
        IpAddr::V6(_) => IpAddr::V6(address.into()),
    };
    Prefix { address, length }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(host: u32) -> IpAddr {
        IpAddr::V4((0x0a00_0000 + host).into())
    }

    fn merged(ways: &[(u32, usize)], default: usize) -> Vec<String> {
        let ways = ways.iter().map(|(host, way)| (v4(*host), *way)).collect();
        merge(ways, default).iter().map(|(prefix, way)| format!("{prefix} {way}")).collect()
    }

    /// The device of the longest prefix that matches.
    fn look_up(prefixes: &[(Prefix, usize)], address: IpAddr, default: usize) -> usize {
        let width = if address.is_ipv4() { 32 } else { 128 };
        let matches = |prefix: &Prefix| {
            let spare = u32::from(width - prefix.length);
            bits(prefix.address) >> spare == bits(address) >> spare
        };
        let fitting = prefixes.iter().filter(|(prefix, _)| matches(prefix));
        fitting.max_by_key(|(prefix, _)| prefix.length).map_or(default, |(_, way)| *way)
    }

    #[test]
    fn a_prefix_that_the_default_covers_needs_no_route() {
        assert_eq!(merged(&[(1, 0), (2, 0), (9, 0)], 0), [] as [&str; 0]);
        assert_eq!(merged(&[], 0), [] as [&str; 0]);
    }

    #[test]
    fn a_row_of_addresses_that_divides_in_two_needs_few_prefixes() {
        let row: Vec<(u32, usize)> =
            (0..600).map(|host| (host, usize::from(host >= 300))).collect();
        // 300 = 256 + 32 + 8 + 4: each bit of the border costs a prefix at the most.
        assert!(merged(&row, 0).len() <= 10, "{:?}", merged(&row, 0));
    }

    #[test]
    fn one_exception_costs_one_route() {
        assert_eq!(merged(&[(1, 0), (2, 1), (3, 0)], 0), ["10.0.0.2/32 1"]);
        assert_eq!(merged(&[(4, 1), (5, 1), (6, 1)], 0), ["10.0.0.4/30 1"]);
    }

    /// A pseudo-random table: every address has its own device by the longest prefix, in both
    /// families, whatever the default is.
    #[test]
    fn every_address_keeps_its_way() {
        let mut state = 1u64;
        let mut random = move |most: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        for round in 0..200 {
            let ways: Vec<(IpAddr, usize)> = (0..random(80) + 1)
                .map(|_| {
                    let (host, way) = (random(400), usize::try_from(random(4)).unwrap());
                    let address = match round % 2 {
                        0 => v4(u32::try_from(host).unwrap()),
                        _ => IpAddr::V6((0xfd00_u128 << 112 | u128::from(host)).into()),
                    };
                    (address, way)
                })
                .collect();
            let mut unique = ways.clone();
            unique.sort_unstable();
            unique.dedup_by_key(|(address, _)| *address);
            for default in 0..4 {
                let prefixes = merge(ways.clone(), default);
                assert!(prefixes.len() <= unique.len());
                for (address, way) in &unique {
                    assert_eq!(look_up(&prefixes, *address, default), *way, "{address}");
                }
            }
        }
    }

    #[test]
    fn addresses_that_differ_in_the_first_bit_get_no_second_default() {
        let ways =
            vec![(IpAddr::V4([10, 0, 0, 1].into()), 1), (IpAddr::V4([192, 0, 2, 1].into()), 1)];
        let written: Vec<String> =
            merge(ways, 0).iter().map(|(prefix, _)| prefix.to_string()).collect();
        assert_eq!(written, ["10.0.0.1/32", "192.0.2.1/32"]);
    }
}
