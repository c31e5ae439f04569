//! Announcing this agent's flows.

use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::flow::{ActiveFlow, FlowChange, FlowKey};
use windtunnel_model::{NodeId, Span};

use super::context::{self, MeshContext};
use super::runs::RunParticipationTable;
use super::{FlowAudience, MeshEvent, MeshMessage, MessageSender, RunId, Wake};
use crate::flow::own::OwnFlows;
use crate::id::AgentId;
use crate::run::{RunCommandError, RunPeer, RunPeerState};
use crate::wire::message::{DELTA_HEAD_MAX, Delta, FlowTableDigest, entry_len};

/// Datagrams for one member in one go.
const BURST: usize = 8;
/// Agents named in one message.
const MEET_MAX: usize = 64;
/// A request for the same is answered again after this time only.
const REPAIR_WAIT: Span = Span::from_millis(5);

impl RunParticipationTable {
    pub(super) fn announce(
        &mut self,
        ctx: &mut MeshContext,
        id: RunId,
        key: FlowKey,
        flow: ActiveFlow,
        audience: &FlowAudience,
    ) -> Result<(), RunCommandError> {
        let run = self.runs.get_mut(&id).ok_or(RunCommandError::Unknown(id))?;
        let limit = ctx.config.limits.flows;
        if run.own.len() >= limit && run.own.get(&key).is_none() {
            return Err(RunCommandError::TooManyFlows { run: id, limit });
        }
        let audience = run.own.set(key, flow, audience);
        let met = run.meetings.begin_own(run.me, key);
        self.notify(ctx, id, &audience, &met);
        Ok(())
    }

    pub(super) fn withdraw(
        &mut self,
        ctx: &mut MeshContext,
        id: RunId,
        key: &FlowKey,
    ) -> Result<bool, RunCommandError> {
        let run = self.runs.get_mut(&id).ok_or(RunCommandError::Unknown(id))?;
        let Some(audience) = run.own.end(key) else { return Ok(false) };
        let met = run.meetings.begin_own(run.me, *key);
        run.meetings.end_own(run.me, key);
        self.notify(ctx, id, &audience, &met);
        Ok(true)
    }

