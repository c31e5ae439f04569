//! A client, a redirector and replicas in virtual time, joined by links that lose, delay, reorder
//! and duplicate.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use windtunnel_failover::{
    ConnectionReplicator, ReplicaId, ReplicatedConnectionKey, ReplicationConfig, ReplicationEvent,
    ReplicationEventKind, TransmitDestination, TransmitRequest,
};
use windtunnel_model::random::{RandomSequence, RandomStream};
use windtunnel_model::{Span, Time};
use windtunnel_wire::vnet;

use crate::checks::Checks;
use crate::programs::{Client, Program};
use crate::seg::{ACK, SYN, Seg, cut};
use crate::tcp::{Settings, State, Tcp};

/// One way of a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leg {
    pub(crate) delay: Span,
    /// Each packet is later by less than this, and so overtaken by others.
    pub(crate) jitter: Span,
    /// Parts in a million.
    pub(crate) loss: u64,
    pub(crate) duplicate: u64,
    /// A rate, with a queue that drops what comes when it is full.
    pub(crate) rate: Option<Rate>,
}

/// Nanoseconds of a byte, and the longest time that a packet waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) byte: u64,
    pub(crate) queue: Span,
}

impl Leg {
    pub(crate) fn clean(delay: Span) -> Self {
        Self { delay, jitter: Span::ZERO, loss: 0, duplicate: 0, rate: None }
    }
}

/// How a replica dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Its host is cut off.
    Cut,
    /// Its program is killed, and the kernel closes its sockets.
    Killed,
    /// Its program is stopped for a time; its kernel goes on.
    Paused(Span),
}

impl How {
    /// Whether the replica does nothing any more.
    pub(crate) fn is_final(self) -> bool {
        !matches!(self, How::Paused(_))
    }
}

/// A death, at the n-th packet that the redirector gets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Death {
    pub(crate) packet: u64,
    pub(crate) replica: usize,
    pub(crate) how: How,
    /// When the redirector is informed; never, if none.
    pub(crate) notice: Option<Span>,
}

/// What is simulated.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) program: Program,
    pub(crate) client: Settings,
    pub(crate) replicas: Vec<Settings>,
    /// How long each replica's program takes for what it does.
    pub(crate) think: Vec<Span>,
    pub(crate) client_leg: Leg,
    pub(crate) legs: Vec<Leg>,
    pub(crate) deaths: Vec<Death>,
    pub(crate) config: ReplicationConfig,
    pub(crate) client_address: SocketAddr,
    pub(crate) service: SocketAddr,
}

impl Scenario {
    /// Replicas 5 ms behind a client's link of 5 ms, nothing lost.
    pub(crate) fn new(program: Program, replicas: usize) -> Self {
        let settings = |index: usize| Settings {
            isn: 0xffff_f000_u32.wrapping_add(0x3210_0000 * index as u32),
            stamps: Some((0xffff_ff00_u32.wrapping_add(77_777 * index as u32), 1_000_000)),
            ..Settings::default()
        };
        Self {
            seed: 0,
            program,
            client: Settings { isn: 0xffff_fff0, ..Settings::default() },
            replicas: (0..replicas).map(settings).collect(),
            think: vec![Span::ZERO; replicas],
            client_leg: Leg::clean(Span::from_micros(2_500)),
            legs: vec![Leg::clean(Span::from_micros(2_500)); replicas],
            deaths: Vec::new(),
            config: ReplicationConfig::default(),
            client_address: "10.0.0.7:40000".parse().unwrap(),
            service: "10.1.0.80:80".parse().unwrap(),
        }
    }

    pub(crate) fn key(&self) -> ReplicatedConnectionKey {
        ReplicatedConnectionKey { client: self.client_address, service: self.service }
    }
}

/// Steps of one simulation at the most.
const STEPS_MAX: u64 = 400_000;

enum Due {
    /// A packet reaches the client.
    Client(Vec<u8>),
    /// A packet reaches a replica.
    Replica(usize, Vec<u8>),
    /// A packet reaches the redirector: from a replica, or from the client.
    Redirector(Option<usize>, Vec<u8>),
    Program(usize),
    Notice(usize),
    /// A program that was stopped goes on.
    Resumed(usize),
}

/// One way of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Lane {
    /// The replica's, or the client's.
    of: Option<usize>,
    is_inward: bool,
}

/// A replica's host.
pub(crate) struct Host {
    pub(crate) tcp: Option<Tcp>,
    pub(crate) is_cut: bool,
    pub(crate) is_killed: bool,
    /// Until when its program is stopped.
    stopped: Time,
    timer: Option<Time>,
}

