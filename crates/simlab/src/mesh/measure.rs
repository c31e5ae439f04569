//! Figures from simulated worlds: how soon a loss is noticed and a flow is known, and the traffic.

use std::collections::BTreeMap;

use windtunnel_mesh::{MeshEvent, MeshTrafficCounters, PlanHash, RunId};
use windtunnel_model::flow::{ActiveFlow, FlowKey, FlowTerms};
use windtunnel_model::{Bytes, NodeId, Span, Time};

use super::{LinkConditions, MeshWorld};
use crate::SimulationRng;

/// The run of these worlds.
pub const RUN: RunId = RunId(1);

/// Times in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortedDurations(pub Vec<Span>);

/// Traffic in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeakAgentTraffic {
    /// Datagrams a second, of the agent that sent most bytes.
    pub datagrams: u64,
    /// Bit/s of it, with the headers of IPv4 and UDP.
    pub bits: u64,
}

/// How flows became known.
#[derive(Debug, Clone)]
pub struct FlowSpreadFigures {
    /// From the start of a flow until one more agent knows it, for each flow and agent.
    pub known: SortedDurations,
    /// The traffic of the busiest agent meanwhile.
    pub sent: PeakAgentTraffic,
    /// The same, by kind, as counted by the first agent since it started.
    pub counters: MeshTrafficCounters,
}

/// The load of [`spread`].
#[derive(Debug, Clone, Copy)]
pub struct FlowSpreadLoad {
    /// Machines.
    pub machines: usize,
    /// Nodes on them, one after the other.
    pub nodes: u32,
    /// Flows that start in a second; as many end.
    pub starts: u64,
    /// For so long.
    pub span: Span,
    /// Over this network.
    pub conditions: LinkConditions,
}

impl SortedDurations {
    fn of(mut times: Vec<Span>) -> Self {
        times.sort_unstable();
        SortedDurations(times)
    }

    /// The time that `share` percent of them do not exceed.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn percentile(&self, share: usize) -> Span {
        let last = self.0.len() - 1;
        self.0[(self.0.len() * share / 100).min(last)]
    }

    /// Their mean.
    #[must_use]
    pub fn mean(&self) -> Span {
        let sum: u64 = self.0.iter().map(|time| time.as_nanos()).sum();
        Span::from_nanos(sum / u64::try_from(self.0.len()).unwrap_or(1).max(1))
    }
}

/// Where agents are killed in [`losses`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentState {
    /// All are in one run.
    Run,
    /// There is no run.
    Idle,
}

/// Kills agents one after the other in a world of `count`, at random times, and returns after how
/// long each was known to be lost by every other.
///
/// # Panics
/// If a loss is not noticed at all within 30 s, or an agent that lives is declared lost.
#[must_use]
pub fn losses(
    count: usize,
    conditions: LinkConditions,
    kills: usize,
    seed: u64,
    state: AgentState,
) -> SortedDurations {
    let mut world = MeshWorld::of(count, seed, conditions);
    let mut rng = SimulationRng::new(seed ^ 0x6c6f_7373);
    let all: Vec<usize> = (0..count).collect();
    let mut times = Vec::new();
    for number in 0..kills {
        // A member lost to a run does not come back to it.
        let run = RunId(number as u64);
        if state == AgentState::Run {
            join_all(&mut world, run, &all);
        }
        world.run_for(Span::from_micros(500_000 + rng.below(40_000)));
        let victim = usize::try_from(rng.below(count as u64)).unwrap_or(0);
        times.push(kill(&mut world, victim));
        all.iter().for_each(|machine| world.leave_run(*machine, run));
        let seeds: Vec<usize> = (0..count).filter(|other| *other != victim).take(3).collect();
        world.start(victim, &seeds);
        world.settle(Span::from_secs(30)).unwrap_or_else(|difference| panic!("{difference}"));
    }
    SortedDurations::of(times)
}

/// Kills an agent. How long it takes until every other knows that.
fn kill(world: &mut MeshWorld, victim: usize) -> Span {
    world.take_events();
    let (begin, agent) = (world.now(), world.machines()[victim].agent);
    world.crash(victim);
    let (mut last, mut missing) = (begin, world.machines().len() - 1);
    while missing > 0 {
        assert!(world.now().since(begin) < Span::from_secs(30), "{missing} do not notice");
        world.run_for(Span::from_millis(5));
        for report in world.take_events() {
            if let MeshEvent::AgentDown { life, .. } = report.event {
                assert_eq!(life.agent, agent, "an agent was declared lost that lives");
                missing -= 1;
                last = report.at;
            }
        }
    }
    last.since(begin)
}

