//! The sources of a recording outside an emulation, and the thread that writes what they say.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use windtunnel_evidence::file::{EventSource, RecordFileHeader};
use windtunnel_folder::{RECORDS, RunOutputFolder};
use windtunnel_model::NodeId;
use windtunnel_model::plan::RecordingPolicy;
use windtunnel_model::record::kind::RecordSource;
use windtunnel_model::record::region::RecordRegionLayout;
use windtunnel_record::connections::{TcpDiagnosisSource, TcpDiagnosisSwitch};
use windtunnel_record::diagnosis::{self, TcpDiagnosis};
use windtunnel_record::drain::{
    self, AddressAnonymiser, CallRecordingScope, RecordDrain, RecordDrainFilter, RecordDrainStatus,
    RecordFeed, RecordFileLimits,
};
use windtunnel_record::feed::RegionFeed;
use windtunnel_record::kernel::{Kernel, KernelTraceScope, KernelTraceSettings};
use windtunnel_record::notification::{CallRecorder, CallRecordingReport};
use windtunnel_record::owners::{self, SocketAttribution, SocketCookieSet, SocketNotingFeed};
use windtunnel_record::preload;
use windtunnel_sys::namespace::{self, NamespaceFlags, UserNamespaceTarget as NamespaceOf};
use windtunnel_sys::process::Pid;
use windtunnel_sys::{clock, process, sock_diag, unix};
use windtunnel_trace::report;

use super::place::RecordingLibraryFolder;
use super::{ProcessRecordingError, ProcessRecordingOptions, refused};
use crate::error::system;

/// What is recorded.
#[derive(Debug, Clone, Copy)]
pub(super) enum ProcessRecordingTarget<'a> {
    /// A command that this process will start, by its name.
    Command(&'a str),
    /// A process that runs, and what it starts.
    Process(u32),
}

/// All that leave records, and the thread that writes them.
pub(super) struct ProcessRecorder {
    drain: RecordDrain,
    place: Option<RecordingLibraryFolder>,
    supervision: Option<(CallRecorder, OwnedFd)>,
    connections: TcpDiagnosisSwitch,
    kernel: Option<Kernel>,
    anonymous: bool,
    /// By layer: why it is not recorded.
    unavailable: BTreeMap<RecordSource, String>,
    /// What is known from the beginning not to be seen.
    unseen: Vec<String>,
}

/// Sources before the thread starts.
#[derive(Default)]
struct ProcessRecordingSources {
    feeds: Vec<Box<dyn RecordFeed>>,
    diagnosis: Option<TcpDiagnosis>,
    place: Option<RecordingLibraryFolder>,
    supervision: Option<(CallRecorder, OwnedFd)>,
    kernel: Option<Kernel>,
    unavailable: BTreeMap<RecordSource, String>,
    unseen: Vec<String>,
}

impl ProcessRecorder {
    /// Starts what is wanted and there.
    pub(super) fn start(
        wanted: &ProcessRecordingOptions,
        folder: &RunOutputFolder,
        target: ProcessRecordingTarget<'_>,
    ) -> Result<ProcessRecorder, ProcessRecordingError> {
        let mut ready = ProcessRecordingSources {
            unavailable: refused(target),
            ..ProcessRecordingSources::default()
        };
        let is_wanted = |layer: RecordSource| wanted.layers.is_empty() || wanted.layers.has(layer);
        let cookies = SocketCookieSet::default();
        for layer in RecordSource::ALL.into_iter().filter(|layer| is_wanted(*layer)) {
            if !ready.unavailable.contains_key(&layer)
                && let Err(why) = ready.add(layer, target, &cookies)
            {
                ready.unavailable.insert(layer, why);
            }
        }
        ready.unavailable.retain(|layer, _| is_wanted(*layer));
        if let Some((layer, why)) = ready.missing(wanted, target) {
            return Err(ProcessRecordingError::Layer { layer, why });
        }
        Ok(ready.run(wanted, folder, target).map_err(system("write records"))?)
    }

