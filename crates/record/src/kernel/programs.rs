//! Loading and attaching the programs.

use std::collections::BTreeMap;
use std::fmt;

use aya::maps::{HashMap, Map, MapData};
use aya::programs::BtfTracePoint;
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::{Btf, Ebpf, EbpfLoader, VerifierLogLevel, include_bytes_aligned};
use windtunnel_sys::capability;

use super::{KernelTraceScope, KernelTraceSettings};

/// Why the kernel layer is not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelLayerFailure {
    pub reason: String,
}

/// The programs in the kernel.
#[derive(Debug)]
pub(super) struct BpfProgramSet {
    object: Ebpf,
    processes: HashMap<MapData, u32, u32>,
    /// By tracepoint; `None`: not attached now.
    loaded: BTreeMap<&'static str, Option<BtfTracePointLinkId>>,
    pub(super) missing: BTreeMap<&'static str, String>,
    /// Rings, one for each processor that there may be, and the slots of each.
    pub(super) cpus: u32,
    pub(super) slots: u32,
}

impl BpfProgramSet {
    pub(super) fn load(settings: KernelTraceSettings) -> Result<BpfProgramSet, KernelLayerFailure> {
        check_rights()?;
        let by_process = settings.scope == KernelTraceScope::Processes;
        let (cpus, slots) = ring_size(settings.ring_slots)?;
        let btf = Btf::from_sys_fs().map_err(|error| {
            KernelLayerFailure::new(format!(
                "the kernel has no type information: {}",
                chain(&error)
            ))
        })?;
        let mut object = EbpfLoader::new()
            .btf(Some(&btf))
            .verifier_log_level(VerifierLogLevel::DISABLE)
            .override_global("by_process", &u32::from(by_process), true)
            .override_global("counts_events", &u32::from(settings.counts_events), true)
            .override_global("ring_slots", &slots, true)
            .override_global("is_weakly_ordered", &u32::from(!cfg!(target_arch = "x86_64")), true)
            .map_max_entries("rings", cpus)
            .map_max_entries("slots", cpus * slots)
            .load(OBJECT)
            .map_err(|error| KernelLayerFailure::new(chain(&error)))?;
        let processes = HashMap::try_from(map(&mut object, "processes")?)
            .map_err(|error| KernelLayerFailure::new(chain(&error)))?;
        let mut programs = BpfProgramSet {
            object,
            processes,
            loaded: BTreeMap::new(),
            missing: BTreeMap::new(),
            cpus,
            slots,
        };
        let of_processes = if by_process { &OF_PROCESSES[..] } else { &[] };
        for name in OF_NETWORK.iter().chain(of_processes) {
            match programs.program(name).and_then(|program| {
                program.load(name, &btf).map_err(|error| KernelLayerFailure::new(chain(&error)))
            }) {
                Ok(()) => drop(programs.loaded.insert(name, None)),
                Err(error) => drop(programs.missing.insert(name, error.reason)),
            }
        }
        programs.some_work()
    }

    /// Kernels differ in the tracepoints that they have; without any of the network's there is
    /// nothing to record.
    fn some_work(self) -> Result<BpfProgramSet, KernelLayerFailure> {
        if OF_NETWORK.iter().any(|name| self.loaded.contains_key(name)) {
            return Ok(self);
        }
        let reason = self.missing.into_values().next().unwrap_or_default();
        Err(KernelLayerFailure::new(reason))
    }

    pub(super) fn add_process(&mut self, process: u32) -> Result<(), KernelLayerFailure> {
        // The programs see the machine's numbers of processes.
        let own = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        if own.as_os_str() != FIRST_PID_NAMESPACE {
            let reason =
                "this process is in a PID namespace, and does not see the machine's numbers";
            return Err(KernelLayerFailure::new(format!("{reason} of processes")));
        }
        self.processes.insert(process, 1, 0).map_err(|error| KernelLayerFailure::new(chain(&error)))
    }

    pub(super) fn attach(&mut self) -> Result<(), KernelLayerFailure> {
        let names: Vec<_> = self.loaded.keys().copied().collect();
        for name in names {
            if self.loaded.get(name).is_some_and(Option::is_none) {
                let link = self.program(name)?.attach();
                let link = link.map_err(|error| KernelLayerFailure::new(chain(&error)))?;
                self.loaded.insert(name, Some(link));
            }
        }
        Ok(())
    }

