//! Connections that outlived their server, in a summary.

use windtunnel_model::Span;
use windtunnel_trace::report::{FailOverReport, RunReport};

use crate::render::quantity;
use crate::render::table::{ColumnAlignment, TextTable};

/// A line for each service with `fail-over: transparent`.
pub(super) fn transparent(report: &RunReport) -> String {
    let services = report.services.iter();
    let of = |it: &'_ windtunnel_trace::report::ServiceReport| {
        Some((it.service.clone(), it.transparent?))
    };
    let services: Vec<(String, FailOverReport)> = services.filter_map(of).collect();
    if services.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        ("service", ColumnAlignment::Left),
        ("kept", ColumnAlignment::Right),
        ("one replica", ColumnAlignment::Right),
        ("table full", ColumnAlignment::Right),
        ("expelled", ColumnAlignment::Left),
        ("taken over", ColumnAlignment::Right),
        ("lost", ColumnAlignment::Right),
        ("longest silence", ColumnAlignment::Right),
    ]);
    for (name, it) in services.iter().take(SERVICES_MAX) {
        table.row([
            name.clone(),
            it.opened.to_string(),
            it.plain.to_string(),
            it.unkept.to_string(),
            expelled(it),
            it.promoted.to_string(),
            it.lost.to_string(),
            silence(it),
        ]);
    }
    let mut text = table.render("");
    if let Some(more) = services.len().checked_sub(SERVICES_MAX + 1) {
        let more = quantity::count(more + 1, "more service");
        text.push_str(&format!("… and {more}: see run.json\n"));
    }
    text
}

/// `2 silent, 1 differed`.
fn expelled(it: &FailOverReport) -> String {
    let causes = [
        (it.expelled_gone, "gone"),
        (it.expelled_silent, "silent"),
        (it.expelled_stalled, "stalled"),
        (it.expelled_differed, "differed"),
        (it.expelled_finished_alone, "finished"),
        (it.expelled_reset, "reset"),
        (it.expelled_not_opened, "not opened"),
    ];
    let causes = causes.iter().filter(|(count, _)| *count > 0);
    let causes: Vec<String> = causes.map(|(count, word)| format!("{count} {word}")).collect();
    if causes.is_empty() { "0".to_owned() } else { causes.join(", ") }
}

fn silence(it: &FailOverReport) -> String {
    if it.resumed == 0 {
        return "-".to_owned();
    }
    quantity::span(Span::from_nanos(it.silence_max_ns))
}

const SERVICES_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expulsions_are_shown_by_cause_and_silence_where_there_was_one() {
        let mut counted = FailOverReport::default();
        assert_eq!((expelled(&counted), silence(&counted)), ("0".to_owned(), "-".to_owned()));
        counted.expelled_silent = 2;
        counted.expelled_differed = 1;
        (counted.resumed, counted.silence_max_ns) = (1, 130_000_000);
        assert_eq!(expelled(&counted), "2 silent, 1 differed");
        assert_eq!(silence(&counted), "130ms");
    }
}
