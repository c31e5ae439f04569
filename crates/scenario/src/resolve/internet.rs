//! The node that stands for the machine's outside, and ports that lead in from there.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use windtunnel_model::Plan;
use windtunnel_model::plan::{InternetAccess, NetworkModel, Node, ProgramUser};

use crate::decode::{NodeDraft, NodeKeys, ScenarioDraft};
use crate::error::Diagnostics;
use crate::position::SourceLocation;

/// The name of the node that stands for the machine's outside.
pub(crate) const INTERNET: &str = "internet";
/// The name by which nodes reach servers of the machine's loopback.
pub(super) const HOST: &str = "host";

/// Whether an entry of the file is the machine's outside.
pub(super) fn is_outside(node: &NodeDraft) -> bool {
    node.name.value == INTERNET
}

/// The machine's outside as a node of the plan: `defaults` give it nothing but settings.
pub(super) fn node(node: &NodeDraft, keys: &NodeKeys) -> Node {
    let allow = node.allow.as_ref().map(|allow| allow.value.clone());
    Node {
        name: node.name.value.clone(),
        group: node.name.value.clone(),
        sysctl: keys.sysctl.clone(),
        internet: Some(InternetAccess { allow, ..InternetAccess::default() }),
        ..Node::default()
    }
}

/// Checks what is written of the outside, as far as no addresses are needed for that.
pub(super) fn check(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &Plan) {
    let outside = draft.nodes.iter().find(|node| is_outside(node));
    for node in &draft.nodes {
        match &node.allow {
            Some(allow) if !is_outside(node) => {
                let message = format!("allow: `{}` is no way to the outside", node.name.value);
                let hint = "only the node `internet` has `allow`: what of the outside is reached";
                found.mistake_with_hint(allow.place, message, hint);
            }
            _ => {}
        }
        check_published(found, node, outside.is_some());
    }
    check_ports(found, draft);
    let Some(outside) = outside else { return };
    check_keys(found, outside);
    check_names(found, draft);
    let links = plan.internet().map_or(0, |id| plan.nodes[id.index()].interfaces.len());
    if links > 1 {
        let message = format!("`internet` has {links} links: the machine's outside has one");
        let hint = "put a router in front of it, and link the others to the router";
        found.mistake_with_hint(outside.name.place, message, hint);
    }
    if draft.model.settled != NetworkModel::Hops {
        let why = draft.model.why;
        let message = format!("`internet`: {} there is no way to the outside", why.condition());
        found.mistake_with_hint(outside.name.place, message, why.remedy());
    }
}

/// What runs no programs needs nothing that is for them.
fn check_keys(found: &mut Diagnostics, outside: &NodeDraft) {
    let keys = &outside.keys;
    let useless = [
        ("run", !outside.programs.is_empty()),
        ("count", outside.count.is_some()),
        ("aliases", !outside.aliases.is_empty()),
        ("forward", keys.forward == Some(true)),
        ("user", keys.user == Some(ProgramUser::Root)),
        ("private", keys.private == Some(true)),
        ("results", keys.results == Some(true)),
        ("receive-queue", keys.receive_queue.is_some()),
        ("limits", !keys.limits.demand().is_unknown()),
        ("publish", outside.publish.is_some()),
    ];
    for (key, _) in useless.iter().filter(|(_, written)| *written) {
        let message = format!("`internet` is the machine's outside, which has no `{key}`");
        let hint = "give a node that is to run programs another name";
        found.mistake_with_hint(outside.name.place, message, hint);
    }
}

/// `host` leads to the machine.
fn check_names(found: &mut Diagnostics, draft: &ScenarioDraft) {
    let nodes = draft.nodes.iter().filter(|node| node.count.is_none()).map(|node| &node.name);
    let routers = draft.routers.iter().map(|router| &router.name);
    let names = nodes.chain(routers).chain(draft.lans.iter().map(|lan| &lan.name));
    let names = names.chain(draft.services.iter().map(|service| &service.name));
    for name in names.filter(|name| name.value == HOST) {
        let message = "`host` is the machine itself where there is a node `internet`";
        found.mistake_with_hint(name.place, message, "choose another name");
    }
}

fn check_published(found: &mut Diagnostics, node: &NodeDraft, has_outside: bool) {
    let Some(publish) = &node.publish else { return };
    if !has_outside {
        let message = "publish: there is no way into this network from the machine";
        let hint = "add the machine's outside: `internet: {}` below `nodes`, and a link to it";
        found.mistake_with_hint(publish.place, message, hint);
    }
    if node.count.is_some() {
        let message = "publish: one port of the machine cannot lead to every member of a group";
        found.mistake_with_hint(publish.place, message, "write the member as a node of its own");
    }
}

/// One listens at a port of the machine.
fn check_ports(found: &mut Diagnostics, draft: &ScenarioDraft) {
    let mut taken: BTreeMap<SocketAddr, SourceLocation> = BTreeMap::new();
    for publish in draft.nodes.iter().filter_map(|node| node.publish.as_ref()) {
        for port in &publish.value {
            for address in port.value.addresses() {
                if let Some(first) = taken.insert(address, port.place) {
                    let line = first.line;
                    let message =
                        format!("publish: {address} of the machine is taken in line {line}");
                    found.mistake(port.place, message);
                    break;
                }
            }
        }
    }
}
