//! The messages between agents: one in a datagram.
//!
//! A datagram begins with [`VERSION`] and the kind. Bytes beyond a message's end make it malformed;
//! so does a value that no sender of this version writes.

mod bodies;
mod fields;

use alloc::vec::Vec;

use windtunnel_model::NodeId;

pub(crate) use self::fields::entry_len;
use self::fields::{
    delta, digest, meet, optional_agent, put_run_state, put_sender, roster, run_state, sender,
};
use super::{MessageDecoder, MessageEncoder};
use crate::flow::{Fingerprint, FlowTableEntry};
use crate::id::{AgentId, Identity, PlanHash, RunId};

/// The version of all of it; others are refused and counted.
pub(crate) const VERSION: u8 = 3;
/// The error of a wall clock that nothing keeps.
pub(crate) const NOT_KEPT: u64 = u64::MAX;

/// Bytes of the longest datagram that is decoded, with any MTU of our own.
pub(crate) const DATAGRAM_MAX: usize = 16_384;

/// Bytes of a page of the bits of lost members, and the members that it stands for.
pub(crate) const PAGE_BYTES: usize = 128;
pub(crate) const PAGE_MEMBERS: u32 = 1024;

/// Why bytes are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MeshDecodeError {
    /// Another version of the protocol, or not ours at all.
    Version,
    /// Cut, of an unknown kind, or with values that are never sent.
    Malformed,
}

/// The sender of a message about a run, a flow or a clock: an agent in one of its starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageSender {
    pub(crate) agent: AgentId,
    pub(crate) epoch: u64,
}

/// An agent's part in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunState {
    pub(crate) run: RunId,
    pub(crate) plan: PlanHash,
    /// A fingerprint of the list of members.
    pub(crate) members: u64,
    /// A message like this came from the receiver.
    pub(crate) received: bool,
    /// It is not known whether the receiver has this: answer.
    pub(crate) ask: bool,
    /// Which members are lost: bits of members from `PAGE_MEMBERS · page` on, least bit first.
    pub(crate) page: u16,
    pub(crate) lost: Vec<u8>,
}

/// Changes of the sender's flows, from one of its versions to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlowTableDelta {
    pub(crate) run: RunId,
    pub(crate) prev: u64,
    pub(crate) top: u64,
    /// The entries are all flows that the receiver should hold of these versions.
    pub(crate) full: bool,
    pub(crate) entries: Vec<FlowTableEntry>,
}

/// The sender's flows that the receiver should hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowTableDigest {
    pub(crate) run: RunId,
    pub(crate) top: u64,
    pub(crate) flows: Fingerprint,
    /// A fingerprint of the members that the sender knows to be lost.
    pub(crate) lost: u64,
}

/// One of the messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MeshMessage<'a> {
    /// Membership: foca's bytes.
    Swim(&'a [u8]),
    /// Asks an address for an agent; from this agent.
    Join(Identity),
    /// This agent is here.
    Here(Identity),
    /// A later life of yours is known: this one.
    Outdated { epoch: u64 },
    /// You are suspected, in this incarnation of this life.
    Suspected { from: Identity, life: Identity, incarnation: u16 },
    /// I live.
    Alive { life: Identity, incarnation: u16 },
    /// I end.
    Leave(Identity),
    /// This life of yours is over for me: it was declared lost here, or elsewhere.
    Lost { from: Identity, life: Identity },
    /// The agents that the sender knows, in two numbers; `answer` asks for the receiver's if they
    /// differ.
    RosterSum { from: MessageSender, agents: Fingerprint, answer: bool },
    /// Which agents are there after this one?
    RosterAsk { from: MessageSender, after: Option<AgentId> },
    /// Those after the one that was named, in order; `more` if there are more.
    Roster { from: MessageSender, more: bool, agents: Vec<Identity> },
    /// Part in a run.
    Run(MessageSender, RunState),
    /// No more part in a run.
    RunLeft(MessageSender, RunId),
    /// Flows.
    Delta(MessageSender, FlowTableDelta),
    /// The flows that the receiver should hold.
    Digest(MessageSender, FlowTableDigest),
    /// A request for the changes after this version.
    Want { from: MessageSender, run: RunId, have: u64 },
    /// A request for a timestamp; it left at `sent`.
    Ping { from: MessageSender, sent: u64 },
    /// The answer: the request arrived at `came`, this left at `left`.
    /// `ahead` and `error` are what the sender knows of its wall clock, two's complement and
    /// [`NOT_KEPT`] included.
    Pong { from: MessageSender, sent: u64, came: u64, left: u64, ahead: u64, error: u64 },
    /// Does `to` live? `origin` is the agent that wants to know, if not the sender.
    Probe { from: Identity, incarnation: u16, to: AgentId, number: u32, origin: Option<AgentId> },
    /// This agent lives. `number` and `origin` are those of the probe.
    ProbeAck { from: Identity, incarnation: u16, number: u32, origin: Option<AgentId> },
    /// Ask this agent for me whether it lives.
    ProbeFor { from: MessageSender, target: AgentId, number: u32 },
    /// These have flows to this node, as you have: announce yours to them at once.
    Meet { from: MessageSender, run: RunId, node: NodeId, agents: Vec<AgentId> },
    /// It has answered.
    AckFor { from: MessageSender, target: AgentId, number: u32 },
}

