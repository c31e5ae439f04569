//! Compose files: services become nodes with images, networks become LANs. Source: the Compose
//! Specification.

mod address;
mod alias;
mod command;
mod environment;
mod health;
mod key;
mod limit;
mod load;
mod merge;
mod mounted;
mod network;
mod port;
mod reader;
mod service;
mod source;
mod variable;
mod volume;

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{YamlKey, YamlValue, YamlValueKind};

use super::document::ImportContext;
use super::input::{ImportSourceText, shorten};
use super::mapping::find;
use super::names::{self, UniqueNameAllocator};
use super::options::ImportOptions;
use crate::topology::{ConversionReport, Topology};
use alias::ServiceAliases;
use load::ComposeFileLoader;
use port::ComposePublishedPorts;
use reader::ComposeReader;
use service::{ComposeService, ServiceDependencies};
use source::ComposeSourceFiles;

/// Each service becomes a node, each network a LAN.
pub(super) fn convert(
    input: &ImportSourceText<'_>,
    options: &ImportOptions,
    surroundings: &ImportContext<'_>,
) -> Result<Topology, ScenarioMistake> {
    let options = with_variables(input, options, surroundings)?;
    let mut loader = ComposeFileLoader::new(surroundings, &options);
    let root = loader.load(input)?;
    let ComposeFileLoader { sources, notes, .. } = loader;
    let reader = ComposeReader { sources: &sources, variables: &options.variables };
    let root = reader.map(&root, "the file")?;
    let mut topology = Topology { notes, ..Topology::default() };
    if let Some(name) = find(root, "name") {
        let text = reader.text(name, "name", &mut topology.notes)?;
        topology.name = names::experiment(&text);
    }
    note_keys(root, &mut topology.notes);
    let Some(services) = find(root, "services") else {
        return Err(reader.at(ComposeSourceFiles::START, "there is no `services:` in this file"));
    };
    let services = reader.map(services, "services")?;
    let ComposeServiceSelection { kept: services, dropped } =
        chosen(&reader, services, &options, &mut topology.notes)?;
    let mut namer = UniqueNameAllocator::default();
    namer.take("internet", "internet");
    let nodes: BTreeMap<String, String> = services
        .iter()
        .map(|(key, _)| (key.text.clone(), namer.take(&key.text, "service")))
        .collect();
    let mut networks = network::read(&reader, root, &mut namer, &mut topology)?;
    let needs = needs(&reader, &services, &nodes, &dropped, &mut topology.notes)?;
    let (mut published, mut aliases) =
        (ComposePublishedPorts::default(), ServiceAliases::default());
    for (key, value) in &services {
        let (nodes, needs, read) = (&nodes, &needs, surroundings.read);
        let service = ComposeService { reader: &reader, key, nodes, needs, root, read };
        service.read(value, &mut networks, &mut published, &mut topology)?;
        let keys = reader.map(value, "a service")?;
        aliases.read(&reader, &key.text, keys, nodes, &mut topology.notes)?;
    }
    networks.finish(&mut topology);
    settle_ends(&mut topology);
    published.finish(&mut namer, &mut topology);
    aliases.finish(&mut topology);
    Ok(topology)
}

/// The variables of the shell, and beside them those of the file `.env`.
fn with_variables(
    input: &ImportSourceText<'_>,
    options: &ImportOptions,
    surroundings: &ImportContext<'_>,
) -> Result<ImportOptions, ScenarioMistake> {
    let mut options = options.clone();
    let Ok(bytes) = (surroundings.read)(".env") else { return Ok(options) };
    let text = String::from_utf8_lossy(&bytes);
    let read = environment::read(&text, &options.variables).map_err(|why| {
        input.at(ComposeSourceFiles::START, format!("the file `.env` beside it: {why}"), None)
    })?;
    for (name, value) in read {
        options.variables.entry(name).or_insert(value.unwrap_or_default());
    }
    Ok(options)
}

/// Services by whether they are there.
struct ComposeServiceSelection {
    kept: Vec<(YamlKey, YamlValue)>,
    dropped: BTreeSet<String>,
}

