//! Membership: foca's reports, and direct messages to suspected agents.

use alloc::vec::Vec;

use foca::{OwnedNotification, State};
use windtunnel_model::Span;

use super::clocks::HURRY_FIRST;
use super::context::MeshContext;
use super::probes::FailureDetector;
use super::runs::RunParticipationTable;
use super::suspicion::SuspicionTable;
use super::{AgentDepartureReason, MeshEvent, MeshMessage, MeshTimer};
use crate::id::Identity;
use crate::swim::{self, FailureDetectionScope, codec};

/// Which agents are there: how their failures are found, and what follows for runs when one comes,
/// goes or is renewed.
#[derive(Debug)]
pub(super) struct ClusterMembership {
    pub(super) detector: FailureDetector,
    pub(super) suspicions: SuspicionTable,
    /// The life of ours that the caller knows.
    life_reported: Identity,
}

impl ClusterMembership {
    pub(super) fn new(own: Identity) -> Self {
        ClusterMembership {
            detector: FailureDetector::default(),
            suspicions: SuspicionTable::default(),
            life_reported: own,
        }
    }

    /// Performs all pending actions of foca.
    pub(super) fn settle(&mut self, ctx: &mut MeshContext, runs: &mut RunParticipationTable) {
        while ctx.swim.has_actions() {
            self.perform_actions(ctx, runs);
        }
    }

    fn perform_actions(&mut self, ctx: &mut MeshContext, runs: &mut RunParticipationTable) {
        let actions = ctx.swim.take_actions();
        for (to, data) in actions.send {
            ctx.send(to.address, &MeshMessage::Swim(&data));
            runs.piggyback(ctx, to.agent);
        }
        for news in actions.news {
            match news {
                OwnedNotification::MemberUp(life) => self.agent_up(ctx, runs, life),
                OwnedNotification::MemberDown(life) => self.agent_down(ctx, runs, life),
                OwnedNotification::Rename(was, now) => self.agent_renamed(ctx, runs, was, now),
                OwnedNotification::Rejoin(now) => self.renewed(ctx, now),
                OwnedNotification::Active
                | OwnedNotification::Idle
                | OwnedNotification::Defunct => {}
            }
        }
        actions.checks.into_iter().for_each(|check| self.check(ctx, runs, check));
    }

    pub(super) fn on_swim(
        &mut self,
        ctx: &mut MeshContext,
        runs: &mut RunParticipationTable,
        data: &[u8],
    ) {
        if ctx.roster.len() + 1 >= ctx.config.limits.agents && ctx.names_strangers(data) {
            ctx.out.counters.refused += 1;
            return;
        }
        let sender = codec::sender_to(&ctx.identity(), data);
        let doubted = codec::without_downs(data, |life| runs.received_lately(ctx, life));
        if !ctx.swim.handle_data(ctx.now, doubted.as_deref().unwrap_or(data)) {
            ctx.out.counters.malformed += 1;
            return;
        }
        self.settle(ctx, runs);
        if let Some(agent) = sender.and_then(|life| ctx.roster.get_mut(life.agent)) {
            agent.last_received = ctx.now;
        }
        if let Some(life) = sender.filter(|life| ctx.agent(life.agent) != Some(life)) {
            ctx.send_lost(life);
        }
    }

    /// Another agent has declared us lost: it accepts a new life only.
    pub(super) fn on_lost(
        &mut self,
        ctx: &mut MeshContext,
        runs: &mut RunParticipationTable,
        from: Identity,
        life: &Identity,
    ) {
        let own = ctx.identity();
        if life.agent != own.agent || from.agent == own.agent || life.follows(&own) {
            ctx.out.counters.strangers += 1;
            return;
        }
        if *life == own {
            ctx.swim.learn(ctx.now, own, 0, State::Down);
            self.settle(ctx, runs);
        }
        ctx.swim.announce(ctx.now, from);
    }

    /// We are suspected: object to foca's news and to the reporting agent.
    pub(super) fn on_suspected(
        &mut self,
        ctx: &mut MeshContext,
        runs: &mut RunParticipationTable,
        from: &Identity,
        life: &Identity,
        incarnation: u16,
    ) {
        let own = ctx.identity();
        if life.agent != own.agent || life.follows(&own) {
            ctx.out.counters.strangers += 1;
            return;
        }
        if *life == own {
            ctx.swim.learn(ctx.now, own, incarnation, State::Suspect);
            self.settle(ctx, runs);
        }
        let (life, incarnation) = (ctx.identity(), ctx.swim.incarnation());
        ctx.send(from.address, &MeshMessage::Alive { life, incarnation });
    }

