//! The model of paths: a packet waits at its source, for the share that its flow has of the links on its way.
//!
//! Theory of operation. What a node sends to a place (a node's interface or a router) goes a *way*, and
//! waits there in a *shaper*: a queue and a rate as a lane has them. The rate is the sum of the shares of the way's
//! flows, and of what nobody else has of its links. Behind the shaper the packet passes the lanes of its
//! way, whose elements are those of the model of hops but for queue and rate, at once and with the times that
//! it will have there; so nothing that comes later can touch it. At the node at the end it waits until it is there.
//!
//! Flows are seen from their packets: [`traffic`]. Their shares are those of the room `sharing`.
//!
//! **Model**: `SplayNet` (Schiavoni, Rivière, Felber; Middleware 2013, 3.3). It differs in that several flows between
//! two places may have different ways (ECMP), in that loss, jitter and the others are drawn for each link, and in that
//! a flow that uses less than its share does not keep it.

pub(crate) mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use windtunnel_model::plan::{self, Plan};
use windtunnel_model::profile::Discipline;
use windtunnel_model::routing::Target;
use windtunnel_model::{Lane, LinkProfile, PortId, Rate};
use windtunnel_sharing::{FlowId, Shares, Sharing, Terms};

use traffic::Traffic;

/// What the model of paths keeps beside the lanes.
#[derive(Debug)]
pub(crate) struct Paths {
    /// The shaper of way `w` is the chain at `lanes + w`.
    lanes: usize,
    pub(crate) shares: Shares<Sharing>,
    ways: Vec<Way>,
    by_ends: BTreeMap<(PortId, Target), usize>,
    pub(crate) traffic: Traffic,
    /// By lane: what the shares of its flows add up to.
    given: Vec<u64>,
    /// The share of each flow, where it has been told.
    told: BTreeMap<FlowId, u64>,
}

/// From one interface of a node to one place.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) port: PortId,
    pub(crate) target: Target,
    /// Of the packet that was the first to go here; with ECMP others may take other lanes.
    pub(crate) source: IpAddr,
    pub(crate) hash: u64,
    pub(crate) lanes: Vec<Lane>,
    /// The first of its lanes with the least rate; `None`: no lane has one.
    pub(crate) bottleneck: Option<(Lane, Rate)>,
    flows: BTreeSet<FlowId>,
}

impl Paths {
    /// For `plan`, if it asks for this model.
    pub(crate) fn new(plan: &Plan) -> Option<Paths> {
        let sharing = match plan.model {
            plan::NetworkModel::Hops => return None,
            plan::NetworkModel::Paths(plan::Sharing::RttAware) => Sharing::RttAware,
            plan::NetworkModel::Paths(plan::Sharing::Equal) => Sharing::Equal,
        };
        let lanes = plan.links.iter().flat_map(|link| &link.profiles);
        let capacities: Vec<Option<Rate>> = lanes.map(|profile| profile.rate).collect();
        let shares = Shares::new(sharing, &capacities);
        Some(Paths {
            lanes: capacities.len(),
            shares: shares.expect("a plan's links and their rates are bounded"),
            ways: Vec::new(),
            by_ends: BTreeMap::new(),
            traffic: Traffic::default(),
            given: vec![0; capacities.len()],
            told: BTreeMap::new(),
        })
    }

    /// The way whose shaper is the chain of this number.
    pub(crate) fn way_of(&self, lane: Lane) -> Option<usize> {
        lane.index().checked_sub(self.lanes)
    }

    /// The number of a way's shaper among the chains.
    pub(crate) fn shaper(&self, way: usize) -> usize {
        self.lanes + way
    }

    pub(crate) fn find(&self, port: PortId, target: Target) -> Option<usize> {
        self.by_ends.get(&(port, target)).copied()
    }

    pub(crate) fn add(&mut self, way: Way) -> usize {
        let number = self.ways.len();
        self.by_ends.insert((way.port, way.target), number);
        self.ways.push(way);
        number
    }

