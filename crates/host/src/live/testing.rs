//! A run without namespaces, for tests of the parts of the main loop.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use windtunnel_folder::RunOutputFolder;
use windtunnel_model::plan::Service;
use windtunnel_model::{NodeId, Plan, RouterId, Span, Time};
use windtunnel_node::{ChannelError, NodeInitReply, NodeInitRequest, ProgramSpawnRequest};
use windtunnel_routing::Routes;
use windtunnel_sys::poll::EventFd as Wake;
use windtunnel_trace::event::{EventLogEntry, EventLogEntryKind};

use super::aim::SignalTargetSet;
use super::context::RunContext;
use super::journal::Journal;
use super::launcher::Launcher;
use super::nodes::{NodeInitMessenger, RunNodeTable};
use super::programs::ProgramExecution;
use super::punctuality::PunctualityMonitor;
use super::readiness::Readiness;
use crate::observer::{Observer, ObserverNotice};
use crate::output::OutputCollector;
use crate::recorder::RunRecorder;
use crate::supervisor::Supervisor;
pub(super) use windtunnel_dataplane::testing::plan;

thread_local! {
    static CLOCK: Cell<Time> = const { Cell::new(Time::ZERO) };
}

/// The time of this test's thread.
pub(super) fn clock() -> Time {
    CLOCK.get()
}

pub(super) fn set_clock(time: Time) {
    CLOCK.set(time);
}

/// What an observer has seen.
#[derive(Clone, Default)]
pub(super) struct ObserverEventLog(Arc<Mutex<Vec<EventLogEntry>>>);

impl ObserverEventLog {
    pub(super) fn events(&self) -> Vec<EventLogEntry> {
        self.0.lock().unwrap().clone()
    }

    pub(super) fn whats(&self) -> Vec<EventLogEntryKind> {
        self.events().into_iter().map(|event| event.what).collect()
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let text = |what| match what {
            EventLogEntryKind::Warning { message } => Some(message),
            _ => None,
        };
        self.whats().into_iter().filter_map(text).collect()
    }
}

impl Observer for ObserverEventLog {
    fn notice(&self, notice: &ObserverNotice<'_>) {
        if let ObserverNotice::Event(event) = notice {
            self.0.lock().unwrap().push((*event).clone());
        }
    }
}

/// Requests that nodes have been sent. Node n has the init 100 + n.
#[derive(Clone, Default)]
pub(super) struct NodeRequestLog(Rc<RefCell<NodeRequestLogState>>);

#[derive(Default)]
struct NodeRequestLogState {
    requests: Vec<(usize, NodeInitRequest)>,
    descriptors: Vec<usize>,
    refusal: Option<String>,
    /// By node.
    aims: BTreeMap<usize, SignalTargetSet>,
    /// The run folder is below it.
    root: Option<TempDir>,
}

impl NodeRequestLog {
    /// From now on, no node takes a request.
    pub(super) fn refuse(&self, why: &str) {
        self.0.borrow_mut().refusal = Some(why.to_owned());
    }

    pub(super) fn requests(&self) -> Vec<(usize, NodeInitRequest)> {
        self.0.borrow().requests.clone()
    }

    /// The next look for processes of a node finds these children of the test.
    pub(super) fn has_children(&self, node: usize, children: &[u32]) {
        self.0.borrow_mut().aims.insert(node, SignalTargetSet::at_children(children));
    }

    /// How many descriptors each request carried.
    pub(super) fn descriptors(&self) -> Vec<usize> {
        self.0.borrow().descriptors.clone()
    }

    pub(super) fn spawns(&self) -> Vec<(usize, ProgramSpawnRequest)> {
        let spawn = |(node, request)| match request {
            NodeInitRequest::Spawn(spawn) => Some((node, spawn)),
            _ => None,
        };
        self.requests().into_iter().filter_map(spawn).collect()
    }

