//! `service`: the services of a live run, and changes of their replicas.

mod table;

use clap::Subcommand;
use clap::builder::FalseyValueParser;
use serde::Serialize;
use windtunnel_control::{ControlRequest, ServiceList};
use windtunnel_model::plan::{
    EventAction, LoadBalancingPolicy, ScheduledEvent as Planned, Service, ServiceChange,
    ServiceUpdate,
};
use windtunnel_model::{NodeId, Plan, Span};
use windtunnel_trace::event::EventLogEntry;

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::live::LiveRunSelector;
use crate::output;
use crate::render::event;

pub(crate) use table::render as render_services;

/// List services of a live run with their replicas, and change which replicas get new connections
///
/// A service is one address, of which several nodes are replicas; routers redirect its connections
/// to one of them (docs/services.md). A replica registers by itself when its program listens.
/// Changes hold at once for what is new; established connections stay where they are.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct ServiceArguments {
    #[command(subcommand)]
    order: ServiceSubcommand,
}

#[derive(Debug, Subcommand)]
enum ServiceSubcommand {
    List(ServiceListArguments),
    Show(ServiceShowArguments),
    Add(ServiceAddArguments),
    Remove(ServiceRemoveArguments),
    Drain(ServiceDrainArguments),
    Weight(ServiceWeightArguments),
}

/// List all services with their replicas
///
/// `live` are connections and UDP flows that have not ended; `given` those that a replica got since
/// the run began.
#[derive(Debug, clap::Args)]
struct ServiceListArguments {
    #[command(flatten)]
    live: LiveRunSelector,
    #[command(flatten)]
    format: OutputFormat,
}

/// Show one service: its replicas, where each router redirects what is new, and its connections
#[derive(Debug, clap::Args)]
struct ServiceShowArguments {
    /// Name of the service
    service: String,
    #[command(flatten)]
    live: LiveRunSelector,
    #[command(flatten)]
    format: OutputFormat,
}

/// A node, and what becomes of it.
#[derive(Debug, clap::Args)]
struct ServiceReplicaArguments {
    /// Name of the service
    service: String,
    /// Name of the node
    replica: String,
    #[command(flatten)]
    live: LiveRunSelector,
    #[command(flatten)]
    format: OutputFormat,
}

/// Make a node a replica
///
/// It has the service's addresses from then on, and gets connections once a program in it listens,
/// or at once if one does already.
#[derive(Debug, clap::Args)]
struct ServiceAddArguments {
    #[command(flatten)]
    target: ServiceReplicaArguments,
}

/// Make a node a replica no longer
///
/// Its established connections go on; UDP flows go elsewhere at once. It can be added again.
#[derive(Debug, clap::Args)]
struct ServiceRemoveArguments {
    #[command(flatten)]
    target: ServiceReplicaArguments,
}

/// Give a replica no new connections, and let those that it has go on
#[derive(Debug, clap::Args)]
struct ServiceDrainArguments {
    #[command(flatten)]
    target: ServiceReplicaArguments,
    /// Give it new connections again
    #[arg(long, env = "WINDTUNNEL_UNDO", value_parser = FalseyValueParser::new())]
    undo: bool,
}

/// Set a replica's share of new connections, where the policy is `weighted`
#[derive(Debug, clap::Args)]
struct ServiceWeightArguments {
    #[command(flatten)]
    target: ServiceReplicaArguments,
    /// Its weight; 0: nothing new
    #[arg(value_parser = clap::value_parser!(u32).range(0..=i64::from(Service::WEIGHT_MAX)))]
    weight: u32,
}

/// What was done, for `--json`.
#[derive(Debug, Serialize)]
struct ServiceChangeOutput<'a> {
    events: &'a [EventLogEntry],
}

