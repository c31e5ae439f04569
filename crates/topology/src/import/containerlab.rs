//! containerlab's topology files: nodes of kinds, and links between their interfaces.

mod kind;
mod switch;

use std::collections::BTreeMap;

use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{self, SourceLocation, YamlKey, YamlValue, YamlValueKind};

use super::decimal;
use super::delay::{DelayDistribution, DelayJitterShape};
use super::input::{ImportSourceText, shorten};
use super::mapping::find;
use super::names::{self, UniqueNameAllocator};
use super::options::ImportOptions;
use crate::topology::{
    ConversionReport, LinkDirectionProperties, Topology, TopologyLink, TopologyNode, TopologyRouter,
};
use kind::ContainerlabDefaults;

/// Kinds whose nodes are hosts for programs; some others are switches, and all others routers with
/// an operating system of their own.
const HOSTS: [&str; 2] = ["linux", "ext-container"];
/// Ends of links that are not nodes.
const OUTSIDE: [&str; 4] = ["host", "mgmt-net", "macvlan", "dummy"];

/// Each node of kind `linux` becomes a node, each bridge a LAN, each other one a router.
pub(super) fn convert(
    input: &ImportSourceText<'_>,
    _: &ImportOptions,
) -> Result<Topology, ScenarioMistake> {
    let parsed = yaml::parse(&input.text);
    let root = parsed.map_err(|error| input.at(error.place, error.message, error.hint))?;
    let empty = YamlValue { place: SourceLocation::START, kind: YamlValueKind::Null };
    let reader = ContainerlabReader { input };
    let root = reader.map(root.as_ref().unwrap_or(&empty), "the file")?;
    let mut topology = Topology::default();
    if let Some(name) = find(root, "name") {
        topology.name = names::experiment(reader.text(name, "name")?);
    }
    for (key, _) in
        root.iter().filter(|(key, _)| !["name", "topology"].contains(&key.text.as_str()))
    {
        topology.notes.lose("Keys of the file", shorten(&key.text));
    }
    let Some(inner) = find(root, "topology") else {
        return Err(input.at(SourceLocation::START, "there is no `topology:` in this file", None));
    };
    let inner = reader.map(inner, "topology")?;
    let mut names = BTreeMap::new();
    reader.nodes(inner, &mut topology, &mut names)?;
    if let Some(links) = find(inner, "links") {
        for link in reader.list(links, "links")? {
            reader.link(link, &mut topology, &names)?;
        }
    }
    for (key, _) in inner {
        if !["nodes", "links", "defaults", "kinds", "groups"].contains(&key.text.as_str()) {
            topology.notes.lose("Keys of the topology", shorten(&key.text));
        }
    }
    switch::settle(&mut topology);
    forward(&mut topology);
    Ok(topology)
}

struct ContainerlabReader<'a> {
    input: &'a ImportSourceText<'a>,
}

