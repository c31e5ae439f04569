//! How fast a shaper sends: with the model of paths, at the shares of its flows and what others
//! leave.

use alloc::vec::Vec;

use windtunnel_model::{Rate, Span, Time};

use super::LaneContext;
use super::station::QueueingStation;
use crate::paths::virtual_clock::PathHop;

/// A transmission that takes longer than this is looked at again while it lasts.
const LONG: Span = Span::from_millis(1);

/// What a shaper may send.
#[derive(Debug)]
pub(crate) struct Pacing {
    /// What its flows have; `None`: it has no flow.
    pub(crate) share: Option<Rate>,
    /// The rate of its narrowest lane.
    pub(crate) line: Rate,
    /// Its lanes.
    pub(crate) lanes: Vec<PathHop>,
    /// Of the transmission that goes on: its rate.
    pace: Rate,
}

impl Pacing {
    pub(crate) fn new(share: Option<Rate>, line: Rate, lanes: Vec<PathHop>) -> Self {
        Pacing { share, line, lanes, pace: line }
    }

    fn next_look(&self, now: Time, first: Time) -> Time {
        let wait = first.since(now);
        if wait <= LONG || self.share.is_none() {
            return first;
        }
        first.min(now + LONG.max(Span::from_nanos(wait.as_nanos() / 8)))
    }
}

impl QueueingStation {
    /// Paces what is sent from the next packet on; `None`: the rate alone does.
    pub(super) fn set_pacing(&mut self, pacing: Option<Pacing>) {
        let pace = self.pacing.as_ref().map(|pacing| pacing.pace);
        self.pacing = pacing.map(|pacing| Pacing { pace: pace.unwrap_or(pacing.line), ..pacing });
    }

    /// Sets the rate of the next transmission.
    #[inline]
    pub(super) fn pace(&mut self, now: Time, work: &mut LaneContext) {
        let Some(pacing) = &mut self.pacing else { return };
        pacing.pace = work.clocks.pace(now, pacing, 0);
        self.server.set_rate(pacing.pace);
    }

    /// Charges its lanes with the transmission that has begun, which ends at `first` at the
    /// earliest; when it does, or is to be looked at again.
    #[inline]
    pub(super) fn charge(
        &mut self,
        now: Time,
        bytes: u64,
        first: Time,
        work: &mut LaneContext,
    ) -> Time {
        let Some(pacing) = &self.pacing else { return first };
        let earliest = work.clocks.charge(now, &pacing.lanes, bytes, pacing.share.is_some());
        let first = self.server.hold(first, earliest);
        pacing.next_look(now, first)
    }

    /// Looks at a transmission again whose time has not come: what is left of it has the rate of
    /// now. When it is to be looked at again; `None`: there is none.
    #[inline]
    pub(super) fn look_again(&mut self, now: Time, work: &mut LaneContext) -> Option<Time> {
        let pacing = self.pacing.as_mut()?;
        let (mut first, bytes) = self.server.sending(now)?;
        let before = pacing.pace;
        pacing.pace = work.clocks.pace(now, pacing, bytes);
        if before != pacing.pace {
            first = self.server.go_on(now, before, pacing.pace);
            first = self.server.hold(first, work.clocks.earliest(now, &pacing.lanes));
        }
        Some(pacing.next_look(now, first))
    }
}
