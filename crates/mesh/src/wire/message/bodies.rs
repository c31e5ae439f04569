//! The bodies of messages, as bytes.

use super::MeshMessage;
use super::fields::{put_entry, put_optional_agent, put_sender};
use crate::wire::MessageEncoder;

impl MeshMessage<'_> {
    pub(super) fn put_roster(&self, w: &mut MessageEncoder) {
        match self {
            MeshMessage::RosterSum { from, agents, answer } => {
                put_sender(w, from);
                w.u32(u32::try_from(agents.count).unwrap_or(u32::MAX));
                w.u64(agents.sum);
                w.flag(*answer);
            }
            MeshMessage::RosterAsk { from, after } => {
                put_sender(w, from);
                put_optional_agent(w, *after);
            }
            MeshMessage::Roster { from, more, agents } => {
                put_sender(w, from);
                w.flag(*more);
                agents.iter().for_each(|identity| w.identity(identity));
            }
            _ => {}
        }
    }

    pub(super) fn put_probe(&self, w: &mut MessageEncoder) {
        match self {
            MeshMessage::Probe { from, incarnation, to, number, origin } => {
                w.identity(from);
                w.u16(*incarnation);
                w.agent(*to);
                w.u32(*number);
                put_optional_agent(w, *origin);
            }
            MeshMessage::ProbeAck { from, incarnation, number, origin } => {
                w.identity(from);
                w.u16(*incarnation);
                w.u32(*number);
                put_optional_agent(w, *origin);
            }
            MeshMessage::ProbeFor { from, target, number }
            | MeshMessage::AckFor { from, target, number } => {
                put_sender(w, from);
                w.agent(*target);
                w.u32(*number);
            }
            _ => {}
        }
    }

    pub(super) fn put_flows(&self, w: &mut MessageEncoder) {
        match self {
            MeshMessage::Delta(from, delta) => {
                put_sender(w, from);
                w.u64(delta.run.0);
                w.varint(delta.prev);
                w.varint(delta.top - delta.prev);
                w.flag(delta.full);
                let mut last = delta.prev;
                for entry in &delta.entries {
                    put_entry(w, entry, last);
                    last = entry.version;
                }
            }
            MeshMessage::Digest(from, digest) => {
                put_sender(w, from);
                w.u64(digest.run.0);
                w.varint(digest.top);
                w.varint(digest.flows.count);
                w.u64(digest.flows.sum);
                w.u64(digest.lost);
            }
            MeshMessage::Want { from, run, have } => {
                put_sender(w, from);
                w.u64(run.0);
                w.varint(*have);
            }
            MeshMessage::Meet { from, run, node, agents } => {
                put_sender(w, from);
                w.u64(run.0);
                w.varint(node.0.into());
                agents.iter().for_each(|agent| w.agent(*agent));
            }
            _ => {}
        }
    }
}
