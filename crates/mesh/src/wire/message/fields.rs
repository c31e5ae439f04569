//! Parts of messages: senders, lists of agents, states of runs, entries of flows.

use alloc::vec::Vec;

use windtunnel_model::NodeId;
use windtunnel_model::flow::FlowChange;

use super::{FlowTableDelta, FlowTableDigest, MeshMessage, MessageSender, PAGE_BYTES, RunState};
use crate::flow::{Fingerprint, FlowTableEntry};
use crate::id::{AgentId, PlanHash, RunId};
use crate::wire::{MessageDecoder, MessageEncoder};

/// Bytes that an entry takes after one of version `last`.
pub(crate) fn entry_len(entry: &FlowTableEntry, last: u64) -> usize {
    let mut w = MessageEncoder::default();
    put_entry(&mut w, entry, last);
    w.len()
}

pub(super) fn sender(r: &mut MessageDecoder<'_>) -> Option<MessageSender> {
    Some(MessageSender { agent: r.agent()?, epoch: r.u64()? })
}

pub(super) fn put_sender(w: &mut MessageEncoder, sender: &MessageSender) {
    w.agent(sender.agent);
    w.u64(sender.epoch);
}

/// Whether an agent is named, and which.
pub(super) fn optional_agent(r: &mut MessageDecoder<'_>) -> Option<Option<AgentId>> {
    Some(if r.flag()? { Some(r.agent()?) } else { None })
}

pub(super) fn put_optional_agent(w: &mut MessageEncoder, agent: Option<AgentId>) {
    w.flag(agent.is_some());
    if let Some(agent) = agent {
        w.agent(agent);
    }
}

pub(super) fn roster<'a>(r: &mut MessageDecoder<'a>) -> Option<MeshMessage<'a>> {
    let (from, more) = (sender(r)?, r.flag()?);
    let mut agents = Vec::new();
    while !r.is_empty() {
        agents.push(r.identity()?);
    }
    Some(MeshMessage::Roster { from, more, agents })
}

pub(super) fn meet<'a>(r: &mut MessageDecoder<'a>) -> Option<MeshMessage<'a>> {
    let (from, run, node) = (sender(r)?, RunId(r.u64()?), NodeId(r.varint32()?));
    let mut agents = Vec::new();
    while !r.is_empty() {
        agents.push(r.agent()?);
    }
    Some(MeshMessage::Meet { from, run, node, agents })
}

pub(super) fn run_state(r: &mut MessageDecoder<'_>) -> Option<RunState> {
    let (run, plan, members) = (RunId(r.u64()?), PlanHash(r.array()?), r.u64()?);
    let (received, ask, page) = (r.flag()?, r.flag()?, r.u16()?);
    let length = r.left();
    let lost = (length <= PAGE_BYTES).then(|| r.bytes(length))??.to_vec();
    Some(RunState { run, plan, members, received, ask, page, lost })
}

pub(super) fn put_run_state(w: &mut MessageEncoder, state: &RunState) {
    w.u64(state.run.0);
    w.put(&state.plan.0);
    w.u64(state.members);
    w.flag(state.received);
    w.flag(state.ask);
    w.u16(state.page);
    w.put(&state.lost);
}

pub(super) fn delta(r: &mut MessageDecoder<'_>) -> Option<FlowTableDelta> {
    let (run, prev) = (RunId(r.u64()?), r.varint()?);
    let top = prev.checked_add(r.varint()?)?;
    let full = r.flag()?;
    let (mut entries, mut last) = (Vec::new(), prev);
    while !r.is_empty() {
        let entry = entry(r, last)?;
        if entry.version > top {
            return None;
        }
        last = entry.version;
        entries.push(entry);
    }
    Some(FlowTableDelta { run, prev, top, full, entries })
}

/// An entry: the difference of its version to the last one's, whether it is a flow or an end, and
/// its content.
pub(super) fn entry(r: &mut MessageDecoder<'_>, last: u64) -> Option<FlowTableEntry> {
    let version = last.checked_add(r.varint()?).filter(|version| *version > last)?;
    let runs = r.flag()?;
    let key = r.flow_key()?;
    let flow = if runs { Some(r.flow()?) } else { None };
    Some(FlowTableEntry { version, change: FlowChange { key, flow } })
}

pub(super) fn put_entry(w: &mut MessageEncoder, entry: &FlowTableEntry, last: u64) {
    w.varint(entry.version - last);
    w.flag(entry.change.flow.is_some());
    w.flow_key(&entry.change.key);
    if let Some(flow) = &entry.change.flow {
        w.flow(flow);
    }
}

pub(super) fn digest(r: &mut MessageDecoder<'_>) -> Option<FlowTableDigest> {
    let (run, top) = (RunId(r.u64()?), r.varint()?);
    let flows = Fingerprint { count: r.varint()?, sum: r.u64()? };
    Some(FlowTableDigest { run, top, flows, lost: r.u64()? })
}
