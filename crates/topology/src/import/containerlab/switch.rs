//! Bridges, which are LANs: one subnet, in which all that is attached reaches each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::topology::{LinkDirectionProperties, Topology, TopologyLink};

/// Kinds that are switches.
const KINDS: [&str; 2] = ["bridge", "ovs-bridge"];

/// Whether nodes of this kind are switches.
pub(super) fn is_switch(kind: &str) -> bool {
    KINDS.contains(&kind)
}

/// Makes one LAN of switches that are joined, and leaves each node one link to each LAN: a scenario
/// has neither links between LANs nor second ones to the same.
pub(super) fn settle(topology: &mut Topology) {
    let mut of: BTreeMap<String, String> =
        topology.lans.iter().map(|lan| (lan.clone(), lan.clone())).collect();
    let links = std::mem::take(&mut topology.links);
    let is_inner = |link: &TopologyLink| link.between.iter().all(|end| of.contains_key(end));
    let (inner, outer): (Vec<TopologyLink>, Vec<TopologyLink>) =
        links.into_iter().partition(is_inner);
    for link in inner {
        let both = link.between.join("--");
        topology.notes.assume("Switches that are joined are one LAN", both.clone());
        if link.up != LinkDirectionProperties::default()
            || link.down != LinkDirectionProperties::default()
        {
            topology.notes.lose("Properties of links between switches, which are one LAN", both);
        }
        let [kept, gone] = link.between.map(|end| of[&end].clone());
        of.values_mut().filter(|lan| **lan == gone).for_each(|lan| *lan = kept.clone());
    }
    let mut attached = BTreeSet::new();
    for mut link in outer {
        let is_attachment = link.between.iter().any(|end| of.contains_key(end));
        link.between = link.between.map(|end| of.get(&end).cloned().unwrap_or(end));
        if is_attachment && !attached.insert(link.between.clone()) {
            let text = "Further links of a node to a switch to which it has one";
            topology.notes.lose(text, link.between.join("--"));
            continue;
        }
        topology.links.push(link);
    }
    topology.lans.retain(|lan| of.get(lan) == Some(lan));
    for lan in topology.lans.clone() {
        topology.notes.assume("Switches are LANs: each is one subnet", lan);
    }
}