    /// Adds a sentence on what is not seen.
    pub(super) fn note_unseen(&mut self, what: String) {
        self.unseen.push(what);
    }

    /// What a program finds its way here by.
    pub(super) fn place(&self) -> Option<&RecordingLibraryFolder> {
        self.place.as_ref()
    }

    /// Where programs show calls that the library does not see.
    pub(super) fn supervisor(&self) -> Option<BorrowedFd<'_>> {
        self.supervision.as_ref().map(|(_, socket)| socket.as_fd())
    }

    /// Filters under which programs live.
    pub(super) fn living(&self) -> u64 {
        self.supervision.as_ref().map_or(0, |(supervision, _)| supervision.living())
    }

    /// Writes what there is, and says what that was.
    pub(super) fn finish(self) -> report::RecordingReport {
        // The kernel says from a thread of its own that sockets were destroyed.
        thread::sleep(diagnosis::INTERVAL);
        let ProcessRecorder { drain, place, supervision, connections, mut kernel, .. } = self;
        if let Some(place) = &place {
            place.region.set_recording(false);
        }
        let mut unseen = self.unseen;
        let findings = supervision.map(|(supervision, socket)| {
            drop(socket);
            supervision.finish()
        });
        unseen.extend(findings.iter().flat_map(sentences));
        if let Some(Err(error)) = kernel.as_mut().map(Kernel::stop) {
            unseen.push(error.reason);
        }
        let status = drain.finish();
        let mut unavailable = self.unavailable;
        if let Some(why) = connections.failure() {
            unavailable.insert(RecordSource::Tcp, why);
        }
        unseen.extend(status.unseen.iter().map(|(_, what)| what.clone()));
        report(&status, &unavailable, unseen, self.anonymous)
    }
}

impl ProcessRecordingSources {
    /// Makes the sources of a layer; or why it cannot be recorded.
    fn add(
        &mut self,
        layer: RecordSource,
        target: ProcessRecordingTarget<'_>,
        cookies: &SocketCookieSet,
    ) -> Result<(), String> {
        match layer {
            RecordSource::Engine => Ok(()),
            RecordSource::Calls => self.add_calls(cookies),
            RecordSource::Tcp => self.add_connections(target, cookies),
            RecordSource::Kernel => self.add_kernel(target, cookies).map_err(|error| error.reason),
        }
    }

    fn add_calls(&mut self, cookies: &SocketCookieSet) -> Result<(), String> {
        if std::env::var_os(preload::REGION_VARIABLE).is_some() {
            return Err("programs here leave records of them for another recorder".to_owned());
        }
        let cannot = |error| format!("programs cannot be given the library: {error}");
        let mut place = RecordingLibraryFolder::make(LAYOUT).map_err(cannot)?;
        let source = EventSource::of_node(RecordSource::Calls, MACHINE.0, 0);
        let feed = RegionFeed::new(Arc::clone(&place.region), source);
        self.feeds.push(Box::new(SocketNotingFeed::new(feed, cookies.clone())));
        match place.door.take().as_ref().map(supervise) {
            Some(Ok((supervision, socket, feeds))) => {
                let noted =
                    feeds.into_iter().map(|feed| SocketNotingFeed::new(feed, cookies.clone()));
                self.feeds.extend(noted.map(|feed| Box::new(feed) as Box<dyn RecordFeed>));
                self.supervision = Some((supervision, socket));
            }
            Some(Err(error)) => {
                self.unseen.push(format!("no calls of static programs are seen: {error}"));
            }
            None => {}
        }
        place.region.set_recording(true);
        self.place = Some(place);
        Ok(())
    }

