//! `rate: {trace: …}` and `trace: {file: …}`: properties that follow a file.

use serde_json::Value as Json;
use windtunnel_model::profile::{LossModel, PropertySetting};
use windtunnel_model::trace::{TraceContent, TraceSeries};
use windtunnel_model::{LinkPatch, Probability, Rate, Span, TraceMode, TraceUse};

use crate::grammar::{
    Decoder, Fields, RequiredKeyForm, SchemaAlternative, SchemaDefinitions, ValueForm,
    YamlMapEntry, form, map, text, words,
};
use crate::text::shorten;
use crate::trace::TraceFormat as FileForm;
use crate::tree::YamlValueKind;

map! {
    /// Delivery opportunities from a file: on each line the millisecond at which 1500 bytes may
    /// leave.
    RateTrace {
        /// The file, relative to the scenario's folder.
        "trace" TRACE: RequiredKeyForm<String>,
        /// Whether it begins again after its last line; default true. After the end of one that
        /// does not, nothing passes.
        "repeat" REPEAT: bool,
        /// The run begins so far into the trace; default 0s.
        "offset" OFFSET: Offset,
    }
}

map! {
    /// A table over time: a header with `time` and some of `rate`, `latency`, `loss`; then rows,
    /// such as `0s,10mbit,40ms,0.1%`.
    TraceForm {
        /// The file, relative to the scenario's folder.
        "file" FILE: RequiredKeyForm<String>,
        /// What holds between two rows: the earlier (`hold`, default), or the straight line
        /// (`interpolate`).
        "mode" MODE: Mode,
        /// Whether it begins again at the time of its last row; default false: the last row holds
        /// for ever.
        "repeat" REPEAT: bool,
        /// The run begins so far into the trace; default 0s.
        "offset" OFFSET: Offset,
    }
}

words! {
    /// What holds between two rows of a trace.
    Mode as "TraceMode"; TraceMode {
        /// The earlier row.
        "hold" => TraceMode::Hold,
        /// The straight line.
        "interpolate" => TraceMode::Interpolate,
    }
}

/// Straight lines are integrated exactly up to these.
const LONGEST_LINE: Span = Span::from_secs(3600);
const FASTEST_LINE: u64 = 1_000_000_000_000;
/// No offset needs more: a thousand years.
const LONGEST_OFFSET: Span = Span::from_secs(31_557_600_000);

/// A rate that follows delivery opportunities.
pub(crate) struct TraceRate {
    pub(super) mean: Rate,
    pub(super) following: TraceUse,
}

impl ValueForm for TraceRate {
    type Value = TraceRate;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<TraceRate> {
        let fields = from.table::<RateTrace>(field, "a rate that follows a trace")?;
        let file = from.required(&fields, RateTrace::TRACE, "this rate");
        let repeat = from.read_or(&fields, RateTrace::REPEAT, true);
        let offset = from.read_or(&fields, RateTrace::OFFSET, Span::ZERO);
        let (file, repeat, offset) = (file?, repeat?, offset?);
        let name = from.text(file, "the name of a file of milliseconds")?;
        let (trace, content) = from.trace_file(name, FileForm::Mahimahi, file.value.place)?;
        let TraceContent::Opportunities(recorded) = content else { return None };
        let Some(mean) = recorded.mean() else {
            let message = format!("the trace `{}` has less than 1 bit/s", shorten(name));
            from.mistake(file.value.place, message);
            return None;
        };
        let mode = TraceMode::Opportunities;
        Some(TraceRate { mean, following: TraceUse { trace, mode, repeat, offset } })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        RateTrace::definition(definitions)
    }
}

/// The properties that follow the columns of a table: their means.
#[derive(Debug)]
pub(crate) struct TableTrace {
    following: TraceUse,
    rate: Option<Rate>,
    latency: Option<Span>,
    loss: Option<LossModel>,
}

impl TableTrace {
    pub(super) fn put(self, patch: &mut LinkPatch) {
        let following = Some(self.following);
        if let Some(rate) = self.rate {
            (patch.rate, patch.traces.rate) = (Some(PropertySetting::To(rate)), following);
        }
        if let Some(latency) = self.latency {
            (patch.latency, patch.traces.latency) = (Some(latency), following);
        }
        if let Some(loss) = self.loss {
            (patch.loss, patch.traces.loss) = (Some(loss), following);
        }
    }
}

