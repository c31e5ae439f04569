//! What the nodes of a run need and this machine does not have: `check --hosts` asks for it.

use std::collections::BTreeSet;
use std::path::Path;

use windtunnel_cluster::protocol::run::RunSetup;
use windtunnel_host::presence::missing;
use windtunnel_host::roots::emulator;
use windtunnel_model::plan::{ImageLocation, Node, RootSource, VolumeSource};

/// Each thing once, whichever nodes need it. Programs in a file system of a node's own are not looked
/// at, and neither are images in registries.
pub(super) fn look(setup: &RunSetup, member: u16) -> Vec<String> {
    let here: Vec<bool> = setup.placement.iter().map(|place| *place == member).collect();
    let nodes = &setup.plan.nodes;
    let programs = missing(&setup.plan, &setup.base_dir, Some(&here)).into_iter();
    let programs = programs.filter(|missing| !missing.may_come).map(|missing| {
        let node = &nodes[missing.node.index()].group;
        format!("node {node}: {}", missing.message())
    });
    let own = || nodes.iter().zip(&here).filter(|(_, here)| **here).map(|(node, _)| node);
    let foreign = emulator::foreign(own());
    let platforms = own().filter_map(|node| {
        let platform = node.root.as_ref()?.source.platform()?;
        Some(format!("node {}: platform: {}", node.group, foreign.get(platform)?))
    });
    let all: BTreeSet<String> = programs.chain(own().flat_map(files)).chain(platforms).collect();
    all.into_iter().collect()
}

/// Files and folders of the machine that a node's own file system is made of.
fn files(node: &Node) -> Vec<String> {
    let Some(root) = &node.root else { return Vec::new() };
    let source = match &root.source {
        RootSource::Folder(path) => Some(("root", path)),
        RootSource::Image { location: ImageLocation::Path(path), .. } => Some(("image", path)),
        RootSource::Image { .. } => None,
    };
    let volumes = root.volumes.iter().filter_map(|volume| match &volume.source {
        VolumeSource::Path(path) => Some(("volumes", path)),
        VolumeSource::Named(_) => None,
    });
    let needed = source.into_iter().chain(volumes);
    let absent = needed.filter(|(_, path)| !Path::new(path).exists());
    let group = &node.group;
    absent.map(|(key, path)| format!("node {group}: {key}: there is no {path}")).collect()
}
