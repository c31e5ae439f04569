//! Phases of a link direction: the times between changes of its properties.

use serde::{Deserialize, Serialize};
use windtunnel_engine::LaneCounters;
use windtunnel_model::{LinkProfile, Time};
use windtunnel_trace::lateness::LatenessHistogram;

/// A part of a run in which the properties of a direction stayed the same.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LanePhase {
    /// Its end after the run began.
    pub until: Time,
    pub asked: LinkProfile,
    /// What was counted from the beginning of the run to its end.
    pub counters: LaneCounters,
    /// Lateness of what left in it.
    pub lateness: LatenessHistogram,
}

/// The phases of one direction that are over.
#[derive(Debug, Default)]
pub(super) struct LanePhaseHistory(Vec<LanePhase>);

impl LanePhaseHistory {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// A phase is over. One that continues the phase before it is a part of that.
    ///
    /// Answers whether it was added to them as another one.
    pub(super) fn end(&mut self, phase: LanePhase) -> bool {
        match self.0.last_mut() {
            Some(last) if last.asked == phase.asked => {
                last.lateness.add(&phase.lateness);
                (last.until, last.counters) = (phase.until, phase.counters);
                false
            }
            _ => {
                self.0.push(phase);
                true
            }
        }
    }

    /// All phases when the run is over with `last`; none where there is only one.
    pub(super) fn finish(mut self, last: LanePhase) -> Vec<LanePhase> {
        self.end(last);
        // What was changed at once has never been.
        self.0.retain(|phase| phase.until > Time::ZERO);
        if self.0.len() < 2 { Vec::new() } else { self.0 }
    }
}

/// The phases of a direction that several machines have seen, together; none where they do not
/// agree.
pub fn merge<'a>(parts: impl Iterator<Item = &'a [LanePhase]>) -> Vec<LanePhase> {
    let mut all: Option<Vec<LanePhase>> = None;
    for part in parts {
        let Some(all) = &mut all else {
            all = Some(part.to_vec());
            continue;
        };
        let agree = all.len() == part.len()
            && all.iter().zip(part).all(|(one, other)| one.asked == other.asked);
        if !agree {
            return Vec::new();
        }
        for (sum, more) in all.iter_mut().zip(part) {
            sum.until = sum.until.max(more.until);
            sum.counters.add(&more.counters);
            sum.lateness.add(&more.lateness);
        }
    }
    all.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use windtunnel_model::Span;

    use super::*;

    fn phase(until_ms: u64, latency_ms: u64, delivered_packets: u64) -> LanePhase {
        let latency = Span::from_millis(latency_ms);
        LanePhase {
            until: Time::ZERO + Span::from_millis(until_ms),
            asked: LinkProfile { latency, ..LinkProfile::default() },
            counters: LaneCounters { delivered_packets, ..LaneCounters::default() },
            lateness: LatenessHistogram::new(),
        }
    }

    fn ends(phases: &[LanePhase]) -> Vec<u64> {
        phases.iter().map(|phase| phase.until.as_nanos() / 1_000_000).collect()
    }

    #[test]
    fn a_direction_that_never_changed_has_no_phases() {
        assert_eq!(ends(&LanePhaseHistory::default().finish(phase(900, 5, 9))), [] as [u64; 0]);
        let mut phases = LanePhaseHistory::default();
        assert!(phases.end(phase(300, 5, 3)));
        assert!(!phases.end(phase(500, 5, 4)));
        assert_eq!(ends(&phases.finish(phase(900, 5, 9))), [] as [u64; 0]);
    }

    #[test]
    fn each_change_begins_a_phase_but_one_at_the_very_beginning() {
        let mut phases = LanePhaseHistory::default();
        phases.end(phase(0, 5, 0));
        phases.end(phase(300, 6, 3));
        assert_eq!(ends(&phases.finish(phase(900, 7, 9))), [300, 900]);
    }

    #[test]
    fn phases_of_several_machines_are_added_where_they_are_the_same() {
        let (one, other) =
            ([phase(300, 6, 3), phase(900, 7, 9)], [phase(301, 6, 2), phase(890, 7, 4)]);
        let all = merge([&one[..], &other[..]].into_iter());
        assert_eq!(ends(&all), [301, 900]);
        assert_eq!(all[1].counters.delivered_packets, 13);
        assert!(merge([&one[..], &other[..1]].into_iter()).is_empty());
    }
}
