//! `check`: whether a scenario is valid, and what network it describes.

mod over;
mod services;

use clap::builder::FalseyValueParser;
use serde::Serialize;
use windtunnel_host::{PlanFitConcern, RunError};
use windtunnel_model::{Bytes, Lane, Plan, Span};
use windtunnel_resource::fits_reservations;
use windtunnel_routing::Routes;
use windtunnel_scenario::{LoadedScenario, ScenarioOverrides};

use crate::arguments::{OutputFormat, ReservationOptions};
use crate::cluster::machines::ClusterHostOptions;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::load::{self, ScenarioFile};
use crate::output;
use crate::render::paths::{EndToEndPath, NodePairFilter, PathTableColumns, paths, table};
use crate::render::placement::PlacementOutput;
use crate::render::plan::{EventScheduleEntry, planned};
use crate::render::quantity::count;
use crate::render::values::{LinkValueRow, values, values_table};

use over::MachineCheck;

/// Validate a scenario and show its paths, without running anything
///
/// Needs no rights. Prints latency, bottleneck, loss and hops for each ordered pair of nodes (each
/// of their ways, where routers spread flows over several), the values of links that have a preset
/// or follow a trace, services, the lengths of queues that the file leaves to the default, and whether the
/// plan fits this machine. With --hosts: whether machines of a cluster carry it, which node goes on
/// which, and the most that can cross their uplinks.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    scenario: ScenarioFile,
    /// Show every pair of nodes [default: the first 200]
    #[arg(long, env = "WINDTUNNEL_ALL", value_parser = FalseyValueParser::new())]
    all: bool,
    /// Show all planned events in the order of time, with repetitions, flaps and churn expanded
    #[arg(long, env = "WINDTUNNEL_EVENTS", value_parser = FalseyValueParser::new())]
    events: bool,
    /// Only paths from this node or group
    #[arg(long, value_name = "NODE", env = "WINDTUNNEL_FROM")]
    from: Option<String>,
    /// Only paths to this node or group
    #[arg(long, value_name = "NODE", env = "WINDTUNNEL_TO")]
    to: Option<String>,
    /// Memory for packets in queues and in flight that a run on this machine would get
    #[arg(long, value_name = "SIZE", env = "WINDTUNNEL_PACKET_MEMORY", default_value = "1GB")]
    packet_memory: Bytes,
    #[command(flatten)]
    added: ReservationOptions,
    #[command(flatten)]
    machines: ClusterHostOptions,
    #[command(flatten)]
    format: OutputFormat,
}

/// The properties of a valid scenario.
#[derive(Debug, Serialize)]
struct ScenarioCheckReport<'p> {
    name: String,
    seed: u64,
    plan_hash: String,
    duration: Option<Span>,
    nodes: usize,
    routers: usize,
    #[serde(skip_serializing_if = "is_zero")]
    lans: usize,
    links: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    services: Vec<services::ServicePlanSummary>,
    #[serde(skip)]
    extras: PathTableColumns,
    paths: Vec<EndToEndPath>,
    paths_left_out: usize,
    #[serde(skip)]
    all: bool,
    default_queues: Vec<DefaultQueue>,
    /// Links with values from a preset or a trace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    described: Vec<LinkValueRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<EventScheduleEntry<'p>>>,
    notices: Vec<ScenarioWarning>,
    concerns: Vec<ConcernText>,
    /// With --hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<PlacementOutput>,
    /// The placement for people, and the verdict on the machines.
    #[serde(skip)]
    texts: (String, String),
}

#[derive(Debug, Serialize)]
struct DefaultQueue {
    link: String,
    direction: String,
    queue: String,
}

#[derive(Debug, Serialize)]
struct ScenarioWarning {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    message: String,
}

#[derive(Debug, Serialize)]
struct ConcernText {
    text: String,
    hint: Option<String>,
}

pub(crate) fn run(arguments: &CheckArguments) -> Outcome {
    let several_machines = arguments.machines.are_named();
    let reserve = &arguments.added.reserve;
    let instead = ScenarioOverrides { several_machines, reserve, ..ScenarioOverrides::default() };
    let file = arguments.scenario.path()?;
    arguments.machines.refuse_two_inputs(&file)?;
    let loaded = load::scenario(&file, instead, false)?;
    known(&loaded.plan, arguments.from.as_deref())?;
    known(&loaded.plan, arguments.to.as_deref())?;
    // Machines that are named count what they have themselves.
    let admitted = if several_machines { Ok(()) } else { fits_reservations(&loaded.plan) };
    let over = MachineCheck::ask(&arguments.machines, &loaded, &file)?;
    let checked = ScenarioCheckReport::new(&loaded, arguments, over.as_ref());
    let refused = over.as_ref().is_some_and(MachineCheck::is_refused);
    let admitted = admitted.map_err(|error| VerbFailure::from(RunError::from(error)));
    if arguments.format.json {
        output::json(&checked)?;
        admitted?;
        if let Some(failure) = over.and_then(MachineCheck::beside_placement) {
            return Err(failure);
        }
        let exit = if refused { ExitCategory::Scenario } else { ExitCategory::Fine };
        return Ok(exit.code());
    }
    output::data(&render(&checked))?;
    admitted?;
    match over.and_then(MachineCheck::refused) {
        Some(failure) => Err(failure),
        None => Ok(ExitCategory::Fine.code()),
    }
}

