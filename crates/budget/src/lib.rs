//! The room `budget`: what programs may use of a resource, and when, as pure state machines.
//!
//! **Promises:** [`pacing`]: over any time, no more than the rate's bytes for that time, one message,
//! and the bytes of [`CREDIT_NS`](pacing::CREDIT_NS); and no less, as long as something is there to
//! move: start times are absolute, remainders of divisions are carried, so that nothing drifts.
//! [`admission`]: what is reserved is never more than there is. [`reservation`]: each part has its
//! minimum whatever the others want, and nothing is left over while any wants it.
//! [`discard`]: work for datagrams that have no room is avoided, of those that can be read none
//! is missing. [`processor`]: a group that wants more than its share of processor time has its share in any
//! second; sleeping is never stretched.
//!
//! **Refuses:** clocks, files and processes; waiting (the caller waits until the time that it got).
//!
//! | module | content |
//! | --- | --- |
//! | [`admission`] | whether reservations fit |
//! | [`discard`] | which datagrams are dropped before the kernel works for them |
//! | [`pacing`] | when bytes may move: budgets that processes share without a lock |
//! | [`reservation`] | a tree of minima and weights, and what each part has |
//! | [`processor`] | when programs may run: a virtual slower processor |

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod admission;
pub mod discard;
pub mod pacing;
pub mod processor;
pub mod reservation;
