//! Addresses: fixed ones first, the rest from the pools in a fixed order.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use windtunnel_model::{NodeId, Plan};

use crate::decode::{Draft, Pool, is_usable};
use crate::error::Findings;
use crate::position::Place;

/// Gives every interface its addresses: every node's first interface in the file's order, then nodes'
/// further interfaces, then routers'.
pub(super) fn assign(found: &mut Findings, draft: &Draft, plan: &mut Plan) {
    let taken = fix(found, draft, plan);
    notice_unlinked(found, draft, plan);
    if !found.is_clean() {
        return;
    }
    let needed = plan.nodes.iter().map(|node| node.interfaces.len()).sum::<usize>()
        + plan.routers.iter().map(|router| router.interfaces.len()).sum::<usize>();
    let mut v4 = draft.pools.v4.map(|pool| Source::new_v4(pool, &taken));
    let mut v6 = draft.pools.v6.map(|pool| Source::new_v6(pool, &taken));
    let fill = |slot4: &mut Option<Ipv4Addr>,
                slot6: &mut Option<Ipv6Addr>,
                v4: &mut Option<Source>,
                v6: &mut Option<Source>| {
        if let (None, Some(source)) = (&slot4, v4) {
            let bits = source.take().and_then(|bits| u32::try_from(bits).ok());
            *slot4 = bits.map(Ipv4Addr::from_bits);
        }
        if let (None, Some(source)) = (&slot6, v6) {
            *slot6 = source.take().map(Ipv6Addr::from_bits);
        }
    };
    for node in &mut plan.nodes {
        if let Some(first) = node.interfaces.first_mut() {
            fill(&mut first.v4, &mut first.v6, &mut v4, &mut v6);
        }
    }
    for interface in plan.nodes.iter_mut().flat_map(|node| node.interfaces.iter_mut().skip(1)) {
        fill(&mut interface.v4, &mut interface.v6, &mut v4, &mut v6);
    }
    for interface in plan.routers.iter_mut().flat_map(|router| &mut router.interfaces) {
        fill(&mut interface.v4, &mut interface.v6, &mut v4, &mut v6);
    }
    let pools = [
        (v4, draft.pools.v4.map(|pool| (pool.place, format!("{}/{}", pool.network, pool.prefix)))),
        (v6, draft.pools.v6.map(|pool| (pool.place, format!("{}/{}", pool.network, pool.prefix)))),
    ];
    for (source, pool) in pools {
        if let (Some(Source { exhausted: true, .. }), Some((place, pool))) = (source, pool) {
            let message = format!("address: the pool {pool} is too small for {needed} interfaces");
            let hint = "give a larger one at the top, such as `address: 10.0.0.0/8`";
            found.mistake_with_hint(place, message, hint);
        }
    }
}

/// Puts the addresses that nodes fix on their first interfaces.
fn fix(found: &mut Findings, draft: &Draft, plan: &mut Plan) -> BTreeMap<IpAddr, Place> {
    let mut taken = BTreeMap::new();
    let mut first = 0;
    for node in &draft.nodes {
        let id = NodeId::from_index(first);
        first += node.count.as_ref().map_or(1, |c| usize::try_from(c.value).unwrap_or(0));
        for address in &node.addresses {
            let (value, place) = (address.value, address.place);
            let off = match value {
                IpAddr::V4(_) => draft.pools.v4.is_none(),
                IpAddr::V6(_) => draft.pools.v6.is_none(),
            };
            let message = if node.count.is_some() {
                "address: the members of a group cannot share one address".to_owned()
            } else if off {
                format!("address: `{value}` belongs to a family that the file turns off")
            } else if !is_usable(value) || is_edge(draft, value) {
                format!("address: `{value}` is not an address that a host can have")
            } else if let Some(other) = taken.insert(value, place) {
                let line = other.line;
                format!("address: `{value}` is given to another node already, in line {line}")
            } else if let Some(interface) = plan.nodes[id.index()].interfaces.first_mut() {
                match value {
                    IpAddr::V4(v4) => interface.v4 = Some(v4),
                    IpAddr::V6(v6) => interface.v6 = Some(v6),
                }
                continue;
            } else {
                format!("address: `{}` has no link, so no interface to address", node.name.value)
            };
            found.mistake(place, message);
        }
    }
    taken
}

/// Whether this is the network's or the broadcast address of the IPv4 pool.
fn is_edge(draft: &Draft, address: IpAddr) -> bool {
    let (Some(pool), IpAddr::V4(v4)) = (draft.pools.v4, address) else { return false };
    let network = pool.network.to_bits();
    let hosts = u32::MAX.checked_shr(u32::from(pool.prefix)).unwrap_or(0);
    [network, network | hosts].contains(&v4.to_bits())
}

fn notice_unlinked(found: &mut Findings, draft: &Draft, plan: &Plan) {
    let mut first = 0;
    for node in &draft.nodes {
        if plan.nodes[first].interfaces.is_empty() {
            let message = format!("`{}` has no link: it can talk to itself only", node.name.value);
            found.notice(node.name.place, message);
        }
        first += node.count.as_ref().map_or(1, |c| usize::try_from(c.value).unwrap_or(0));
    }
}

/// Addresses of a pool one after the other, as numbers, without those that are taken.
struct Source {
    next: u128,
    last: u128,
    taken: Vec<u128>,
    exhausted: bool,
}

impl Source {
    fn new_v4(pool: Pool<Ipv4Addr>, taken: &BTreeMap<IpAddr, Place>) -> Self {
        let network = u128::from(pool.network.to_bits());
        // The first address is the network's and the last its broadcast (RFC 919).
        let last = network + (1u128 << (32 - u32::from(pool.prefix))) - 2;
        let taken = taken.keys().filter_map(|address| match address {
            IpAddr::V4(v4) => Some(u128::from(v4.to_bits())),
            IpAddr::V6(_) => None,
        });
        Source { next: network + 1, last, taken: taken.collect(), exhausted: false }
    }

    fn new_v6(pool: Pool<Ipv6Addr>, taken: &BTreeMap<IpAddr, Place>) -> Self {
        let network = pool.network.to_bits();
        // The first address is that of any router of the subnet (RFC 4291, 2.6.1).
        let last = network + ((1u128 << (128 - u32::from(pool.prefix))) - 1);
        let taken = taken.keys().filter_map(|address| match address {
            IpAddr::V6(v6) => Some(v6.to_bits()),
            IpAddr::V4(_) => None,
        });
        Source { next: network + 1, last, taken: taken.collect(), exhausted: false }
    }

    fn take(&mut self) -> Option<u128> {
        // Both are sorted: `taken` comes from an ordered map.
        while self.taken.binary_search(&self.next).is_ok() {
            self.next += 1;
        }
        if self.next > self.last {
            self.exhausted = true;
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }
}
