//! What a live run is made of.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use windtunnel_control::ControlListener;
use windtunnel_model::{Plan, Span, Time};
use windtunnel_routing::Routes;
use windtunnel_sys::poll::EventFd as Wake;
use windtunnel_sys::signal;
use windtunnel_trace::report;

use super::answers::DeferredReplies;
use super::capture::{Captures, Incomplete};
use super::connections::ControlConnectionTable;
use super::context::RunContext;
use super::end_request::EndRequest;
use super::interference::InterferenceNotes;
use super::journal::Journal;
use super::launcher::Launcher;
use super::measurements::Measurements;
use super::membership::{AgentMembership, RunMemberTable};
use super::network::NetworkController;
use super::nodes::{Inits, RunNodeTable};
use super::programs::ProgramExecution;
use super::punctuality::Punctuality;
use super::readiness::Readiness;
use super::services::{ReplicaWatcher, ServiceMonitor, ServicesEnded};
use crate::clock::now;
use crate::echo::{EchoProbe, EchoResults};
use crate::folder::RunOutputFolder;
use crate::freeze::Freezes;
use crate::load::{CpuLoadHistory, WhenLate};
use crate::node_limits::{CpuUsageAccount, MachineResourceLimits, ResourceLimit};
use crate::observer::Observer;
use crate::output::{Carried, Matched, OutputCollector};
use crate::planned::PunctualitySummary;
use crate::recorder::RunRecorder;
use crate::records::EvidenceRecorder;
use crate::supervisor::Supervisor;
use windtunnel_dataplane::owners::Roots;
use windtunnel_dataplane::{Dataplane, PacketLoopEvent, Tally};

/// The threads of a run and the ways to talk to them.
pub(crate) struct Threads {
    /// Raised when `matches` or `notes` have something.
    pub(crate) wake: Arc<Wake>,
    pub(crate) recorder: RunRecorder,
    pub(crate) output: OutputCollector,
    pub(crate) matches: Receiver<Matched>,
    pub(crate) dataplane: Dataplane,
    pub(crate) notes: Receiver<PacketLoopEvent>,
    /// The processes of programs, by which their flows are found.
    pub(crate) roots: Roots,
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
    pub(crate) inits: Box<dyn Inits>,
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
    pub(crate) carried: Carried,
    pub(crate) supervisor: Supervisor,
    pub(crate) echoes: Vec<(EchoProbe, EchoResults)>,
    pub(crate) origin: Time,
    /// How long after the origin the clock of the run was started.
    pub(crate) began_late: Span,
    pub(crate) freezes: Freezes,
    /// When what was planned for a time happened.
    pub(crate) planned: PunctualitySummary,
    /// What the machine's processors did when packets were late.
    pub(crate) load: WhenLate,
    /// What limited nodes had.
    pub(crate) limits: Vec<CpuUsageAccount>,
    /// Their limits of other things than processor time.
    pub(crate) bounds: Vec<ResourceLimit>,
    pub(crate) services: ServicesEnded,
    /// What was recorded as evidence, if anything was.
    pub(crate) records: Option<report::RecordingReport>,
    /// What is missing in captures, a sentence each.
    pub(crate) captures: Incomplete,
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

/// Where news comes from that is not a node, a client or the agent.
pub(super) struct RunLoopInputs {
    pub(super) signals: signal::SignalReader,
    /// Raised when `matches` or `notes` have something.
    pub(super) wake: Arc<Wake>,
    pub(super) matches: Receiver<Matched>,
    pub(super) notes: Receiver<PacketLoopEvent>,
}

/// A run that lives: its parts, each of which owns its state. They meet in the files beside this
/// one, which hand news to the parts that it concerns.
pub(crate) struct RunLoop {
    pub(super) cx: RunContext,
    pub(super) programs: ProgramExecution,
    pub(super) network: NetworkController,
    pub(super) records: EvidenceRecorder,
    pub(super) limits: MachineResourceLimits,
    pub(super) services: ServiceMonitor,
    pub(super) captures: Captures,
    pub(super) measurements: Measurements,
    pub(super) connections: ControlConnectionTable,
    pub(super) answers: DeferredReplies,
    pub(super) membership: Option<AgentMembership>,
    pub(super) end: EndRequest,
    pub(super) inputs: RunLoopInputs,
    pub(super) began_late: Span,
    pub(super) last_tick: Time,
    pub(super) load: CpuLoadHistory,
    pub(super) interference: InterferenceNotes,
}

impl RunLoop {
    pub(crate) fn new(setup: RunLoopSetup) -> Self {
        let RunLoopSetup {
            plan,
            base_dir,
            folder,
            observer,
            inits,
            readiness,
            routes,
            threads,
            ..
        } = setup;
        let membership = setup.membership;
        let here = membership.as_ref().map(|it| it.members.here());
        let host = membership.as_ref().map(|it| it.members.own_name());
        let supervisor = match &here {
            Some(here) => Supervisor::of_part(&plan, here.clone()),
            None => Supervisor::new(&plan),
        };
        let Threads { wake, recorder, output, matches, dataplane, notes, roots } = threads;
        RunLoop {
            programs: ProgramExecution::new(&plan, supervisor, Launcher::new(base_dir, output))
                .noted(roots),
            network: NetworkController::new(&plan, dataplane, routes),
            records: setup.records,
            limits: setup.limits,
            services: ServiceMonitor::new(&plan, setup.watch),
            captures: Captures::new(Arc::clone(&wake)),
            measurements: Measurements::new(&plan),
            connections: ControlConnectionTable::new(setup.control),
            answers: DeferredReplies::default(),
            membership,
            end: EndRequest::default(),
            inputs: RunLoopInputs { signals: setup.signals, wake, matches, notes },
            began_late: Span::ZERO,
            last_tick: Time::ZERO,
            load: CpuLoadHistory::default(),
            interference: InterferenceNotes::default(),
            cx: RunContext {
                nodes: RunNodeTable::new(Arc::clone(&plan), inits, readiness, here),
                journal: Journal::new(observer, recorder, now).of_host(host),
                punctuality: RefCell::new(Punctuality::new(setup.late_above)),
                folder,
                plan,
            },
        }
    }