/// Starts and ends flows between nodes at random, and returns when each agent knew of each start.
/// All flows are announced to all agents, which is the worst case.
///
/// # Panics
/// If some agent does not know of some start in the end.
#[must_use]
pub fn spread(load: &FlowSpreadLoad, seed: u64) -> FlowSpreadFigures {
    let mut world = in_run(load.machines, seed, load.conditions);
    world.run_for(Span::from_secs(2));
    world.take_events();
    let all: Vec<usize> = (0..load.machines).collect();
    let mut rng = SimulationRng::new(seed ^ 0x666c_6f77);
    let before = sent(&world);
    let (begin, mut live) = (world.now(), Vec::new());
    let mut starts: BTreeMap<FlowKey, Time> = BTreeMap::new();
    let mut known = Vec::new();
    // Starts and ends come as by Poisson, on a grid of 10 µs.
    let grid = Span::from_micros(10);
    let odds = 100_000 / load.starts.max(1);
    while world.now().since(begin) < load.span {
        world.run_for(grid);
        if rng.below(odds) == 0 {
            let source = u32::try_from(rng.below(load.nodes.into())).unwrap_or(0);
            let destination = u32::try_from(rng.below(load.nodes.into())).unwrap_or(0);
            let number = u32::try_from(starts.len()).unwrap_or(0);
            let (source, destination) = (NodeId(source), NodeId(destination));
            let key = FlowKey { source, destination, number };
            let machine = source.index() % load.machines;
            let terms = FlowTerms::new(Span::from_millis(40)).with_window(Bytes(65_536));
            let flow = ActiveFlow { terms, since: world.now() };
            starts.insert(key, world.now());
            live.push((machine, key));
            world.set_flow(machine, RUN, key, flow, &all);
        }
        if rng.below(odds) == 0 && !live.is_empty() {
            let index = usize::try_from(rng.below(live.len() as u64)).unwrap_or(0);
            let (machine, key) = live.swap_remove(index);
            world.end_flow(machine, RUN, key);
        }
        note(&mut world, &starts, &mut known);
    }
    let sent = most(&world, &before, world.now().since(begin));
    world.settle(Span::from_secs(10)).unwrap_or_else(|difference| panic!("{difference}"));
    note(&mut world, &starts, &mut known);
    let counters = world.machines()[0].mesh.as_ref().map(windtunnel_mesh::Mesh::counters);
    FlowSpreadFigures {
        known: SortedDurations::of(known),
        sent,
        counters: counters.unwrap_or_default(),
    }
}

/// Traffic of the busiest of `count` agents in one run in `span` if nothing happens, and how long
/// they took to find each other and to agree on the run.
#[must_use]
pub fn quiet(
    count: usize,
    conditions: LinkConditions,
    span: Span,
    seed: u64,
) -> (PeakAgentTraffic, Span) {
    let start = MeshWorld::new(0, conditions).now();
    let mut world = in_run(count, seed, conditions);
    let settled = world.now().since(start);
    world.run_for(at_rest(count));
    let before = sent(&world);
    world.run_for(span);
    (most(&world, &before, span), settled)
}

/// Traffic of the busiest of `count` agents without any run in `span`, a quarter of an hour after
/// they found each other, and the greatest number of receivers of one agent.
#[must_use]
pub fn idle(
    count: usize,
    conditions: LinkConditions,
    span: Span,
    seed: u64,
) -> (PeakAgentTraffic, usize) {
    let mut world = MeshWorld::of(count, seed, conditions);
    world.run_for(Span::from_secs(900));
    let before = sent(&world);
    world.forget_receivers();
    world.run_for(span);
    let spoken = world.machines().iter().map(|machine| machine.receivers.len());
    (most(&world, &before, span), spoken.max().unwrap_or(0))
}

/// How long the exchanges of time stamps take that agents in a common run begin with: the more they
/// are, the longer.
fn at_rest(count: usize) -> Span {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    Span::from_secs(3).max(Span::from_millis(count.saturating_mul(12)))
}

/// A world with all agents in one run.
///
/// # Panics
/// If they do not agree on it within 60 s.
#[must_use]
pub fn in_run(count: usize, seed: u64, conditions: LinkConditions) -> MeshWorld {
    let mut world = MeshWorld::of(count, seed, conditions);
    let all: Vec<usize> = (0..count).collect();
    join_all(&mut world, RUN, &all);
    world
}

fn join_all(world: &mut MeshWorld, run: RunId, all: &[usize]) {
    for machine in all {
        world.join_run(*machine, run, PlanHash([1; 32]), all);
    }
    world.settle(Span::from_secs(60)).unwrap_or_else(|difference| panic!("{difference}"));
}

fn note(world: &mut MeshWorld, starts: &BTreeMap<FlowKey, Time>, known: &mut Vec<Span>) {
    for report in world.take_events() {
        let MeshEvent::Flows { changes, .. } = report.event else { continue };
        for change in changes.iter().filter(|change| change.flow.is_some()) {
            known.push(report.at.since(starts[&change.key]));
        }
    }
}

fn sent(world: &MeshWorld) -> Vec<(u64, u64)> {
    world.machines().iter().map(|machine| machine.sent).collect()
}

fn most(world: &MeshWorld, before: &[(u64, u64)], span: Span) -> PeakAgentTraffic {
    let a_second = |count: u64| {
        u64::try_from(u128::from(count) * 1_000_000_000 / u128::from(span.as_nanos())).unwrap_or(0)
    };
    let machines = world.machines().iter().zip(before);
    let each = machines.map(|(machine, before)| PeakAgentTraffic {
        datagrams: a_second(machine.sent.0 - before.0),
        bits: 8 * a_second(machine.sent.1 - before.1),
    });
    each.max_by_key(|sent| sent.bits).unwrap_or(PeakAgentTraffic { datagrams: 0, bits: 0 })
}