    fn add_connections(
        &mut self,
        target: ProcessRecordingTarget<'_>,
        cookies: &SocketCookieSet,
    ) -> Result<(), String> {
        let own = process::current().as_raw_nonzero().get().cast_unsigned();
        let (root, socket) = match target {
            ProcessRecordingTarget::Command(_) => (own, sock_diag::open()),
            ProcessRecordingTarget::Process(process) => {
                let why =
                    |error| format!("the sockets of process {process} cannot be seen: {error}");
                owners::may_see(process).map_err(why)?;
                (process, open_beside(process))
            }
        };
        let why = |error| format!("the kernel cannot be asked about sockets: {error}");
        let owners = SocketAttribution::new(vec![root], cookies.clone());
        let socket = socket.map_err(why)?;
        let diagnosis = TcpDiagnosis::of_processes(MACHINE, socket, owners, diagnosis::INTERVAL);
        self.diagnosis = Some(diagnosis);
        Ok(())
    }

    fn add_kernel(
        &mut self,
        target: ProcessRecordingTarget<'_>,
        cookies: &SocketCookieSet,
    ) -> Result<(), windtunnel_record::kernel::KernelLayerFailure> {
        let mut kernel = Kernel::open(KernelTraceSettings::of(KernelTraceScope::Processes))?;
        let feed = kernel.add_processes(MACHINE.0)?;
        let own = process::current().as_raw_nonzero().get().cast_unsigned();
        match target {
            // The command will be a child of this process, which has no connections itself.
            ProcessRecordingTarget::Command(_) => kernel.add_process(own)?,
            ProcessRecordingTarget::Process(process) => kernel.add_process(process)?,
        }
        kernel.start()?;
        if let ProcessRecordingTarget::Process(process) = target {
            // What it starts from now on is seen by itself.
            for child in owners::tree(&[process]) {
                kernel.add_process(child)?;
            }
        }
        let missing = kernel.missing().iter();
        self.unseen.extend(missing.map(|(point, why)| format!("the kernel's {point}: {why}")));
        self.feeds.push(Box::new(SocketNotingFeed::new(feed, cookies.clone())));
        self.kernel = Some(kernel);
        Ok(())
    }

    /// A layer that has to be recorded and cannot be.
    fn missing(
        &self,
        wanted: &ProcessRecordingOptions,
        target: ProcessRecordingTarget<'_>,
    ) -> Option<(RecordSource, String)> {
        let is_needed = |layer: RecordSource| match target {
            ProcessRecordingTarget::Process(_) if wanted.layers.is_empty() => {
                layer == RecordSource::Kernel
            }
            _ => wanted.layers.has(layer),
        };
        let mut missing = self.unavailable.iter().filter(|(layer, _)| is_needed(**layer));
        missing.next().map(|(layer, why)| (*layer, why.clone()))
    }

    fn run(
        self,
        wanted: &ProcessRecordingOptions,
        folder: &RunOutputFolder,
        target: ProcessRecordingTarget<'_>,
    ) -> io::Result<ProcessRecorder> {
        let usual = RecordingPolicy::default();
        let has_calls = self.place.is_some();
        let setup = drain::RecordDrainSettings {
            folder: folder.path().join(RECORDS),
            prefix: String::new(),
            header: header(wanted, target, &self.unavailable),
            limits: RecordFileLimits {
                max: wanted.max.0,
                rotate: usual.rotate.0,
                keep: usual.keep,
            },
            filter: RecordDrainFilter::default(),
            homes: if has_calls {
                CallRecordingScope::All(MACHINE.0)
            } else {
                CallRecordingScope::default()
            },
            anonymity: wanted.anonymous.then(AddressAnonymiser::default),
            interval: drain::INTERVAL,
        };
        let drain = RecordDrain::start(setup, self.feeds)?;
        let connections = TcpDiagnosisSwitch::default();
        connections.set(true);
        if let Some(diagnosis) = self.diagnosis {
            drain.consult(Box::new(TcpDiagnosisSource::new(diagnosis, connections.clone())));
        }
        Ok(ProcessRecorder {
            drain,
            place: self.place,
            supervision: self.supervision,
            connections,
            kernel: self.kernel,
            anonymous: wanted.anonymous,
            unavailable: self.unavailable,
            unseen: self.unseen,
        })
    }
}

