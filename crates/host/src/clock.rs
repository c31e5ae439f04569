//! The clock of a run: the monotonic one of this machine.

use windtunnel_model::{Span, Time};
use windtunnel_sys::clock;

/// The present on the run's clock.
#[must_use]
pub(crate) fn now() -> Time {
    Time::from_nanos(clock::monotonic_ns())
}

/// A beginning this much after its time is reported, and makes the run unfaithful where `--max-lateness`
/// allows no more. A program takes milliseconds to start anyway.
pub(crate) const BEGIN_LATE: Span = Span::from_millis(10);
