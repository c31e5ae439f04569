//! The state machine, as callers see it.

mod agents;
mod announce;
mod clocks;
mod exchange;
mod piggyback;
mod probes;
mod runs;
mod search;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::vec::Vec;
use core::net::SocketAddr;

use windtunnel_model::flow::{Flow, FlowKey};
use windtunnel_model::{NodeId, Span, Time};

use crate::clock::Clock;
use crate::config::Config;
use crate::counters::Counters;
use crate::event::{Ending, Event, Transmit};
use crate::flow::Audience;
use crate::id::{AgentId, Identity, PlanHash, RunId};
use crate::rng::Rng;
use crate::roster::Roster;
use crate::run::{Part, Run, RunError};
use crate::swim::Swim;
use crate::timers::{Timers, Wake};
use crate::wire::message::{DATAGRAM_MAX, Fault, Message, Sender};

/// Bytes before foca's.
const SWIM_HEAD: usize = 2;

/// Agreement between machines without a leader.
///
/// The contract, the same as that of `windtunnel_engine::Engine`:
///
/// 1. pass inputs: [`Mesh::handle_datagram`], [`Mesh::handle_timeout`], and commands;
/// 2. take outputs, until there are none: [`Mesh::poll_transmit`], [`Mesh::poll_event`], and
///    [`Mesh::poll_timeout`] for the time at which [`Mesh::handle_timeout`] is next to be called;
/// 3. getters return the present state; 4. all is built from a [`Config`] and a seed.
///
/// `now` is this machine's monotonic clock, which the clocks of the others are compared with; it
/// never decreases (asserted). The same calls in the same order give the same bytes. There is no
/// authentication here: the carrier of the datagrams encrypts and authenticates them, and hands in
/// only those of holders of the cluster's key. Malformed bytes cause no error beyond a counter.
#[derive(Debug)]
pub struct Mesh {
    config: Config,
    now: Time,
    rng: Rng,
    swim: Swim,
    /// The life of ours that the caller knows.
    life_reported: Identity,
    roster: Roster,
    pull: Option<search::Pull>,
    /// Where to ask for others.
    seeds: BTreeMap<SocketAddr, Time>,
    notices: BTreeMap<AgentId, (Identity, u16)>,
    probes: probes::Probes,
    left: bool,
    runs: BTreeMap<RunId, Run>,
    /// Runs that this agent had a part in.
    past: VecDeque<RunId>,
    timers: Timers,
    out: Out,
}

/// Outputs for the caller.
#[derive(Debug, Default)]
struct Out {
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
    counters: Counters,
}

/// A member of a run, for callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberView {
    /// The member.
    pub agent: AgentId,
    /// Its part. This agent itself has confirmed.
    pub part: Part,
    /// Its flows that are known here.
    pub flows: usize,
    /// Whether nothing of its flows is known to be missing here.
    pub complete: bool,
}

impl Mesh {
    /// An agent that knows no other, at the time `now`.
    ///
    /// # Panics
    /// If the configuration's MTU is below [`Config::MTU_MIN`].
    #[must_use]
    pub fn new(config: Config, seed: u64, now: Time) -> Self {
        assert!(config.mtu >= Config::MTU_MIN, "an MTU of {} is too small", config.mtu);
        let name = format!("{} {}", config.agent, config.epoch);
        let swim = Swim::new(&config, SWIM_HEAD, Rng::new(seed, &name, "membership"));
        Mesh {
            now,
            rng: Rng::new(seed, &name, "pace"),
            roster: Roster::new(&swim.identity()),
            pull: None,
            seeds: BTreeMap::new(),
            notices: BTreeMap::new(),
            probes: probes::Probes::default(),
            left: false,
            runs: BTreeMap::new(),
            past: VecDeque::new(),
            timers: Timers::default(),
            out: Out::default(),
            life_reported: swim.identity(),
            swim,
            config,
        }
    }

    /// A datagram came, as the carrier had it after it was decrypted. `from` is where an answer
    /// goes to if its sender is not known here yet.
    pub fn handle_datagram(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) {
        self.advance(now);
        self.out.counters.received.count(datagram.len());
        if datagram.len() > DATAGRAM_MAX {
            self.out.counters.malformed += 1;
            return;
        }
        match Message::decode(datagram) {
            Ok(_) if self.left => {}
            Ok(message) => self.dispatch(from, message),
            Err(Fault::Version) => self.out.counters.other_version += 1,
            Err(Fault::Malformed) => self.out.counters.malformed += 1,
        }
        self.settle();
    }

