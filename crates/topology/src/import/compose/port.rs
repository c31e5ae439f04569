//! `ports`: ports of the machine that lead to a service.

use std::collections::BTreeSet;

use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{YamlKey, YamlValue, YamlValueKind};

use super::reader::ComposeReader;
use crate::import::input::shorten;
use crate::import::mapping::find;
use crate::import::names::UniqueNameAllocator;
use crate::topology::{ConversionReport, Topology, TopologyLink, TopologyNode, TopologyRouter};
use crate::yaml::list_of;

/// The most ports of one range.
const MOST: u16 = 100;

/// A port of the machine and that of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ComposePortMapping {
    machine: u16,
    service: u16,
}

/// Reads `ports`: what `publish` of its node is.
pub(super) fn read(
    reader: &ComposeReader<'_>,
    keys: &[(YamlKey, YamlValue)],
    node: &str,
    notes: &mut ConversionReport,
) -> Result<Vec<String>, ScenarioMistake> {
    let Some(YamlValue { kind: YamlValueKind::List(items), .. }) = find(keys, "ports") else {
        return Ok(Vec::new());
    };
    let mut found = BTreeSet::new();
    for item in items {
        let text = match &item.kind {
            YamlValueKind::Map(keys) => long(reader, keys, node, notes)?,
            _ => reader.text(item, "ports", notes)?,
        };
        match pairs(&text) {
            Some(pairs) => found.extend(pairs),
            None => {
                let lost = "Ports that are not carried: of UDP, without a port of the machine, or in larger ranges";
                notes.lose(lost, format!("{} of {node}", shorten(&text)));
            }
        }
    }
    Ok(found.iter().map(|pair| format!("{}:{}", pair.machine, pair.service)).collect())
}

/// The long form, written as the short one.
fn long(
    reader: &ComposeReader<'_>,
    keys: &[(YamlKey, YamlValue)],
    node: &str,
    notes: &mut ConversionReport,
) -> Result<String, ScenarioMistake> {
    let mut text = |key: &str| match find(keys, key) {
        Some(value) => reader.text(value, key, notes),
        None => Ok(String::new()),
    };
    let (target, published, protocol) = (text("target")?, text("published")?, text("protocol")?);
    let known = ["target", "published", "protocol", "mode", "name", "host_ip"];
    for (key, _) in keys.iter().filter(|(key, _)| !known.contains(&key.text.as_str())) {
        notes.lose("Keys of ports", format!("{} of {node}", shorten(&key.text)));
    }
    let protocol = if protocol.is_empty() { "tcp" } else { &protocol };
    Ok(format!("{published}:{target}/{protocol}"))
}

/// `8080:80`, `127.0.0.1:8080:80/tcp`, or ranges of the same length.
fn pairs(text: &str) -> Option<Vec<ComposePortMapping>> {
    let text = match text.rsplit_once('/') {
        Some((text, "tcp")) => text,
        Some(_) => return None,
        None => text,
    };
    let (front, service) = text.rsplit_once(':')?;
    let machine = front.rsplit(':').next()?;
    let (machine, service) = (range(machine)?, range(service)?);
    let is_same = machine.1 - machine.0 == service.1 - service.0;
    (is_same && machine.1 - machine.0 < MOST).then(|| {
        let both = (machine.0..=machine.1).zip(service.0..=service.1);
        both.map(|(machine, service)| ComposePortMapping { machine, service }).collect()
    })
}

fn range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
    let (first, last) = (port(first)?, port(last)?);
    (first <= last).then_some((first, last))
}

/// Services that publish ports, and where their links lead.
#[derive(Debug, Default)]
pub(super) struct ComposePublishedPorts {
    /// Nodes with their ports.
    nodes: Vec<(String, Vec<String>)>,
}

impl ComposePublishedPorts {
    pub(super) fn add(
        &mut self,
        node: &TopologyNode,
        ports: Vec<String>,
        notes: &mut ConversionReport,
    ) {
        if ports.is_empty() {
            return;
        }
        if node.count.is_some() {
            let text = "Ports of services with replicas: each replica would need one of its own";
            notes.lose(text, format!("{} of {}", ports.join(", "), node.name));
            return;
        }
        self.nodes.push((node.name.clone(), ports));
    }

    /// Attaches the machine's outside to the LAN with the most of them: a router between several
    /// would join networks that are separate.
    pub(super) fn finish(mut self, namer: &mut UniqueNameAllocator, topology: &mut Topology) {
        let mut taken = BTreeSet::new();
        for (node, ports) in &mut self.nodes {
            ports.retain(|port| {
                let is_free = taken.insert(port.split(':').next().unwrap_or(port).to_owned());
                if !is_free {
                    let text = "Ports of the machine that another service has";
                    topology.notes.lose(text, format!("{port} of {node}"));
                }
                is_free
            });
        }
        self.nodes.retain(|(_, ports)| !ports.is_empty());
        let is_on = |topology: &Topology, node: &str, lan: &str| {
            topology.links.iter().any(|link| link.between[0] == node && link.between[1] == lan)
        };
        let count = |lan: &&String| {
            self.nodes.iter().filter(|(node, _)| is_on(topology, node, lan)).count()
        };
        let most = topology.lans.iter().rev().max_by_key(count).cloned();
        let Some(lan) = most.filter(|lan| count(&lan) > 0) else {
            for (node, ports) in self.nodes {
                let text = "Ports of services without a network";
                topology.notes.lose(text, format!("{} of {node}", ports.join(", ")));
            }
            return;
        };
        for (node, ports) in &self.nodes {
            if !is_on(topology, node, &lan) {
                let text =
                    "Ports of services that are not on the network that is joined with the machine";
                topology.notes.lose(text, format!("{} of {node}", ports.join(", ")));
                continue;
            }
            let found = topology.nodes.iter_mut().find(|it| it.name == *node);
            found.into_iter().for_each(|it| it.more.push(("publish", list_of(ports))));
        }
        self.outside(&lan, namer, topology);
    }

    fn outside(&self, lan: &str, namer: &mut UniqueNameAllocator, topology: &mut Topology) {
        let router = namer.take("outside", "router");
        let between = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        for between in [between("internet", &router), between(&router, lan)] {
            topology.links.push(TopologyLink { between, ..TopologyLink::default() });
        }
        topology.routers.push(TopologyRouter { name: router, comment: None });
        topology
            .nodes
            .push(TopologyNode { name: "internet".to_owned(), ..TopologyNode::default() });
        for (node, ports) in &self.nodes {
            let text = "Ports of the machine lead to nodes through `internet`, for programs of this machine; what \
                        services reach outside needs `--allow-internet`";
            topology.notes.assume(text, format!("{} ({node})", ports.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_of_the_machine_and_of_the_service() {
        let shown = |text: &str| {
            let pairs = pairs(text)?;
            let one = |pair: &ComposePortMapping| format!("{}:{}", pair.machine, pair.service);
            Some(pairs.iter().map(one).collect::<Vec<_>>().join(" "))
        };
        let cases = [
            ("8080:80", Some("8080:80")),
            ("127.0.0.1:8080:80/tcp", Some("8080:80")),
            ("[::1]:8080:80", Some("8080:80")),
            ("3000-3001:4000-4001", Some("3000:4000 3001:4001")),
            ("53:53/udp", None),
            ("80", None),
            (":80/tcp", None),
            ("1-1000:1-1000", None),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text).as_deref(), expected, "{text}");
        }
    }
}
