//! Expectations of services.

use windtunnel_dataplane::ServiceRedirectionTotals;
use windtunnel_model::expect::{ServiceFact, ValueBounds};
use windtunnel_model::{NodeId, Probability, ServiceId, Span};

use super::outcome::{ExpectationOutcome, allows_share, percent, share};
use crate::evidence::RunEvidence;
use crate::text::rounded;

pub(super) fn check(
    evidence: &RunEvidence<'_>,
    service: ServiceId,
    fact: &ServiceFact,
) -> ExpectationOutcome {
    let name = &evidence.plan.services[service.index()].name;
    let none = ServiceRedirectionTotals::default();
    let seen = evidence.redirections().services.get(service.index()).unwrap_or(&none);
    let figure = match fact {
        ServiceFact::Expelled(_) => "expelled".to_owned(),
        ServiceFact::Lost(_) => "lost".to_owned(),
        ServiceFact::Unserved(_) => "unserved".to_owned(),
        ServiceFact::Share(nodes, _) => format!("share of {}", replicas(evidence, nodes)),
        ServiceFact::Gap(_) => "gap".to_owned(),
    };
    let transparent = seen.fail_over.unwrap_or_default();
    let (asked, (seen, met)) = match fact {
        ServiceFact::Expelled(bounds) => {
            let count = transparent.expelled.total();
            (format!("{bounds} expulsions"), counted(count, "expulsions", bounds))
        }
        ServiceFact::Lost(bounds) => {
            let count = seen.counters.lost_connections.saturating_add(transparent.lost);
            (format!("{bounds} connections"), counted(count, "connections", bounds))
        }
        ServiceFact::Unserved(bounds) => {
            let count = seen.counters.unserved;
            (format!("{bounds} packets"), counted(count, "packets", bounds))
        }
        ServiceFact::Share(nodes, bounds) => (bounds.to_string(), of_all(seen, nodes, bounds)),
        ServiceFact::Gap(bounds) => {
            let longest =
                (transparent.resumed > 0).then(|| Span::from_nanos(transparent.silence_max_ns));
            (bounds.to_string(), gap(longest, bounds))
        }
    };
    let about = format!("service {name} {figure}");
    let look = format!("run.json, `services`, {name}");
    ExpectationOutcome { about, asked, seen, met, look }
}

fn replicas(evidence: &RunEvidence<'_>, nodes: &[NodeId]) -> String {
    let name = |node: &NodeId| evidence.plan.nodes.get(node.index()).map(|it| it.name.as_str());
    match nodes {
        [one] => name(one).unwrap_or_default().to_owned(),
        [first, .., last] => {
            let [first, last] = [first, last].map(|node| name(node).unwrap_or_default());
            format!("{first} to {last}")
        }
        [] => String::new(),
    }
}

fn counted(count: u64, what: &str, bounds: &ValueBounds<u64>) -> (String, bool) {
    (format!("{count} {what}"), bounds.allow(&count))
}

/// The share of these replicas in all that began; of nothing there is none.
fn of_all(
    seen: &ServiceRedirectionTotals,
    nodes: &[NodeId],
    bounds: &ValueBounds<Probability>,
) -> (String, bool) {
    let began = |of: &dyn Fn(NodeId) -> bool| {
        let of = seen.replicas.iter().filter(|(node, _)| of(*node));
        of.fold(0u64, |sum, (_, it)| sum.saturating_add(it.connections).saturating_add(it.flows))
    };
    let (part, whole) = (began(&|node| nodes.contains(&node)), began(&|_| true));
    match share(part, whole) {
        Some(ppb) => {
            let seen = format!("{} ({part} of {whole} connections and flows)", percent(ppb));
            (seen, allows_share(bounds, ppb))
        }
        None => ("no connection or flow".to_owned(), false),
    }
}

/// Where no client had to wait for another replica, there was no gap.
fn gap(longest: Option<Span>, bounds: &ValueBounds<Span>) -> (String, bool) {
    match longest {
        Some(longest) => (rounded(longest), bounds.allow(&longest)),
        None => {
            let seen = "no client was sent something after an expulsion".to_owned();
            (seen, bounds.min.is_none())
        }
    }
}