    /// Time has passed: until [`Mesh::poll_timeout`]'s time, or less, or more.
    ///
    /// If it is much later than that, this agent was not running, as on a machine with more work
    /// than processors: no agent is declared lost for datagrams that could not be received meanwhile.
    pub fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
        self.make_up_for_stall();
        loop {
            if self.swim.handle_timeout(now) {
                self.settle();
            } else if let Some(wake) = self.timers.pop(now) {
                self.wake(wake);
                self.settle();
            } else {
                return;
            }
        }
    }

    /// The next datagram to send. To be asked until there is none, after each call that takes
    /// `now`.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.out.transmits.pop_front()
    }

    /// The next thing that happened. To be asked until there is none, after each call that takes
    /// `now`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.out.events.pop_front()
    }

    /// When [`Mesh::handle_timeout`] is to be called, if nothing else happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let times = [self.swim.poll_timeout(), self.timers.next()];
        times.into_iter().flatten().min()
    }

    /// Looks for other agents at an address, and again whenever no agent there is known.
    pub fn join(&mut self, now: Time, address: SocketAddr) {
        self.advance(now);
        if !self.left && address != self.config.address {
            self.seeds.insert(address, now);
            self.timers.set_by(Wake::Rejoin, now);
            self.handle_timeout(now);
        }
    }

    /// Ends this agent's part in everything, and announces that. Nothing happens here any more.
    pub fn leave(&mut self, now: Time) {
        self.advance(now);
        let runs: Vec<RunId> = self.runs.keys().copied().collect();
        for run in runs {
            self.end_run(run);
        }
        self.send_leave();
        self.left = true;
        self.timers = Timers::default();
    }

    /// Takes part in a run with these members, all of which must have the same `plan` and members.
    ///
    /// # Errors
    /// [`RunError`], for instance if this agent is not among the members.
    pub fn join_run(
        &mut self,
        now: Time,
        run: RunId,
        plan: PlanHash,
        members: &[AgentId],
    ) -> Result<(), RunError> {
        self.advance(now);
        self.begin_run(run, plan, members)?;
        self.settle();
        Ok(())
    }

    /// Ends this agent's part in a run: its flows end for the others, and theirs are forgotten.
    ///
    /// # Errors
    /// [`RunError::Unknown`].
    pub fn leave_run(&mut self, now: Time, run: RunId) -> Result<(), RunError> {
        self.advance(now);
        if !self.runs.contains_key(&run) {
            return Err(RunError::Unknown(run));
        }
        self.end_run(run);
        Ok(())
    }

    /// The members of a run that are to receive a flow: for each pair of nodes, the agents
    /// where a share can depend on it. This agent itself may be among them. Takes a binary search
    /// for each.
    ///
    /// # Errors
    /// [`RunError::Unknown`], or [`RunError::NoMember`] if one is not a member.
    pub fn audience(
        &self,
        run: RunId,
        agents: impl IntoIterator<Item = AgentId>,
    ) -> Result<Audience, RunError> {
        Ok(Audience::new(self.positions(run, agents)?))
    }

    /// The same, of which only those `at_once` receive the flow at once: agents with nodes that can
    /// share a link with it which not only flows to its destination cross, and the agent of the
    /// destination. All `others` where a share can depend on it receive it within
    /// [`crate::config::Pace::later`], if it has not ended by then, and at once if they turn out to
    /// have a flow to the same node ([`Mesh::set_nodes`]).
    ///
    /// # Errors
    /// As [`Mesh::audience`].
    pub fn audience_with_others(
        &self,
        run: RunId,
        at_once: impl IntoIterator<Item = AgentId>,
        others: impl IntoIterator<Item = AgentId>,
    ) -> Result<Audience, RunError> {
        Ok(Audience::with_later(self.positions(run, at_once)?, &self.positions(run, others)?))
    }

    /// The nodes of a run that this agent has: it informs members with flows that meet on the path
    /// into one.
    ///
    /// # Errors
    /// [`RunError::Unknown`].
    pub fn set_nodes(
        &mut self,
        run: RunId,
        nodes: impl IntoIterator<Item = NodeId>,
    ) -> Result<(), RunError> {
        let known = self.runs.get_mut(&run).ok_or(RunError::Unknown(run))?;
        known.meetings.nodes = nodes.into_iter().collect();
        Ok(())
    }

    fn positions(
        &self,
        run: RunId,
        agents: impl IntoIterator<Item = AgentId>,
    ) -> Result<Vec<u32>, RunError> {
        let known = self.runs.get(&run).ok_or(RunError::Unknown(run))?;
        let mut members = Vec::new();
        for agent in agents {
            let member = known.position(agent).ok_or(RunError::NoMember { run, agent })?;
            if member != known.me {
                members.push(member);
            }
        }
        Ok(members)
    }

    /// A flow of this agent began or changed. Nothing is sent if nothing is new.
    ///
    /// # Errors
    /// [`RunError::Unknown`] or [`RunError::TooManyFlows`].
    pub fn set_flow(
        &mut self,
        now: Time,
        run: RunId,
        key: FlowKey,
        flow: Flow,
        audience: &Audience,
    ) -> Result<(), RunError> {
        self.advance(now);
        self.announce(run, key, flow, audience)
    }

    /// A flow of this agent ended. Returns whether there was one.
    ///
    /// # Errors
    /// [`RunError::Unknown`].
    pub fn end_flow(&mut self, now: Time, run: RunId, key: FlowKey) -> Result<bool, RunError> {
        self.advance(now);
        self.withdraw(run, &key)
    }

    /// The present life of this agent.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.swim.identity()
    }

    /// The other agents that are there, by id.
    pub fn agents(&self) -> impl Iterator<Item = &Identity> + '_ {
        self.roster.lives()
    }

    /// The present life of another agent; `None` if it is not there.
    #[must_use]
    pub fn agent(&self, agent: AgentId) -> Option<&Identity> {
        self.roster.life(agent)
    }

    /// How an agent's clock stands to ours; `None` if it is not there or nothing has been measured.
    #[must_use]
    pub fn clock(&self, agent: AgentId, now: Time) -> Option<Clock> {
        self.roster.get(agent)?.clock.read(now)
    }

    /// The runs that this agent has a part in, by id.
    pub fn runs(&self) -> impl Iterator<Item = RunId> + '_ {
        self.runs.keys().copied()
    }

    /// The hash that the members of a run agree on.
    #[must_use]
    pub fn plan(&self, run: RunId) -> Option<PlanHash> {
        self.runs.get(&run).map(|run| run.plan)
    }

    /// Whether all members of a run have confirmed, and none has left or been lost since.
    #[must_use]
    pub fn is_ready(&self, run: RunId) -> bool {
        self.runs.get(&run).is_some_and(Run::all_confirmed)
    }

    /// The members of a run, by id; none if the run is not known.
    pub fn members(&self, run: RunId) -> impl Iterator<Item = MemberView> + '_ {
        self.runs.get(&run).into_iter().flat_map(|run| {
            run.members.iter().zip(&run.peers).zip(0..).map(|((agent, peer), index)| {
                let own = index == run.me;
                MemberView {
                    agent: *agent,
                    part: if own { Part::Confirmed } else { peer.part },
                    flows: if own { run.own.len() } else { peer.flows.len() },
                    complete: own || !peer.lacks(),
                }
            })
        })
    }

    /// The flows of the other members of a run that this agent has received, by member and key.
    pub fn flows(&self, run: RunId) -> impl Iterator<Item = (AgentId, FlowKey, Flow)> + '_ {
        self.runs.get(&run).into_iter().flat_map(|run| {
            run.members
                .iter()
                .zip(&run.peers)
                .flat_map(|(agent, peer)| peer.flows.iter().map(|(key, flow)| (*agent, key, flow)))
        })
    }

    /// The flows that this agent announces in a run, by key.
    pub fn own_flows(&self, run: RunId) -> impl Iterator<Item = (FlowKey, Flow)> + '_ {
        let run = self.runs.get(&run).into_iter();
        run.flat_map(|run| run.own.iter().map(|(key, flow, _)| (key, flow)))
    }

    /// The counters since the beginning.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.out.counters
    }

    fn make_up_for_stall(&mut self) {
        let slack = self.config.detection.probe_wait;
        let late = self.swim.poll_timeout().map_or(Span::ZERO, |due| self.now.since(due));
        if late > slack {
            self.out.counters.stalls += 1;
            self.swim.make_up_for(late, self.now, slack);
        }
    }

    fn advance(&mut self, now: Time) {
        assert!(now >= self.now, "time went back from {} to {now}", self.now);
        self.now = now;
    }

    /// Performs all pending actions of foca.
    fn settle(&mut self) {
        while self.swim.has_actions() {
            self.perform_actions();
        }
    }

    fn dispatch(&mut self, from: SocketAddr, message: Message<'_>) {
        match message {
            Message::Swim(data) => self.on_swim(data),
            Message::Join(life) => self.on_join(from, &life),
            Message::Here(life) => self.on_here(life),
            Message::Outdated { epoch } => self.on_outdated(epoch),
            Message::Suspected { from, life, incarnation } => {
                self.on_suspected(&from, &life, incarnation);
            }
            Message::Alive { life, incarnation } => self.on_alive(life, incarnation),
            Message::Leave(life) => self.on_leave(life),
            Message::Lost { from, life } => self.on_lost(from, &life),
            Message::RosterSum { from, agents, answer } => self.on_roster_sum(from, agents, answer),
            Message::RosterAsk { from, after } => self.on_roster_ask(from, after),
            Message::Roster { from, more, agents } => self.on_roster(from, more, &agents),
            Message::Run(from, state) => self.on_run_state(from, &state),
            Message::RunLeft(from, run) => self.on_run_left(from, run),
            Message::Delta(from, delta) => self.on_delta(from, &delta),
            Message::Digest(from, digest) => self.on_digest(from, &digest),
            Message::Want { from, run, have } => self.on_want(from, run, have),
            Message::Probe { from, incarnation, to, number, origin } => {
                self.on_probe((from, incarnation), to, number, origin);
            }
            Message::ProbeAck { from, incarnation, number, origin } => {
                self.on_probe_ack((from, incarnation), number, origin);
            }
            Message::ProbeFor { from, target, number } => self.on_probe_for(from, target, number),
            Message::Meet { from, run, node, agents } => self.on_meet(from, run, node, &agents),
            Message::AckFor { from, target, number } => self.on_ack_for(from, target, number),
            Message::Ping { from, sent } => self.on_ping(from, sent),
            Message::Pong { from, sent, came, left } => {
                self.on_pong(from, [sent, came, left].map(Time::from_nanos));
            }
        }
    }

    fn wake(&mut self, wake: Wake) {
        match wake {
            Wake::Rejoin => self.search(),
            Wake::Pull => self.pull_again(),
            Wake::Notice(agent) => self.notice_again(agent),
            Wake::Clock(agent) => self.ping(agent),
            Wake::Flush(run) => self.flush(run),
            Wake::Later(run) => self.flush_later(run),
            Wake::State(run, member) => self.state_again(run, member),
            Wake::Digest(run, member) => self.digest(run, member),
            Wake::Want(run, member) => self.want(run, member),
        }
    }

    /// This agent as the sender of messages.
    fn me(&self) -> Sender {
        Sender { agent: self.config.agent, epoch: self.identity().epoch }
    }

    fn send(&mut self, to: SocketAddr, message: &Message<'_>) {
        self.out.send(to, message);
    }

    /// Sends to an agent, if it is there.
    fn send_to(&mut self, agent: AgentId, message: &Message<'_>) {
        if let Some(life) = self.roster.life(agent) {
            self.out.send(life.address, message);
        }
    }

    /// How often a message goes to each of `count` receivers so that no more than 500 leave in a
    /// second.
    fn paced(base: Span, count: usize) -> Span {
        Mesh::spread(base, count, Span::from_millis(2))
    }

    /// Likewise for messages that are repeated as long as a run lasts: no more than 100.
    fn seldom(base: Span, count: usize) -> Span {
        Mesh::spread(base, count, Span::from_millis(10))
    }

    fn spread(base: Span, count: usize, each: Span) -> Span {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        base.max(Span::from_nanos(count.saturating_mul(each.as_nanos())))
    }
}

impl Out {
    fn send(&mut self, to: SocketAddr, message: &Message<'_>) {
        let payload = message.encode();
        let counters = &mut self.counters;
        let kind = match message {
            Message::Run(..) | Message::RunLeft(..) => &mut counters.runs,
            Message::Delta(..) | Message::Meet { .. } => &mut counters.flows,
            Message::Digest(..) | Message::Want { .. } => &mut counters.digests,
            Message::Ping { .. } | Message::Pong { .. } => &mut counters.clocks,
            _ => &mut counters.membership,
        };
        kind.count(payload.len());
        self.transmits.push_back(Transmit { to, payload });
    }
}
