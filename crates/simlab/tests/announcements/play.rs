//! A run on several machines, with flows that come and go and links that are cut.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use windtunnel_engine::{Engine, EngineLimits, FlowAudienceTable, NetworkPart};
use windtunnel_model::flow::{ActiveFlow, FlowKey, FlowTerms};
use windtunnel_model::plan::{EventAction, LinkChange, NetworkModel};
use windtunnel_model::{Lane, NetworkVertex, NodeId, Plan, Rate, Span, Time};
use windtunnel_routing::{RouteDestination, Routes};
use windtunnel_sharing::{FlowId, MaxMinShares, SharingModelKind};
use windtunnel_simlab::mesh::measure::{self, RUN};
use windtunnel_simlab::{LinkConditions, MeshWorld};

use crate::network::Network;
use crate::reference;

/// Something that happens. Numbers choose among existing items.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A flow begins, or goes on under other terms: from which node to which, its number, its round
    /// trip, and its demand.
    Start { ends: (usize, usize), number: u32, rtt: Span, demand: Option<u64> },
    /// A flow ends.
    End(usize),
    /// A link takes nothing any more, in one direction or both.
    Cut(usize, bool),
    /// All links take everything.
    Heal,
    /// Time passes.
    Wait(Span),
}

/// Up to 24 steps, half of which start flows.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let demand = prop::option::weighted(0.2, prop::sample::select(vec![200_000, 2_000_000]));
    let rtt = prop::sample::select(MILLIS.to_vec()).prop_map(Span::from_millis);
    let start = ((any::<usize>(), any::<usize>()), 0..8_u32, rtt, demand);
    let start =
        start.prop_map(|(ends, number, rtt, demand)| Step::Start { ends, number, rtt, demand });
    let wait = prop::sample::select(vec![50, 1500, 30_000, 300_000]);
    let step = prop_oneof![
        8 => start,
        3 => any::<usize>().prop_map(Step::End),
        2 => any::<(usize, bool)>().prop_map(|(lane, both)| Step::Cut(lane, both)),
        1 => Just(Step::Heal),
        3 => wait.prop_map(|micros| Step::Wait(Span::from_micros(micros))),
    ];
    vec(step, 1..24)
}

/// Round trips with whole weights: their inverse is a multiple of one number.
const MILLIS: [u64; 8] = [1, 2, 5, 10, 30, 60, 100, 300];

/// The machines with their views, and the truth.
pub(crate) struct Play {
    world: MeshWorld,
    plan: Plan,
    sharing: SharingModelKind,
    /// By node.
    machines: Vec<usize>,
    engines: Vec<Engine>,
    audiences: Vec<FlowAudienceTable>,
    /// As the reference has them.
    routes: Routes,
    up: Vec<bool>,
    flows: BTreeMap<FlowKey, ActiveFlow>,
}

impl Play {
    pub(crate) fn new(network: Network, conditions: LinkConditions) -> Self {
        let plan = network.plan();
        let machines = network.machines;
        let count = machines.iter().max().expect("there are nodes") + 1;
        let mut world = measure::in_run(count, 1, conditions);
        let nodes_of = |machine| machines.iter().map(move |on| *on == machine);
        let engine = |machine: usize| {
            let number = u32::try_from(machine).expect("few");
            let part = NetworkPart { number, here: nodes_of(machine).collect() };
            Engine::of_part(&plan, EngineLimits { packet_memory: 1 << 20 }, &part)
        };
        for machine in 0..count {
            let nodes = nodes_of(machine).enumerate().filter(|(_, here)| *here);
            world.set_nodes(
                machine,
                RUN,
                nodes.map(|(node, _)| NodeId::from_index(node)).collect(),
            );
        }
        let NetworkModel::Paths(sharing) = plan.model else { panic!("the model of paths") };
        let mut play = Play {
            world,
            engines: (0..count).map(engine).collect(),
            sharing: match sharing {
                windtunnel_model::plan::BandwidthSharing::RttAware => SharingModelKind::RttAware,
                windtunnel_model::plan::BandwidthSharing::Equal => SharingModelKind::Equal,
            },
            audiences: Vec::new(),
            routes: Routes::compute(&plan),
            up: vec![true; plan.links.len() * 2],
            flows: BTreeMap::new(),
            machines,
            plan,
        };
        play.find_audiences();
        play
    }

