//! Networks become LANs, with a link from each service.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{YamlKey, YamlValue, YamlValueKind};

use super::address::Subnets;
use super::reader::ComposeReader;
use crate::import::input::shorten;
use crate::import::mapping::find;
use crate::import::names::UniqueNameAllocator;
use crate::topology::{ConversionReport, Topology, TopologyLink};

/// The networks of a file.
pub(super) struct Networks {
    /// Names of LANs.
    lans: BTreeMap<String, String>,
    used: BTreeSet<String>,
    subnets: Subnets,
}

/// What services are in that name none.
const DEFAULT: &str = "default";

/// Reads `networks`.
pub(super) fn read(
    reader: &ComposeReader<'_>,
    root: &[(YamlKey, YamlValue)],
    namer: &mut UniqueNameAllocator,
    topology: &mut Topology,
) -> Result<Networks, ScenarioMistake> {
    let (mut lans, mut subnets) = (BTreeMap::new(), Subnets::default());
    let named = find(root, "networks").map(|value| reader.map(value, "networks")).transpose()?;
    for (key, value) in named.unwrap_or_default() {
        let lan = namer.take(&key.text, "lan");
        let keys = reader.map(value, "a network")?;
        for (inner, value) in keys {
            if inner.text == "ipam" {
                subnets.read(reader, reader.map(value, "ipam")?, &lan, &mut topology.notes)?;
            } else {
                note_key(reader, &key.text, &inner.text, value, &mut topology.notes)?;
            }
        }
        lans.insert(key.text.clone(), lan);
    }
    lans.entry(DEFAULT.to_owned()).or_insert_with(|| namer.take("lan", "lan"));
    Ok(Networks { lans, used: BTreeSet::new(), subnets })
}

/// Notes a key of a network, as far as a LAN is not that already.
fn note_key(
    reader: &ComposeReader<'_>,
    network: &str,
    key: &str,
    value: &YamlValue,
    notes: &mut ConversionReport,
) -> Result<(), ScenarioMistake> {
    let what = format!("{} of {}", shorten(key), shorten(network));
    let said = match &value.kind {
        YamlValueKind::Text(_) => reader.text(value, key, notes)?,
        _ => String::new(),
    };
    match (key, said.as_str()) {
        // Containers of such a network reach each other over one segment.
        ("driver", "bridge" | "default" | "overlay" | "") => {}
        ("external" | "internal", "false" | "") | ("name" | "labels" | "attachable", _) => {
            notes.leave_out("Keys of networks", what);
        }
        // Both families are there unless the scenario says otherwise.
        ("enable_ipv6" | "enable_ipv4", "true") => {}
        _ => notes.lose("Keys of networks: each is a LAN", what),
    }
    Ok(())
}

impl Networks {
    /// Links a node to the networks that its service names; its addresses there.
    pub(super) fn link(
        &mut self,
        reader: &ComposeReader<'_>,
        value: Option<&YamlValue>,
        node: &str,
        topology: &mut Topology,
    ) -> Result<(), ScenarioMistake> {
        let names = match value {
            None => vec![DEFAULT.to_owned()],
            Some(YamlValue { kind: YamlValueKind::Map(keys), .. }) => {
                self.note_keys(reader, keys, node, topology)?;
                keys.iter().map(|(key, _)| key.text.clone()).collect()
            }
            Some(value) => reader.texts(value, "networks", &mut topology.notes)?,
        };
        for name in names.into_iter().collect::<BTreeSet<_>>() {
            let Some(lan) = self.lans.get(&name) else {
                let place =
                    value.map_or(windtunnel_scenario::yaml::SourceLocation::START, |it| it.place);
                let message = format!("no network is called `{}`", shorten(&name));
                return Err(reader.at(place, message));
            };
            self.used.insert(lan.clone());
            let between = [node.to_owned(), lan.clone()];
            topology.links.push(TopologyLink { between, ..TopologyLink::default() });
        }
        Ok(())
    }

    /// What a service says of its networks: addresses, and what is not carried over.
    fn note_keys(
        &mut self,
        reader: &ComposeReader<'_>,
        networks: &[(YamlKey, YamlValue)],
        node: &str,
        topology: &mut Topology,
    ) -> Result<(), ScenarioMistake> {
        for (network, value) in networks {
            let YamlValueKind::Map(inner) = &value.kind else { continue };
            for (key, value) in inner {
                let lan = self.lans.get(&network.text).map_or("", String::as_str);
                match key.text.as_str() {
                    "aliases" => {}
                    "ipv4_address" | "ipv6_address" => {
                        self.subnets.address(reader, value, node, lan, topology)?;
                    }
                    other => {
                        let network = shorten(&network.text);
                        let what = format!("{} of {node} in {network}", shorten(other));
                        topology.notes.lose("Keys of services' networks", what);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the LANs that have a node.
    pub(super) fn finish(self, topology: &mut Topology) {
        let lans = self.lans.into_values().filter(|lan| self.used.contains(lan));
        topology.lans = lans.collect();
        self.subnets.finish(topology);
        topology.unreachable |= topology.lans.len() > 1;
        if !topology.lans.is_empty() {
            let text = "Networks are LANs whose links have neither latency nor limits: give them `latency`, \
                        `rate` or `loss`";
            topology.notes.assume(text, "");
        }
    }
}
