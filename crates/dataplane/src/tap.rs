//! Frames as nodes send and receive them, for captures.
//!
//! The packet loop copies frames, segment by segment, as far as they are wanted, and hands blocks
//! of them to a thread that writes. It never waits for that thread: what finds no room between them
//! is not written, but counted, and the next packet that is written says how many are missing
//! before it.

mod counts;
#[cfg(test)]
mod tests;
mod writer;

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use windtunnel_evidence::export::pcapng::{
    self, CapturedPacketDirection, PcapngInterface, PcapngPacket,
};
use windtunnel_model::{PortId, Time};
use windtunnel_wire::segment::{PacketTrain, write_range};
use windtunnel_wire::vnet;

pub use counts::{CaptureCounters, CaptureOutcome, CaptureStopReason};

/// What is to be captured.
#[derive(Debug, Clone)]
pub struct CaptureRequest {
    /// What ends it, and what its outcome is known by.
    pub id: u64,
    pub places: Vec<CapturePoint>,
    /// Bytes of each packet that are kept; 0: all.
    pub snap_bytes: u32,
    /// What is added to times, to have nanoseconds since 1970.
    pub unix_offset_ns: u64,
    /// Bytes that may wait to be written.
    pub room_bytes: usize,
}

/// Where a link meets a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturePoint {
    pub port: PortId,
    pub name: String,
    pub description: String,
}

/// All captures that go on.
#[derive(Debug, Default)]
pub(super) struct Taps(Vec<CaptureTap>);

/// A capture, as the packet loop has it.
#[derive(Debug)]
pub struct CaptureTap {
    id: u64,
    /// By port: its interface in the capture.
    interfaces: Vec<Option<u32>>,
    snap_bytes: usize,
    unix_offset_ns: u64,
    room_bytes: usize,
    /// What has not been handed on.
    blocks: CaptureBlockBuffer,
    /// By interface: packets that are missing behind the last one that was kept.
    gaps: Vec<u64>,
    to: SyncSender<CaptureBlockBuffer>,
    counts: Arc<CaptureCounters>,
    /// The thread has ended: nothing can be written any more.
    is_over: bool,
    /// A segment of a train.
    piece: Vec<u8>,
}

/// Blocks of the file, and how many packets are in them.
#[derive(Debug, Default)]
struct CaptureBlockBuffer {
    bytes: Vec<u8>,
    packets: u64,
}

/// Bytes of blocks that may wait to be written: 13 ms of 10 Gbit/s.
pub const ROOM_BYTES: usize = 16 << 20;
/// While the thread is writing, blocks are gathered until they have so many bytes.
const BLOCKS_BYTES: usize = 256 << 10;
/// So many hand-overs wait for the thread.
const WAITING_MAX: usize = 64;

impl Taps {
    /// Whether nothing is captured: the only thing that packets pay for then.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, tap: CaptureTap) {
        self.0.push(tap);
    }

    /// Ends a capture; what was captured is written by its thread.
    pub(super) fn end(&mut self, id: u64) {
        let (ended, rest): (Vec<CaptureTap>, _) =
            std::mem::take(&mut self.0).into_iter().partition(|tap| tap.id == id);
        self.0 = rest;
        ended.into_iter().for_each(CaptureTap::close);
    }

    /// A node has sent this frame at `at`, or is sent it.
    pub(super) fn frame(
        &mut self,
        port: PortId,
        at: Time,
        heading: CapturedPacketDirection,
        header: &vnet::VirtioNetHeader,
        frame: &[u8],
    ) {
        for tap in &mut self.0 {
            tap.frame(port, at, heading, header, frame);
        }
    }

    /// Hands on what there is. It is called at the end of each turn of the loop, so that what had
    /// to wait in a tap is tried again.
    pub(super) fn flush(&mut self) {
        self.0.retain_mut(CaptureTap::flush);
    }

    /// Ends all.
    pub(super) fn finish(self) {
        self.0.into_iter().for_each(CaptureTap::close);
    }
}

