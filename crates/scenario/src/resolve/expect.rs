//! Expectations: names worked out.

use windtunnel_model::expect::{
    Expectation, ExpectationClaim, ExpectationWindow, LinkFact, PathFact, ProgramFact,
};
use windtunnel_model::plan::ReadinessCondition;
use windtunnel_model::{NetworkVertex, NodeId, Plan, Span};

use super::directory::Directory;
use super::expansion::ExpansionBudget;
use super::lanes::lanes;
use crate::decode::{ExpectDraft, ScenarioDraft, Subject};
use crate::error::Diagnostics;
use crate::position::LocatedValue;

pub(super) fn resolve(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    directory: &Directory,
    budget: &mut ExpansionBudget,
    plan: &mut Plan,
) {
    for expectation in &draft.expect {
        let Some(window) = window(found, expectation, plan) else { continue };
        let claims = match &expectation.subject {
            Subject::Node { node, any, facts } => {
                programs(found, directory, plan, node, *any, facts)
            }
            Subject::Path { ends, every, facts } => {
                path(found, directory, plan, ends, window, every.as_ref(), facts)
            }
            Subject::Link { link, direction, facts } => {
                links(found, directory, plan, link, direction, facts)
            }
            Subject::Service { service, expected } => {
                super::service::expect(found, draft, directory, plan, service, expected)
            }
        };
        let line = expectation.place.line;
        let claims = claims.unwrap_or_default();
        if !budget.spend(found, claims.len().saturating_mul(CLAIM), expectation.place) {
            return;
        }
        let claims = claims.into_iter();
        plan.expectations.extend(claims.map(|claim| Expectation { line, window, claim }));
    }
}

/// The window, if the run lasts as long as it.
fn window(
    found: &mut Diagnostics,
    draft: &ExpectDraft,
    plan: &Plan,
) -> Option<Option<ExpectationWindow>> {
    let Some(LocatedValue { value: window, place }) = &draft.window else { return Some(None) };
    let Some(duration) = plan.duration else { return Some(Some(*window)) };
    let beyond = [Some(window.from), window.to].into_iter().flatten().find(|at| *at > duration);
    if beyond.is_some() || window.from == duration {
        let at = beyond.unwrap_or(window.from);
        let message = format!("between: {at} is not within the run, which lasts {duration}");
        found.mistake_with_hint(*place, message, "write `end` for the end of the run");
        return None;
    }
    Some(Some(*window))
}

fn programs(
    found: &mut Diagnostics,
    directory: &Directory,
    plan: &Plan,
    name: &LocatedValue<String>,
    any: bool,
    facts: &[ProgramFact],
) -> Option<Vec<ExpectationClaim>> {
    let nodes = directory.nodes(found, name)?;
    if nodes.iter().any(|id| plan.nodes[id.index()].programs.is_empty()) {
        let what = match facts.first() {
            Some(ProgramFact::Log { .. }) => "write",
            Some(ProgramFact::Ready(_)) => "become ready",
            _ => "exit",
        };
        let message = format!("`{}` has no program that could {what}", name.value);
        found.mistake(name.place, message);
        return None;
    }
    let waits = |id: &NodeId| {
        let daemons = plan.nodes[id.index()].programs.iter();
        daemons
            .into_iter()
            .all(|program| matches!(program.ready, None | Some(ReadinessCondition::Exit)))
    };
    if facts.iter().any(|fact| matches!(fact, ProgramFact::Ready(_))) && nodes.iter().all(waits) {
        let message =
            format!("`{}` has no `ready` condition: it counts from its start", name.value);
        found.notice(name.place, message);
    }
    let groups: Vec<Vec<NodeId>> =
        if any { vec![nodes] } else { nodes.into_iter().map(|node| vec![node]).collect() };
    let claims = groups.into_iter().flat_map(|nodes| {
        let fact = |fact: &ProgramFact| ExpectationClaim::Program {
            nodes: nodes.clone(),
            fact: fact.clone(),
        };
        facts.iter().map(fact).collect::<Vec<_>>()
    });
    Some(claims.collect())
}

