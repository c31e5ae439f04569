//! Services: which packets are redirected, and to which replica.
//!
//! Theory of operation. A router asks the [`Filter`] about a packet's destination; nearly every
//! packet ends there. What may be for a service is read into a [`Call`], found in the table of
//! [`Rows`], and then among the [`Pins`], which say to which replica its flow goes. A flow that has
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
mod pins;
mod replica;
mod reply;
mod rows;
mod status;
mod sweep;
mod update;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use windtunnel_model::plan::{
    Encapsulation, OnLoss, Plan, Policy, Service as Planned, ServicePort, Transport,
};
use windtunnel_model::random::Stream;
use windtunnel_model::{Direction, NodeId, PortId, RouterId, ServiceId, Time};
use windtunnel_wire::packet::Info;
use windtunnel_wire::tcp;

use crate::tunnel::Tunnel;
use call::{Call, CallKind, Reading};
use choice::Question;
use datagrams::Datagrams;
use pins::{Key, Pin, Pins, State, Tick, Ticks};
use replica::Replica;
use rows::{Row, Rows};

pub(crate) use choice::{FindWay, Way};
pub use counters::{PinCounts, ServiceCounters};
pub(crate) use filter::Filter;
pub use replica::{ReplicaCounters, ReplicaStatus};
pub use status::{PinnedFlow, PinnedState, ServiceRow};

/// All services of a plan.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) filter: Filter,
    rows: Rows,
    /// By `ServiceId`.
    list: Vec<Service>,
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
    moved: Option<Moved>,
    /// When pins are looked at next.
    next_sweep: Option<Time>,
}

/// A service.
#[derive(Debug)]
struct Service {
    planned: ServicePlan,
    replicas: Vec<Replica>,
    counters: ServiceCounters,
}

/// What of a service does not change.
#[derive(Debug)]
struct ServicePlan {
    ports: Vec<ServicePort>,
    /// By router, as bits.
    at: Vec<u64>,
    policy: Policy,
    on_loss: OnLoss,
    encapsulation: Encapsulation,
    tcp_idle: Ticks,
    udp_idle: Ticks,
    salt: u64,
}

/// A router chooses another replica than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) row: u16,
    pub(crate) replica: NodeId,
}

/// What becomes of a packet to a service's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redirection {
    /// It is routed like any other.
    None,
    /// It goes to a replica.
    To(Tunnel, Hit),
    /// Its connection is lost with its replica's node.
    Lost(ServiceId, OnLoss),
}

/// A packet that is redirected, to be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    service: u16,
    replica: u16,
}

/// Where a flow goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    Nowhere,
    To(u16),
    Lost,
}

