//! A machine: its clock, its agent, and the truth about both.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use windtunnel_mesh::{AgentId, Mesh, PlanHash, RunId};
use windtunnel_model::flow::{ActiveFlow, FlowKey};
use windtunnel_model::{Span, Time};

use super::IP_UDP;
use super::view::MeshStateView;

/// The first machine's address; the others' follow.
const FIRST: u32 = 0x0a00_0001;

/// A clock that goes faster or slower than the world's, and may be set.
#[derive(Debug, Clone, Copy)]
pub struct HostClock {
    since: Time,
    base: Time,
    skew_ppb: i64,
}

/// A machine's part in a run.
#[derive(Debug, Clone)]
pub struct MachineRunState {
    /// The hash that it goes by.
    pub plan: PlanHash,
    /// The members.
    pub members: BTreeSet<AgentId>,
    /// Its flows, and the agents that each is announced to.
    pub flows: BTreeMap<FlowKey, (ActiveFlow, BTreeSet<AgentId>)>,
}

/// A machine.
#[derive(Debug)]
pub struct SimulatedMachine {
    /// Its agent's id.
    pub agent: AgentId,
    /// Its address.
    pub address: SocketAddr,
    /// Its clock.
    pub clock: HostClock,
    /// Its agent, while it lives.
    pub mesh: Option<Mesh>,
    /// How often its agent has been started.
    pub starts: u64,
    /// Its parts in runs.
    pub runs: BTreeMap<RunId, MachineRunState>,
    /// The view that its agent's events give.
    pub view: MeshStateView,
    /// Datagrams and bytes sent since the machine was made, with headers of IP and UDP.
    pub sent: (u64, u64),
    /// The same, that came.
    pub received: (u64, u64),
    /// The receivers of its datagrams since [`super::MeshWorld::forget_receivers`].
    pub receivers: BTreeSet<SocketAddr>,
    /// Ends of flows that its agent remembers.
    pub ended_limit: usize,
    pub(super) wake: Option<Time>,
    /// Until when its agent gets no processor.
    pub(super) stalled: Time,
}

impl HostClock {
    pub(super) fn new(now: Time, ahead: Span, skew_ppb: i64) -> Self {
        HostClock { since: now, base: Time::ZERO + ahead, skew_ppb }
    }

    /// The time that it shows.
    #[must_use]
    pub fn read(&self, now: Time) -> Time {
        let passed = i128::from(now.since(self.since).as_nanos());
        let shown = passed + passed * i128::from(self.skew_ppb) / 1_000_000_000;
        self.base + Span::from_nanos(u64::try_from(shown).unwrap_or(0))
    }

    /// When it will show at least that.
    #[must_use]
    pub fn when(&self, shown: Time) -> Time {
        let ahead = i128::from(shown.since(self.base).as_nanos());
        let passed = ahead * 1_000_000_000 / (1_000_000_000 + i128::from(self.skew_ppb));
        let mut at = self.since + Span::from_nanos(u64::try_from(passed).unwrap_or(0));
        while self.read(at) < shown {
            at += Span::from_nanos(1);
        }
        at
    }

    pub(super) fn step(&mut self, now: Time, by: Span) {
        self.base = self.read(now) + by;
        self.since = now;
    }
}

impl MachineRunState {
    pub(super) fn new(plan: PlanHash, members: Vec<AgentId>) -> Self {
        MachineRunState { plan, members: members.into_iter().collect(), flows: BTreeMap::new() }
    }
}

impl SimulatedMachine {
    pub(super) fn new(index: usize, clock: HostClock) -> Self {
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let address = SocketAddr::from(((FIRST + number).to_be_bytes(), 9000));
        SimulatedMachine {
            // Ids are in no order that means anything.
            agent: AgentId(u64::from(number.wrapping_mul(0x9e37_79b1)) + 1),
            address,
            clock,
            mesh: None,
            starts: 0,
            runs: BTreeMap::new(),
            view: MeshStateView::default(),
            sent: (0, 0),
            received: (0, 0),
            receivers: BTreeSet::new(),
            ended_limit: 4096,
            wake: None,
            stalled: Time::ZERO,
        }
    }

    /// Which machine has an address, if one can have it.
    pub(super) fn at(address: SocketAddr) -> Option<usize> {
        let SocketAddr::V4(address) = address else { return None };
        let number = u32::from(*address.ip()).checked_sub(FIRST)?;
        usize::try_from(number).ok()
    }

    pub(super) fn begin(&mut self, mesh: Mesh) {
        self.mesh = Some(mesh);
        self.view = MeshStateView::default();
        self.runs.clear();
    }

    pub(super) fn end(&mut self) {
        self.mesh = None;
        self.runs.clear();
    }

    pub(super) fn say(&mut self, bytes: usize) {
        self.sent.0 += 1;
        self.sent.1 += u64::try_from(bytes).unwrap_or(0) + IP_UDP;
    }

    pub(super) fn count_received(&mut self, bytes: usize) {
        self.received.0 += 1;
        self.received.1 += u64::try_from(bytes).unwrap_or(0) + IP_UDP;
    }
}
