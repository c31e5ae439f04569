//! State that all parts of the mesh use: time, membership, timers and outputs.

use alloc::collections::VecDeque;
use core::net::SocketAddr;

use foca::State;
use windtunnel_model::{Span, Time};

use crate::clock::WallClockReading;
use crate::config::MeshConfiguration;
use crate::counters::MeshTrafficCounters;
use crate::event::{MeshEvent, OutgoingDatagram};
use crate::id::{AgentId, Identity};
use crate::rng::SeededRng;
use crate::roster::Roster;
use crate::swim::{Swim, codec};
use crate::timers::MeshTimerQueue;
use crate::wire::message::{MeshMessage, MessageSender};

#[derive(Debug)]
pub(super) struct MeshContext {
    pub(super) config: MeshConfiguration,
    /// What this machine knows of its wall clock.
    pub(super) wall: WallClockReading,
    pub(super) now: Time,
    pub(super) rng: SeededRng,
    pub(super) swim: Swim,
    pub(super) roster: Roster,
    pub(super) timers: MeshTimerQueue,
    pub(super) out: MeshOutputQueue,
}

/// Outputs for the caller.
#[derive(Debug, Default)]
pub(super) struct MeshOutputQueue {
    pub(super) transmits: VecDeque<OutgoingDatagram>,
    pub(super) events: VecDeque<MeshEvent>,
    pub(super) counters: MeshTrafficCounters,
}

impl MeshContext {
    /// The present life of this agent.
    pub(super) fn identity(&self) -> Identity {
        self.swim.identity()
    }

    /// The present life of another agent; `None` if it is not there.
    pub(super) fn agent(&self, agent: AgentId) -> Option<&Identity> {
        self.roster.life(agent)
    }

    /// This agent as the sender of messages.
    pub(super) fn me(&self) -> MessageSender {
        MessageSender { agent: self.config.agent, epoch: self.identity().epoch }
    }

    pub(super) fn send(&mut self, to: SocketAddr, message: &MeshMessage<'_>) {
        self.out.send(to, message);
    }

    /// Sends to an agent, if it is there.
    pub(super) fn send_to(&mut self, agent: AgentId, message: &MeshMessage<'_>) {
        if let Some(life) = self.roster.life(agent) {
            self.out.send(life.address, message);
        }
    }

    /// Whether a message is from the present life of an agent that is there. Counts it if not.
    pub(super) fn knows(&mut self, from: MessageSender) -> bool {
        let known = self.roster.note_received(from, self.now);
        self.out.counters.strangers += u64::from(!known);
        known
    }

    /// About that, so that agents do not all do it at once.
    pub(super) fn about_after(&mut self, wait: Span) -> Time {
        let wait = self.rng.about(wait);
        self.after(wait)
    }

    /// When something is due that comes after `wait`, at least a nanosecond from now.
    pub(super) fn after(&self, wait: Span) -> Time {
        self.now + wait.max(Span::from_nanos(1))
    }

    /// An agent that is down for us sends messages, which foca therefore ignores: it has to learn
    /// why.
    pub(super) fn send_lost(&mut self, life: Identity) {
        if life.agent != self.config.agent && self.roster.inform(life.agent, self.now) {
            let from = self.identity();
            self.send(life.address, &MeshMessage::Lost { from, life });
        }
    }

    pub(super) fn names_strangers(&self, data: &[u8]) -> bool {
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
}

impl MeshOutputQueue {
    pub(super) fn send(&mut self, to: SocketAddr, message: &MeshMessage<'_>) {
        let payload = message.encode();
        let counters = &mut self.counters;
        let kind = match message {
            MeshMessage::Run(..) | MeshMessage::RunLeft(..) => &mut counters.runs,
            MeshMessage::Delta(..) | MeshMessage::Meet { .. } => &mut counters.flows,
            MeshMessage::Digest(..) | MeshMessage::Want { .. } => &mut counters.digests,
            MeshMessage::Ping { .. } | MeshMessage::Pong { .. } => &mut counters.clocks,
            _ => &mut counters.membership,
        };
        kind.count(payload.len());
        self.transmits.push_back(OutgoingDatagram { to, payload });
    }
}

/// How often a message goes to each of `count` receivers so that no more than 500 leave in a
/// second.
pub(super) fn paced(base: Span, count: usize) -> Span {
    spread(base, count, Span::from_millis(2))
}

/// Likewise for messages that are repeated as long as a run lasts: no more than 100.
pub(super) fn seldom(base: Span, count: usize) -> Span {
    spread(base, count, Span::from_millis(10))
}

pub(super) fn spread(base: Span, count: usize, each: Span) -> Span {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    base.max(Span::from_nanos(count.saturating_mul(each.as_nanos())))
}
