//! The subnets of LANs: as the file has them, or from the end of the pools.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use windtunnel_model::{Plan, Subnet};

use crate::decode::{LanDraft, ScenarioDraft};
use crate::error::Diagnostics;
use crate::position::{LocatedValue, SourceLocation};

/// Gives every LAN its subnets. Fixed addresses of nodes that are on no LAN keep blocks of the
/// pools free of LANs.
pub(super) fn assign(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &mut Plan) {
    take_given(found, draft, plan);
    if !found.is_clean() {
        return;
    }
    let mut fixed: Vec<IpAddr> = lone_addresses(draft, plan);
    let services = draft.services.iter().flat_map(|service| &service.addresses);
    fixed.extend(services.map(|address| address.value));
    let pool = draft
        .pools
        .v4
        .map(|pool| (Subnet { network: pool.network.into(), prefix: pool.prefix }, pool.place));
    if let Some((pool, place)) = pool {
        carve(found, draft, plan, &fixed, pool, place);
    }
    let pool = draft
        .pools
        .v6
        .map(|pool| (Subnet { network: pool.network.into(), prefix: pool.prefix }, pool.place));
    if let Some((pool, place)) = pool {
        carve(found, draft, plan, &fixed, pool, place);
    }
}

fn take_given(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &mut Plan) {
    let mut given: BTreeMap<Subnet, &LanDraft> = BTreeMap::new();
    for (position, lan) in draft.lans.iter().enumerate() {
        for LocatedValue { value: subnet, place } in &lan.subnets {
            let v4 = subnet.network.is_ipv4();
            let on = if v4 { draft.pools.v4.is_some() } else { draft.pools.v6.is_some() };
            let other = given.iter().find(|(known, _)| known.overlaps(subnet));
            let needed = plan.lans[position].attachments.len();
            let message = if !on {
                format!("address: `{subnet}` belongs to a family that the file turns off")
            } else if let Some((known, other)) = other {
                let other = &other.name.value;
                format!("address: `{subnet}` overlaps with `{known}` of `{other}`")
            } else if !has_room(*subnet, needed) {
                format!("address: `{subnet}` is too small for {needed} attachments")
            } else {
                given.insert(*subnet, lan);
                let slot = &mut plan.lans[position];
                *(if v4 { &mut slot.v4 } else { &mut slot.v6 }) = Some(*subnet);
                continue;
            };
            found.mistake(*place, message);
        }
    }
}

/// Takes subnets from the end of a pool for the LANs that have none of its family.
fn carve(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    plan: &mut Plan,
    fixed: &[IpAddr],
    pool: Subnet,
    place: SourceLocation,
) {
    let v4 = pool.network.is_ipv4();
    let given: Vec<Subnet> =
        plan.lans.iter().filter_map(|lan| if v4 { lan.v4 } else { lan.v6 }).collect();
    let (first, last) = whole(pool);
    // The number of the address behind the next block, from the pool's start.
    let mut top = (last - first).saturating_add(1);
    for (lan, draft) in plan.lans.iter_mut().zip(&draft.lans) {
        let slot = if v4 { &mut lan.v4 } else { &mut lan.v6 };
        if slot.is_some() {
            continue;
        }
        let Some(bits) = host_bits(pool, lan.attachments.len()) else {
            return too_small(found, draft, pool, place);
        };
        let size = 1u128 << bits;
        let free = |subnet: &Subnet| {
            !given.iter().any(|given| given.overlaps(subnet))
                && !fixed.iter().any(|address| subnet.contains(*address))
        };
        loop {
            let start = (top.saturating_sub(size)) & !(size - 1);
            // The first block is for what is on no LAN.
            if start == 0 {
                return too_small(found, draft, pool, place);
            }
            top = start;
            let subnet = subnet(pool, first + start, bits);
            if free(&subnet) {
                *slot = Some(subnet);
                break;
            }
        }
    }
}

fn too_small(found: &mut Diagnostics, lan: &LanDraft, pool: Subnet, place: SourceLocation) {
    let name = &lan.name.value;
    let message = format!("address: the pool {pool} has no room for a subnet for `{name}`");
    let example = if pool.network.is_ipv4() { "192.168.1.0/24" } else { "fd01::/64" };
    let hint =
        format!("give it one, `lans: {{{name}: {{address: {example}}}}}`, or enlarge the pool");
    found.mistake_with_hint(place, message, hint);
}

/// How many bits of an address number the hosts of a LAN: 8, or 64 for IPv6, where the pool can
/// spare them, and more for many attachments.
fn host_bits(pool: Subnet, attachments: usize) -> Option<u32> {
    let (length, usual, spare) = if pool.network.is_ipv4() { (32, 8, 2) } else { (128, 64, 16) };
    let room = length - u32::from(pool.prefix);
    let mut bits = usual.min(room.saturating_sub(spare)).max(2);
    let wanted = attachments + attachments / 4;
    let fits = |bits, count| has_room(subnet(pool, 0, bits), count);
    while !fits(bits, wanted) && bits + 1 < room {
        bits += 1;
    }
    (bits < room && fits(bits, attachments)).then_some(bits)
}

fn has_room(subnet: Subnet, count: usize) -> bool {
    let (first, last) = subnet.hosts();
    u128::try_from(count).is_ok_and(|count| last - first + 1 >= count)
}

fn whole(pool: Subnet) -> (u128, u128) {
    let (_, last) = pool.hosts();
    match pool.network {
        IpAddr::V4(network) => (u128::from(network.to_bits()), last + 1),
        IpAddr::V6(network) => (network.to_bits(), last),
    }
}

/// The block with so many bits for hosts at an address, given as a number.
fn subnet(pool: Subnet, at: u128, bits: u32) -> Subnet {
    let bits = u8::try_from(bits).unwrap_or(u8::MAX);
    match pool.network {
        IpAddr::V4(_) => {
            let network = Ipv4Addr::from_bits(u32::try_from(at).unwrap_or(u32::MAX)).into();
            Subnet { network, prefix: 32 - bits }
        }
        IpAddr::V6(_) => Subnet { network: Ipv6Addr::from_bits(at).into(), prefix: 128 - bits },
    }
}

/// The fixed addresses of nodes that are on no LAN.
fn lone_addresses(draft: &ScenarioDraft, plan: &Plan) -> Vec<IpAddr> {
    let nodes = draft.nodes.iter().filter(|node| {
        let of = plan.nodes.iter().find(|known| known.group == node.name.value);
        !of.is_some_and(|node| node.interfaces.iter().any(|i| plan.lan_of(i.link).is_some()))
    });
    nodes.flat_map(|node| node.addresses.iter().map(|address| address.value)).collect()
}
