//! Further names of nodes: none may be that of something else, because a name leads to one thing.

use std::collections::BTreeMap;

use windtunnel_model::Plan;

use super::internet::HOST;
use crate::decode::ScenarioDraft;
use crate::error::Diagnostics;

/// Checks the further names of all nodes. Resolvers take no notice of capital letters.
pub(super) fn check(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &Plan) {
    if draft.nodes.iter().all(|node| node.aliases.is_empty()) {
        return;
    }
    let nodes = plan.nodes.iter().map(|node| (node.name.as_str(), "a node"));
    let routers = plan.routers.iter().map(|router| (router.name.as_str(), "a router"));
    let services = draft.services.iter().map(|it| (it.name.value.as_str(), "a service"));
    let host = plan.internet().map(|_| (HOST, "the machine itself"));
    let names = nodes.chain(routers).chain(services).chain(host);
    let known: BTreeMap<String, &str> =
        names.map(|(name, kind)| (name.to_ascii_lowercase(), kind)).collect();
    for alias in draft.nodes.iter().flat_map(|node| &node.aliases) {
        if let Some(kind) = known.get(&alias.value.to_ascii_lowercase()) {
            let message = format!("aliases: `{}` is the name of {kind}", alias.value);
            found.mistake_with_hint(alias.place, message, "choose another name");
        }
    }
}