    /// There is a change for the members of `audience`; those that share a destination (`met`)
    /// receive it at once, too.
    fn notify(&mut self, ctx: &mut MeshContext, id: RunId, audience: &FlowAudience, met: &[u32]) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let confirmed = |member: &u32| run.peers[*member as usize].part == RunPeerState::Confirmed;
        let met = met.iter().copied().filter(|member| audience.contains(*member));
        let at_once: Vec<u32> = audience.at_once().chain(met).filter(confirmed).collect();
        let later: Vec<u32> = audience.iter().filter(confirmed).collect();
        run.dirty.extend(at_once);
        let later = later.into_iter().filter(|member| !run.dirty.contains(member));
        run.later.extend(later);
        if !run.later.is_empty() {
            let wait = ctx.config.pace.later.max(Span::from_nanos(1));
            ctx.timers.set_by(Wake::Later(id), ctx.now + wait);
        }
        while let Some((version, audience)) = run.own.forget_beyond(ctx.config.limits.ended) {
            // A member that has not received an end that is now forgotten is sent everything.
            for member in audience.iter() {
                let peer = run.peer(member);
                if peer.sent < version {
                    (peer.sent, peer.full_until) = (0, 0);
                }
            }
        }
        self.flush_soon(ctx, id);
    }

    /// Sends changes at once after a silence, else when the time of the batch is over.
    pub(super) fn flush_soon(&mut self, ctx: &mut MeshContext, id: RunId) {
        let Some(run) = self.runs.get(&id) else { return };
        if run.dirty.is_empty() {
            return;
        }
        match run.flushed.map(|at| at + ctx.config.pace.batch) {
            Some(next) if next > ctx.now => ctx.timers.set_by(Wake::Flush(id), next),
            _ => self.flush(ctx, id),
        }
    }

    /// Sends changes to the members that could wait.
    pub(super) fn flush_later(&mut self, ctx: &mut MeshContext, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let later = core::mem::take(&mut run.later);
        // Their digests are sent along with the next changes.
        for member in &later {
            run.peer(*member).has_time = true;
        }
        run.dirty.extend(later);
        self.flush(ctx, id);
    }

    pub(super) fn flush(&mut self, ctx: &mut MeshContext, id: RunId) {
        let (now, from, mtu) = (ctx.now, ctx.me(), ctx.config.mtu);
        let Some(run) = self.runs.get_mut(&id) else { return };
        if run.dirty.is_empty() {
            return;
        }
        run.flushed = Some(now);
        ctx.timers.cancel(Wake::Flush(id));
        let mut receivers = Vec::new();
        for member in core::mem::take(&mut run.dirty) {
            run.later.remove(&member);
            let agent = run.agent(member);
            let peer = &mut run.peers[member as usize];
            let has_time = core::mem::take(&mut peer.has_time);
            let Some(life) = ctx.roster.life(agent) else { continue };
            let mut sent = false;
            for _ in 0..BURST {
                let Some(delta) = next_delta(id, &run.own, peer, member, mtu) else { break };
                ctx.out.send(life.address, &MeshMessage::Delta(from, delta));
                sent = true;
            }
            if sent {
                receivers.push(agent);
                let first = ctx.config.pace.digest_first.max(Span::from_nanos(1));
                peer.digest_wait =
                    if has_time { Span::from_nanos(first.as_nanos() * 8) } else { first };
                let wait = peer.digest_wait;
                ctx.timers.set(Wake::Digest(id, member), now + wait);
            }
            if has_more(&run.own, peer, member) {
                run.dirty.insert(member);
            }
        }
        if !run.dirty.is_empty() {
            let at = ctx.after(ctx.config.pace.batch);
            ctx.timers.set(Wake::Flush(id), at);
        }
        receivers.into_iter().for_each(|agent| self.piggyback(ctx, agent));
    }

    /// A member has come into a run.
    pub(super) fn begin_digests(&mut self, ctx: &mut MeshContext, id: RunId, member: u32) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        run.peer(member).digest_wait = ctx.config.pace.digest_first;
        let at = ctx.about_after(ctx.config.pace.digest_first);
        ctx.timers.set(Wake::Digest(id, member), at);
    }

    /// Sends a member the digest of the flows it should hold.
    pub(super) fn digest(&mut self, ctx: &mut MeshContext, id: RunId, member: u32) {
        let from = ctx.me();
        let Some(run) = self.runs.get_mut(&id) else { return };
        let steady = context::seldom(ctx.config.pace.digest_steady, run.members.len());
        let (agent, flows, lost) = (run.agent(member), run.own.view(member), run.lost_sum);
        let peer = run.peer(member);
        let wait = Span::from_nanos(peer.digest_wait.as_nanos().saturating_mul(8)).min(steady);
        peer.digest_wait = wait;
        // Half-way through a long list there is nothing to compare.
        let top = peer.sent;
        let whole = !run.dirty.contains(&member) && !run.later.contains(&member);
        let at = ctx.about_after(wait);
        ctx.timers.set(Wake::Digest(id, member), at);
        if whole {
            ctx.send_to(
                agent,
                &MeshMessage::Digest(from, FlowTableDigest { run: id, top, flows, lost }),
            );
        }
    }

    /// A member asks for the changes after a version.
    pub(super) fn on_want(
        &mut self,
        ctx: &mut MeshContext,
        from: MessageSender,
        id: RunId,
        have: u64,
    ) {
        let Some(member) = self.confirmed(ctx, from, id) else { return };
        let now = ctx.now;
        let Some(run) = self.runs.get_mut(&id) else { return };
        let forgotten = have < run.own.floor();
        let peer = run.peer(member);
        let again = |(at, version): (_, u64)| version == have && now.since(at) < REPAIR_WAIT;
        if peer.rewound.is_some_and(again) || have > peer.sent {
            return;
        }
        peer.rewound = Some((now, have));
        peer.sent = if forgotten { 0 } else { have };
        peer.full_until = 0;
        run.dirty.insert(member);
        ctx.out.counters.repairs += 1;
        // There may be nothing left to send, and the receiver has to know that too.
        self.begin_digests(ctx, id, member);
        self.flush_soon(ctx, id);
    }

    /// A member's flow began here, or ended: members with flows that meet at a node of this agent
    /// are informed of each other.
    pub(super) fn note_arrivals(
        &mut self,
        ctx: &mut MeshContext,
        id: RunId,
        member: u32,
        changes: &[FlowChange],
    ) {
        let from = ctx.me();
        for FlowChange { key, flow } in changes {
            let Some(run) = self.runs.get_mut(&id) else { return };
            if flow.is_none() {
                run.meetings.end(member, key);
                continue;
            }
            let (me, agent) = (run.me, run.agent(member));
            let met = run.meetings.begin(member, *key);
            if met.contains(&me) && run.later.contains(&member) {
                run.dirty.insert(member);
            }
            let others: Vec<AgentId> =
                met.into_iter().filter(|other| *other != me).map(|at| run.agent(at)).collect();
            let meet = |agents| MeshMessage::Meet { from, run: id, node: key.destination, agents };
            for other in &others {
                ctx.send_to(*other, &meet(vec![agent]));
            }
            for some in others.chunks(MEET_MAX) {
                ctx.send_to(agent, &meet(some.to_vec()));
            }
        }
        self.flush_soon(ctx, id);
    }

    /// Others have flows to a node to which this agent has one, too.
    pub(super) fn on_meet(
        &mut self,
        ctx: &mut MeshContext,
        from: MessageSender,
        id: RunId,
        node: NodeId,
        agents: &[AgentId],
    ) {
        if self.confirmed(ctx, from, id).is_none() {
            return;
        }
        let Some(run) = self.runs.get_mut(&id) else { return };
        let members = agents.iter().filter_map(|agent| run.position(*agent));
        let members: Vec<u32> = members.filter(|member| *member != run.me).collect();
        if run.meetings.meet(node, &members) {
            run.dirty.extend(members.into_iter().filter(|member| run.later.contains(member)));
            self.flush_soon(ctx, id);
        }
    }

    /// A member has announced more than is kept.
    pub(super) fn refuse_flows(&mut self, ctx: &mut MeshContext, id: RunId, agent: AgentId) {
        ctx.out.events.push_back(MeshEvent::FlowsRefused { run: id, agent });
    }
}