impl<'a> MeshMessage<'a> {
    /// Reads a datagram.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, MeshDecodeError> {
        let mut reader = MessageDecoder::new(bytes);
        match reader.u8() {
            Some(VERSION) => {}
            Some(_) => return Err(MeshDecodeError::Version),
            None => return Err(MeshDecodeError::Malformed),
        }
        let kind = reader.u8().ok_or(MeshDecodeError::Malformed)?;
        if kind == 0 {
            return Ok(MeshMessage::Swim(reader.rest()));
        }
        let message = MeshMessage::body(kind, &mut reader).ok_or(MeshDecodeError::Malformed)?;
        if reader.is_empty() { Ok(message) } else { Err(MeshDecodeError::Malformed) }
    }

    fn body(kind: u8, r: &mut MessageDecoder<'a>) -> Option<Self> {
        Some(match kind {
            1 => MeshMessage::Join(r.identity()?),
            2 => MeshMessage::Here(r.identity()?),
            3 => MeshMessage::Outdated { epoch: r.u64()? },
            4 => MeshMessage::Suspected {
                from: r.identity()?,
                life: r.identity()?,
                incarnation: r.u16()?,
            },
            5 => MeshMessage::Alive { life: r.identity()?, incarnation: r.u16()? },
            6 => MeshMessage::Leave(r.identity()?),
            7 => {
                let (from, count, sum) = (sender(r)?, u64::from(r.u32()?), r.u64()?);
                let agents = Fingerprint { count, sum };
                MeshMessage::RosterSum { from, agents, answer: r.flag()? }
            }
            8 => {
                let from = sender(r)?;
                MeshMessage::RosterAsk { from, after: optional_agent(r)? }
            }
            9 => roster(r)?,
            10 => MeshMessage::Run(sender(r)?, run_state(r)?),
            11 => MeshMessage::RunLeft(sender(r)?, RunId(r.u64()?)),
            12 => MeshMessage::Delta(sender(r)?, delta(r)?),
            13 => MeshMessage::Digest(sender(r)?, digest(r)?),
            14 => MeshMessage::Want { from: sender(r)?, run: RunId(r.u64()?), have: r.varint()? },
            15 => MeshMessage::Ping { from: sender(r)?, sent: r.u64()? },
            16 => {
                let from = sender(r)?;
                let [sent, came, left] = [r.u64()?, r.u64()?, r.u64()?];
                MeshMessage::Pong { from, sent, came, left, ahead: r.u64()?, error: r.u64()? }
            }
            17 => MeshMessage::Lost { from: r.identity()?, life: r.identity()? },
            18 => MeshMessage::Probe {
                from: r.identity()?,
                incarnation: r.u16()?,
                to: r.agent()?,
                number: r.u32()?,
                origin: optional_agent(r)?,
            },
            19 => MeshMessage::ProbeAck {
                from: r.identity()?,
                incarnation: r.u16()?,
                number: r.u32()?,
                origin: optional_agent(r)?,
            },
            20 => MeshMessage::ProbeFor { from: sender(r)?, target: r.agent()?, number: r.u32()? },
            22 => meet(r)?,
            21 => MeshMessage::AckFor { from: sender(r)?, target: r.agent()?, number: r.u32()? },
            _ => return None,
        })
    }

    /// The datagram.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = MessageEncoder::default();
        w.u8(VERSION);
        w.u8(self.kind());
        match self {
            MeshMessage::Swim(bytes) => w.put(bytes),
            MeshMessage::Join(identity)
            | MeshMessage::Here(identity)
            | MeshMessage::Leave(identity) => {
                w.identity(identity);
            }
            MeshMessage::Outdated { epoch } => w.u64(*epoch),
            MeshMessage::Suspected { from, life, incarnation } => {
                w.identity(from);
                w.identity(life);
                w.u16(*incarnation);
            }
            MeshMessage::Lost { from, life } => {
                w.identity(from);
                w.identity(life);
            }
            MeshMessage::Alive { life, incarnation } => {
                w.identity(life);
                w.u16(*incarnation);
            }
            MeshMessage::RosterSum { .. }
            | MeshMessage::RosterAsk { .. }
            | MeshMessage::Roster { .. } => {
                self.put_roster(&mut w);
            }
            MeshMessage::Run(from, state) => {
                put_sender(&mut w, from);
                put_run_state(&mut w, state);
            }
            MeshMessage::RunLeft(from, run) => {
                put_sender(&mut w, from);
                w.u64(run.0);
            }
            MeshMessage::Delta(..)
            | MeshMessage::Digest(..)
            | MeshMessage::Want { .. }
            | MeshMessage::Meet { .. } => {
                self.put_flows(&mut w);
            }
            MeshMessage::Ping { from, sent } => {
                put_sender(&mut w, from);
                w.u64(*sent);
            }
            MeshMessage::Pong { from, sent, came, left, ahead, error } => {
                put_sender(&mut w, from);
                for number in [sent, came, left, ahead, error] {
                    w.u64(*number);
                }
            }
            MeshMessage::Probe { .. }
            | MeshMessage::ProbeAck { .. }
            | MeshMessage::ProbeFor { .. }
            | MeshMessage::AckFor { .. } => self.put_probe(&mut w),
        }
        w.into_bytes()
    }

    fn kind(&self) -> u8 {
        match self {
            MeshMessage::Swim(_) => 0,
            MeshMessage::Join(_) => 1,
            MeshMessage::Here(_) => 2,
            MeshMessage::Outdated { .. } => 3,
            MeshMessage::Suspected { .. } => 4,
            MeshMessage::Alive { .. } => 5,
            MeshMessage::Leave(_) => 6,
            MeshMessage::RosterSum { .. } => 7,
            MeshMessage::RosterAsk { .. } => 8,
            MeshMessage::Roster { .. } => 9,
            MeshMessage::Run(..) => 10,
            MeshMessage::RunLeft(..) => 11,
            MeshMessage::Delta(..) => 12,
            MeshMessage::Digest(..) => 13,
            MeshMessage::Want { .. } => 14,
            MeshMessage::Ping { .. } => 15,
            MeshMessage::Pong { .. } => 16,
            MeshMessage::Lost { .. } => 17,
            MeshMessage::Probe { .. } => 18,
            MeshMessage::ProbeAck { .. } => 19,
            MeshMessage::ProbeFor { .. } => 20,
            MeshMessage::AckFor { .. } => 21,
            MeshMessage::Meet { .. } => 22,
        }
    }
}

/// Bytes of a [`FlowTableDelta`] without entries, at the most.
pub(crate) const DELTA_HEAD_MAX: usize = 2 + 16 + 8 + 10 + 10 + 1;
/// Bytes of one entry, at the most.
#[cfg(test)]
pub(crate) const ENTRY_MAX: usize = 10 + 1 + 3 * 5 + 4 * 10;
/// Bytes of a [`MeshMessage::Roster`] without agents.
pub(crate) const ROSTER_HEAD: usize = 2 + 16 + 1;
/// Bytes of an [`Identity`], at the most.
pub(crate) const IDENTITY_MAX: usize = 8 + 8 + 5 + 19;

#[cfg(test)]
pub(crate) mod tests;
