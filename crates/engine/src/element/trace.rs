//! Traces: how a lane's rate, latency and loss follow a recording.
//!
//! - **Parameters**: a trace of the plan, where in it the run begins (the offset), whether it
//!   repeats, and what it means between two of its times.
//! - **Time**: every trace of a run starts at the same instant, the run's beginning, also one that
//!   a lane begins to follow later. No wake-up comes from a trace by itself: it is asked when a
//!   packet needs it.
//! - **Order, bytes, drop reasons**: those of the element that follows.
//! - **Model**: [`slots`] is the link of mahimahi (Netravali et al. 2015); [`series`] is a table of
//!   values.

mod series;
mod slots;

use alloc::sync::Arc;
use alloc::vec::Vec;

use windtunnel_model::trace::{LinkTrace, TraceContent};
use windtunnel_model::{Time, TraceMode, TraceUse};

pub(crate) use series::{TracePlayback, TracedProperty};
pub(crate) use slots::{DeliverySlot, DeliverySlotPlayback};

/// The traces of a plan, and when they started.
#[derive(Debug)]
pub(crate) struct TraceSet {
    traces: Vec<Arc<LinkTrace>>,
    pub(crate) origin: Time,
}

impl TraceSet {
    pub(crate) fn new(traces: &[LinkTrace]) -> Self {
        let traces = traces.iter().map(|trace| Arc::new(trace.clone())).collect();
        TraceSet { traces, origin: Time::ZERO }
    }

    /// The delivery opportunities that `following` names; `None` where it names none.
    pub(crate) fn slots(&self, following: Option<TraceUse>) -> Option<DeliverySlotPlayback> {
        let following = following.filter(|it| it.mode == TraceMode::Opportunities)?;
        match &self.find(following)?.content {
            TraceContent::Opportunities(recorded) => {
                Some(DeliverySlotPlayback::new(recorded, following, self.origin))
            }
            TraceContent::Series(_) => None,
        }
    }

    /// The values that `following` names; `None` where it names none.
    pub(crate) fn series(
        &self,
        following: Option<TraceUse>,
        what: TracedProperty,
    ) -> Option<TracePlayback> {
        let following = following.filter(|it| it.mode != TraceMode::Opportunities)?;
        TracePlayback::new(Arc::clone(self.find(following)?), what, following, self.origin)
    }

    fn find(&self, following: TraceUse) -> Option<&Arc<LinkTrace>> {
        self.traces.get(usize::try_from(following.trace).ok()?)
    }
}
