//! Properties that follow a file, and presets.

use schemars::JsonSchema;

use super::text::{Rate, Time};

/// A bandwidth.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum RateOrTrace {
    /// Always the same, or `none`.
    Steady(Rate),
    /// Delivery opportunities.
    Trace(RateTrace),
}

/// Delivery opportunities from a file: on each line the millisecond at which 1500 bytes may leave.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct RateTrace {
    /// The file, relative to the scenario's folder.
    trace: String,
    /// Whether it begins again after its last line; default true. After the end of one that does
    /// not, nothing passes.
    repeat: Option<bool>,
    /// The run begins so far into the trace; default 0s.
    offset: Option<Time>,
}

/// A table of values over time.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum TraceFile {
    /// The file, relative to the scenario's folder.
    Name(String),
    /// The file and more.
    Form(TraceForm),
}

/// A table over time: a header with `time` and some of `rate`, `latency`, `loss`; then rows, such
/// as `0s,10mbit,40ms,0.1%`.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct TraceForm {
    /// The file, relative to the scenario's folder.
    file: String,
    /// What holds between two rows: the earlier (`hold`, default), or the straight line
    /// (`interpolate`).
    mode: Option<TraceMode>,
    /// Whether it begins again at the time of its last row; default false: the last row holds for
    /// ever.
    repeat: Option<bool>,
    /// The run begins so far into the trace; default 0s.
    offset: Option<Time>,
}

/// What holds between two rows of a trace.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum TraceMode {
    /// The earlier row.
    Hold,
    /// The straight line.
    Interpolate,
}

/// A kind of access link; docs/presets.md has the values.
#[derive(JsonSchema)]
#[schemars(extend("enum" = preset_names()))]
pub(crate) struct PresetName(String);

/// The presets' names.
fn preset_names() -> Vec<&'static str> {
    crate::preset::presets().iter().map(|preset| preset.name).collect()
}
