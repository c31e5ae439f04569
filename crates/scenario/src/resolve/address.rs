//! Addresses: fixed ones first, the rest from the pools in a fixed order.

mod subnets;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use windtunnel_model::plan::{LinkEnd, NodeInterface, TunnelEncapsulation};
use windtunnel_model::{LanId, NetworkVertex, NodeId, Plan, Subnet};

use crate::decode::{AddressPool, ScenarioDraft, is_usable};
use crate::error::Diagnostics;
use crate::position::SourceLocation;

/// Gives every interface its addresses. On LANs: routers in the order of the links, then nodes,
/// from the LAN's subnet. Elsewhere: every node's first interface in the file's order, then nodes'
/// further interfaces, then routers', then services.
pub(super) fn assign(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &mut Plan) {
    subnets::assign(found, draft, plan);
    if !found.is_clean() {
        return;
    }
    let mut taken = fix(found, draft, plan);
    // What is given to services is not given again; whether it may be theirs is checked later.
    for address in draft.services.iter().flat_map(|service| &service.addresses) {
        taken.entry(address.value).or_insert(address.place);
    }
    notice_unlinked(found, draft, plan);
    if !found.is_clean() {
        return;
    }
    for lan in 0..plan.lans.len() {
        assign_on(found, draft, plan, LanId::from_index(lan), &taken);
    }
    let needed = plan.nodes.iter().map(|node| node.interfaces.len()).sum::<usize>()
        + plan.routers.iter().map(|router| router.interfaces.len()).sum::<usize>();
    let lans4: Vec<Subnet> = plan.lans.iter().filter_map(|lan| lan.v4).collect();
    let lans6: Vec<Subnet> = plan.lans.iter().filter_map(|lan| lan.v6).collect();
    let mut v4 = draft.pools.v4.map(|pool| AddressAllocator::new(subnet_of(pool), &taken, &lans4));
    let mut v6 = draft.pools.v6.map(|pool| AddressAllocator::new(subnet_of(pool), &taken, &lans6));
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
    // Behind all others: a service moves no other address, and neither does the machine's outside.
    let mut needed = needed;
    for (service, draft) in plan.services.iter_mut().zip(&draft.services) {
        if draft.addresses.is_empty() && service.origin.is_none() {
            needed += 1;
            let only_v4 = service.encapsulation == TunnelEncapsulation::Fragment;
            let mut none = None;
            let v6 = if only_v4 { &mut none } else { &mut v6 };
            fill(&mut service.v4, &mut service.v6, &mut v4, v6);
        }
    }
    for internet in plan.nodes.iter_mut().filter_map(|node| node.internet.as_mut()) {
        needed += 1;
        fill(&mut internet.host_v4, &mut internet.host_v6, &mut v4, &mut v6);
    }
    let pools = [
        (v4, draft.pools.v4.map(|pool| (pool.place, format!("{}/{}", pool.network, pool.prefix)))),
        (v6, draft.pools.v6.map(|pool| (pool.place, format!("{}/{}", pool.network, pool.prefix)))),
    ];
    for (source, pool) in pools {
        if let (Some(AddressAllocator { exhausted: true, .. }), Some((place, pool))) =
            (source, pool)
        {
            let what =
                if plan.services.is_empty() { "interfaces" } else { "interfaces and services" };
            let message = format!("address: the pool {pool} is too small for {needed} {what}");
            let hint = "give a larger one at the top, such as `address: 10.0.0.0/8`";
            found.mistake_with_hint(place, message, hint);
        }
    }
}

/// Takes an address of each family for what has none.
fn fill(
    slot4: &mut Option<Ipv4Addr>,
    slot6: &mut Option<Ipv6Addr>,
    v4: &mut Option<AddressAllocator>,
    v6: &mut Option<AddressAllocator>,
) {
    if let (None, Some(source)) = (&slot4, v4) {
        let bits = source.take().and_then(|bits| u32::try_from(bits).ok());
        *slot4 = bits.map(Ipv4Addr::from_bits);
    }
    if let (None, Some(source)) = (&slot6, v6) {
        *slot6 = source.take().map(Ipv6Addr::from_bits);
    }
}