    /// Process ids of the inits of this machine's nodes.
    pub(crate) fn init_pids(&self) -> Vec<u32> {
        let inits = self.cx.nodes.inits();
        let nodes = inits.descriptors().into_iter().map(|(node, _)| node);
        nodes.filter_map(|node| inits.pid(node)).collect()
    }

    /// Time since the run began.
    pub(crate) fn elapsed(&self) -> Span {
        self.cx.journal.elapsed()
    }

    /// The members of a run over several machines.
    pub(super) fn members(&self) -> Option<&RunMemberTable> {
        self.membership.as_ref().map(|it| &it.members)
    }

    /// Reads the counters, lets the nodes vanish and closes all files. The packet loop first waits
    /// for so many datagrams of other machines.
    pub(super) fn into_ended(mut self, await_datagrams: Vec<(u16, u64)>) -> RunLoopResult {
        let RunContext { nodes, journal, punctuality, .. } = self.cx;
        let planned = punctuality.into_inner().finish(journal.elapsed());
        let freezes = self.programs.freezes();
        // In this order: no packets, no processes; then their pipes are at their end.
        let tally = self.network.finish(await_datagrams);
        let load = self.load.when_late(&tally, journal.origin());
        let captures = self.captures.finish(&mut self.connections);
        drop(nodes);
        let lapses = self.limits.take_notes();
        let (limits, bounds) = self.limits.into_accounts();
        let carried = self.programs.launcher.into_output().finish();
        journal.end();
        let records = self.records.finish();
        RunLoopResult {
            records,
            captures,
            tally,
            carried,
            supervisor: self.programs.supervisor,
            echoes: self.measurements.into_results(),
            origin: journal.origin(),
            began_late: self.began_late,
            freezes,
            planned,
            load,
            limits,
            bounds,
            services: self.services.finish(),
            interference: self.interference.notes,
            lapses,
            connections: self.connections,
            signals: self.inputs.signals,
            membership: self.membership,
        }
    }
}