pub(crate) struct World {
    pub(crate) scenario: Scenario,
    pub(crate) now: Time,
    pub(crate) machine: ConnectionReplicator,
    pub(crate) client: Tcp,
    pub(crate) program: Client,
    pub(crate) hosts: Vec<Host>,
    pub(crate) events: Vec<(Time, ReplicationEvent)>,
    pub(crate) checks: Checks,
    /// Packets that the redirector got.
    pub(crate) packets: u64,
    /// When a replica died.
    pub(crate) died: Vec<Time>,
    queue: BTreeMap<(Time, u64), Due>,
    client_timer: Option<Time>,
    /// When each lane has sent what waits there.
    free: BTreeMap<Lane, Time>,
    steps: u64,
    order: u64,
    draws: RandomSequence,
}

impl World {
    pub(crate) fn new(scenario: Scenario) -> Self {
        let (me, peer) = (scenario.client_address, scenario.service);
        let seed = scenario.seed;
        let host = |_: &Settings| Host {
            tcp: None,
            is_cut: false,
            is_killed: false,
            stopped: Time::ZERO,
            timer: None,
        };
        let mut world = Self {
            now: Time::ZERO + Span::from_secs(1),
            machine: ConnectionReplicator::new(scenario.config),
            client: Tcp::connect(Time::ZERO + Span::from_secs(1), me, peer, scenario.client),
            program: Client::new(scenario.program),
            hosts: scenario.replicas.iter().map(host).collect(),
            events: Vec::new(),
            checks: Checks::new(scenario.key()),
            packets: 0,
            died: Vec::new(),
            queue: BTreeMap::new(),
            client_timer: None,
            free: BTreeMap::new(),
            steps: 0,
            order: 0,
            draws: RandomSequence::new(RandomStream::named(seed, &["failover", "world"])),
            scenario,
        };
        world.after_client();
        world
    }

    /// Runs until both ends have finished, or until a time.
    pub(crate) fn run(&mut self, limit: Span) {
        let end = self.now + limit;
        while !self.is_finished() && self.now < end {
            if !self.step() {
                break;
            }
        }
    }

    fn next(&self) -> Option<Time> {
        let queued = self.queue.keys().next().map(|(at, _)| *at);
        let timers = self.hosts.iter().filter_map(|host| host.timer);
        let all = queued.into_iter().chain(self.machine.poll_timeout()).chain(self.client_timer);
        all.chain(timers).min()
    }

