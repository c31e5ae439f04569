//! The state machine, as callers see it.

mod agreement;
mod announce;
mod clocks;
mod context;
mod dispatch;
mod exchange;
mod membership;
mod piggyback;
mod probes;
mod runs;
mod search;
mod senders;
mod suspicion;
mod views;

use alloc::format;
use alloc::vec::Vec;
use core::net::SocketAddr;

use windtunnel_model::flow::{ActiveFlow, FlowKey};
use windtunnel_model::{NodeId, Span, Time};

use self::context::{MeshContext, MeshOutputQueue};
use self::membership::ClusterMembership;
use self::runs::RunParticipationTable;
use self::search::AgentDiscovery;
pub use self::views::MemberView;
use crate::clock::WallClockReading;
use crate::config::MeshConfiguration;
use crate::event::{AgentDepartureReason, MeshEvent, OutgoingDatagram};
use crate::flow::FlowAudience;
use crate::id::{AgentId, PlanHash, RunId};
use crate::rng::SeededRng;
use crate::roster::Roster;
use crate::run::{RunCommandError, RunParticipation};
use crate::swim::Swim;
use crate::timers::{MeshTimer, MeshTimerQueue};
use crate::wire::message::{DATAGRAM_MAX, MeshDecodeError, MeshMessage, MessageSender};

/// Bytes before foca's.
const SWIM_HEAD: usize = 2;

/// Agreement between machines without a leader.
///
/// The contract, the same as that of `windtunnel_engine::Engine`:
///
/// 1. pass inputs: [`Mesh::handle_datagram`], [`Mesh::handle_timeout`], and commands;
/// 2. take outputs, until there are none: [`Mesh::poll_transmit`], [`Mesh::poll_event`], and
///    [`Mesh::poll_timeout`] for the time at which [`Mesh::handle_timeout`] is next to be called;
/// 3. getters return the present state; 4. all is built from a [`MeshConfiguration`] and a seed.
///
/// `now` is this machine's monotonic clock, which the clocks of the others are compared with; it
/// never decreases (asserted). The same calls in the same order give the same bytes. There is no
/// authentication here: the carrier of the datagrams encrypts and authenticates them, and hands in
/// only those of holders of the cluster's key. Malformed bytes cause no error beyond a counter.
#[derive(Debug)]
pub struct Mesh {
    ctx: MeshContext,
    search: AgentDiscovery,
    membership: ClusterMembership,
    runs: RunParticipationTable,
    left: bool,
}

impl Mesh {
    /// An agent that knows no other, at the time `now`.
    ///
    /// # Panics
    /// If the configuration's MTU is below [`MeshConfiguration::MTU_MIN`].
    #[must_use]
    pub fn new(config: MeshConfiguration, seed: u64, now: Time) -> Self {
        assert!(config.mtu >= MeshConfiguration::MTU_MIN, "an MTU of {} is too small", config.mtu);
        let name = format!("{} {}", config.agent, config.epoch);
        let swim = Swim::new(&config, SWIM_HEAD, SeededRng::new(seed, &name, "membership"));
        let life = swim.identity();
        Mesh {
            ctx: MeshContext {
                now,
                rng: SeededRng::new(seed, &name, "pace"),
                roster: Roster::new(&life),
                timers: MeshTimerQueue::default(),
                out: MeshOutputQueue::default(),
                swim,
                wall: WallClockReading::default(),
                config,
            },
            search: AgentDiscovery::default(),
            membership: ClusterMembership::new(life),
            runs: RunParticipationTable::default(),
            left: false,
        }
    }

    /// What this machine knows of its wall clock now.
    pub fn set_wall(&mut self, wall: WallClockReading) {
        self.ctx.wall = wall;
    }