/// Whether there is something that a member has not been sent.
fn has_more(own: &OwnFlows, peer: &RunPeer, member: u32) -> bool {
    let full = peer.sent < peer.full_until;
    full || own.after(peer.sent, member, peer.sent_max).next().is_some()
}

/// The next message for a member, which then counts as sent.
fn next_delta(
    id: RunId,
    own: &OwnFlows,
    peer: &mut RunPeer,
    member: u32,
    mtu: usize,
) -> Option<Delta> {
    if peer.sent_max == 0 && own.after(0, member, 0).next().is_none() {
        return None;
    }
    if peer.sent == 0 && peer.full_until == 0 {
        // A member that has received nothing needs no ends.
        peer.full_until = own.version();
    }
    let (prev, full) = (peer.sent, peer.sent < peer.full_until);
    let last = if full { peer.full_until } else { own.version() };
    let (mut room, mut top, mut entries) = (mtu - DELTA_HEAD_MAX, prev, Vec::new());
    let mut all = true;
    let ends = if full { 0 } else { peer.sent_max };
    for entry in own.after(prev, member, ends).take_while(|entry| entry.version <= last) {
        let length = entry_len(&entry, top);
        if length > room {
            all = false;
            break;
        }
        room -= length;
        top = entry.version;
        entries.push(entry);
    }
    if all {
        top = last;
    }
    if top == prev || (entries.is_empty() && !full) {
        return None;
    }
    peer.sent = top;
    peer.sent_max = peer.sent_max.max(top);
    Some(Delta { run: id, prev, top, full, entries })
}
