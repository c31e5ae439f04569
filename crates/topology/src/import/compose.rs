//! Compose files: services become nodes with images, networks become LANs. Source: the Compose
//! Specification.

mod command;
mod network;
mod reader;
mod service;
mod variable;
mod volume;

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_scenario::Mistake;
use windtunnel_scenario::yaml::{self, Kind, Place, Value};

use super::input::{Input, shorten};
use super::names::{self, Namer};
use super::{Options, find};
use crate::topology::{Notes, Topology};
use reader::{Map, Reader};
use service::{Needs, Service};

/// Each service becomes a node, each network a LAN.
pub(super) fn convert(input: &Input<'_>, _: &Options) -> Result<Topology, Mistake> {
    let parsed = yaml::parse(&input.text);
    let root = parsed.map_err(|error| input.at(error.place, error.message, error.hint))?;
    let empty = Value { place: Place::START, kind: Kind::Null };
    let reader = Reader { input };
    let root = reader.map(root.as_ref().unwrap_or(&empty), "the file")?;
    let mut topology = Topology::default();
    if let Some(name) = find(root, "name") {
        let text = reader.text(name, "name", &mut topology.notes)?;
        topology.name = names::experiment(&text);
    }
    note_keys(root, &mut topology.notes);
    let Some(services) = find(root, "services") else {
        return Err(input.at(Place::START, "there is no `services:` in this file", None));
    };
    let services = reader.map(services, "services")?;
    let mut namer = Namer::default();
    let nodes: BTreeMap<String, String> = services
        .iter()
        .map(|(key, _)| (key.text.clone(), namer.take(&key.text, "service")))
        .collect();
    let mut networks = network::read(&reader, root, &mut namer, &mut topology)?;
    let needs = needs(&reader, services, &nodes, &mut topology.notes)?;
    for (key, value) in services {
        let service = Service { reader: &reader, key, nodes: &nodes, needs: &needs };
        service.read(value, &mut networks, &mut topology)?;
    }
    networks.finish(&mut topology);
    settle_ends(&mut topology);
    Ok(topology)
}

/// What services need of others, which those others have to say.
fn needs(
    reader: &Reader<'_>,
    services: &Map,
    nodes: &BTreeMap<String, String>,
    notes: &mut Notes,
) -> Result<Needs, Mistake> {
    let mut needs = Needs::default();
    for (_, value) in services {
        let Kind::Map(keys) = &value.kind else { continue };
        let Some(depends) = find(keys, "depends_on") else { continue };
        for (name, condition) in service::dependencies(reader, depends, nodes, notes)? {
            let of: &mut BTreeSet<String> = match condition {
                service::Condition::Completed => &mut needs.completed,
                service::Condition::Started => &mut needs.started,
                service::Condition::Healthy => &mut needs.healthy,
            };
            of.insert(name);
        }
    }
    Ok(needs)
}

/// A run ends when every program but daemons has ended: there must be one that is no daemon.
fn settle_ends(topology: &mut Topology) {
    let is_daemon = |more: &[(&'static str, String)]| more.iter().any(|(key, _)| *key == "daemon");
    if topology.nodes.iter().all(|node| is_daemon(&node.more)) {
        for node in &mut topology.nodes {
            node.more.retain(|(key, _)| *key != "daemon");
        }
        topology
            .notes
            .assume("No service ends by itself: the run ends by `duration` or `stop`", "");
        return;
    }
    let daemons = topology.nodes.iter().filter(|node| is_daemon(&node.more));
    let names: Vec<String> = daemons.map(|node| node.name.clone()).collect();
    for name in names {
        let text = "Services that others need, that are restarted or that listen are daemons: the run ends \
                    when the other services have";
        topology.notes.assume(text, name);
    }
}

fn note_keys(root: &Map, notes: &mut Notes) {
    for (key, _) in root {
        match key.text.as_str() {
            "name" | "services" | "networks" => {}
            "version" => notes.leave_out("Keys of the file", "version"),
            "volumes" => note_volumes(root, notes),
            other if other.starts_with("x-") => notes.leave_out("Keys of the file", shorten(other)),
            other => notes.lose("Keys of the file", shorten(other)),
        }
    }
}

/// Volumes by name need no declaration; what one says beside its name is not carried over.
fn note_volumes(root: &Map, notes: &mut Notes) {
    let Some(Value { kind: Kind::Map(volumes), .. }) = find(root, "volumes") else { return };
    for (name, value) in volumes {
        let Kind::Map(keys) = &value.kind else { continue };
        for (key, _) in keys {
            let (key, name) = (shorten(&key.text), shorten(&name.text));
            notes.lose("Keys of volumes: each is a folder of the run", format!("{key} of {name}"));
        }
    }
}