    /// A datagram came, as the carrier had it after it was decrypted. `from` is where an answer
    /// goes to if its sender is not known here yet.
    pub fn handle_datagram(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) {
        self.advance(now);
        self.ctx.out.counters.received.count(datagram.len());
        if datagram.len() > DATAGRAM_MAX {
            self.ctx.out.counters.malformed += 1;
            return;
        }
        match MeshMessage::decode(datagram) {
            Ok(_) if self.left => {}
            Ok(message) => self.dispatch(from, message),
            Err(MeshDecodeError::Version) => self.ctx.out.counters.other_version += 1,
            Err(MeshDecodeError::Malformed) => self.ctx.out.counters.malformed += 1,
        }
        self.settle();
    }

    /// Time has passed: until [`Mesh::poll_timeout`]'s time, or less, or more.
    ///
    /// If it is much later than that, this agent was not running, as on a machine with more work
    /// than processors: no agent is declared lost for datagrams that could not be read meanwhile.
    pub fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
        self.make_up_for_stall();
        loop {
            if self.ctx.swim.handle_timeout(now) {
                self.settle();
            } else if let Some(wake) = self.ctx.timers.pop(now) {
                self.wake(wake);
                self.settle();
            } else {
                return;
            }
        }
    }

    /// The next datagram to send. To be asked until there is none, after each call that takes
    /// `now`.
    pub fn poll_transmit(&mut self) -> Option<OutgoingDatagram> {
        self.ctx.out.transmits.pop_front()
    }

    /// The next thing that happened. To be asked until there is none, after each call that takes
    /// `now`.
    pub fn poll_event(&mut self) -> Option<MeshEvent> {
        self.ctx.out.events.pop_front()
    }

    /// When [`Mesh::handle_timeout`] is to be called, if nothing else happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let times = [self.ctx.swim.poll_timeout(), self.ctx.timers.next()];
        times.into_iter().flatten().min()
    }

    /// Looks for other agents at an address, and again whenever no agent there is known.
    pub fn join(&mut self, now: Time, address: SocketAddr) {
        self.advance(now);
        if !self.left && address != self.ctx.config.address {
            self.search.seeds.insert(address, now);
            self.ctx.timers.set_by(MeshTimer::Rejoin, now);
            self.handle_timeout(now);
        }
    }

    /// Ends this agent's part in everything, and announces that. Nothing happens here any more.
    pub fn leave(&mut self, now: Time) {
        self.advance(now);
        let runs: Vec<RunId> = self.runs.runs.keys().copied().collect();
        for run in runs {
            self.runs.end_run(&mut self.ctx, run);
        }
        self.ctx.send_leave();
        self.left = true;
        self.ctx.timers = MeshTimerQueue::default();
    }

    /// Takes part in a run with these members, all of which must have the same `plan` and members.
    ///
    /// # Errors
    /// [`RunCommandError`], for instance if this agent is not among the members.
    pub fn join_run(
        &mut self,
        now: Time,
        run: RunId,
        plan: PlanHash,
        members: &[AgentId],
    ) -> Result<(), RunCommandError> {
        self.advance(now);
        self.runs.begin_run(&mut self.ctx, run, plan, members)?;
        self.settle();
        Ok(())
    }

    /// Ends this agent's part in a run: its flows end for the others, and theirs are forgotten.
    ///
    /// # Errors
    /// [`RunCommandError::Unknown`].
    pub fn leave_run(&mut self, now: Time, run: RunId) -> Result<(), RunCommandError> {
        self.advance(now);
        self.runs.find(run)?;
        self.runs.end_run(&mut self.ctx, run);
        Ok(())
    }

    /// How long a member of a run may be silent before it is lost to the run; at first
    /// [`SwimParameters::suspicion`](crate::config::SwimParameters::suspicion), which is also the least. One
    /// that is silent for that long and not lost is reported as [`MeshEvent::RunSilent`].
    ///
    /// # Errors
    /// [`RunCommandError::Unknown`].
    pub fn set_patience(
        &mut self,
        now: Time,
        run: RunId,
        patience: Span,
    ) -> Result<(), RunCommandError> {
        self.advance(now);
        self.runs.find_mut(run)?.patience = Some(patience);
        self.membership.suspicions.judge_again(&mut self.ctx, &mut self.runs);
        self.settle();
        Ok(())
    }

    /// The members of a run that are to receive a flow: for each pair of nodes, the agents
    /// where a share can depend on it. This agent itself may be among them. Takes a binary search
    /// for each.
    ///
    /// # Errors
    /// [`RunCommandError::Unknown`], or [`RunCommandError::NoMember`] if one is not a member.
    pub fn audience(
        &self,
        run: RunId,
        agents: impl IntoIterator<Item = AgentId>,
    ) -> Result<FlowAudience, RunCommandError> {
        Ok(FlowAudience::new(self.runs.find(run)?.positions(agents)?))
    }

    /// The same, of which only those `at_once` receive the flow at once: agents with nodes that can
    /// share a link with it which not only flows to its destination cross, and the agent of the
    /// destination. All `others` where a share can depend on it receive it within
    /// [`crate::config::MeshIntervals::later`], if it has not ended by then, and at once if they turn out to
    /// have a flow to the same node ([`Mesh::set_nodes`]).
    ///
    /// # Errors
    /// As [`Mesh::audience`].
    pub fn audience_with_others(
        &self,
        run: RunId,
        at_once: impl IntoIterator<Item = AgentId>,
        others: impl IntoIterator<Item = AgentId>,
    ) -> Result<FlowAudience, RunCommandError> {
        let run = self.runs.find(run)?;
        Ok(FlowAudience::with_later(run.positions(at_once)?, &run.positions(others)?))
    }

    /// The nodes of a run that this agent has: it informs members with flows that meet on the path
    /// into one.
    ///
    /// # Errors
    /// [`RunCommandError::Unknown`].
    pub fn set_nodes(
        &mut self,
        run: RunId,
        nodes: impl IntoIterator<Item = NodeId>,
    ) -> Result<(), RunCommandError> {
        self.runs.find_mut(run)?.meetings.nodes = nodes.into_iter().collect();
        Ok(())
    }

    /// A flow of this agent began or changed. Nothing is sent if nothing is new.
    ///
    /// # Errors
    /// [`RunCommandError::Unknown`] or [`RunCommandError::TooManyFlows`].
    pub fn set_flow(
        &mut self,
        now: Time,
        run: RunId,
        key: FlowKey,
        flow: ActiveFlow,
        audience: &FlowAudience,
    ) -> Result<(), RunCommandError> {
        self.advance(now);
        self.runs.announce(&mut self.ctx, run, key, flow, audience)
    }

    /// A flow of this agent ended. Returns whether there was one.
    ///
    /// # Errors
    /// [`RunCommandError::Unknown`].
    pub fn end_flow(
        &mut self,
        now: Time,
        run: RunId,
        key: FlowKey,
    ) -> Result<bool, RunCommandError> {
        self.advance(now);
        self.runs.withdraw(&mut self.ctx, run, &key)
    }

    fn make_up_for_stall(&mut self) {
        let slack = self.ctx.config.detection.probe_wait;
        let late = self.ctx.swim.poll_timeout().map_or(Span::ZERO, |due| self.ctx.now.since(due));
        if late > slack {
            self.ctx.out.counters.stalls += 1;
            self.ctx.swim.make_up_for(late, self.ctx.now, slack);
            self.membership.suspicions.make_up_for(late, self.ctx.now);
        }
    }

    fn advance(&mut self, now: Time) {
        assert!(now >= self.ctx.now, "time went back from {} to {now}", self.ctx.now);
        self.ctx.now = now;
    }

    /// Performs all pending actions of foca.
    fn settle(&mut self) {
        self.membership.settle(&mut self.ctx, &mut self.runs);
    }
}
