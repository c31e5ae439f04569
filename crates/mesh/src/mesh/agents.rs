//! Membership: foca's reports, and direct messages to suspected agents.

use alloc::vec::Vec;

use foca::{OwnedNotification, State};
use windtunnel_model::Span;

use super::clocks::HURRY_FIRST;
use super::{AgentDepartureReason, Mesh, MeshEvent, MeshMessage, Wake};
use crate::id::Identity;
use crate::swim::{self, FailureDetectionScope, codec};

impl Mesh {
    /// Performs foca's pending actions.
    pub(super) fn perform_actions(&mut self) {
        let actions = self.ctx.swim.take_actions();
        for (to, data) in actions.send {
            self.ctx.send(to.address, &MeshMessage::Swim(&data));
            self.runs.piggyback(&mut self.ctx, to.agent);
        }
        for news in actions.news {
            match news {
                OwnedNotification::MemberUp(life) => self.agent_up(life),
                OwnedNotification::MemberDown(life) => self.agent_down(life),
                OwnedNotification::Rename(was, now) => self.agent_renamed(was, now),
                OwnedNotification::Rejoin(now) => self.renewed(now),
                OwnedNotification::Active
                | OwnedNotification::Idle
                | OwnedNotification::Defunct => {}
            }
        }
        actions.checks.into_iter().for_each(|check| self.check(check));
    }

    pub(super) fn on_swim(&mut self, data: &[u8]) {
        if self.ctx.roster.len() + 1 >= self.ctx.config.limits.agents
            && self.ctx.names_strangers(data)
        {
            self.ctx.out.counters.refused += 1;
            return;
        }
        let sender = codec::sender_to(&self.ctx.identity(), data);
        let doubted = codec::without_downs(data, |life| self.received_lately(life));
        if !self.ctx.swim.handle_data(self.ctx.now, doubted.as_deref().unwrap_or(data)) {
            self.ctx.out.counters.malformed += 1;
            return;
        }
        self.settle();
        if let Some(agent) = sender.and_then(|life| self.ctx.roster.get_mut(life.agent)) {
            agent.last_received = self.ctx.now;
        }
        if let Some(life) = sender.filter(|life| self.ctx.agent(life.agent) != Some(life)) {
            self.ctx.send_lost(life);
        }
    }

    /// Whether a life sent something within the time that it would have had to object. An agent
    /// that reports it as down was cut off from it, or has no run with it and so less patience, and
    /// we are not; or it is leaving, and will announce that to us.
    fn received_lately(&self, life: &Identity) -> bool {
        let patience = self.runs.patience_with(life.agent).map(|(_, patience)| patience);
        let least = self.ctx.config.detection.suspicion;
        let within = patience.max().unwrap_or(least).max(least);
        self.ctx.roster.received_within(life, self.ctx.now, within)
    }

    /// Another agent has declared us lost: it accepts a new life only.
    pub(super) fn on_lost(&mut self, from: Identity, life: &Identity) {
        let own = self.ctx.identity();
        if life.agent != own.agent || from.agent == own.agent || life.follows(&own) {
            self.ctx.out.counters.strangers += 1;
            return;
        }
        if *life == own {
            self.ctx.swim.learn(self.ctx.now, own, 0, State::Down);
            self.settle();
        }
        self.ctx.swim.announce(self.ctx.now, from);
    }

    /// We are suspected: object to foca's news and to the reporting agent.
    pub(super) fn on_suspected(&mut self, from: &Identity, life: &Identity, incarnation: u16) {
        let own = self.ctx.identity();
        if life.agent != own.agent || life.follows(&own) {
            self.ctx.out.counters.strangers += 1;
            return;
        }
        if *life == own {
            self.ctx.swim.learn(self.ctx.now, own, incarnation, State::Suspect);
            self.settle();
        }
        let (life, incarnation) = (self.ctx.identity(), self.ctx.swim.incarnation());
        self.ctx.send(from.address, &MeshMessage::Alive { life, incarnation });
    }

    pub(super) fn on_alive(&mut self, life: Identity, incarnation: u16) {
        self.ctx.learn_alive(life, incarnation);
    }

