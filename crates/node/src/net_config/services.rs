//! What a node has that answers for services: their addresses, and routes by which datagrams of
//! their ports come from these addresses.
//!
//! A TCP connection has the address that the client has asked for. A UDP socket that is bound to no
//! address has none, and the kernel takes the one that the route names: a server that answers so
//! would answer in the node's own name, which its client has not asked. So what leaves from a
//! service's UDP port, and has no address yet, takes routes that name the service's.

use std::net::IpAddr;

use windtunnel_model::Plan;
use windtunnel_model::id::{NodeId, ServiceId};
use windtunnel_model::plan::{Service, TransportProtocol};

use super::routes::NodeEgressRoutes;
use super::{FAMILIES, NetConfig, ways};
use crate::netlink::request::{Hop, RoutingPolicyRule};

impl NetConfig {
    pub(super) fn add_services(&mut self, plan: &Plan, node: NodeId, exits: &NodeEgressRoutes<'_>) {
        for (id, service) in hosted(plan, node) {
            for address in service.addresses().filter(|it| !is_of_interface(plan, node, *it)) {
                if !self.services.contains(&address) {
                    self.services.push(address);
                }
                let udp =
                    service.ports.iter().filter(|port| port.transport == TransportProtocol::Udp);
                let mut udp = udp.peekable();
                if udp.peek().is_none() {
                    continue;
                }
                let table = table_of(id);
                self.add_routes_from(address, table, exits);
                let from = FAMILIES[usize::from(address.is_ipv6())];
                let rule =
                    |port: u16| RoutingPolicyRule { from, to: None, udp_port: Some(port), table };
                self.rules.extend(udp.map(|port| rule(port.port)));
            }
        }
    }

    /// The routes of the main table once more, for what is to come from `source`.
    fn add_routes_from(&mut self, source: IpAddr, table: u32, exits: &NodeEgressRoutes<'_>) {
        let like = FAMILIES[usize::from(source.is_ipv6())];
        let default = self.default(like);
        let on_lan = self.devices.iter().any(|device| device.lan.is_some());
        let mut routes = Vec::new();
        if on_lan || self.devices.len() > 1 {
            routes = self.table(exits, &ways(exits), like, default, table, |_, best| best);
        }
        routes.extend(default.and_then(|position| self.everything(position, like, table)));
        self.routes.extend(routes.into_iter().map(|(to, hop)| (to, Hop { source, ..hop })));
    }
}

/// The services whose addresses a node has.
fn hosted(plan: &Plan, node: NodeId) -> impl Iterator<Item = (ServiceId, &Service)> {
    let services = plan.services.iter().enumerate();
    let services = services.map(|(position, it)| (ServiceId::from_index(position), it));
    services.filter(move |(_, it)| it.origin == Some(node) || it.replica(node).is_some())
}

fn is_of_interface(plan: &Plan, node: NodeId, address: IpAddr) -> bool {
    let interfaces = &plan.nodes[node.index()].interfaces;
    interfaces
        .iter()
        .flat_map(windtunnel_model::plan::NodeInterface::addresses)
        .any(|own| own == address)
}

/// The routing table for what comes from a service's UDP ports, above those of devices and pairs.
fn table_of(service: ServiceId) -> u32 {
    2_000_000 + service.0
}

#[cfg(test)]
mod tests {
    use windtunnel_model::id::RouterId;
    use windtunnel_routing::Routes;

    use super::*;
    use crate::testing::two_homed_plan;

    fn service(address: &str, ports: &[&str], replicas: &[u32]) -> Service {
        Service {
            v4: address.parse().ok(),
            v6: address.parse().ok(),
            ports: ports.iter().map(|port| port.parse().unwrap()).collect(),
            at: vec![RouterId(0)],
            ..Service::new("www", replicas.iter().copied().map(NodeId))
        }
    }

    fn net_config(services: Vec<Service>, node: u32) -> NetConfig {
        let mut plan = two_homed_plan();
        plan.services = services;
        NetConfig::of(&plan, &Routes::compute(&plan), NodeId(node))
    }

    #[test]
    fn a_replica_has_the_address_once_and_other_nodes_have_not() {
        let both = || {
            vec![service("10.1.0.80", &["80/tcp"], &[1]), service("10.1.0.80", &["81/tcp"], &[1])]
        };
        let address: IpAddr = "10.1.0.80".parse().unwrap();
        assert_eq!(net_config(both(), 1).services, [address]);
        assert_eq!(net_config(both(), 2).services, [] as [IpAddr; 0]);
        assert_eq!(net_config(both(), 1).rules, [], "connections have their address");
    }

    #[test]
    fn an_origin_has_the_address_unless_it_is_that_of_an_interface() {
        let of = |address: &str| {
            let origin = Some(NodeId(1));
            vec![Service { origin, ..service(address, &["80/tcp"], &[2]) }]
        };
        assert_eq!(net_config(of("10.0.0.3"), 1).services, [] as [IpAddr; 0]);
        assert_eq!(net_config(of("10.1.0.80"), 1).services.len(), 1);
        // Its replica has it all the same.
        assert_eq!(net_config(of("10.0.0.3"), 2).services.len(), 1);
    }

    #[test]
    fn what_leaves_from_a_udp_port_comes_from_the_services_address() {
        for (address, any) in [("10.1.0.53", "0.0.0.0"), ("fd01::53", "::")] {
            let config = net_config(vec![service(address, &["80/tcp", "53/udp"], &[1])], 1);
            let rule = RoutingPolicyRule {
                from: any.parse().unwrap(),
                to: None,
                udp_port: Some(53),
                table: 2_000_000,
            };
            assert_eq!(config.rules, [rule]);
            let own = config.routes.iter().filter(|(_, hop)| hop.table == 2_000_000);
            let own: Vec<(u8, String)> =
                own.map(|(to, hop)| (to.length, hop.source.to_string())).collect();
            assert_eq!(own, [(0, address.to_owned())]);
        }
    }

    #[test]
    fn with_two_interfaces_the_best_one_is_chosen_as_without_a_service() {
        let config = net_config(vec![service("10.1.0.53", &["53/udp"], &[0])], 0);
        let of = |table: u32| -> Vec<(String, u32)> {
            let of_table =
                config.routes.iter().filter(|(to, hop)| hop.table == table && to.address.is_ipv4());
            of_table.map(|(to, hop)| (to.to_string(), hop.device)).collect()
        };
        let sorted = |mut routes: Vec<_>| {
            routes.sort();
            routes
        };
        assert_eq!(sorted(of(2_000_000)), sorted(of(254)));
    }
}
