//! The model of paths: a packet waits at its source, for the share that its flow has of the links
//! on its path.
//!
//! Theory of operation. What a node sends to a place (a node's interface or a router) goes a
//! *path*, and waits there in a *shaper*: a queue and a rate as a lane has them. The rate is the
//! sum of the shares of the path's flows, and of what others leave of its links. Behind the shaper
//! the packet passes the lanes of its path, whose elements are those of the model of hops but for
//! queue and rate, at once and with the times that it will have there; so nothing that comes later
//! can touch it. At the node at the end it waits until it is there.
//!
//! Flows are seen from their packets: [`traffic`]. Their shares are those of the room `sharing`.
//!
//! **Model**: `SplayNet` (Schiavoni, Rivière, Felber; Middleware 2013, 3.3). It differs in that
//! several flows between two places may have different paths (ECMP), in that loss, jitter and the
//! others are drawn for each link, and in that a flow that uses less than its share does not keep
//! it.
//!
//! On one machine of several ([`AnnouncementExchange`]) the paths are those of the nodes that are here; flows
//! of the others take part in the allocation as announced, and have no shaper.

pub(crate) mod allocation;
pub(crate) mod announcer;
mod course;
pub(crate) mod exchange;
pub(crate) mod names;
pub(crate) mod remote_flows;
mod source;
pub(crate) mod traffic;
pub(crate) mod virtual_clock;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

use windtunnel_model::flow::{FlowChange, FlowTerms};
use windtunnel_model::plan::{self, Plan};
use windtunnel_model::profile::{Overhead, QueueDiscipline};
use windtunnel_model::{Lane, LinkProfile, PortId, Rate, Time};
use windtunnel_sharing::{FlowId, SharingModelKind};

use crate::chain::ElementChain;
use crate::engine::core::Core;
use crate::packet::EmulatedPacket;
use crate::part::NetworkPart;
use crate::timer::{LaneWakeUp, LaneWakeUpTimes};
use allocation::{Allocation, AllocationChanges};
use course::{Bottleneck, PacketCourse};
use exchange::AnnouncementExchange;
use traffic::SourceFlowTable;

/// What the model of paths keeps beside the lanes.
#[derive(Debug)]
pub(crate) struct PathModel {
    /// How many lanes the plan has. The shaper of path `w` is the chain of number `lanes + w`.
    lanes: usize,
    pub(crate) allocation: Allocation,
    paths: Vec<ShapedPath>,
    /// By path.
    shapers: Vec<ElementChain>,
    by_ends: BTreeMap<(PortId, PacketCourse), usize>,
    /// By lane: the paths over it that have flows.
    busy: Vec<BTreeSet<usize>>,
    pub(crate) traffic: SourceFlowTable,
    /// Where nodes are on other machines.
    pub(crate) exchange: Option<AnnouncementExchange>,
}

/// From one interface of a node to one place.
#[derive(Debug)]
struct ShapedPath {
    port: PortId,
    course: PacketCourse,
    /// Of the packet that was the first to go here; with ECMP others may take other lanes.
    source: IpAddr,
    hash: u64,
    lanes: Vec<Lane>,
    /// `None`: no lane has a rate.
    bottleneck: Option<Bottleneck>,
    flows: BTreeSet<FlowId>,
}

impl PathModel {
    pub(crate) fn new(
        plan: &Plan,
        part: &NetworkPart,
        sharing: plan::BandwidthSharing,
    ) -> PathModel {
        let sharing = match sharing {
            plan::BandwidthSharing::RttAware => SharingModelKind::RttAware,
            plan::BandwidthSharing::Equal => SharingModelKind::Equal,
        };
        let lanes = plan.links.iter().flat_map(|link| &link.profiles);
        let capacities: Vec<Option<Rate>> = lanes.map(|profile| profile.rate).collect();
        PathModel {
            lanes: capacities.len(),
            allocation: Allocation::new(sharing, &capacities),
            paths: Vec::new(),
            shapers: Vec::new(),
            by_ends: BTreeMap::new(),
            busy: vec![BTreeSet::new(); capacities.len()],
            traffic: SourceFlowTable::default(),
            exchange: (!part.is_whole()).then(|| AnnouncementExchange::new(plan, part.number)),
        }
    }

    /// Handles a packet that has come out of a shaper or a lane.
    pub(crate) fn arrive(&self, core: &mut Core, now: Time, chain: Lane, packet: EmulatedPacket) {
        match chain.index().checked_sub(self.lanes) {
            Some(path) => core.offer(packet.times.first, self.paths[path].lanes[0], packet),
            // It will be there then; at a node it is.
            None => core.arrive(now.max(packet.times.first), chain, packet),
        }
    }

    /// Wakes a shaper; `false` if the wake-up is not valid any more.
    pub(crate) fn wake(&mut self, core: &mut Core, due: LaneWakeUp) -> bool {
        let shaper = &mut self.shapers[due.lane as usize - self.lanes];
        let valid = shaper.alarms.take(&due);
        if valid {
            core.net.lanes.work.now = due.at;
            shaper.wake(due, &mut core.net.lanes.work);
        }
        valid
    }

    /// The alarms of the shaper that is the chain of this number.
    pub(crate) fn alarms(&self, index: usize) -> &LaneWakeUpTimes {
        &self.shapers[index - self.lanes].alarms
    }

    fn find(&self, port: PortId, course: PacketCourse) -> Option<usize> {
        self.by_ends.get(&(port, course)).copied()
    }

    fn add(&mut self, path: ShapedPath) -> usize {
        let number = self.paths.len();
        self.by_ends.insert((path.port, path.course), number);
        self.paths.push(path);
        number
    }

