//! Traces and the links that follow them.

use alloc::borrow::ToOwned;
use alloc::format;

use crate::plan::Plan;
use crate::time::Span;
use crate::trace::{
    self as model, DeliveryOpportunities, LinkTrace, TraceContent, TraceMode, TraceSeries, TraceUse,
};

use crate::message::{PlanValidationError, ensure, shown};

/// Which property of a lane follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TraceDrivenProperty {
    Rate,
    Latency,
    Loss,
}

pub(super) fn validate(trace: &LinkTrace) -> Result<(), PlanValidationError> {
    let sound = match &trace.content {
        TraceContent::Opportunities(opportunities) => are_opportunities(opportunities),
        TraceContent::Series(series) => is_series(series),
    };
    ensure(sound, || format!("the trace `{}` is none", shown(&trace.file)))
}

fn are_opportunities(it: &DeliveryOpportunities) -> bool {
    let (deltas, counts) = (&it.delta_ms.0, &it.count.0);
    let fits = |values: &[u64], most: u64| {
        let sum = values.iter().try_fold(0_u64, |sum, value| sum.checked_add(*value));
        sum.is_some_and(|sum| (1..=most).contains(&sum))
    };
    deltas.len() == counts.len()
        && deltas.iter().skip(1).all(|delta| *delta > 0)
        && counts.iter().all(|count| *count > 0)
        && fits(deltas, LENGTH_MS_MAX)
        && fits(counts, OPPORTUNITIES_MAX)
}

fn is_series(it: &TraceSeries) -> bool {
    let rows = it.time_ns.0.len();
    let columns = [&it.rate_bit_per_s, &it.latency_ns, &it.loss_ppb];
    let mut there = columns.into_iter().flatten().peekable();
    let whole = it.loss_ppb.iter().flat_map(|column| &column.0).all(|loss| *loss <= WHOLE_PPB);
    rows > 0
        && there.peek().is_some()
        && there.all(|column| column.0.len() == rows)
        && it.time_ns.0.windows(2).all(|pair| pair[0] < pair[1])
        && whole
}

/// Whether a property can follow its trace in that way.
pub(super) fn is_followed(
    plan: &Plan,
    by: TraceUse,
    column: TraceDrivenProperty,
) -> Result<(), PlanValidationError> {
    let trace = usize::try_from(by.trace).ok().and_then(|index| plan.traces.get(index));
    let fits = match trace.map(|trace| &trace.content) {
        None => false,
        Some(TraceContent::Opportunities(_)) => {
            column == TraceDrivenProperty::Rate && by.mode == TraceMode::Opportunities
        }
        Some(TraceContent::Series(series)) => can_follow(series, by, column),
    };
    ensure(fits && by.offset <= OFFSET_MAX, || {
        "a property follows a trace that does not have it".to_owned()
    })
}

fn can_follow(series: &TraceSeries, by: TraceUse, column: TraceDrivenProperty) -> bool {
    let values: Option<&model::TraceColumn> = match column {
        TraceDrivenProperty::Rate => series.rate_bit_per_s.as_ref(),
        TraceDrivenProperty::Latency => series.latency_ns.as_ref(),
        TraceDrivenProperty::Loss => series.loss_ppb.as_ref(),
    };
    let Some(values) = values else { return false };
    let near = |pair: &[u64]| Span::from_nanos(pair[1] - pair[0]) <= LINE_MAX;
    let straight = series.time_ns.0.windows(2).all(near)
        && (column != TraceDrivenProperty::Rate
            || values.0.iter().all(|rate| *rate <= LINE_RATE_MAX));
    let repeats = !by.repeat || !series.length().is_zero();
    let flows = column != TraceDrivenProperty::Rate || series.mean(values, by.mode) > 0;
    repeats
        && flows
        && match by.mode {
            TraceMode::Opportunities => false,
            TraceMode::Hold => true,
            TraceMode::Interpolate => straight,
        }
}

/// A year, in milliseconds.
const LENGTH_MS_MAX: u64 = 366 * 24 * 3_600_000;
/// Delivery opportunities in a trace: a file of 16 MiB has no more lines.
const OPPORTUNITIES_MAX: u64 = 16 << 20;
const WHOLE_PPB: u64 = 1_000_000_000;
/// Straight lines are integrated exactly up to these.
const LINE_MAX: Span = Span::from_secs(3600);
const LINE_RATE_MAX: u64 = 1_000_000_000_000;
/// A thousand years.
const OFFSET_MAX: Span = Span::from_secs(31_557_600_000);
