//! A whole run.
//!
//! Stages, each undone in reverse by dropping what it made:
//!
//! 1. the run folder and `plan.json`;
//! 2. signals are taken over;
//! 3. the process leaves the machine's network ([`windtunnel_node::enter`]);
//!    images of nodes' own file systems are unpacked;
//! 4. all nodes come up ([`windtunnel_node::create`]); only now threads may start:
//! 5. recorder and output;
//! 6. the packet loop;
//! 7. the control socket;
//! 8. paths that expectations name are measured;
//! 9. the clock of the run starts;
//! 10. the main loop;
//! 11. programs end, counters are read, nodes vanish, files are closed;
//! 12. the verdict.

mod gateway;
mod stages;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use windtunnel_control::ControlListener;
use windtunnel_folder::RunOutputFolder;
use windtunnel_gateway::Gateway;
use windtunnel_model::plan::{RecordMode, RecordingPolicy as Asked};
use windtunnel_model::record::kind::RecordSource;
use windtunnel_model::{Lane, NodeId, Plan, Span};
use windtunnel_node::{NodeSet, ProgramRecordingSetup, RunningNode};
use windtunnel_record::kernel::{Kernel, KernelTraceScope, KernelTraceSettings};
use windtunnel_record::listeners::ListenerThread;
use windtunnel_record::preload::LIBRARY;
use windtunnel_resource::MachineResourceLimits;
use windtunnel_routing::Routes;
use windtunnel_sys::poll::EventFd as Wake;
use windtunnel_sys::process::Signal;
use windtunnel_sys::region::MappedRecordRegion;
use windtunnel_sys::{schedule, signal};
use windtunnel_trace::report::RunReport;

use crate::error::{RunError, io, step};
use crate::live::{self, AgentMembership, Readiness, RunLoop, Threads};
use crate::machine::presence::{self, MissingPrerequisite};
use crate::observer::{Observer, ObserverNotice};
use crate::options::{Foreground, RunOptions};
use crate::output::OutputCollector;
use crate::recorder::{RunRecorder, RunRecorderThread};
use crate::records::{self, EvidenceRecorder};
use crate::roots;
use stages::StartedRun;
use windtunnel_dataplane::now;
use windtunnel_dataplane::owners::{self, ProgramRootProcesses};
use windtunnel_dataplane::promotion::{Priority, RealTimePromoter};
use windtunnel_dataplane::receive_queue::ReceiveQueue;
use windtunnel_dataplane::senders::{self, LaneSenderRegion};
use windtunnel_dataplane::{Dataplane, PacketLoopParameters, RecordSetup, RemoteMachines};
use windtunnel_verdict::conclude;

/// Whether this machine has what programs need that cannot come later.
fn check_presence(
    plan: &Plan,
    options: &RunOptions,
    here: Option<&[bool]>,
) -> Result<(), RunError> {
    let missing = presence::missing(plan, &options.base_dir, here).into_iter();
    let missing = missing.filter(|missing| !missing.may_come);
    let named = missing.map(|missing| (plan.nodes[missing.node.index()].name.clone(), missing));
    let missing: Vec<(String, MissingPrerequisite)> = named.collect();
    if missing.is_empty() { Ok(()) } else { Err(RunError::Missing { missing }) }
}

/// Does a whole run. The calling thread must be the process's only one; it leaves the machine's
/// network for good, and SIGINT, SIGTERM and SIGHUP end the run instead of the process.
///
/// # Errors
/// If the network cannot be set up; nothing is left behind then.
pub fn run(
    plan: Plan,
    options: &RunOptions,
    observer: Arc<dyn Observer>,
) -> Result<RunReport, RunError> {
    whole_run(plan, options, observer, None)
}

/// Where frames of this node or link are captured: names of nodes with their devices.
///
/// # Errors
/// Why they cannot be, and what can be done.
pub fn capture_places(plan: &Plan, place: &str) -> Result<Vec<String>, (String, Option<String>)> {
    let places = live::capture::places::capture_places(plan, place);
    let places = places.map_err(live::RequestRefusal::into_parts)?;
    Ok(places.into_iter().map(|place| place.name).collect())
}