    /// Lets a path lead over other lanes.
    fn lead(&mut self, number: usize, lanes: Vec<Lane>, bottleneck: Option<Bottleneck>) {
        let path = &mut self.paths[number];
        let before = core::mem::replace(&mut path.lanes, lanes);
        path.bottleneck = bottleneck;
        if !path.flows.is_empty() {
            before.iter().for_each(|lane| {
                self.busy[lane.index()].remove(&number);
            });
            path.lanes.iter().for_each(|lane| {
                self.busy[lane.index()].insert(number);
            });
        }
    }

    /// A flow takes part from now on.
    fn start(&mut self, number: usize, id: FlowId, lanes: Vec<Lane>, terms: FlowTerms) {
        // More flows than the table has room for go without a share of their own.
        if !self.allocation.start(id, Some(number), lanes, terms) {
            return;
        }
        let path = &mut self.paths[number];
        if path.flows.is_empty() {
            path.lanes.iter().for_each(|lane| {
                self.busy[lane.index()].insert(number);
            });
        }
        path.flows.insert(id);
    }

    /// A flow is no more.
    fn stop(&mut self, number: usize, id: FlowId) {
        if !self.allocation.stop(id) {
            return;
        }
        let path = &mut self.paths[number];
        path.flows.remove(&id);
        if path.flows.is_empty() {
            path.lanes.iter().for_each(|lane| {
                self.busy[lane.index()].remove(&number);
            });
        }
        if let Some(exchange) = &mut self.exchange {
            exchange.announcer.end(id);
        }
    }

    /// An own flow goes on under other terms.
    fn change(&mut self, id: FlowId, terms: FlowTerms) {
        self.allocation.change(id, terms);
        self.note(id);
    }

    /// An own flow goes on under other terms, perhaps over other lanes.
    fn renew(&mut self, id: FlowId, lanes: Vec<Lane>, terms: FlowTerms) {
        self.allocation.renew(id, lanes, terms);
        self.note(id);
    }

    /// Something that other machines do not know.
    pub(crate) fn poll_flow(&mut self, now: Time) -> Option<FlowChange> {
        let (exchange, allocation) = (self.exchange.as_mut()?, &self.allocation);
        exchange.announcer.poll(now, |id| allocation.terms(id))
    }

    /// Divides the bandwidth anew; the lanes that may have other terms, and the paths that may have
    /// another rate, in order.
    fn settle(&mut self) -> (Vec<usize>, BTreeSet<usize>) {
        let AllocationChanges { lanes, paths } = self.allocation.settle();
        let mut touched: BTreeSet<usize> = paths.into_iter().collect();
        for lane in &lanes {
            touched.extend(&self.busy[*lane]);
        }
        (lanes, touched)
    }

    /// What is known of a lane of this rate.
    fn terms_of(&self, lane: usize, capacity: Option<Rate>) -> virtual_clock::LaneRateTerms {
        let (rate, divided) = self.allocation.available(Lane::from_index(lane), capacity);
        virtual_clock::LaneRateTerms { rate, paths: self.busy[lane].len(), divided }
    }

    /// What the flows of a path have; `None`: it has no flow, or nothing limits them.
    fn share(&self, path: usize) -> Option<Rate> {
        let shares = self.paths[path].flows.iter().filter_map(|id| self.allocation.share(*id));
        Rate::from_bits_per_second(shares.fold(0, u64::saturating_add))
    }

    /// What a path may send at the most now, by which its queue is measured: its flows' shares and
    /// what is left of its lanes, or all of them where it has no flow.
    fn rate(&self, path: usize, capacity: impl Fn(Lane) -> Option<Rate>) -> Option<Rate> {
        let path = &self.paths[path];
        let least = path.bottleneck?.rate;
        if path.flows.is_empty() {
            return Some(least);
        }
        let shares = path.flows.iter().filter_map(|id| self.allocation.share(*id));
        let own: u64 = shares.fold(0, u64::saturating_add);
        let spare = |lane: &Lane| Some(self.allocation.spare(*lane, capacity(*lane)?));
        let spare = path.lanes.iter().filter_map(spare).min();
        let rate = own.saturating_add(spare.unwrap_or_default());
        Rate::from_bits_per_second(rate.min(least.bits_per_second()).max(1))
    }

    fn note(&mut self, id: FlowId) {
        if let Some(exchange) = &mut self.exchange {
            exchange.announcer.note(id);
        }
    }
}

impl ShapedPath {
    fn new(port: PortId, course: PacketCourse, source: IpAddr, hash: u64) -> Self {
        let (lanes, flows) = (Vec::new(), BTreeSet::new());
        ShapedPath { port, course, source, hash, lanes, bottleneck: None, flows }
    }

    /// Whether several flows wait in its queue, each of which may be there because of the others.
    fn is_shared(&self) -> bool {
        self.flows.len() > 1
    }
}

/// The queue and the rate in front of a path whose bottleneck has these properties, where a tunnel
/// adds so many bytes to each segment.
fn shaper_profile(bottleneck: Option<(&LinkProfile, u32)>) -> LinkProfile {
    let Some((profile, tunnel_overhead)) = bottleneck else {
        return LinkProfile { mtu: u32::MAX, ..LinkProfile::default() };
    };
    LinkProfile {
        rate: profile.rate,
        queue: profile.effective_queue(),
        overhead: Some(Overhead(profile.effective_overhead().0 + tunnel_overhead)),
        discipline: QueueDiscipline::DropTail,
        mtu: u32::MAX,
        ..LinkProfile::default()
    }
}
