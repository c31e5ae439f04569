//! Services: which packets are redirected, and to which replica.
//!
//! Theory of operation. A router asks the [`ServiceAddressFilter`] about a packet's destination; nearly every
//! packet ends there. What may be for a service is read into a [`Call`], found in the table of
//! [`RedirectionTable`], and then among the [`Pins`], which say to which replica its flow goes. A flow that has
//! none gets one by the service's policy (`choice`). All routers share the pins, so that a flow
//! stays with its replica where routes change. What happens to the packet then is the engine's
//! business (`engine/core/redirect.rs`).
//!
//! `docs/internals/services.md` has the rules.

mod call;
mod choice;
mod counters;
mod datagrams;
mod filter;
mod flow;
mod maglev;
mod ping;
mod pins;
mod replica;
mod reply;
mod rows;
mod status;
mod sweep;
mod transparent;
mod update;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cell::RefCell;

use windtunnel_model::plan::{
    Encapsulation, Hash, LoadBalancingPolicy, Pinning, Plan, ReplicaLossResponse,
    Service as Planned, ServicePort,
};
use windtunnel_model::random::RandomStream;
use windtunnel_model::{LinkDirection, NodeId, PortId, RouterId, ServiceId, Time};
use windtunnel_wire::packet::ParsedPacket;

use crate::tunnel::{Mouth, PacketTunnel};
pub(crate) use call::DatagramKey;
use call::{Call, CallKind, ServicePacketKind};
use choice::ReplicaRotation;
use datagrams::Datagrams;
use maglev::MaglevTableCache;
use ping::Pinged;
use pins::{CoarseDuration, CoarseTime, PinnedFlowKey, Pins};
use replica::ServiceReplica;
use rows::{RedirectionRow, RedirectionTable};

pub(crate) use choice::{FindWay, ReplicaPathMetrics};
pub use counters::{PinCounts, ServiceCounters};
pub(crate) use filter::ServiceAddressFilter;
pub use replica::{ReplicaCounters, ServiceReplicaStatus};
pub(crate) use reply::Silenced;
pub use status::{PinnedFlow, PinnedState, ServiceRow};
use transparent::Transparent;
pub use transparent::{ExpelledCounts, FailOverCounters, FailOverNews, FailOverWhat, ReplicaFault};
pub(crate) use transparent::{FailOverPacket, FailOverSender, Taken};

/// All services of a plan.
#[derive(Debug)]
pub(crate) struct ServiceRedirector {
    pub(crate) filter: ServiceAddressFilter,
    rows: RedirectionTable,
    pinged: Pinged,
    /// By `ServiceId`.
    list: Vec<RedirectedService>,
    pins: Pins,
    counts: PinCounts,
    datagrams: Datagrams,
    /// By port: whether tunnels end at its node.
    ends: Vec<bool>,
    /// By port: its node.
    owners: Vec<NodeId>,
    /// By node: its first interface, and its number for hashes, from its name.
    nodes: Vec<(Option<PortId>, u64)>,
    /// What a router chose last, by row and router, where that does not depend on the flow.
    choices: BTreeMap<(u16, RouterId), u16>,
    /// A choice that is another one than before, to be reported.
    moved: Option<ReplicaChoiceChange>,
    transparent: Transparent,
    /// Filled where they are asked for first.
    tables: RefCell<MaglevTableCache>,
    /// When pins are looked at next.
    next_sweep: Option<Time>,
    /// How many replicas are lost now, over all services.
    lost_replicas: usize,
}

/// A service.
#[derive(Debug)]
struct RedirectedService {
    planned: ServicePlan,
    replicas: Vec<ServiceReplica>,
    /// Whose turn it is, where the policy has one: of each router that is apart, or of all together.
    turns: BTreeMap<Option<RouterId>, ReplicaRotation>,
    counters: ServiceCounters,
}

/// What of a service does not change.
#[derive(Debug)]
struct ServicePlan {
    ports: Vec<ServicePort>,
    /// By router, as bits.
    at: Vec<u64>,
    policy: LoadBalancingPolicy,
    hash: Hash,
    pins: Pinning,
    on_loss: ReplicaLossResponse,
    encapsulation: Encapsulation,
    /// Whether a node has what no replica gets.
    has_origin: bool,
    tcp_idle: CoarseDuration,
    udp_idle: CoarseDuration,
    salt: u64,
}