/// Does a whole run as [`run`], in which one program stands for the calling process: it has its
/// standard streams, and while it runs it gets the signals that would end the run.
///
/// # Errors
/// As [`run`].
pub fn run_in_foreground(
    plan: Plan,
    options: &RunOptions,
    observer: Arc<dyn Observer>,
    foreground: Foreground,
) -> Result<RunReport, RunError> {
    whole_run(plan, options, observer, Some(foreground))
}

fn whole_run(
    plan: Plan,
    options: &RunOptions,
    observer: Arc<dyn Observer>,
    foreground: Option<Foreground>,
) -> Result<RunReport, RunError> {
    let plan = Arc::new(plan);
    let folder = RunOutputFolder::create(&options.folder, &plan)?;
    let signals: &[Signal] = if foreground.is_some() { &PASSED_ON } else { &ENDING };
    let result = folder.reserve_report(&plan).map_err(RunError::from);
    let result = result
        .and_then(|()| prepare(&plan, options, &folder, &observer, None, signals))
        .and_then(|prepared| prepared.run(&plan, options, &folder, observer, foreground));
    if result.is_err() {
        folder.discard();
    }
    result
}

/// What exists before the first thread.
pub(crate) struct PreparedRun {
    signals: signal::SignalReader,
    node_set: NodeSet,
    routes: Arc<Routes>,
    records: EvidenceRecorder,
    /// Of the packet loop and of this thread.
    promotions: [Option<RealTimePromoter>; 2],
    limits: MachineResourceLimits,
    receive_queues: Vec<ReceiveQueue>,
    senders: Vec<LaneSenderRegion>,
    /// By what replicas of services are looked at; `None`: there are no services.
    replicas: Option<Vec<(NodeId, OwnedFd)>>,
    notes: Vec<String>,
    setup: Span,
    gateway: Option<Gateway>,
}

/// Makes the nodes, or those that are `here`.
pub(crate) fn prepare(
    plan: &Arc<Plan>,
    options: &RunOptions,
    folder: &RunOutputFolder,
    observer: &Arc<dyn Observer>,
    here: Option<Vec<bool>>,
    signals: &[Signal],
) -> Result<PreparedRun, RunError> {
    let began = now();
    check_presence(plan, options, here.as_deref())?;
    write_plan(plan, folder)?;
    let signals = signal::SignalReader::open(signals).map_err(step("take over signals"))?;
    // Before anything that it would inherit, and while this process is in the machine's network.
    let mut gateway = gateway::start(plan, options, folder)?;
    let promotions = [Priority::Packets, Priority::Events].map(RealTimePromoter::prepare);
    let (nice, kernel, around) = (nice_of_programs(), kernel(plan), options.group.as_deref());
    let mut limits = MachineResourceLimits::prepare(plan, folder.path(), here.as_deref(), around)?;
    roots::fetch(plan, here.as_deref(), observer.as_ref())?;
    let namespaces = windtunnel_node::enter_for(plan)?;
    let routes = settled_routes(plan);
    let (lanes, mut notes) = (owners::lanes(plan), Vec::new());
    let (recorded, without_calls) = recorded(plan, &lanes, &mut notes);
    let seen = observer.as_ref();
    let roots = roots::prepare(plan, here.as_deref(), folder, &namespaces, seen, &mut notes)?;
    let node_options = windtunnel_node::NodeSetOptions {
        recorded,
        nice,
        here,
        roots,
        ..node_options(plan, &lanes, options, folder.path())
    };
    let mut node_set =
        windtunnel_node::create(plan, &routes, &namespaces, &node_options, progress(observer))?;
    check_signals(&signals)?;
    gateway::connect(gateway.as_mut(), plan, &node_set)?;
    limits.enforce(plan, &node_set);
    let calls = node_options.recorded.as_ref().filter(|recorded| recorded.calls);
    let supervised = calls.map(|recorded| supervised(&node_set, recorded));
    let diagnosis = diagnosis(plan, &node_set);
    let mut records = EvidenceRecorder::new(records::EvidenceRecorderSetup {
        plan: Arc::clone(plan),
        plan_hash: options.plan_hash.clone(),
        folder: folder.path().to_owned(),
        member: options.member.clone(),
        regions: node_set.take_regions(),
        diagnosis,
        supervised: supervised.unwrap_or_default(),
        kernel,
        without_calls,
        measure_overhead: options.measure_overhead,
    })
    .map_err(step("make memory for records"))?;
    let (unmeasured, unlimited) = (records.measure_overhead(), limits.take_notes());
    let senders = senders(plan, &lanes, &mut node_set, &mut notes);
    Ok(PreparedRun {
        signals,
        records,
        promotions,
        notes: [namespaces.notes(), node_set.notes(), unmeasured.as_slice(), &unlimited, &notes]
            .concat(),
        senders,
        limits,
        replicas: replicas(plan, &node_set)?,
        receive_queues: ReceiveQueue::of_all(plan, &node_set).map_err(RunError::Receive)?,
        node_set,
        routes: Arc::new(routes),
        setup: now().since(began),
        gateway,
    })
}

