//! What a live run needs, how far it is, and what is left of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use windtunnel_control::ControlListener;
use windtunnel_folder::RunOutputFolder;
use windtunnel_model::{Plan, Span, Time};
use windtunnel_resource::MachineResourceLimits;
use windtunnel_routing::Routes;
use windtunnel_sys::poll::EventFd as Wake;
use windtunnel_sys::signal;
use windtunnel_trace::report;
use windtunnel_verdict::evidence::{
    EchoProbe, EchoResults, FreezeTotals, OutputCollectionSummary, PunctualitySummary,
    ServicesEnded, WhenLate,
};

use super::capture::IncompleteCaptures;
use super::connections::ControlConnectionTable;
use super::context::RunContext;
use super::load::CpuLoadHistory;
use super::membership::AgentMembership;
use super::nodes::NodeInitMessenger;
use super::reactor::RunReactor;
use super::readiness::Readiness;
use super::services::ReplicaWatcher;
use crate::observer::Observer;
use crate::output::{OutputCollector, ReadinessLineMatch};
use crate::recorder::RunRecorder;
use crate::records::EvidenceRecorder;
use crate::supervisor::Supervisor;
use windtunnel_dataplane::owners::ProgramRootProcesses;
use windtunnel_dataplane::{Dataplane, PacketLoopEvent, Tally};
use windtunnel_limit::LimitAccount;

/// The threads of a run and the ways to talk to them.
pub(crate) struct Threads {
    /// Raised when `matches` or `notes` have something.
    pub(crate) wake: Arc<Wake>,
    pub(crate) recorder: RunRecorder,
    pub(crate) output: OutputCollector,
    pub(crate) matches: Receiver<ReadinessLineMatch>,
    pub(crate) dataplane: Dataplane,
    pub(crate) notes: Receiver<PacketLoopEvent>,
    /// The processes of programs, by which their flows are found.
    pub(crate) roots: ProgramRootProcesses,
}

/// What a run needs to live.
pub(crate) struct RunLoopSetup {
    pub(crate) plan: Arc<Plan>,
    /// Where programs start that name no folder of their own.
    pub(crate) base_dir: PathBuf,
    pub(crate) folder: RunOutputFolder,
    /// Lateness above this counts as late.
    pub(crate) late_above: Span,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) inits: Box<dyn NodeInitMessenger>,
    /// Of the same nodes.
    pub(crate) readiness: Readiness,
    /// The routes that the nodes' kernels have.
    pub(crate) routes: Arc<Routes>,
    pub(crate) records: EvidenceRecorder,
    pub(crate) limits: MachineResourceLimits,
    /// What looks at replicas of services; `None`: there are no services.
    pub(crate) watch: Option<ReplicaWatcher>,
    pub(crate) signals: signal::SignalReader,
    pub(crate) control: ControlListener,
    pub(crate) threads: Threads,
    /// In a run over several machines.
    pub(crate) membership: Option<AgentMembership>,
}

/// What is left when a run is over.
pub(crate) struct RunLoopResult {
    pub(crate) tally: Tally,
    pub(crate) carried: OutputCollectionSummary,
    pub(crate) supervisor: Supervisor,
    pub(crate) echoes: Vec<(EchoProbe, EchoResults)>,
    pub(crate) origin: Time,
    /// How long after the origin the clock of the run was started.
    pub(crate) began_late: Span,
    pub(crate) freezes: FreezeTotals,
    /// When what was planned for a time happened.
    pub(crate) planned: PunctualitySummary,
    /// What the machine's processors did when packets were late.
    pub(crate) load: WhenLate,
    /// What limited nodes had.
    pub(crate) limits: Vec<LimitAccount>,
    /// Their limits of other things than processor time.
    pub(crate) bounds: Vec<LimitAccount>,
    pub(crate) services: ServicesEnded,
    /// What was recorded as evidence, if anything was.
    pub(crate) records: Option<report::RecordingReport>,
    /// What is missing in captures, a sentence each.
    pub(crate) captures: IncompleteCaptures,
    /// What nodes have made that delays, drops or changes packets beside the emulation.
    pub(crate) interference: Vec<String>,
    /// What limits did not hold that are not those of the file.
    pub(crate) lapses: Vec<String>,
    /// Clients learn that the run is over when these close: not before its results are written.
    pub(crate) connections: ControlConnectionTable,
    /// Signals end the process again when this is dropped: not before its results are written.
    pub(crate) signals: signal::SignalReader,
    /// This machine as a member of a run over several.
    pub(crate) membership: Option<AgentMembership>,
}

/// A run that lives: its parts, and how far it is.
pub(crate) struct RunLoop {
    pub(super) reactor: RunReactor,
    pub(super) began_late: Span,
    /// When the observer last got one.
    pub(super) last_tick: Time,
    pub(super) load: CpuLoadHistory,
}

impl RunLoop {
    pub(crate) fn new(setup: RunLoopSetup) -> Self {
        RunLoop {
            reactor: RunReactor::new(setup),
            began_late: Span::ZERO,
            last_tick: Time::ZERO,
            load: CpuLoadHistory::default(),
        }
    }

    /// Process ids of the inits of this machine's nodes.
    pub(crate) fn init_pids(&self) -> Vec<u32> {
        let inits = self.reactor.cx.nodes.inits();
        let nodes = inits.descriptors().into_iter().map(|(node, _)| node);
        nodes.filter_map(|node| inits.pid(node)).collect()
    }

    /// Time since the run began.
    pub(crate) fn elapsed(&self) -> Span {
        self.reactor.cx.journal.elapsed()
    }

    /// Reads the counters, lets the nodes vanish and closes all files. The packet loop first waits
    /// for so many datagrams of other machines.
    pub(super) fn into_ended(self, await_datagrams: Vec<(u16, u64)>) -> RunLoopResult {
        let mut reactor = self.reactor;
        let RunContext { nodes, journal, punctuality, .. } = reactor.cx;
        let planned = punctuality.into_inner().finish(journal.elapsed());
        let freezes = reactor.programs.freezes();
        // In this order: no packets, no processes; then their pipes are at their end.
        let tally = reactor.network.finish(await_datagrams);
        let load = self.load.when_late(&tally, journal.origin());
        let captures = reactor.captures.finish(&mut reactor.connections);
        drop(nodes);
        let lapses = reactor.limits.take_notes();
        let (limits, bounds) = reactor.limits.into_accounts();
        let carried = reactor.programs.launcher.into_output().finish();
        journal.end();
        let records = reactor.records.finish();
        RunLoopResult {
            records,
            captures,
            tally,
            carried,
            supervisor: reactor.programs.supervisor,
            echoes: reactor.measurements.into_results(),
            origin: journal.origin(),
            began_late: self.began_late,
            freezes,
            planned,
            load,
            limits,
            bounds,
            services: reactor.services.finish(),
            interference: reactor.interference.notes,
            lapses,
            connections: reactor.connections,
            signals: reactor.inputs.signals,
            membership: reactor.membership,
        }
    }
}
