//! The evidence of a run: which sources leave records, and the thread that writes them.
//!
//! A run that may be recorded has, from the beginning, what cannot come later: the library that
//! programs load, and a region of memory for each node, in which they leave records of their calls.
//! The other sources and the thread begin with the recording.

mod header;
pub(crate) mod report;
mod sources;
mod status;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use windtunnel_engine::RecordSettings;
use windtunnel_evidence::file::EventSource;
use windtunnel_folder::RECORDS;
use windtunnel_model::plan::{NodeInterface, RecordChoice, RecordMode, RecordingPolicy};
use windtunnel_model::record::kind::RecordSource;
use windtunnel_model::record::region::RecordRegionLayout;
use windtunnel_model::{Bytes, NodeId, Plan, Span, Time};
use windtunnel_record::connections::{TcpDiagnosisSource, TcpDiagnosisSwitch};
use windtunnel_record::diagnosis::TcpDiagnosis;
use windtunnel_record::drain::{
    self, AddressAnonymiser, CallRecordingScope, RecordDrain, RecordDrainFilter, RecordFileLimits,
};
use windtunnel_record::feed::RegionFeed;
use windtunnel_record::kernel::Kernel;
use windtunnel_record::notification::CallRecorder;
use windtunnel_record::overhead;
use windtunnel_sys::clock;
use windtunnel_sys::region::MappedRecordRegion;

use sources::{diagnosis_of, see_nodes, supervise};
use windtunnel_dataplane::RecordSetup;

/// What a recording needs.
pub(crate) struct EvidenceRecorderSetup {
    pub(crate) plan: Arc<Plan>,
    pub(crate) plan_hash: String,
    /// The run folder.
    pub(crate) folder: PathBuf,
    /// The number and the name of this machine, in a run over several.
    pub(crate) member: Option<(u16, String)>,
    /// The files that the programs of nodes leave records in.
    pub(crate) regions: Vec<(NodeId, OwnedFd)>,
    /// By node: a socket that asks the kernel about the node's sockets, or why there is none.
    pub(crate) diagnosis: Vec<(NodeId, io::Result<OwnedFd>)>,
    /// By node: where programs show the calls that the library cannot see, or why they do not.
    pub(crate) supervised: Vec<(NodeId, Result<OwnedFd, String>)>,
    /// What sees the kernel's stack; `None`: that is not wanted.
    pub(crate) kernel: Option<Result<Kernel, String>>,
    /// Why programs leave no records, though they should.
    pub(crate) without_calls: Option<String>,
    /// Whether it is measured what a record costs.
    pub(crate) measure_overhead: bool,
}

/// The evidence of a run.
pub(crate) struct EvidenceRecorder {
    plan: Arc<Plan>,
    plan_hash: String,
    folder: PathBuf,
    member: Option<(u16, String)>,
    /// As it is now asked for.
    recording: RecordingPolicy,
    is_on: bool,
    regions: Vec<(NodeId, Arc<MappedRecordRegion>)>,
    /// Where the packet loop leaves its records.
    packets: Arc<MappedRecordRegion>,
    /// Looks at the state of connections, until the thread has it.
    diagnosis: Option<TcpDiagnosis>,
    connections: TcpDiagnosisSwitch,
    kernel: Option<Kernel>,
    /// Lets calls go on that the library cannot see, also while nothing is recorded.
    supervision: Option<CallRecorder>,
    /// Sources that the thread gets when it starts.
    feeds: Vec<Box<dyn drain::RecordFeed>>,
    /// What is known from the beginning not to be seen.
    unseen: Vec<String>,
    /// By layer: why it cannot be recorded.
    unavailable: BTreeMap<RecordSource, String>,
    drain: Option<RecordDrain>,
    /// When the run began, on its clock and in nanoseconds since 1970.
    origin: (Time, u64),
    /// By how many nanoseconds the clock of the first machine is ahead of this one's.
    ahead_ns: Option<i64>,
    /// Why recording could not begin.
    failure: Option<String>,
    /// What a record costs at its source, where that was measured.
    overhead_ps: BTreeMap<String, u64>,
    measure_overhead: bool,
}