    pub(crate) fn way(&self, way: usize) -> &Way {
        &self.ways[way]
    }

    pub(crate) fn way_mut(&mut self, way: usize) -> &mut Way {
        &mut self.ways[way]
    }

    /// How many lanes the plan has.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    pub(crate) fn ways(&self) -> usize {
        self.ways.len()
    }

    /// A flow takes part from now on.
    pub(crate) fn start(&mut self, way: usize, id: FlowId, lanes: &[Lane], terms: Terms) {
        // More flows than the table has room for go without a share of their own.
        if self.shares.start(id, &numbers(lanes), terms).is_ok() {
            self.ways[way].flows.insert(id);
        }
    }

    /// A flow that went over `lanes` is no more.
    pub(crate) fn stop(&mut self, way: usize, id: FlowId, lanes: &[Lane]) {
        if self.ways[way].flows.remove(&id) {
            let stopped = self.shares.stop(id);
            debug_assert!(stopped.is_ok(), "a way's flows are in the table");
            let had = self.told.remove(&id).unwrap_or_default();
            lanes.iter().for_each(|lane| self.given[lane.index()] -= had);
        }
    }

    /// Divides the bandwidth anew.
    pub(crate) fn divide(&mut self) {
        for change in self.shares.settle() {
            let share = change.share.map_or(0, Rate::bits_per_second);
            let had = self.told.insert(change.flow, share).unwrap_or_default();
            for lane in self.traffic.flow(change.flow).map_or(&[][..], |flow| &flow.lanes) {
                let given = &mut self.given[lane.index()];
                *given = *given - had + share;
            }
        }
    }

    /// What a way may send now: its flows' shares and what is left of its lanes, or all of them where it
    /// has no flow.
    pub(crate) fn rate(&self, way: usize, capacity: impl Fn(Lane) -> Option<Rate>) -> Option<Rate> {
        let way = &self.ways[way];
        let (_, least) = way.bottleneck?;
        if way.flows.is_empty() {
            return Some(least);
        }
        let shares = way.flows.iter().filter_map(|id| self.told.get(id));
        let own: u64 = shares.fold(0, |sum, share| sum.saturating_add(*share));
        let spare = way.lanes.iter().filter_map(|lane| {
            let capacity = capacity(*lane)?.bits_per_second();
            Some(capacity.saturating_sub(self.given[lane.index()]))
        });
        let rate = own.saturating_add(spare.min().unwrap_or_default());
        Rate::from_bits_per_second(rate.min(least.bits_per_second()).max(1))
    }

    /// The share of a flow, as last told.
    pub(crate) fn share(&self, id: FlowId) -> Option<u64> {
        self.told.get(&id).copied()
    }
}

impl Way {
    pub(crate) fn new(port: PortId, target: Target, source: IpAddr, hash: u64) -> Self {
        let (lanes, flows) = (Vec::new(), BTreeSet::new());
        Way { port, target, source, hash, lanes, bottleneck: None, flows }
    }
}

/// The queue and the rate in front of a way whose bottleneck has these properties.
pub(crate) fn shaper_profile(bottleneck: Option<&LinkProfile>) -> LinkProfile {
    let Some(profile) = bottleneck else {
        return LinkProfile { mtu: u32::MAX, ..LinkProfile::default() };
    };
    LinkProfile {
        rate: profile.rate,
        queue: profile.effective_queue(),
        overhead: Some(profile.effective_overhead()),
        discipline: Discipline::DropTail,
        mtu: u32::MAX,
        ..LinkProfile::default()
    }
}

/// The numbers of lanes, as the shares have them.
fn numbers(lanes: &[Lane]) -> Vec<u32> {
    lanes.iter().map(|lane| u32::try_from(lane.index()).unwrap_or(u32::MAX)).collect()
}
