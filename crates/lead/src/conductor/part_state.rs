//! What is known of the part of one member, and whether more is to come.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::stage::ClusterRunStage;

/// What is known of a part.
#[derive(Debug, Default)]
pub(super) struct PartState {
    pub(super) port: Option<u16>,
    /// The last stage that it is through with.
    pub(super) through: Option<ClusterRunStage>,
    pub(super) end: Option<PartTermination>,
    /// Whether the run is over there, and results are about to be.
    pub(super) is_ending: bool,
    /// Members that say that its machine is lost.
    pub(super) lost_to: BTreeSet<u16>,
    /// Its agent's clock when something was last received.
    pub(super) clock: Option<(u64, Instant)>,
    /// The last known round trip to its agent.
    pub(super) rtt: Duration,
    /// Members from which it has received nothing yet.
    pub(super) unreached: Vec<u16>,
}

/// How a part is over.
#[derive(Debug)]
pub(super) enum PartTermination {
    /// Its results are there.
    Ended,
    /// There are none.
    Failed(String),
    /// Its agent has gone.
    Gone(String),
    /// Its machine does not answer the others any more, and nothing else is known of it.
    Silent,
}

impl PartState {
    /// Whether more is to come of it: not where its machine is lost to another and is silent here,
    /// too. (On both sides of a cut network all take the others for lost, and may still be received
    /// here.)
    pub(super) fn is_waited_for(&self) -> bool {
        let patience = if self.is_ending { SILENCE_AT_END } else { SILENCE };
        self.end.is_none() && (self.lost_to.is_empty() || !self.is_silent_for(patience))
    }

    /// Whether nothing has come of it for longer than a part that lives is quiet.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent_for(SILENCE)
    }

    fn is_silent_for(&self, patience: Duration) -> bool {
        self.clock.is_none_or(|(_, at)| at.elapsed() > patience)
    }
}

/// Parts that live send something four times a second.
const SILENCE: Duration = Duration::from_secs(1);
/// Its results are worth more patience.
const SILENCE_AT_END: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_lost_to_others_is_waited_for_as_long_as_it_is_received_here() {
        let received = Some((0, Instant::now()));
        let state = |clock, lost_to: &[u16], end| {
            let lost_to = lost_to.iter().copied().collect();
            PartState { clock, lost_to, end, ..PartState::default() }
        };
        assert!(state(None, &[], None).is_waited_for());
        assert!(state(received, &[1], None).is_waited_for());
        assert!(!state(None, &[1], None).is_waited_for());
        assert!(!state(received, &[], Some(PartTermination::Ended)).is_waited_for());
        let earlier = Instant::now().checked_sub(Duration::from_secs(5)).map(|at| (0, at));
        assert!(!state(earlier, &[1], None).is_waited_for());
        let ending = PartState { is_ending: true, ..state(earlier, &[1], None) };
        assert!(ending.is_waited_for(), "its results are about to be there");
    }
}
