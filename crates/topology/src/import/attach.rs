//! What every imported network needs in the end: nodes at its routers, and a word about its parts.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::Span;

use super::error::ImportError;
use super::names::UniqueNameAllocator;
use super::options::ImportOptions;
use crate::topology::{MOST_LINKS, MOST_NODES, Topology, TopologyLink, TopologyNode};

/// Attaches nodes, gives them their command, finds parts without a link between them, and checks
/// sizes.
pub(super) fn finish(topology: &mut Topology, options: &ImportOptions) -> Result<(), ImportError> {
    hosts(topology, options)?;
    if topology.nodes.is_empty() {
        return Err(ImportError::NoNode);
    }
    let count = |node: &TopologyNode| u64::from(node.count.unwrap_or(1));
    let members: BTreeMap<&str, u64> =
        topology.nodes.iter().map(|node| (node.name.as_str(), count(node))).collect();
    let of = |end: &String| members.get(end.as_str()).copied().unwrap_or(1);
    let links = topology.links.iter().map(|link| of(&link.between[0]) * of(&link.between[1]));
    at_most("links", links.sum(), MOST_LINKS)?;
    at_most("nodes", topology.nodes.iter().map(count).sum(), MOST_NODES)?;
    let runs =
        |node: &TopologyNode| node.more.iter().any(|(key, _)| ["image", "run"].contains(key));
    for node in topology.nodes.iter_mut().filter(|node| !runs(node) && node.name != "internet") {
        node.run = node.run.take().or_else(|| options.run.clone());
    }
    if options.run.is_none() && !topology.nodes.iter().any(runs) {
        let text = "The nodes run nothing: they are there for `exec` and `shell`. Give them `run:` for \
                    programs of their own";
        topology.notes.assume(text, "");
    }
    parts(topology);
    Ok(())
}

/// One more node, or a group of them, at each router that is to have some.
fn hosts(topology: &mut Topology, options: &ImportOptions) -> Result<(), ImportError> {
    let wanted = options.hosts_at.iter().map(String::as_str).collect::<BTreeSet<_>>();
    let found = |name: &str| {
        topology
            .routers
            .iter()
            .any(|router| router.name == name || label_is(router.comment.as_deref(), name))
    };
    if let Some(name) = wanted.iter().find(|name| !found(name)) {
        let known = topology.routers.iter().take(8).map(|router| router.name.clone()).collect();
        return Err(ImportError::UnknownRouter { name: (*name).to_owned(), known });
    }
    let default = u32::from(topology.nodes.is_empty() || !wanted.is_empty());
    let count = options.hosts.unwrap_or(default);
    if count == 0 {
        return Ok(());
    }
    at_most("nodes", u64::from(count), MOST_NODES)?;
    let mut namer = UniqueNameAllocator::default();
    for name in
        topology.nodes.iter().map(|node| &node.name).chain(topology.routers.iter().map(|r| &r.name))
    {
        namer.take(name, "node");
    }
    for router in topology.routers.clone() {
        let asked = wanted.contains(router.name.as_str())
            || wanted.iter().any(|name| label_is(router.comment.as_deref(), name));
        let access = topology.access.get(&router.name).cloned();
        if !(asked || wanted.is_empty() && access.is_some()) {
            continue;
        }
        let [up, down] = access.unwrap_or_default();
        let label = format!("{}-host", router.name);
        let (name, count) = match count {
            1 => (namer.take(&label, "host"), None),
            count => (namer.take_group(&label, "host", count), Some(count)),
        };
        let between = [name.clone(), router.name];
        topology.links.push(TopologyLink { between, up, down, ..TopologyLink::default() });
        topology.nodes.push(TopologyNode {
            name,
            count,
            start: Span::ZERO,
            ..TopologyNode::default()
        });
    }
    Ok(())
}

/// Whether a router's comment is this label.
fn label_is(comment: Option<&str>, label: &str) -> bool {
    comment.is_some_and(|comment| comment == super::names::shown(label))
}

/// Parts of the network that no link joins: reported, and allowed where nodes are in two of them.
fn parts(topology: &mut Topology) {
    let routers = topology.routers.iter().map(|router| router.name.as_str());
    let nodes = topology.nodes.iter().map(|node| node.name.as_str());
    let lans = topology.lans.iter().map(String::as_str);
    let vertices: Vec<&str> = nodes.chain(routers).chain(lans).collect();
    let index: BTreeMap<&str, usize> = vertices.iter().copied().zip(0..).collect();
    let mut neighbours = vec![Vec::new(); vertices.len()];
    for link in &topology.links {
        let ends = [&link.between[0], &link.between[1]].map(|end| index.get(end.as_str()).copied());
        if let [Some(a), Some(b)] = ends {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
    }
    let mut seen = vec![false; vertices.len()];
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for start in 0..vertices.len() {
        let (mut part, mut waiting) = (Vec::new(), vec![start]);
        while let Some(at) = waiting.pop() {
            if !std::mem::replace(&mut seen[at], true) {
                part.push(at);
                waiting.extend(neighbours[at].iter().filter(|next| !seen[**next]));
            }
        }
        if !part.is_empty() {
            part.sort_unstable();
            parts.push(part);
        }
    }
    // A group whose members have no link among them but through one router is joined by that
    // router; a node without any link is noticed by `check`.
    let has_node = |part: &&Vec<usize>| {
        part.iter().any(|at| *at < topology.nodes.len() && !neighbours[*at].is_empty())
    };
    let separate = parts.iter().filter(has_node).count() > 1;
    if parts.len() < 2 {
        return;
    }
    let largest = parts.iter().map(Vec::len).max().unwrap_or(0);
    let main = parts.iter().position(|part| part.len() == largest).unwrap_or(0);
    let others = parts.iter().enumerate().filter(|(at, _)| *at != main);
    let listed: Vec<String> = others
        .map(|(_, part)| part.iter().map(|at| vertices[*at]).collect::<Vec<_>>().join(" + "))
        .collect();
    for item in listed {
        topology.notes.assume("No link joins these parts with the largest one", item);
    }
    if separate {
        topology.unreachable = true;
        topology
            .notes
            .assume("`allow-unreachable` is set, because not all nodes can reach each other", "");
    }
}

fn at_most(what: &'static str, value: u64, most: u64) -> Result<(), ImportError> {
    match value <= most {
        true => Ok(()),
        false => Err(ImportError::TooLarge { what, value, most }),
    }
}
