//! What has to be configured in one node, worked out from the plan before anything is touched.

mod device;
pub(crate) mod edit;
pub(crate) mod prefixes;
pub(crate) mod routes;
mod services;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use windtunnel_model::id::NodeId;
use windtunnel_model::{Plan, Subnet};
use windtunnel_routing::Routes;

use crate::netlink::request::{Hop, RouteNextHop, RoutingPolicyRule, TABLE_MAIN};
use device::{Device, side};
use prefixes::{Prefix, merge, single};
use routes::{NodeEgressRoutes, RoutedAddressGroup, TransitTraffic};

/// One node's network settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetConfig {
    /// Devices with their addresses.
    pub(crate) devices: Vec<Device>,
    /// Addresses of services, which are on the loopback device: the kernel takes packets for them,
    /// whichever device they come by, and programs can bind them.
    pub(crate) services: Vec<IpAddr>,
    /// Destinations and where they leave, in order.
    pub(crate) routes: Vec<(Prefix, Hop)>,
    /// Packets that use a table of their own.
    pub(crate) rules: Vec<RoutingPolicyRule>,
    /// Whether any address is IPv6.
    pub(crate) v6: bool,
    /// The position of the device that leads to the machine's outside, if a node stands for that.
    outward: Option<usize>,
}

/// How packets leave the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Egress {
    /// The device's position.
    position: usize,
    /// The next hop there.
    via: RouteNextHop,
}

impl NetConfig {
    pub(crate) fn of(plan: &Plan, routes: &Routes, node: NodeId) -> NetConfig {
        let interfaces = &plan.nodes[node.index()].interfaces;
        let exits = NodeEgressRoutes::new(plan, routes, node);
        let devices: Vec<Device> = interfaces
            .iter()
            .enumerate()
            .map(|(position, interface)| Device {
                index: device_index(position),
                name: interface.name.clone(),
                addresses: interface.addresses().collect(),
                lan: plan.lan_of(interface.link).map(|lan| side(plan, &exits, interface, lan)),
            })
            .collect();
        let v6 = devices.iter().any(|device| device.addresses.iter().any(IpAddr::is_ipv6));
        let mut net_config = NetConfig {
            devices,
            services: vec![],
            routes: vec![],
            rules: vec![],
            v6,
            outward: None,
        };
        net_config.outward = exits.outward();
        net_config.add_defaults();
        let on_lan = net_config.devices.iter().any(|device| device.lan.is_some());
        if on_lan || interfaces.len() > 1 {
            net_config.add_choices(&exits);
        }
        if interfaces.len() > 1 {
            net_config.add_pairs(&exits);
        }
        net_config.add_services(plan, node, &exits);
        net_config
    }

    /// Everything leaves by the first device that has an address of the family and leads anywhere.
    /// What is sent to groups or to all without naming a device leaves by the first on a LAN.
    fn add_defaults(&mut self) {
        for like in FAMILIES {
            if let Some(position) = self.default(like) {
                self.routes.extend(self.everything(position, like, TABLE_MAIN));
            }
        }
        let on_lan = |position: &usize| self.devices[*position].lan.is_some();
        let lan = (0..self.devices.len()).find(on_lan);
        if let Some(position) = lan.filter(|position| self.default(FAMILIES[0]) != Some(*position))
        {
            let hop =
                self.hop(Egress { position, via: RouteNextHop::Owner }, FAMILIES[0], TABLE_MAIN);
            self.routes.extend(hop.into_iter().flat_map(|hop| [GROUPS, ALL].map(|to| (to, hop))));
        }
    }

