//! Announcing this agent's flows.

use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::flow::{ActiveFlow, FlowChange, FlowKey};
use windtunnel_model::{NodeId, Span};

use super::context::{self, MeshContext};
use super::runs::RunParticipationTable;
use super::{FlowAudience, MeshMessage, MeshTimer, MessageSender, RunId, RunParticipation};
use crate::id::AgentId;
use crate::run::{RunCommandError, RunPeerState};
use crate::wire::message::FlowTableDigest;

/// Datagrams for one member in one go.
const BURST: usize = 8;
/// Agents named in one message.
const MEET_MAX: usize = 64;

impl RunParticipationTable {
    pub(super) fn announce(
        &mut self,
        ctx: &mut MeshContext,
        id: RunId,
        key: FlowKey,
        flow: ActiveFlow,
        audience: &FlowAudience,
    ) -> Result<(), RunCommandError> {
        self.find_mut(id)?.announce(ctx, key, flow, audience)?;
        self.flush_soon(ctx, id);
        Ok(())
    }

    pub(super) fn withdraw(
        &mut self,
        ctx: &mut MeshContext,
        id: RunId,
        key: &FlowKey,
    ) -> Result<bool, RunCommandError> {
        let ended = self.find_mut(id)?.withdraw(ctx, key);
        if ended {
            self.flush_soon(ctx, id);
        }
        Ok(ended)
    }

    /// Sends changes at once after a silence, else when the time of the batch is over.
    pub(super) fn flush_soon(&mut self, ctx: &mut MeshContext, id: RunId) {
        let Some(run) = self.runs.get(&id).filter(|run| !run.queue.is_empty()) else { return };
        match run.queue.due(ctx.config.pace.batch) {
            Some(next) if next > ctx.now => ctx.timers.set_by(MeshTimer::Flush(id), next),
            _ => self.flush(ctx, id),
        }
    }

    /// Sends changes to the members that could wait.
    pub(super) fn flush_later(&mut self, ctx: &mut MeshContext, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        for member in run.queue.end_waiting() {
            run.peer(member).delivery.give_time();
        }
        self.flush(ctx, id);
    }

    pub(super) fn flush(&mut self, ctx: &mut MeshContext, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let receivers = run.send_changes(ctx);
        receivers.into_iter().for_each(|agent| self.piggyback(ctx, agent));
    }

    /// A member asks for the changes after a version.
    pub(super) fn on_want(
        &mut self,
        ctx: &mut MeshContext,
        from: MessageSender,
        id: RunId,
        have: u64,
    ) {
        let Some((run, member)) = self.confirmed(ctx, from, id) else { return };
        if run.rewind(ctx, member, have) {
            self.flush_soon(ctx, id);
        }
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
        let Some((run, _)) = self.confirmed(ctx, from, id) else { return };
        if run.meet(node, agents) {
            self.flush_soon(ctx, id);
        }
    }
}

impl RunParticipation {
    fn announce(
        &mut self,
        ctx: &mut MeshContext,
        key: FlowKey,
        flow: ActiveFlow,
        audience: &FlowAudience,
    ) -> Result<(), RunCommandError> {
        let limit = ctx.config.limits.flows;
        if self.own.len() >= limit && self.own.get(&key).is_none() {
            return Err(RunCommandError::TooManyFlows { run: self.id, limit });
        }
        let audience = self.own.set(key, flow, audience);
        let met = self.meetings.begin_own(self.members.me, key);
        self.queue_change(ctx, &audience, &met);
        Ok(())
    }

    /// A flow of this agent has ended. Whether there was one.
    fn withdraw(&mut self, ctx: &mut MeshContext, key: &FlowKey) -> bool {
        let Some(audience) = self.own.end(key) else { return false };
        let met = self.meetings.begin_own(self.members.me, *key);
        self.meetings.end_own(self.members.me, key);
        self.queue_change(ctx, &audience, &met);
        true
    }

    /// There is a change for the members of `audience`; those that share a destination (`met`)
    /// receive it at once, too.
    fn queue_change(&mut self, ctx: &mut MeshContext, audience: &FlowAudience, met: &[u32]) {
        let peers = &self.peers;
        let confirmed = |member: &u32| peers[*member as usize].part == RunPeerState::Confirmed;
        let met = met.iter().copied().filter(|member| audience.contains(*member));
        let at_once = audience.at_once().chain(met).filter(confirmed);
        self.queue.add(at_once, audience.iter().filter(confirmed));
        if self.queue.has_later() {
            let wait = ctx.config.pace.later.max(Span::from_nanos(1));
            ctx.timers.set_by(MeshTimer::Later(self.id), ctx.now + wait);
        }
        while let Some((version, audience)) = self.own.forget_beyond(ctx.config.limits.ended) {
            for member in audience.iter() {
                self.peer(member).delivery.forget_end(version);
            }
        }
    }

