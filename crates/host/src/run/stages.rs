//! A run from the moment in which its packets move to the moment in which it is over.

use std::num::NonZeroU64;
use std::time::{SystemTime, UNIX_EPOCH};

use windtunnel_gateway::{Gateway, GatewayReport};
use windtunnel_model::{Plan, Span, Time};
use windtunnel_sys::clock;
use windtunnel_sys::limits::{self, CpuTickCounters};
use windtunnel_sys::schedule::{self, SchedulingPolicy};

use crate::devices::DeviceDrops;
use crate::ending::RunEndReason;
use crate::error::RunError;
use crate::gateway;
use crate::live::{RunLoop, RunLoopResult};
use crate::options::{Foreground, RunOptions};
use crate::recorder::{RunRecorderSummary, RunRecorderThread};
use crate::verdict::RunEvidence;
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
        FinishedRun {
            ended,
            recorded: recording.finish(),
            began_unix_s,
            setup,
            elapsed,
            ending,
            device_drops,
            processors,
            notes,
            internet,
        }
    }
}

/// A run, or one machine's part of it, that is over.
pub(crate) struct FinishedRun {
    pub(crate) ended: RunLoopResult,
    pub(crate) recorded: RunRecorderSummary,
    pub(crate) began_unix_s: u64,
    pub(crate) setup: Span,
    pub(crate) elapsed: Span,
    pub(crate) ending: RunEndReason,
    pub(crate) device_drops: DeviceDrops,
    pub(crate) processors: CpuTickCounters,
    pub(crate) notes: Vec<String>,
    pub(crate) internet: Option<Result<GatewayReport, String>>,
}

impl FinishedRun {
    pub(super) fn evidence<'a>(
        &'a self,
        plan: &'a Plan,
        options: &'a RunOptions,
    ) -> RunEvidence<'a> {
        RunEvidence {
            plan,
            plan_hash: &options.plan_hash,
            began_unix_s: self.began_unix_s,
            setup: self.setup,
            elapsed: self.elapsed,
            ending: &self.ending,
            tally: &self.ended.tally,
            recorded: &self.recorded,
            records: self.ended.records.as_ref(),
            captures: &self.ended.captures.files,
            carried: &self.ended.carried,
            supervisor: &self.ended.supervisor,
            echoes: &self.ended.echoes,
            origin: self.ended.origin,
            freezes: self.ended.freezes,
            limits: &self.ended.limits,
            bounds: &self.ended.bounds,
            services: &self.ended.services,
            internet: self.internet.as_ref(),
            late_above: options.max_lateness,
            device_drops: self.device_drops,
            processors: self.processors,
            load: self.ended.load,
            planned: &self.ended.planned,
            notes: &self.notes,
            hosts: &[],
            lost: &[],
            cut_off: false,
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
