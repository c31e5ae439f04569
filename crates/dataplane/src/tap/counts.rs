//! What the packet loop and the thread that writes know of a capture together.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::CaptureBlockBuffer;

/// What is counted of a capture while it goes on.
#[derive(Debug)]
pub struct CaptureCounters {
    pub(super) interfaces: Vec<CaptureInterfaceCounters>,
    /// Packets that have been written.
    pub(super) written: AtomicU64,
    /// Bytes that were handed on and have not been written.
    pub(super) queued_bytes: AtomicUsize,
    /// What the packet loop had when it ended the capture.
    rest: Mutex<Option<CaptureBlockBuffer>>,
}

/// Packets of an interface.
#[derive(Debug, Default)]
pub(super) struct CaptureInterfaceCounters {
    pub(super) seen: AtomicU64,
    /// Those that found no room.
    pub(super) lost: AtomicU64,
    /// The time of the last, ns since 1970.
    pub(super) until_ns: AtomicU64,
}

/// What became of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureOutcome {
    pub id: u64,
    /// Packets that came by.
    pub seen: u64,
    /// Those of them that were not written.
    pub lost: u64,
    pub stopped: Option<CaptureStopReason>,
}

/// Why a capture ended before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureStopReason {
    /// Its reader has closed it.
    ReaderGone,
    /// It cannot be written.
    Failed(String),
}

impl CaptureCounters {
    pub(super) fn new(interfaces: usize) -> Self {
        CaptureCounters {
            interfaces: (0..interfaces).map(|_| CaptureInterfaceCounters::default()).collect(),
            written: AtomicU64::new(0),
            queued_bytes: AtomicUsize::new(0),
            rest: Mutex::new(None),
        }
    }

    /// What is known until now of the capture with this number.
    pub fn outcome(&self, id: u64, stopped: Option<CaptureStopReason>) -> CaptureOutcome {
        // In this order: what comes between is not counted as lost.
        let written = self.written.load(Ordering::Acquire);
        let seen = self.interfaces.iter().map(|count| count.seen.load(Ordering::Relaxed)).sum();
        CaptureOutcome { id, seen, lost: u64::saturating_sub(seen, written), stopped }
    }

    /// The thread looks here once no more can be handed on, so that it never meets the packet loop.
    pub(super) fn leave_rest(&self, blocks: CaptureBlockBuffer) {
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(blocks);
    }

    pub(super) fn take_rest(&self) -> Option<CaptureBlockBuffer> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl From<io::Error> for CaptureStopReason {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CaptureStopReason::ReaderGone,
            _ => CaptureStopReason::Failed(error.to_string()),
        }
    }
}