    pub(crate) fn take(&mut self, step: &Step) {
        let nodes = self.machines.len();
        match step {
            Step::Start { ends: (source, destination), number, rtt, demand } => {
                let source = source % nodes;
                let destination = (source + 1 + destination % (nodes - 1)) % nodes;
                let key = FlowKey {
                    source: NodeId::from_index(source),
                    destination: NodeId::from_index(destination),
                    number: *number,
                };
                let demand = demand.and_then(Rate::from_bits_per_second);
                let terms = FlowTerms { demand, ..FlowTerms::new(*rtt) };
                let flow = ActiveFlow { terms, since: Time::ZERO };
                self.flows.insert(key, flow);
                self.announce(key, flow);
            }
            Step::End(which) if !self.flows.is_empty() => {
                let key =
                    *self.flows.keys().nth(which % self.flows.len()).expect("below its length");
                self.flows.remove(&key);
                self.world.end_flow(self.machine_of(key), RUN, key);
            }
            Step::End(_) => {}
            Step::Cut(lane, both) => {
                let lane = Lane::from_index(lane % self.up.len());
                let back = Lane { direction: lane.direction.reverse(), ..lane };
                self.set_up(&if *both { vec![lane, back] } else { vec![lane] }, false);
            }
            Step::Heal => {
                let all: Vec<Lane> = (0..self.up.len()).map(Lane::from_index).collect();
                self.set_up(&all, true);
            }
            Step::Wait(span) => self.run_for(*span),
        }
    }

    pub(crate) fn run_for(&mut self, span: Span) {
        self.world.run_for(span);
    }

    /// Lets time pass until all announcements have arrived.
    pub(crate) fn settle(&mut self) {
        let settled = self.world.settle(Span::from_secs(30));
        settled.unwrap_or_else(|difference| panic!("{difference}\n{}", self.world.describe()));
    }

    /// Checks that each machine knows the flows that share a link with its own ones.
    pub(crate) fn check_sharing(&self) {
        let ways: BTreeMap<FlowKey, Vec<Lane>> =
            self.flows.keys().map(|key| (*key, self.way(*key))).collect();
        for (own, way) in &ways {
            let machine = self.machine_of(*own);
            let received = self.world.machines()[machine].view.flows.keys();
            let received: BTreeSet<FlowKey> = received.map(|(_, _, key)| *key).collect();
            for (other, over) in &ways {
                let shares = over.iter().any(|lane| way.contains(lane));
                let known = self.machine_of(*other) == machine || received.contains(other);
                assert!(
                    !shares || known,
                    "machine {machine} has {own:?}, and no news of {other:?}"
                );
            }
        }
    }

    /// Compares the machines' allocations with that of all flows.
    pub(crate) fn check(&mut self) {
        let keys: Vec<FlowKey> = self.flows.keys().copied().collect();
        let all = self.flows.iter().map(|(key, flow)| self.as_reference(*key, flow));
        let all: Vec<reference::Flow> = all.collect();
        let capacities: Vec<Option<Rate>> = self.lanes().map(|lane| self.capacity(lane)).collect();
        let bits =
            |rate: &Option<Rate>| rate.map_or(f64::INFINITY, |it| it.bits_per_second() as f64);
        let global: Vec<f64> = capacities.iter().map(bits).collect();
        let global = reference::allocation(&global, &all);
        let mut carried = vec![0; capacities.len()];
        for machine in 0..self.engines.len() {
            let found = self.shares_of(machine, &capacities);
            for ((key, flow), right) in keys.iter().zip(&all).zip(&global) {
                if self.machine_of(*key) != machine {
                    continue;
                }
                let share = found[key].map(Rate::bits_per_second);
                let fits = share.map_or(right.is_infinite(), |share| is_rounded(share, *right));
                assert!(fits, "machine {machine} gives {key:?} {share:?} bit/s instead of {right}");
                for lane in &flow.lanes {
                    carried[*lane] += share.unwrap_or(0);
                }
            }
        }
        self.check_lanes(&carried);
    }

    /// Checks that no lane has more than it can carry.
    fn check_lanes(&self, carried: &[u64]) {
        for (lane, carried) in self.lanes().zip(carried) {
            let capacity = self.capacity(lane).map_or(u64::MAX, Rate::bits_per_second);
            let name = self.plan.lane_name(lane);
            assert!(*carried <= capacity, "{carried} of {capacity} bit/s on {name}");
        }
    }

