//! The search problem: units that are moved as a whole, the links between them, and the room on
//! machines.

use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::placement::Strategy;

use crate::closeness::NodeProximity;
use crate::host::{PlacementHost, Rtts};
use crate::net::Net;

/// Units, links and machines to divide them over.
#[derive(Debug, Clone)]
pub(crate) struct PlacementProblem {
    /// Groups of nodes first, then routers and LANs, which have no weight and may be nowhere.
    pub(crate) units: Vec<PlacementUnit>,
    /// How many of the units are groups of nodes.
    pub(crate) groups: usize,
    /// By machine.
    pub(crate) rooms: Vec<MachineHeadroom>,
    /// By pair of machines: nanoseconds one way.
    pub(crate) one_way: Vec<Vec<u64>>,
}

/// Nodes that stay together, or a router or LAN.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlacementUnit {
    pub(crate) need: UnitDemand,
    /// Its weight when machines are filled evenly.
    pub(crate) weight: i64,
    /// By machine, whether pins let it be there.
    pub(crate) allowed: Vec<bool>,
    /// Links to other units.
    pub(crate) edges: Vec<UnitEdge>,
    /// Units that must be at most so many nanoseconds away.
    pub(crate) near: Vec<(usize, u64)>,
}

/// A unit's demand on its machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UnitDemand {
    /// Thousandths of processors.
    pub(crate) cpu: i64,
    /// Kilobytes.
    pub(crate) memory: i64,
    pub(crate) nodes: i64,
}

/// The links from one unit to another and back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnitEdge {
    pub(crate) to: usize,
    /// The cost of cutting it.
    pub(crate) weight: i64,
    /// Bits a second there; nothing where there is no bound.
    pub(crate) out: i64,
    /// Bits a second back.
    pub(crate) back: i64,
}

/// A machine's free capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MachineHeadroom {
    pub(crate) need: UnitDemand,
    pub(crate) up: i64,
    pub(crate) down: i64,
    /// Weight that it should have at least and at most.
    pub(crate) even: (i64, i64),
    /// Whether evenness outweighs its uplink.
    pub(crate) strict: bool,
}

impl PlacementProblem {
    /// `group_of` is the group of each node.
    pub(crate) fn new(
        net: &Net,
        groups: Vec<PlacementUnit>,
        group_of: &[usize],
        near: &[NodeProximity],
        hosts: &[PlacementHost],
        rtts: &Rtts,
    ) -> Self {
        let one_way: Vec<Vec<u64>> = (0..hosts.len())
            .map(|a| (0..hosts.len()).map(|b| rtts.one_way(a, b)).collect())
            .collect();
        let (count, between) = (groups.len(), net.vertices() - net.nodes);
        let passive =
            PlacementUnit { allowed: vec![true; hosts.len()], ..PlacementUnit::default() };
        let mut units = groups;
        units.extend(core::iter::repeat_n(passive, between));
        let unit = |vertex: usize| match group_of.get(vertex) {
            Some(group) => *group,
            None => count + vertex - net.nodes,
        };
        let far = one_way.iter().flatten().copied().max().unwrap_or(0);
        let unlimited = net.lanes.iter().filter_map(|lane| lane.rate).max().unwrap_or(NO_RATE);
        for pair in net.lanes.chunks_exact(2) {
            let (there, back) = (&pair[0], &pair[1]);
            let (a, b) = (unit(there.from), unit(there.to));
            if a == b {
                continue;
            }
            let nearness = factor(there.latency.min(back.latency), far);
            let kbit = |rate: Option<u64>| clamp(rate.unwrap_or(unlimited)) / 1000 + 1;
            let weight = (kbit(there.rate) + kbit(back.rate)) * nearness;
            let (out, into) = (clamp(there.rate.unwrap_or(0)), clamp(back.rate.unwrap_or(0)));
            units[a].edges.push(UnitEdge { to: b, weight, out, back: into });
            units[b].edges.push(UnitEdge { to: a, weight, out: into, back: out });
        }
        for pair in near.iter().filter(|pair| pair.latency > 0 && pair.latency < far) {
            let (a, b) = (unit(pair.a), unit(pair.b));
            if a != b {
                units[a].near.push((b, pair.latency));
                units[b].near.push((a, pair.latency));
            }
        }
        PlacementProblem {
            rooms: hosts.iter().map(MachineHeadroom::of).collect(),
            groups: count,
            units,
            one_way,
        }
    }

