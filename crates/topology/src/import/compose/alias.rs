//! Other names by which services find each other: `aliases` of nodes.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::name::is_alias;
use windtunnel_model::plan::Node;
use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{YamlKey, YamlValue, YamlValueKind};

use super::reader::ComposeReader;
use crate::import::input::shorten;
use crate::import::mapping::find;
use crate::topology::{ConversionReport, Topology};
use crate::yaml::list_of;

/// The further names of nodes.
#[derive(Debug, Default)]
pub(super) struct ServiceAliases {
    of: BTreeMap<String, BTreeSet<String>>,
}

impl ServiceAliases {
    /// Takes the names by which others find the service `key`: its own, if a node cannot be called
    /// that, `container_name`, `hostname`, `aliases` of its networks, and those that it gives to others by
    /// `links`. `nodes` has the nodes of services.
    pub(super) fn read(
        &mut self,
        reader: &ComposeReader<'_>,
        key: &str,
        keys: &[(YamlKey, YamlValue)],
        nodes: &BTreeMap<String, String>,
        notes: &mut ConversionReport,
    ) -> Result<(), ScenarioMistake> {
        let Some(node) = nodes.get(key) else { return Ok(()) };
        let own = self.of.entry(node.clone()).or_default();
        own.insert(key.to_owned());
        if let Some(value) = find(keys, "container_name") {
            own.insert(reader.text(value, "container_name", notes)?);
        }
        if let Some(value) = find(keys, "hostname") {
            let name = reader.text(value, "hostname", notes)?;
            if name != *node {
                let text =
                    "Host names: nodes call themselves by their own, and are found by these, too";
                notes.assume(text, format!("{} of {node}", shorten(&name)));
            }
            own.insert(name);
        }
        if let Some(YamlValue { kind: YamlValueKind::Map(networks), .. }) = find(keys, "networks") {
            for (_, value) in networks {
                let YamlValueKind::Map(inner) = &value.kind else { continue };
                if let Some(aliases) = find(inner, "aliases") {
                    own.extend(reader.texts(aliases, "aliases", notes)?);
                }
            }
        }
        let Some(value) = find(keys, "links") else { return Ok(()) };
        for link in reader.texts(value, "links", notes)? {
            let (service, alias) = link.split_once(':').unwrap_or((&link, &link));
            match nodes.get(service) {
                Some(node) => {
                    self.of.entry(node.clone()).or_default().insert(alias.to_owned());
                }
                None => {
                    let message = format!("no service is called `{}`", shorten(service));
                    return Err(reader.at(value.place, message));
                }
            }
        }
        Ok(())
    }

    /// Gives them to the nodes, except those that lead elsewhere already.
    pub(super) fn finish(mut self, topology: &mut Topology) {
        let mut taken: BTreeSet<String> =
            topology.routers.iter().map(|it| it.name.clone()).collect();
        if topology.nodes.iter().any(|node| node.name == "internet") {
            taken.insert("host".to_owned());
        }
        for node in &topology.nodes {
            match node.count {
                // Docker's name of all replicas leads to all of them.
                Some(count) => taken.extend((1..=count).map(|it| format!("{}-{it}", node.name))),
                None => drop(taken.insert(node.name.clone())),
            }
        }
        for node in &mut topology.nodes {
            let mut wanted = self.of.remove(&node.name).unwrap_or_default();
            if node.count.is_none() {
                // Resolvers take no notice of capital letters.
                wanted.retain(|name| !name.eq_ignore_ascii_case(&node.name));
            }
            let is_free =
                |name: &String| is_alias(name) && !taken.contains(&name.to_ascii_lowercase());
            let (mut free, lost): (Vec<String>, Vec<String>) =
                wanted.into_iter().partition(is_free);
            let beyond = free.split_off(free.len().min(Node::ALIASES_MAX));
            for name in lost.iter().chain(&beyond) {
                let text = "Names that do not lead to their service: no host can have them, or another has";
                topology.notes.lose_once(text, format!("{} of {}", shorten(name), node.name));
            }
            if !free.is_empty() {
                node.more.push(("aliases", list_of(&free)));
            }
        }
    }
}