/// Puts the addresses that nodes fix on their interfaces.
fn fix(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    plan: &mut Plan,
) -> BTreeMap<IpAddr, SourceLocation> {
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
            } else if !is_usable(value) || is_edge(draft, plan, value) {
                format!("address: `{value}` is not an address that a host can have")
            } else if let Some(reason) = misplaced(plan, id, value) {
                reason
            } else if let Some(other) = taken.insert(value, place) {
                let line = other.line;
                format!("address: `{value}` is given to another node already, in line {line}")
            } else if let Some(interface) = interface_for(plan, id, value) {
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

/// The position of a node's interface that a fixed address is for: the one on the LAN that the
/// address belongs to, else the first.
fn position_for(plan: &Plan, id: NodeId, address: IpAddr) -> usize {
    let lan = plan.lan_with(address);
    let mut interfaces = plan.nodes[id.index()].interfaces.iter();
    interfaces.position(|i| lan.is_some() && plan.lan_of(i.link) == lan).unwrap_or(0)
}

fn interface_for(plan: &mut Plan, id: NodeId, address: IpAddr) -> Option<&mut NodeInterface> {
    let position = position_for(plan, id, address);
    plan.nodes[id.index()].interfaces.get_mut(position)
}

/// Why an address cannot be that of the interface that it is for: LANs have their own subnets.
fn misplaced(plan: &Plan, id: NodeId, address: IpAddr) -> Option<String> {
    let node = &plan.nodes[id.index()];
    let interface = node.interfaces.get(position_for(plan, id, address))?;
    let (here, there) = (plan.lan_of(interface.link), plan.lan_with(address));
    let subnet = |lan: LanId| {
        let lan = &plan.lans[lan.index()];
        (lan.subnet(address).map(|subnet| subnet.to_string()).unwrap_or_default(), &lan.name)
    };
    match (here, there) {
        _ if here == there => None,
        (_, Some(lan)) => {
            let (subnet, lan) = subnet(lan);
            let name = &node.name;
            Some(format!("address: `{address}` is in {subnet} of `{lan}`, where `{name}` is not"))
        }
        (Some(lan), None) => {
            let (subnet, lan) = subnet(lan);
            Some(format!("address: `{address}` is not in {subnet}, the subnet of `{lan}`"))
        }
        (None, None) => None,
    }
}

/// Whether this is the network's or the broadcast address of the IPv4 pool or of a LAN.
pub(super) fn is_edge(draft: &ScenarioDraft, plan: &Plan, address: IpAddr) -> bool {
    let pool = draft.pools.v4.map(subnet_of);
    let lans = plan.lans.iter().filter_map(|lan| lan.v4);
    pool.into_iter().chain(lans).any(|subnet| {
        subnet.network == address || subnet.broadcast().map(IpAddr::V4) == Some(address)
    })
}

fn notice_unlinked(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &Plan) {
    let mut first = 0;
    for node in &draft.nodes {
        if plan.nodes[first].interfaces.is_empty() {
            let message = format!("`{}` has no link: it can talk to itself only", node.name.value);
            found.notice(node.name.place, message);
        }
        first += node.count.as_ref().map_or(1, |c| usize::try_from(c.value).unwrap_or(0));
    }
}

/// Gives the interfaces on a LAN the addresses that they lack.
fn assign_on(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    plan: &mut Plan,
    id: LanId,
    taken: &BTreeMap<IpAddr, SourceLocation>,
) {
    let lan = &plan.lans[id.index()];
    let mut v4 = lan.v4.map(|subnet| AddressAllocator::new(subnet, taken, &[]));
    let mut v6 = lan.v6.map(|subnet| AddressAllocator::new(subnet, taken, &[]));
    let mut ends: Vec<LinkEnd> = lan
        .attachments
        .iter()
        .map(|lane| plan.links[lane.link.index()].ends[1 - lane.direction.index()])
        .collect();
    // Stable: within a kind the order of the links; routers have the lowest addresses, as is the
    // custom.
    ends.sort_by_key(|end| match end.vertex {
        NetworkVertex::Router(_) | NetworkVertex::Lan(_) => 0,
        NetworkVertex::Node(id) => 1 + id.index(),
    });
    for end in ends {
        let position = end.interface as usize;
        let (slot4, slot6) = match end.vertex {
            NetworkVertex::Node(id) => {
                let interface = &mut plan.nodes[id.index()].interfaces[position];
                (&mut interface.v4, &mut interface.v6)
            }
            NetworkVertex::Router(id) => {
                let interface = &mut plan.routers[id.index()].interfaces[position];
                (&mut interface.v4, &mut interface.v6)
            }
            NetworkVertex::Lan(_) => continue,
        };
        if let (None, Some(source)) = (&slot4, &mut v4) {
            let bits = source.take().and_then(|bits| u32::try_from(bits).ok());
            *slot4 = bits.map(Ipv4Addr::from_bits);
        }
        if let (None, Some(source)) = (&slot6, &mut v6) {
            *slot6 = source.take().map(Ipv6Addr::from_bits);
        }
    }
    let exhausted = [v4, v6].into_iter().flatten().any(|source| source.exhausted);
    if exhausted {
        let lan = &draft.lans[id.index()];
        let place = lan.subnets.first().map_or(lan.name.place, |subnet| subnet.place);
        let name = &lan.name.value;
        found.mistake(place, format!("address: the subnet of `{name}` has no addresses left"));
    }
}

fn subnet_of<A: Into<IpAddr>>(pool: AddressPool<A>) -> Subnet {
    Subnet { network: pool.network.into(), prefix: pool.prefix }
}

/// Addresses of a range one after the other, as numbers, without those that are taken.
struct AddressAllocator {
    next: u128,
    last: u128,
    taken: Vec<u128>,
    /// Ranges that belong to LANs, first and last.
    lans: Vec<(u128, u128)>,
    exhausted: bool,
}

impl AddressAllocator {
    fn new(range: Subnet, taken: &BTreeMap<IpAddr, SourceLocation>, lans: &[Subnet]) -> Self {
        let (next, last) = range.hosts();
        let of_family = |address: &&IpAddr| address.is_ipv4() == range.network.is_ipv4();
        let taken = taken.keys().filter(of_family).map(number).collect();
        // With the edges, which are not a host's either.
        let lans = lans.iter().map(|lan| (number(&lan.network), lan.hosts().1 + 1)).collect();
        AddressAllocator { next, last, taken, lans, exhausted: false }
    }

    fn take(&mut self) -> Option<u128> {
        loop {
            let inside = |(first, last): &&(u128, u128)| (*first..=*last).contains(&self.next);
            if let Some((_, last)) = self.lans.iter().find(inside) {
                self.next = last + 1;
            } else if self.taken.binary_search(&self.next).is_ok() {
                // Sorted: it comes from an ordered map.
                self.next += 1;
            } else {
                break;
            }
        }
        if self.next > self.last {
            self.exhausted = true;
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

fn number(address: &IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}