impl ServicePlan {
    /// The routers that redirect.
    fn routers(&self) -> impl Iterator<Item = RouterId> + '_ {
        self.at.iter().zip(0u32..).flat_map(|(word, at)| {
            let set = (0..64u32).filter(move |bit| word >> bit & 1 != 0);
            set.map(move |bit| RouterId(at * 64 + bit))
        })
    }
}

/// A router chooses another replica than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplicaChoiceChange {
    pub(crate) row: u16,
    pub(crate) replica: NodeId,
}

/// What becomes of a packet to a service's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redirection {
    /// It is routed like any other.
    None,
    /// It goes to a replica.
    To(PacketTunnel, Hit),
    /// It is an echo request that the router answers.
    Answer,
    /// Its connection is lost with its replica's node.
    Lost(ServiceId, ReplicaLossResponse),
    /// It is of a connection that outlives its server, which this router keeps.
    Held(ServiceId, RouterId),
}

/// A packet that is redirected, to be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    service: u16,
    replica: u16,
}

/// Where a flow goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplicaAssignment {
    Nowhere,
    To(u16),
    Lost,
}

impl ServiceRedirector {
    pub(crate) fn new(plan: &Plan) -> ServiceRedirector {
        let addresses: Vec<_> = plan.services.iter().flat_map(Planned::addresses).collect();
        let node = |node: &windtunnel_model::plan::Node| {
            (node.interfaces.first().map(|it| it.port), salt(plan, &node.name))
        };
        // Without services these are not used.
        let nodes = if plan.services.is_empty() { &[][..] } else { &plan.nodes };
        let mut services = ServiceRedirector {
            filter: ServiceAddressFilter::new(&addresses),
            rows: RedirectionTable::new(plan),
            pinged: Pinged::new(plan),
            list: Vec::new(),
            pins: Pins::new(pins::CAPACITY_MAX),
            counts: PinCounts::default(),
            datagrams: Datagrams::default(),
            ends: alloc::vec![false; plan.ports().count()],
            owners: plan.ports().map(|(owner, _)| owner).collect(),
            nodes: nodes.iter().map(node).collect(),
            choices: BTreeMap::new(),
            moved: None,
            transparent: Transparent::new(plan),
            tables: RefCell::default(),
            next_sweep: None,
            lost_replicas: 0,
        };
        services.list = plan.services.iter().map(|it| services.service(plan, it)).collect();
        let replicas = plan.services.iter().flat_map(|service| &service.replicas);
        let replicas: BTreeSet<NodeId> = replicas.map(|it| it.node).collect();
        for (owner, ends) in services.owners.iter().zip(&mut services.ends) {
            *ends = replicas.contains(owner);
        }
        services
    }

    /// For at most so many pins, for tests.
    #[cfg(test)]
    fn with_pins(plan: &Plan, capacity: usize) -> ServiceRedirector {
        ServiceRedirector { pins: Pins::new(capacity), ..ServiceRedirector::new(plan) }
    }

    fn service(&self, plan: &Plan, service: &Planned) -> RedirectedService {
        let mut at = alloc::vec![0u64; plan.routers.len().div_ceil(64)];
        for router in &service.at {
            at[router.index() / 64] |= 1 << (router.index() % 64);
        }
        let replica = |it: &windtunnel_model::plan::Replica| {
            let (port, salt) = self.nodes[it.node.index()];
            Some(ServiceReplica::new(it.node, port?, salt, it.weight))
        };
        RedirectedService {
            planned: ServicePlan {
                ports: service.ports.clone(),
                at,
                policy: service.policy,
                hash: service.hash,
                pins: service.pins,
                on_loss: service.on_loss,
                encapsulation: service.encapsulation,
                has_origin: service.origin.is_some(),
                tcp_idle: CoarseDuration::of(service.tcp_idle),
                udp_idle: CoarseDuration::of(service.udp_idle),
                salt: salt(plan, &service.name),
            },
            replicas: service.replicas.iter().filter_map(replica).collect(),
            turns: BTreeMap::new(),
            counters: ServiceCounters::default(),
        }
    }