    fn agent_up(
        &mut self,
        ctx: &mut MeshContext,
        runs: &mut RunParticipationTable,
        life: Identity,
    ) {
        if ctx.agent(life.agent) == Some(&life) {
            return;
        }
        ctx.roster.add(life, ctx.now, HURRY_FIRST);
        ctx.out.events.push_back(MeshEvent::AgentUp(life));
        let wait = ctx.first_ping_within();
        let first = ctx.rng.below(wait.as_nanos());
        ctx.timers.set(MeshTimer::Clock(life.agent), ctx.now + Span::from_nanos(first + 1));
        self.detector.begin_probes(ctx, FailureDetectionScope::Cluster);
        runs.meet_in_runs(ctx, life.agent);
    }

    fn agent_down(
        &mut self,
        ctx: &mut MeshContext,
        runs: &mut RunParticipationTable,
        life: Identity,
    ) {
        let left = ctx.roster.take_leaving(life.agent);
        if ctx.agent(life.agent) != Some(&life) {
            return;
        }
        let how = if left { AgentDepartureReason::Left } else { AgentDepartureReason::Lost };
        self.remove_agent(ctx, runs, life, how);
        let ask = (!left).then(|| ctx.now + ctx.rejoin_pace());
        let (limit, memory) = (ctx.config.limits.agents, Span::from(swim::MEMORY));
        ctx.roster.remember(life, ask, ctx.now, limit, memory);
        if !left {
            ctx.send_lost(life);
        }
        if let Some(ask) = ask {
            ctx.timers.set_by(MeshTimer::Rejoin, ask);
        }
        // News of a loss are not left to the probes alone.
        ctx.swim.gossip(ctx.now);
    }

    fn agent_renamed(
        &mut self,
        ctx: &mut MeshContext,
        runs: &mut RunParticipationTable,
        was: Identity,
        now: Identity,
    ) {
        if ctx.agent(was.agent) != Some(&was) {
            // It was down for us; if it is up now, foca says so next.
            ctx.roster.rename_former(now);
        } else if was.epoch == now.epoch {
            // Others had declared it lost, and we had not. For us it is the same agent as before.
            ctx.roster.rename(&was, now);
        } else {
            self.remove_agent(ctx, runs, was, AgentDepartureReason::Replaced);
            self.agent_up(ctx, runs, now);
        }
    }

    /// Ends an agent's part in everything.
    fn remove_agent(
        &mut self,
        ctx: &mut MeshContext,
        runs: &mut RunParticipationTable,
        life: Identity,
        how: AgentDepartureReason,
    ) {
        ctx.roster.remove(&life);
        ctx.timers.cancel(MeshTimer::Clock(life.agent));
        ctx.timers.cancel(MeshTimer::Notice(life.agent));
        self.suspicions.forget(life.agent);
        runs.lose_agent(ctx, life.agent);
        ctx.out.events.push_back(MeshEvent::AgentDown { life, how });
    }

    /// We have become a later life of ourselves.
    pub(super) fn renewed(&mut self, ctx: &mut MeshContext, now: Identity) {
        let was = core::mem::replace(&mut self.life_reported, now);
        ctx.roster.replace_digest(&was, &now);
        ctx.out.events.push_back(MeshEvent::Renewed { was, now });
        let agents = ctx.roster.lives().copied().collect();
        ctx.swim.forget_downs(ctx.now, agents);
    }
}

impl MeshContext {
    /// An agent leaves.
    pub(super) fn on_leave(&mut self, life: Identity) {
        if self.agent(life.agent) == Some(&life) {
            self.roster.note_leaving(life.agent);
            self.swim.learn(self.now, life, 0, State::Down);
        } else {
            self.out.counters.strangers += 1;
        }
    }

    /// Announces to all that this agent leaves.
    pub(super) fn send_leave(&mut self) {
        let own = self.identity();
        let others: Vec<_> = self.roster.lives().map(|life| life.address).collect();
        for to in others {
            self.send(to, &MeshMessage::Leave(own));
        }
        self.swim.leave(self.now);
        for (to, data) in self.swim.take_actions().send {
            self.send(to.address, &MeshMessage::Swim(&data));
        }
    }
}