impl Services {
    pub(crate) fn new(plan: &Plan) -> Services {
        let addresses: Vec<_> = plan.services.iter().flat_map(Planned::addresses).collect();
        let node = |node: &windtunnel_model::plan::Node| {
            (node.interfaces.first().map(|it| it.port), salt(plan, &node.name))
        };
        // Without services nobody asks.
        let nodes = if plan.services.is_empty() { &[][..] } else { &plan.nodes };
        let mut services = Services {
            filter: Filter::new(&addresses),
            rows: Rows::new(plan),
            list: Vec::new(),
            pins: Pins::new(pins::CAPACITY_MAX),
            counts: PinCounts::default(),
            datagrams: Datagrams::default(),
            ends: alloc::vec![false; plan.ports().count()],
            owners: plan.ports().map(|(owner, _)| owner).collect(),
            nodes: nodes.iter().map(node).collect(),
            choices: BTreeMap::new(),
            moved: None,
            next_sweep: None,
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
    fn with_pins(plan: &Plan, capacity: usize) -> Services {
        Services { pins: Pins::new(capacity), ..Services::new(plan) }
    }

    fn service(&self, plan: &Plan, service: &Planned) -> Service {
        let mut at = alloc::vec![0u64; plan.routers.len().div_ceil(64)];
        for router in &service.at {
            at[router.index() / 64] |= 1 << (router.index() % 64);
        }
        let replica = |it: &windtunnel_model::plan::Replica| {
            let (port, salt) = self.nodes[it.node.index()];
            Some(Replica::new(it.node, port?, salt, it.weight))
        };
        Service {
            planned: ServicePlan {
                ports: service.ports.clone(),
                at,
                policy: service.policy,
                on_loss: service.on_loss,
                encapsulation: service.encapsulation,
                tcp_idle: Ticks::of(service.tcp_idle),
                udp_idle: Ticks::of(service.udp_idle),
                salt: salt(plan, &service.name),
            },
            replicas: service.replicas.iter().filter_map(replica).collect(),
            counters: ServiceCounters::default(),
        }
    }

    /// What becomes of a packet at a router; pins its flow where that is new. Asking twice about
    /// one packet is no mistake.
    pub(crate) fn redirect(
        &mut self,
        now: Time,
        router: RouterId,
        (info, frame): (&Info, &[u8]),
        way: &mut FindWay<'_>,
    ) -> Redirection {
        let tick = Tick::of(now);
        let call = match Reading::of(info, frame) {
            Reading::Call(call) => call,
            Reading::First(whole, call) => {
                self.datagrams.note(tick, whole, call);
                call
            }
            Reading::Later(whole) => match self.datagrams.find(tick, &whole) {
                Some(call) => call,
                None => {
                    self.counts.unknown_fragments += 1;
                    return Redirection::None;
                }
            },
            Reading::Nothing => return Redirection::None,
        };
        let Some((number, row)) = self.row_at(router, &call) else { return Redirection::None };
        let key = Key { client: call.client, client_port: call.client_port, row: number };
        let aim = match self.known(tick, &key) {
            Some(pin) => match self.follow(pin, &row, &call) {
                Some(aim) => {
                    self.touch(tick, router, pin, &row, &call);
                    aim
                }
                None => {
                    self.forget(pin);
                    self.begin(now, router, (key, &row), &call, way)
                }
            },
            None => self.begin(now, router, (key, &row), &call, way),
        };
        self.redirection(router, &row, aim)
    }

    /// Where a packet would go from a router, without that anything comes of it.
    pub(crate) fn foresee(
        &self,
        now: Time,
        router: RouterId,
        (info, frame): (&Info, &[u8]),
        way: &mut FindWay<'_>,
    ) -> Redirection {
        let tick = Tick::of(now);
        let call = match Reading::of(info, frame) {
            Reading::Call(call) | Reading::First(_, call) => Some(call),
            Reading::Later(whole) => self.datagrams.find(tick, &whole),
            Reading::Nothing => None,
        };
        let Some(call) = call else { return Redirection::None };
        let Some((number, row)) = self.row_at(router, &call) else { return Redirection::None };
        let key = Key { client: call.client, client_port: call.client_port, row: number };
        let aim = self.known(tick, &key).and_then(|pin| self.follow(pin, &row, &call));
        let aim = aim.unwrap_or_else(|| {
            let is_new = !matches!(call.kind, CallKind::Error);
            let chosen = is_new.then(|| self.choose(&row, &call, way)).flatten();
            chosen.map_or(Aim::Nowhere, Aim::To)
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

    /// Counts a packet whose connection is lost, and whether its client was told.
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
    pub(crate) fn take_moved(&mut self) -> Option<Moved> {
        self.moved.take()
    }

    /// The row of a packet that a router redirects.
    fn row_at(&self, router: RouterId, call: &Call) -> Option<(u16, Row)> {
        let number = self.rows.find(call.address, call.port, call.protocol)?;
        let row = *self.rows.get(number);
        let at = &self.list[usize::from(row.service)].planned.at;
        let redirects = at[router.index() / 64] >> (router.index() % 64) & 1 != 0;
        redirects.then_some((number, row))
    }

    /// The pin of a flow whose time is not over.
    fn known(&self, now: Tick, key: &Key) -> Option<u32> {
        let number = self.pins.find(key)?;
        (!self.is_over(now, self.pins.get(number))).then_some(number)
    }

    /// Where a pinned flow's packet goes; `None`: it is to be given a replica anew.
    fn follow(&self, pin: u32, row: &Row, call: &Call) -> Option<Aim> {
        let pin = self.pins.get(pin);
        let replica = &self.list[usize::from(row.service)].replicas[usize::from(pin.replica)];
        let stays = match pin.state {
            // No connection: the client has heard nothing of its SYN, or nothing that it answered.
            State::Opening => replica.serves(row.position) || !call.opens(),
            State::Flow => replica.serves(row.position),
            // Another SYN is another connection; a copy of the old one is none.
            _ => !(call.opens() && sequence(call) != pin.initial),
        };
        let is_lost = replica.lost && pin.state != State::Flow;
        stays.then_some(if is_lost { Aim::Lost } else { Aim::To(pin.replica) })
    }

    /// Notes what a packet says of its flow.
    fn touch(&mut self, now: Tick, router: RouterId, number: u32, row: &Row, call: &Call) {
        let CallKind::Segment { flags, acknowledgement, .. } = call.kind else {
            if !matches!(call.kind, CallKind::Error) {
                self.pins.get_mut(number).seen = now;
            }
            return;
        };
        let pin = self.pins.get_mut(number);
        pin.seen = now;
        pin.router = u16::try_from(router.0).unwrap_or(u16::MAX);
        if flags & tcp::ACK != 0 {
            pin.acknowledged = acknowledgement;
        }
        let before = pin.state;
        if flags & (tcp::FIN | tcp::RST) != 0 {
            pin.state = State::Closing;
        } else if flags & tcp::ACK != 0 && before == State::Opening {
            pin.state = State::Open;
        }
        let ends = before.is_connection() && !pin.state.is_connection();
        let replica = pin.replica;
        if ends {
            let service = &mut self.list[usize::from(row.service)];
            service.replicas[usize::from(replica)].counters.live_connections -= 1;
        }
    }

    /// Gives a flow a replica.
    fn begin(
        &mut self,
        now: Time,
        router: RouterId,
        (key, row): (Key, &Row),
        call: &Call,
        way: &mut FindWay<'_>,
    ) -> Aim {
        // A flow that is not known has sent nothing that an error could be about.
        if matches!(call.kind, CallKind::Error) {
            return Aim::Nowhere;
        }
        let chosen = self.choose(row, call, way);
        let service = &mut self.list[usize::from(row.service)];
        let Some(replica) = chosen else {
            service.counters.unserved += 1;
            return Aim::Nowhere;
        };
        // A reset of nothing begins nothing.
        if call.flags() & tcp::RST == 0 {
            let picked_up = row.port.transport == Transport::Tcp && !call.opens();
            service.counters.picked_up += u64::from(picked_up);
            self.note_choice(router, key.row, replica);
            self.pin(now, router, key, replica, call);
        }
        Aim::To(replica)
    }

    fn choose(&self, row: &Row, call: &Call, way: &mut FindWay<'_>) -> Option<u16> {
        let service = &self.list[usize::from(row.service)];
        let question = Question {
            policy: service.planned.policy,
            position: row.position,
            passes_nodes: service.planned.encapsulation != Encapsulation::None,
            salt: service.planned.salt,
            call,
        };
        question.choose(&service.replicas, way)
    }

    fn pin(&mut self, now: Time, router: RouterId, key: Key, replica: u16, call: &Call) {
        let tick = Tick::of(now);
        // One whose time is over may still be there.
        if let Some(old) = self.pins.find(&key) {
            self.expire(old);
        }
        let state = match (self.rows.get(key.row).port.transport, call.flags()) {
            (Transport::Udp, _) => State::Flow,
            (Transport::Tcp, flags) if flags & tcp::FIN != 0 => State::Closing,
            (Transport::Tcp, _) if call.opens() => State::Opening,
            (Transport::Tcp, _) => State::Open,
        };
        let mut pin = Pin::new(key, replica, state, tick);
        pin.router = u16::try_from(router.0).unwrap_or(u16::MAX);
        if let CallKind::Segment { sequence, acknowledgement, .. } = call.kind {
            (pin.initial, pin.acknowledged) = (sequence, acknowledgement);
        }
        if self.pins.insert(pin).is_none() {
            self.evict(tick);
            self.pins.insert(pin);
        }
        self.next_sweep.get_or_insert(now + self.pins.sweep_period());
        let service = &mut self.list[usize::from(self.rows.get(key.row).service)];
        let counters = &mut service.replicas[usize::from(replica)].counters;
        match state {
            State::Flow => {
                counters.flows += 1;
                counters.live_flows += 1;
            }
            State::Opening | State::Open => {
                counters.connections += 1;
                counters.live_connections += 1;
            }
            State::Closing | State::Free => counters.connections += 1,
        }
    }

    /// Notes what a router chose, where that is the same for every flow.
    fn note_choice(&mut self, router: RouterId, row: u16, replica: u16) {
        let service = &self.list[usize::from(self.rows.get(row).service)];
        let same_for_all =
            matches!(service.planned.policy, Policy::Nearest | Policy::Hops | Policy::Ordered);
        let key = (row, router);
        if !same_for_all || self.choices.len() >= CHOICES_MAX && !self.choices.contains_key(&key) {
            return;
        }
        let before = self.choices.insert(key, replica);
        if before.is_some_and(|before| before != replica) {
            let replica = service.replicas[usize::from(replica)].node;
            self.moved = Some(Moved { row, replica });
        }
    }

    fn redirection(&self, router: RouterId, row: &Row, aim: Aim) -> Redirection {
        let service = &self.list[usize::from(row.service)];
        let replica = match aim {
            Aim::Nowhere => return Redirection::None,
            Aim::Lost => {
                return Redirection::Lost(ServiceId(row.service.into()), service.planned.on_loss);
            }
            Aim::To(replica) => replica,
        };
        let overhead = match (service.planned.encapsulation, row.is_v6) {
            (Encapsulation::None, _) => 0,
            (_, false) => 20,
            (_, true) => 40,
        };
        let tunnel = Tunnel {
            end: service.replicas[usize::from(replica)].port,
            start: router,
            overhead,
            fragments: service.planned.encapsulation == Encapsulation::Fragment,
        };
        Redirection::To(tunnel, Hit { service: row.service, replica })
    }
}

/// A number for hashes that belongs to a name.
fn salt(plan: &Plan, name: &str) -> u64 {
    Stream::derive(plan.seed, name, Direction::Up, "service").at(0)
}

fn sequence(call: &Call) -> u32 {
    match call.kind {
        CallKind::Segment { sequence, .. } => sequence,
        CallKind::Plain | CallKind::Error => 0,
    }
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

/// Choices that are remembered to notice when they change.
const CHOICES_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests;
