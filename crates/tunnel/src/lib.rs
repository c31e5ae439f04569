//! The room `tunnel`: frames of emulated nodes on their way between the machines of one run.
//!
//! Each machine has one UDP socket for a run. Frames for one peer are packed into datagrams of the
//! path's MTU, cut where a datagram ends, sealed with AES-128-GCM, and sent by one system call for
//! up to 64 KiB (UDP GSO). The other side takes them in batches (GRO), opens, and hands whole
//! frames over.
//!
//! **Promises:** frames arrive whole and unchanged, each at most once, or are counted as lost; a
//! datagram not from a member of the run is counted and dropped. No call waits for longer than 5
//! ms, and none allocates for a packet once buffers are there. The caller passes the time.
//!
//! **Refuses:** to repeat lost frames, to keep frames in order, to slow down senders: the
//! emulated network decides about all of these.
//!
//! `docs/internals/tunnel.md` has the format, the keys, and the threats by a hostile sender.
//!
//! ```
//! use std::net::UdpSocket;
//! use windtunnel_model::Time;
//! use windtunnel_tunnel::{Label, OutgoingFrame, Security, TunnelSettings, UdpTunnel};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sockets = [UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?];
//! let [a, b] = [sockets[0].local_addr()?, sockets[1].local_addr()?];
//! let setup = |own, peers| TunnelSettings { run: 7, own, peers, security: Security::Sealed([1; 32]) };
//! let [first, second] = sockets;
//! let mut first = UdpTunnel::open(first, setup(0, vec![None, Some(b)]))?;
//! let mut second = UdpTunnel::open(second, setup(1, vec![Some(a), None]))?;
//!
//! let now = Time::ZERO;
//! let label = Label { port: 3, lane: 4, intended: 5_000, vnet: [0; 10] };
//! first.push(now, &OutgoingFrame { to: 1, label, frame: b"a frame" });
//! assert_eq!(first.flush(now).unsent.total(), 0);
//! let mut frames = Vec::new();
//! while frames.is_empty() {
//!     second.receive(now, |received| frames.push((received.from, received.frame.to_vec())))?;
//! }
//! assert_eq!(frames, [(0, b"a frame".to_vec())]);
//! # Ok(())
//! # }
//! ```

mod batch;
mod counters;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod join;
mod members;
mod path;
mod peer;
mod seal;
mod setup;
mod silence;
#[cfg(test)]
mod tests;
mod tunnel;
mod window;

pub use counters::{
    DatagramRefusalCounters, PeerCounters, TunnelCounters, TunnelTraffic, UnsentFrameCounts,
};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_one;
pub use members::{FrameBuffer, OutgoingFrame, ReceivedFrame, TunnelFlushOutcome};
pub use setup::{OpenError, Security, TunnelSettings};
pub use tunnel::{Buffers, ReceiveError, UdpTunnel};
pub use windtunnel_wire::tunnel::{FRAME_MAX, Label};