    fn step(&mut self) -> bool {
        let Some(at) = self.next() else { return false };
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "endless at {at}: {:?}", self.what());
        self.now = at.max(self.now);
        let is_due = |timer: Option<Time>| timer.is_some_and(|due| due <= at);
        if is_due(self.machine.poll_timeout()) {
            self.machine.handle_timeout(self.now);
            self.after_machine();
        } else if is_due(self.client_timer) {
            self.client.handle_timeout(self.now);
            self.after_client();
        } else if let Some(index) = self.hosts.iter().position(|host| is_due(host.timer)) {
            self.hosts[index].tcp.iter_mut().for_each(|tcp| tcp.handle_timeout(self.now));
            self.after_replica(index);
        } else if let Some((_, due)) = self.queue.pop_first() {
            self.handle(due);
        }
        true
    }

    fn is_finished(&self) -> bool {
        let view = self.machine.view(self.scenario.key());
        let live = |host: &Host| host.tcp.as_ref().is_some_and(Tcp::is_finished);
        self.client.state == State::Closed
            || self.client.is_finished()
                && view.is_none_or(|view| {
                    view.replicas.iter().all(|id| {
                        let host = &self.hosts[id.0 as usize];
                        host.is_cut || live(host)
                    })
                })
    }

    fn handle(&mut self, due: Due) {
        match due {
            Due::Client(frame) => {
                self.client.receive(self.now, &Seg::parse(&frame));
                self.after_client();
            }
            Due::Replica(index, frame) => self.at_replica(index, &frame),
            Due::Program(index) | Due::Resumed(index) => {
                let host = &mut self.hosts[index];
                let is_able = !host.is_killed && host.stopped <= self.now;
                let tcp = host.tcp.as_mut().filter(|tcp| is_able && tcp.state == State::Open);
                if let Some(tcp) = tcp {
                    self.scenario.program.serve(self.now, tcp);
                }
                self.after_replica(index);
            }
            Due::Redirector(from, frame) => self.at_redirector(from, &frame),
            Due::Notice(index) => {
                self.machine.replica_lost(self.now, ReplicaId(index as u32));
                self.after_machine();
            }
        }
    }

    fn at_redirector(&mut self, from: Option<usize>, frame: &[u8]) {
        if from.is_some_and(|index| self.hosts[index].is_cut) {
            return;
        }
        self.packets += 1;
        for death in self.scenario.deaths.clone() {
            if death.packet == self.packets {
                self.die(death);
            }
        }
        let header = vnet::VirtioNetHeader::default();
        let order: Vec<ReplicaId> = (0..self.hosts.len() as u32).map(ReplicaId).collect();
        let taken = match from {
            None => self.machine.handle_client(self.now, &header, frame, &order),
            Some(index) => {
                self.machine.handle_replica(self.now, ReplicaId(index as u32), &header, frame)
            }
        };
        self.checks.taken(taken);
        self.after_machine();
    }

    fn die(&mut self, death: Death) {
        self.died.push(self.now);
        let host = &mut self.hosts[death.replica];
        match death.how {
            How::Cut => host.is_cut = true,
            How::Killed => {
                host.is_killed = true;
                if let Some(tcp) = &mut host.tcp {
                    tcp.kill(self.now);
                }
            }
            How::Paused(time) => {
                host.stopped = self.now + time;
                self.push(self.now + time, Due::Resumed(death.replica));
            }
        }
        if let Some(after) = death.notice {
            self.push(self.now + after, Due::Notice(death.replica));
        }
        self.after_replica(death.replica);
    }

    fn at_replica(&mut self, index: usize, frame: &[u8]) {
        let seg = Seg::parse(frame);
        let host = &mut self.hosts[index];
        if host.is_cut {
            return;
        }
        let opens = seg.has(SYN) && !seg.has(ACK);
        let is_free =
            host.tcp.as_ref().is_none_or(|tcp| tcp.is_finished() || tcp.state == State::Closed);
        if opens && is_free && !host.is_killed {
            host.tcp = Some(Tcp::accept(self.now, &seg, self.scenario.replicas[index]));
        } else if let Some(tcp) = &mut host.tcp {
            tcp.receive(self.now, &seg);
        } else {
            let mut closed = Tcp::connect(self.now, seg.to, seg.from, Settings::default());
            closed.out.clear();
            closed.state = State::Closed;
            closed.receive(self.now, &seg);
            host.tcp = Some(closed);
        }
        if host.tcp.as_ref().is_some_and(|tcp| tcp.state == State::Open) && !host.is_killed {
            let think = self.scenario.think[index];
            self.push(self.now + think, Due::Program(index));
        }
        self.after_replica(index);
    }

    fn after_client(&mut self) {
        let again = self.program.act(self.now, &mut self.client);
        for seg in std::mem::take(&mut self.client.out) {
            let lane = Lane { of: None, is_inward: true };
            self.carry(lane, &seg.frame(), |frame| Due::Redirector(None, frame));
        }
        self.client_timer = [again, self.client.deadline()].into_iter().flatten().min();
    }

    fn after_replica(&mut self, index: usize) {
        let Some(tcp) = &mut self.hosts[index].tcp else { return };
        let (out, deadline) = (std::mem::take(&mut tcp.out), tcp.deadline());
        for seg in out {
            let lane = Lane { of: Some(index), is_inward: true };
            self.carry(lane, &seg.frame(), |frame| Due::Redirector(Some(index), frame));
        }
        self.hosts[index].timer = deadline;
    }

    fn after_machine(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            self.events.push((self.now, event));
        }
        while let Some(transmit) = self.machine.poll_transmit() {
            let TransmitRequest { to, vnet, frame, .. } = transmit;
            let packets = cut(&vnet, &frame);
            match to {
                TransmitDestination::Client => {
                    for packet in packets {
                        self.checks.look(self.now, &packet, &self.machine, &self.hosts);
                        self.carry(Lane { of: None, is_inward: false }, &packet, Due::Client);
                    }
                }
                TransmitDestination::Replica(ReplicaId(id)) => {
                    let index = id as usize;
                    for packet in packets {
                        let lane = Lane { of: Some(index), is_inward: false };
                        self.carry(lane, &packet, |frame| Due::Replica(index, frame));
                    }
                }
            }
        }
    }

    /// Gives a packet to a lane. A queue that is half full marks what has ECN.
    fn carry(&mut self, lane: Lane, frame: &[u8], due: impl Fn(Vec<u8>) -> Due) {
        let leg = lane.of.map_or(self.scenario.client_leg, |index| self.scenario.legs[index]);
        let (mut sent, mut marked) = (self.now, None);
        if let Some(rate) = leg.rate {
            let free = self.free.entry(lane).or_insert(sent);
            let waits = free.since(sent);
            if waits > rate.queue {
                return;
            }
            *free = (*free).max(sent) + Span::from_nanos(rate.byte * frame.len() as u64);
            sent = *free;
            marked = (waits.as_nanos() * 2 > rate.queue.as_nanos()).then(|| Seg::parse(frame));
        }
        let mut frame = frame.to_vec();
        if let Some(mut seg) = marked.filter(|seg| seg.ecn > 0) {
            seg.ecn = 3;
            frame = seg.frame();
        }
        if self.draws.below(1_000_000) < leg.loss {
            return;
        }
        let copies = 1 + u64::from(self.draws.below(1_000_000) < leg.duplicate);
        for _ in 0..copies {
            let late = Span::from_nanos(self.draws.below(leg.jitter.as_nanos()));
            self.push(sent + leg.delay + late, due(frame.clone()));
        }
    }

    fn push(&mut self, at: Time, due: Due) {
        self.order += 1;
        self.queue.insert((at, self.order), due);
    }

    /// The events without their times.
    pub(crate) fn what(&self) -> Vec<ReplicationEventKind> {
        self.events.iter().map(|(_, event)| event.what).collect()
    }
}