impl ContainerlabReader<'_> {
    fn nodes(
        &self,
        inner: &[(YamlKey, YamlValue)],
        topology: &mut Topology,
        names: &mut BTreeMap<String, String>,
    ) -> Result<(), ScenarioMistake> {
        let Some(nodes) = find(inner, "nodes") else {
            return Err(self.input.at(SourceLocation::START, "the topology has no `nodes:`", None));
        };
        let definitions = ContainerlabDefaults::read(self, inner, &mut topology.notes)?;
        let mut namer = UniqueNameAllocator::default();
        for (key, value) in self.map(nodes, "nodes")? {
            let keys = match value.kind {
                YamlValueKind::Null => &[][..],
                _ => self.map(value, "a node")?,
            };
            let kind = definitions.kind_of(self, key, keys)?;
            let name = namer.take(&key.text, "node");
            names.insert(key.text.clone(), name.clone());
            let comment = names::comment(&key.text, &name);
            if HOSTS.contains(&kind) {
                topology.nodes.push(TopologyNode {
                    name: name.clone(),
                    comment,
                    ..TopologyNode::default()
                });
            } else if switch::is_switch(kind) {
                topology.lans.push(name.clone());
            } else {
                topology.access.insert(name.clone(), Default::default());
                topology.routers.push(TopologyRouter { name: name.clone(), comment });
                note_router(&mut topology.notes, &name, kind);
            }
            note_keys(&mut topology.notes, &name, keys);
        }
        Ok(())
    }

    fn link(
        &self,
        value: &YamlValue,
        topology: &mut Topology,
        names: &BTreeMap<String, String>,
    ) -> Result<(), ScenarioMistake> {
        let keys = self.map(value, "a link")?;
        let kind = match find(keys, "type") {
            Some(kind) => self.text(kind, "type")?,
            None => "veth",
        };
        let lost = "Links that leave the topology";
        if kind != "veth" {
            topology.notes.lose(lost, format!("{} (line {})", shorten(kind), value.place.line));
            return Ok(());
        }
        let Some(endpoints) = find(keys, "endpoints") else {
            return Err(self.input.at(value.place, "this link has no `endpoints`", None));
        };
        let endpoints = self.list(endpoints, "endpoints")?;
        let [a, b] = endpoints else {
            let message = format!("`endpoints` must be two, here are {}", endpoints.len());
            return Err(self.input.at(value.place, message, None));
        };
        for (key, _) in [a, b].into_iter().flat_map(keys_of) {
            if !["node", "interface"].contains(&key.text.as_str()) {
                topology.notes.lose_once("Keys of endpoints", shorten(&key.text));
            }
        }
        let (a, b) = (self.end(a, names)?, self.end(b, names)?);
        let ([Some(a), Some(b)], line) = ([a, b], value.place.line) else {
            topology.notes.lose(lost, format!("line {}", value.place.line));
            return Ok(());
        };
        if a == b {
            topology.notes.lose("Links from a node to itself", format!("{a} (line {line})"));
            return Ok(());
        }
        let up = self.properties(keys, &format!("{a}--{b}"), &mut topology.notes)?;
        let down = up.clone();
        topology.links.push(TopologyLink { between: [a, b], up, down, ..TopologyLink::default() });
        Ok(())
    }

    /// `node:interface` or `{node: …, interface: …}`; `None` for an end outside of the topology.
    fn end(
        &self,
        value: &YamlValue,
        names: &BTreeMap<String, String>,
    ) -> Result<Option<String>, ScenarioMistake> {
        let (node, place) = match &value.kind {
            YamlValueKind::Map(keys) => match find(keys, "node") {
                Some(node) => (self.text(node, "node")?, node.place),
                None => {
                    return Err(self.input.at(value.place, "this endpoint has no `node`", None));
                }
            },
            _ => {
                let text = self.text(value, "an endpoint")?;
                (text.split(':').next().unwrap_or(text), value.place)
            }
        };
        match names.get(node) {
            Some(name) => Ok(Some(name.clone())),
            None if OUTSIDE.contains(&node) => Ok(None),
            None => {
                let message = format!("no node is called `{}`", shorten(node));
                Err(self.input.at(place, message, None))
            }
        }
    }

    /// `mtu`, and impairments as `containerlab tools netem set` names them.
    fn properties(
        &self,
        keys: &[(YamlKey, YamlValue)],
        link: &str,
        notes: &mut ConversionReport,
    ) -> Result<LinkDirectionProperties, ScenarioMistake> {
        let mut properties = LinkDirectionProperties::default();
        let mut delay =
            DelayDistribution { shape: DelayJitterShape::Uniform, ..DelayDistribution::default() };
        for (key, value) in keys {
            match key.text.as_str() {
                "type" | "endpoints" => {}
                "mtu" => properties.mtu = Some(self.mtu(value)?),
                "delay" | "latency" => {
                    delay.mean = self.quantity(value, "a time such as 5ms", time)?;
                }
                "jitter" => delay.jitter = self.quantity(value, "a time such as 1ms", time)?,
                "loss" => properties.loss = self.quantity(value, "a loss in percent", percent)?,
                "rate" => {
                    let needed = "a rate in kbit/s of more than zero";
                    let rate = |text: &str| decimal::rate(text, Some(1_000));
                    properties.rate = Some(self.quantity(value, needed, rate)?);
                }
                "labels" => notes.leave_out("Keys of links", "labels"),
                other => notes.lose("Keys of links", shorten(other)),
            }
        }
        delay.note(notes, link);
        // With a rate, netem sends each packet after the one before.
        properties.reorders = !delay.jitter.is_zero() && properties.rate.is_none();
        let (latency, jitter) = delay.parts();
        Ok(LinkDirectionProperties { latency, jitter, ..properties })
    }

    fn mtu(&self, value: &YamlValue) -> Result<u32, ScenarioMistake> {
        self.quantity(value, "an MTU from 1280 to 65535", |text| {
            text.trim().parse().ok().filter(|mtu| (1280..=65_535).contains(mtu))
        })
    }

    fn quantity<T>(
        &self,
        value: &YamlValue,
        needed: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ScenarioMistake> {
        let text = self.text(value, needed)?;
        read(text).ok_or_else(|| {
            self.input.at(value.place, format!("`{}` is not {needed}", shorten(text)), None)
        })
    }

    fn map<'v>(
        &self,
        value: &'v YamlValue,
        what: &str,
    ) -> Result<&'v [(YamlKey, YamlValue)], ScenarioMistake> {
        match &value.kind {
            YamlValueKind::Map(keys) => Ok(keys),
            _ => Err(self.input.at(value.place, format!("{what} must be a map of keys"), None)),
        }
    }

    fn list<'v>(
        &self,
        value: &'v YamlValue,
        what: &str,
    ) -> Result<&'v [YamlValue], ScenarioMistake> {
        match &value.kind {
            YamlValueKind::List(items) => Ok(items),
            YamlValueKind::Null => Ok(&[]),
            _ => Err(self.input.at(value.place, format!("`{what}` must be a list"), None)),
        }
    }

    fn text<'v>(&self, value: &'v YamlValue, what: &str) -> Result<&'v str, ScenarioMistake> {
        match &value.kind {
            YamlValueKind::Text(text) => Ok(text),
            _ => Err(self.input.at(value.place, format!("`{what}` must be a text"), None)),
        }
    }
}