    pub(super) fn detach(&mut self) -> Result<(), KernelLayerFailure> {
        let names: Vec<_> = self.loaded.keys().copied().collect();
        for name in names {
            if let Some(link) = self.loaded.insert(name, None).flatten() {
                let gone = self.program(name)?.detach(link);
                gone.map_err(|error| KernelLayerFailure::new(chain(&error)))?;
            }
        }
        Ok(())
    }

    /// Takes a map out of the object.
    pub(super) fn map(&mut self, name: &str) -> Result<Map, KernelLayerFailure> {
        map(&mut self.object, name)
    }

    fn program(&mut self, name: &str) -> Result<&mut BtfTracePoint, KernelLayerFailure> {
        let program = self.object.program_mut(name);
        let program =
            program.ok_or_else(|| KernelLayerFailure::new(format!("no program {name}")))?;
        program.try_into().map_err(|error| KernelLayerFailure::new(chain(&error)))
    }
}

impl KernelLayerFailure {
    pub(super) fn new(reason: impl Into<String>) -> KernelLayerFailure {
        KernelLayerFailure { reason: reason.into() }
    }
}

impl fmt::Display for KernelLayerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the layer kernel is not recorded: {}", self.reason)
    }
}

impl std::error::Error for KernelLayerFailure {}

/// An error with its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let (mut text, mut next) = (error.to_string(), error.source());
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

fn map(object: &mut Ebpf, name: &str) -> Result<Map, KernelLayerFailure> {
    object.take_map(name).ok_or_else(|| KernelLayerFailure::new(format!("no map {name}")))
}

/// How many rings there are, and how many slots each has: what is asked for, or an equal part of
/// [`SLOTS`], but not less than [`SLOTS_MIN`].
fn ring_size(slots: Option<u32>) -> Result<(u32, u32), KernelLayerFailure> {
    let cpus = aya::util::nr_cpus().map_err(|(what, error)| {
        KernelLayerFailure::new(format!("the number of processors is not known: {what}: {error}"))
    })?;
    let cpus = u32::try_from(cpus).unwrap_or(u32::MAX).clamp(1, CPUS_MAX);
    let part = 1 << (SLOTS / cpus).ilog2();
    Ok((cpus, slots.unwrap_or(part.clamp(SLOTS_MIN, SLOTS_MAX))))
}

/// Says at once what a refused call of bpf(2) would leave to be guessed.
fn check_rights() -> Result<(), KernelLayerFailure> {
    let has = capability::effective()
        .map_err(|error| KernelLayerFailure::new(format!("capget: {error}")))?;
    let wanted = [(has.bpf, "CAP_BPF"), (has.perfmon, "CAP_PERFMON")];
    let missing: Vec<_> = wanted.iter().filter(|(has, _)| !has).map(|(_, name)| *name).collect();
    if !missing.is_empty() {
        return Err(KernelLayerFailure::new(format!(
            "this process has not {}",
            missing.join(" and ")
        )));
    }
    // What all users of the machine are mapped to, where that is not a part of them.
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    if map.split_whitespace().eq(["0", "0", "4294967295"]) {
        return Ok(());
    }
    let reason =
        "this process has CAP_BPF and CAP_PERFMON in its user namespace, not of the machine";
    Err(KernelLayerFailure::new(reason))
}

/// Of all rings together: 63 MB.
const SLOTS: u32 = 21 << 16;
/// Room for 10 ms of 0.8 and of 13 million records a second, of one processor.
const SLOTS_MIN: u32 = 1 << 13;
const SLOTS_MAX: u32 = 1 << 17;
/// As many as Linux can have.
const CPUS_MAX: u32 = 8192;
/// `PROC_PID_INIT_INO` of linux/proc_ns.h.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// As `xtask -- bpf` compiled it.
const OBJECT: &[u8] = include_bytes_aligned!("../../bpf/kernel.bpf.o");

/// The tracepoints; each program has the name of its own.
const OF_NETWORK: [&str; 8] = [
    "sock_send_length",
    "sock_recv_length",
    "inet_sock_set_state",
    "tcp_probe",
    "tcp_retransmit_skb",
    "net_dev_queue",
    "net_dev_start_xmit",
    "netif_receive_skb",
];
const OF_PROCESSES: [&str; 2] = ["sched_process_fork", "sched_process_exit"];
