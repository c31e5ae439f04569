//! `explain`: where the time of requests went.

mod layers;

use clap::builder::FalseyValueParser;
use windtunnel_evidence::explain::RequestKind;
use windtunnel_evidence::explain::report::{
    LatencyBreakdown, LossReport, PartName, PartSum, RequestReport, RequestSelection,
};
use windtunnel_evidence::file::LaneName;
use windtunnel_evidence::history::EndpointRole;
use windtunnel_model::plan::IpTransport;

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::output;
use crate::records::RunFolder;
use crate::render::quantity::{bytes, count, nanos};
use crate::render::table::{ColumnAlignment, TextTable};

/// Say why requests took as long as they did: each nanosecond has one cause
///
/// A request is a burst of writes of a client and the bytes that answer it, or the set-up of a
/// connection (number 0 of its flow). Its time is what the client can measure: from the begin of
/// its first write to the end of the read that got the last byte. The parts add up to that time.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    run: RunFolder,
    /// Explain this one, such as `3:17`
    #[arg(long, value_name = "FLOW:NUMBER", env = "WINDTUNNEL_REQUEST", value_parser = request)]
    request: Option<(u32, u32)>,
    /// List so many of the slowest requests
    #[arg(
        short = 'n',
        long,
        value_name = "NUMBER",
        default_value_t = 5,
        env = "WINDTUNNEL_SLOWEST"
    )]
    slowest: usize,
    /// List all requests
    #[arg(long, conflicts_with = "request", env = "WINDTUNNEL_ALL", value_parser = FalseyValueParser::new())]
    all: bool,
    /// Explain only requests of flows that this node began
    #[arg(long, value_name = "NODE", conflicts_with = "request", env = "WINDTUNNEL_CLIENT")]
    client: Option<String>,
    /// Say instead how long bytes took between programs and the wire, and what the stacks made of
    /// the programs' writes: sizes and spacing of both
    #[arg(long, conflicts_with_all = ["request", "all", "client"], env = "WINDTUNNEL_LAYERS", value_parser = FalseyValueParser::new())]
    layers: bool,
    #[command(flatten)]
    format: OutputFormat,
}

fn request(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once(':');
    let parsed = parts.and_then(|(flow, number)| Some((flow.parse().ok()?, number.parse().ok()?)));
    parsed.ok_or_else(|| "a request is FLOW:NUMBER, such as 3:17".to_owned())
}

pub(crate) fn run(arguments: &ExplainArguments) -> Outcome {
    if arguments.layers {
        return layers::run(&arguments.run.load()?, arguments.format.json);
    }
    let choice = match (arguments.request, arguments.all) {
        (Some((flow, number)), _) => RequestSelection::One { flow, number },
        (None, true) => RequestSelection::All,
        (None, false) => RequestSelection::Slowest(arguments.slowest),
    };
    let client = arguments.client.as_deref();
    let report = LatencyBreakdown::of(&arguments.run.load()?, choice, client);
    if let Some(client) = client.filter(|_| report.requests_in_all == 0) {
        let text = format!("the run has no request of the node `{client}`");
        let hint = "`windtunnel explain --all` lists those of all nodes that were recorded";
        return Err(VerbFailure::new(ExitCategory::Usage, text).hint(hint));
    }
    if let (Some((flow, number)), true) = (arguments.request, report.requests.is_empty()) {
        let text = format!("the run has no request {flow}:{number}");
        let hint = "`windtunnel explain --all` lists them";
        return Err(VerbFailure::new(ExitCategory::Usage, text).hint(hint));
    }
    if arguments.format.json {
        output::json(&report)?;
    } else {
        output::data(&render(&report, arguments.request.is_some()))?;
    }
    Ok(ExitCategory::Fine.code())
}

/// The requests, then the sum of all, then what could not be explained.
fn render(report: &LatencyBreakdown, one: bool) -> String {
    let mut text = String::new();
    for request in &report.requests {
        text.push_str(&one_request(request, one));
    }
    if !one {
        text.push_str(&sum(report));
    }
    for problem in &report.problems {
        text.push_str(&format!("not explained: {problem}\n"));
    }
    text
}