fn time(text: &str) -> Option<windtunnel_model::Span> {
    decimal::time(text, None)
}

fn percent(text: &str) -> Option<windtunnel_model::Probability> {
    let number = text.trim().trim_end_matches('%');
    let parts = u32::try_from(decimal::scaled(number, 10_000_000)?).ok()?;
    windtunnel_model::Probability::from_parts_per_billion(parts)
}

fn note_router(notes: &mut ConversionReport, name: &str, kind: &str) {
    let text = "Nodes with a network operating system are routers here: they forward by the \
                shortest route, and their configuration is not read";
    notes.assume(text, format!("{name} ({})", shorten(kind)));
}

/// The keys of a map; of other values none.
fn keys_of(value: &YamlValue) -> &[(YamlKey, YamlValue)] {
    match &value.kind {
        YamlValueKind::Map(keys) => keys,
        _ => &[],
    }
}

/// What a node's keys would have done.
fn note_keys(notes: &mut ConversionReport, name: &str, keys: &[(YamlKey, YamlValue)]) {
    for (key, value) in keys {
        match (key.text.as_str(), &value.kind) {
            ("kind", _) => {}
            ("image", YamlValueKind::Text(image)) => note_image(notes, name, image),
            ("labels" | "group", _) => notes.leave_out("Keys of nodes", shorten(&key.text)),
            (other, _) => notes.lose("Keys of nodes", format!("{} of {name}", shorten(other))),
        }
    }
}

fn note_image(notes: &mut ConversionReport, name: &str, image: &str) {
    notes.lose("Images are not run", format!("{name} ({})", shorten(image)));
}

/// A container on several links may forward, as with a routing daemon in it.
fn forward(topology: &mut Topology) {
    let mut degrees: BTreeMap<String, usize> = BTreeMap::new();
    for end in topology.links.iter().flat_map(|link| &link.between) {
        *degrees.entry(end.clone()).or_default() += 1;
    }
    for node in &mut topology.nodes {
        if degrees.get(&node.name).is_some_and(|degree| *degree > 1) {
            node.forward = true;
            let text =
                "Containers with several links have `forward: true`: routes may lead through them";
            topology.notes.assume(text, node.name.clone());
        }
    }
}
