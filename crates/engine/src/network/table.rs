//! What routers have been asked: the answer for a packet of a known kind is one look-up.
//!
//! Answers are worked out when they are first needed and forgotten when routes change. Where
//! several paths are equal, the flow chooses: each of the lanes draws a weight from the flow's hash
//! and the lane's own number, and the heaviest wins (highest random weight; RFC 2991, 6). So a flow
//! stays on its path, routers choose independently of each other, and when a path comes or goes
//! only the flows that it wins or carried move.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::random::RandomStream;
use windtunnel_model::{Lane, NodeId, Plan, RouterId};
use windtunnel_routing::RouteDestination;

/// Where a router sends packets of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextHop {
    /// Nowhere.
    None,
    /// Along one lane.
    One(Lane),
    /// Along the lane of a group that the flow chooses.
    Many(usize),
}

/// What has been asked.
#[derive(Debug)]
pub(super) struct NextHopCache {
    ports: usize,
    routers: usize,
    lans: usize,
    /// By router, then by port, router and LAN aimed at; empty for large plans.
    dense: Vec<Option<NextHop>>,
    /// What has been asked besides.
    known: BTreeMap<(RouterId, Option<NodeId>, RouteDestination), NextHop>,
    /// Lanes of equal cost.
    groups: Vec<Box<[Lane]>>,
    /// By lane index: its number in choices; empty where there are none.
    salts: Vec<u64>,
}

impl NextHopCache {
    pub(super) fn new(plan: &Plan) -> Self {
        let (ports, routers) = (plan.ports().count(), plan.routers.len());
        let lans = plan.lans.len();
        let entries = routers * (ports + routers + lans);
        let dense = if entries <= DENSE_MAX { vec![None; entries] } else { Vec::new() };
        let lanes = (0..plan.links.len() * 2).map(Lane::from_index);
        let salt = |lane: Lane| {
            let link = &plan.links[lane.link.index()].name;
            RandomStream::derive(plan.seed, link, lane.direction, "ecmp").at(0)
        };
        let salts = if plan.routing.ecmp { lanes.map(salt).collect() } else { Vec::new() };
        NextHopCache {
            ports,
            routers,
            lans,
            dense,
            known: BTreeMap::new(),
            groups: Vec::new(),
            salts,
        }
    }

    /// Forgets all answers.
    pub(super) fn forget(&mut self) {
        self.dense.fill(None);
        self.known.clear();
        self.groups.clear();
    }

    /// Where a packet goes next; `owner` is its source where that matters, `ask` computes what is
    /// not known.
    pub(super) fn next_hop(
        &mut self,
        router: RouterId,
        owner: Option<NodeId>,
        target: RouteDestination,
        ask: impl FnOnce() -> Vec<Lane>,
    ) -> NextHop {
        if owner.is_none() && !self.dense.is_empty() {
            let place = self.place(router, target);
            if let Some(next) = self.dense[place] {
                return next;
            }
            let next = self.learn(ask());
            self.dense[place] = Some(next);
            return next;
        }
        let key = (router, owner, target);
        if let Some(next) = self.known.get(&key) {
            return *next;
        }
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
            // Their numbers are in the answers that are gone; the dense answers keep theirs.
            if self.dense.is_empty() {
                self.groups.clear();
            }
        }
        let next = self.learn(ask());
        self.known.insert(key, next);
        next
    }

    /// The lane of a group that a flow uses.
    pub(super) fn choose(&self, group: usize, flow: u64) -> Lane {
        let lanes = &self.groups[group];
        let weight = |lane: &&Lane| mix(flow ^ self.salts[lane.index()]);
        *lanes.iter().max_by_key(weight).expect("a group has two lanes or more")
    }

    fn learn(&mut self, lanes: Vec<Lane>) -> NextHop {
        match lanes.as_slice() {
            [] => NextHop::None,
            [lane] => NextHop::One(*lane),
            _ => {
                let known = self.groups.iter().position(|group| **group == *lanes);
                NextHop::Many(known.unwrap_or_else(|| {
                    self.groups.push(lanes.into());
                    self.groups.len() - 1
                }))
            }
        }
    }

    fn place(&self, router: RouterId, target: RouteDestination) -> usize {
        let column = match target {
            RouteDestination::Port(port) => port.index(),
            RouteDestination::Router(router) => self.ports + router.index(),
            RouteDestination::Lan(lan) => self.ports + self.routers + lan.index(),
        };
        router.index() * (self.ports + self.routers + self.lans) + column
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Plans whose routers times targets are more than this are not tabulated but looked up as needed.
const DENSE_MAX: usize = 1 << 20;
/// Remembered look-ups; beyond, all are forgotten.
const KNOWN_MAX: usize = 1 << 20;
