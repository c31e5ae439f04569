//! How well the machines of a run know each other's clocks.
//!
//! A packet of another machine is delivered at its time by that machine's clock. What is not known of
//! that clock can make the packet late, or early, and no count of lateness sees it. What one way is
//! too long by, the other is too short by: round trips are right.

use windtunnel_model::placement::DelayRequirement;
use windtunnel_model::word::ClockSource;
use windtunnel_trace::report::PeerClockAccuracy;

use crate::evidence::{MemberClockBound, PartEvidence, RunEvidence};
use crate::text::rounded;

/// Pairs of machines between which delays one way may be wrong by more than the bound.
pub(super) fn doubts(evidence: &RunEvidence<'_>) -> Vec<String> {
    match evidence.plan.delays {
        DelayRequirement::OneWay => pairs(evidence, "`delays: round-trips` if only these matter"),
        DelayRequirement::RoundTrips => Vec::new(),
    }
}

/// The same, where the file says that only round trips matter.
pub(super) fn warnings(evidence: &RunEvidence<'_>) -> Vec<String> {
    match evidence.plan.delays {
        DelayRequirement::OneWay => Vec::new(),
        DelayRequirement::RoundTrips => {
            pairs(evidence, "the file says that only round trips matter")
        }
    }
}

fn pairs(evidence: &RunEvidence<'_>, advice: &str) -> Vec<String> {
    let (hosts, late_above) = (evidence.hosts, evidence.late_above);
    let mut texts = Vec::new();
    for (index, one) in hosts.iter().enumerate() {
        for other in &hosts[index + 1..] {
            if !exchange_packets(one, other) {
                continue;
            }
            let (here, there) = (&one.results.host, &other.results.host);
            let between = format!("between host {here} and host {there}");
            match bound(one, other) {
                None => texts.push(format!(
                    "delays one way {between} may be wrong by any time: how their clocks stand is \
                     not known; {advice}"
                )),
                Some(bound) if bound.error > late_above => texts.push(format!(
                    "delays one way {between} may be wrong by {}, too long one way and too short the \
                     other: so well their clocks are known, by {} (round trips are right; {advice})",
                    rounded(bound.error),
                    source(bound),
                )),
                Some(_) => {}
            }
        }
    }
    texts
}

/// The worse of what each knows of the other. `None`: one of them knows nothing.
fn bound(one: &PartEvidence<'_>, other: &PartEvidence<'_>) -> Option<MemberClockBound> {
    let of = |here: &PartEvidence<'_>, there: &PartEvidence<'_>| {
        here.results.clocks.of(there.results.member)
    };
    let (there, here) = (of(one, other)?, of(other, one)?);
    Some(if here.error > there.error { here } else { there })
}

/// Where no packets go between two machines, neither needs the other's clock for their times.
fn exchange_packets(one: &PartEvidence<'_>, other: &PartEvidence<'_>) -> bool {
    let received = |here: &PartEvidence<'_>, there: &PartEvidence<'_>| {
        let mut peers = here.evidence.tally.peers.iter();
        peers.any(|it| it.member == there.results.member && it.received.packets > 0)
    };
    received(one, other) || received(other, one)
}

/// By what the clock is known, in words.
fn source(bound: MemberClockBound) -> &'static str {
    match bound.by {
        ClockSource::Exchanges => "the fastest messages each way",
        ClockSource::Synchronised => {
            "the fastest messages each way and the kernels' NTP or PTP state"
        }
        ClockSource::Stated => "the fastest messages each way and `--clock-offsets`",
    }
}

/// As `run.json` has it.
pub(super) fn of_peer(part: &PartEvidence<'_>, member: u16) -> Option<PeerClockAccuracy> {
    let MemberClockBound { ahead_ns, error, by } = part.results.clocks.of(member)?;
    Some(PeerClockAccuracy { ahead_ns, error_ns: error.as_nanos(), by: by.into() })
}
