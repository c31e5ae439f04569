//! Whether services can be there: addresses, ports, and ways to their replicas.

use std::collections::BTreeMap;
use std::net::IpAddr;

use windtunnel_model::plan::{Link, Service, ServicePort, TunnelEncapsulation};
use windtunnel_model::realm::AddressRealms;
use windtunnel_model::{NetworkVertex, NodeId, Plan};

use super::super::address::is_edge;
use super::super::reach::ConnectedComponents;
use crate::decode::{ScenarioDraft, ServiceDraft, is_usable};
use crate::error::Diagnostics;
use crate::position::{LocatedValue, SourceLocation};
use crate::text::shorten;

/// Looks at the services once all have their addresses. The origin's addresses are the service's
/// where none is given.
pub(in crate::resolve) fn check(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &mut Plan) {
    if !found.is_clean() {
        return;
    }
    if draft.services.is_empty() {
        return;
    }
    take_from_origins(found, draft, plan);
    let (owners, ways, narrow) = (owners(plan), RouterReachability::of(plan), narrow_links(plan));
    for (draft_of, service) in draft.services.iter().zip(&plan.services) {
        for address in &draft_of.addresses {
            check_address(found, draft, plan, &owners, draft_of, service, address);
        }
    }
    if !found.is_clean() {
        return;
    }
    for (draft_of, service) in draft.services.iter().zip(&plan.services) {
        check_mtu(found, draft_of, service, plan, &narrow);
        check_ways(found, draft_of, service, plan, &ways);
    }
    check_realms(found, draft, plan);
    check_overlaps(found, draft, plan);
}

/// Where packets of routers get to.
pub(super) struct RouterReachability {
    /// Over routers, LANs, and nodes that forward.
    all: ConnectedComponents,
    /// Over routers and LANs.
    without_nodes: ConnectedComponents,
}

impl RouterReachability {
    pub(super) fn of(plan: &Plan) -> RouterReachability {
        let all = ConnectedComponents::of(plan, |id| plan.nodes[id.index()].forward);
        RouterReachability { all, without_nodes: ConnectedComponents::of(plan, |_| false) }
    }
}

/// The nodes that have addresses. A router has none that a service is given.
fn owners(plan: &Plan) -> BTreeMap<IpAddr, NodeId> {
    plan.ports().flat_map(|(owner, it)| it.addresses().map(move |own| (own, owner))).collect()
}

fn take_from_origins(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &mut Plan) {
    for (draft, service) in draft.services.iter().zip(&mut plan.services) {
        let (Some(origin), true) = (service.origin, draft.addresses.is_empty()) else { continue };
        let node = &plan.nodes[origin.index()];
        let Some(first) = node.interfaces.first() else {
            let place = draft.origin.as_ref().map_or(draft.name.place, |origin| origin.place);
            let message = format!("origin: `{}` has no link, so it has no address", node.name);
            found.mistake(place, message);
            continue;
        };
        let only_v4 = service.encapsulation == TunnelEncapsulation::Fragment;
        (service.v4, service.v6) = (first.v4, first.v6.filter(|_| !only_v4));
    }
    for (draft, service) in draft.services.iter().zip(&plan.services) {
        let name = &draft.name;
        if service.encapsulation != TunnelEncapsulation::Fragment {
            continue;
        }
        let six = draft.addresses.iter().find(|address| address.value.is_ipv6());
        if let Some(six) = six {
            let message = "encapsulation: `fragment` is of IPv4 only (RFC 8200, 5)";
            found.mistake_with_hint(six.place, message, "leave the IPv6 address out");
        } else if service.v4.is_none() {
            let message = format!("`{}` has no IPv4 address, which `fragment` needs", name.value);
            found.mistake(name.place, message);
        }
    }
}

