//! Failure detection: which agent is probed when.
//!
//! As in SWIM, an agent asks one other in each period, and asks three to ask it if no answer comes.
//! There are two *scopes* with a pace each: members of common runs are probed in turn and
//! quickly; of the cluster only few neighbours, once in a second, so that an agent without a run
//! needs few connections and says next to nothing, however many agents there are. The neighbours
//! are the successors on rings, in each of which the agents stand in another random order: so
//! each agent is probed by some, and news and lists of agents get around.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use windtunnel_model::Span;

use super::context::MeshContext;
use super::membership::ClusterMembership;
use super::runs::RunParticipationTable;
use super::{AgentId, MeshMessage, MessageSender};
use crate::config::{FAR_PROBE, NEIGHBOURS, SwimParameters};
use crate::id::Identity;
use crate::swim::{FAN_OUT, FailureDetectionScope, FailureDetectionTimer};

/// Agents that another agent does not know and that are to be probed out of turn, at the most.
const DOUBTFUL_MAX: usize = 64;

/// The probes of both scopes.
#[derive(Debug, Default)]
pub(super) struct FailureDetector {
    cluster: ProbeRound,
    run: ProbeRound,
    /// Number of the last probe.
    number: u32,
    /// Known here, but not to an agent whose list was compared with ours.
    doubtful: BTreeSet<AgentId>,
}

/// The probes of a scope.
#[derive(Debug, Default)]
struct ProbeRound {
    /// Agents still to be probed in this round.
    due: VecDeque<AgentId>,
    pending: Option<PendingProbe>,
    is_running: bool,
}

/// A probe without an answer yet.
#[derive(Debug)]
struct PendingProbe {
    life: Identity,
    incarnation: u16,
    number: u32,
    acked: bool,
}

impl FailureDetector {
    fn round(&mut self, scope: FailureDetectionScope) -> &mut ProbeRound {
        match scope {
            FailureDetectionScope::Cluster => &mut self.cluster,
            FailureDetectionScope::Run => &mut self.run,
        }
    }

    fn acked(&mut self, agent: AgentId, number: u32) {
        for round in [&mut self.cluster, &mut self.run] {
            let pending = round.pending.as_mut();
            if let Some(pending) =
                pending.filter(|it| it.number == number && it.life.agent == agent)
            {
                pending.acked = true;
            }
        }
    }

    /// There may be an agent to probe now.
    pub(super) fn begin_probes(&mut self, ctx: &mut MeshContext, scope: FailureDetectionScope) {
        let period = ctx.base_detection(scope).probe_period;
        if !core::mem::replace(&mut self.round(scope).is_running, true) {
            let first = Span::from_nanos(ctx.rng.below(period.as_nanos()));
            ctx.swim.check_after(ctx.now, FailureDetectionTimer::Next(scope), first);
        }
    }

    /// A member of a common run is to be probed, too.
    pub(super) fn probe_member(&mut self, ctx: &mut MeshContext, agent: AgentId) {
        let due = &mut self.run.due;
        if !due.contains(&agent) {
            due.push_back(agent);
        }
        self.begin_probes(ctx, FailureDetectionScope::Run);
    }

    /// The period of a probe is over. If it was not answered: the agent, and in which incarnation it
    /// was probed.
    fn take_failed(&mut self, scope: FailureDetectionScope) -> Option<(Identity, u16)> {
        let failed = self.round(scope).pending.take().filter(|pending| !pending.acked);
        failed.map(|pending| (pending.life, pending.incarnation))
    }

    /// Probes the next agent, if there is one. Returns it, and the probe's number.
    fn probe(
        &mut self,
        ctx: &mut MeshContext,
        runs: &RunParticipationTable,
        scope: FailureDetectionScope,
    ) -> Option<(AgentId, u32)> {
        let Some(life) = self.next_target(ctx, runs, scope) else {
            self.round(scope).is_running = false;
            return None;
        };
        self.number = self.number.wrapping_add(1);
        let (number, incarnation) = (self.number, ctx.swim.incarnation_of(&life));
        self.round(scope).pending = Some(PendingProbe { life, incarnation, number, acked: false });
        ctx.send_probe(life.agent, number, None);
        Some((life.agent, number))
    }

