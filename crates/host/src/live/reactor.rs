//! The parts of a live run, and where their news comes from.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use windtunnel_resource::MachineResourceLimits;
use windtunnel_sys::poll::EventFd as Wake;
use windtunnel_sys::signal;

use super::answers::DeferredReplies;
use super::capture::{CaptureController, CaptureSource};
use super::connections::ControlConnectionTable;
use super::context::RunContext;
use super::end_request::EndRequest;
use super::inspector::RunInspector;
use super::interference::InterferenceNotes;
use super::journal::Journal;
use super::launcher::Launcher;
use super::limited::LimitController;
use super::measurements::Measurements;
use super::membership::{AgentMembership, RunMemberTable};
use super::network::NetworkController;
use super::nodes::RunNodeTable;
use super::orders::OrderExecutor;
use super::programs::ProgramExecution;
use super::punctuality::PunctualityMonitor;
use super::services::{ServiceMonitor, ServiceRegistrar};
use super::state::{RunLoopSetup, Threads};
use crate::output::ReadinessLineMatch;
use crate::records::EvidenceRecorder;
use crate::supervisor::Supervisor;
use windtunnel_dataplane::PacketLoopEvent;
use windtunnel_dataplane::now;

/// The parts of a run, each of which owns its state. The reactor waits for news, and hands it to
/// the parts that it concerns: that is in the files beside this one, one for each source of news.
pub(super) struct RunReactor {
    pub(super) cx: RunContext,
    pub(super) programs: ProgramExecution,
    pub(super) network: NetworkController,
    pub(super) records: EvidenceRecorder,
    pub(super) limits: MachineResourceLimits,
    pub(super) services: ServiceMonitor,
    pub(super) captures: CaptureController,
    pub(super) measurements: Measurements,
    pub(super) connections: ControlConnectionTable,
    pub(super) answers: DeferredReplies,
    pub(super) membership: Option<AgentMembership>,
    pub(super) end: EndRequest,
    pub(super) interference: InterferenceNotes,
    pub(super) inputs: RunReactorInputs,
}

/// Where news comes from that is not a node, a client or the agent.
pub(super) struct RunReactorInputs {
    pub(super) signals: signal::SignalReader,
    /// Raised when `matches` or `notes` have something.
    pub(super) wake: Arc<Wake>,
    pub(super) matches: Receiver<ReadinessLineMatch>,
    pub(super) notes: Receiver<PacketLoopEvent>,
}

impl RunReactor {
    pub(super) fn new(setup: RunLoopSetup) -> Self {
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
        RunReactor {
            programs: ProgramExecution::new(&plan, supervisor, Launcher::new(base_dir, output))
                .noted(roots),
            network: NetworkController::new(&plan, dataplane, routes),
            records: setup.records,
            limits: setup.limits,
            services: ServiceMonitor::new(&plan, setup.watch),
            captures: CaptureController::new(Arc::clone(&wake)),
            measurements: Measurements::new(&plan),
            connections: ControlConnectionTable::new(setup.control),
            answers: DeferredReplies::default(),
            membership,
            end: EndRequest::default(),
            interference: InterferenceNotes::default(),
            inputs: RunReactorInputs { signals: setup.signals, wake, matches, notes },
            cx: RunContext {
                nodes: RunNodeTable::new(Arc::clone(&plan), inits, readiness, here),
                journal: Journal::new(observer, recorder, now).of_host(host),
                punctuality: RefCell::new(PunctualityMonitor::new(setup.late_above)),
                folder,
                plan,
            },
        }
    }

    /// The members of a run over several machines.
    pub(super) fn members(&self) -> Option<&RunMemberTable> {
        self.membership.as_ref().map(|it| &it.members)
    }

    /// What clients can ask of all this.
    pub(super) fn inspector(&self) -> RunInspector<'_> {
        RunInspector {
            cx: &self.cx,
            programs: &self.programs,
            network: &self.network,
            limits: &self.limits,
            services: &self.services,
        }
    }

    /// What does that which is ordered from outside.
    pub(super) fn orders(&mut self) -> OrderExecutor<'_> {
        OrderExecutor {
            cx: &self.cx,
            programs: &mut self.programs,
            network: &mut self.network,
            services: &mut self.services,
            membership: self.membership.as_ref(),
            answers: &mut self.answers,
            connections: &mut self.connections,
        }
    }

    /// What follows what is seen of replicas.
    pub(super) fn registrar(&mut self) -> ServiceRegistrar<'_> {
        ServiceRegistrar {
            cx: &self.cx,
            monitor: &mut self.services,
            network: &mut self.network,
            membership: self.membership.as_ref(),
            launcher: &self.programs.launcher,
        }
    }

    /// What follows and changes the limits of nodes.
    pub(super) fn limit_controller(&mut self) -> LimitController<'_> {
        LimitController { cx: &self.cx, limits: &mut self.limits, network: &mut self.network }
    }

    /// The captures, and what they are of.
    pub(super) fn captures_of(&mut self) -> (&mut CaptureController, CaptureSource<'_>) {
        let unix_offset_ns = self.records.unix_offset_ns();
        let source = CaptureSource { cx: &self.cx, network: &self.network, unix_offset_ns };
        (&mut self.captures, source)
    }
}
