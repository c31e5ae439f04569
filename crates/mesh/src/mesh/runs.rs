//! Run agreement: which members take part in a run, with which plan.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use windtunnel_model::Span;

use super::context::MeshContext;
use super::probes::FailureDetector;
use super::{
    AgentId, MeshEvent, MeshMessage, MessageSender, PlanHash, RunId, RunParticipation, Wake,
};
use crate::event::{LossCause, RunViewMismatch};
use crate::run::{self, MEMBERS_MAX, RunCommandError, RunPeerState};
use crate::wire::message::RunState;

/// Until our part is sent again to a member that has not answered: doubled each time…
const STATE_WAIT: Span = Span::from_millis(50);
/// …up to this.
const STATE_WAIT_MAX: Span = Span::from_secs(1);
/// Runs that are remembered after their end.
const PAST_MAX: usize = 1024;

/// The runs that this agent has a part in.
#[derive(Debug, Default)]
pub(super) struct RunParticipationTable {
    pub(super) runs: BTreeMap<RunId, RunParticipation>,
    /// Runs that this agent had a part in.
    pub(super) past: VecDeque<RunId>,
}

impl RunParticipationTable {
    pub(super) fn begin_run(
        &mut self,
        ctx: &mut MeshContext,
        id: RunId,
        plan: PlanHash,
        members: &[AgentId],
    ) -> Result<(), RunCommandError> {
        let limit = ctx.config.limits.runs;
        let (mut sorted, agent) = (members.to_vec(), ctx.config.agent);
        sorted.sort_unstable();
        sorted.dedup();
        if self.runs.contains_key(&id) || self.past.contains(&id) {
            return Err(RunCommandError::Repeated(id));
        } else if self.runs.len() >= limit {
            return Err(RunCommandError::TooManyRuns { limit });
        } else if sorted.len() > MEMBERS_MAX {
            return Err(RunCommandError::TooManyMembers { run: id, count: sorted.len() });
        }
        let me =
            run::position(&sorted, agent).ok_or(RunCommandError::NoMember { run: id, agent })?;
        self.runs.insert(id, RunParticipation::new(plan, sorted, me));
        for member in self.runs[&id].others() {
            self.state_again(ctx, id, member);
        }
        self.check_ready(ctx, id);
        Ok(())
    }

    /// Ends our part.
    pub(super) fn end_run(&mut self, ctx: &mut MeshContext, id: RunId) {
        let Some(run) = self.runs.remove(&id) else { return };
        let from = ctx.me();
        ctx.timers.cancel(Wake::Flush(id));
        ctx.timers.cancel(Wake::Later(id));
        for member in run.others() {
            self.cancel_timers(ctx, id, member);
            let (agent, part) = (run.agent(member), run.peers[member as usize].part);
            if part == RunPeerState::Confirmed {
                ctx.roster.leave_run(agent);
            }
            if matches!(part, RunPeerState::Confirmed | RunPeerState::Waiting) {
                ctx.send_to(agent, &MeshMessage::RunLeft(from, id));
            }
        }
        self.past.push_back(id);
        if self.past.len() > PAST_MAX {
            self.past.pop_front();
        }
    }

    /// An agent is alive (again): sends it our part in each common run.
    pub(super) fn meet_in_runs(&mut self, ctx: &mut MeshContext, agent: AgentId) {
        let runs: Vec<_> = self.runs.keys().copied().collect();
        for id in runs {
            let Some(run) = self.runs.get_mut(&id) else { continue };
            let Some(member) = run.position(agent) else { continue };
            let peer = run.peer(member);
            if peer.part == RunPeerState::Refused {
                (peer.part, peer.refused) = (RunPeerState::Waiting, None);
            }
            if peer.part == RunPeerState::Waiting {
                peer.acked = false;
                peer.state_wait = Span::ZERO;
                self.state_again(ctx, id, member);
            }
        }
    }

