//! Regions: what writers of several threads and processes put into rings comes out or is counted,
//! and nothing that another process writes there hurts the reader.

#![expect(clippy::unwrap_used, reason = "a test's helpers are tests as well")]

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use windtunnel_model::record::region::{RecordRegionLayout, header, ring, socket_state};
use windtunnel_model::record::{EventRecord, Kind};
use windtunnel_sys::region::{
    InitialSocketEntry, MappedRecordRegion, RecordRegionReader, RecordRingGap, RegionSocketEntry,
    SocketCallDirection, SocketTuple, key,
};

const SMALL: RecordRegionLayout = RecordRegionLayout { rings: 2, slots: 8, sockets: 64 };

fn event(writer: u16, number: u32) -> EventRecord {
    let time = u64::from(number) + 1;
    EventRecord {
        time,
        kind: Kind::Call as u8,
        extra: writer,
        args: [number; 4],
        ..EventRecord::default()
    }
}

fn region(layout: RecordRegionLayout) -> (Arc<MappedRecordRegion>, File) {
    let (region, fd) = MappedRecordRegion::create(layout).unwrap();
    (Arc::new(region), File::from(fd))
}

fn times(records: &[EventRecord]) -> Vec<u64> {
    records.iter().map(|record| record.time).collect()
}

#[test]
fn records_come_out_as_they_were_written_and_rings_are_apart() {
    let (region, fd) = region(SMALL);
    let other = MappedRecordRegion::open(&fd).unwrap();
    let written = EventRecord { flags: 0x81, flow: 0xfeed_beef, ..event(0xabcd, 7) };
    assert!(other.push(0, &written));
    assert!(region.push(3, &event(1, 1)));
    let mut reader = RecordRegionReader::new(Arc::clone(&region));
    let mut records = Vec::new();
    assert_eq!(reader.drain(0, 10, &mut records).records, 1);
    assert_eq!(records, [written]);
    assert_eq!(reader.drain(1, 10, &mut records).records, 1);
    assert_eq!(records[1], event(1, 1));
}

#[test]
fn a_full_ring_counts_what_it_has_no_room_for_with_its_times() {
    let (region, _fd) = region(SMALL);
    let mut reader = RecordRegionReader::new(Arc::clone(&region));
    for number in 0..11 {
        assert_eq!(region.push(0, &event(0, number)), number < 8);
    }
    let mut records = Vec::new();
    let drained = reader.drain(0, 5, &mut records);
    assert_eq!((drained.records, drained.is_more), (5, true));
    assert_eq!(drained.gap, Some(RecordRingGap { begin_ns: 9, end_ns: 11, count: 3 }));
    let drained = reader.drain(0, 5, &mut records);
    assert_eq!((drained.records, drained.is_more, drained.gap), (3, false, None));
    assert_eq!(times(&records), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(region.push(0, &event(0, 100)));
    assert_eq!(reader.drain(0, 5, &mut records).records, 1);
}

#[test]
fn a_second_reader_goes_on_where_the_first_stopped() {
    let (region, _fd) = region(SMALL);
    let mut records = Vec::new();
    assert_eq!((0..10).filter(|number| region.push(0, &event(0, *number))).count(), 8);
    RecordRegionReader::new(Arc::clone(&region)).drain(0, 4, &mut records);
    let drained = RecordRegionReader::new(Arc::clone(&region)).drain(0, 100, &mut records);
    assert_eq!((drained.records, drained.gap), (4, None));
    assert_eq!(times(&records), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn records_and_losses_are_all_events_of_threads_and_processes() {
    if let Ok(path) = std::env::var("REGION_OF_TEST") {
        return write_many(
            &MappedRecordRegion::open(File::options().read(true).write(true).open(path).unwrap())
                .unwrap(),
        );
    }
    let (region, fd) = region(RecordRegionLayout { rings: 2, slots: 64, sockets: 0 });
    let mut writers: Vec<Child> = (0..2).map(|_| process(&fd)).collect();
    let running = AtomicU32::new(1);
    let (mut records, mut lost, mut spans) = (Vec::new(), [0, 0], Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            write_many(&region);
            for writer in &mut writers {
                assert!(writer.wait().unwrap().success());
            }
            running.store(0, Ordering::Release);
        });
        let mut reader = RecordRegionReader::new(Arc::clone(&region));
        loop {
            let is_last = running.load(Ordering::Acquire) == 0;
            for ring in 0..2 {
                let drained = reader.drain(ring, 40, &mut records);
                assert!(!drained.is_damaged);
                if let Some(gap) = drained.gap {
                    lost[ring as usize] += gap.count;
                    spans.push(gap);
                }
                while is_last && reader.drain(ring, 40, &mut records).is_more {}
            }
            if is_last {
                break;
            }
        }
    });
    assert!(lost[0] > 0 && lost[1] > 0, "the rings were too large for the test: {lost:?}");
    let events = 3 * 4 * u64::from(EVENTS);
    assert_eq!(records.len() as u64 + lost[0] + lost[1], events);
    assert!(spans.iter().all(|gap| gap.begin_ns <= gap.end_ns && gap.begin_ns > 0));
    assert!(spans.iter().all(|gap| gap.end_ns <= u64::from(EVENTS)));
    // Nothing is mixed of two records, and each writer's are in its order.
    let mut last = BTreeMap::new();
    for record in &records {
        let number = record.args[0];
        assert_eq!(*record, EventRecord { flow: record.flow, ..event(record.extra, number) });
        let before = last.insert((record.flow, record.extra), number);
        assert!(before.is_none_or(|before| before < number), "{record:?} after {before:?}");
    }
}

