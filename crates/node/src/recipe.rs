//! What has to be configured in one node, worked out from the plan before anything is touched.

pub(crate) mod edit;
pub(crate) mod prefixes;
pub(crate) mod routes;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use windtunnel_model::id::NodeId;
use windtunnel_model::{Plan, Routes};

use crate::netlink::request::{Hop, Rule, TABLE_MAIN};
use prefixes::{Prefix, merge};
use routes::{Destination, Exits};

/// One node's network settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recipe {
    /// Devices with their addresses.
    pub(crate) devices: Vec<Device>,
    /// Destinations and where they leave, in order.
    pub(crate) routes: Vec<(Prefix, Hop)>,
    /// Packets that use a table of their own.
    pub(crate) rules: Vec<Rule>,
    /// Whether any address is IPv6.
    pub(crate) v6: bool,
}

/// The node's end of one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) addresses: Vec<IpAddr>,
}

impl Recipe {
    pub(crate) fn of(plan: &Plan, routes: &Routes, node: NodeId) -> Recipe {
        let interfaces = &plan.nodes[node.index()].interfaces;
        let devices: Vec<Device> = interfaces
            .iter()
            .enumerate()
            .map(|(position, interface)| Device {
                index: device_index(position),
                name: interface.name.clone(),
                addresses: interface.addresses().collect(),
            })
            .collect();
        let v6 = devices.iter().any(|device| device.addresses.iter().any(IpAddr::is_ipv6));
        let mut recipe = Recipe { devices, routes: vec![], rules: vec![], v6 };
        recipe.add_defaults();
        if interfaces.len() > 1 {
            let exits = Exits::new(plan, routes, node);
            recipe.add_choices(&exits);
            recipe.add_pairs(&exits);
        }
        recipe
    }

    /// Everything leaves by the first device that has an address of the family.
    fn add_defaults(&mut self) {
        for like in FAMILIES {
            if let Some(position) = self.default(like) {
                self.routes.extend(self.everything(position, like, TABLE_MAIN));
            }
        }
    }

    /// With several devices: destinations that are better reached by another one than the default,
    /// and a table for each device, so that what comes from its address leaves by it wherever
    /// that leads to the destination at all, unless the route to it is fixed.
    fn add_choices(&mut self, exits: &Exits<'_>) {
        let ways: Vec<(Destination, usize)> = exits
            .destinations()
            .filter_map(|destination| {
                let best = exits.best(&destination)?;
                Some((destination, best))
            })
            .collect();
        for like in FAMILIES {
            let Some(default) = self.default(like) else { continue };
            let main = self.merged(&ways, like, default, TABLE_MAIN, |_, best| best);
            self.routes.extend(main);
            for position in 0..self.devices.len() {
                let Some(source) = self.source(position, like) else { continue };
                let table = own_table(position);
                let own = self.merged(&ways, like, position, table, |destination, best| {
                    let bound = best == position || exits.is_fixed(destination);
                    let leads = !bound && exits.leads(position, destination);
                    if leads { position } else { best }
                });
                self.routes.extend(own);
                self.routes.extend(self.everything(position, like, table));
                self.rules.push(Rule { from: source, to: None, table });
            }
        }
    }

    /// Where the node passes on what has a fixed route: source and destination choose the device.
    fn add_pairs(&mut self, exits: &Exits<'_>) {
        let mut used = Vec::new();
        for (sources, destinations, position) in exits.passing() {
            for from in &sources {
                for to in destinations.iter().filter(|to| to.is_ipv4() == from.is_ipv4()) {
                    let table = pair_table(position);
                    self.rules.push(Rule { from: *from, to: Some(*to), table });
                }
            }
            used.push(position);
        }
        used.sort_unstable();
        used.dedup();
        for (position, like) in used.into_iter().flat_map(|p| FAMILIES.map(|like| (p, like))) {
            self.routes.extend(self.everything(position, like, pair_table(position)));
        }
    }

    /// The prefixes of a table that leads to each destination by the device that `choose` says.
    fn merged(
        &self,
        ways: &[(Destination, usize)],
        like: IpAddr,
        default: usize,
        table: u32,
        choose: impl Fn(&Destination, usize) -> usize,
    ) -> Vec<(Prefix, Hop)> {
        let mut chosen = Vec::new();
        for (destination, best) in ways {
            let mut addresses =
                destination.addresses.iter().filter(|a| a.is_ipv4() == like.is_ipv4()).peekable();
            if addresses.peek().is_none() {
                continue;
            }
            let position = choose(destination, *best);
            if self.source(position, like).is_some() {
                chosen.extend(addresses.map(|address| (*address, position)));
            }
        }
        let hop = |position: usize| {
            let source = self.source(position, like)?;
            Some(Hop { device: device_index(position), source, table })
        };
        let merged = merge(chosen, default).into_iter();
        merged.filter_map(|(to, position)| Some((to, hop(position)?))).collect()
    }

    /// The default route of a table.
    fn everything(&self, position: usize, like: IpAddr, table: u32) -> Option<(Prefix, Hop)> {
        let source = self.source(position, like)?;
        let to = Prefix { address: like, length: 0 };
        Some((to, Hop { device: device_index(position), source, table }))
    }

    /// The first device with an address of the family.
    fn default(&self, like: IpAddr) -> Option<usize> {
        (0..self.devices.len()).find(|position| self.source(*position, like).is_some())
    }

    /// A device's address of a family.
    fn source(&self, position: usize, like: IpAddr) -> Option<IpAddr> {
        let addresses = &self.devices.get(position)?.addresses;
        addresses.iter().find(|own| own.is_ipv4() == like.is_ipv4()).copied()
    }
}

/// One address of each family.
const FAMILIES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];

/// The index of a node's device, chosen by us so that nobody has to ask. Below are `lo` and the
/// devices that some kernel modules put into each namespace.
pub(crate) fn device_index(position: usize) -> u32 {
    100 + u32::try_from(position).expect("a plan has fewer than 2^32 interfaces")
}

/// The routing table for what comes from a device's addresses.
fn own_table(position: usize) -> u32 {
    device_index(position) + 900
}

/// The routing table for pairs of addresses whose packets a node passes on by a device.
fn pair_table(position: usize) -> u32 {
    device_index(position) + 100_900
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::two_homed_plan;

    fn recipe(node: u32) -> Recipe {
        let plan = two_homed_plan();
        Recipe::of(&plan, &Routes::compute(&plan), NodeId(node))
    }

    fn written(recipe: &Recipe) -> Vec<String> {
        let line = |(to, hop): &(Prefix, Hop)| {
            format!("{to} dev {} src {} table {}", hop.device, hop.source, hop.table)
        };
        recipe.routes.iter().map(line).collect()
    }

    #[test]
    fn with_one_interface_everything_leaves_by_it() {
        let b = recipe(1);
        let expected =
            ["default dev 100 src 10.0.0.3 table 254", "default dev 100 src fd00::3 table 254"];
        assert_eq!(written(&b), expected);
        assert_eq!(b.rules, []);
        assert!(b.v6);
    }

    #[test]
    fn with_two_interfaces_sources_choose_and_dead_ends_are_avoided() {
        let a = recipe(0);
        let expected = [
            "default dev 100 src 10.0.0.1 table 254",
            // c hangs on eth1 only, so even what comes from eth0's address goes there.
            "10.0.0.5/32 dev 101 src 10.0.0.2 table 254",
            "10.0.0.5/32 dev 101 src 10.0.0.2 table 1000",
            // b (3) and the router (6 and 7) are behind eth0 only, and so is all that is near them but c.
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