    /// The shares of all flows that a machine knows, as it finds them.
    fn shares_of(
        &mut self,
        machine: usize,
        capacities: &[Option<Rate>],
    ) -> BTreeMap<FlowKey, Option<Rate>> {
        let own = self.flows.iter().filter(|(key, _)| self.machine_of(**key) == machine);
        let mut known: BTreeMap<FlowKey, ActiveFlow> =
            own.map(|(key, flow)| (*key, *flow)).collect();
        let received = self.world.machines()[machine].view.flows.iter();
        known.extend(received.map(|((_, _, key), flow)| (*key, *flow)));
        let mut table = MaxMinShares::new(self.sharing, capacities).expect("small rates");
        for (id, (key, flow)) in (0..).zip(&known) {
            let lanes = self.engines[machine].lanes_of(*key);
            let lanes: Vec<u32> =
                lanes.iter().map(|lane| u32::try_from(lane.index()).expect("few")).collect();
            table.start(FlowId(id), &lanes, flow.terms).expect("few flows");
        }
        table.settle();
        let share = |id| table.share(FlowId(id)).expect("it was started");
        known.keys().zip(0..).map(|(key, id)| (*key, share(id))).collect()
    }

    fn as_reference(&self, key: FlowKey, flow: &ActiveFlow) -> reference::Flow {
        let weight = match self.sharing {
            SharingModelKind::RttAware => 1e9 / flow.terms.rtt.as_nanos() as f64,
            SharingModelKind::Equal => 1.0,
        };
        let demand = flow.terms.demand;
        let demand = demand.map_or(f64::INFINITY, |it| it.bits_per_second() as f64);
        let lanes = self.way(key).into_iter().map(Lane::index).collect();
        reference::Flow { lanes, weight, demand }
    }

    /// The lanes of a flow: its number says from which interface to which.
    fn way(&self, key: FlowKey) -> Vec<Lane> {
        let interfaces = |node: NodeId| &self.plan.nodes[node.index()].interfaces;
        let (own, aimed) = (interfaces(key.source), interfaces(key.destination));
        let number = usize::try_from(key.number).expect("small");
        let from = &own[number % own.len()];
        let to = RouteDestination::Port(aimed[number / own.len() % aimed.len()].port);
        let mut lanes = vec![Lane { link: from.link, direction: from.outward }];
        loop {
            let at = self.plan.lane_end(lanes[lanes.len() - 1]);
            match (at, self.routes.next_hop(at, to)) {
                (NetworkVertex::Router(_), Some(next)) => lanes.push(next),
                _ => return lanes,
            }
        }
    }

    fn announce(&mut self, key: FlowKey, flow: ActiveFlow) {
        let machine = self.machine_of(key);
        let audience = self.audiences[machine].audience_of(&self.plan, &self.routes, key);
        let audience = audience.expect("no route is fixed, no router receives");
        let numbers =
            |members: &[u16]| members.iter().copied().map(usize::from).collect::<Vec<_>>();
        let (at_once, members) = (numbers(&audience.at_once), numbers(&audience.members));
        self.world.set_flow_for(machine, RUN, key, flow, &at_once, &members);
    }

    /// Lanes are cut or mended, and all machines route and announce anew.
    fn set_up(&mut self, lanes: &[Lane], up: bool) {
        lanes.iter().for_each(|lane| self.up[lane.index()] = up);
        let state = lanes.iter().map(|lane| (*lane, up)).collect();
        let change = EventAction::Link(LinkChange { patches: Vec::new(), state });
        for engine in &mut self.engines {
            engine.apply(self.world.now(), &change);
            engine.apply(self.world.now(), &EventAction::Reroute);
        }
        let (plan, up) = (&self.plan, &self.up);
        self.routes = self.routes.recomputed(|lane| {
            let profile = &plan.links[lane.link.index()].profiles[lane.direction.index()];
            up[lane.index()].then_some(profile.latency)
        });
        self.find_audiences();
        for (key, flow) in self.flows.clone() {
            self.announce(key, flow);
        }
    }

    fn find_audiences(&mut self) {
        let placement: Vec<u16> =
            self.machines.iter().map(|machine| u16::try_from(*machine).expect("few")).collect();
        let count = self.engines.len();
        let of = |_| FlowAudienceTable::of(&self.plan, &self.routes, &placement, count);
        self.audiences = (0..count).map(of).collect();
    }

    fn machine_of(&self, key: FlowKey) -> usize {
        self.machines[key.source.index()]
    }

    fn lanes(&self) -> impl Iterator<Item = Lane> + use<> {
        (0..self.up.len()).map(Lane::from_index)
    }

    fn capacity(&self, lane: Lane) -> Option<Rate> {
        self.plan.links[lane.link.index()].profiles[lane.direction.index()].rate
    }
}

/// A share is a rate, rounded down to a whole bit/s, or up where it lacks less than 2⁻²⁰ bit/s. The
/// reference is off by some 10⁻⁸ bit/s at 10 Mbit/s.
fn is_rounded(share: u64, rate: f64) -> bool {
    let share = share as f64;
    share > rate - 1.001 && share < rate + 0.001
}
