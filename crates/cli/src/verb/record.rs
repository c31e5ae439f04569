//! `record`: what a live run records as evidence; and programs outside any run.

mod outside;

use clap::Subcommand;
use windtunnel_control::{ControlRequest, RecordOrder, RecordStatus, RecordedLayer, TypedRequest};
use windtunnel_model::Bytes;
use windtunnel_model::plan::{FlowPattern, RecordDirection, RecordLayerSet};
use windtunnel_model::record::kind::RecordSource;

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::Outcome;
use crate::live::LiveRunSelector;
use crate::output;
use crate::render::table::{ColumnAlignment, TextTable};
use crate::verb::run::layer;
use outside::HostRecordingOptions;

/// Record a command on the machine's own network, or start and stop recording a live run
///
/// `record -- COMMAND` runs a command as it is, without any emulation, and records what it and the
/// programs that it starts do: their calls on sockets, the state of their TCP connections, and, as
/// root, what the kernel does with their data. It exits with the code of the command. `record --pid`
/// looks at a process that runs. `records` and `explain` read the folder. `record start`, `stop` and
/// `status` are for a live run.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    group = clap::ArgGroup::new("target").args(["pid", "command"]).required(true)
)]
pub(crate) struct RecordArguments {
    #[command(subcommand)]
    order: Option<RecordSubcommand>,
    #[command(flatten)]
    outside: HostRecordingOptions,
}

#[derive(Debug, Subcommand)]
enum RecordSubcommand {
    Start(RecordStartArguments),
    Stop(RecordControlArguments),
    Status(RecordControlArguments),
}

/// Record from now on, or record something else than before
///
/// Without options what the file says is recorded, or all there is. Calls of programs can only be
/// recorded if the run began with `record: standby` or was recorded from the beginning.
#[derive(Debug, clap::Args)]
struct RecordStartArguments {
    /// Only these layers: engine, calls, tcp, kernel
    #[arg(
        long,
        value_name = "LAYER",
        env = "WINDTUNNEL_LAYERS",
        value_delimiter = ',',
        value_parser = layer
    )]
    layers: Vec<RecordSource>,
    /// Only events of these nodes or groups, and of packets from or to them
    #[arg(long, value_name = "NODE", env = "WINDTUNNEL_NODES", value_delimiter = ',')]
    nodes: Vec<String>,
    /// Only flows that a pattern fits, such as `tcp client web:80`; may be repeated
    #[arg(long = "flow", value_name = "PATTERN", env = "WINDTUNNEL_FLOW")]
    flows: Vec<FlowPattern>,
    /// Only one direction of flows: forward (from the side that sent first) or reverse
    #[arg(long, value_name = "WHICH", env = "WINDTUNNEL_DIRECTION", value_parser = direction)]
    direction: Option<RecordDirection>,
    /// The most bytes of records on the disk, instead of that before
    #[arg(long, value_name = "SIZE", env = "WINDTUNNEL_MAX")]
    max: Option<Bytes>,
    #[command(flatten)]
    plain: RecordControlArguments,
}

/// The run, and how the state of its recording is shown.
#[derive(Debug, clap::Args)]
struct RecordControlArguments {
    #[command(flatten)]
    live: LiveRunSelector,
    #[command(flatten)]
    format: OutputFormat,
}

pub(crate) fn run(arguments: &RecordArguments) -> Outcome {
    match &arguments.order {
        None => arguments.outside.run(),
        Some(RecordSubcommand::Start(start)) => {
            start.plain.ask(&ControlRequest::record_start(start.order()))
        }
        Some(RecordSubcommand::Stop(plain)) => plain.ask(&ControlRequest::record_stop()),
        Some(RecordSubcommand::Status(plain)) => plain.ask(&ControlRequest::record_status()),
    }
}

impl RecordStartArguments {
    fn order(&self) -> RecordOrder {
        RecordOrder {
            layers: RecordLayerSet::of(self.layers.clone()),
            nodes: self.nodes.clone(),
            flows: self.flows.clone(),
            direction: self.direction,
            max: self.max,
        }
    }
}

impl RecordControlArguments {
    fn ask(&self, request: &TypedRequest<RecordStatus>) -> Outcome {
        let status = self.live.connect()?.ask(request)?;
        if self.format.json {
            output::json(&status)?;
        } else {
            output::data(&render(&status))?;
        }
        Ok(ExitCategory::Fine.code())
    }
}

fn render(status: &RecordStatus) -> String {
    let mut table = TextTable::new(&[
        ("layer", ColumnAlignment::Left),
        ("state", ColumnAlignment::Left),
        ("events", ColumnAlignment::Right),
        ("records", ColumnAlignment::Right),
        ("lost", ColumnAlignment::Right),
        ("fill", ColumnAlignment::Right),
        ("most", ColumnAlignment::Right),
    ]);
    let percent = |permille: u32| format!("{}.{}%", permille / 10, permille % 10);
    for layer in &status.layers {
        let RecordedLayer { events, records, lost, fill_permille, fill_max_permille, .. } = layer;
        let counts = [events, records, lost].map(u64::to_string);
        let fills = [*fill_permille, *fill_max_permille].map(percent);
        let names = [layer.layer.to_string(), layer.state.to_string()];
        table.row(names.into_iter().chain(counts).chain(fills));
    }
    let mut text = table.render("");
    let why = |layer: &RecordedLayer| Some(format!("{}: {}\n", layer.layer, layer.why.as_ref()?));
    text.extend(status.layers.iter().filter_map(why));
    text.extend(status.failure.iter().map(|failure| format!("{failure}\n")));
    let cost = status.read_ns.checked_div(status.read).unwrap_or(0);
    let RecordStatus { bytes, kept_bytes, files, .. } = status;
    text.push_str(&format!(
        "{bytes} bytes written in {files} files, {kept_bytes} on the disk; {cost}ns a record to \
         read and write\n"
    ));
    text
}

fn direction(text: &str) -> Result<RecordDirection, String> {
    match text {
        "forward" => Ok(RecordDirection::Forward),
        "reverse" => Ok(RecordDirection::Reverse),
        _ => Err(format!("`{text}` is not forward or reverse")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_recording_is_a_line_a_layer_with_reasons_below() {
        let layer = |layer: &str, state: &str, events, lost| RecordedLayer {
            layer: layer.into(),
            state: state.into(),
            why: (state == "unavailable").then(|| "no library".to_owned()),
            events,
            records: events - lost,
            lost,
            fill_permille: 15,
            fill_max_permille: 1000,
        };
        let status = RecordStatus {
            on: true,
            layers: vec![layer("engine", "on", 12, 2), layer("calls", "unavailable", 0, 0)],
            bytes: 900,
            kept_bytes: 400,
            files: 2,
            read: 10,
            read_ns: 450,
            ..RecordStatus::default()
        };
        let expected = "\
layer   state        events  records  lost  fill    most
engine  on               12       10     2  1.5%  100.0%
calls   unavailable       0        0     0  1.5%  100.0%
calls: no library
900 bytes written in 2 files, 400 on the disk; 45ns a record to read and write
";
        assert_eq!(render(&status), expected);
    }
}