impl EvidenceRecorder {
    /// Gives regions their layout. Nothing is recorded yet.
    ///
    /// # Errors
    /// If there is no memory for the packet loop's records.
    pub(crate) fn new(setup: EvidenceRecorderSetup) -> io::Result<EvidenceRecorder> {
        let EvidenceRecorderSetup {
            plan, plan_hash, folder, member, regions, without_calls, ..
        } = setup;
        let mut unavailable = BTreeMap::new();
        let layout = layout(regions.len());
        let made: io::Result<Vec<(NodeId, Arc<MappedRecordRegion>)>> = regions
            .into_iter()
            .map(|(node, file)| Ok((node, Arc::new(MappedRecordRegion::create_in(file, layout)?))))
            .collect();
        let regions = made.unwrap_or_else(|error| {
            unavailable
                .insert(RecordSource::Calls, format!("cannot share memory with nodes: {error}"));
            Vec::new()
        });
        if regions.is_empty() {
            let why = without_calls.unwrap_or_else(|| WITHOUT_LIBRARY.to_owned());
            unavailable.entry(RecordSource::Calls).or_insert(why);
        }
        let mut unseen = Vec::new();
        let (supervision, mut feeds) = match supervise(&plan, setup.supervised, &mut unseen) {
            Ok(started) => started,
            Err(error) => {
                unseen.push(format!("no calls of static programs are seen: {error}"));
                (None, Vec::new())
            }
        };
        let wanted = setup.kernel.unwrap_or_else(|| Err(WITHOUT_KERNEL.to_owned()));
        let seen =
            wanted.and_then(|kernel| see_nodes(kernel, &setup.diagnosis, &mut feeds, &mut unseen));
        let kernel = seen.map_err(|why| unavailable.insert(RecordSource::Kernel, why)).ok();
        let diagnosis = diagnosis_of(setup.diagnosis, plan.record.tcp_interval);
        let diagnosis = diagnosis.map_err(|why| unavailable.insert(RecordSource::Tcp, why)).ok();
        Ok(EvidenceRecorder {
            packets: Arc::new(MappedRecordRegion::create(PACKETS)?.0),
            diagnosis,
            connections: TcpDiagnosisSwitch::default(),
            kernel,
            supervision,
            feeds,
            unseen,
            recording: plan.record.clone(),
            plan,
            plan_hash,
            folder: folder.join(RECORDS),
            member,
            is_on: false,
            regions,
            unavailable,
            drain: None,
            origin: (Time::ZERO, 0),
            ahead_ns: None,
            failure: None,
            overhead_ps: BTreeMap::new(),
            measure_overhead: setup.measure_overhead,
        })
    }

    /// Measures what a record costs, if that is wanted; a sentence if it cannot be.
    pub(crate) fn measure_overhead(&mut self) -> Option<String> {
        if !self.measure_overhead {
            return None;
        }
        match overhead::measure(&self.folder) {
            Ok(costs) => {
                self.overhead_ps = costs;
                None
            }
            Err(error) => Some(format!("cannot measure what a record costs: {error}")),
        }
    }

    /// The run begins. A recording that cannot begin does not end it.
    pub(crate) fn begin(&mut self, origin: Time) {
        let since_ns = clock::monotonic_ns().saturating_sub(origin.as_nanos());
        self.origin = (origin, clock::realtime_ns().saturating_sub(since_ns));
        if self.recording.mode == RecordMode::On
            && let Err(why) = self.start(None, None)
        {
            self.failure = Some(why);
        }
    }

    /// What is added to the times of the run's clock, to have nanoseconds since 1970; `None` before
    /// the run begins.
    pub(crate) fn unix_offset_ns(&self) -> Option<u64> {
        let (origin, origin_unix_ns) = self.origin;
        origin_unix_ns.checked_sub(origin.as_nanos()).filter(|offset| *offset > 0)
    }

