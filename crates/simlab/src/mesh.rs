//! Agents of the mesh in virtual time: machines with clocks of their own, and a network that loses,
//! delays, doubles and reorders datagrams, or is cut.
//!
//! The world keeps the truth beside the agents' views: which of them live, in which runs, with
//! which flows. [`MeshWorld::settle`] waits until all agents know the truth. Each event of an agent
//! is checked when it comes (see [`view`]).

pub mod check;
mod event_log;
pub mod machine;
pub mod measure;
mod network;
pub mod play;
mod runs;
mod truth;
pub mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use windtunnel_mesh::{AgentDepartureReason, AgentId, Mesh, MeshConfiguration, MeshEvent};
use windtunnel_model::{Span, Time};

use crate::SimulationRng;
use event_log::MeshEventLog;
pub use event_log::TimedMeshEvent;
use machine::{HostClock, SimulatedMachine};
use network::DatagramInFlight;
pub use network::{DatagramNetwork, LinkConditions};

/// Machines with agents, and the network between them.
#[derive(Debug)]
pub struct MeshWorld {
    seed: u64,
    now: Time,
    rng: SimulationRng,
    /// The network between the machines.
    pub network: DatagramNetwork,
    machines: Vec<SimulatedMachine>,
    by_agent: BTreeMap<AgentId, usize>,
    wakes: BTreeSet<(Time, usize)>,
    log: MeshEventLog,
    alarms: u64,
}

/// UDP and IPv4 headers of a datagram, for sums on a link (Ethernet's 38 bytes are not in them).
pub const IP_UDP: u64 = 28;

impl MeshWorld {
    /// A world without machines.
    #[must_use]
    pub fn new(seed: u64, conditions: LinkConditions) -> Self {
        MeshWorld {
            seed,
            now: Time::from_nanos(1_000_000_000),
            rng: SimulationRng::new(seed ^ 0x6d65_7368),
            network: DatagramNetwork::new(conditions),
            machines: Vec::new(),
            by_agent: BTreeMap::new(),
            wakes: BTreeSet::new(),
            log: MeshEventLog::default(),
            alarms: 0,
        }
    }

    /// A world of `count` machines with clocks that differ by hours and up to 200 ppm, all with
    /// agents that know each other.
    ///
    /// # Panics
    /// If they do not find each other within 30 s.
    #[must_use]
    pub fn of(count: usize, seed: u64, conditions: LinkConditions) -> Self {
        let mut world = MeshWorld::new(seed, conditions);
        for index in 0..count {
            world.add_machine();
            world.start(index, &[0]);
            // Not all in the same instant: ten at a time.
            if index % 10 == 9 {
                world.run_for(Span::from_millis(5));
            }
        }
        let settled = world.settle(Span::from_secs(30));
        settled.unwrap_or_else(|difference| panic!("{difference}"));
        world
    }

    /// Another machine, with a clock of its own and without an agent.
    pub fn add_machine(&mut self) -> usize {
        let index = self.machines.len();
        let skew = i64::try_from(self.rng.below(200_001)).unwrap_or(0) - 100_000;
        let ahead = Span::from_secs(1 + self.rng.below(7200));
        let clock = HostClock::new(self.now, ahead, skew);
        let machine = SimulatedMachine::new(index, clock);
        self.by_agent.insert(machine.agent, index);
        self.machines.push(machine);
        self.network.add_machine();
        index
    }

    /// Starts the agent of a machine, which looks for others at those machines.
    pub fn start(&mut self, index: usize, seeds: &[usize]) {
        let epoch = (self.machines[index].starts + 1) * 1_000_000;
        self.start_as(index, epoch, seeds);
    }

    /// The same, with an epoch that need not be greater than those before.
    pub fn start_as(&mut self, index: usize, epoch: u64, seeds: &[usize]) {
        let machine = &mut self.machines[index];
        machine.starts += 1;
        let mut config = MeshConfiguration::new(machine.agent, epoch, machine.address);
        config.limits.ended = machine.ended_limit;
        let seed = self.seed ^ (machine.starts << 32) ^ u64::try_from(index).unwrap_or(0);
        machine.begin(Mesh::new(config, seed, machine.clock.read(self.now)));
        let addresses: Vec<_> = seeds.iter().map(|seed| self.machines[*seed].address).collect();
        for address in addresses {
            self.act(index, |mesh, now| mesh.join(now, address));
        }
        self.act(index, |_, _| {});
    }

    /// The agent of a machine ends without a word.
    pub fn crash(&mut self, index: usize) {
        self.machines[index].end();
    }

    /// The agent of a machine says good-bye.
    pub fn leave(&mut self, index: usize) {
        self.act(index, Mesh::leave);
        self.machines[index].end();
    }

    /// The agent of a machine gets no processor for a time. Datagrams that come meanwhile wait, and
    /// are read only after it has looked at its clock.
    pub fn stall(&mut self, index: usize, span: Span) {
        self.machines[index].stalled = self.now + span;
    }