    /// Signals to whole nodes.
    pub(super) fn signals(&self) -> Vec<(usize, i32)> {
        let signal = |(node, request)| match request {
            NodeInitRequest::Signal { id: None, signal, .. } => Some((node, signal)),
            _ => None,
        };
        self.requests().into_iter().filter_map(signal).collect()
    }
}

impl NodeInitMessenger for NodeRequestLog {
    fn send(
        &self,
        node: NodeId,
        request: &NodeInitRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), String> {
        let mut sent = self.0.borrow_mut();
        if let Some(why) = &sent.refusal {
            return Err(why.clone());
        }
        sent.requests.push((node.index(), request.clone()));
        sent.descriptors.push(descriptors.len());
        Ok(())
    }

    fn receive(&self, _: NodeId) -> Option<Result<Option<NodeInitReply>, ChannelError>> {
        Some(Ok(None))
    }

    fn pid(&self, node: NodeId) -> Option<u32> {
        Some(100 + node.0)
    }

    fn aim(&self, node: NodeId) -> Option<SignalTargetSet> {
        self.0.borrow_mut().aims.remove(&node.index())
    }

    fn descriptors(&self) -> Vec<(NodeId, BorrowedFd<'_>)> {
        Vec::new()
    }

    fn change_routes(
        &self,
        _: &Plan,
        _: &Routes,
        _: &Routes,
    ) -> Vec<(NodeId, Result<(), ChannelError>)> {
        Vec::new()
    }

    fn change_services(&self, _: &Plan, _: &Plan, _: &Routes, _: NodeId) -> Result<(), String> {
        Ok(())
    }
}

/// What the parts of a run of `plan` share, what its nodes are sent and its observer sees. The
/// nodes that are `here` are on this machine; `None`: all.
pub(super) fn context(
    plan: Plan,
    here: Option<Vec<bool>>,
) -> (RunContext, NodeRequestLog, ObserverEventLog) {
    set_clock(Time::from_nanos(1_000_000_000));
    let plan = Arc::new(plan);
    let root = tempfile::tempdir().expect("a temporary folder");
    let folder = RunOutputFolder::create(root.path(), &plan).expect("a run folder");
    let (sent, log) = (NodeRequestLog::default(), ObserverEventLog::default());
    sent.0.borrow_mut().root = Some(root);
    let (recorder, _) = RunRecorder::to_channel();
    let journal = Journal::new(Arc::new(log.clone()), recorder, clock);
    let readiness = Readiness::of(&sent).expect("a descriptor");
    let nodes = RunNodeTable::new(Arc::clone(&plan), Box::new(sent.clone()), readiness, here);
    let punctuality = RefCell::new(PunctualityMonitor::new(Span::from_millis(1)));
    (RunContext { plan, folder, nodes, journal, punctuality }, sent, log)
}

/// The thread that carries what programs write.
pub(super) fn output() -> OutputCollector {
    let wake = Arc::new(Wake::open().expect("an event descriptor"));
    OutputCollector::start(Arc::new(ObserverEventLog::default()), 1_000, wake)
        .expect("the output thread")
        .0
}

/// The programs of a run, of which none has been started.
pub(super) fn programs(context: &RunContext) -> ProgramExecution {
    let nodes = (0..context.plan.nodes.len()).map(NodeId::from_index);
    let here = nodes.map(|node| context.nodes.is_here(node)).collect();
    let supervisor = Supervisor::of_part(&context.plan, here);
    ProgramExecution::new(&context.plan, supervisor, Launcher::new("/experiment".into(), output()))
}

/// Node 0 is its replica.
pub(super) fn service() -> Service {
    Service {
        v4: Some("10.1.0.80".parse().unwrap()),
        v6: Some("fd01::80".parse().unwrap()),
        ports: vec!["80/tcp".parse().unwrap()],
        at: vec![RouterId(0)],
        ..Service::new("www", [NodeId(0)])
    }
}