    /// Destinations that are better reached otherwise than by the default. With several devices
    /// also a table for each, so that what comes from its address leaves by it wherever that
    /// leads to the destination at all, unless the route to it is fixed.
    fn add_choices(&mut self, exits: &NodeEgressRoutes<'_>) {
        let ways = ways(exits);
        for like in FAMILIES {
            let default = self.default(like);
            let main = self.table(exits, &ways, like, default, TABLE_MAIN, |_, best| best);
            self.routes.extend(main);
            for position in (0..self.devices.len()).filter(|_| self.devices.len() > 1) {
                let Some(source) = self.source(position, like) else { continue };
                let table = own_table(position);
                let outward = exits.outward_from(position).or(self.outward).unwrap_or(position);
                let everything = self.everything(outward, like, table);
                let default = everything.map(|_| outward);
                let own = self.table(exits, &ways, like, default, table, |destination, best| {
                    let bound = best == position || exits.is_fixed(destination);
                    let leads = !bound && exits.leads(position, destination);
                    if leads { position } else { best }
                });
                self.routes.extend(own);
                self.routes.extend(everything);
                self.rules.push(RoutingPolicyRule {
                    from: source,
                    to: None,
                    udp_port: None,
                    table,
                });
            }
        }
    }

    /// Where the node passes on what has a fixed route: source and destination choose the way.
    fn add_pairs(&mut self, exits: &NodeEgressRoutes<'_>) {
        let mut used: Vec<(Egress, IpAddr)> = Vec::new();
        for passing in exits.passing() {
            for from in &passing.sources {
                for to in passing.destinations.iter().filter(|to| to.is_ipv4() == from.is_ipv4()) {
                    let Some(way) = self.passing_way(exits, &passing, *to) else { continue };
                    let key = (way, FAMILIES[usize::from(to.is_ipv6())]);
                    let known = used.iter().position(|known| *known == key);
                    let number = known.unwrap_or_else(|| {
                        used.push(key);
                        used.len() - 1
                    });
                    self.rules.push(RoutingPolicyRule {
                        from: *from,
                        to: Some(*to),
                        udp_port: None,
                        table: pair_table(number),
                    });
                }
            }
        }
        for (number, (way, like)) in used.into_iter().enumerate() {
            let hop = self.hop(way, like, pair_table(number));
            self.routes.extend(hop.map(|hop| (Prefix { address: like, length: 0 }, hop)));
        }
    }

    fn passing_way(
        &self,
        exits: &NodeEgressRoutes<'_>,
        passing: &TransitTraffic,
        to: IpAddr,
    ) -> Option<Egress> {
        let via = match &self.devices[passing.position].lan {
            None => RouteNextHop::Anyone,
            Some(lan) if lan.holds(to) => RouteNextHop::Owner,
            Some(_) => RouteNextHop::Gateway(exits.address_at_end(passing.beyond?, to)?),
        };
        Some(Egress { position: passing.position, via })
    }

    /// The prefixes of a table that leads to each destination by the device that `choose` says,
    /// beside a default route by `default`. Addresses that no interface has may go anywhere, but
    /// for those of LANs: these go with their subnet.
    fn table(
        &self,
        exits: &NodeEgressRoutes<'_>,
        ways: &[(RoutedAddressGroup, usize)],
        like: IpAddr,
        default: Option<usize>,
        table: u32,
        choose: impl Fn(&RoutedAddressGroup, usize) -> usize,
    ) -> Vec<(Prefix, Hop)> {
        // The ways that devices have by themselves come first, so that a way's number is its
        // position.
        let mut known: Vec<Egress> =
            (0..self.devices.len()).map(|position| self.usual(position, like)).collect();
        let (mut plain, mut subnets, mut hosts) = (Vec::new(), Vec::new(), Vec::new());
        for (destination, best) in ways {
            let mut addresses = destination
                .addresses
                .iter()
                .filter(|to| to.address.is_ipv4() == like.is_ipv4())
                .peekable();
            if addresses.peek().is_none() {
                continue;
            }
            let position = choose(destination, *best);
            for to in addresses {
                let Some(way) = self.way(exits, position, destination, to.address) else {
                    continue;
                };
                if destination.is_lan() {
                    subnets.push((*to, self.attached(to.address).unwrap_or(way)));
                } else if exits.is_on_lan(to.address) {
                    hosts.push((*to, way));
                } else {
                    plain.push((to.address, number_of(&mut known, way)));
                }
            }
        }
        // With an outside, addresses that no interface has are not free to go anywhere.
        let shorten = if self.outward.is_some() { single } else { merge };
        let mut found: Vec<(Prefix, Egress)> = shorten(plain, default.unwrap_or(usize::MAX))
            .into_iter()
            .map(|(to, number)| (to, known[number]))
            .collect();
        let usual = default.map(|position| known[position]);
        let alone = found.is_empty();
        let covered = |way: Egress, to: &Prefix| {
            let by_kernel = table == TABLE_MAIN && self.attached(to.address).is_some();
            by_kernel || (alone && usual == Some(way))
        };
        let holds = |subnet: &Prefix, to: IpAddr| {
            let Prefix { address: network, length: prefix } = *subnet;
            Subnet { network, prefix }.contains(to)
        };
        for (to, way) in hosts {
            let subnet = subnets.iter().find(|(subnet, _)| holds(subnet, to.address));
            if subnet.is_none_or(|(_, known)| *known != way) {
                found.push((to, way));
            }
        }
        found.extend(subnets.into_iter().filter(|(to, way)| !covered(*way, to)));
        let hop = |way| self.hop(way, like, table);
        found.into_iter().filter_map(|(to, way)| Some((to, hop(way)?))).collect()
    }