    /// A machine's clock is set forward.
    pub fn step_clock(&mut self, index: usize, by: Span) {
        self.machines[index].clock.step(self.now, by);
    }

    /// Lets everything happen for a time.
    pub fn run_for(&mut self, span: Span) {
        self.run_until(self.now + span);
    }

    /// Lets everything happen until `end`.
    pub fn run_until(&mut self, end: Time) {
        loop {
            let packet = self.network.next_arrival();
            let wake = self.wakes.first().map(|(at, _)| *at);
            let Some(next) = packet.into_iter().chain(wake).min().filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(next);
            if packet == Some(next) {
                self.deliver();
            } else if let Some((_, index)) = self.wakes.pop_first() {
                let stalled = self.machines[index].stalled;
                if stalled > self.now {
                    self.wakes.insert((stalled, index));
                    self.machines[index].wake = Some(stalled);
                    continue;
                }
                self.machines[index].wake = None;
                self.act(index, Mesh::handle_timeout);
            }
        }
        self.now = end;
    }

    /// The machine of an agent.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn machine_of(&self, agent: AgentId) -> usize {
        self.by_agent[&agent]
    }

    fn machine_at(&self, address: SocketAddr) -> Option<usize> {
        SimulatedMachine::at(address).filter(|index| *index < self.machines.len())
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The machines.
    #[must_use]
    pub fn machines(&self) -> &[SimulatedMachine] {
        &self.machines
    }

    /// How many ends of flows agents started later remember: `MeshLimits::ended`.
    pub fn set_ended_limit(&mut self, limit: usize) {
        self.machines.iter_mut().for_each(|machine| machine.ended_limit = limit);
    }

    /// The events since the last call.
    pub fn take_events(&mut self) -> Vec<TimedMeshEvent> {
        self.log.take()
    }

    /// A number that stands for every datagram and event so far, with its time and place.
    #[must_use]
    pub fn transcript(&self) -> u64 {
        self.log.transcript
    }

    /// Forgets the receivers of each machine's datagrams.
    pub fn forget_receivers(&mut self) {
        self.machines.iter_mut().for_each(|machine| machine.receivers.clear());
    }

    /// How often an agent was declared lost by another while it lived.
    #[must_use]
    pub fn false_alarms(&self) -> u64 {
        self.alarms
    }

    /// The agent of a machine does something; then its outputs are handled.
    pub fn act<R>(&mut self, index: usize, act: impl FnOnce(&mut Mesh, Time) -> R) -> Option<R> {
        let machine = &mut self.machines[index];
        let now = machine.clock.read(self.now);
        let mesh = machine.mesh.as_mut()?;
        let result = act(mesh, now);
        let (mut transmits, mut events) = (Vec::new(), Vec::new());
        while let Some(transmit) = mesh.poll_transmit() {
            transmits.push(transmit);
        }
        while let Some(event) = mesh.poll_event() {
            events.push(event);
        }
        let wake = mesh.poll_timeout().map(|at| machine.clock.when(at).max(self.now));
        if let Some(former) = std::mem::replace(&mut machine.wake, wake) {
            self.wakes.remove(&(former, index));
        }
        wake.map(|at| self.wakes.insert((at, index)));
        for event in events {
            self.log.note(self.now, index, format!("{event:?}").as_bytes());
            self.machines[index].view.see(&event);
            self.watch(&event);
            self.log.report(self.now, index, event);
        }
        for transmit in transmits {
            assert!(transmit.payload.len() <= 1200, "{} bytes", transmit.payload.len());
            self.carry(index, transmit.to, transmit.payload);
        }
        Some(result)
    }

    /// The next datagram on its way arrives.
    fn deliver(&mut self) {
        let Some((number, datagram)) = self.network.take_next() else { return };
        let stalled = self.machines[datagram.to].stalled;
        if stalled > self.now {
            self.network.hold(number, datagram, stalled);
            return;
        }
        let DatagramInFlight { to, source, payload } = datagram;
        self.machines[to].count_received(payload.len());
        self.act(to, |mesh, now| mesh.handle_datagram(now, source, &payload));
    }

    fn carry(&mut self, from: usize, to: SocketAddr, payload: Vec<u8>) {
        self.machines[from].say(payload.len());
        self.machines[from].receivers.insert(to);
        self.log.note(self.now, from, &payload);
        let Some(to) = self.machine_at(to) else { return };
        self.log.note(self.now, to, &[]);
        let source = self.machines[from].address;
        let datagram = DatagramInFlight { to, source, payload };
        self.network.carry(&mut self.rng, self.now, from, datagram);
    }

    /// Counts agents that are declared lost while they live.
    fn watch(&mut self, event: &MeshEvent) {
        let MeshEvent::AgentDown { life, how: AgentDepartureReason::Lost } = event else { return };
        let Some(machine) = self.machine_at(life.address) else { return };
        let present = self.machines[machine].mesh.as_ref().map(Mesh::identity);
        self.alarms += u64::from(present.is_some_and(|present| present.epoch == life.epoch));
    }
}