fn one_request(request: &RequestReport, timeline: bool) -> String {
    let (asks, answers) = match request.from {
        EndpointRole::Server => (&request.server, &request.client),
        EndpointRole::Client => (&request.client, &request.server),
    };
    let mut text = format!(
        "{} {}: {asks} → {answers} ({}), {} after the run began: {}{}\n",
        request.kind.name(),
        request.request,
        request.protocol,
        nanos(request.begin_ns),
        nanos(request.duration_ns),
        sizes(request),
    );
    let mut table = TextTable::new(&COLUMNS);
    for part in &request.parts {
        table.row(row(&part.part, part.ns, request.duration_ns));
    }
    table.lines().iter().skip(1).for_each(|line| text.push_str(&format!("  {line}\n")));
    if timeline {
        let mut table = TextTable::new(&[
            ("at", ColumnAlignment::Right),
            ("for", ColumnAlignment::Right),
            ("", ColumnAlignment::Left),
        ]);
        for part in &request.timeline {
            table.row([nanos(part.begin_ns), nanos(part.ns), name(&part.part)]);
        }
        text.push_str(&table.render("  "));
    }
    for loss in &request.losses {
        text.push_str(&format!("  {}\n", loss_text(loss, request)));
    }
    text.push('\n');
    text
}

fn sizes(request: &RequestReport) -> String {
    let size = |size: u64| match request.protocol.known() {
        Some(IpTransport::Udp) => count(usize::try_from(size).unwrap_or(usize::MAX), "datagram"),
        _ => bytes(size),
    };
    match request.kind {
        RequestKind::Connect => String::new(),
        RequestKind::Message => format!(", {}", size(request.asked)),
        RequestKind::Exchange => {
            format!(", {} answered by {}", size(request.asked), size(request.answered))
        }
    }
}

fn row(part: &PartName, ns: u64, whole: u64) -> [String; 4] {
    let share = u128::from(ns) * 1000 / u128::from(whole.max(1));
    let bar = usize::try_from(share * BAR / 1000).unwrap_or(0);
    [nanos(ns), format!("{}.{}%", share / 10, share % 10), "#".repeat(bar), name(part)]
}

/// A part, in words.
fn name(part: &PartName) -> String {
    let side = part.side.map(|side| format!("{}: ", side.name())).unwrap_or_default();
    match &part.lane {
        Some(lane) => format!("{} of {}", part.part, direction(lane)),
        None => format!("{side}{}", part.meaning),
    }
}

fn direction(lane: &LaneName) -> String {
    format!("{} ({} → {})", lane.link, lane.from, lane.to)
}

fn loss_text(loss: &LossReport, request: &RequestReport) -> String {
    let is_datagram = request.protocol == IpTransport::Udp;
    let unit = if is_datagram { "datagram" } else { "byte" };
    let place = match &loss.dropped {
        Some(drop) => format!("dropped on {}: {}", direction(&drop.lane), drop.reason),
        None => "lost, on no recorded link".to_owned(),
    };
    format!(
        "lost: {unit} {} of the {}, sent at {}, {place}; sent again {} later: {}",
        loss.offset,
        loss.sender.name(),
        nanos(loss.sent_ns),
        nanos(loss.resent_ns.saturating_sub(loss.sent_ns)),
        loss.notice.name()
    )
}

fn sum(report: &LatencyBreakdown) -> String {
    let requests = count(report.requests_in_all, "request");
    let mut text = format!("{requests}, {} in all\n", nanos(report.duration_ns));
    let mut table = TextTable::new(&[
        ("time", ColumnAlignment::Right),
        ("share", ColumnAlignment::Right),
        ("requests", ColumnAlignment::Right),
        ("part", ColumnAlignment::Left),
    ]);
    for PartSum { part, ns, requests } in &report.parts {
        let [time, share, ..] = row(part, *ns, report.duration_ns);
        table.row([time, share, requests.to_string(), name(part)]);
    }
    text.push_str(&table.render("  "));
    text
}

const COLUMNS: [(&str, ColumnAlignment); 4] = [
    ("time", ColumnAlignment::Right),
    ("share", ColumnAlignment::Right),
    ("", ColumnAlignment::Left),
    ("part", ColumnAlignment::Left),
];
/// Characters of a bar that stands for all.
const BAR: u128 = 30;
