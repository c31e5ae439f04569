//! What the file expects, beside what was seen.

use std::fmt::Display;

use windtunnel_model::plan::Expectation as Asked;
use windtunnel_model::{Lane, NodeId, Rate, Span};
use windtunnel_trace::report::Expectation;

use super::{Evidence, rounded};
use crate::live::RttSeen;
use crate::supervisor::{Life, Supervised};

/// Every expectation of the plan, checked.
pub(super) fn check(evidence: &Evidence<'_>) -> Vec<Expectation> {
    let asked = evidence.plan.expectations.iter().enumerate();
    asked.map(|(index, asked)| check_one(evidence, index, asked)).collect()
}

fn check_one(evidence: &Evidence<'_>, index: usize, asked: &Asked) -> Expectation {
    match asked {
        Asked::Exit { node, code } => exit(evidence, *node, *code),
        Asked::PathRtt { from, to, min, max } => {
            let seen = evidence.rtts.iter().find(|(i, _)| *i == index).map(|(_, seen)| seen);
            rtt(evidence, (*from, *to), (*min, *max), seen)
        }
        Asked::LinkRate { lane, min, max } => link_rate(evidence, *lane, *min, *max),
    }
}

fn exit(evidence: &Evidence<'_>, node: NodeId, code: Option<u8>) -> Expectation {
    let programs = evidence.supervisor.programs();
    let of_node = programs.filter(|(key, _)| key.node == node.index());
    let seen: Vec<(String, Option<u8>)> = of_node.map(|(_, program)| ending(program)).collect();
    let met = seen.iter().all(|(_, seen)| seen.is_some() && (code.is_none() || *seen == code));
    Expectation {
        about: format!("node {} exit", evidence.plan.nodes[node.index()].name),
        asked: code.map_or_else(|| "any exit".to_owned(), |code| code.to_string()),
        seen: seen.into_iter().map(|(text, _)| text).collect::<Vec<_>>().join(", "),
        met,
    }
}

/// How a program's life ended, in words and as an exit code.
pub(super) fn ending(program: &Supervised) -> (String, Option<u8>) {
    let never_started = || ("it never started".to_owned(), None);
    match (&program.life, program.last_exit) {
        (Life::Running { .. } | Life::Starting, _) => ("it still ran at the end".to_owned(), None),
        (_, Some(exit)) if program.ended_by_run => {
            (format!("it still ran at the end, then {exit}"), None)
        }
        (Life::Failed { message }, _) => (message.clone(), None),
        (_, Some(exit)) => (exit.to_string(), Some(exit.code)),
        (_, None) => never_started(),
    }
}

fn rtt(
    evidence: &Evidence<'_>,
    (from, to): (NodeId, NodeId),
    (min, max): (Option<Span>, Option<Span>),
    seen: Option<&RttSeen>,
) -> Expectation {
    let name = |node: NodeId| &evidence.plan.nodes[node.index()].name;
    let median = seen.and_then(RttSeen::median);
    let seen = match (median, seen) {
        (Some(median), Some(seen)) => {
            format!("{} (median of {})", rounded(median), seen.rtts.len())
        }
        (_, Some(RttSeen { error: Some(error), .. })) => error.clone(),
        _ => "no reply".to_owned(),
    };
    Expectation {
        about: format!("path {} to {} rtt", name(from), name(to)),
        asked: between(min, max),
        seen,
        met: median.is_some_and(|median| within(&median, min.as_ref(), max.as_ref())),
    }
}

fn link_rate(
    evidence: &Evidence<'_>,
    lane: Lane,
    min: Option<Rate>,
    max: Option<Rate>,
) -> Expectation {
    let peak = evidence.recorded.peak_bytes_per_s.get(lane.index()).copied().unwrap_or(0);
    let rate = Rate::from_bits_per_second(peak.saturating_mul(8));
    let link = &evidence.plan.links[lane.link.index()].name;
    Expectation {
        about: format!("link {link} {} rate", evidence.plan.lane_name(lane)),
        asked: between(min, max),
        seen: format!("{} in the best second", rate.map_or("nothing".to_owned(), megabits)),
        met: rate.map_or(min.is_none(), |rate| within(&rate, min.as_ref(), max.as_ref())),
    }
}

fn megabits(rate: Rate) -> String {
    let kilobits = rate.bits_per_second() / 1000;
    format!("{}.{:03}mbit", kilobits / 1000, kilobits % 1000)
}

fn within<T: Ord>(value: &T, min: Option<&T>, max: Option<&T>) -> bool {
    min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)
}

fn between<T: Display>(min: Option<T>, max: Option<T>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "any".to_owned(),
    }
}
