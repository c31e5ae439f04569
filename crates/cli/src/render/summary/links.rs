//! Link directions of a summary.

use std::collections::BTreeMap;

use windtunnel_model::{LinkProfile, Probability, Span};
use windtunnel_trace::lateness::LatenessSummary;
use windtunnel_trace::report::{AchievedLinkFigures, LinkPhaseReport, LinkReport, RunReport};

use crate::render::paths::asked_rate;
use crate::render::quantity;
use crate::render::table::{ColumnAlignment, TextTable};

/// Requested values beside achieved ones: a row for each direction, or for each phase of one that
/// was changed.
pub(super) fn links(report: &RunReport) -> String {
    let shown = report.links.iter().filter(|link| link.offered_packets > 0);
    let rows: Vec<LinkSummaryRow<'_>> = shown.flat_map(LinkSummaryRow::all).collect();
    if rows.is_empty() {
        return String::new();
    }
    let phases = rows.iter().any(|row| row.during.is_some());
    let during = phases.then_some(("during", ColumnAlignment::Right));
    let columns: Vec<(&str, ColumnAlignment)> =
        [("link", ColumnAlignment::Left), ("direction", ColumnAlignment::Left)]
            .into_iter()
            .chain(during)
            .chain([
                ("latency", ColumnAlignment::Right),
                ("achieved", ColumnAlignment::Right),
                ("rate", ColumnAlignment::Right),
                ("achieved", ColumnAlignment::Right),
                ("loss", ColumnAlignment::Right),
                ("achieved", ColumnAlignment::Right),
                ("delivered", ColumnAlignment::Right),
                ("dropped", ColumnAlignment::Left),
                ("lateness p99", ColumnAlignment::Right),
            ])
            .collect();
    let mut table = TextTable::new(&columns);
    for row in rows.iter().take(LINKS_MAX) {
        table.row(row.cells(phases));
    }
    let mut text = table.render("");
    if let Some(more) = rows.len().checked_sub(LINKS_MAX + 1) {
        let noun = if phases { "more row" } else { "more link direction" };
        let more = quantity::count(more + 1, noun);
        text.push_str(&format!("… and {more}: see run.json\n"));
    }
    text
}

/// A direction, or one of its phases.
struct LinkSummaryRow<'a> {
    link: &'a LinkReport,
    during: Option<(u64, u64)>,
    asked: &'a LinkProfile,
    achieved: &'a AchievedLinkFigures,
    delivered: u64,
    dropped: &'a BTreeMap<String, u64>,
    lateness: &'a LatenessSummary,
}

impl<'a> LinkSummaryRow<'a> {
    fn all(link: &'a LinkReport) -> Vec<LinkSummaryRow<'a>> {
        if link.phases.is_empty() {
            return vec![LinkSummaryRow {
                link,
                during: None,
                asked: &link.asked,
                achieved: &link.achieved,
                delivered: link.delivered_packets,
                dropped: &link.dropped_packets,
                lateness: &link.lateness,
            }];
        }
        let row = |phase: &'a LinkPhaseReport| {
            let LinkPhaseReport { asked, achieved, dropped_packets: dropped, lateness, .. } = phase;
            let during = Some((phase.from_ns, phase.until_ns));
            let delivered = phase.delivered_packets;
            LinkSummaryRow { link, during, asked, achieved, delivered, dropped, lateness }
        };
        link.phases.iter().map(row).collect()
    }

    fn cells(&self, phases: bool) -> Vec<String> {
        let dash = || "-".to_owned();
        let LinkSummaryRow { link, asked, achieved, .. } = self;
        let dropped: Vec<String> = self
            .dropped
            .iter()
            .filter(|(_, packets)| **packets > 0)
            .map(|(reason, packets)| format!("{packets} {reason}"))
            .collect();
        let during = match self.during {
            Some((from, until)) => {
                format!("{} to {}", after(from), after(until))
            }
            None => "all".to_owned(),
        };
        let mut cells = vec![link.link.clone(), link.direction.clone()];
        cells.extend(phases.then_some(during));
        cells.extend([
            latency_asked(asked),
            achieved.latency_mean_ns.map_or_else(dash, quantity::nanos),
            asked.rate.map_or_else(dash, |rate| asked_rate(rate, asked.traces.rate.is_some())),
            achieved.rate_busy_bit_per_s.map_or_else(dash, quantity::rate),
            match asked.traces.loss {
                Some(_) => format!("trace (mean {})", quantity::loss(asked.loss.long_run())),
                None => quantity::loss(asked.loss.long_run()),
            },
            achieved
                .loss_ppb
                .and_then(Probability::from_parts_per_billion)
                .map_or_else(dash, quantity::loss),
            self.delivered.to_string(),
            if dropped.is_empty() { dash() } else { dropped.join(", ") },
            match self.lateness.packets {
                0 => dash(),
                _ => quantity::nanos(self.lateness.p99_ns),
            },
        ]);
        cells
    }
}

fn after(nanos: u64) -> String {
    if nanos == 0 { "0s".to_owned() } else { quantity::nanos(nanos) }
}

/// `10ms` or, with jitter, `10ms+2ms`.
fn latency_asked(asked: &LinkProfile) -> String {
    let latency = quantity::span(asked.latency);
    let latency = match asked.traces.latency {
        Some(_) => format!("trace (mean {latency})"),
        None => latency,
    };
    match asked.jitter.spread {
        Span::ZERO => latency,
        spread => format!("{latency}+{}", quantity::span(spread)),
    }
}

const LINKS_MAX: usize = 40;
