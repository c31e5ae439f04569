//! The room `budget`: what programs may use of a resource, and when, as pure state machines.
//!
//! **Promises:** [`pacing`]: over any time, no more than the rate's bytes for that time, one message,
//! and the bytes of [`CREDIT_NS`](pacing::CREDIT_NS); and no less, as long as something is there to
//! move: start times are absolute, remainders of divisions are carried, so that nothing drifts.
//!
//! **Refuses:** clocks, files and processes; waiting (the caller waits until the time that it got).
//!
//! | module | content |
//! | --- | --- |
//! | [`pacing`] | when bytes may move: budgets that processes share without a lock |

#![cfg_attr(not(test), no_std)]

pub mod pacing;
