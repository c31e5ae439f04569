//! A run from the moment in which its packets move to the moment in which it is over.

use std::num::NonZeroU64;
use std::time::{SystemTime, UNIX_EPOCH};

use windtunnel_gateway::{Gateway, GatewayReport};
use windtunnel_model::{Plan, Span, Time};
use windtunnel_sys::clock;
use windtunnel_sys::limits::{self, CpuTickCounters};
use windtunnel_sys::schedule::{self, SchedulingPolicy};
use windtunnel_sys::signal::SignalReader;
use windtunnel_verdict::PartResults;
use windtunnel_verdict::evidence::{DeviceDrops, RunEndReason, RunEvidence};

use super::gateway;
use crate::error::RunError;
use crate::live::{AgentMembership, ControlConnectionTable, RunLoop, RunMemberTable};
use crate::options::{Foreground, RunOptions};
use crate::recorder::RunRecorderThread;
use windtunnel_dataplane::promotion::RealTimePromoter;

/// A run whose packets move, and whose clock has not started.
pub(crate) struct StartedRun {
    pub(super) live: RunLoop,
    pub(super) recording: RunRecorderThread,
    pub(super) notes: Vec<String>,
    pub(super) setup: Span,
    pub(super) gateway: Option<Gateway>,
    pub(super) promotion: Option<RealTimePromoter>,
}

impl StartedRun {
    /// See [`RunLoop::put_in_foreground`].
    pub(super) fn put_in_foreground(&mut self, foreground: Foreground) {
        self.live.put_in_foreground(foreground);
    }

    /// See [`RunLoop::measure_paths`].
    pub(crate) fn measure_paths(&mut self) {
        self.live.measure_paths();
    }

    /// See [`RunLoop::until_measure`].
    pub(crate) fn until_measure(&mut self) -> bool {
        self.live.until_measure()
    }

    /// See [`RunLoop::until_begin`].
    pub(crate) fn until_begin(&mut self) -> Option<Time> {
        self.live.until_begin()
    }

    /// Why the run does not begin.
    pub(crate) fn not_begun(&self) -> RunError {
        match self.live.ending() {
            Some(RunEndReason::Interrupted(signal)) => RunError::Interrupted(*signal),
            Some(ending) => RunError::Stopped(ending.reason()),
            None => RunError::Stopped("for an unknown reason".to_owned()),
        }
    }

    /// Runs from the beginning to the end.
    pub(crate) fn through(self, origin: Time, captures: &[String]) -> FinishedRun {
        let StartedRun { mut live, recording, mut notes, setup, gateway, promotion } = self;
        be_punctual(promotion);
        let drops_before = DeviceDrops::until_now(&live.init_pids());
        let processors_before = limits::processors().unwrap_or_default();
        let began_unix_s = unix_seconds();
        gateway::begin(gateway.as_ref(), origin);
        live.begin(origin);
        live.capture_to_files(captures);
        let ending = live.until_end();
        let elapsed = live.elapsed();
        live.count_no_more();
        gateway::count_no_more(gateway.as_ref());
        live.announce_end(&ending);
        let device_drops = DeviceDrops::until_now(&live.init_pids()).since(drops_before);
        let processors = spent_since(processors_before);
        live.end_programs(&ending);
        // What is left to do has time. That it stays as it is harms nothing.
        let _ = schedule::set_policy(None, SchedulingPolicy::Normal);
        let internet = gateway::end(gateway);
        let ended = live.close();
        notes.extend_from_slice(&ended.captures.others);
        notes.extend_from_slice(&ended.interference);
        notes.extend_from_slice(&ended.lapses);
        let membership = ended.membership.as_ref();
        let members = membership.map(|membership| &membership.members);
        let results = PartResults {
            began_unix_s,
            setup,
            elapsed,
            ending,
            programs: ended.supervisor.into_own(),
            clocks: membership.map(|it| it.clocks.clone()).unwrap_or_default(),
            lost: members.map(RunMemberTable::lost).cloned().unwrap_or_default(),
            apart: members.is_some_and(RunMemberTable::is_cut_off),
            began_late: ended.began_late,
            tally: ended.tally,
            recorded: recording.finish(),
            records: ended.records,
            carried: ended.carried,
            echoes: ended.echoes,
            origin: ended.origin,
            freezes: ended.freezes,
            planned: ended.planned,
            load: ended.load,
            limits: ended.limits,
            bounds: ended.bounds,
            services: ended.services,
            device_drops,
            busy: processors.busy,
            idle: processors.idle,
            stolen: processors.stolen,
            notes,
            ..PartResults::default()
        };
        FinishedRun {
            results,
            captures: ended.captures.files,
            internet,
            membership: ended.membership,
            connections: ended.connections,
            signals: ended.signals,
        }
    }
}

/// A run, or one machine's part of it, that is over.
pub(crate) struct FinishedRun {
    pub(crate) results: PartResults,
    /// What is missing in captures of frames, a sentence each.
    pub(super) captures: Vec<String>,
    pub(super) internet: Option<Result<GatewayReport, String>>,
    pub(crate) membership: Option<AgentMembership>,
    /// Clients learn that the run is over when these close: not before its results are written.
    pub(super) connections: ControlConnectionTable,
    /// Signals end the process again when this is dropped: not before its results are written.
    pub(super) signals: SignalReader,
}

impl FinishedRun {
    pub(super) fn evidence<'a>(
        &'a self,
        plan: &'a Plan,
        options: &'a RunOptions,
    ) -> RunEvidence<'a> {
        RunEvidence {
            captures: &self.captures,
            internet: self.internet.as_ref(),
            ..RunEvidence::of(plan, options.terms(), &self.results)
        }
    }
}

/// Has the kernel serve this thread when an event is due as it serves the packet loop. What it does
/// not give makes events later, which is in the verdict.
fn be_punctual(promotion: Option<RealTimePromoter>) {
    let _ = promotion.map(RealTimePromoter::promote);
    let _ = clock::set_timer_slack(NonZeroU64::MIN);
    let _ = schedule::set_slice(schedule::SHORTEST_SLICE_NS);
}

fn spent_since(before: CpuTickCounters) -> CpuTickCounters {
    let after = limits::processors().unwrap_or_default();
    CpuTickCounters {
        busy: after.busy.saturating_sub(before.busy),
        idle: after.idle.saturating_sub(before.idle),
        stolen: after.stolen.saturating_sub(before.stolen),
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
