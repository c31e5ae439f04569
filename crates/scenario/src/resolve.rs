//! From the file's own terms to the plan: names, groups, addresses, defaults, and checks
//! that need the whole file. Each stage runs only if those before it found nothing wrong, so that
//! one mistake is reported once.

mod address;
mod alias;
mod amount;
mod churn;
mod directory;
mod end;
mod event;
mod expansion;
mod expect;
mod flap;
mod internet;
mod lanes;
mod limits;
mod link;
mod machine;
mod middlebox;
pub(crate) mod model;
mod node;
mod order;
mod reach;
mod record;
mod reserve;
mod root;
mod route;
mod scene;
mod service;
mod share;
mod timeline;

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::name::EXPERIMENT_BYTES_MAX;
use windtunnel_model::plan::{RecordingPolicy, ScheduledEvent};
use windtunnel_model::{LinkId, NodeId, Plan, Span};

use crate::decode::{EventDraft, PathModelReason, ScenarioDraft};
use crate::error::Diagnostics;
use crate::position::SourceLocation;
use crate::source::{ReadFile, ScenarioSource};
use crate::written::{WrittenProgram, WrittenRoot};
use directory::Directory;
use expansion::ExpansionBudget;
use scene::Scene;
use timeline::EventTimeline;

/// What a file comes to.
pub(crate) struct ResolvedScenario {
    pub(crate) plan: Plan,
    /// See [`crate::LoadedScenario::described`].
    pub(crate) described: Vec<(LinkId, String)>,
    /// See [`crate::LoadedScenario::programs`].
    pub(crate) programs: BTreeMap<String, Vec<WrittenProgram>>,
    /// See [`crate::LoadedScenario::roots`].
    pub(crate) roots: BTreeMap<String, WrittenRoot>,
    /// See [`crate::LoadedScenario::reservations`].
    pub(crate) reservations: Vec<SourceLocation>,
}

/// What `draft` comes to, or `None` with mistakes in `found`.
pub(crate) fn resolve(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    source: &ScenarioSource<'_>,
    files: &ReadFile<'_>,
) -> Option<ResolvedScenario> {
    let mut budget = ExpansionBudget::default();
    let mut directory = Directory::new(found, draft);
    let mut plan = empty_plan(draft, source);
    stage(found)?;
    node::resolve(found, draft, source, &directory, &mut budget, &mut plan);
    link::resolve(found, draft, &mut directory, &mut budget, &mut plan);
    internet::check(found, draft, &plan);
    alias::check(found, draft, &plan);
    stage(found)?;
    reserve::resolve(found, draft, &directory, &mut plan);
    service::resolve(found, draft, &directory, &mut plan);
    address::assign(found, draft, &mut plan);
    middlebox::resolve(found, draft, &directory, &mut plan);
    service::check(found, draft, &mut plan);
    order::check(found, draft, &directory);
    route::resolve(found, draft, &directory, &mut budget, &mut plan);
    event::resolve(found, draft, source, files, &directory, &mut budget, &mut plan);
    model::check(found, draft);
    limits::resolve(found, draft, &mut plan);
    share::resolve(found, draft, &mut plan);
    machine::notice(found, draft);
    expect::resolve(found, draft, &directory, &mut budget, &mut plan);
    record::resolve(found, draft, &directory, &mut plan);
    stage(found)?;
    reach::check(found, draft, &plan);
    stage(found)?;
    Some(ResolvedScenario {
        plan,
        described: directory.origins,
        programs: node::written(draft),
        roots: root::written(draft),
        reservations: draft.reserve.iter().map(|it| it.name.place).collect(),
    })
}

/// The events that `drafts` come to in a run of `plan` that has got to `now`, with `absent` outside
/// the population; their times count from now.
pub(crate) fn resolve_now(
    found: &mut Diagnostics,
    drafts: &[EventDraft],
    text: &str,
    files: &ReadFile<'_>,
    plan: &Plan,
    now: Span,
    absent: &BTreeSet<NodeId>,
) -> Vec<ScheduledEvent> {
    let directory = Directory::of(plan);
    let why = PathModelReason::Asked;
    let absent = Some(absent);
    let added = &[];
    let scene = Scene { directory: &directory, plan, why, text, files, now, absent, added };
    let mut timeline = EventTimeline::default();
    let mut budget = ExpansionBudget::default();
    for draft in drafts {
        // What is wrong is in `found`.
        let _ = event::expand(found, draft, &scene, &mut budget, &mut timeline);
    }
    timeline.events.sort_by_key(|event| event.at);
    timeline.events
}

fn stage(found: &Diagnostics) -> Option<()> {
    found.is_clean().then_some(())
}

fn empty_plan(draft: &ScenarioDraft, source: &ScenarioSource<'_>) -> Plan {
    Plan {
        name: draft.name.clone().unwrap_or_else(|| folder_name(source.default_name)),
        seed: draft.seed.unwrap_or(1),
        duration: draft.duration,
        routing: draft.routing,
        on_overload: draft.on_overload.as_ref().map(|it| it.value).unwrap_or_default(),
        model: draft.model.settled,
        placement: draft.machines.strategy(),
        on_host_loss: draft.machines.on_host_loss(),
        delays: draft.machines.delays(),
        host_timeout: draft.machines.host_timeout.as_ref().map(|it| it.value),
        record: RecordingPolicy::default(),
        reservations: Vec::new(),
        services: Vec::new(),
        nodes: Vec::new(),
        routers: Vec::new(),
        middleboxes: Vec::new(),
        lans: Vec::new(),
        links: Vec::new(),
        routes: Vec::new(),
        events: Vec::new(),
        expectations: Vec::new(),
        traces: Vec::new(),
    }
}

/// The file's stem with what a folder's name should not hold replaced.
fn folder_name(stem: &str) -> String {
    let sane = |c: char| if c.is_alphanumeric() || "-_.+".contains(c) { c } else { '-' };
    let mut bytes = 0;
    let short = stem.chars().map(sane).take_while(|c| {
        bytes += c.len_utf8();
        bytes <= EXPERIMENT_BYTES_MAX
    });
    let name: String = short.collect();
    let name = name.trim_start_matches(['.', '-']);
    if name.is_empty() { "scenario".to_owned() } else { name.to_owned() }
}
