//! The preload library in real programs. Each script runs on the loopback of a network namespace of
//! its own, with the library and a region, or without. Without user namespaces the tests say so;
//! with `CI` set in the environment that is a failure.

#![expect(clippy::unwrap_used, reason = "a test's helpers are tests as well")]

#[path = "preload/behaviour.rs"]
mod behaviour;
#[path = "preload/calls.rs"]
mod calls;
#[path = "preload/programs.rs"]
mod programs;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windtunnel_model::record::kind::Call;
use windtunnel_model::record::region::RecordRegionLayout;
use windtunnel_model::record::{EventRecord, Kind, flag};
use windtunnel_record::preload::{LIBRARY, REGION_VARIABLE};
use windtunnel_sys::region::{MappedRecordRegion, RecordRegionReader};

/// What a script did.
pub(crate) struct Run {
    pub(crate) output: Output,
    pub(crate) records: Vec<EventRecord>,
    pub(crate) lost: u64,
    pub(crate) refused: u32,
    pub(crate) entries_left: usize,
}

/// How a script is recorded.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    Without,
    Standby,
    Recording,
}

/// Runs a script of the shell, in a folder of its own, on a loopback of its own.
pub(crate) fn run(mode: Mode, script: &str) -> Option<Run> {
    let folder = tempfile::tempdir().unwrap();
    let (library, path) = (folder.path().join("preload.so"), folder.path().join("region"));
    fs::write(&library, LIBRARY).unwrap();
    let file =
        File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    let layout = RecordRegionLayout { rings: 2, slots: 1 << 15, sockets: 1 << 10 };
    let region = Arc::new(MappedRecordRegion::create_in(&file, layout).unwrap());
    region.set_recording(mode == Mode::Recording);
    let mut shell = shell(folder.path(), script)?;
    if mode != Mode::Without {
        shell.env("LD_PRELOAD", &library).env(REGION_VARIABLE, &path);
    }
    let (output, records, lost) = drained(&region, || shell.output().unwrap());
    let (refused, entries_left) = (region.sockets_refused(), region.sockets().count());
    Some(Run { output, records, lost, refused, entries_left })
}

/// What the rings hold while and after `work` goes on.
fn drained<T>(
    region: &Arc<MappedRecordRegion>,
    work: impl FnOnce() -> T + Send,
) -> (T, Vec<EventRecord>, u64)
where
    T: Send,
{
    let is_done = AtomicBool::new(false);
    let mut reader = RecordRegionReader::new(Arc::clone(region));
    let (mut records, mut lost) = (Vec::new(), 0);
    let result = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = work();
            is_done.store(true, Ordering::Release);
            result
        });
        loop {
            let is_last = is_done.load(Ordering::Acquire);
            for ring in 0..region.layout().rings {
                let drained = reader.drain(ring, usize::MAX, &mut records);
                lost += drained.gap.map_or(0, |gap| gap.count);
                assert!(!drained.is_damaged);
            }
            if is_last {
                return worker.join().unwrap();
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    records.sort_by_key(|record| record.time);
    (result, records, lost)
}

/// A shell in namespaces of its own, whose loopback is up.
fn shell(folder: &Path, script: &str) -> Option<Command> {
    static CAN: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let unshare = || {
        let mut unshare = Command::new("unshare");
        // As root without a user namespace, in which there would be no other users (of sshd).
        if !is_root() {
            unshare.args(["--user", "--map-current-user", "--keep-caps"]);
        }
        unshare.args(["--net", "--"]);
        unshare
    };
    let can = || unshare().arg("true").status().is_ok_and(|status| status.success());
    if !CAN.get_or_init(can) {
        assert!(std::env::var_os("CI").is_none(), "no user and network namespaces here");
        eprintln!("skipped: no user and network namespaces here");
        return None;
    }
    let mut command = unshare();
    // The library is for the script alone.
    let begin = "preload=$LD_PRELOAD; unset LD_PRELOAD; ip link set lo up || exit; \
                 test -z \"$preload\" || export LD_PRELOAD=$preload; \
                 until_it() { tries=0; until \"$@\" >/dev/null 2>&1; do \
                 tries=$((tries + 1)); test $tries -lt 200 || exit 9; sleep 0.05; done; }; ";
    command.args(["sh", "-c", &format!("{begin}{script}")]).current_dir(folder);
    command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    command.stdin(Stdio::null()).env_remove("LD_PRELOAD");
    Some(command)
}

fn is_root() -> bool {
    std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self").unwrap()) == 0
}

/// A flow, as its definitions say.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Flow {
    pub(crate) protocol: u8,
    pub(crate) from: ([u8; 16], u16),
    pub(crate) to: ([u8; 16], u16),
    pub(crate) cookie: u64,
}