/// The routes of the nodes, which are copies of this process: each would compute them for itself.
fn settled_routes(plan: &Plan) -> Routes {
    let routes = Routes::compute(plan);
    if plan.nodes.iter().any(|node| node.interfaces.len() > 1) {
        routes.settle();
    }
    routes
}

/// Reports how many nodes are done.
fn progress(observer: &Arc<dyn Observer>) -> impl FnMut(usize, usize) {
    |done, total| observer.notice(&ObserverNotice::Setup { done, total })
}

/// Whether the user has interrupted the set-up.
fn check_signals(signals: &signal::SignalReader) -> Result<(), RunError> {
    match signals.read() {
        Ok(Some(received)) => Err(RunError::Interrupted(received.signal)),
        _ => Ok(()),
    }
}

fn write_plan(plan: &Plan, folder: &RunOutputFolder) -> Result<(), RunError> {
    let written = serde_json::to_vec_pretty(plan).map_err(io("write plan.json"))?;
    Ok(folder.write("plan.json", &written)?)
}

/// Sockets by which the state of connections is looked at; none where nothing is recorded.
fn diagnosis(plan: &Plan, node_set: &NodeSet) -> Vec<(NodeId, std::io::Result<OwnedFd>)> {
    match plan.record.mode {
        RecordMode::Off => Vec::new(),
        _ => node_set.diagnosis(DIAGNOSIS_PATIENCE),
    }
}

/// Sockets by which replicas are looked at.
fn replicas(plan: &Plan, node_set: &NodeSet) -> Result<Option<Vec<(NodeId, OwnedFd)>>, RunError> {
    if plan.services.is_empty() {
        return Ok(None);
    }
    let is_replica = |node| plan.services.iter().any(|service| service.replica(node).is_some());
    let opened = node_set.diagnosis_of(is_replica, DIAGNOSIS_PATIENCE).into_iter();
    let opened = opened.map(|(node, socket)| match socket {
        Ok(socket) => Ok((node, socket)),
        Err(source) => {
            Err(RunError::Replica { node: plan.nodes[node.index()].name.clone(), source })
        }
    });
    opened.collect::<Result<Vec<_>, _>>().map(Some)
}

/// The thread that looks at them.
fn watch(
    sockets: Vec<(NodeId, OwnedFd)>,
    wake: &Arc<Wake>,
) -> Result<live::ReplicaWatcher, RunError> {
    let (thread, findings) = ListenerThread::start(Arc::clone(wake))
        .map_err(step("start the thread that looks at replicas of services"))?;
    Ok(live::ReplicaWatcher { thread, findings, sockets })
}

/// What nodes are made with, whatever is recorded and wherever they are.
fn node_options(
    plan: &Plan,
    lanes: &BTreeMap<NodeId, Lane>,
    options: &RunOptions,
    folder: &Path,
) -> windtunnel_node::NodeSetOptions {
    windtunnel_node::NodeSetOptions {
        diagnosed: plan.record.mode != RecordMode::Off || !lanes.is_empty(),
        offload: options.offload,
        hidden: options.hidden.clone(),
        kept: vec![options.base_dir.clone()],
        ..windtunnel_node::NodeSetOptions::new(folder.to_owned())
    }
}

