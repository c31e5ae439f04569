//! What the kernel's network stack does, from its tracepoints, by BPF programs.
//!
//! Theory of operation. The programs of `bpf/kernel.bpf.c` are attached to tracepoints that have
//! BTF (`tp_btf`): there they see every socket call, acknowledgement, retransmission and packet of
//! the machine, drop what is not of a network namespace (or a process) that was asked for, and put
//! records into the ring of their processor, which this process has mapped. A full ring never holds up the kernel: the
//! program counts what it could not record, by namespace. While nothing is recorded, nothing is
//! attached, and costs nothing.
//!
//! The object that is loaded was compiled before and is part of the source tree
//! (`cargo run -p xtask -- bpf` compiles it anew). Where fields are in the running kernel is found
//! from that kernel's BTF when it is loaded.

mod arrays;
mod programs;
mod ring;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use windtunnel_evidence::file::EventSource;
use windtunnel_model::record::EventRecord;
use windtunnel_model::record::kind::RecordSource;

use crate::drain::RecordFeed;
use programs::BpfProgramSet;
pub use programs::KernelLayerFailure;
use ring::KernelRecordRings;

/// What the kernel's events are chosen by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelTraceScope {
    /// Network namespaces.
    Namespaces,
    /// Processes, and those that they start.
    Processes,
}

/// What is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelTraceSettings {
    pub scope: KernelTraceScope,
    /// Records for which each processor's ring has room: a power of two; `None`: what suffices.
    pub ring_slots: Option<u32>,
    /// Also counts events apart from records and losses, for [`KernelFeed::counts`].
    pub counts_events: bool,
}

impl KernelTraceSettings {
    /// The usual ones.
    #[must_use]
    pub const fn of(scope: KernelTraceScope) -> KernelTraceSettings {
        KernelTraceSettings { scope, ring_slots: None, counts_events: false }
    }
}

/// The loaded programs. Dropped, they are gone from the kernel.
#[derive(Debug)]
pub struct Kernel {
    scope: KernelTraceScope,
    programs: BpfProgramSet,
    ring: Arc<Mutex<KernelRecordRings>>,
}

/// Events of a source so far, as the programs have counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelEventCounts {
    /// Recorded or lost; 0 where they are not counted.
    pub events: u64,
    pub lost: u64,
}

impl Kernel {
    /// Loads the programs. Nothing is recorded before [`Kernel::start`].
    ///
    /// # Errors
    /// If the kernel cannot or may not run them.
    pub fn open(settings: KernelTraceSettings) -> Result<Kernel, KernelLayerFailure> {
        let mut programs = BpfProgramSet::load(settings)?;
        let ring = KernelRecordRings::new(&mut programs)?;
        Ok(Kernel { scope: settings.scope, programs, ring: Arc::new(Mutex::new(ring)) })
    }

    /// Tracepoints that this kernel has not, with why; what they would show is not recorded.
    #[must_use]
    pub fn missing(&self) -> &BTreeMap<&'static str, String> {
        &self.programs.missing
    }

    /// Records events of a network namespace, by the number of its inode, as those of a node.
    ///
    /// # Errors
    /// If the kernel refuses; if what is recorded is chosen by process.
    pub fn add_namespace(
        &mut self,
        inode: u32,
        node: u32,
    ) -> Result<KernelFeed, KernelLayerFailure> {
        if self.scope != KernelTraceScope::Namespaces {
            return Err(KernelLayerFailure::new("events are chosen by process, not by namespace"));
        }
        self.add(inode, EventSource::of_node(RecordSource::Kernel, node, 0))
    }

    /// Records events of all processes that [`Kernel::add_process`] names, as those of a node.
    ///
    /// # Errors
    /// If the kernel refuses; if what is recorded is chosen by namespace.
    pub fn add_processes(&mut self, node: u32) -> Result<KernelFeed, KernelLayerFailure> {
        if self.scope != KernelTraceScope::Processes {
            return Err(KernelLayerFailure::new("events are chosen by namespace, not by process"));
        }
        self.add(ALL_PROCESSES, EventSource::of_node(RecordSource::Kernel, node, 0))
    }

    /// Records what sockets of a process do from now on, and of the processes that it starts.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_process(&mut self, process: u32) -> Result<(), KernelLayerFailure> {
        self.programs.add_process(process)
    }

    /// Attaches the programs; nothing is done where they are attached.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn start(&mut self) -> Result<(), KernelLayerFailure> {
        self.programs.attach()
    }

    /// Detaches them. What is in the ring can still be taken.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn stop(&mut self) -> Result<(), KernelLayerFailure> {
        self.programs.detach()
    }

    /// Whether events of a node are recorded; from when it was added on they are. What happens
    /// while they are not costs a program's call that finds its source, and is not counted.
    pub fn set_recording(&self, node: u32, is_on: bool) {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner).set_on(node, is_on);
    }

    fn add(&mut self, key: u32, source: EventSource) -> Result<KernelFeed, KernelLayerFailure> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner).add(key, source.node)?;
        Ok(KernelFeed { source, ring: Arc::clone(&self.ring) })
    }
}

/// The key of the source of all processes, which no namespace has.
const ALL_PROCESSES: u32 = 1;

/// Records of one network namespace, or of all processes.
#[derive(Debug)]
pub struct KernelFeed {
    source: EventSource,
    ring: Arc<Mutex<KernelRecordRings>>,
}

impl KernelFeed {
    /// What the programs have counted.
    #[must_use]
    pub fn counts(&self) -> KernelEventCounts {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner).counts(self.source.node)
    }
}

impl RecordFeed for KernelFeed {
    fn source(&self) -> EventSource {
        self.source
    }

    fn take(&mut self, most: usize, records: &mut Vec<EventRecord>) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.take(self.source.node, most, records);
    }

    fn fill(&self) -> (u64, u64) {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner).fill()
    }
}
