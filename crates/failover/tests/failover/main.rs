//! The protocol in a simulated network, with TCP endpoints at all ends.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "offsets are cut to sequence numbers, and a test fails by a panic"
)]

mod basics;
mod checks;
mod deaths;
mod gaps;
mod hand;
mod handshake;
mod hostile;
mod lagging;
mod mixtures;
mod noticing;
mod programs;
mod repeated;
mod seeds;
mod seg;
mod smol;
mod tcp;
mod translation;
mod world;