/// By what programs leave records and declarations, or why they leave no records.
fn recorded(
    plan: &Plan,
    lanes: &BTreeMap<NodeId, Lane>,
    notes: &mut Vec<String>,
) -> (Option<ProgramRecordingSetup>, Option<String>) {
    let calls = plan.record.mode != RecordMode::Off;
    let senders: BTreeSet<NodeId> = lanes.keys().copied().collect();
    if !calls && senders.is_empty() {
        return (None, None);
    }
    let why = "this machine has no folder that can show the library";
    match ProgramRecordingSetup::place() {
        Some(place) => {
            (Some(ProgramRecordingSetup { place, library: LIBRARY, calls, senders }), None)
        }
        None => {
            if !senders.is_empty() {
                notes.push(format!("programs that share a socket are not distinguished: {why}"));
            }
            (None, calls.then(|| why.to_owned()))
        }
    }
}

/// The regions in which programs declare what they send on sockets that several have. Without one, a run
/// goes on.
fn senders(
    plan: &Plan,
    lanes: &BTreeMap<NodeId, Lane>,
    node_set: &mut NodeSet,
    notes: &mut Vec<String>,
) -> Vec<LaneSenderRegion> {
    let mut regions = Vec::new();
    for (id, file) in node_set.take_senders() {
        let Some(lane) = lanes.get(&id) else { continue };
        let node = &plan.nodes[id.index()];
        match MappedRecordRegion::create_in(file, senders::layout(node.programs.len())) {
            Ok(region) => regions.push(LaneSenderRegion { lane: *lane, region: Arc::new(region) }),
            Err(error) => notes.push(format!(
                "node {}: programs that share a socket are not distinguished: {error}",
                node.name
            )),
        }
    }
    regions
}

/// What sees the kernel's stack, if it may be wanted. Only from outside of the run's user namespace
/// may programs be put into the kernel, so that is done at once; events of no node are left out there.
fn kernel(plan: &Plan) -> Option<Result<Kernel, String>> {
    let Asked { mode, choice, .. } = &plan.record;
    if *mode == RecordMode::Off || !choice.has_layer(RecordSource::Kernel) {
        return None;
    }
    let kernel = Kernel::open(KernelTraceSettings::of(KernelTraceScope::Namespaces));
    let started = kernel.and_then(|mut kernel| kernel.start().map(|()| kernel));
    Some(started.map_err(|unavailable| unavailable.reason))
}

/// Has programs that cannot load the library show their calls.
fn supervised(
    node_set: &NodeSet,
    recorded: &ProgramRecordingSetup,
) -> Vec<(NodeId, Result<OwnedFd, String>)> {
    let library = recorded.library().to_string_lossy().into_owned();
    let one = |node: &RunningNode| {
        let socket = node.supervise(Some(library.clone()));
        (node.id(), socket.map_err(|error| error.to_string()))
    };
    node_set.nodes().iter().map(one).collect()
}

