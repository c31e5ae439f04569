//! `run --hosts`: a run over machines of a cluster, from the file to the verdict.

use std::path::PathBuf;
use std::sync::Arc;

use windtunnel_cluster::protocol::run::{Member, RunSetup, text_of};
use windtunnel_cluster::protocol::{Card, Reserved};
use windtunnel_cluster::{ClusterKey, Parts, parts};
use windtunnel_control::part::with_causes;
use windtunnel_host::{Folder, Observer, Options};
use windtunnel_model::Plan;
use windtunnel_placement::{Load, Placement, Traffic};
use windtunnel_trace::report::Report;

use super::conduct::{self, Conductor, Stage};
use super::failed;
use super::machines::Found;
use super::placing::{Site, concerns, placed};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// What a run over machines needs beside its plan.
pub(crate) struct Over<'a> {
    pub(crate) found: &'a Found,
    pub(crate) key: &'a ClusterKey,
    /// Whether packets between machines go in the clear.
    pub(crate) plain: bool,
    /// Whether nobody waits for the end.
    pub(crate) detach: bool,
    pub(crate) quiet: bool,
}

/// Does a whole run; `None` if it goes on without us.
pub(crate) fn run(
    plan: &Plan,
    options: &Options,
    over: &Over<'_>,
    face: &Arc<dyn Observer>,
) -> Result<Option<Report>, Failure> {
    let folder = folder(options, plan)?;
    let begun = begin(plan, options, over, face);
    if begun.is_err() || over.detach {
        folder.discard();
    }
    let (setup, conductor) = begun?;
    if over.detach {
        if !over.quiet {
            let (run, first) = (text_of(setup.run), setup.members.first());
            let host = first.map_or_else(String::new, |member| member.address.to_string());
            output::talk(&format!(
                "the run goes on; `windtunnel attach {run} --host {host}` follows it and fetches its results"
            ));
        }
        output::data(&format!("{}\n", text_of(setup.run)))?;
        return Ok(None);
    }
    finish(conductor, &setup, options, &folder).map(Some)
}

fn begin(
    plan: &Plan,
    options: &Options,
    over: &Over<'_>,
    face: &Arc<dyn Observer>,
) -> Result<(RunSetup, Conductor), Failure> {
    let setup = setup(plan, options, over)?;
    if !over.quiet {
        tell(&setup, over);
    }
    let signals = conduct::signals()?;
    let parts = Parts::begin(&setup, over.key);
    let mut conductor = Conductor::new(&setup, parts, Arc::clone(face), Stage::Binding, signals);
    conductor.until_begun()?;
    if over.detach {
        conductor.until_all_know()?;
    }
    Ok((setup, conductor))
}

/// Follows a run that others have begun, to its end.
pub(crate) fn attend(
    setup: &RunSetup,
    options: &Options,
    key: &ClusterKey,
    face: &Arc<dyn Observer>,
) -> Result<Report, Failure> {
    let folder = folder(options, &setup.plan)?;
    let signals = conduct::signals()?;
    let parts = Parts::watch(setup, key);
    let conductor = Conductor::new(setup, parts, Arc::clone(face), Stage::Running, signals);
    finish(conductor, setup, options, &folder)
}

fn finish(
    mut conductor: Conductor,
    setup: &RunSetup,
    options: &Options,
    folder: &Folder,
) -> Result<Report, Failure> {
    let former = folder.latest();
    // Not before: what comes to nothing must not take the place of the last run.
    if options.link_latest
        && let Err(error) = folder.link_latest()
    {
        output::talk(&format!("warning: {}", with_causes(&error)));
    }
    conductor.until_over(folder)?;
    let gathered = conductor.fetch(folder)?;
    let judged = windtunnel_host::gather::gather(&setup.plan, options, folder, &gathered);
    let report = judged.map_err(|error| Failure::Told {
        error: error.into(),
        hint: None,
        code: Exit::Machine.code(),
    })?;
    if report.partial && options.link_latest {
        folder.unlink_latest(former.as_deref());
    }
    conductor.forget(folder);
    Ok(report)
}

fn folder(options: &Options, run: &Plan) -> Result<Folder, Failure> {
    let made = Folder::create(&options.folder, run).and_then(|folder| {
        let plan = serde_json::to_vec_pretty(run).unwrap_or_default();
        folder.write("plan.json", &plan)?;
        folder.reserve_report(run)?;
        Ok(folder)
    });
    made.map_err(|error| {
        let hint = Some("name a new folder with --out DIR".to_owned());
        Failure::Told { error: error.into(), hint, code: Exit::Machine.code() }
    })
}

fn setup(plan: &Plan, options: &Options, over: &Over<'_>) -> Result<RunSetup, Failure> {
    let cards = &over.found.cards;
    let site = Site::of(cards);
    let placement = placed(plan, &site)?;
    if !over.quiet {
        crate::verb::run::warn(&concerns(cards, &site, &placement));
    }
    let (members, places) = members(cards, &site, &placement);
    Ok(RunSetup {
        run: parts::run_number().map_err(failed)?,
        plan: plan.clone(),
        plan_hash: options.plan_hash.clone(),
        members,
        placement: places,
        key: if over.plain { None } else { Some(parts::packet_key().map_err(failed)?) },
        base_dir: options.base_dir.clone(),
        shared: options.shared(),
    })
}

/// The machines that have nodes, and the member by node.
fn members(cards: &[Card], site: &Site, placement: &Placement) -> (Vec<Member>, Vec<u16>) {
    let mut numbers = vec![None; cards.len()];
    let mut members = Vec::new();
    for (at, (card, host)) in cards.iter().zip(&site.hosts).enumerate() {
        if placement.nodes_on(at).next().is_some() {
            numbers[at] = u16::try_from(members.len()).ok();
            members.push(Member {
                agent: card.agent.clone(),
                host: host.name.clone(),
                address: card.address,
                has: has(&placement.loads[at]),
            });
        }
    }
    let places = placement.hosts.iter().map(|host| numbers[*host].unwrap_or(0));
    let places = places.collect();
    (members, places)
}

/// What the machine has less of for others.
fn has(load: &Load) -> Reserved {
    let bounded = |traffic| match traffic {
        Traffic::Bounded(bit_per_s) => bit_per_s,
        // It may fill the uplink, and then shares it with others as the network between the
        // machines does.
        Traffic::Unbounded { .. } => 0,
    };
    Reserved {
        runs: 1,
        nodes: load.nodes,
        cpu_millis: load.cpu_millis,
        memory: load.memory,
        up_bit_per_s: bounded(load.up),
        down_bit_per_s: bounded(load.down),
    }
}

fn tell(setup: &RunSetup, over: &Over<'_>) {
    let on =
        |(number, member): (u16, &Member)| format!("{} on {}", setup.nodes_of(number), member.host);
    let nodes: Vec<String> = (0..).zip(&setup.members).map(on).collect();
    let how = if over.plain { "in the clear" } else { "encrypted" };
    output::talk(&format!(
        "run {}: nodes: {}; packets between machines go {how}",
        text_of(setup.run),
        nodes.join(", ")
    ));
}

/// Options of a run that somebody else has begun.
pub(crate) fn options_of(setup: &RunSetup, folder: PathBuf) -> Options {
    Options::with_shared(folder, setup.base_dir.clone(), &setup.plan_hash, &setup.shared)
}
