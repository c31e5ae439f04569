//! Networks become LANs, with a link from each service.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_scenario::Mistake;
use windtunnel_scenario::yaml::{Kind, Value};

use super::find;
use super::reader::{Map, Reader};
use crate::import::input::shorten;
use crate::import::names::Namer;
use crate::topology::{Link, Topology};

/// The networks of a file.
pub(super) struct Networks {
    /// Names of LANs.
    lans: BTreeMap<String, String>,
    used: BTreeSet<String>,
}

/// What services are in that name none.
const DEFAULT: &str = "default";

/// Reads `networks`.
pub(super) fn read(
    reader: &Reader<'_>,
    root: &Map,
    namer: &mut Namer,
    topology: &mut Topology,
) -> Result<Networks, Mistake> {
    let mut lans = BTreeMap::new();
    let named = find(root, "networks").map(|value| reader.map(value, "networks")).transpose()?;
    for (key, value) in named.unwrap_or_default() {
        lans.insert(key.text.clone(), namer.take(&key.text, "lan"));
        for (inner, _) in reader.map(value, "a network")? {
            let what = format!("{} of {}", shorten(&inner.text), shorten(&key.text));
            match inner.text.as_str() {
                "name" | "labels" => topology.notes.leave_out("Keys of networks", what),
                _ => topology.notes.lose("Keys of networks: each is a LAN", what),
            }
        }
    }
    lans.entry(DEFAULT.to_owned()).or_insert_with(|| namer.take("lan", "lan"));
    Ok(Networks { lans, used: BTreeSet::new() })
}

impl Networks {
    /// Links a node to the networks that its service names.
    pub(super) fn link(
        &mut self,
        reader: &Reader<'_>,
        value: Option<&Value>,
        node: &str,
        topology: &mut Topology,
    ) -> Result<(), Mistake> {
        let names = match value {
            None => vec![DEFAULT.to_owned()],
            Some(Value { kind: Kind::Map(keys), .. }) => {
                for (key, value) in keys {
                    let Kind::Map(inner) = &value.kind else { continue };
                    for (inner, _) in inner {
                        let what =
                            format!("{} of {node} in {}", shorten(&inner.text), shorten(&key.text));
                        if inner.text != "aliases" {
                            topology.notes.lose("Keys of services' networks", what);
                        }
                    }
                }
                keys.iter().map(|(key, _)| key.text.clone()).collect()
            }
            Some(value) => reader.texts(value, "networks", &mut topology.notes)?,
        };
        for name in names.into_iter().collect::<BTreeSet<_>>() {
            let Some(lan) = self.lans.get(&name) else {
                let place = value.map_or(windtunnel_scenario::yaml::Place::START, |it| it.place);
                let message = format!("no network is called `{}`", shorten(&name));
                return Err(reader.at(place, message));
            };
            self.used.insert(lan.clone());
            let between = [node.to_owned(), lan.clone()];
            topology.links.push(Link { between, ..Link::default() });
        }
        Ok(())
    }

    /// Adds the LANs that have a node.
    pub(super) fn finish(self, topology: &mut Topology) {
        let lans = self.lans.into_values().filter(|lan| self.used.contains(lan));
        topology.lans = lans.collect();
        topology.unreachable |= topology.lans.len() > 1;
        if !topology.lans.is_empty() {
            let text = "Networks are LANs whose links have neither latency nor limits: give them `latency`, \
                        `rate` or `loss`";
            topology.notes.assume(text, "");
        }
    }
}
