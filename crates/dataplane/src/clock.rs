//! The clock of a run: the monotonic one of this machine.

use windtunnel_model::Time;
use windtunnel_sys::clock;

/// The present on the run's clock.
#[must_use]
pub fn now() -> Time {
    Time::from_nanos(clock::monotonic_ns())
}