impl PreparedRun {
    /// Adds something that the set-up could not do as it should.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    fn run(
        self,
        plan: &Arc<Plan>,
        options: &RunOptions,
        folder: &RunOutputFolder,
        observer: Arc<dyn Observer>,
        foreground: Option<Foreground>,
    ) -> Result<RunReport, RunError> {
        let mut begun = self.start(plan, options, folder, observer, None)?;
        if let Some(foreground) = foreground {
            begun.put_in_foreground(foreground);
        }
        begun.measure_paths();
        let mut done = begun.through(now(), &options.captures);
        done.results.notes.extend(roots::remove(plan, folder));
        let report = conclude(&done.evidence(plan, options), folder);
        drop((done.connections, done.signals));
        Ok(report)
    }

    /// Starts the threads: from now on packets move.
    pub(crate) fn start(
        self,
        plan: &Arc<Plan>,
        options: &RunOptions,
        folder: &RunOutputFolder,
        observer: Arc<dyn Observer>,
        others: Option<(AgentMembership, RemoteMachines)>,
    ) -> Result<StartedRun, RunError> {
        let (membership, remote) = others.unzip();
        let of_packets = self.records.of_packets();
        let [of_loop, promotion] = self.promotions;
        let packets = PacketLoopSetup {
            remote,
            records: of_packets,
            promotion: of_loop,
            receive_queues: self.receive_queues,
            senders: self.senders,
        };
        let (threads, recording) =
            start_threads(plan, options, folder, &observer, &self.node_set, packets)?;
        let watch = self.replicas.map(|sockets| watch(sockets, &threads.wake)).transpose()?;
        let control =
            ControlListener::open(folder.path()).map_err(step("open the control socket"))?;
        if options.link_latest {
            folder.link_latest()?;
        }
        let readiness = Readiness::of(&self.node_set).map_err(step("watch the nodes"))?;
        let live = RunLoop::new(live::RunLoopSetup {
            plan: Arc::clone(plan),
            base_dir: options.base_dir.clone(),
            folder: folder.clone(),
            late_above: options.max_lateness,
            observer,
            inits: Box::new(self.node_set),
            readiness,
            routes: self.routes,
            records: self.records,
            limits: self.limits,
            signals: self.signals,
            watch,
            control,
            threads,
            membership,
        });
        let PreparedRun { notes, setup, gateway, .. } = self;
        Ok(StartedRun { live, recording, notes, setup, gateway, promotion })
    }
}

/// The nice value of programs, below which windtunnel itself stays: packets must not wait for
/// programs. Where windtunnel may not raise itself (only root may), programs are made a little
/// nicer than it.
fn nice_of_programs() -> i32 {
    let own = schedule::nice().unwrap_or(0);
    match schedule::set_nice(own - NICE_DISTANCE) {
        Ok(()) => own,
        Err(_) => (own + NICE_DISTANCE).min(NICE_MOST),
    }
}

/// What the packet loop needs beside the nodes.
struct PacketLoopSetup {
    remote: Option<RemoteMachines>,
    records: RecordSetup,
    promotion: Option<RealTimePromoter>,
    receive_queues: Vec<ReceiveQueue>,
    senders: Vec<LaneSenderRegion>,
}

fn start_threads(
    plan: &Arc<Plan>,
    options: &RunOptions,
    folder: &RunOutputFolder,
    observer: &Arc<dyn Observer>,
    node_set: &NodeSet,
    packets: PacketLoopSetup,
) -> Result<(Threads, RunRecorderThread), RunError> {
    let wake = Arc::new(Wake::open().map_err(step("make an event descriptor"))?);
    let (recorder, recording) = RunRecorder::start(folder, plan)?;
    let limit = options.output_limit.0;
    let (output, matches) = OutputCollector::start(Arc::clone(observer), limit, Arc::clone(&wake))
        .map_err(step("start the output thread"))?;
    let roots = ProgramRootProcesses::default();
    let init = |node| node_set.node(node).map(RunningNode::pid);
    let owners = owners::FlowOwnerSearchSettings::new(plan, &roots, init);
    let setup = PacketLoopParameters {
        plan: Arc::clone(plan),
        interfaces: node_set.fabric().to_vec(),
        samples: Box::new(recorder.clone()),
        late_above: options.max_lateness,
        packet_memory: options.packet_memory.0,
        notify: Arc::clone(&wake),
        remote: packets.remote,
        records: Some(packets.records),
        promotion: packets.promotion,
        receive_queues: packets.receive_queues,
        owners,
        senders: packets.senders,
    };
    let (dataplane, notes) = Dataplane::start(setup).map_err(step("open the packet socket"))?;
    Ok((Threads { wake, recorder, output, matches, dataplane, notes, roots }, recording))
}

/// Signals that end a run.
pub(crate) const ENDING: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];
/// Signals that a program in the foreground gets, and that end the run where it does not run.
const PASSED_ON: [Signal; 6] =
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];
/// How long a node may take to open a socket.
const DIAGNOSIS_PATIENCE: Duration = Duration::from_secs(10);
/// Nine times the weight, sched_nice_design in the kernel's documentation.
const NICE_DISTANCE: i32 = 10;
const NICE_MOST: i32 = 19;
