//! Finding other agents: at given addresses, again after a loss, and by comparing lists.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::SocketAddr;

use windtunnel_model::{Span, Time};

use super::context::MeshContext;
use super::membership::ClusterMembership;
use super::runs::RunParticipationTable;
use super::{MeshMessage, MeshTimer, MessageSender};
use crate::flow::Fingerprint;
use crate::id::{AgentId, Identity};
use crate::wire::message::{IDENTITY_MAX, ROSTER_HEAD};

/// How long a part of a list may take before it is asked for again.
const PULL_WAIT: Span = Span::from_millis(200);
/// How often that is done.
const PULL_TRIES: u32 = 5;

/// A list of agents that is being asked for.
#[derive(Debug, Clone, Copy)]
struct AgentListPull {
    from: AgentId,
    after: Option<AgentId>,
    tries: u32,
}

/// Addresses to ask, and the comparison of lists under way.
#[derive(Debug, Default)]
pub(super) struct AgentDiscovery {
    pull: Option<AgentListPull>,
    /// Where to ask for others.
    pub(super) seeds: BTreeMap<SocketAddr, Time>,
}

impl AgentDiscovery {
    /// Asks the agents that are due, and sets the next time.
    pub(super) fn search(&mut self, ctx: &mut MeshContext) {
        let (now, pace) = (ctx.now, ctx.rejoin_pace());
        let known: Vec<SocketAddr> = ctx.roster.lives().map(|life| life.address).collect();
        // An agent that knows no other retries faster.
        let wait = if known.is_empty() { Span::from_nanos(pace.as_nanos() / 4) } else { pace };
        let mut asked = Vec::new();
        for (address, due) in &mut self.seeds {
            if *due <= now {
                *due = now + ctx.rng.about(wait).max(Span::from_nanos(1));
                if !known.contains(address) {
                    asked.push(*address);
                }
            }
        }
        // The longer an agent has been away, the more rarely.
        let rng = &mut ctx.rng;
        asked.extend(ctx.roster.rejoins(now, |age| {
            let age = Span::from_nanos(age.as_nanos() / 4);
            rng.about(wait.max(age)).max(Span::from_nanos(1))
        }));
        let own = ctx.identity();
        for address in asked {
            ctx.send(address, &MeshMessage::Join(own));
        }
        let next = self.seeds.values().copied();
        let next = next.chain(ctx.roster.next_rejoin()).min();
        if let Some(next) = next {
            ctx.timers.set(MeshTimer::Rejoin, next);
        }
    }

    pub(super) fn on_roster_sum(
        &mut self,
        ctx: &mut MeshContext,
        from: MessageSender,
        agents: Fingerprint,
        answer: bool,
    ) {
        if !ctx.knows(from) || agents == ctx.roster.fingerprint() {
            return;
        }
        if self.pull.is_none() {
            self.pull(ctx, AgentListPull { from: from.agent, after: None, tries: PULL_TRIES });
        }
        if answer {
            let (me, agents) = (ctx.me(), ctx.roster.fingerprint());
            ctx.send_to(from.agent, &MeshMessage::RosterSum { from: me, agents, answer: false });
        }
    }

    fn pull(&mut self, ctx: &mut MeshContext, pull: AgentListPull) {
        self.pull = Some(pull);
        let from = ctx.me();
        ctx.send_to(pull.from, &MeshMessage::RosterAsk { from, after: pull.after });
        ctx.timers.set(MeshTimer::Pull, ctx.now + PULL_WAIT);
    }

    pub(super) fn pull_again(&mut self, ctx: &mut MeshContext) {
        let Some(pull) = self.pull.take() else { return };
        if let Some(tries) = pull.tries.checked_sub(1).filter(|_| ctx.agent(pull.from).is_some()) {
            self.pull(ctx, AgentListPull { tries, ..pull });
        }
    }

    /// A life of ours is known that began with a greater number than this one: our clock was wrong
    /// then or is now. Only a still greater one will be accepted.
    pub(super) fn on_outdated(
        &mut self,
        ctx: &mut MeshContext,
        membership: &mut ClusterMembership,
        epoch: u64,
    ) {
        let own = ctx.identity();
        let Some(next) = epoch.checked_add(1).filter(|next| *next > own.epoch) else { return };
        let life = Identity { epoch: next, renewal: 0, ..own };
        ctx.swim.become_life(ctx.now, life);
        membership.renewed(ctx, life);
        let now = ctx.now;
        ctx.timers.set(MeshTimer::Rejoin, now + Span::from_nanos(1));
        self.seeds.values_mut().for_each(|due| *due = now);
    }

    pub(super) fn on_roster(
        &mut self,
        ctx: &mut MeshContext,
        membership: &mut ClusterMembership,
        runs: &mut RunParticipationTable,
        from: MessageSender,
        more: bool,
        agents: &[Identity],
    ) {
        let asked = self.pull.filter(|pull| pull.from == from.agent);
        let Some(pull) = asked.filter(|_| ctx.knows(from)) else {
            ctx.out.counters.strangers += 1;
            return;
        };
        for life in agents {
            if ctx.agent(life.agent) != Some(life) {
                ctx.learn_alive(*life, 0);
                membership.settle(ctx, runs);
                if ctx.agent(life.agent).is_none() {
                    // It is down here, and alive for another agent: it has to learn that, if it is.
                    ctx.send_lost(*life);
                }
            }
        }
        let last = agents.last().map(|life| life.agent).filter(|last| Some(*last) > pull.after);
        // The other one knows that these are gone, or does not know them yet.
        let unnamed = ctx.roster.unnamed(pull.after, last.filter(|_| more), agents);
        unnamed.into_iter().for_each(|agent| membership.detector.doubt(agent));
        self.pull = None;
        ctx.timers.cancel(MeshTimer::Pull);
        if let (true, Some(last)) = (more, last) {
            self.pull(ctx, AgentListPull { after: Some(last), tries: PULL_TRIES, ..pull });
        }
    }
}

impl MeshContext {
    /// How often a lost agent is asked whether it is back.
    pub(super) fn rejoin_pace(&self) -> Span {
        let count = u64::try_from(self.roster.len()).unwrap_or(u64::MAX);
        let all = Span::from_nanos(count.saturating_mul(20_000_000));
        self.config.pace.rejoin.max(all).max(Span::from_nanos(1))
    }

    /// Compares lists with an agent.
    pub(super) fn compare_rosters(&mut self, agent: AgentId) {
        let (from, agents) = (self.me(), self.roster.fingerprint());
        self.send_to(agent, &MeshMessage::RosterSum { from, agents, answer: true });
    }

    pub(super) fn on_join(&mut self, from: SocketAddr, life: &Identity) {
        let own = self.identity();
        if life.agent == own.agent {
            return;
        }
        match self.roster.latest_epoch(life.agent) {
            Some(epoch) if epoch > life.epoch => self.send(from, &MeshMessage::Outdated { epoch }),
            _ => self.send(from, &MeshMessage::Here(own)),
        }
    }

    pub(super) fn on_here(&mut self, life: Identity) {
        if life.agent != self.config.agent {
            self.swim.announce(self.now, life);
        }
    }

    pub(super) fn on_roster_ask(&mut self, from: MessageSender, after: Option<AgentId>) {
        if !self.knows(from) {
            return;
        }
        let room = (self.config.mtu - ROSTER_HEAD) / IDENTITY_MAX;
        let (agents, more) = self.roster.page(self.identity(), after, room);
        let me = self.me();
        self.send_to(from.agent, &MeshMessage::Roster { from: me, more, agents });
    }
}