    /// The way by a device towards an address of a destination.
    fn way(
        &self,
        exits: &NodeEgressRoutes<'_>,
        position: usize,
        destination: &RoutedAddressGroup,
        to: IpAddr,
    ) -> Option<Egress> {
        self.source(position, to)?;
        let via = match &self.devices[position].lan {
            None => RouteNextHop::Anyone,
            Some(lan) if lan.holds(to) => RouteNextHop::Owner,
            Some(_) => RouteNextHop::Gateway(exits.gateway(position, destination, to)?),
        };
        Some(Egress { position, via })
    }

    /// The way to an address of a LAN that the node is on.
    fn attached(&self, address: IpAddr) -> Option<Egress> {
        let on = |device: &Device| device.lan.as_ref().is_some_and(|lan| lan.holds(address));
        Some(Egress { position: self.devices.iter().position(on)?, via: RouteNextHop::Owner })
    }

    /// The way by a device to what is on no LAN.
    fn usual(&self, position: usize, like: IpAddr) -> Egress {
        Egress { position, via: self.devices[position].usual(like) }
    }

    fn hop(&self, egress: Egress, like: IpAddr, table: u32) -> Option<Hop> {
        let Egress { position, via } = egress;
        let source = self.source(position, like)?;
        Some(Hop { device: device_index(position), source, table, via })
    }

    /// The default route of a table.
    fn everything(&self, position: usize, like: IpAddr, table: u32) -> Option<(Prefix, Hop)> {
        let egress = self.usual(position, like);
        let hop = self.hop(egress, like, table).filter(|_| egress.via != RouteNextHop::Owner)?;
        Some((Prefix { address: like, length: 0 }, hop))
    }

    /// The device that leads to the machine's outside, or the first one, that has an address of the
    /// family and leads anywhere.
    fn default(&self, like: IpAddr) -> Option<usize> {
        let leads = |position: &usize| self.everything(*position, like, TABLE_MAIN).is_some();
        self.outward.into_iter().chain(0..self.devices.len()).find(leads)
    }

    /// A device's address of a family.
    fn source(&self, position: usize, like: IpAddr) -> Option<IpAddr> {
        let addresses = &self.devices.get(position)?.addresses;
        addresses.iter().find(|own| own.is_ipv4() == like.is_ipv4()).copied()
    }
}

/// Destinations with the position of the best device for each.
fn ways(exits: &NodeEgressRoutes<'_>) -> Vec<(RoutedAddressGroup, usize)> {
    let way = |destination: RoutedAddressGroup| {
        let best = exits.best(&destination)?;
        Some((destination, best))
    };
    exits.destinations().filter_map(way).collect()
}

/// The number of a way among those that are known.
fn number_of(known: &mut Vec<Egress>, way: Egress) -> usize {
    known.iter().position(|other| *other == way).unwrap_or_else(|| {
        known.push(way);
        known.len() - 1
    })
}

/// One address of each family.
pub(crate) const FAMILIES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];

