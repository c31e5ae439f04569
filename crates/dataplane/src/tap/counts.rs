//! What the packet loop and the thread that writes know of a capture together.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Blocks;

/// What is counted of a capture while it goes on.
#[derive(Debug)]
pub struct Counts {
    pub(super) interfaces: Vec<Count>,
    /// Packets that have been written.
    pub(super) written: AtomicU64,
    /// Bytes that were handed on and have not been written.
    pub(super) queued_bytes: AtomicUsize,
    /// What the packet loop had when it ended the capture.
    rest: Mutex<Option<Blocks>>,
}

/// Packets of an interface.
#[derive(Debug, Default)]
pub(super) struct Count {
    pub(super) seen: AtomicU64,
    /// Those that found no room.
    pub(super) lost: AtomicU64,
    /// The time of the last, ns since 1970.
    pub(super) until_ns: AtomicU64,
}

/// What became of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub id: u64,
    /// Packets that came by.
    pub seen: u64,
    /// Those of them that were not written.
    pub lost: u64,
    pub stopped: Option<Stopped>,
}

/// Why a capture ended before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// Its reader has closed it.
    ReaderGone,
    /// It cannot be written.
    Failed(String),
}

impl Counts {
    pub(super) fn new(interfaces: usize) -> Self {
        Counts {
            interfaces: (0..interfaces).map(|_| Count::default()).collect(),
            written: AtomicU64::new(0),
            queued_bytes: AtomicUsize::new(0),
            rest: Mutex::new(None),
        }
    }

    /// What is known until now of the capture with this number.
    pub fn outcome(&self, id: u64, stopped: Option<Stopped>) -> Outcome {
        // In this order: what comes between is not counted as lost.
        let written = self.written.load(Ordering::Acquire);
        let seen = self.interfaces.iter().map(|count| count.seen.load(Ordering::Relaxed)).sum();
        Outcome { id, seen, lost: u64::saturating_sub(seen, written), stopped }
    }

    /// The thread looks here once no more can be handed on, so that it never meets the packet loop.
    pub(super) fn leave_rest(&self, blocks: Blocks) {
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(blocks);
    }

    pub(super) fn take_rest(&self) -> Option<Blocks> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Stopped::ReaderGone,
            _ => Stopped::Failed(error.to_string()),
        }
    }
}