fn known(plan: &Plan, name: Option<&str>) -> Result<(), VerbFailure> {
    let Some(name) = name else { return Ok(()) };
    if plan.nodes.iter().any(|node| node.name == name || node.group == name) {
        return Ok(());
    }
    Err(VerbFailure::new(
        ExitCategory::Usage,
        format!("the scenario has no node or group `{name}`"),
    ))
}

impl<'p> ScenarioCheckReport<'p> {
    fn new(
        loaded: &'p LoadedScenario,
        arguments: &CheckArguments,
        over: Option<&MachineCheck>,
    ) -> Self {
        let plan = &loaded.plan;
        let most = match (arguments.all, arguments.format.json) {
            (true, _) => usize::MAX,
            (false, true) => PATHS_IN_JSON,
            (false, false) => PATHS_SHOWN,
        };
        let filter =
            NodePairFilter { from: arguments.from.as_deref(), to: arguments.to.as_deref() };
        let (paths, paths_left_out) = paths(plan, &Routes::compute(plan), filter, most);
        let concerns = match over {
            Some(over) => over.concerns.clone(),
            None => windtunnel_host::fits(plan, arguments.packet_memory),
        };
        ScenarioCheckReport {
            plan_hash: windtunnel_scenario::plan_hash(plan),
            seed: plan.seed,
            duration: plan.duration,
            nodes: plan.nodes.len(),
            routers: plan.routers.len(),
            lans: plan.lans.len(),
            links: plan.links.len(),
            services: services::planned(plan),
            extras: PathTableColumns::of(plan),
            paths,
            paths_left_out,
            all: arguments.all,
            default_queues: default_queues(plan),
            described: values(plan, &loaded.described),
            events: arguments.events.then(|| planned(plan)),
            notices: loaded.notices.iter().cloned().map(ScenarioWarning::from).collect(),
            texts: (
                over.map(|over| over.text(plan)).unwrap_or_default(),
                verdict(over, concerns.is_empty() && !over.is_some_and(MachineCheck::warns)),
            ),
            concerns: concerns.into_iter().map(ConcernText::from).collect(),
            placement: over.map(|over| over.json(plan)),
            name: plan.name.clone(),
        }
    }
}

impl From<PlanFitConcern> for ConcernText {
    fn from(PlanFitConcern { text, hint }: PlanFitConcern) -> Self {
        ConcernText { text, hint }
    }
}

impl From<windtunnel_scenario::ScenarioNotice> for ScenarioWarning {
    fn from(notice: windtunnel_scenario::ScenarioNotice) -> Self {
        let (line, column) = notice.place.unzip();
        ScenarioWarning { line, column, message: notice.message }
    }
}

fn default_queues(plan: &Plan) -> Vec<DefaultQueue> {
    let lanes = (0..plan.links.len() * 2).map(Lane::from_index);
    let queues = lanes.filter_map(|lane| {
        let link = &plan.links[lane.link.index()];
        let profile = &link.profiles[lane.direction.index()];
        let limit = profile.effective_queue().filter(|_| profile.queue.is_none())?;
        let direction = plan.lane_name(lane);
        Some(DefaultQueue { link: link.name.clone(), direction, queue: limit.to_string() })
    });
    queues.collect()
}

fn render(checked: &ScenarioCheckReport<'_>) -> String {
    let ScenarioCheckReport { name, seed, .. } = checked;
    let lans = (checked.lans > 0).then(|| count(checked.lans, "LAN"));
    let size = [count(checked.nodes, "node"), count(checked.routers, "router")];
    let size: Vec<String> =
        size.into_iter().chain(lans).chain([count(checked.links, "link")]).collect();
    let mut text = table(checked.extras, &checked.paths).render("");
    if checked.paths_left_out > 0 {
        let more = count(checked.paths_left_out, "more pair");
        text.push_str(&format!("… and {more}: --all shows them, --from and --to choose\n"));
    }
    if !checked.described.is_empty() {
        text.push_str(&values_table(&checked.described, checked.all));
    }
    text.push_str(&services::text(&checked.services));
    for event in checked.events.iter().flatten() {
        text.push_str(&format!("at {}: {}\n", event.at, event.what));
    }
    for notice in &checked.notices {
        let place = notice.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        text.push_str(&format!("notice: {place}{}\n", notice.message));
    }
    text.push_str(&checked.texts.0);
    for ConcernText { text: concern, hint } in &checked.concerns {
        text.push_str(&format!("warning: {concern}\n"));
        if let Some(hint) = hint {
            text.push_str(&format!("hint: {hint}\n"));
        }
    }
    let (verdict, size) = (&checked.texts.1, size.join(", "));
    text.push_str(&format!("{name} is valid and {verdict}: {size}, seed {seed}\n"));
    text
}

/// Whether the machines carry the scenario.
fn verdict(over: Option<&MachineCheck>, no_concerns: bool) -> String {
    let machines =
        over.map_or_else(|| "this machine".to_owned(), |over| count(over.machines(), "machine"));
    match over.is_some_and(MachineCheck::is_refused) {
        true => format!("cannot be carried by {machines}"),
        false if no_concerns => format!("fits {machines}"),
        false => format!("may not fit {machines}"),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

const PATHS_SHOWN: usize = 200;
const PATHS_IN_JSON: usize = 100_000;