impl Run {
    /// What it printed, having succeeded.
    pub(crate) fn text(&self) -> String {
        let error = String::from_utf8_lossy(&self.output.stderr);
        assert!(self.output.status.success(), "{:?}: {error}", self.output.status);
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub(crate) fn flows(&self) -> BTreeMap<u32, Flow> {
        let mut flows: BTreeMap<u32, Flow> = BTreeMap::new();
        for record in &self.records {
            let flow = |flows: &mut BTreeMap<u32, Flow>| *flows.entry(record.flow).or_default();
            match Kind::from_number(record.kind) {
                Some(Kind::FlowFrom) => {
                    let from = (record.arg_bytes(), record.extra);
                    let flow = Flow { protocol: record.flags, from, ..flow(&mut flows) };
                    flows.insert(record.flow, flow);
                }
                Some(Kind::FlowTo) => {
                    let flow = Flow { to: (record.arg_bytes(), record.extra), ..flow(&mut flows) };
                    flows.insert(record.flow, flow);
                }
                Some(Kind::FlowSocket) => {
                    let flow = Flow { cookie: record.wide(0), ..flow(&mut flows) };
                    flows.insert(record.flow, flow);
                }
                _ => {}
            }
        }
        flows
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &EventRecord> {
        self.records.iter().filter(|record| record.kind == Kind::Call as u8)
    }

    /// Bytes (datagrams) that each flow sent and received: of streams, checked to be contiguous.
    pub(crate) fn moved(&self) -> BTreeMap<(u32, bool), u64> {
        let flows = self.flows();
        let mut moved: BTreeMap<(u32, bool), u64> = BTreeMap::new();
        let mut calls: Vec<&EventRecord> = self.calls().filter(|call| is_transfer(call)).collect();
        calls.sort_by_key(|call| (call.flow, call.flags & flag::REVERSE, call.args[0], call.time));
        for call in calls {
            let is_moving = call.flags & flag::PEEK == 0 && call.args[2].cast_signed() > 0;
            let is_stream = flows[&call.flow].protocol == 6;
            let key = (call.flow, call.flags & flag::REVERSE != 0);
            let so_far = moved.entry(key).or_default();
            if is_stream && is_moving {
                assert_eq!(u64::from(call.args[0]), *so_far, "{call:?}");
            }
            *so_far += if is_moving { u64::from(call.args[2]) } else { 0 };
        }
        moved
    }

    /// The names of the calls of a flow, in their order.
    pub(crate) fn names(&self, flow: u32) -> Vec<&'static str> {
        let calls = self.calls().filter(|call| call.flow == flow);
        calls.map(|call| Call::from_number(call.extra).unwrap().name()).collect()
    }

    /// What records of `Unseen` give as reasons.
    pub(crate) fn unseen(&self) -> Vec<u32> {
        let is_unseen = |record: &&EventRecord| record.kind == Kind::Unseen as u8;
        self.records.iter().filter(is_unseen).map(|record| record.args[0]).collect()
    }
}

pub(crate) fn is_transfer(call: &EventRecord) -> bool {
    call.extra >= Call::Write as u16
}

/// The script has the same result with the library, recording or not, as without; the run that was
/// recorded.
pub(crate) fn same(script: &str) -> Option<Run> {
    let [without, standby, recording] =
        [Mode::Without, Mode::Standby, Mode::Recording].map(|mode| run(mode, script));
    let (without, standby, recording) = (without?, standby?, recording?);
    assert_eq!(standby.text(), without.text());
    assert_eq!(recording.text(), without.text());
    for other in [&standby, &recording] {
        let [with, without] = [&other.output, &without.output].map(|run| &run.stderr);
        assert_eq!(String::from_utf8_lossy(with), String::from_utf8_lossy(without));
    }
    assert!(standby.records.is_empty(), "{:?}", standby.records[0]);
    assert!(!recording.records.is_empty());
    assert_eq!((recording.lost, recording.refused), (0, 0));
    Some(recording)
}
