//! Loading what was written, and comparing it with what it was written from.

use std::collections::BTreeMap;

use windtunnel_model::profile::LossModel;
use windtunnel_model::{LinkProfile, Plan};
use windtunnel_scenario::ScenarioSource;
use windtunnel_topology::{LinkDirectionProperties, Topology, TopologyLink};

/// The plan of a topology's file.
pub(crate) fn load(topology: &Topology) -> Plan {
    let text = topology.to_yaml();
    let source = ScenarioSource {
        name: "written.yaml",
        text: text.as_bytes(),
        default_name: "written",
        base_dir: "/base",
    };
    match windtunnel_scenario::load(&source) {
        Ok(loaded) => loaded.plan,
        Err(errors) => panic!("{errors}\nin\n{text}"),
    }
}

/// The file loads, and every node, router, link and property is the one of the topology.
pub(crate) fn assert_loads_as_it_says(topology: &Topology) {
    let plan = load(topology);
    assert_eq!(plan.name, topology.name);
    let mut names = Vec::new();
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for node in &topology.nodes {
        let members: Vec<String> = match node.count {
            Some(count) => (1..=count).map(|number| format!("{}-{number}", node.name)).collect(),
            None => vec![node.name.clone()],
        };
        for member in &members {
            names.push((member.clone(), node.forward, usize::from(node.run.is_some())));
        }
        groups.insert(&node.name, members);
    }
    let loaded: Vec<_> = plan
        .nodes
        .iter()
        .map(|node| (node.name.clone(), node.forward, node.programs.len()))
        .collect();
    assert_eq!(loaded, names);
    let routers: Vec<_> = plan.routers.iter().map(|router| router.name.as_str()).collect();
    let said: Vec<_> = topology.routers.iter().map(|router| router.name.as_str()).collect();
    assert_eq!(routers, said);
    assert_links(topology, &plan, &groups);
    assert_eq!(plan.events.len(), topology.events.len());
}

fn assert_links(topology: &Topology, plan: &Plan, groups: &BTreeMap<&str, Vec<String>>) {
    let expand = |name: &str| groups.get(name).cloned().unwrap_or_else(|| vec![name.to_owned()]);
    let mut at = 0;
    for link in &topology.links {
        for first in expand(&link.between[0]) {
            for second in expand(&link.between[1]) {
                let loaded = &plan.links[at];
                let ends = loaded.ends.map(|end| plan.vertex_name(end.vertex));
                assert_eq!(ends, [first.as_str(), second.as_str()]);
                assert_profiles(link, &loaded.profiles);
                at += 1;
            }
        }
    }
    assert_eq!(at, plan.links.len());
}

fn assert_profiles(link: &TopologyLink, profiles: &[LinkProfile; 2]) {
    for (said, profile) in [&link.up, &link.down].into_iter().zip(profiles) {
        let LinkDirectionProperties { latency, jitter, reorders, loss, rate, overhead, queue, mtu } =
            said;
        assert_eq!((profile.latency, &profile.jitter), (*latency, jitter), "{link:?}");
        assert_eq!(profile.reorder.by_jitter, *reorders, "{link:?}");
        let lost = match loss.is_never() {
            true => LossModel::None,
            false => LossModel::Independent(*loss),
        };
        assert_eq!(profile.loss, lost, "{link:?}");
        assert_eq!((profile.rate, profile.queue), (*rate, *queue), "{link:?}");
        assert_eq!(profile.overhead.map(|it| it.0), *overhead, "{link:?}");
        assert_eq!(profile.mtu, mtu.unwrap_or(1500), "{link:?}");
    }
}
