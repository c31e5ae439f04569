//! Agents that do not answer: suspected, silent, lost.
//!
//! An agent that a probe did not reach is *suspected*, and is sent that until it objects. One that
//! has not objected for [`SwimParameters::suspicion`](crate::config::SwimParameters::suspicion) is *silent*,
//! which is reported to the runs that have more patience with it. It is *lost* to a run when it has
//! been silent for that run's patience, and to the cluster when no run has any left.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use foca::State;
use windtunnel_model::{Span, Time};

use super::context::MeshContext;
use super::runs::RunParticipationTable;
use super::{AgentId, MeshEvent, MeshMessage, MeshTimer, RunId};
use crate::id::Identity;
use crate::swim::{FailureDetectionScope, FailureDetectionTimer};

/// A suspicion that is not decided yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Suspicion {
    life: Identity,
    incarnation: u16,
    since: Time,
    /// Where no run has a say.
    patience: Span,
    /// Whether runs have received that it is silent.
    reported: bool,
}

/// Agents that are suspected here, until it is decided.
#[derive(Debug, Default)]
pub(super) struct SuspicionTable {
    suspicions: BTreeMap<AgentId, Suspicion>,
}

impl SuspicionTable {
    /// An agent does not answer: it is suspected, all are sent that, and it has time to refute it.
    pub(super) fn suspect(
        &mut self,
        ctx: &mut MeshContext,
        runs: &RunParticipationTable,
        scope: FailureDetectionScope,
        life: Identity,
        incarnation: u16,
    ) {
        ctx.swim.learn(ctx.now, life, incarnation, State::Suspect);
        let known = self.suspicions.get(&life.agent).copied();
        let is_known = known.is_some_and(|it| it.life == life && it.incarnation == incarnation);
        if is_known || !ctx.swim.suspects(&life, incarnation) {
            return;
        }
        // It has objected to the one before.
        known.into_iter().for_each(|known| report_answer(ctx, runs, known));
        let (near, patience) = (
            ctx.detection_of(FailureDetectionScope::Run, life.agent).suspicion,
            ctx.detection_of(scope, life.agent).suspicion,
        );
        let suspicion = Suspicion { life, incarnation, since: ctx.now, patience, reported: false };
        self.suspicions.insert(life.agent, suspicion);
        ctx.swim.check_after(
            ctx.now,
            FailureDetectionTimer::Silent(life, incarnation),
            near.min(patience),
        );
        self.notice(ctx, runs, life, incarnation);
    }

    fn notice(
        &mut self,
        ctx: &mut MeshContext,
        runs: &RunParticipationTable,
        life: Identity,
        incarnation: u16,
    ) {
        let from = ctx.identity();
        ctx.send(life.address, &MeshMessage::Suspected { from, life, incarnation });
        let scope = if runs.shares(life.agent) {
            FailureDetectionScope::Run
        } else {
            FailureDetectionScope::Cluster
        };
        let wait = ctx.detection_of(scope, life.agent).notice_period;
        ctx.timers.set(MeshTimer::Notice(life.agent), ctx.after(wait));
    }

    /// A suspected agent may not have received that it is.
    pub(super) fn notice_again(
        &mut self,
        ctx: &mut MeshContext,
        runs: &RunParticipationTable,
        agent: AgentId,
    ) {
        let Some(known) = self.suspicions.get(&agent).copied() else { return };
        if ctx.swim.suspects(&known.life, known.incarnation) {
            self.notice(ctx, runs, known.life, known.incarnation);
        } else {
            self.suspicions.remove(&agent);
            report_answer(ctx, runs, known);
        }
    }

    /// This agent did not run for so long, which is no silence of another.
    pub(super) fn make_up_for(&mut self, late: Span, now: Time) {
        for suspicion in self.suspicions.values_mut() {
            suspicion.since = (suspicion.since + late).min(now);
        }
    }

    /// An agent is not there any more.
    pub(super) fn forget(&mut self, agent: AgentId) {
        self.suspicions.remove(&agent);
    }

    /// An agent has been suspected for some time: it is silent, or lost to runs, or to all; what is
    /// not decided yet is looked at again.
    pub(super) fn judge(
        &mut self,
        ctx: &mut MeshContext,
        runs: &mut RunParticipationTable,
        life: Identity,
        incarnation: u16,
    ) {
        let Some(known) = self.suspicions.get(&life.agent).copied() else { return };
        let is_it = known.life == life && known.incarnation == incarnation;
        if !is_it || !ctx.swim.suspects(&life, incarnation) {
            return;
        }
        let least = ctx.detection_of(FailureDetectionScope::Run, life.agent).suspicion;
        let patience: Vec<(RunId, Span)> = runs.patience_with(life.agent).collect();
        let patience = patience.into_iter().map(|(run, wait)| (run, wait.max(least)));
        let waited = ctx.now.since(known.since);
        let (over, left): (Vec<_>, Vec<_>) = patience.partition(|(_, wait)| *wait <= waited);
        let longest = left.iter().map(|(_, wait)| *wait).max();
        // A run's patience counts: the cluster has none of its own with a member.
        let is_lost = longest.is_none() && (!over.is_empty() || known.patience <= waited);
        if is_lost {
            ctx.swim.learn(ctx.now, life, incarnation, State::Down);
            return;
        }
        over.into_iter().for_each(|(run, _)| runs.lose_silent(ctx, run, life.agent));
        self.report_silence(ctx, runs, known, waited, least);
        let next = left.into_iter().map(|(_, wait)| wait).min().unwrap_or(known.patience);
        let next = if waited < least { next.min(least) } else { next };
        let wait = next.saturating_sub(waited);
        ctx.swim.check_after(ctx.now, FailureDetectionTimer::Silent(life, incarnation), wait);
    }

    fn report_silence(
        &mut self,
        ctx: &mut MeshContext,
        runs: &RunParticipationTable,
        known: Suspicion,
        waited: Span,
        least: Span,
    ) {
        if known.reported || waited < least {
            return;
        }
        let agent = known.life.agent;
        let runs: Vec<RunId> = runs.patience_with(agent).map(|(run, _)| run).collect();
        if let Some(suspicion) = self.suspicions.get_mut(&agent).filter(|_| !runs.is_empty()) {
            suspicion.reported = true;
        }
        let since = ctx.roster.get(agent).map_or(known.since, |it| it.last_received);
        for run in runs {
            ctx.out.events.push_back(MeshEvent::RunSilent { run, agent, since });
        }
    }

    /// A run's patience has changed: what is suspected now is judged by it.
    pub(super) fn judge_again(&mut self, ctx: &mut MeshContext, runs: &mut RunParticipationTable) {
        let all: Vec<Suspicion> = self.suspicions.values().copied().collect();
        all.into_iter().for_each(|it| self.judge(ctx, runs, it.life, it.incarnation));
    }
}

fn report_answer(ctx: &mut MeshContext, runs: &RunParticipationTable, known: Suspicion) {
    let agent = known.life.agent;
    for (run, _) in runs.patience_with(agent).filter(|_| known.reported) {
        ctx.out.events.push_back(MeshEvent::RunAnswers { run, agent });
    }
}
