//! What has to be configured in one node, worked out from the plan before anything is touched.

pub(crate) mod routes;

use std::net::IpAddr;

use windtunnel_model::id::NodeId;
use windtunnel_model::{Plan, Routes};

use crate::netlink::request::{Hop, TABLE_MAIN};
use routes::Exits;

/// One node's network settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recipe {
    /// Devices with their addresses.
    pub(crate) devices: Vec<Device>,
    /// Destinations (`None`: everything else) and where they leave, in order.
    pub(crate) routes: Vec<(Option<IpAddr>, Hop)>,
    /// Own addresses whose packets use a table of their own.
    pub(crate) rules: Vec<(IpAddr, u32)>,
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
            recipe.add_choices(&Exits::new(plan, routes, node));
        }
        recipe
    }

    /// Everything leaves by the first device that has an address of the family.
    fn add_defaults(&mut self) {
        let sources = [true, false].map(|v4| {
            let all = self.devices.iter().enumerate();
            let mut all =
                all.flat_map(|(at, device)| device.addresses.iter().map(move |a| (at, *a)));
            all.find(|(_, address)| address.is_ipv4() == v4)
        });
        for (position, source) in sources.into_iter().flatten() {
            let hop = Hop { device: device_index(position), source, table: TABLE_MAIN };
            self.routes.push((None, hop));
        }
    }

    /// With several devices: destinations that are better reached by another one than the default,
    /// and a table for each device, so that what comes from its address leaves by it wherever
    /// that leads to the destination at all.
    fn add_choices(&mut self, exits: &Exits<'_>) {
        let defaults = self.routes.clone();
        let mut found = Vec::new();
        for destination in exits.destinations() {
            let Some(best) = exits.best(&destination) else { continue };
            let others = (0..self.devices.len()).filter(|position| *position != best);
            let astray: Vec<usize> =
                others.filter(|position| !exits.leads(*position, &destination)).collect();
            for address in &destination.addresses {
                let Some(hop) = self.hop(best, *address) else { continue };
                if !defaults.contains(&(None, hop)) {
                    found.push((Some(*address), hop));
                }
                let corrected = astray.iter().map(|position| own_table(*position));
                found.extend(corrected.map(|table| (Some(*address), Hop { table, ..hop })));
            }
        }
        for (position, device) in self.devices.iter().enumerate() {
            for source in &device.addresses {
                let table = own_table(position);
                found.push((None, Hop { device: device.index, source: *source, table }));
                self.rules.push((*source, table));
            }
        }
        self.routes.append(&mut found);
    }

    /// Leaving by a device towards an address: it needs an address of the same family.
    fn hop(&self, position: usize, to: IpAddr) -> Option<Hop> {
        let device = self.devices.get(position)?;
        let source = *device.addresses.iter().find(|own| own.is_ipv4() == to.is_ipv4())?;
        Some(Hop { device: device.index, source, table: TABLE_MAIN })
    }
}

/// The index of a node's device, chosen by us so that nobody has to ask. Below are `lo` and the
/// devices that some kernel modules put into each namespace.
pub(crate) fn device_index(position: usize) -> u32 {
    100 + u32::try_from(position).expect("a plan has fewer than 2^32 interfaces")
}

/// The routing table for what comes from a device's addresses.
fn own_table(position: usize) -> u32 {
    device_index(position) + 900
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
        let line = |(to, hop): &(Option<IpAddr>, Hop)| {
            let to = to.map_or_else(|| "default".into(), |to| to.to_string());
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
            "10.0.0.5 dev 101 src 10.0.0.2 table 254",
            "10.0.0.5 dev 101 src 10.0.0.2 table 1000",
            // b and the router are behind eth0 only.
            "10.0.0.3 dev 100 src 10.0.0.1 table 1001",
            "10.0.0.6 dev 100 src 10.0.0.1 table 1001",
            "10.0.0.7 dev 100 src 10.0.0.1 table 1001",
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
        let rules: Vec<String> = a.rules.iter().map(|(a, t)| format!("{a} {t}")).collect();
        assert_eq!(rules, ["10.0.0.1 1000", "fd00::1 1000", "10.0.0.2 1001", "fd00::2 1001"]);
    }
}
