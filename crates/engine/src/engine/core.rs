//! What both network models share: the lanes, routers and LANs of a plan, and the packets in them.

mod change;
mod forward;
mod middle;
mod redirect;
mod replicate;
mod report;
mod reroute;
mod segment;
mod ways;
mod wrap;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::{Lane, NetworkVertex, Plan, Time};

use super::model::QueueingModel;
use super::{EngineLimits, FrameDeparture};
use crate::buffer::PacketBufferPool;
use crate::chain::{ElementChain, LaneContext, LaneLocation, Role};
use crate::counters::RouterCounters;
use crate::element::RngKey;
use crate::element::trace::TraceSet;
use crate::event::{Bounded, EVENTS_MAX, HANDOFFS_MAX, Handoff, NetworkEvent};
use crate::lan::LearningSwitch;
use crate::middlebox::Middleboxes;
use crate::neighbours::Neighbours;
use crate::network::{LaneEndpoint, NetworkDirectory};
use crate::packet::SenderClass;
use crate::part::NetworkPart;
use crate::reassembly::ReassemblyBuffer;
use crate::records::PacketRecorder;
use crate::services::ServiceRedirector;
use crate::timer::{LaneActivity, LaneWakeUp, TimerHeap};
use replicate::Trains;
use reroute::Reroutes;
use ways::KnownWays;

/// The network without what is particular to a [`QueueingModel`].
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) work: LaneContext,
    /// By lane index.
    pub(crate) chains: Vec<ElementChain>,
    pub(crate) network: NetworkDirectory,
    /// By LAN.
    segments: Vec<LearningSwitch>,
    /// By the lane from a router to a LAN.
    neighbours: BTreeMap<Lane, Neighbours>,
    pub(crate) routers: Vec<RouterCounters>,
    /// By link: its ends.
    pub(crate) vertices: Vec<[NetworkVertex; 2]>,
    pub(crate) outbox: VecDeque<FrameDeparture>,
    /// By lane index: departures in the outbox.
    pub(crate) unpolled: Vec<u32>,
    pub(crate) events: Bounded<NetworkEvent>,
    pub(crate) handoffs: Bounded<Handoff>,
    pub(crate) reroutes: Reroutes,
    pub(crate) services: ServiceRedirector,
    pub(crate) middleboxes: Middleboxes,
    ways: KnownWays,
    reassembly: ReassemblyBuffer,
    trains: Trains,
    /// How many packets got the bytes of an outer header, modulo 2^16: their identification.
    wrapped: u16,
    /// By port: whether it is on this machine.
    pub(crate) here: Vec<bool>,
    /// The latest `now`.
    pub(crate) now: Time,
}

impl Core {
    /// The lanes of `plan`, each in the role that `model` gives it.
    pub(crate) fn new(
        plan: &Plan,
        limits: EngineLimits,
        part: &NetworkPart,
        model: &QueueingModel,
    ) -> Core {
        let network = NetworkDirectory::new(plan);
        let traces = TraceSet::new(&plan.traces);
        let here: Vec<bool> = plan.ports().map(|(node, _)| part.here[node.index()]).collect();
        let chains: Vec<ElementChain> = (0..plan.links.len() * 2)
            .map(Lane::from_index)
            .map(|lane| {
                let is_remote = matches!(
                    network.end(lane),
                    LaneEndpoint::Node { port, .. } if !here[port.index()]
                );
                chain_of(plan, &network, lane, part.number, model.role(is_remote), &traces)
            })
            .collect();
        Core {
            work: LaneContext {
                pool: PacketBufferPool::new(limits.packet_memory),
                timers: TimerHeap::default(),
                traces,
                now: Time::ZERO,
                clocks: model.clocks(plan),
                exits: VecDeque::new(),
                recorder: PacketRecorder::new(),
                sender: SenderClass::Flow,
                sent: Time::ZERO,
            },
            unpolled: vec![0; chains.len()],
            chains,
            network,
            segments: LearningSwitch::all(plan),
            neighbours: BTreeMap::new(),
            routers: vec![RouterCounters::default(); plan.routers.len()],
            vertices: plan.links.iter().map(|link| link.ends.map(|end| end.vertex)).collect(),
            outbox: VecDeque::new(),
            events: Bounded::new(EVENTS_MAX),
            handoffs: Bounded::new(HANDOFFS_MAX),
            reroutes: Reroutes::new(plan.routing.reroute),
            services: ServiceRedirector::new(plan),
            middleboxes: Middleboxes::new(plan),
            ways: KnownWays::default(),
            reassembly: ReassemblyBuffer::default(),
            trains: Trains::new(),
            wrapped: 0,
            here,
            now: Time::ZERO,
        }
    }

    /// Wakes a lane; `false` if the wake-up is not valid any more.
    #[inline]
    pub(crate) fn wake(&mut self, due: LaneWakeUp) -> bool {
        let chain = &mut self.chains[due.lane as usize];
        if !chain.alarms.take(&due) {
            return false;
        }
        self.work.now = due.at;
        match due.activity {
            LaneActivity::Ask => self.ask_again(due.at, Lane::from_index(due.lane as usize)),
            LaneActivity::Delay => {
                chain.wake(due, &mut self.work);
                self.note_handoffs(due.at);
            }
            LaneActivity::Ingress | LaneActivity::Server => chain.wake(due, &mut self.work),
        }
        true
    }

    /// When flows or fragments are to be forgotten, or connections that are kept want something.
    #[inline]
    pub(crate) fn next_upkeep(&self) -> Option<Time> {
        let sooner = |a: Option<Time>, b: Option<Time>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let fragments = sooner(self.reassembly.next(), self.middleboxes.next());
        sooner(sooner(self.services.next(), self.next_kept()), fragments)
    }

    /// Forgets flows and fragments whose time is over, and does what connections that are kept want.
    pub(crate) fn keep_up(&mut self, now: Time) {
        self.wake_kept(now);
        if self.services.next().is_some_and(|at| at <= now) {
            self.services.sweep(now);
        }
        let lost = self.reassembly.lost();
        self.reassembly.expire(now, &mut self.work.pool);
        self.services.count_not_reassembled(self.reassembly.lost() - lost);
        self.keep_middleboxes(now);
    }

    #[inline]
    fn note_handoffs(&mut self, intended: Time) {
        let late = self.now.since(intended);
        for (lane, _) in &self.work.exits {
            if !matches!(self.network.end(*lane), LaneEndpoint::Node { .. }) {
                self.handoffs.push((*lane, late));
            }
        }
    }
}

fn chain_of(
    plan: &Plan,
    network: &NetworkDirectory,
    lane: Lane,
    part: u32,
    role: Role,
    traces: &TraceSet,
) -> ElementChain {
    let link = &plan.links[lane.link.index()];
    let rng = RngKey { seed: plan.seed, link: &link.name, direction: lane.direction, part };
    let profile = &link.profiles[lane.direction.index()];
    let [starts, ends] = [lane.reverse(), lane].map(|lane| network.end(lane));
    let on_lan = [starts, ends].iter().any(|end| matches!(end, LaneEndpoint::Lan(_)));
    let site = LaneLocation {
        ends_at_node: matches!(ends, LaneEndpoint::Node { .. }),
        on_lan,
        routed: !on_lan || matches!(starts, LaneEndpoint::Router(_)),
    };
    ElementChain::new(lane, &rng, profile, site, role, traces)
}