fn check_address(
    found: &mut Diagnostics,
    file: &ScenarioDraft,
    plan: &Plan,
    owners: &BTreeMap<IpAddr, NodeId>,
    draft: &ServiceDraft,
    service: &Service,
    address: &LocatedValue<IpAddr>,
) {
    let (value, place) = (address.value, address.place);
    let off = match value {
        IpAddr::V4(_) => file.pools.v4.is_none(),
        IpAddr::V6(_) => file.pools.v6.is_none(),
    };
    let message = if off {
        format!("address: `{value}` belongs to a family that the file turns off")
    } else if !is_usable(value) || is_edge(file, plan, value) {
        format!("address: `{value}` is not an address that a host can have")
    } else if let Some(owner) = owners.get(&value) {
        if service.origin == Some(*owner) {
            return;
        }
        let node = &plan.nodes[owner.index()].name;
        let message = format!("address: `{value}` is that of `{node}`");
        let hint = format!("with `origin: {node}` it is that of `{}`, too", draft.name.value);
        return found.mistake_with_hint(place, message, hint);
    } else if let Some(lan) = plan.lan_with(value) {
        let lan = &plan.lans[lan.index()];
        let subnet = lan.subnet(value).map(|subnet| subnet.to_string()).unwrap_or_default();
        let name = &lan.name;
        format!("address: `{value}` is in {subnet} of `{name}`, where nothing would answer for it")
    } else {
        return;
    };
    found.mistake(place, message);
}

/// A tunnel from a redirector to a replica passes no NAT.
fn check_realms(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &Plan) {
    let Ok(Some(realms)) = AddressRealms::of(plan) else { return };
    for (draft, service) in draft.services.iter().zip(&plan.services) {
        let routers = service.at.iter().filter_map(|id| {
            let interface = plan.routers[id.index()].interfaces.first()?;
            Some((realms.of_link(interface.link), &plan.routers[id.index()].name))
        });
        let replicas = service.replicas.iter().filter_map(|it| {
            let node = &plan.nodes[it.node.index()];
            Some((realms.of_link(node.interfaces.first()?.link), &node.name))
        });
        let mut all = routers.chain(replicas);
        let Some((realm, first)) = all.next() else { continue };
        if let Some((_, other)) = all.find(|(other, _)| *other != realm) {
            let message = format!(
                "`{}`: a NAT is between `{first}` and `{other}`, and packets to replicas pass none",
                draft.name.value
            );
            let hint = "name the routers on the replicas' side in `at`";
            found.mistake_with_hint(draft.name.place, message, hint);
        }
    }
}

/// Each address and port is one service's; services of one address have one origin.
fn check_overlaps(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &Plan) {
    let mut rows: BTreeMap<(IpAddr, ServicePort), (&str, u32)> = BTreeMap::new();
    let mut origins: BTreeMap<IpAddr, (Option<NodeId>, &str)> = BTreeMap::new();
    for (draft, service) in draft.services.iter().zip(&plan.services) {
        for address in service.addresses() {
            for port in &draft.ports {
                let own = (service.name.as_str(), port.place.line);
                if let Some((other, line)) = rows.insert((address, port.value), own) {
                    let port_text = port.value;
                    let message = format!(
                        "ports: `{port_text}` of {address} is that of service `{other}` already, in line {line}"
                    );
                    found.mistake(port.place, message);
                    return;
                }
            }
            let known = origins.entry(address).or_insert((service.origin, &service.name));
            if known.0 != service.origin {
                let message = format!(
                    "address: {address} is that of service `{}` too, whose origin is another one",
                    known.1
                );
                let place = draft.addresses.first().map_or(draft.name.place, |it| it.place);
                found.mistake(place, message);
                return;
            }
        }
    }
    let (count, most) = (rows.len(), Plan::SERVICE_ROWS_MAX);
    if count > most || plan.services.len() > Plan::SERVICES_MAX {
        let services = (plan.services.len(), Plan::SERVICES_MAX);
        let message = format!(
            "services: {} with {count} addresses and ports are more than {} with {most}",
            services.0, services.1
        );
        let place =
            draft.services.last().map_or(SourceLocation::START, |service| service.name.place);
        found.mistake(place, message);
    }
}

