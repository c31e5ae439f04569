//! `explain --layers`: from programs to the wire and back.

use windtunnel_evidence::RecordedRun;
use windtunnel_evidence::modulation::{ModulationReport, QuantileSummary, SizeSpacingStatistics};

use crate::exit::ExitCategory;
use crate::failure::Outcome;
use crate::output;
use crate::render::quantity::{bytes, nanos};
use crate::render::table::{ColumnAlignment, TextTable};

pub(super) fn run(evidence: &RecordedRun, json: bool) -> Outcome {
    let all = ModulationReport::all(evidence);
    if json {
        output::json(&all)?;
    } else {
        output::data(&all.iter().map(text).collect::<String>())?;
    }
    Ok(ExitCategory::Fine.code())
}

fn text(named: &ModulationReport) -> String {
    let ModulationReport { protocol, from, to, modulation } = named;
    let mut table = TextTable::new(&[
        ("", ColumnAlignment::Left),
        ("count", ColumnAlignment::Right),
        ("bytes", ColumnAlignment::Right),
        ("", ColumnAlignment::Left),
        ("median", ColumnAlignment::Right),
        ("p90", ColumnAlignment::Right),
        ("p99", ColumnAlignment::Right),
        ("most", ColumnAlignment::Right),
    ]);
    series(&mut table, "written", modulation.writes.as_ref());
    delay(&mut table, "write to wire", modulation.to_wire_ns.as_ref());
    series(&mut table, "on the wire", modulation.packets.as_ref());
    delay(&mut table, "wire to read", modulation.to_program_ns.as_ref());
    series(&mut table, "read", modulation.reads.as_ref());
    format!("flow {}: {from} → {to} ({protocol})\n{}\n", modulation.flow, table.render("  "))
}

fn series(table: &mut TextTable, name: &str, series: Option<&SizeSpacingStatistics>) {
    let Some(series) = series else { return };
    let (count, sum) = (series.count.to_string(), bytes(series.bytes));
    let sizes = values(&series.size, |size| format!("{size}B"));
    table.row([name.to_owned(), count, sum, "size".to_owned()].into_iter().chain(sizes));
    if let Some(spacing) = &series.spacing_ns {
        let blank = || String::new();
        let spacing = values(spacing, nanos);
        table.row([blank(), blank(), blank(), "spacing".to_owned()].into_iter().chain(spacing));
    }
}

fn delay(table: &mut TextTable, name: &str, delay: Option<&QuantileSummary>) {
    let Some(delay) = delay else { return };
    let first = [name.to_owned(), String::new(), String::new(), "delay".to_owned()];
    table.row(first.into_iter().chain(values(delay, nanos)));
}

fn values(quantiles: &QuantileSummary, text: impl Fn(u64) -> String) -> [String; 4] {
    [quantiles.p50, quantiles.p90, quantiles.p99, quantiles.max].map(text)
}