const EVENTS: u32 = 50_000;

/// Four threads that write to both rings.
fn write_many(region: &MappedRecordRegion) {
    let pid = std::process::id();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for number in 0..EVENTS {
                    let record = EventRecord { flow: pid, ..event(thread, number) };
                    region.push(u32::from(thread), &record);
                }
            });
        }
    });
}

/// This test as a process of its own, which writes to the region.
fn process(fd: &File) -> Child {
    let path = format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd());
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "records_and_losses_are_all_events_of_threads_and_processes"])
        .env("REGION_OF_TEST", path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

/// Where the word of a ring is in the file of a region.
fn word(ring: u32, at: usize) -> u64 {
    (SMALL.ring(ring) + at) as u64
}

#[test]
fn the_slot_of_a_killed_writer_is_passed_over_and_counted() {
    let (region, fd) = region(SMALL);
    let mut reader = RecordRegionReader::new(Arc::clone(&region));
    let mut records = Vec::new();
    assert!(region.push(0, &event(0, 0)));
    // The killed writer has come as far as to take its slot.
    fd.write_at(&2_u64.to_le_bytes(), word(0, ring::HEAD)).unwrap();
    assert!(region.push(0, &event(0, 2)));
    let drained = reader.drain(0, 10, &mut records);
    assert_eq!((drained.records, drained.waits_for, drained.gap), (1, Some(1), None));
    assert_eq!(reader.pass_over(0, 0, 50), None, "another slot");
    let gap = reader.pass_over(0, 1, 50);
    assert_eq!(gap, Some(RecordRingGap { begin_ns: 1, end_ns: 50, count: 1 }));
    assert_eq!(reader.pass_over(0, 1, 50), None, "it is behind the reader");
    assert_eq!(reader.drain(0, 10, &mut records).records, 1);
    assert_eq!(times(&records), [1, 3]);
    assert_eq!(reader.pass_over(0, 3, 50), None, "no writer has taken it");
    assert!((0..8).all(|number| region.push(0, &event(0, number))));
    assert_eq!(reader.drain(0, 10, &mut records).records, 8);
}

#[test]
fn a_header_that_is_wrong_is_refused() {
    let refused = |at: usize, bytes: &[u8]| {
        let file = File::from(memory());
        drop(MappedRecordRegion::create_in(&file, SMALL).unwrap());
        MappedRecordRegion::open(&file).unwrap();
        file.write_at(bytes, at as u64).unwrap();
        MappedRecordRegion::open(&file).unwrap_err().to_string()
    };
    assert_eq!(refused(header::MAGIC, b"ELF"), "the file is not a region of records");
    assert_eq!(refused(header::VERSION, &[9]), "the region has version 9, not 1");
    for (at, value) in [
        (header::RINGS, 0),
        (header::RINGS, u32::MAX),
        (header::RINGS, 1 << 10),
        (header::SLOTS, 0),
        (header::SLOTS, 3),
        (header::SLOTS, 1 << 31),
        (header::SOCKETS, 48),
        (header::SOCKETS, 1 << 31),
        (header::SOCKETS, 128),
    ] {
        assert!(refused(at, &value.to_le_bytes()).contains("does not fit"), "{at} {value}");
    }
    let file = File::from(memory());
    file.set_len(100).unwrap();
    assert!(
        MappedRecordRegion::open(&file)
            .unwrap_err()
            .to_string()
            .contains("shorter than the header")
    );
    let layout = RecordRegionLayout { slots: 12, ..SMALL };
    assert!(MappedRecordRegion::create(layout).is_err());
}

#[test]
fn a_region_of_its_own_memory_cannot_be_made_shorter() {
    let (_region, fd) = region(SMALL);
    assert!(fd.set_len(4096).is_err());
}

#[test]
fn no_words_of_a_ring_keep_a_reader_or_writer_from_ending() {
    let values = [0, 1, 7, 8, 9, 1 << 40, 1 << 63, u64::MAX - 3, u64::MAX];
    for (head, tail) in values.iter().flat_map(|head| values.map(|tail| (*head, tail))) {
        let (region, fd) = region(SMALL);
        let mut reader = RecordRegionReader::new(Arc::clone(&region));
        fd.write_at(&head.to_le_bytes(), word(0, ring::HEAD)).unwrap();
        fd.write_at(&tail.to_le_bytes(), word(0, ring::TAIL)).unwrap();
        fd.write_at(&u64::MAX.to_le_bytes(), word(0, ring::LOST)).unwrap();
        let mut records = Vec::new();
        assert_eq!(reader.drain(0, 4, &mut records).is_damaged, head > 8, "{head}");
        for number in 0..20 {
            region.push(0, &event(0, number));
            let drained = reader.drain(0, 4, &mut records);
            assert!(drained.records <= 4);
            if let Some(slot) = drained.waits_for {
                reader.pass_over(0, slot, 1);
            }
        }
    }
}

#[test]
fn each_start_of_recording_is_another_one() {
    let (region, _fd) = region(SMALL);
    let mut words = Vec::new();
    for _ in 0..3 {
        assert!(!region.is_recording());
        region.set_recording(true);
        let word = region.recording();
        region.set_recording(true);
        assert!(region.is_recording() && region.recording() == word);
        words.push(word);
        region.set_recording(false);
        region.set_recording(false);
    }
    assert_eq!(words, [3, 5, 7]);
}

#[test]
fn offsets_count_over_all_processes_that_use_a_socket() {
    let (region, fd) = region(SMALL);
    let other = MappedRecordRegion::open(&fd).unwrap();
    let (socket, is_new) = hold(&region, 77);
    let (same, is_new_there) = hold(&other, 77);
    assert_eq!((is_new, is_new_there), (true, false));
    assert_eq!(
        (socket.begin(SocketCallDirection::Sent), same.begin(SocketCallDirection::Sent)),
        ((0, false), (0, true))
    );
    assert_eq!(same.end(SocketCallDirection::Sent, 10), (0, true));
    assert_eq!(socket.end(SocketCallDirection::Sent, 5), (10, false));
    assert_eq!(socket.advance(SocketCallDirection::Received, 3), 0);
    assert_eq!(same.begin(SocketCallDirection::Received), (3, false));
    assert_eq!(same.end(SocketCallDirection::Received, 0), (3, false));
    socket.release();
    assert!(other.find(key(77, None)).is_some());
    same.release();
    assert!(other.find(key(77, None)).is_none());
    assert_eq!(hold(&region, 77).0.begin(SocketCallDirection::Sent), (0, false));
}

#[test]
fn the_peers_of_a_socket_have_flows_of_their_own_and_go_with_it() {
    let (region, _fd) = region(SMALL);
    let (socket, _) = hold(&region, 1);
    let peers = [1, 2, 3].map(|last| {
        let mut address = [0; 16];
        address[15] = last;
        socket.peer(&address, 53).unwrap()
    });
    let flows = peers.map(|peer| peer.flow());
    assert_eq!(flows, [2, 3, 4]);
    assert_eq!(peers[1].tuple().to[15], 2);
    assert_eq!(peers[1].tuple().from_port, 1000);
    assert_eq!(socket.peer(&peers[1].tuple().to, 53).unwrap().flow(), 3);
    assert_eq!(region.sockets().count(), 4);
    socket.release();
    assert_eq!(region.sockets().count(), 0);
}

#[test]
fn a_full_table_refuses_sockets_and_counts_them() {
    let (region, _fd) = region(RecordRegionLayout { sockets: 16, ..SMALL });
    for cookie in 1..=16 {
        assert!(region.hold(key(cookie, None), cookie, origin).is_some());
    }
    assert!(region.hold(key(17, None), 17, origin).is_none());
    assert_eq!(region.sockets_refused(), 1);
    let gone = region.sockets().find(|socket| socket.cookie() == 3).unwrap();
    gone.forget();
    assert!(region.hold(key(17, None), 17, origin).is_some());
}

#[test]
fn a_flow_is_defined_anew_when_its_ends_change() {
    let (region, _fd) = region(SMALL);
    let (socket, _) = hold(&region, 9);
    socket.advance(SocketCallDirection::Sent, 100);
    socket.define(0, 5, 3);
    assert!(socket.is_defined(3) && !socket.is_defined(5));
    socket.set_tuple(&SocketTuple { to_port: 80, ..origin().tuple });
    assert!(!socket.is_defined(3));
    assert_eq!(socket.begin(SocketCallDirection::Sent), (0, false));
    socket.define(0, 6, 3);
    let mut records = Vec::new();
    RecordRegionReader::new(Arc::clone(&region)).drain(0, 10, &mut records);
    let kinds: Vec<u8> = records.iter().map(|record| record.kind).collect();
    assert_eq!(kinds, [4, 5, 6, 4, 5, 6]);
    let (from, to, socket) = (records[3], records[4], records[5]);
    assert_eq!((from.flow, from.flags, from.extra), (2, 6, 1000));
    assert_eq!((to.flow, to.extra), (2, 80));
    assert_eq!((socket.wide(0), socket.args[2], socket.args[3]), (9, 42, 7));
}

fn origin() -> InitialSocketEntry {
    let tuple = SocketTuple { protocol: 6, from_port: 1000, ..SocketTuple::default() };
    InitialSocketEntry { tuple, state: socket_state::STREAM, pid: 42, descriptor: 7 }
}

fn hold(region: &MappedRecordRegion, cookie: u64) -> (RegionSocketEntry<'_>, bool) {
    region.hold(key(cookie, None), cookie, origin).unwrap()
}

fn memory() -> OwnedFd {
    rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap()
}
