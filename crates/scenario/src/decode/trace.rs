//! `rate: {trace: …}` and `trace: {file: …}`: properties that follow a file.

use windtunnel_model::profile::{Loss, Setting};
use windtunnel_model::trace::{Content, Series};
use windtunnel_model::{LinkPatch, Probability, Rate, Span, TraceMode, TraceUse};

use super::{Field, Fields};
use crate::error::Findings;
use crate::keys;
use crate::text::shorten;
use crate::trace::Form;
use crate::tree::Kind;

/// Straight lines are integrated exactly up to these.
const LONGEST_LINE: Span = Span::from_secs(3600);
const FASTEST_LINE: u64 = 1_000_000_000_000;
/// No offset needs more: a thousand years.
const LONGEST_OFFSET: Span = Span::from_secs(31_557_600_000);

impl Findings {
    /// `rate: {trace: FILE}`.
    pub(super) fn rate_trace(&mut self, field: Field<'_>, patch: &mut LinkPatch) {
        let Some(fields) = self.fields(field, "a rate that follows a trace", keys::RATE) else {
            return;
        };
        let file = self.required(&fields, "trace", "this rate");
        let (Some(file), Some((repeat, offset))) = (file, self.how(&fields, true)) else { return };
        let needed = "the name of a file of milliseconds";
        let Some(name) = self.text(file, needed) else { return };
        let found = self.trace_file(name, Form::Mahimahi, file.value.place);
        let Some((trace, Content::Opportunities(recorded))) = found else { return };
        match recorded.mean() {
            Some(mean) => {
                let mode = TraceMode::Opportunities;
                patch.rate = Some(Setting::To(mean));
                patch.traces.rate = Some(TraceUse { trace, mode, repeat, offset });
            }
            None => {
                let message = format!("the trace `{}` has less than 1 bit/s", shorten(name));
                self.mistake(file.value.place, message);
            }
        }
    }

    /// `trace: FILE` or `trace: {file: FILE, …}`: the columns of a table.
    pub(super) fn trace(&mut self, field: Field<'_>, patch: &mut LinkPatch) {
        let (file, mode, how) = match &field.value.kind {
            Kind::Text(text) if text == "none" => {
                let hint = "set the `rate`, `latency` or `loss` that shall follow no trace";
                let message = "trace: `none` does not say which values hold instead";
                return self.mistake_with_hint(field.wrong(), message, hint);
            }
            Kind::Text(_) => (field, TraceMode::Hold, (false, Span::ZERO)),
            Kind::Map(_) => {
                let Some(fields) = self.fields(field, "a trace", keys::TRACE) else { return };
                let modes = [("hold", TraceMode::Hold), ("interpolate", TraceMode::Interpolate)];
                let mode = match fields.find("mode") {
                    Some(mode) => self.choice(mode, &modes),
                    None => Some(TraceMode::Hold),
                };
                let file = self.required(&fields, "file", "this trace");
                let (Some(file), Some(mode), Some(how)) = (file, mode, self.how(&fields, false))
                else {
                    return;
                };
                (file, mode, how)
            }
            _ => {
                let needed = "the name of a table (CSV), or {file: NAME, mode: interpolate}";
                return self.wrong_type::<()>(field, needed).unwrap_or_default();
            }
        };
        let Some(name) = self.text(file, "the name of a table (CSV)") else { return };
        let place = file.value.place;
        let Some((trace, Content::Series(table))) = self.trace_file(name, Form::Csv, place) else {
            return;
        };
        let (repeat, offset) = how;
        let following = TraceUse { trace, mode, repeat, offset };
        match follow(table, following, patch) {
            Ok(()) => {}
            Err(message) => self.mistake(place, format!("the trace `{}` {message}", shorten(name))),
        }
    }

    /// A property cannot be both written and in the trace's table.
    pub(super) fn check_trace_alone(
        &mut self,
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
        self.mistake_with_hint(field.place, message, "leave one of them out");
    }

    /// Whether a trace repeats, and its offset.
    fn how(&mut self, fields: &Fields<'_>, repeats: bool) -> Option<(bool, Span)> {
        let repeat = match fields.find("repeat") {
            Some(field) => self.flag(field),
            None => Some(repeats),
        };
        let offset = match fields.find("offset") {
            Some(field) => {
                let offset = self.quantity(field, "a time such as 30s")?;
                if offset > LONGEST_OFFSET {
                    self.mistake(field.wrong(), format!("offset: `{offset}` is too long"));
                    return None;
                }
                Some(offset)
            }
            None => Some(Span::ZERO),
        };
        Some((repeat?, offset?))
    }
}

/// Puts a table's columns into a patch; says what is wrong with it.
fn follow(table: &Series, following: TraceUse, patch: &mut LinkPatch) -> Result<(), String> {
    if following.repeat && table.length().is_zero() {
        return Err("repeats after no time: its last row is at 0s".to_owned());
    }
    if following.mode == TraceMode::Interpolate {
        let longest = table.time_ns.0.windows(2).map(|pair| pair[1] - pair[0]).max();
        if longest.is_some_and(|nanos| Span::from_nanos(nanos) > LONGEST_LINE) {
            return Err(format!("has rows more than {LONGEST_LINE} apart: too far to interpolate"));
        }
    }
    if let Some(rate) = &table.rate_bit_per_s {
        let line = following.mode == TraceMode::Interpolate;
        if line && rate.0.iter().any(|rate| *rate > FASTEST_LINE) {
            return Err("has a rate above 1tbit: too fast to interpolate".to_owned());
        }
        let mean = Rate::from_bits_per_second(table.mean(rate, following.mode));
        let mean = mean.ok_or("has a mean rate of less than 1 bit/s")?;
        patch.rate = Some(Setting::To(mean));
        patch.traces.rate = Some(following);
    }
    if let Some(latency) = &table.latency_ns {
        patch.latency = Some(Span::from_nanos(table.mean(latency, following.mode)));
        patch.traces.latency = Some(following);
    }
    if let Some(loss) = &table.loss_ppb {
        let mean = u32::try_from(table.mean(loss, following.mode)).ok();
        let mean = mean.and_then(Probability::from_parts_per_billion);
        let mean = mean.unwrap_or(Probability::ALWAYS);
        patch.loss = Some(if mean.is_never() { Loss::None } else { Loss::Independent(mean) });
        patch.traces.loss = Some(following);
    }
    Ok(())
}
