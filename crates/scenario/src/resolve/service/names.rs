//! Names of services and of their replicas.

use windtunnel_model::plan::{Node, Plan, Service};
use windtunnel_model::{NodeId, ServiceId};

use crate::decode::{EventDraftKind, ScenarioDraft};
use crate::error::Diagnostics;
use crate::position::LocatedValue;
use crate::resolve::directory::{Directory, unknown};
use crate::text::shorten;

/// Reports a name that is none of a replica.
pub(super) fn not_a_replica(
    found: &mut Diagnostics,
    name: &LocatedValue<String>,
    service: &Service,
    nodes: &[Node],
) {
    let replicas = service.replicas.iter().map(|it| nodes[it.node.index()].name.as_str());
    let replicas: Vec<&str> = replicas.take(8).collect();
    let message = format!("`{}` is no replica of `{}`", shorten(&name.value), service.name);
    found.mistake_with_hint(name.place, message, format!("there are {}", replicas.join(", ")));
}

/// The service of a name.
pub(super) fn named(
    found: &mut Diagnostics,
    name: &LocatedValue<String>,
    plan: &Plan,
) -> Option<ServiceId> {
    let id = plan.service_named(&name.value);
    if id.is_none() {
        unknown(found, name, "service", plan.services.iter().map(|it| it.name.as_str()));
    }
    id
}

/// The nodes that events of the file make replicas, each with its service.
pub(in crate::resolve) fn added(
    draft: &ScenarioDraft,
    directory: &Directory,
) -> Vec<(String, NodeId)> {
    let mut added = Vec::new();
    for event in &draft.events {
        let EventDraftKind::Service(event) = &event.kind else { continue };
        for name in &event.add {
            // What is unknown is reported with the event.
            let nodes = directory.nodes(&mut Diagnostics::default(), name).unwrap_or_default();
            added.extend(nodes.into_iter().map(|node| (event.service.value.clone(), node)));
        }
    }
    added
}
