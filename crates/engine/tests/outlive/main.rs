//! Connections that outlive their server, in the emulated network: TCPs at all ends, in virtual
//! time.
//!
//! The TCPs and their programs are those with which the room `failover` is tested.

#![allow(
    dead_code,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "the files of other tests have more; offsets are cut to sequence numbers"
)]

mod cost;
mod deaths;
mod ends;
mod network;
#[path = "../../../failover/tests/failover/programs.rs"]
mod programs;
mod refused;
#[path = "../../../failover/tests/failover/seg.rs"]
mod seg;
#[path = "../engine/support.rs"]
mod support;
#[path = "../../../failover/tests/failover/tcp.rs"]
mod tcp;
mod ways;