    /// The agent that is probed next; agents that are gone are skipped.
    fn next_target(
        &mut self,
        ctx: &mut MeshContext,
        runs: &RunParticipationTable,
        scope: FailureDetectionScope,
    ) -> Option<Identity> {
        for _ in 0..2 {
            while let Some(agent) = self.round(scope).due.pop_front() {
                let wanted = scope == FailureDetectionScope::Cluster || runs.shares(agent);
                if let Some(life) = ctx.agent(agent).filter(|_| wanted) {
                    return Some(*life);
                }
            }
            let due = match scope {
                FailureDetectionScope::Cluster => self.next_in_cluster(ctx),
                FailureDetectionScope::Run => self.members_in_turn(ctx, runs),
            };
            self.round(scope).due = due;
        }
        None
    }

    fn next_in_cluster(&mut self, ctx: &mut MeshContext) -> VecDeque<AgentId> {
        let mut due = ctx.neighbours();
        let often = u64::from(FAR_PROBE) / u64::try_from(NEIGHBOURS).unwrap_or(1);
        if ctx.rng.below(often.max(1)) == 0 {
            due.extend(ctx.random_agent());
        }
        due.extend(self.doubtful.pop_first());
        due
    }

    /// All members of common runs in random order.
    fn members_in_turn(
        &mut self,
        ctx: &mut MeshContext,
        runs: &RunParticipationTable,
    ) -> VecDeque<AgentId> {
        let members: BTreeSet<AgentId> =
            runs.runs.values().flat_map(super::RunParticipation::confirmed).collect();
        let mut order: Vec<AgentId> = members.into_iter().collect();
        for last in (1..order.len()).rev() {
            let bound = u64::try_from(last).unwrap_or(0) + 1;
            order.swap(last, usize::try_from(ctx.rng.below(bound)).unwrap_or(0));
        }
        order.into()
    }

    /// No answer came in time: others ask.
    fn ask_others(
        &mut self,
        ctx: &mut MeshContext,
        runs: &RunParticipationTable,
        scope: FailureDetectionScope,
        number: u32,
    ) {
        let pending = self.round(scope).pending.as_ref();
        let Some(pending) = pending.filter(|it| it.number == number && !it.acked) else { return };
        let target = pending.life.agent;
        let near = match scope {
            FailureDetectionScope::Cluster => ctx.neighbours(),
            FailureDetectionScope::Run => self.members_in_turn(ctx, runs),
        };
        let mut helpers: Vec<AgentId> = near.into_iter().filter(|it| *it != target).collect();
        for _ in helpers.len()..FAN_OUT {
            helpers.extend(ctx.random_agent().filter(|it| *it != target));
        }
        helpers.dedup();
        let from = ctx.me();
        for helper in helpers.into_iter().take(FAN_OUT) {
            ctx.send_to(helper, &MeshMessage::ProbeFor { from, target, number });
        }
    }

    pub(super) fn on_ack_for(
        &mut self,
        ctx: &mut MeshContext,
        from: MessageSender,
        target: AgentId,
        number: u32,
    ) {
        if ctx.knows(from) {
            self.acked(target, number);
        }
    }

    /// Another agent does not know an agent that is known here.
    pub(super) fn doubt(&mut self, agent: AgentId) {
        if self.doubtful.len() < DOUBTFUL_MAX {
            self.doubtful.insert(agent);
        }
    }
}

impl MeshContext {
    pub(super) fn base_detection(&self, scope: FailureDetectionScope) -> SwimParameters {
        match scope {
            FailureDetectionScope::Cluster => self.config.idle,
            FailureDetectionScope::Run => self.config.detection,
        }
    }

    /// An agent is probed; an ack takes a round trip.
    pub(super) fn detection_of(
        &self,
        scope: FailureDetectionScope,
        agent: AgentId,
    ) -> SwimParameters {
        let clock = self.roster.get(agent).and_then(|known| known.clock.read(self.now));
        self.base_detection(scope).stretched(clock.map_or(Span::ZERO, |clock| clock.rtt_min))
    }

