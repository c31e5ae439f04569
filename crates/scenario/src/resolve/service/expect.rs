//! Expectations of services: names worked out.

use windtunnel_model::Plan;
use windtunnel_model::expect::{ExpectationClaim, ServiceFact};
use windtunnel_model::plan::FailOver;

use super::super::directory::Directory;
use super::names::{added, named, not_a_replica};
use crate::decode::{ScenarioDraft, ServiceExpected};
use crate::error::Diagnostics;
use crate::position::LocatedValue;

/// What is claimed of a service.
pub(in crate::resolve) fn expect(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    directory: &Directory,
    plan: &Plan,
    name: &LocatedValue<String>,
    expected: &ServiceExpected,
) -> Option<Vec<ExpectationClaim>> {
    let id = named(found, name, plan)?;
    let service = &plan.services[id.index()];
    let mut facts = Vec::new();
    for LocatedValue { value: fact, place } in &expected.facts {
        let key = match fact {
            ServiceFact::Expelled(_) => Some("expelled"),
            ServiceFact::Gap(_) => Some("gap"),
            _ => None,
        };
        if let Some(key) = key.filter(|_| service.fail_over != FailOver::Transparent) {
            let message =
                format!("{key}: connections of `{}` go on at no other replica", service.name);
            let hint =
                "write `fail-over: transparent` in the service, or expect something of `lost`";
            found.mistake_with_hint(*place, message, hint);
            return None;
        }
        facts.push(fact.clone());
    }
    let others = added(draft, directory);
    for (name, bounds) in &expected.shares {
        let nodes = directory.nodes(found, name)?;
        let known = |node: &_| {
            service.replica(*node).is_some() || others.contains(&(service.name.clone(), *node))
        };
        if !nodes.iter().all(known) {
            not_a_replica(found, name, service, &plan.nodes);
            return None;
        }
        facts.push(ServiceFact::Share(nodes, *bounds));
    }
    Some(facts.into_iter().map(|fact| ExpectationClaim::Service { service: id, fact }).collect())
}
