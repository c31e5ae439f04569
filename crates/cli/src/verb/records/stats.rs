//! `records stats`: what records say in sum.

use windtunnel_evidence::statistics::{FlowDirectionCounters, FlowSum, Statistics};

use super::choice::{RecordSelection, wanted};
use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::Outcome;
use crate::output;
use crate::render::quantity::{bytes, count, nanos};
use crate::render::table::{ColumnAlignment, TextTable};

/// Sum records up by layer, flow and link direction; list gaps and what was not seen
#[derive(Debug, clap::Args)]
pub(crate) struct RecordsStatsArguments {
    #[command(flatten)]
    choice: RecordSelection,
    #[command(flatten)]
    format: OutputFormat,
}

pub(crate) fn run(arguments: &RecordsStatsArguments) -> Outcome {
    let (evidence, sieve) = arguments.choice.load()?;
    let statistics = Statistics::of(&evidence, wanted(&evidence, &sieve));
    if arguments.format.json {
        output::json(&statistics)?;
    } else {
        output::data(&render(&statistics))?;
    }
    Ok(ExitCategory::Fine.code())
}

fn render(statistics: &Statistics) -> String {
    let parts =
        [layers(statistics), flows(&statistics.flows), lanes(statistics), notes(statistics)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn layers(statistics: &Statistics) -> String {
    let mut table = TextTable::new(&[
        ("layer", ColumnAlignment::Left),
        ("sources", ColumnAlignment::Right),
        ("records", ColumnAlignment::Right),
        ("lost", ColumnAlignment::Right),
    ]);
    for sum in &statistics.layers {
        let numbers = [sum.sources.to_string(), sum.records.to_string(), sum.lost.to_string()];
        table.row([sum.layer.to_owned()].into_iter().chain(numbers));
    }
    let span = u64::try_from(statistics.last_ns - statistics.first_ns).unwrap_or(0);
    let events = count(usize::try_from(statistics.events).unwrap_or(usize::MAX), "event");
    format!("{}: {events} in {}\n{}", statistics.run, nanos(span), table.render(""))
}

fn flows(flows: &[FlowSum]) -> String {
    if flows.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        ("flow", ColumnAlignment::Right),
        ("", ColumnAlignment::Left),
        ("from", ColumnAlignment::Left),
        ("", ColumnAlignment::Left),
        ("to", ColumnAlignment::Left),
        ("written", ColumnAlignment::Right),
        ("read", ColumnAlignment::Right),
        ("packets", ColumnAlignment::Right),
        ("resent", ColumnAlignment::Right),
        ("dropped", ColumnAlignment::Right),
        ("marked", ColumnAlignment::Right),
    ]);
    let end = |end: &Option<String>| end.clone().unwrap_or_else(|| "?".to_owned());
    for flow in flows.iter().take(ROWS_SHOWN) {
        let names = [flow.flow.to_string(), flow.protocol.clone(), end(&flow.from)];
        let cells = names.into_iter().chain(["→".to_owned(), end(&flow.to)]);
        table.row(cells.chain(way(&flow.forward)));
        let blanks = [String::new(), String::new(), String::new(), "←".to_owned(), String::new()];
        table.row(blanks.into_iter().chain(way(&flow.reverse)));
    }
    let mut text = table.render("");
    if flows.len() > ROWS_SHOWN {
        let more = count(flows.len() - ROWS_SHOWN, "more flow");
        text.push_str(&format!("… and {more}: --json has them all\n"));
    }
    text
}

fn way(way: &FlowDirectionCounters) -> [String; 6] {
    [
        bytes(way.written_bytes),
        bytes(way.read_bytes),
        way.packets.to_string(),
        bytes(way.resent_bytes),
        way.dropped_packets.to_string(),
        way.marked_packets.to_string(),
    ]
}

fn lanes(statistics: &Statistics) -> String {
    if statistics.lanes.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        ("link", ColumnAlignment::Left),
        ("from", ColumnAlignment::Left),
        ("to", ColumnAlignment::Left),
        ("offered", ColumnAlignment::Right),
        ("payload", ColumnAlignment::Right),
        ("delivered", ColumnAlignment::Right),
        ("marked", ColumnAlignment::Right),
        ("dropped", ColumnAlignment::Left),
    ]);
    for lane in &statistics.lanes {
        let dropped: Vec<String> = lane
            .dropped_packets
            .iter()
            .map(|(reason, packets)| format!("{packets} {reason}"))
            .collect();
        table.row([
            lane.link.clone(),
            lane.from.clone(),
            lane.to.clone(),
            lane.offered_packets.to_string(),
            bytes(lane.offered_bytes),
            lane.delivered_packets.to_string(),
            lane.marked_packets.to_string(),
            if dropped.is_empty() { "0".to_owned() } else { dropped.join(", ") },
        ]);
    }
    table.render("")
}

fn notes(statistics: &Statistics) -> String {
    let mut text = String::new();
    for gap in statistics.gaps.iter().take(ROWS_SHOWN) {
        let node = gap.node.as_ref().map(|node| format!(" of {node}")).unwrap_or_default();
        let span = u64::try_from(gap.end_ns - gap.begin_ns).unwrap_or(0);
        let at = u64::try_from(gap.begin_ns).unwrap_or(0);
        let events = gap.events;
        let (span, at) = (nanos(span), nanos(at));
        text.push_str(&format!(
            "lost: {events} events of {}{node} in {span} from {at} on\n",
            gap.layer
        ));
    }
    if statistics.gaps.len() > ROWS_SHOWN {
        let more = count(statistics.gaps.len() - ROWS_SHOWN, "more gap");
        text.push_str(&format!("… and {more}: --json has them all\n"));
    }
    for sentence in &statistics.unseen {
        text.push_str(&format!("not seen: {sentence}\n"));
    }
    text
}

const ROWS_SHOWN: usize = 40;