    /// Records what is chosen from now on: without a choice, what the file says.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(crate) fn start(
        &mut self,
        choice: Option<RecordChoice>,
        max: Option<Bytes>,
    ) -> Result<(), String> {
        let choice = choice.unwrap_or_else(|| self.plan.record.choice.clone());
        for layer in choice.layers.iter() {
            if let Some(why) = self.unavailable.get(&layer) {
                return Err(format!("layer {} cannot be recorded: {why}", layer.name()));
            }
        }
        self.recording.choice = choice;
        self.recording.max = max.unwrap_or(self.recording.max);
        let filter = RecordDrainFilter::new(&self.recording.choice, &self.plan);
        match &self.drain {
            Some(drain) => {
                drain.choose(filter);
                drain.limit(limits(&self.recording));
            }
            None => {
                let drain = self.start_drain(filter).map_err(|error| {
                    format!("cannot write records to {}: {error}", self.folder.display())
                })?;
                self.drain = Some(drain);
            }
        }
        self.is_on = true;
        self.switch();
        Ok(())
    }

    /// Has sources leave nothing from now on.
    pub(crate) fn stop(&mut self) {
        self.is_on = false;
        self.switch();
    }

    /// How other machines' clocks stand to this one's. Times of records are compared on that of
    /// the first one.
    pub(crate) fn note_clocks(&mut self, ahead_ns: &[(u16, i64)]) {
        let first = ahead_ns.iter().find(|(member, _)| *member == 0);
        let Some((_, ahead_ns)) = first else { return };
        self.ahead_ns = Some(*ahead_ns);
        if let Some(drain) = &self.drain {
            drain.note_clock(*ahead_ns);
        }
    }

    /// Waits until what sources have left is in files.
    pub(crate) fn flush(&self) {
        if let Some(drain) = &self.drain {
            drain.flush();
        }
    }

    /// Where the packet loop leaves its records, of which it leaves none yet.
    pub(crate) fn of_packets(&self) -> RecordSetup {
        // Where streams begin is kept also for a recording that begins later.
        let standby = self.recording.mode != RecordMode::Off;
        RecordSetup { region: Arc::clone(&self.packets), settings: None, standby }
    }

    /// Which packets the packet loop is to record now.
    pub(crate) fn packets(&self) -> Option<RecordSettings> {
        let choice = &self.recording.choice;
        let wanted = self.is_on && choice.has_layer(RecordSource::Engine);
        wanted.then(|| RecordSettings::new(choice, &self.plan))
    }

    /// Has sources leave what is wanted of them.
    fn switch(&self) {
        let choice = &self.recording.choice;
        self.connections.set(self.is_on && choice.has_layer(RecordSource::Tcp));
        let kernel = self.is_on && choice.has_layer(RecordSource::Kernel);
        if let Some(seen) = &self.kernel {
            for node in (0..).take(self.plan.nodes.len()).map(NodeId) {
                seen.set_recording(node.0, kernel && choice.has_node(node));
            }
        }
        if let Some(supervision) = &self.supervision {
            supervision.set_recording(self.is_on && choice.has_layer(RecordSource::Calls));
        }
        for (node, region) in &self.regions {
            let wanted = choice.has_layer(RecordSource::Calls) && choice.has_node(*node);
            region.set_recording(self.is_on && wanted);
        }
    }

    fn start_drain(&mut self, filter: RecordDrainFilter) -> io::Result<RecordDrain> {
        let setup = drain::RecordDrainSettings {
            folder: self.folder.clone(),
            prefix: self
                .member
                .as_ref()
                .map_or_else(String::new, |(number, _)| format!("{number}-")),
            header: self.header(),
            limits: limits(&self.recording),
            filter,
            homes: self.homes(),
            anonymity: self.recording.anonymous.then(AddressAnonymiser::default),
            interval: drain::INTERVAL.min(span(self.recording.tcp_interval)),
        };
        let feed = |(node, region): &(NodeId, Arc<MappedRecordRegion>)| {
            let source = EventSource::of_node(RecordSource::Calls, node.0, 0);
            Box::new(RegionFeed::new(Arc::clone(region), source)) as Box<dyn drain::RecordFeed>
        };
        let engine = EventSource::of_machine(RecordSource::Engine, 0);
        let engine: Box<dyn drain::RecordFeed> =
            Box::new(RegionFeed::new(Arc::clone(&self.packets), engine));
        let feeds = std::iter::once(engine).chain(self.regions.iter().map(feed));
        let feeds = feeds.chain(self.feeds.drain(..));
        let drain = RecordDrain::start(setup, feeds.collect())?;
        self.ahead_ns.into_iter().for_each(|ahead_ns| drain.note_clock(ahead_ns));
        if let Some(diagnosis) = self.diagnosis.take() {
            drain.consult(Box::new(TcpDiagnosisSource::new(diagnosis, self.connections.clone())));
        }
        Ok(drain)
    }

    /// Whose calls should be there.
    fn homes(&self) -> CallRecordingScope {
        let choice = &self.recording.choice;
        let wanted = self
            .regions
            .iter()
            .filter(|(node, _)| choice.has_layer(RecordSource::Calls) && choice.has_node(*node));
        let addresses = wanted.flat_map(|(node, _)| {
            let interfaces = self.plan.nodes[node.index()].interfaces.iter();
            interfaces.flat_map(NodeInterface::addresses).map(|address| (address, node.0))
        });
        CallRecordingScope::Of(addresses.collect())
    }
}

/// The more nodes, the less room for each: all together take less than a gigabyte when every slot
/// has been used.
fn layout(nodes: usize) -> RecordRegionLayout {
    let slots = match nodes {
        0..=64 => 1 << 17,
        65..=256 => 1 << 16,
        _ => 1 << 14,
    };
    RecordRegionLayout { rings: 1, slots, sockets: 1 << 14 }
}

fn span(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

fn limits(recording: &RecordingPolicy) -> RecordFileLimits {
    let RecordingPolicy { max, rotate, keep, .. } = recording;
    RecordFileLimits { max: max.0, rotate: rotate.0, keep: *keep }
}

/// Room for 10 ms of 26 million records a second; a packet makes three at each link.
const PACKETS: RecordRegionLayout = RecordRegionLayout { rings: 1, slots: 1 << 18, sockets: 0 };
const WITHOUT_KERNEL: &str = "nothing looks at the kernel's stack; write `record: standby`, so that \
                              it can begin at any time";
const WITHOUT_LIBRARY: &str = "programs were started without the library for it; write \
                               `record: standby`, so that it can begin at any time";