/// In a tunnel there must be room for the 1280 bytes that IPv6 needs (RFC 8200, 5).
fn check_mtu(
    found: &mut Diagnostics,
    draft: &ServiceDraft,
    service: &Service,
    plan: &Plan,
    narrow: &[&Link],
) {
    if service.v6.is_none() || service.overhead(true) == 0 {
        return;
    }
    let least = TUNNEL_MTU_MIN;
    // Where only a client is, there is no tunnel.
    let is_inside = |vertex: NetworkVertex| match vertex {
        NetworkVertex::Node(id) => plan.nodes[id.index()].forward || service.replica(id).is_some(),
        NetworkVertex::Router(_) | NetworkVertex::Lan(_) => true,
    };
    let is_inside = |link: &&&Link| link.ends.iter().all(|end| is_inside(end.vertex));
    let Some(link) = narrow.iter().find(is_inside) else { return };
    let (name, mtu) = (&draft.name, mtu_of(link));
    let message = format!(
        "`{}` has an IPv6 address, and in a tunnel over `{}` with its MTU of {mtu} is no room \
         for {IPV6_MTU_MIN} bytes (RFC 8200, 5)",
        name.value, link.name
    );
    let hint = format!(
        "an MTU of {least} is enough; or use `encapsulation: none`, or give it an IPv4 address only"
    );
    found.mistake_with_hint(name.place, message, hint);
}

/// Links that a tunnel of IPv6 may not lead over.
fn narrow_links(plan: &Plan) -> Vec<&Link> {
    plan.links.iter().filter(|link| mtu_of(link) < TUNNEL_MTU_MIN).collect()
}

fn mtu_of(link: &Link) -> u32 {
    link.profiles.iter().map(|profile| profile.mtu).min().unwrap_or(u32::MAX)
}

fn check_ways(
    found: &mut Diagnostics,
    draft: &ServiceDraft,
    service: &Service,
    plan: &Plan,
    ways: &RouterReachability,
) {
    for name in &draft.replicas {
        let of_name = service.replicas.iter().filter(|replica| {
            let node = &plan.nodes[replica.node.index()];
            node.name == name.value || node.group == name.value
        });
        for replica in of_name {
            if can_be_replica(found, plan, ways, service, name, replica.node).is_none() {
                break;
            }
        }
    }
}

/// Whether packets of some redirecting router get to a node, and it has addresses for them.
pub(super) fn can_be_replica(
    found: &mut Diagnostics,
    plan: &Plan,
    ways: &RouterReachability,
    service: &Service,
    name: &LocatedValue<String>,
    node: NodeId,
) -> Option<()> {
    let shown = shorten(&plan.nodes[node.index()].name);
    let Some(first) = plan.nodes[node.index()].interfaces.first() else {
        found.mistake(name.place, format!("`{shown}` has no link, so it can be no replica"));
        return None;
    };
    let lacks = |service: bool, node: bool| service && !node;
    if lacks(service.v4.is_some(), first.v4.is_some())
        || lacks(service.v6.is_some(), first.v6.is_some())
    {
        let of = &service.name;
        let message = format!("`{shown}` has no address of each family that `{of}` has");
        found.mistake(name.place, message);
        return None;
    }
    let passes_nodes = service.encapsulation != TunnelEncapsulation::None;
    let components = if passes_nodes { &ways.all } else { &ways.without_nodes };
    if service.at.iter().any(|router| components.reaches(*router, node)) {
        return Some(());
    }
    let message =
        format!("no router that redirects packets for `{}` reaches `{shown}`", service.name);
    match passes_nodes {
        true => found.mistake(name.place, message),
        false => {
            let hint = "with `encapsulation: none` only routers may be on the way";
            found.mistake_with_hint(name.place, message, hint);
        }
    }
    None
}

/// The least MTU of IPv6.
const IPV6_MTU_MIN: u32 = 1280;
/// The least MTU for a tunnel of IPv6.
const TUNNEL_MTU_MIN: u32 = IPV6_MTU_MIN + Service::OVERHEAD_MAX;