    pub(super) fn neighbours(&self) -> VecDeque<AgentId> {
        self.roster.successors(self.config.agent, NEIGHBOURS)
    }

    pub(super) fn random_agent(&mut self) -> Option<AgentId> {
        let count = u64::try_from(self.roster.len()).unwrap_or(0);
        self.roster.at(usize::try_from(self.rng.below(count)).unwrap_or(0))
    }

    pub(super) fn send_probe(&mut self, to: AgentId, number: u32, origin: Option<AgentId>) {
        let (from, incarnation) = (self.identity(), self.swim.incarnation());
        self.send_to(to, &MeshMessage::Probe { from, incarnation, to, number, origin });
    }
}

impl ClusterMembership {
    /// Handles a timer of failure detection.
    pub(super) fn check(
        &mut self,
        ctx: &mut MeshContext,
        runs: &mut RunParticipationTable,
        check: FailureDetectionTimer,
    ) {
        match check {
            FailureDetectionTimer::Next(scope) => self.probe_next(ctx, runs, scope),
            FailureDetectionTimer::Unanswered(scope, number) => {
                self.detector.ask_others(ctx, runs, scope, number);
            }
            FailureDetectionTimer::Silent(life, incarnation) => {
                self.suspicions.judge(ctx, runs, life, incarnation);
            }
        }
    }

    fn probe_next(
        &mut self,
        ctx: &mut MeshContext,
        runs: &mut RunParticipationTable,
        scope: FailureDetectionScope,
    ) {
        if let Some((life, incarnation)) = self.detector.take_failed(scope) {
            self.suspicions.suspect(ctx, runs, scope, life, incarnation);
            self.settle(ctx, runs);
        }
        let Some((agent, number)) = self.detector.probe(ctx, runs, scope) else { return };
        if scope == FailureDetectionScope::Cluster {
            ctx.compare_rosters(agent);
        }
        runs.piggyback(ctx, agent);
        let detection = ctx.detection_of(scope, agent);
        let unanswered = FailureDetectionTimer::Unanswered(scope, number);
        ctx.swim.check_after(ctx.now, unanswered, detection.probe_wait);
        ctx.swim.check_after(ctx.now, FailureDetectionTimer::Next(scope), detection.probe_period);
    }

    pub(super) fn on_probe(
        &mut self,
        ctx: &mut MeshContext,
        runs: &mut RunParticipationTable,
        from: Identity,
        incarnation: u16,
        number: u32,
        origin: Option<AgentId>,
    ) {
        if self.note_alive(ctx, runs, from, incarnation) {
            let (own, incarnation) = (ctx.identity(), ctx.swim.incarnation());
            let ack = MeshMessage::ProbeAck { from: own, incarnation, number, origin };
            ctx.send_to(from.agent, &ack);
            runs.piggyback(ctx, from.agent);
        }
    }

    pub(super) fn on_probe_ack(
        &mut self,
        ctx: &mut MeshContext,
        runs: &mut RunParticipationTable,
        from: Identity,
        incarnation: u16,
        number: u32,
        origin: Option<AgentId>,
    ) {
        if !self.note_alive(ctx, runs, from, incarnation) {
            return;
        }
        match origin {
            Some(origin) => {
                let (me, target) = (ctx.me(), from.agent);
                ctx.send_to(origin, &MeshMessage::AckFor { from: me, target, number });
            }
            None => self.detector.acked(from.agent, number),
        }
    }

    /// An agent says that it is alive. False if it is down here; it is sent that then.
    fn note_alive(
        &mut self,
        ctx: &mut MeshContext,
        runs: &mut RunParticipationTable,
        life: Identity,
        incarnation: u16,
    ) -> bool {
        if life.agent == ctx.config.agent {
            ctx.out.counters.strangers += 1;
            return false;
        }
        ctx.learn_alive(life, incarnation);
        self.settle(ctx, runs);
        let (now, known) = (ctx.now, ctx.roster.get_mut(life.agent));
        match known.filter(|known| known.life == life) {
            Some(known) => known.last_received = now,
            None => {
                ctx.send_lost(life);
                return false;
            }
        }
        true
    }
}