impl ValueForm for TableTrace {
    type Value = TableTrace;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<TableTrace> {
        let (file, mode, repeat, offset) = match &field.value.kind {
            YamlValueKind::Text(text) if text == "none" => {
                let hint = "set the `rate`, `latency` or `loss` that shall follow no trace";
                let message = "trace: `none` does not say which values hold instead";
                from.mistake_with_hint(field.wrong(), message, hint);
                return None;
            }
            YamlValueKind::Text(_) => (field, TraceMode::Hold, false, Span::ZERO),
            YamlValueKind::Map(_) => {
                let fields = from.table::<TraceForm>(field, "a trace")?;
                let mode = from.read_or(&fields, TraceForm::MODE, TraceMode::Hold);
                let file = from.required(&fields, TraceForm::FILE, "this trace");
                let repeat = from.read_or(&fields, TraceForm::REPEAT, false);
                let offset = from.read_or(&fields, TraceForm::OFFSET, Span::ZERO);
                (file?, mode?, repeat?, offset?)
            }
            _ => {
                let needed = "the name of a table (CSV), or {file: NAME, mode: interpolate}";
                return from.wrong_type(field, needed);
            }
        };
        let name = from.text(file, "the name of a table (CSV)")?;
        let place = file.value.place;
        let (trace, content) = from.trace_file(name, FileForm::Csv, place)?;
        let TraceContent::Series(table) = content else { return None };
        match follow(table, TraceUse { trace, mode, repeat, offset }) {
            Ok(following) => Some(following),
            Err(message) => {
                from.mistake(place, format!("the trace `{}` {message}", shorten(name)));
                None
            }
        }
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "TraceFile",
            "A table of values over time.",
            &[
                SchemaAlternative("The file, relative to the scenario's folder.", text),
                SchemaAlternative("The file and more.", TraceForm::definition),
            ],
        )
    }
}

form! {
    /// How far into a trace the run begins.
    Offset: Span, by read_offset, like Span::schema
}

fn read_offset(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Span> {
    let offset = Span::read(from, field)?;
    if offset > LONGEST_OFFSET {
        from.mistake(field.wrong(), format!("offset: `{offset}` is too long"));
        return None;
    }
    Some(offset)
}

/// A property cannot be both written and in the trace's table.
pub(super) fn check_alone(
    from: &mut Decoder<'_>,
    fields: &Fields<'_>,
    before: &LinkPatch,
    after: &LinkPatch,
) {
    let given = [
        ("rate", before.rate.is_some() && after.rate != before.rate),
        ("rate", before.traces.rate != after.traces.rate && before.rate.is_some()),
        ("latency", before.latency.is_some() && after.traces.latency.is_some()),
        ("loss", before.loss.is_some() && after.traces.loss.is_some()),
    ];
    let Some((key, _)) = given.into_iter().find(|(_, twice)| *twice) else { return };
    let Some(field) = fields.find(key) else { return };
    let message = format!("`{key}` is written here, and the trace has a column `{key}`");
    from.mistake_with_hint(field.place, message, "leave one of them out");
}

/// The means of a table's columns; says what is wrong with it.
fn follow(table: &TraceSeries, following: TraceUse) -> Result<TableTrace, String> {
    if following.repeat && table.length().is_zero() {
        return Err("repeats after no time: its last row is at 0s".to_owned());
    }
    if following.mode == TraceMode::Interpolate {
        let longest = table.time_ns.0.windows(2).map(|pair| pair[1] - pair[0]).max();
        if longest.is_some_and(|nanos| Span::from_nanos(nanos) > LONGEST_LINE) {
            return Err(format!(
                "has rows at intervals of more than {LONGEST_LINE}: too long to interpolate"
            ));
        }
    }
    let mut found = TableTrace { following, rate: None, latency: None, loss: None };
    if let Some(rate) = &table.rate_bit_per_s {
        let line = following.mode == TraceMode::Interpolate;
        if line && rate.0.iter().any(|rate| *rate > FASTEST_LINE) {
            return Err("has a rate above 1tbit: too fast to interpolate".to_owned());
        }
        let mean = Rate::from_bits_per_second(table.mean(rate, following.mode));
        found.rate = Some(mean.ok_or("has a mean rate of less than 1 bit/s")?);
    }
    if let Some(latency) = &table.latency_ns {
        found.latency = Some(Span::from_nanos(table.mean(latency, following.mode)));
    }
    if let Some(loss) = &table.loss_ppb {
        let mean = u32::try_from(table.mean(loss, following.mode)).ok();
        let mean = mean.and_then(Probability::from_parts_per_billion);
        let mean = mean.unwrap_or(Probability::ALWAYS);
        found.loss =
            Some(if mean.is_never() { LossModel::None } else { LossModel::Independent(mean) });
    }
    Ok(found)
}