    /// Sends changes to the members that are to have them now. Returns the agents that were sent
    /// something.
    fn send_changes(&mut self, ctx: &mut MeshContext) -> Vec<AgentId> {
        let mut receivers = Vec::new();
        if self.queue.is_empty() {
            return receivers;
        }
        ctx.timers.cancel(MeshTimer::Flush(self.id));
        for member in self.queue.take(ctx.now) {
            if self.send_changes_to(ctx, member) {
                receivers.push(self.members.agent(member));
            }
        }
        if !self.queue.is_empty() {
            let at = ctx.after(ctx.config.pace.batch);
            ctx.timers.set(MeshTimer::Flush(self.id), at);
        }
        receivers
    }

    /// Whether a member was sent anything.
    fn send_changes_to(&mut self, ctx: &mut MeshContext, member: u32) -> bool {
        let (id, from, mtu) = (self.id, ctx.me(), ctx.config.mtu);
        let delivery = &mut self.peers[member as usize].delivery;
        let has_time = delivery.take_time();
        let Some(life) = ctx.roster.life(self.members.agent(member)) else { return false };
        let mut sent = false;
        for _ in 0..BURST {
            let Some(delta) = delivery.next_delta(id, &self.own, member, mtu) else { break };
            ctx.out.send(life.address, &MeshMessage::Delta(from, delta));
            sent = true;
        }
        if sent {
            let wait = delivery.digest_after_changes(ctx.config.pace.digest_first, has_time);
            ctx.timers.set(MeshTimer::Digest(id, member), ctx.now + wait);
        }
        if delivery.has_more(&self.own, member) {
            self.queue.insert(member);
        }
        sent
    }

    /// A member has come into a run, or has to learn that there is nothing left to send.
    pub(super) fn begin_digests(&mut self, ctx: &mut MeshContext, member: u32) {
        let first = ctx.config.pace.digest_first;
        self.peer(member).delivery.digest_wait = first;
        let at = ctx.about_after(first);
        ctx.timers.set(MeshTimer::Digest(self.id, member), at);
    }

    /// Sends a member the digest of the flows it should hold.
    pub(super) fn digest(&mut self, ctx: &mut MeshContext, member: u32) {
        let (run, from) = (self.id, ctx.me());
        let steady = context::seldom(ctx.config.pace.digest_steady, self.members.len());
        let delivery = &mut self.peer(member).delivery;
        let (wait, top) = (delivery.digest_after_digest(steady), delivery.sent);
        let at = ctx.about_after(wait);
        ctx.timers.set(MeshTimer::Digest(run, member), at);
        // Half-way through a long list there is nothing to compare.
        if !self.queue.contains(member) {
            let (flows, lost) = (self.own.view(member), self.members.lost_sum);
            let digest = FlowTableDigest { run, top, flows, lost };
            ctx.send_to(self.members.agent(member), &MeshMessage::Digest(from, digest));
        }
    }

    /// A member asks for the changes after a version. Whether it is sent them.
    fn rewind(&mut self, ctx: &mut MeshContext, member: u32, have: u64) -> bool {
        let floor = self.own.floor();
        if !self.peer(member).delivery.rewind(ctx.now, have, floor) {
            return false;
        }
        self.queue.insert(member);
        ctx.out.counters.repairs += 1;
        // There may be nothing left to send, and the receiver has to know that too.
        self.begin_digests(ctx, member);
        true
    }

    /// A member's flow began here, or ended: members with flows that meet at a node of this agent
    /// are informed of each other.
    pub(super) fn note_arrivals(
        &mut self,
        ctx: &mut MeshContext,
        member: u32,
        changes: &[FlowChange],
    ) {
        let (from, run, agent) = (ctx.me(), self.id, self.members.agent(member));
        for FlowChange { key, flow } in changes {
            if flow.is_none() {
                self.meetings.end(member, key);
                continue;
            }
            let met = self.meetings.begin(member, *key);
            let me = self.members.me;
            if met.contains(&me) {
                self.queue.hasten(member);
            }
            let others = met.into_iter().filter(|other| *other != me);
            let others: Vec<AgentId> = others.map(|other| self.members.agent(other)).collect();
            let meet = |agents| MeshMessage::Meet { from, run, node: key.destination, agents };
            for other in &others {
                ctx.send_to(*other, &meet(vec![agent]));
            }
            for some in others.chunks(MEET_MAX) {
                ctx.send_to(agent, &meet(some.to_vec()));
            }
        }
    }

    /// Agents have flows to a node. Whether this agent has one, too.
    fn meet(&mut self, node: NodeId, agents: &[AgentId]) -> bool {
        let members = agents.iter().filter_map(|agent| self.members.position(*agent));
        let members: Vec<u32> = members.filter(|member| *member != self.members.me).collect();
        let met = self.meetings.meet(node, &members);
        if met {
            members.into_iter().for_each(|member| self.queue.hasten(member));
        }
        met
    }
}
