//! Drop-head: when the queue is full, what has waited longest is dropped and the newcomer stays.
//!
//! - **Parameters**: none beyond the queue's limit.
//! - **Time**: the same waiting as drop-tail, but senders learn of the loss a queue's length
//!   sooner.
//! - **Order, bytes**: unchanged. Segments are transmitted singly: any of a train may still be
//!   dropped.
//! - **Drop reasons**: `queue_full`.
//! - **Model**: `pfifo_head_drop` of tc(8).

use super::decision::{DequeueVerdict, Head, Overflow};

#[derive(Debug)]
pub(super) struct DropHead;

impl DropHead {
    pub(super) fn overflow(&self) -> Overflow {
        Overflow::Oldest
    }

    pub(super) fn inspect(&self, _head: &Head) -> DequeueVerdict {
        DequeueVerdict::Pass(1)
    }
}