pub(crate) fn run(arguments: &ServiceArguments) -> Outcome {
    match &arguments.order {
        ServiceSubcommand::List(list) => ask(&list.live, &list.format, None),
        ServiceSubcommand::Show(show) => ask(&show.live, &show.format, Some(show.service.clone())),
        ServiceSubcommand::Add(ServiceAddArguments { target }) => {
            target.change(|replica| ServiceUpdate::Add { replica })
        }
        ServiceSubcommand::Remove(ServiceRemoveArguments { target }) => {
            target.change(|replica| ServiceUpdate::Remove { replica })
        }
        ServiceSubcommand::Drain(ServiceDrainArguments { target, undo }) => {
            target.change(|replica| ServiceUpdate::Drain { replica, drain: !undo })
        }
        ServiceSubcommand::Weight(ServiceWeightArguments { target, weight }) => {
            target.change(|replica| ServiceUpdate::Weight { replica, weight: *weight })
        }
    }
}

fn ask(live: &LiveRunSelector, format: &OutputFormat, service: Option<String>) -> Outcome {
    let is_one = service.is_some();
    let list = live.connect()?.ask(&ControlRequest::services(service))?;
    if format.json {
        output::json(&list)?;
    } else if list.services.is_empty() {
        output::talk("this run has no services");
    } else {
        output::data(&if is_one { table::details(&list) } else { listed(&list) })?;
    }
    Ok(ExitCategory::Fine.code())
}

fn listed(list: &ServiceList) -> String {
    table::heading(&list.name, list.elapsed_ns) + &table::render(&list.services)
}

impl ServiceReplicaArguments {
    fn change(&self, update: impl FnOnce(NodeId) -> ServiceUpdate) -> Outcome {
        let plan = self.live.plan()?;
        let service = plan.service_named(&self.service).ok_or_else(|| {
            unknown("service", &self.service, plan.services.iter().map(|it| &it.name))
        })?;
        let node = plan
            .node_named(&self.replica)
            .ok_or_else(|| unknown("node", &self.replica, plan.nodes.iter().map(|it| &it.name)))?;
        let change = ServiceChange { service, update: update(node) };
        self.is_possible(&plan, &change)?;
        let action = EventAction::Service(vec![change]);
        let events = vec![Planned { at: Span::ZERO, action }];
        let events = self.live.connect()?.ask(&ControlRequest::inject(events))?.events;
        if self.format.json {
            output::json(&ServiceChangeOutput { events: &events })?;
        } else {
            events.iter().for_each(|it| output::talk(&event::text(it)));
        }
        Ok(ExitCategory::Fine.code())
    }

    /// Whether it fits the plan; that a node was added since it began, only the run knows.
    fn is_possible(&self, plan: &Plan, change: &ServiceChange) -> Result<(), VerbFailure> {
        plan.validate_service_change(change).map_err(|error| {
            VerbFailure::new(ExitCategory::Usage, format!("service {}: {error}", self.service))
        })?;
        let policy = plan.services[change.service.index()].policy;
        if matches!(change.update, ServiceUpdate::Weight { .. })
            && policy != LoadBalancingPolicy::Weighted
        {
            let name = policy.name();
            let message = format!("service {}: its policy is {name}, not weighted", self.service);
            let hint = "`policy: {weighted: …}` in the file gives replicas weights";
            return Err(VerbFailure::new(ExitCategory::Usage, message).hint(hint.to_owned()));
        }
        Ok(())
    }
}

fn unknown<'a>(what: &str, name: &str, names: impl Iterator<Item = &'a String>) -> VerbFailure {
    let names: Vec<&str> = names.map(String::as_str).collect();
    let message = format!("no {what} is called {name}");
    let shown = names.iter().take(NAMES_LISTED).copied().collect::<Vec<_>>().join(", ");
    let hint = match names.len() {
        0 => format!("this run has no {what}"),
        count if count > NAMES_LISTED => {
            format!("the {what}s are {shown} and {} more", count - NAMES_LISTED)
        }
        _ => format!("the {what}s are {shown}"),
    };
    VerbFailure::new(ExitCategory::Usage, message).hint(hint)
}

const NAMES_LISTED: usize = 12;
