//! Captures whose reader is quick, slow, gone, or out of room.

use std::io::ErrorKind;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::*;

/// What was written, while it is open.
#[derive(Clone, Default)]
struct Shared(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    is_open: bool,
    refusal: Option<ErrorKind>,
    bytes: Vec<u8>,
}

impl Shared {
    fn open(&self) {
        self.0.0.lock().unwrap().is_open = true;
        self.0.1.notify_all();
    }

    fn refuse(&self, kind: ErrorKind) {
        self.0.0.lock().unwrap().refusal = Some(kind);
        self.open();
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.0.lock().unwrap().bytes.clone()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let closed = |state: &mut State| !state.is_open;
        let mut state = self.0.1.wait_while(self.0.0.lock().unwrap(), closed).unwrap();
        if let Some(kind) = state.refusal {
            return Err(kind.into());
        }
        state.bytes.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const PORT: PortId = PortId(2);
const ID: u64 = 7;

/// A capture of one port to `shared`, and what becomes of it.
fn tap(shared: &Shared, snap_bytes: u32, room_bytes: usize) -> (Taps, Receiver<CaptureOutcome>) {
    let place =
        CapturePoint { port: PORT, name: "a eth0".to_owned(), description: "node a".to_owned() };
    let wanted = CaptureRequest {
        id: ID,
        places: vec![place],
        snap_bytes,
        unix_offset_ns: 1000,
        room_bytes,
    };
    let (sender, outcomes) = channel();
    let done = move |outcome| sender.send(outcome).unwrap();
    let (tap, _) = CaptureTap::start(&wanted, shared.clone(), done).unwrap();
    let mut taps = Taps::default();
    taps.add(tap);
    (taps, outcomes)
}

/// A node sends so many frames of 1500 bytes, one a nanosecond, with a turn of the loop after each
/// `turn` of them.
fn send(taps: &mut Taps, frames: u64, turn: u64) {
    let header = vnet::VirtioNetHeader::default();
    for number in 1..=frames {
        let at = Time::from_nanos(number);
        taps.frame(PORT, at, CapturedPacketDirection::Outbound, &header, &[9; 1500]);
        if number % turn == 0 {
            taps.flush();
        }
    }
}

fn outcome(outcomes: &Receiver<CaptureOutcome>) -> CaptureOutcome {
    outcomes.recv_timeout(Duration::from_secs(20)).expect("the thread ends")
}

/// Kinds of blocks with their bodies.
fn blocks(bytes: &[u8]) -> Vec<(u32, &[u8])> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut blocks) = (0, Vec::new());
    while at < bytes.len() {
        let length = word(at + 4) as usize;
        blocks.push((word(at), &bytes[at + 8..at + length - 4]));
        at += length;
    }
    blocks
}

fn numbers(body: &[u8]) -> Vec<u32> {
    body.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Packets that were written, and the counters of seen and lost ones at the end.
fn count(bytes: &[u8]) -> (u64, u64, u64) {
    let blocks = blocks(bytes);
    let packets = blocks.iter().filter(|(kind, _)| *kind == 6).count();
    let (kind, last) = blocks.last().unwrap();
    assert_eq!(*kind, 5, "the counters come last");
    let counters = numbers(last);
    (packets as u64, u64::from(counters[4]), u64::from(counters[7]))
}

#[test]
fn frames_of_the_port_are_written_as_far_as_wanted_and_counted() {
    let shared = Shared::default();
    shared.open();
    let (mut taps, outcomes) = tap(&shared, 20, ROOM_BYTES);
    let (plain, at) = (vnet::VirtioNetHeader::default(), Time::from_nanos(5));
    taps.frame(PORT, at, CapturedPacketDirection::Outbound, &plain, &[9; 100]);
    taps.frame(PortId(1), at, CapturedPacketDirection::Outbound, &plain, &[9; 100]);
    taps.frame(PortId(3), at, CapturedPacketDirection::Inbound, &plain, &[9; 100]);
    taps.finish();
    assert_eq!(outcome(&outcomes), CaptureOutcome { id: ID, seen: 1, lost: 0, stopped: None });
    let written = shared.bytes();
    let blocks = blocks(&written);
    let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [0x0a0d_0d0a, 1, 6, 5]);
    // Interface, time, kept and original bytes.
    assert_eq!(numbers(blocks[2].1)[..5], [0, 0, 1005, 20, 100]);
    assert_eq!(count(&written), (1, 1, 0));
}

#[test]
fn a_burst_is_kept_while_the_thread_does_not_write() {
    // As many turns as there are packets, many times the hand-overs that can wait.
    for turn in [1, 100, u64::MAX] {
        let shared = Shared::default();
        let (mut taps, outcomes) = tap(&shared, 0, ROOM_BYTES);
        send(&mut taps, 10_000, turn);
        taps.finish();
        shared.open();
        assert_eq!(
            outcome(&outcomes),
            CaptureOutcome { id: ID, seen: 10_000, lost: 0, stopped: None }
        );
        assert_eq!(count(&shared.bytes()), (10_000, 10_000, 0));
    }
}

