//! The runs of this agent: begun, agreed on with the others, and ended.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::context::MeshContext;
use super::probes::FailureDetector;
use super::{
    AgentId, MeshEvent, MeshMessage, MeshTimer, MessageSender, PlanHash, RunId, RunParticipation,
};
use crate::event::LossCause;
use crate::run::members::{self, RunMemberList};
use crate::run::{RunCommandError, RunPeerState};
use crate::wire::message::RunState;

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
    pub(super) fn find(&self, id: RunId) -> Result<&RunParticipation, RunCommandError> {
        self.runs.get(&id).ok_or(RunCommandError::Unknown(id))
    }

    pub(super) fn find_mut(&mut self, id: RunId) -> Result<&mut RunParticipation, RunCommandError> {
        self.runs.get_mut(&id).ok_or(RunCommandError::Unknown(id))
    }

    pub(super) fn begin_run(
        &mut self,
        ctx: &mut MeshContext,
        id: RunId,
        plan: PlanHash,
        members: &[AgentId],
    ) -> Result<(), RunCommandError> {
        let limit = ctx.config.limits.runs;
        if self.runs.contains_key(&id) || self.past.contains(&id) {
            return Err(RunCommandError::Repeated(id));
        } else if self.runs.len() >= limit {
            return Err(RunCommandError::TooManyRuns { limit });
        }
        let members = RunMemberList::new(id, members, ctx.config.agent)?;
        let run = self.runs.entry(id).or_insert(RunParticipation::new(id, plan, members));
        for member in run.members.others() {
            run.state_again(ctx, member);
        }
        run.check_ready(ctx);
        Ok(())
    }

    /// Ends our part.
    pub(super) fn end_run(&mut self, ctx: &mut MeshContext, id: RunId) {
        let Some(run) = self.runs.remove(&id) else { return };
        let from = ctx.me();
        ctx.timers.cancel(MeshTimer::Flush(id));
        ctx.timers.cancel(MeshTimer::Later(id));
        for member in run.members.others() {
            run.cancel_timers(ctx, member);
            let (agent, part) = (run.members.agent(member), run.peers[member as usize].part);
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
        for run in self.runs.values_mut() {
            if let Some(member) = run.members.position(agent) {
                run.greet(ctx, member);
            }
        }
    }

    pub(super) fn on_run_state(
        &mut self,
        ctx: &mut MeshContext,
        probes: &mut FailureDetector,
        from: MessageSender,
        state: &RunState,
    ) {
        let Some((run, member)) = self.member(ctx, from, state.run) else { return };
        match run.peer(member).part {
            RunPeerState::Lost | RunPeerState::Left if state.ask => {
                return run.answer_outsider(ctx, member);
            }
            RunPeerState::Lost | RunPeerState::Left => return,
            RunPeerState::Waiting | RunPeerState::Confirmed | RunPeerState::Refused => {}
        }
        if let Some(why) = run.mismatch(state) {
            return run.refuse(ctx, member, state, why);
        }
        if state.received {
            run.acknowledge(ctx, member);
        }
        if !self.note_losses(ctx, state, member) {
            return;
        }
        self.confirm(ctx, probes, state.run, member);
        if let Some(run) = self.runs.get_mut(&state.run).filter(|_| state.ask) {
            let ask = !run.peer(member).acked;
            run.send_state(ctx, member, ask);
        }
    }

    /// A member reports lost members. False if we are one of them.
    fn note_losses(&mut self, ctx: &mut MeshContext, state: &RunState, reporter: u32) -> bool {
        let id = state.run;
        let Some(run) = self.runs.get(&id) else { return false };
        let (me, count) = (run.members.me, run.members.len());
        let by = run.members.agent(reporter);
        let lost: Vec<u32> = members::named(state.page, &state.lost).collect();
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
        let agent = run.members.agent(member);
        let peer = run.peer(member);
        if peer.part == RunPeerState::Confirmed {
            return;
        }
        peer.part = RunPeerState::Confirmed;
        let early = core::mem::take(&mut peer.early);
        run.queue.insert(member);
        ctx.out.events.push_back(MeshEvent::RunConfirmed { run: id, agent });
        ctx.clock_matters(agent);
        probes.probe_member(ctx, agent);
        run.begin_digests(ctx, member);
        self.flush_soon(ctx, id);
        let Some(run) = self.runs.get_mut(&id) else { return };
        if early {
            run.want(ctx, member);
        }
        run.check_ready(ctx);
    }

    pub(super) fn on_run_left(&mut self, ctx: &mut MeshContext, from: MessageSender, id: RunId) {
        if !ctx.knows(from) {
            return;
        }
        let Some(run) = self.runs.get_mut(&id) else { return };
        let Some(member) = run.members.position(from.agent) else { return };
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
            let Some(member) = run.members.position(agent) else { continue };
            match run.peer(member).part {
                RunPeerState::Confirmed | RunPeerState::Lost => {
                    self.lose(ctx, id, member, LossCause::AgentDown);
                }
                RunPeerState::Waiting | RunPeerState::Refused | RunPeerState::Left => {
                    run.cancel_timers(ctx, member);
                }
            }
        }
    }

    /// A member has been silent for longer than a run bears.
    pub(super) fn lose_silent(&mut self, ctx: &mut MeshContext, id: RunId, agent: AgentId) {
        if let Some(member) = self.runs.get(&id).and_then(|run| run.members.position(agent)) {
            self.lose(ctx, id, member, LossCause::AgentDown);
        }
    }

    /// A member is lost to a run: to all, unless it has cut us off.
    fn lose(&mut self, ctx: &mut MeshContext, id: RunId, member: u32, cause: LossCause) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let (agent, part) = (run.members.agent(member), run.peer(member).part);
        if cause != LossCause::CutUsOff {
            run.members.lose_to_all(member);
        }
        if !matches!(part, RunPeerState::Lost | RunPeerState::Left) {
            self.part_over(ctx, id, member, RunPeerState::Lost);
            ctx.out.events.push_back(MeshEvent::RunLost { run: id, agent, cause });
        }
    }

    fn part_over(&mut self, ctx: &mut MeshContext, id: RunId, member: u32, part: RunPeerState) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let (agent, had_confirmed) = (run.members.agent(member), run.has_confirmed(member));
        if run.end_part(ctx, member, part) {
            self.flush_soon(ctx, id);
        }
        if had_confirmed {
            ctx.roster.leave_run(agent);
        }
    }
}
