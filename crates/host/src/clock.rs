//! The clock of a run, and when it begins.

use windtunnel_model::Span;

pub(crate) use windtunnel_dataplane::now;

/// A beginning this much after its time is reported, and makes the run unfaithful where `--max-lateness`
/// allows no more. A program takes milliseconds to start anyway.
pub(crate) const BEGIN_LATE: Span = Span::from_millis(10);