/// All IPv4 groups.
const GROUPS: Prefix = Prefix { address: IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), length: 4 };
/// All hosts of a link.
const ALL: Prefix = Prefix { address: IpAddr::V4(Ipv4Addr::BROADCAST), length: 32 };

/// The index of a node's device, chosen here so that it need not be looked up. Below are `lo` and
/// the devices that some kernel modules put into each namespace.
pub(crate) fn device_index(position: usize) -> u32 {
    FIRST_DEVICE + u32::try_from(position).expect("a plan has fewer than 2^32 interfaces")
}

/// The index of a node's first device, inside of the node.
pub const FIRST_DEVICE: u32 = 100;

/// The routing table for what comes from a device's addresses.
fn own_table(position: usize) -> u32 {
    device_index(position) + 900
}

/// The routing table for pairs of addresses whose packets a node passes on by the same way.
fn pair_table(number: usize) -> u32 {
    device_index(number) + 100_900
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::two_homed_plan;

    fn net_config(node: u32) -> NetConfig {
        let plan = two_homed_plan();
        NetConfig::of(&plan, &Routes::compute(&plan), NodeId(node))
    }

    fn written(net_config: &NetConfig) -> Vec<String> {
        let line = |(to, hop): &(Prefix, Hop)| {
            format!("{to} dev {} src {} table {}", hop.device, hop.source, hop.table)
        };
        net_config.routes.iter().map(line).collect()
    }

    #[test]
    fn with_one_interface_everything_leaves_by_it() {
        let b = net_config(1);
        let expected =
            ["default dev 100 src 10.0.0.3 table 254", "default dev 100 src fd00::3 table 254"];
        assert_eq!(written(&b), expected);
        assert_eq!(b.rules, []);
        assert!(b.v6);
    }

    #[test]
    fn what_is_not_in_the_plan_leaves_towards_the_machines_outside() {
        let mut plan = two_homed_plan();
        plan.nodes[2].internet = Some(windtunnel_model::plan::InternetAccess::default());
        let a = NetConfig::of(&plan, &Routes::compute(&plan), NodeId(0));
        let mut default = written(&a);
        default.retain(|line| line.starts_with("default") && line.ends_with("table 254"));
        let expected =
            ["default dev 101 src 10.0.0.2 table 254", "default dev 101 src fd00::2 table 254"];
        assert_eq!(default, expected);
        // Prefixes of several addresses would hold some that are outside.
        let shorter = |to: &Prefix| !matches!(to.length, 0 | 32 | 128);
        assert!(a.routes.iter().all(|(to, _)| !shorter(to)), "{:?}", written(&a));
        // Also from the address of the interface that leads elsewhere only.
        let own = "default dev 101 src 10.0.0.2 table 1000";
        assert!(written(&a).iter().any(|line| line == own), "{:?}", written(&a));
    }

    #[test]
    fn with_two_interfaces_sources_choose_and_dead_ends_are_avoided() {
        let a = net_config(0);
        let expected = [
            "default dev 100 src 10.0.0.1 table 254",
            // c hangs on eth1 only, so even what comes from eth0's address goes there.
            "10.0.0.5/32 dev 101 src 10.0.0.2 table 254",
            "10.0.0.5/32 dev 101 src 10.0.0.2 table 1000",
            // b (3) and the router (6 and 7) are behind eth0 only, and so is all that is near them
            // but c.
            "10.0.0.0/29 dev 100 src 10.0.0.1 table 1001",
            "10.0.0.5/32 dev 101 src 10.0.0.2 table 1001",
            "default dev 100 src 10.0.0.1 table 1000",
            "default dev 101 src 10.0.0.2 table 1001",
        ];
        let v4: Vec<String> =
            written(&a).into_iter().filter(|line| !line.contains("fd00")).collect();
        let sorted = |lines: &[String]| {
            let mut lines = lines.to_vec();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&v4), sorted(&expected.map(String::from)));
        let rules: Vec<String> =
            a.rules.iter().map(|r| format!("{} {}", r.from, r.table)).collect();
        assert_eq!(rules, ["10.0.0.1 1000", "10.0.0.2 1001", "fd00::1 1000", "fd00::2 1001"]);
    }
}