/// The services of the profiles that are chosen, and the names of the others. One with 0 replicas
/// is not there either.
fn chosen(
    reader: &ComposeReader<'_>,
    services: &[(YamlKey, YamlValue)],
    options: &ImportOptions,
    notes: &mut ConversionReport,
) -> Result<ComposeServiceSelection, ScenarioMistake> {
    let asked = options.variables.get("COMPOSE_PROFILES").map_or("", String::as_str);
    let asked: BTreeSet<&str> =
        asked.split(',').chain(options.profiles.iter().map(String::as_str)).collect();
    let (mut kept, mut dropped) = (Vec::new(), BTreeSet::new());
    for (key, value) in services {
        let keys = reader.map(value, "a service")?;
        let profiles = match find(keys, "profiles") {
            Some(profiles) => reader.texts(profiles, "profiles", notes)?,
            None => Vec::new(),
        };
        let is_asked = |profile: &String| asked.contains(profile.as_str());
        let is_off = !profiles.is_empty() && !asked.contains("*") && !profiles.iter().any(is_asked);
        if is_off {
            let what = format!("{} ({})", shorten(&key.text), shorten(&profiles.join(", ")));
            notes.leave_out("Services of profiles that are not chosen (--profile chooses)", what);
        } else if service::is_off(reader, keys, notes)? {
            notes.leave_out("Services without replicas", shorten(&key.text));
        } else {
            kept.push((key.clone(), value.clone()));
            continue;
        }
        dropped.insert(key.text.clone());
    }
    Ok(ComposeServiceSelection { kept, dropped })
}

/// What services need of others, which those others have to say.
fn needs(
    reader: &ComposeReader<'_>,
    services: &[(YamlKey, YamlValue)],
    nodes: &BTreeMap<String, String>,
    dropped: &BTreeSet<String>,
    notes: &mut ConversionReport,
) -> Result<ServiceDependencies, ScenarioMistake> {
    let mut needs = ServiceDependencies::default();
    for (key, value) in services {
        let YamlValueKind::Map(keys) = &value.kind else { continue };
        let Some(depends) = find(keys, "depends_on") else { continue };
        for (name, condition) in service::dependencies(reader, depends, nodes, dropped, notes)? {
            let of: &mut BTreeSet<String> = match condition {
                service::DependencyCondition::Completed => &mut needs.completed,
                service::DependencyCondition::Started => &mut needs.started,
                service::DependencyCondition::Healthy => &mut needs.healthy,
            };
            of.insert(name.clone());
            needs.after.entry(key.text.clone()).or_default().insert(name);
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

fn note_keys(root: &[(YamlKey, YamlValue)], notes: &mut ConversionReport) {
    for (key, _) in root {
        match key.text.as_str() {
            "name" | "services" | "networks" | "secrets" | "configs" => {}
            "version" => notes.leave_out("Keys of the file", "version"),
            "volumes" => note_volumes(root, notes),
            other if other.starts_with("x-") => notes.leave_out("Keys of the file", shorten(other)),
            other => notes.lose("Keys of the file", shorten(other)),
        }
    }
}

/// Volumes by name need no declaration; what one says beside its name is not carried over.
fn note_volumes(root: &[(YamlKey, YamlValue)], notes: &mut ConversionReport) {
    let Some(YamlValue { kind: YamlValueKind::Map(volumes), .. }) = find(root, "volumes") else {
        return;
    };
    for (name, value) in volumes {
        let YamlValueKind::Map(keys) = &value.kind else { continue };
        for (key, value) in keys {
            let (key, name) = (shorten(&key.text), shorten(&name.text));
            let is_usual = matches!(&value.kind, YamlValueKind::Text(text) if text == "local" || text == "false");
            if ["name", "labels"].contains(&&*key) || is_usual {
                notes.leave_out("Keys of volumes", format!("{key} of {name}"));
                continue;
            }
            notes.lose("Keys of volumes: each is a folder of the run", format!("{key} of {name}"));
        }
    }
}