    /// Chooses how evenly the machines in `used` are filled; the others get nothing.
    pub(crate) fn fill(&mut self, strategy: Strategy, used: &[bool]) {
        let groups = &self.units[..self.groups];
        let total: i64 = groups.iter().map(|unit| unit.weight).sum();
        let heaviest = groups.iter().map(|unit| unit.weight).max().unwrap_or(0);
        let nodes: i64 = groups.iter().map(|unit| unit.need.nodes).sum::<i64>().max(1);
        let memory: i64 = groups.iter().map(|unit| unit.need.memory).sum::<i64>().max(1);
        let shares = self.shares(used, total, |room| {
            let by_nodes = share_of(room.nodes, total, nodes);
            by_nodes.min(share_of(room.memory, total, memory))
        });
        for (room, share) in self.rooms.iter_mut().zip(shares) {
            let exact = (share - heaviest + 1, share + heaviest - 1);
            room.strict = strategy == Strategy::Spread;
            room.even = match strategy {
                Strategy::Pack => (0, i64::MAX),
                Strategy::Spread => exact,
                Strategy::Auto => ((share * 9 / 10).min(exact.0), (share * 11 / 10).max(exact.1)),
            };
        }
        for unit in &mut self.units {
            unit.allowed.iter_mut().zip(used).for_each(|(allowed, used)| *allowed &= used);
        }
    }

    /// The share of each machine: in proportion to its free processors, up to its room otherwise.
    fn shares(&self, used: &[bool], total: i64, most: impl Fn(UnitDemand) -> i64) -> Vec<i64> {
        let mut shares: Vec<Option<i64>> =
            used.iter().map(|used| if *used { None } else { Some(0) }).collect();
        loop {
            let given: i64 = shares.iter().flatten().sum();
            let open: Vec<usize> = (0..shares.len()).filter(|at| shares[*at].is_none()).collect();
            let power: i64 = open.iter().map(|at| self.rooms[*at].need.cpu.max(1)).sum();
            let share =
                |at: usize| share_of(self.rooms[at].need.cpu.max(1), total - given, power.max(1));
            let full: Vec<usize> =
                open.iter().copied().filter(|at| most(self.rooms[*at].need) < share(*at)).collect();
            if full.is_empty() {
                let rest: Vec<(usize, i64)> = open.iter().map(|at| (*at, share(*at))).collect();
                rest.into_iter().for_each(|(at, share)| shares[at] = Some(share));
                return shares.into_iter().flatten().collect();
            }
            full.into_iter().for_each(|at| shares[at] = Some(most(self.rooms[at].need)));
        }
    }
}

impl MachineHeadroom {
    fn of(host: &PlacementHost) -> Self {
        let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX).min(PLENTY);
        let need = UnitDemand {
            cpu: whole(host.free_cpu_millis()),
            memory: whole(host.free_memory().0 / 1000),
            nodes: host.free_nodes().map_or(PLENTY, i64::from),
        };
        let (up, down) = (host.free_up(), host.free_down());
        let (up, down) = (up.map_or(PLENTY, whole), down.map_or(PLENTY, whole));
        MachineHeadroom { need, up, down, even: (0, 0), strict: false }
    }
}

/// How much dearer it is to cut a link the shorter it is, up to 16 times.
fn factor(latency: u64, far: u64) -> i64 {
    let reference = far.max(USUAL_ONE_WAY).saturating_mul(16);
    i64::try_from((reference / latency.saturating_add(far.max(USUAL_ONE_WAY))).clamp(1, 16))
        .unwrap_or(1)
}

fn share_of(part: i64, total: i64, of: i64) -> i64 {
    let share = i128::from(part) * i128::from(total) / i128::from(of);
    i64::try_from(share).unwrap_or(i64::MAX / 16).min(i64::MAX / 16)
}

/// Rates so high that their sums fit.
fn clamp(rate: u64) -> i64 {
    i64::try_from(rate).unwrap_or(HIGHEST).min(HIGHEST)
}

/// The weight of a lane without a rate where no lane has one.
const NO_RATE: u64 = 1_000_000_000;
/// 20 Tbit/s: both directions of 50 000 links add up to less than `i64` holds, also where they
/// weigh 16 times.
const HIGHEST: i64 = 20_000_000_000_000;
/// No bound, and room for sums.
const PLENTY: i64 = i64::MAX / 4;
/// Nanoseconds between machines of one room, where nothing is known.
const USUAL_ONE_WAY: u64 = 100_000;
