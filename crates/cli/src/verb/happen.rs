//! `do`: events of the scenario file, now.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use windtunnel_control::{ControlRequest, EventInjectionResult};
use windtunnel_model::{NodeId, Span};
use windtunnel_scenario::{LiveRunMoment, ScenarioNotice};
use windtunnel_trace::event::EventLogEntry;
use windtunnel_trace::moment;

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::live::LiveRunSelector;
use crate::load::read_named;
use crate::output;
use crate::render::event;

/// Let an event happen in a live run, in the syntax of the scenario file
///
/// The event is one of `events` in a scenario file, without `at`: `{link: ocean, direction: up,
/// down: true}`, `{node: peers, do: kill, some: 20%}`, `partition: [[a, b], [c]]`, `{flap: {link:
/// ocean, every: 500ms, down: 100ms, for: 10s}}`, `{churn: {nodes: peers, rate: 20%, every: 10s,
/// for: 60s}}`; or a list of them, all at one instant. Immediate events are answered with their
/// time; later ones are done by the run. docs/faults.md has the whole vocabulary.
#[derive(Debug, clap::Args)]
pub(crate) struct DoArguments {
    /// The event, or a list of events
    event: String,
    #[command(flatten)]
    live: LiveRunSelector,
    #[command(flatten)]
    format: OutputFormat,
}

/// The events, for `--json`.
#[derive(Debug, Serialize)]
struct EventInjectionOutput<'a> {
    events: &'a [EventLogEntry],
    later: usize,
    until_ns: u64,
    notices: &'a [ScenarioNotice],
}

pub(crate) fn run(arguments: &DoArguments) -> Outcome {
    let mut client = arguments.live.connect()?;
    let plan = arguments.live.plan()?;
    let status = client.ask(&ControlRequest::ps())?;
    let absent: BTreeSet<NodeId> = (0..)
        .zip(&status.nodes)
        .filter(|(_, node)| node.absent)
        .map(|(index, _)| NodeId(index))
        .collect();
    let now = Span::from_nanos(status.elapsed_ns);
    let moment = LiveRunMoment { plan: &plan, now, absent: &absent };
    // Relative paths start where the command was given.
    let files = |name: &str| read_named(Path::new(""), name);
    let (events, notices) = windtunnel_scenario::parse_events(&arguments.event, &files, &moment)
        .map_err(VerbFailure::Event)?;
    let EventInjectionResult { events, later, until_ns } =
        client.ask(&ControlRequest::inject(events))?;
    let happened = EventInjectionOutput { events: &events, later, until_ns, notices: &notices };
    if arguments.format.json {
        output::json(&happened)?;
    } else {
        output::talk(text(&happened).trim_end());
    }
    Ok(ExitCategory::Fine.code())
}

fn text(happened: &EventInjectionOutput<'_>) -> String {
    let mut text = String::new();
    for notice in happened.notices {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "notice: {}", notice.message);
    }
    for event in happened.events {
        let _ = writeln!(text, "{}", event::text(event));
    }
    let until = moment::seconds(happened.until_ns);
    match happened.later {
        0 if happened.events.is_empty() => text.push_str("nothing happens\n"),
        0 => {}
        1 => {
            let _ = writeln!(text, "one more event is to come, at {until}s of the run");
        }
        later => {
            let _ =
                writeln!(text, "{later} more events are to come, the last at {until}s of the run");
        }
    }
    text
}