    /// Sends a member our part, and again until it has answered.
    pub(super) fn state_again(&mut self, ctx: &mut MeshContext, id: RunId, member: u32) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let peer = run.peer(member);
        if peer.acked || matches!(peer.part, RunPeerState::Left | RunPeerState::Lost) {
            return;
        }
        let doubled = Span::from_nanos(peer.state_wait.as_nanos().saturating_mul(2));
        peer.state_wait = doubled.max(STATE_WAIT).min(STATE_WAIT_MAX);
        let wait = ctx.rng.about(peer.state_wait);
        // An agent that is not alive is sent it when it comes.
        if ctx.roster.get(run.agent(member)).is_some() {
            ctx.timers.set(Wake::State(id, member), ctx.now + wait);
            self.send_state(ctx, id, member, true);
        }
    }

    pub(super) fn send_state(&mut self, ctx: &mut MeshContext, id: RunId, member: u32, ask: bool) {
        let Some(run) = self.runs.get(&id) else { return };
        let (to, from) = (run.agent(member), ctx.me());
        for state in run.states(id, member, ask) {
            ctx.send_to(to, &MeshMessage::Run(from, state));
        }
    }

    pub(super) fn on_run_state(
        &mut self,
        ctx: &mut MeshContext,
        probes: &mut FailureDetector,
        from: MessageSender,
        state: &RunState,
    ) {
        let Some(member) = self.member(ctx, from, state.run) else { return };
        let Some(run) = self.runs.get_mut(&state.run) else { return };
        match run.peer(member).part {
            RunPeerState::Lost | RunPeerState::Left if state.ask => {
                return self.answer_outsider(ctx, state.run, member);
            }
            RunPeerState::Lost | RunPeerState::Left => return,
            RunPeerState::Waiting | RunPeerState::Confirmed | RunPeerState::Refused => {}
        }
        let why = if state.plan != run.plan {
            Some(RunViewMismatch::Plan)
        } else if state.members != run.members_sum {
            Some(RunViewMismatch::Members)
        } else {
            None
        };
        if let Some(why) = why {
            return self.refuse(ctx, from.agent, state, member, why);
        }
        if state.received && !run.peer(member).acked {
            run.peer(member).acked = true;
            ctx.timers.cancel(Wake::State(state.run, member));
        }
        if !self.note_losses(ctx, state, member) {
            return;
        }
        self.confirm(ctx, probes, state.run, member);
        if state.ask {
            let ask =
                self.runs.get(&state.run).is_some_and(|run| !run.peers[member as usize].acked);
            self.send_state(ctx, state.run, member, ask);
        }
    }

    fn refuse(
        &mut self,
        ctx: &mut MeshContext,
        agent: AgentId,
        state: &RunState,
        member: u32,
        why: RunViewMismatch,
    ) {
        let Some(run) = self.runs.get_mut(&state.run) else { return };
        let (id, ours, theirs) = (state.run, run.plan, state.plan);
        let peer = run.peer(member);
        let reported = peer.refused == Some(theirs);
        peer.refused = Some(theirs);
        if peer.part == RunPeerState::Waiting {
            peer.part = RunPeerState::Refused;
        }
        if !reported {
            ctx.out.events.push_back(MeshEvent::RunRefused { run: id, agent, ours, theirs, why });
        }
        if state.ask {
            self.answer_outsider(ctx, id, member);
        }
    }

    /// A member reports lost members. False if we are one of them.
    fn note_losses(&mut self, ctx: &mut MeshContext, state: &RunState, reporter: u32) -> bool {
        let id = state.run;
        let Some(run) = self.runs.get(&id) else { return false };
        let (me, count) = (run.me, run.peers.len());
        let by = run.agent(reporter);
        let lost: Vec<u32> = run::named(state.page, &state.lost).collect();
        if lost.contains(&me) {
            self.lose(ctx, id, reporter, LossCause::CutUsOff);
            return false;
        }
        for member in lost.into_iter().filter(|member| (*member as usize) < count) {
            self.lose(ctx, id, member, LossCause::ReportedBy(by));
        }
        true
    }

    fn confirm(
        &mut self,
        ctx: &mut MeshContext,
        probes: &mut FailureDetector,
        id: RunId,
        member: u32,
    ) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let agent = run.agent(member);
        let peer = run.peer(member);
        if peer.part == RunPeerState::Confirmed {
            return;
        }
        peer.part = RunPeerState::Confirmed;
        let early = core::mem::take(&mut peer.early);
        run.dirty.insert(member);
        ctx.out.events.push_back(MeshEvent::RunConfirmed { run: id, agent });
        ctx.clock_matters(agent);
        probes.probe_member(ctx, agent);
        self.begin_digests(ctx, id, member);
        self.flush_soon(ctx, id);
        if early {
            self.want(ctx, id, member);
        }
        self.check_ready(ctx, id);
    }

    fn check_ready(&mut self, ctx: &mut MeshContext, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        if !run.ready && run.all_confirmed() {
            run.ready = true;
            ctx.out.events.push_back(MeshEvent::RunReady { run: id });
        }
    }

    pub(super) fn on_run_left(&mut self, ctx: &mut MeshContext, from: MessageSender, id: RunId) {
        if !ctx.knows(from) {
            return;
        }
        let member = self.runs.get(&id).and_then(|run| run.position(from.agent));
        let Some((run, member)) = self.runs.get_mut(&id).zip(member) else { return };
        if matches!(
            run.peer(member).part,
            RunPeerState::Waiting | RunPeerState::Confirmed | RunPeerState::Refused
        ) {
            self.part_over(ctx, id, member, RunPeerState::Left);
            ctx.out.events.push_back(MeshEvent::RunLeft { run: id, agent: from.agent });
        }
    }

    /// An agent's life is over: it is lost to the runs in which it had confirmed.
    pub(super) fn lose_agent(&mut self, ctx: &mut MeshContext, agent: AgentId) {
        let runs: Vec<_> = self.runs.keys().copied().collect();
        for id in runs {
            let Some(run) = self.runs.get_mut(&id) else { continue };
            let Some(member) = run.position(agent) else { continue };
            match run.peer(member).part {
                RunPeerState::Confirmed | RunPeerState::Lost => {
                    self.lose(ctx, id, member, LossCause::AgentDown);
                }
                RunPeerState::Waiting | RunPeerState::Refused | RunPeerState::Left => {
                    self.cancel_timers(ctx, id, member);
                }
            }
        }
    }

    /// A member has been silent for longer than a run bears.
    pub(super) fn lose_silent(&mut self, ctx: &mut MeshContext, id: RunId, agent: AgentId) {
        if let Some(member) = self.runs.get(&id).and_then(|run| run.position(agent)) {
            self.lose(ctx, id, member, LossCause::AgentDown);
        }
    }

    /// A member is lost to a run: to all, unless it has cut us off.
    fn lose(&mut self, ctx: &mut MeshContext, id: RunId, member: u32, cause: LossCause) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let (agent, part) = (run.agent(member), run.peer(member).part);
        if cause != LossCause::CutUsOff {
            run.lose_to_all(member);
        }
        if !matches!(part, RunPeerState::Lost | RunPeerState::Left) {
            self.part_over(ctx, id, member, RunPeerState::Lost);
            ctx.out.events.push_back(MeshEvent::RunLost { run: id, agent, cause });
        }
    }

    /// A member's part is over: so are its flows.
    fn part_over(&mut self, ctx: &mut MeshContext, id: RunId, member: u32, part: RunPeerState) {
        self.cancel_timers(ctx, id, member);
        let Some(run) = self.runs.get_mut(&id) else { return };
        let agent = run.agent(member);
        run.dirty.remove(&member);
        run.later.remove(&member);
        let peer = run.peer(member);
        let was = core::mem::replace(&mut peer.part, part);
        let changes = peer.flows.clear();
        if !changes.is_empty() {
            self.note_arrivals(ctx, id, member, &changes);
            ctx.out.events.push_back(MeshEvent::Flows { run: id, agent, changes });
        }
        if was == RunPeerState::Confirmed {
            ctx.roster.leave_run(agent);
        }
    }

    fn cancel_timers(&mut self, ctx: &mut MeshContext, id: RunId, member: u32) {
        for wake in [Wake::State(id, member), Wake::Digest(id, member), Wake::Want(id, member)] {
            ctx.timers.cancel(wake);
        }
    }
}