/// The thread that lets calls of static programs go on, and the socket by which the command shows
/// its own.
#[expect(clippy::type_complexity, reason = "private, and destructured at its only call")]
fn supervise(door: &OwnedFd) -> io::Result<(CallRecorder, OwnedFd, Vec<Box<dyn RecordFeed>>)> {
    let (ours, theirs) = unix::seqpacket_pair()?;
    unix::send(&theirs, b"inside", &[door.as_fd()])?;
    let (supervision, feeds) = CallRecorder::start(vec![(MACHINE, ours)], SHOWN_MAX)?;
    Ok((supervision, theirs, feeds))
}

/// A socket of the network namespace of a process, if that may be entered.
fn open_beside(process: u32) -> io::Result<OwnedFd> {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net"));
    if namespace(&process.to_string())? == namespace("self")? {
        return sock_diag::open();
    }
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(io::ErrorKind::NotFound)?;
    let theirs = namespace::open(NamespaceOf::Process(pid), NamespaceFlags::NET)?;
    let inside = move || {
        namespace::setns(&theirs, NamespaceFlags::NET)?;
        sock_diag::open()
    };
    // Of a thread, which goes with its namespace.
    let panicked = |_| io::Error::other("the thread that enters the network namespace panicked");
    thread::spawn(inside).join().map_err(panicked)?
}

fn header(
    wanted: &ProcessRecordingOptions,
    target: ProcessRecordingTarget<'_>,
    unavailable: &BTreeMap<RecordSource, String>,
) -> RecordFileHeader {
    let now = clock::monotonic_ns();
    let is_wanted = |layer: &RecordSource| {
        (wanted.layers.is_empty() || wanted.layers.has(*layer)) && !unavailable.contains_key(layer)
    };
    let layers = RecordSource::ALL.iter().filter(|layer| is_wanted(layer));
    RecordFileHeader {
        run: match target {
            ProcessRecordingTarget::Command(name) => name.to_owned(),
            ProcessRecordingTarget::Process(process) => format!("process {process}"),
        },
        origin_ns: now,
        origin_unix_ns: clock::realtime_ns(),
        anonymous: wanted.anonymous,
        layers: layers.map(|layer| layer.name().to_owned()).collect(),
        nodes: vec![MACHINE_NAME.to_owned()],
        ..RecordFileHeader::new(&format!("windtunnel {}", env!("CARGO_PKG_VERSION")))
    }
}

/// What calls of static programs were not seen.
fn sentences(findings: &CallRecordingReport) -> Vec<String> {
    let programs = findings.unseen.iter().map(|(_, program, why)| format!("{program}: {why}"));
    let mut sentences: Vec<String> = programs.collect();
    if let Some(why) = &findings.failure {
        sentences.push(format!("{} calls of static programs: {why}", findings.failed));
    }
    if findings.unseen_more > 0 {
        sentences.push(format!("{} more programs", findings.unseen_more));
    }
    sentences
}

fn report(
    status: &RecordDrainStatus,
    unavailable: &BTreeMap<RecordSource, String>,
    unseen: Vec<String>,
    anonymous: bool,
) -> report::RecordingReport {
    let unavailable = unavailable.iter().map(|(layer, why)| (layer.name().to_owned(), why.clone()));
    report::RecordingReport {
        layers: status.report_layers(),
        missing: BTreeMap::new(),
        unavailable: unavailable.collect(),
        unseen,
        bytes: status.written_bytes,
        files: status.files,
        removed_events: status.removed_events,
        anonymous,
        failure: status.failure.clone(),
        read: status.seen,
        read_ns: status.took_ns,
        overhead_ps: BTreeMap::new(),
    }
}

/// The only node: the machine itself.
const MACHINE: NodeId = NodeId(0);
const MACHINE_NAME: &str = "machine";
/// As for a node of a run.
const LAYOUT: RecordRegionLayout =
    RecordRegionLayout { rings: 1, slots: 1 << 17, sockets: 1 << 14 };
/// Calls of static programs that wait for the thread of records.
const SHOWN_MAX: usize = 1 << 14;