impl CaptureTap {
    /// Starts the thread that writes. It calls `done` when it has written all, or nothing reads it
    /// any more.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub fn start(
        wanted: &CaptureRequest,
        out: impl Write + Send + 'static,
        done: impl FnOnce(CaptureOutcome) + Send + 'static,
    ) -> io::Result<(CaptureTap, Arc<CaptureCounters>)> {
        let mut blocks = CaptureBlockBuffer::default();
        pcapng::section(&mut blocks.bytes, PROGRAM, COMMENT);
        let highest = wanted.places.iter().map(|place| place.port.index() + 1).max().unwrap_or(0);
        let mut interfaces = vec![None; highest];
        for (number, place) in (0..).zip(&wanted.places) {
            interfaces[place.port.index()] = Some(number);
            let (name, description) = (place.name.clone(), place.description.clone());
            let interface = PcapngInterface { name, description, snap_bytes: wanted.snap_bytes };
            pcapng::interface(&mut blocks.bytes, &interface);
        }
        let counts = Arc::new(CaptureCounters::new(wanted.places.len()));
        let (to, receiver) = sync_channel(WAITING_MAX);
        let (in_thread, id) = (Arc::clone(&counts), wanted.id);
        std::thread::Builder::new().name("capture".to_owned()).spawn(move || {
            let stopped = writer::run(receiver, &in_thread, out).err();
            done(in_thread.outcome(id, stopped));
        })?;
        let snap_bytes = match wanted.snap_bytes {
            0 => usize::MAX,
            bytes => bytes as usize,
        };
        let tap = CaptureTap {
            id: wanted.id,
            interfaces,
            snap_bytes,
            unix_offset_ns: wanted.unix_offset_ns,
            room_bytes: wanted.room_bytes,
            blocks,
            gaps: vec![0; wanted.places.len()],
            to,
            counts: Arc::clone(&counts),
            is_over: false,
            piece: Vec::new(),
        };
        Ok((tap, counts))
    }

    fn frame(
        &mut self,
        port: PortId,
        at: Time,
        heading: CapturedPacketDirection,
        header: &vnet::VirtioNetHeader,
        frame: &[u8],
    ) {
        let Some(interface) = self.interfaces.get(port.index()).copied().flatten() else { return };
        let unix_ns = at.as_nanos().saturating_add(self.unix_offset_ns);
        let train = PacketTrain::new(frame, header);
        if train.count == 1 {
            return self.packet(interface, unix_ns, heading, frame);
        }
        let mut piece = std::mem::take(&mut self.piece);
        piece.resize(frame.len(), 0);
        for index in 0..train.count {
            match write_range(frame, header, index..index + 1, &mut piece) {
                Some((length, _)) => self.packet(interface, unix_ns, heading, &piece[..length]),
                // What counts as a train divides; but no frame may be missing without a word.
                None => {
                    self.packet(interface, unix_ns, heading, frame);
                    break;
                }
            }
        }
        self.piece = piece;
    }

    fn packet(
        &mut self,
        interface: u32,
        unix_ns: u64,
        heading: CapturedPacketDirection,
        frame: &[u8],
    ) {
        if self.blocks.bytes.len() >= BLOCKS_BYTES {
            self.hand_on();
        }
        if self.is_over {
            return;
        }
        let number = interface as usize;
        let count = &self.counts.interfaces[number];
        count.until_ns.store(unix_ns, Ordering::Relaxed);
        count.seen.fetch_add(1, Ordering::Relaxed);
        let queued = self.counts.queued_bytes.load(Ordering::Relaxed);
        if self.blocks.bytes.len() + queued >= self.room_bytes {
            count.lost.fetch_add(1, Ordering::Relaxed);
            self.gaps[number] += 1;
            return;
        }
        let gap = std::mem::take(&mut self.gaps[number]);
        let comment = (gap > 0).then(|| {
            format!(
                "{gap} packets before this one are missing: they came faster than they were read"
            )
        });
        let packet = PcapngPacket {
            interface,
            unix_ns,
            bytes: &frame[..frame.len().min(self.snap_bytes)],
            original_bytes: u32::try_from(frame.len()).unwrap_or(u32::MAX),
            direction: Some(heading),
            comment: comment.as_deref(),
        };
        pcapng::packet(&mut self.blocks.bytes, &packet);
        self.blocks.packets += 1;
    }

    /// Hands on if the thread has nothing to write, or if there is enough for it. Answers whether
    /// the thread is still there.
    fn flush(&mut self) -> bool {
        let length = self.blocks.bytes.len();
        let is_idle = self.counts.queued_bytes.load(Ordering::Relaxed) == 0;
        if length >= BLOCKS_BYTES || (length > 0 && is_idle) {
            self.hand_on();
        }
        !self.is_over
    }

    /// Hands blocks on if there is room in the queue. If not, they stay here until the next time.
    fn hand_on(&mut self) {
        let blocks = std::mem::take(&mut self.blocks);
        let length = blocks.bytes.len();
        self.counts.queued_bytes.fetch_add(length, Ordering::Relaxed);
        match self.to.try_send(blocks) {
            Ok(()) => {}
            Err(TrySendError::Full(blocks)) => {
                self.counts.queued_bytes.fetch_sub(length, Ordering::Relaxed);
                self.blocks = blocks;
            }
            Err(TrySendError::Disconnected(_)) => self.is_over = true,
        }
    }

    /// Leaves the last for the thread, which ends when it has written all.
    fn close(self) {
        self.counts.leave_rest(self.blocks);
    }
}

const PROGRAM: &str = concat!("windtunnel ", env!("CARGO_PKG_VERSION"));
const COMMENT: &str = "Frames as a node sends them (outbound) and is sent them (inbound). Times are \
    intended ones: those of the emulated network, not of this machine. A train of segments is \
    written as the segments, all with the time of the train. Checksums that the sender left to its \
    device are not complete.";