    /// What becomes of a packet at a router; pins its flow where that is new. Asking twice about
    /// one packet is harmless. `aim` is the replica that it is known to be for already.
    pub(crate) fn redirect(
        &mut self,
        now: Time,
        router: RouterId,
        packet: &ParsedPacket<'_>,
        aim: Option<PortId>,
        way: &mut FindWay<'_>,
    ) -> Redirection {
        if let Some(answered) = self.ping(router, packet, way) {
            return answered;
        }
        let tick = CoarseTime::of(now);
        let Some(call) = self.read(tick, packet) else { return Redirection::None };
        let Some((number, row)) = self.row_at(router, &call) else { return Redirection::None };
        let aim = aim.and_then(|port| self.replica_at(&row, port));
        if let Some(replica) = aim.filter(|replica| self.reaches(&row, *replica, way)) {
            return self.redirection(router, &row, ReplicaAssignment::To(replica));
        }
        let key = self.key(router, number, &row, &call);
        if let Some(held) = self.held(tick, router, &key, &row, &call, way) {
            return held;
        }
        self.pass(now, router, key, &row, &call, way)
    }

    /// The same for what the protocol of a transparent service refused.
    pub(crate) fn redirect_plainly(
        &mut self,
        now: Time,
        router: RouterId,
        packet: &ParsedPacket<'_>,
        way: &mut FindWay<'_>,
    ) -> Redirection {
        let Some(call) = self.read(CoarseTime::of(now), packet) else { return Redirection::None };
        let Some((number, row)) = self.row_at(router, &call) else { return Redirection::None };
        let key = self.key(router, number, &row, &call);
        self.pass(now, router, key, &row, &call, way)
    }

    /// Reads a packet to a service; fragments have what was read of the first.
    fn read(&mut self, now: CoarseTime, packet: &ParsedPacket<'_>) -> Option<Call> {
        match ServicePacketKind::of(packet) {
            ServicePacketKind::Call(call) => Some(call),
            ServicePacketKind::First(whole, call) => {
                self.datagrams.note(now, whole, call);
                Some(call)
            }
            ServicePacketKind::Later(whole) => {
                let found = self.datagrams.find(now, &whole);
                self.counts.unknown_fragments += u64::from(found.is_none());
                found
            }
            ServicePacketKind::Nothing => None,
        }
    }

    /// Where a packet goes that has one replica.
    fn pass(
        &mut self,
        now: Time,
        router: RouterId,
        key: PinnedFlowKey,
        row: &RedirectionRow,
        call: &Call,
        way: &mut FindWay<'_>,
    ) -> Redirection {
        let tick = CoarseTime::of(now);
        let aim = match self.known(tick, &key) {
            Some(pin) => match self.follow(pin, row, call) {
                // Another redirector has a way to its replica, and this one has none.
                Some(ReplicaAssignment::To(replica))
                    if !self.is_of(pin, router) && !self.reaches(row, replica, way) =>
                {
                    ReplicaAssignment::Nowhere
                }
                Some(aim) => {
                    self.touch(tick, router, pin, row, call);
                    aim
                }
                None => {
                    self.forget(pin);
                    self.begin(now, router, key, row, call, way)
                }
            },
            None => self.begin(now, router, key, row, call, way),
        };
        self.redirection(router, row, aim)
    }

    /// Where a packet would go from a router, without that anything comes of it.
    pub(crate) fn foresee(
        &self,
        now: Time,
        router: RouterId,
        packet: &ParsedPacket<'_>,
        way: &mut FindWay<'_>,
    ) -> Redirection {
        if let Some(answered) = self.ping(router, packet, way) {
            return answered;
        }
        let tick = CoarseTime::of(now);
        let call = match ServicePacketKind::of(packet) {
            ServicePacketKind::Call(call) | ServicePacketKind::First(_, call) => Some(call),
            ServicePacketKind::Later(whole) => self.datagrams.find(tick, &whole),
            ServicePacketKind::Nothing => None,
        };
        let Some(call) = call else { return Redirection::None };
        let Some((number, row)) = self.row_at(router, &call) else { return Redirection::None };
        let key = self.key(router, number, &row, &call);
        if let Some(held) = self.held(tick, router, &key, &row, &call, way) {
            return held;
        }
        let pin = self.known(tick, &key);
        let mut aim = pin.and_then(|pin| self.follow(pin, &row, &call));
        if let (Some(pin), Some(ReplicaAssignment::To(replica))) = (pin, aim)
            && !self.is_of(pin, router)
            && !self.reaches(&row, replica, way)
        {
            aim = Some(ReplicaAssignment::Nowhere);
        }
        let aim = aim.unwrap_or_else(|| {
            let is_new = !matches!(call.kind, CallKind::Error) && !self.is_of_origin(&row, &call);
            let chosen = is_new.then(|| self.choose(router, &row, &call, way)).flatten();
            chosen.map_or(ReplicaAssignment::Nowhere, ReplicaAssignment::To)
        });
        self.redirection(router, &row, aim)
    }

