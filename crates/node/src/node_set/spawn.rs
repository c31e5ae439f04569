//! How the nodes come to life. Stages, each for all nodes before the next:
//!
//! 1. write the files that nodes show in place of those in `/etc`;
//! 2. fork an init for each node into its namespaces; it starts by itself with what needs no
//!    devices;
//! 3. when an init has said that it is prepared, its namespace's defaults are set, and its devices
//!    may come: they are made from here, the far end put straight into the node's namespace;
//! 4. order all inits to go on, and wait for all of them.
//!
//! What fails drops the node_set, which ends what there is.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use windtunnel_model::Plan;
use windtunnel_model::id::NodeId;
use windtunnel_routing::Routes;
use windtunnel_sys::descriptor;
use windtunnel_sys::namespace::{self, NamespaceFlags, NamespaceFork};

use super::error::CreateError;
use super::files::{self, NodeFiles};
use super::tables::TableLimits;
use super::{FABRIC_INDEX_FIRST, NodeSet, NodeSetOptions, RunningNode, devices, tables};
use crate::channel::SeqpacketSocket;
use crate::init::setup::InitSetup;
use crate::init::{self};
use crate::message::{NodeInitReply, NodeInitRequest};
use crate::namespaces::Namespaces;

pub(super) fn create(
    plan: &Plan,
    routes: &Routes,
    namespaces: &Namespaces,
    options: &NodeSetOptions,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<NodeSet, CreateError> {
    files::write(plan, &options.run_dir)?;
    let here = |id: usize| options.is_here(NodeId::from_index(id));
    let ports = plan.ports().map(|(_, interface)| FABRIC_INDEX_FIRST + interface.port.0);
    let (nodes, places) = (Vec::new(), vec![None; plan.nodes.len()]);
    let mut node_set = NodeSet { nodes, places, fabric: ports.collect(), notes: Vec::new() };
    let tables = options.diagnosed.then(|| give_own_tables(&mut node_set.notes)).flatten();
    let kept = [std::slice::from_ref(&options.run_dir), &options.kept].concat();
    for (position, node) in plan.nodes.iter().enumerate().filter(|(id, _)| here(*id)) {
        let own = options.roots.get(&NodeId::from_index(position));
        let inside = namespaces.identities_inside(node, own.and_then(|own| own.account));
        let id = NodeId::from_index(position);
        let outside = plan.internet().filter(|outside| *outside != id);
        let asks = outside.is_some_and(|outside| routes.path(plan, id, outside).is_some());
        let files = NodeFiles::of(&options.run_dir, &node.name, asks);
        let (hidden, kept, nice) = (&options.hidden[..], &kept[..], options.nice);
        let (tables, recorded) = (tables.as_ref(), options.recorded.as_ref());
        let account = own.and_then(|own| own.account).filter(|_| namespaces.has_other_users());
        let setup = InitSetup {
            plan,
            routes,
            id,
            inside,
            files,
            run_dir: &options.run_dir,
            hidden,
            kept,
            nice,
            tables,
            recorded,
            own,
            account,
        };
        node_set.places[position] = Some(node_set.nodes.len());
        let node = fork(&setup, &mut node_set)?;
        node_set.nodes.push(node);
    }
    for node in &mut node_set.nodes {
        let (_, mut descriptors) = answer(node, options)?;
        let recorded = options.recorded.as_ref().filter(|_| !descriptors.is_empty());
        // In the order in which the init has made them.
        node.senders =
            recorded.filter(|it| it.has_senders(node.id)).and_then(|_| descriptors.pop());
        node.region = descriptors.pop();
    }
    let note = devices::make(plan, &node_set.nodes, options)?;
    node_set.notes.extend(note);
    for node in &node_set.nodes {
        let lost = |source| CreateError::Lost { node: node.name.clone(), source };
        node.send(&NodeInitRequest::Continue, &[]).map_err(lost)?;
    }
    let mut noted: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (done, node) in node_set.nodes.iter().enumerate() {
        progress(done, node_set.nodes.len());
        for note in answer(node, options)?.0 {
            noted.entry(note).or_default().push(&node.name);
        }
    }
    let said = noted.into_iter().map(|(note, nodes)| said_by(&nodes, &note)).collect::<Vec<_>>();
    node_set.notes.extend(said);
    progress(node_set.nodes.len(), node_set.nodes.len());
    Ok(node_set)
}

/// Tables of connections of the nodes' own; where there are none, that is noted.
fn give_own_tables(notes: &mut Vec<String>) -> Option<TableLimits> {
    let why = match tables::give_own() {
        Ok(Some(limits)) => return Some(limits),
        Ok(None) => "this kernel is older than Linux 6.1".to_owned(),
        Err(error) => error.to_string(),
    };
    notes.push(format!("looking at TCP connections costs more than it could: {why}"));
    None
}

/// Forks an init. Where its programs have a user namespace of their own, it makes that itself, with
/// the namespaces that belong to it.
fn fork(setup: &InitSetup<'_>, node_set: &mut NodeSet) -> Result<RunningNode, CreateError> {
    let name = setup.node().name.clone();
    let failed = |source| CreateError::Fork { node: name.clone(), source };
    let (host_end, init_end) = SeqpacketSocket::pair().map_err(failed)?;
    let outer = NamespaceFlags::MOUNT | NamespaceFlags::PID;
    let flags = if setup.inside.is_some() { outer } else { outer | init::PROGRAMS_OWN };
    match namespace::fork_into(flags).map_err(failed)? {
        NamespaceFork::Child => {
            // The copies of what is the host process's: the other nodes' channels, and this one's
            // other end.
            let others = std::mem::take(&mut node_set.nodes).into_iter().flat_map(descriptors);
            descriptor::close_all(others.chain([host_end.into_descriptor()]));
            init::live(setup, &init_end)
        }
        NamespaceFork::Parent { pid, pidfd } => Ok(RunningNode {
            id: setup.id,
            name,
            pid,
            pidfd,
            channel: host_end,
            region: None,
            senders: None,
        }),
    }
}

/// A node's descriptors. Its name is not freed: in a forked child that would copy the page it is
/// on.
fn descriptors(node: RunningNode) -> [OwnedFd; 2] {
    let RunningNode { name, pidfd, channel, .. } = node;
    std::mem::forget(name);
    [pidfd, channel.into_descriptor()]
}

/// Waits for the end of a phase: its notes and descriptors, or why the node failed.
fn answer(
    node: &RunningNode,
    options: &NodeSetOptions,
) -> Result<(Vec<String>, Vec<OwnedFd>), CreateError> {
    let name = || node.name.clone();
    match node.channel.receive(Some(options.patience)) {
        Err(source) => Err(CreateError::Lost { node: name(), source }),
        Ok(None) => Err(CreateError::Silent { node: name(), seconds: options.patience.as_secs() }),
        Ok(Some((NodeInitReply::Failed(failure), _))) => {
            Err(CreateError::Node { node: name(), failure })
        }
        Ok(Some((NodeInitReply::Ready { notes }, descriptors))) => Ok((notes, descriptors)),
        Ok(Some((_, descriptors))) => Ok((Vec::new(), descriptors)),
    }
}

/// What many nodes say is said once.
fn said_by(nodes: &[&str], note: &str) -> String {
    match nodes {
        [one] => format!("node {one}: {note}"),
        many => format!("{} nodes: {note}", many.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_many_nodes_is_reported_once() {
        assert_eq!(said_by(&["a"], "no /sys"), "node a: no /sys");
        assert_eq!(said_by(&["a", "b"], "no /sys"), "2 nodes: no /sys");
    }
}