#[test]
fn packets_that_a_slow_reader_leaves_no_room_for_are_counted_where_they_are_missing() {
    let shared = Shared::default();
    let (mut taps, outcomes) = tap(&shared, 0, 100_000);
    send(&mut taps, 1000, 10);
    shared.open();
    // The next packet that finds room says what is before it.
    let began = std::time::Instant::now();
    while taps.0[0].counts.queued_bytes.load(Ordering::Relaxed) > 0 {
        assert!(began.elapsed() < Duration::from_secs(20));
        std::thread::yield_now();
    }
    taps.flush();
    while taps.0[0].counts.queued_bytes.load(Ordering::Relaxed) > 0 {
        std::thread::yield_now();
    }
    send(&mut taps, 1, 1);
    taps.finish();
    let CaptureOutcome { seen, lost, stopped, .. } = outcome(&outcomes);
    assert_eq!((seen, stopped), (1001, None));
    let written = shared.bytes();
    assert_eq!(count(&written), (seen - lost, seen, lost));
    // A block of 1500 bytes has 1544 with its header and its direction: 64 are less than 100 000.
    assert!((900..1000).contains(&lost), "{lost}");
    let said = format!("{lost} packets before this one are missing");
    let text = String::from_utf8_lossy(&written);
    assert_eq!(text.matches("are missing").count(), 1);
    assert!(text.contains(&said));
}

#[test]
fn what_waits_in_the_tap_is_handed_on_when_there_is_room_and_never_exceeds_its_bound() {
    let shared = Shared::default();
    let room = 1 << 20;
    let (mut taps, outcomes) = tap(&shared, 0, room);
    send(&mut taps, 3000, 7);
    let tap = &taps.0[0];
    let held = tap.blocks.bytes.len() + tap.counts.queued_bytes.load(Ordering::Relaxed);
    assert!((room..room + 2000).contains(&held), "{held}");
    shared.open();
    taps.finish();
    let CaptureOutcome { seen, lost, .. } = outcome(&outcomes);
    assert_eq!(count(&shared.bytes()), (seen - lost, 3000, lost));
}

#[test]
fn a_capture_that_is_ended_is_written_and_sees_nothing_more() {
    let shared = Shared::default();
    shared.open();
    let (mut taps, outcomes) = tap(&shared, 0, ROOM_BYTES);
    send(&mut taps, 3, 1);
    taps.end(ID + 1);
    assert!(!taps.is_empty(), "another capture");
    send(&mut taps, 2, 4);
    taps.end(ID);
    assert!(taps.is_empty());
    send(&mut taps, 9, 1);
    assert_eq!(outcome(&outcomes), CaptureOutcome { id: ID, seen: 5, lost: 0, stopped: None });
    assert_eq!(count(&shared.bytes()), (5, 5, 0));
}

#[test]
fn a_capture_that_cannot_be_written_ends_and_says_why() {
    let why = CaptureStopReason::Failed(io::Error::from(ErrorKind::StorageFull).to_string());
    let cases =
        [(ErrorKind::StorageFull, why), (ErrorKind::BrokenPipe, CaptureStopReason::ReaderGone)];
    for (kind, stopped) in cases {
        let shared = Shared::default();
        let (mut taps, outcomes) = tap(&shared, 0, ROOM_BYTES);
        send(&mut taps, 10, 1);
        shared.refuse(kind);
        let seen = outcome(&outcomes);
        assert_eq!(seen, CaptureOutcome { id: ID, seen: 10, lost: 10, stopped: Some(stopped) });
        // Found at the next packet.
        send(&mut taps, 2, 1);
        assert!(taps.is_empty());
    }
}

#[test]
fn a_train_is_written_as_its_segments_with_the_time_of_the_train() {
    let shared = Shared::default();
    shared.open();
    let (mut taps, outcomes) = tap(&shared, 0, ROOM_BYTES);
    // TCP over IPv4 with 2500 bytes of payload.
    let mut frame = vec![0; 14 + 20 + 20 + 2500];
    frame[12..18].copy_from_slice(&[0x08, 0, 0x45, 0, 0x09, 0xec]);
    frame[22..24].copy_from_slice(&[64, 6]);
    frame[14 + 20 + 12] = 5 << 4;
    let header = vnet::VirtioNetHeader {
        flags: 1,
        gso_type: 1,
        hdr_len: 54,
        gso_size: 1000,
        csum_start: 34,
        csum_offset: 16,
    };
    assert_eq!(PacketTrain::new(&frame, &header).count, 3);
    taps.frame(PORT, Time::from_nanos(5), CapturedPacketDirection::Inbound, &header, &frame);
    taps.finish();
    assert_eq!(outcome(&outcomes).seen, 3);
    let written = shared.bytes();
    let packets: Vec<_> = blocks(&written).into_iter().filter(|(kind, _)| *kind == 6).collect();
    let figures =
        packets.iter().map(|(_, body)| (numbers(&body[..20])[2], numbers(&body[..20])[4]));
    assert_eq!(figures.collect::<Vec<_>>(), [(1005, 1054), (1005, 1054), (1005, 554)]);
}
