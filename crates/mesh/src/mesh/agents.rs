//! Who is there: what foca says, and the second hearing of suspected agents.

use alloc::vec::Vec;

use foca::{OwnedNotification, State};
use windtunnel_model::Span;

use super::clocks::HURRY_FIRST;
use super::{Agent, Ending, Event, FormerAgent, Mesh, Message, VecDeque, Wake};
use crate::clock::PeerClock;
use crate::id::{Identity, mix};
use crate::swim::{self, Scope, codec};

/// An agent that is down and sends is informed, again after this time.
const DECLINE_WAIT: Span = Span::from_millis(100);
/// As many of them in that time.
const DECLINED_MAX: usize = 256;

/// The digest of a life, for fingerprints of lists.
pub(super) fn digest(life: &Identity) -> u64 {
    mix(mix(mix(life.agent.0) ^ life.epoch) ^ u64::from(life.renewal))
}

impl Mesh {
    /// Does what foca asked for.
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
        if self.agents.len() + 1 >= self.config.limits.agents && self.names_strangers(data) {
            self.out.counters.refused += 1;
            return;
        }
        let sender = codec::sender_to(&self.identity(), data);
        let doubted = codec::without_downs(data, |life| self.heard_lately(life));
        if !self.swim.handle_data(self.now, doubted.as_deref().unwrap_or(data)) {
            self.out.counters.malformed += 1;
            return;
        }
        self.settle();
        if let Some(agent) = sender.and_then(|life| self.agents.get_mut(&life.agent)) {
            agent.heard = self.now;
        }
        if let Some(life) = sender.filter(|life| self.agent(life.agent) != Some(life)) {
            self.send_lost(life);
        }
    }

    /// An agent that is down for us sends messages, which foca therefore ignores: it has to learn
    /// why.
    pub(super) fn send_lost(&mut self, life: Identity) {
        let now = self.now;
        self.declined.retain(|_, at| now.since(*at) < DECLINE_WAIT);
        let full = self.declined.len() >= DECLINED_MAX;
        if life.agent != self.config.agent && !full && !self.declined.contains_key(&life.agent) {
            self.declined.insert(life.agent, now);
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

    /// Whether a life sent something within the time that it would have had to object. Whoever says
    /// that it is down was cut off from it, and we are not; or it said good-bye, and will say
    /// so to us.
    fn heard_lately(&self, life: &Identity) -> bool {
        let known = self.agents.get(&life.agent).filter(|agent| agent.life == *life);
        known.is_some_and(|agent| self.now.since(agent.heard) < self.config.detection.suspicion)
    }

    fn names_strangers(&self, data: &[u8]) -> bool {
        let named = codec::agents_named(data).unwrap_or_default();
        named.iter().any(|life| self.agent(life.agent).is_none())
    }

    /// Learns from another agent that an agent is alive.
    pub(super) fn learn_alive(&mut self, life: Identity, incarnation: u16) {
        let known = self.agent(life.agent).is_some();
        if !known && self.agents.len() + 1 >= self.config.limits.agents {
            self.out.counters.refused += 1;
        } else if life.agent != self.config.agent {
            self.swim.learn(self.now, life, incarnation, State::Alive);
        }
    }

    /// We are suspected: object to foca's news and to whoever said it.
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
            self.leaving.insert(life.agent);
            self.swim.learn(self.now, life, 0, State::Down);
        } else {
            self.out.counters.strangers += 1;
        }
    }

    pub(super) fn send_leave(&mut self) {
        let own = self.identity();
        let everybody: Vec<_> = self.agents.values().map(|agent| agent.life.address).collect();
        for to in everybody {
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
        self.gone.remove(&life.agent);
        self.roster.add(digest(&life));
        let fresh = Agent {
            life,
            heard: self.now,
            clock: PeerClock::default(),
            pings: VecDeque::new(),
            pace: Span::ZERO,
            hurry: HURRY_FIRST,
            runs: 0,
        };
        self.agents.insert(life.agent, fresh);
        self.out.events.push_back(Event::AgentUp(life));
        let wait = self.first_ping_within();
        let first = self.rng.below(wait.as_nanos());
        self.timers.set(Wake::Clock(life.agent), self.now + Span::from_nanos(first + 1));
        self.begin_probes(Scope::Cluster);
        self.meet_in_runs(life.agent);
    }

    fn agent_down(&mut self, life: Identity) {
        let left = self.leaving.remove(&life.agent);
        if self.agent(life.agent) != Some(&life) {
            return;
        }
        self.remove_agent(life, if left { Ending::Left } else { Ending::Lost });
        let ask = (!left).then(|| self.now + self.rejoin_pace());
        self.remember(FormerAgent { life, since: self.now, ask });
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
            if let Some(gone) = self.gone.get_mut(&was.agent) {
                gone.life = now;
            }
        } else if was.epoch == now.epoch {
            // Others had declared it lost, and we had not. For us it is the same agent as before.
            self.roster.remove(digest(&was));
            self.roster.add(digest(&now));
            if let Some(agent) = self.agents.get_mut(&was.agent) {
                agent.life = now;
            }
        } else {
            self.remove_agent(was, Ending::Replaced);
            self.agent_up(now);
        }
    }

    /// Whatever an agent had a part in is over.
    fn remove_agent(&mut self, life: Identity, how: Ending) {
        let known = self.agents.remove(&life.agent);
        self.in_runs -= usize::from(known.is_some_and(|known| known.runs > 0));
        self.roster.remove(digest(&life));
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

    fn remember(&mut self, gone: FormerAgent) {
        if self.gone.len() >= self.config.limits.agents {
            let oldest = self.gone.iter().min_by_key(|(_, gone)| gone.since).map(|(id, _)| *id);
            oldest.map(|agent| self.gone.remove(&agent));
        }
        self.gone.insert(gone.life.agent, gone);
        let (now, memory) = (self.now, Span::from(swim::MEMORY));
        self.gone.retain(|_, gone| now.since(gone.since) < memory);
    }

    /// We have become a later life of ourselves.
    pub(super) fn renewed(&mut self, now: Identity) {
        let was = core::mem::replace(&mut self.life_told, now);
        self.roster.remove(digest(&was));
        self.roster.add(digest(&now));
        self.out.events.push_back(Event::Renewed { was, now });
        let agents = self.agents.values().map(|agent| agent.life).collect();
        self.swim.forget_downs(self.now, agents);
    }
}
