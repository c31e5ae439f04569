//! Drop-tail: when the queue is full, the newcomer is dropped.
//!
//! - **Parameters**: none beyond the queue's limit.
//! - **Time, order, bytes**: unchanged.
//! - **Drop reasons**: `queue_full`.
//! - **Model**: `pfifo`/`bfifo` of tc(8).

use super::decision::{DequeueVerdict, Head, Overflow};

#[derive(Debug)]
pub(super) struct DropTail;

impl DropTail {
    pub(super) fn overflow(&self) -> Overflow {
        Overflow::Newcomer
    }

    pub(super) fn inspect(&self, head: &Head) -> DequeueVerdict {
        DequeueVerdict::Pass(head.part)
    }
}