fn path(
    found: &mut Diagnostics,
    directory: &Directory,
    plan: &Plan,
    ends: &[LocatedValue<String>; 2],
    window: Option<ExpectationWindow>,
    every: Option<&LocatedValue<Span>>,
    facts: &[PathFact],
) -> Option<Vec<ExpectationClaim>> {
    let [from, to] = [&ends[0], &ends[1]].map(|end| node(found, directory, plan, end));
    let (from, to) = (from?, to?);
    if from == to {
        let message = format!("a path from `{}` to itself", ends[0].value);
        found.mistake(ends[1].place, message);
        return None;
    }
    let is_echo = |fact: &PathFact| matches!(fact, PathFact::Rtt(..) | PathFact::Loss(_));
    let interval = match window {
        Some(window) if facts.iter().any(is_echo) => {
            let place = every.map_or(ends[0].place, |every| every.place);
            let every = every.map_or(EVERY, |every| every.value);
            let end = window.to.or(plan.duration);
            let echoes =
                end.map(|end| end.saturating_sub(window.from).as_nanos() / every.as_nanos());
            if echoes.is_none_or(|echoes| echoes > ECHOES_MOST) {
                let message = match echoes {
                    Some(echoes) => format!("{echoes} echo requests are more than {ECHOES_MOST}"),
                    None => "the echo requests have no end".to_owned(),
                };
                let hint = "give the window an end, or more time between requests with `every`";
                found.mistake_with_hint(place, message, hint);
                return None;
            }
            Some(every)
        }
        _ => None,
    };
    let claim = |fact: &PathFact| ExpectationClaim::Path {
        from,
        to,
        fact: *fact,
        every: interval.filter(|_| is_echo(fact)),
    };
    Some(facts.iter().map(claim).collect())
}

fn links(
    found: &mut Diagnostics,
    directory: &Directory,
    plan: &Plan,
    link: &LocatedValue<String>,
    direction: &LocatedValue<String>,
    facts: &[LinkFact],
) -> Option<Vec<ExpectationClaim>> {
    let lanes = lanes(found, directory, plan, link, Some(direction))?;
    let queue = facts.iter().any(|fact| matches!(fact, LinkFact::Queue(..)));
    let unlimited = |lane: &windtunnel_model::Lane| {
        plan.links[lane.link.index()].profiles[lane.direction.index()].rate.is_none()
    };
    if queue && lanes.iter().any(unlimited) {
        let message =
            format!("`{}` has no rate when the run begins: nothing waits in its queue", link.value);
        found.notice(link.place, message);
    }
    let claims = lanes.into_iter().flat_map(|lane| {
        facts.iter().map(move |fact| ExpectationClaim::Link { lane, fact: fact.clone() })
    });
    Some(claims.collect())
}

/// The one node of `name`, which must have a link.
fn node(
    found: &mut Diagnostics,
    directory: &Directory,
    plan: &Plan,
    name: &LocatedValue<String>,
) -> Option<NodeId> {
    let message = match directory.vertex(found, name)? {
        NetworkVertex::Router(_) => format!("`{}` is a router: here a node is needed", name.value),
        NetworkVertex::Lan(_) => format!("`{}` is a LAN: here a node is needed", name.value),
        NetworkVertex::Node(id) if plan.nodes[id.index()].interfaces.is_empty() => {
            format!("`{}` has no link, so nothing has a path to it", name.value)
        }
        NetworkVertex::Node(id) => return Some(id),
    };
    found.mistake(name.place, message);
    None
}

/// How often echo requests are sent in a window that does not say.
const EVERY: Span = Span::from_millis(100);
/// What a node measures at once.
const ECHOES_MOST: u64 = 5000;
/// What an expectation takes of the budget: it is so many times larger than what groups else
/// multiply.
const CLAIM: usize = 8;