    pub(super) fn on_leave(&mut self, life: Identity) {
        if self.ctx.agent(life.agent) == Some(&life) {
            self.ctx.roster.note_leaving(life.agent);
            self.ctx.swim.learn(self.ctx.now, life, 0, State::Down);
        } else {
            self.ctx.out.counters.strangers += 1;
        }
    }

    pub(super) fn send_leave(&mut self) {
        let own = self.ctx.identity();
        let others: Vec<_> = self.ctx.roster.lives().map(|life| life.address).collect();
        for to in others {
            self.ctx.send(to, &MeshMessage::Leave(own));
        }
        self.ctx.swim.leave(self.ctx.now);
        for (to, data) in self.ctx.swim.take_actions().send {
            self.ctx.send(to.address, &MeshMessage::Swim(&data));
        }
    }

    fn agent_up(&mut self, life: Identity) {
        if self.ctx.agent(life.agent) == Some(&life) {
            return;
        }
        self.ctx.roster.add(life, self.ctx.now, HURRY_FIRST);
        self.ctx.out.events.push_back(MeshEvent::AgentUp(life));
        let wait = self.ctx.first_ping_within();
        let first = self.ctx.rng.below(wait.as_nanos());
        self.ctx.timers.set(Wake::Clock(life.agent), self.ctx.now + Span::from_nanos(first + 1));
        self.probes.begin_probes(&mut self.ctx, FailureDetectionScope::Cluster);
        self.runs.meet_in_runs(&mut self.ctx, life.agent);
    }

    fn agent_down(&mut self, life: Identity) {
        let left = self.ctx.roster.take_leaving(life.agent);
        if self.ctx.agent(life.agent) != Some(&life) {
            return;
        }
        self.remove_agent(
            life,
            if left { AgentDepartureReason::Left } else { AgentDepartureReason::Lost },
        );
        let ask = (!left).then(|| self.ctx.now + self.ctx.rejoin_pace());
        let (limit, memory) = (self.ctx.config.limits.agents, Span::from(swim::MEMORY));
        self.ctx.roster.remember(life, ask, self.ctx.now, limit, memory);
        if !left {
            self.ctx.send_lost(life);
        }
        if let Some(ask) = ask {
            self.ctx.timers.set_by(Wake::Rejoin, ask);
        }
        // News of a loss are not left to the probes alone.
        self.ctx.swim.gossip(self.ctx.now);
    }

    fn agent_renamed(&mut self, was: Identity, now: Identity) {
        if self.ctx.agent(was.agent) != Some(&was) {
            // It was down for us; if it is up now, foca says so next.
            self.ctx.roster.rename_former(now);
        } else if was.epoch == now.epoch {
            // Others had declared it lost, and we had not. For us it is the same agent as before.
            self.ctx.roster.rename(&was, now);
        } else {
            self.remove_agent(was, AgentDepartureReason::Replaced);
            self.agent_up(now);
        }
    }

    /// Ends an agent's part in everything.
    fn remove_agent(&mut self, life: Identity, how: AgentDepartureReason) {
        self.ctx.roster.remove(&life);
        self.ctx.timers.cancel(Wake::Clock(life.agent));
        self.ctx.timers.cancel(Wake::Notice(life.agent));
        self.probes.suspicions.remove(&life.agent);
        let runs: Vec<_> = self.runs.runs.keys().copied().collect();
        for run in runs {
            let Some(member) = self.runs.runs[&run].position(life.agent) else { continue };
            self.runs.lose_agent(&mut self.ctx, run, member);
        }
        self.ctx.out.events.push_back(MeshEvent::AgentDown { life, how });
    }

    /// We have become a later life of ourselves.
    pub(super) fn renewed(&mut self, now: Identity) {
        let was = core::mem::replace(&mut self.life_reported, now);
        self.ctx.roster.replace_digest(&was, &now);
        self.ctx.out.events.push_back(MeshEvent::Renewed { was, now });
        let agents = self.ctx.roster.lives().copied().collect();
        self.ctx.swim.forget_downs(self.ctx.now, agents);
    }
}