    /// Counts a packet that is redirected.
    pub(crate) fn count(&mut self, hit: Hit, packets: u32, bytes: u64) {
        let service = &mut self.list[usize::from(hit.service)];
        let counters = &mut service.replicas[usize::from(hit.replica)].counters;
        counters.packets += u64::from(packets);
        counters.bytes += bytes;
    }

    /// Counts an error about what a replica sent that cannot be passed on to it.
    pub(crate) fn count_lost_error(&mut self) {
        self.counts.lost_errors += 1;
    }

    /// Counts a packet whose connection is lost, and whether its client was reset.
    pub(crate) fn count_lost(&mut self, service: ServiceId, packets: u32, reset: bool) {
        let counters = &mut self.list[service.index()].counters;
        counters.lost += u64::from(packets);
        counters.resets += u64::from(reset);
    }

    /// Whether tunnels end at the node of a port.
    #[inline]
    pub(crate) fn ends_at(&self, port: PortId) -> bool {
        self.ends[port.index()]
    }

    /// A choice that changed since the last call.
    pub(crate) fn take_moved(&mut self) -> Option<ReplicaChoiceChange> {
        self.moved.take()
    }

    /// The row of a packet that a router redirects.
    fn row_at(&self, router: RouterId, call: &Call) -> Option<(u16, RedirectionRow)> {
        let number = self.rows.find(call.address, call.port, call.protocol)?;
        let row = *self.rows.get(number);
        self.redirects(router, &row).then_some((number, row))
    }

    /// Whether a router is one of those that redirect for a row's service.
    fn redirects(&self, router: RouterId, row: &RedirectionRow) -> bool {
        let at = &self.list[usize::from(row.service)].planned.at;
        at[router.index() / 64] >> (router.index() % 64) & 1 != 0
    }

    fn redirection(
        &self,
        router: RouterId,
        row: &RedirectionRow,
        aim: ReplicaAssignment,
    ) -> Redirection {
        let service = &self.list[usize::from(row.service)];
        let replica = match aim {
            ReplicaAssignment::Nowhere => return Redirection::None,
            ReplicaAssignment::Lost => {
                return Redirection::Lost(ServiceId(row.service.into()), service.planned.on_loss);
            }
            ReplicaAssignment::To(replica) => replica,
        };
        let tunnel = PacketTunnel {
            end: Mouth::Port(service.replicas[usize::from(replica)].port),
            start: Mouth::Router(router),
            overhead: transparent::overhead(service.planned.encapsulation, row.is_v6),
            fragments: service.planned.encapsulation == Encapsulation::Fragment,
        };
        Redirection::To(tunnel, Hit { service: row.service, replica })
    }
}

/// A number for hashes that belongs to a name.
fn salt(plan: &Plan, name: &str) -> u64 {
    RandomStream::derive(plan.seed, name, LinkDirection::Up, "service").at(0)
}

/// A well-mixed hash of an address and a number, the same on every machine: the finaliser of
/// SplitMix64 (Steele, Lea, Flood; OOPSLA 2014) over the parts.
pub(super) fn mix(address: u128, number: u64) -> u64 {
    let round = |value: u64| {
        let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    };
    let [high, low] = halves(address);
    // The high half is all the same for IPv4.
    round(round(low ^ high.rotate_left(23)).wrapping_add(number.wrapping_mul(0x9e37_79b9)))
}

/// The high and the low half.
pub(super) fn halves(number: u128) -> [u64; 2] {
    [number >> 64, number & u128::from(u64::MAX)].map(|half| u64::try_from(half).unwrap_or(0))
}

#[cfg(test)]
mod tests;
