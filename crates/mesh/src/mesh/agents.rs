//! Membership: foca's reports, and direct messages to suspected agents.

use alloc::vec::Vec;

use foca::{OwnedNotification, State};
use windtunnel_model::Span;

use super::clocks::HURRY_FIRST;
use super::{Ending, Event, Mesh, Message, Wake};
use crate::id::Identity;
use crate::swim::{self, Scope, codec};

impl Mesh {
    /// Performs foca's pending actions.
    pub(super) fn perform_actions(&mut self) {
        let actions = self.swim.take_actions();
        for (to, data) in actions.send {
            self.send(to.address, &Message::Swim(&data));
            self.piggyback(to.agent);
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
        if self.roster.len() + 1 >= self.config.limits.agents && self.names_strangers(data) {
            self.out.counters.refused += 1;
            return;
        }
        let sender = codec::sender_to(&self.identity(), data);
        let doubted = codec::without_downs(data, |life| self.received_lately(life));
        if !self.swim.handle_data(self.now, doubted.as_deref().unwrap_or(data)) {
            self.out.counters.malformed += 1;
            return;
        }
        self.settle();
        if let Some(agent) = sender.and_then(|life| self.roster.get_mut(life.agent)) {
            agent.last_received = self.now;
        }
        if let Some(life) = sender.filter(|life| self.agent(life.agent) != Some(life)) {
            self.send_lost(life);
        }
    }

    /// An agent that is down for us sends messages, which foca therefore ignores: it has to learn
    /// why.
    pub(super) fn send_lost(&mut self, life: Identity) {
        if life.agent != self.config.agent && self.roster.inform(life.agent, self.now) {
            let from = self.identity();
            self.send(life.address, &Message::Lost { from, life });
        }
    }

    /// Another agent has declared us lost: it accepts a new life only.
    pub(super) fn on_lost(&mut self, from: Identity, life: &Identity) {
        let own = self.identity();
        if life.agent != own.agent || from.agent == own.agent || life.follows(&own) {
            self.out.counters.strangers += 1;
            return;
        }
        if *life == own {
            self.swim.learn(self.now, own, 0, State::Down);
            self.settle();
        }
        self.swim.announce(self.now, from);
    }

    /// Whether a life sent something within the time that it would have had to object. An agent
    /// that reports it as down was cut off from it, and we are not; or it is leaving, and will
    /// announce that to us.
    fn received_lately(&self, life: &Identity) -> bool {
        self.roster.received_within(life, self.now, self.config.detection.suspicion)
    }

    fn names_strangers(&self, data: &[u8]) -> bool {
        let named = codec::agents_named(data).unwrap_or_default();
        named.iter().any(|life| self.agent(life.agent).is_none())
    }

    /// Learns from another agent that an agent is alive.
    pub(super) fn learn_alive(&mut self, life: Identity, incarnation: u16) {
        let known = self.agent(life.agent).is_some();
        if !known && self.roster.len() + 1 >= self.config.limits.agents {
            self.out.counters.refused += 1;
        } else if life.agent != self.config.agent {
            self.swim.learn(self.now, life, incarnation, State::Alive);
        }
    }

    /// We are suspected: object to foca's news and to the reporting agent.
    pub(super) fn on_suspected(&mut self, from: &Identity, life: &Identity, incarnation: u16) {
        let own = self.identity();
        if life.agent != own.agent || life.follows(&own) {
            self.out.counters.strangers += 1;
            return;
        }
        if *life == own {
            self.swim.learn(self.now, own, incarnation, State::Suspect);
            self.settle();
        }
        let (life, incarnation) = (self.identity(), self.swim.incarnation());
        self.send(from.address, &Message::Alive { life, incarnation });
    }

    pub(super) fn on_alive(&mut self, life: Identity, incarnation: u16) {
        self.learn_alive(life, incarnation);
    }

    pub(super) fn on_leave(&mut self, life: Identity) {
        if self.agent(life.agent) == Some(&life) {
            self.roster.note_leaving(life.agent);
            self.swim.learn(self.now, life, 0, State::Down);
        } else {
            self.out.counters.strangers += 1;
        }
    }

    pub(super) fn send_leave(&mut self) {
        let own = self.identity();
        let others: Vec<_> = self.roster.lives().map(|life| life.address).collect();
        for to in others {
            self.send(to, &Message::Leave(own));
        }
        self.swim.leave(self.now);
        for (to, data) in self.swim.take_actions().send {
            self.send(to.address, &Message::Swim(&data));
        }
    }

    fn agent_up(&mut self, life: Identity) {
        if self.agent(life.agent) == Some(&life) {
            return;
        }
        self.roster.add(life, self.now, HURRY_FIRST);
        self.out.events.push_back(Event::AgentUp(life));
        let wait = self.first_ping_within();
        let first = self.rng.below(wait.as_nanos());
        self.timers.set(Wake::Clock(life.agent), self.now + Span::from_nanos(first + 1));
        self.begin_probes(Scope::Cluster);
        self.meet_in_runs(life.agent);
    }

    fn agent_down(&mut self, life: Identity) {
        let left = self.roster.take_leaving(life.agent);
        if self.agent(life.agent) != Some(&life) {
            return;
        }
        self.remove_agent(life, if left { Ending::Left } else { Ending::Lost });
        let ask = (!left).then(|| self.now + self.rejoin_pace());
        let (limit, memory) = (self.config.limits.agents, Span::from(swim::MEMORY));
        self.roster.remember((life, ask), self.now, limit, memory);
        if !left {
            self.send_lost(life);
        }
        if let Some(ask) = ask {
            self.timers.set_by(Wake::Rejoin, ask);
        }
        // News of a loss are not left to the probes alone.
        self.swim.gossip(self.now);
    }

    fn agent_renamed(&mut self, was: Identity, now: Identity) {
        if self.agent(was.agent) != Some(&was) {
            // It was down for us; if it is up now, foca says so next.
            self.roster.rename_former(now);
        } else if was.epoch == now.epoch {
            // Others had declared it lost, and we had not. For us it is the same agent as before.
            self.roster.rename(&was, now);
        } else {
            self.remove_agent(was, Ending::Replaced);
            self.agent_up(now);
        }
    }

    /// Ends an agent's part in everything.
    fn remove_agent(&mut self, life: Identity, how: Ending) {
        self.roster.remove(&life);
        self.timers.cancel(Wake::Clock(life.agent));
        self.timers.cancel(Wake::Notice(life.agent));
        self.notices.remove(&life.agent);
        let runs: Vec<_> = self.runs.keys().copied().collect();
        for run in runs {
            let Some(member) = self.runs[&run].position(life.agent) else { continue };
            self.lose_agent(run, member);
        }
        self.out.events.push_back(Event::AgentDown { life, how });
    }

    /// We have become a later life of ourselves.
    pub(super) fn renewed(&mut self, now: Identity) {
        let was = core::mem::replace(&mut self.life_reported, now);
        self.roster.replace_digest(&was, &now);
        self.out.events.push_back(Event::Renewed { was, now });
        let agents = self.roster.lives().copied().collect();
        self.swim.forget_downs(self.now, agents);
    }
}
