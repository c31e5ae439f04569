//! Whose an address is.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use windtunnel_model::RouterId;
use windtunnel_model::plan::{NodeInterface, Plan, Service};
use windtunnel_routing::RouteDestination;

use super::realms::AddressVisibility;

/// The owners of addresses, sorted.
#[derive(Debug)]
pub(super) struct Addresses {
    v4: Vec<(u32, RouteDestination)>,
    /// By place in `v4`: its realm; empty where nothing is translated.
    realms: Vec<Option<u32>>,
    v6: Vec<(u128, RouteDestination)>,
}

impl Addresses {
    pub(super) fn new(plan: &Plan, visible: Option<&AddressVisibility>) -> Self {
        let nodes = plan.ports().map(|(_, i)| (i.v4, i.v6, RouteDestination::Port(i.port)));
        // An origin has the addresses of its services, beside those of its interfaces.
        let origins = plan.services.iter().filter_map(|service| {
            let first = plan.nodes[service.origin?.index()].interfaces.first()?;
            let v4 =
                service.v4.filter(|_| !is_of_interface(plan, service, |it| it.v4 == service.v4));
            let v6 =
                service.v6.filter(|_| !is_of_interface(plan, service, |it| it.v6 == service.v6));
            Some((v4, v6, RouteDestination::Port(first.port)))
        });
        let routers = plan.routers.iter().enumerate().flat_map(|(id, router)| {
            let target = RouteDestination::Router(RouterId::from_index(id));
            router.interfaces.iter().map(move |i| (i.v4, i.v6, target))
        });
        let mut addresses = Addresses { v4: Vec::new(), realms: Vec::new(), v6: Vec::new() };
        for (v4, v6, target) in nodes.chain(routers).chain(origins) {
            addresses.v4.extend(v4.map(|address| (address.to_bits(), target)));
            addresses.v6.extend(v6.map(|address| (address.to_bits(), target)));
        }
        addresses.v4.sort_unstable();
        addresses.v6.sort_unstable();
        // Several services may have one address.
        addresses.v4.dedup();
        addresses.v6.dedup();
        if let Some(visible) = visible {
            let realm = |(bits, _): &(u32, RouteDestination)| {
                visible.realm_of(Ipv4Addr::from(*bits).into())
            };
            addresses.realms = addresses.v4.iter().map(realm).collect();
        }
        addresses
    }

    pub(super) fn target(&self, address: IpAddr) -> Option<RouteDestination> {
        match address {
            IpAddr::V4(v4) => Some(self.v4[place(&self.v4, &v4.to_bits())?].1),
            IpAddr::V6(v6) => Some(self.v6[place(&self.v6, &v6.to_bits())?].1),
        }
    }

    /// The same of an IPv4 address, and the realm in which it is; `None`: it is in none.
    pub(super) fn in_realm(&self, address: Ipv4Addr) -> Option<(RouteDestination, Option<u32>)> {
        let at = place(&self.v4, &address.to_bits())?;
        Some((self.v4[at].1, self.realms.get(at).copied().flatten()))
    }
}

/// Whether an interface of a service's origin has one of the service's addresses.
fn is_of_interface(plan: &Plan, service: &Service, has: impl Fn(&NodeInterface) -> bool) -> bool {
    let origin = service.origin.map(|origin| &plan.nodes[origin.index()]);
    origin.is_some_and(|origin| origin.interfaces.iter().any(has))
}

fn place<K: Ord>(sorted: &[(K, RouteDestination)], key: &K) -> Option<usize> {
    sorted.binary_search_by(|(address, _)| address.cmp(key)).ok()
}
