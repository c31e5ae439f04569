//! One flow's records of all layers, in one numbering: what explanations, modulation and workloads
//! are made from.
//!
//! Offsets are whole (64 bits) and count payload bytes of a direction from zero; for datagrams they
//! are numbers of datagrams. All times are on one clock, in nanoseconds.

mod collect;

pub use collect::{histories, lanes};

use serde::Serialize;
use windtunnel_model::record::kind::Call;

/// An end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndpointRole {
    /// The side that sent first.
    Client,
    Server,
}

impl EndpointRole {
    /// Both.
    pub const BOTH: [EndpointRole; 2] = [EndpointRole::Client, EndpointRole::Server];

    /// Its place in arrays by side, and that of the direction in which it sends.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The other end.
    #[must_use]
    pub const fn peer(self) -> EndpointRole {
        match self {
            EndpointRole::Client => EndpointRole::Server,
            EndpointRole::Server => EndpointRole::Client,
        }
    }

    /// `client` or `server`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            EndpointRole::Client => "client",
            EndpointRole::Server => "server",
        }
    }
}

/// What a flow's offsets count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlowSocketType {
    /// TCP: bytes.
    #[default]
    Stream,
    /// UDP: datagrams.
    Datagrams,
}

/// One flow.
#[derive(Debug, Clone)]
pub struct FlowHistory {
    /// Its number over all layers.
    pub flow: u32,
    pub transport: FlowSocketType,
    /// By how much a cause may seem to come after its effect: between two machines' clocks, and
    /// where the end of a call is not known.
    pub order_error_ns: u64,
    /// Whether offsets of calls are those of packets. If not, calls are left out: the flow was
    /// there before recording began.
    pub is_joined: bool,
    /// By side, sorted by begin.
    pub calls: [Vec<CallSpan>; 2],
    /// Whether calls of the side were recorded at all.
    pub calls_recorded: [bool; 2],
    /// By direction (that in which the client sends first), sorted by time.
    pub packets: [Vec<PacketEvent>; 2],
    /// By side, sorted by time.
    pub samples: [Vec<TcpSample>; 2],
}

impl Default for FlowHistory {
    fn default() -> FlowHistory {
        FlowHistory {
            flow: 0,
            transport: FlowSocketType::Stream,
            order_error_ns: 0,
            is_joined: true,
            calls: Default::default(),
            calls_recorded: [false; 2],
            packets: Default::default(),
            samples: Default::default(),
        }
    }
}

/// A call on the flow's socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSpan {
    pub begin: u64,
    pub end: u64,
    pub call: Call,
    /// The offset of its first byte, or its first datagram's number.
    pub offset: u64,
    /// Bytes asked for.
    pub asked: u32,
    /// Bytes, or the errno below zero.
    pub result: i32,
}

/// What happened to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketKind {
    /// It came to the start of the lane; the value is the acknowledged offset.
    Offered,
    /// Its transmission began; the value is how long it takes.
    Sent,
    /// It left the lane; the value is its delay after the transmission.
    Delivered,
    /// The value is the reason's number.
    Dropped,
}

/// Something that happened to a packet of the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketEvent {
    pub time: u64,
    pub offset: u64,
    /// Of [`PacketKind`].
    pub value: u64,
    /// Payload bytes, of all segments.
    pub length: u32,
    /// More than one: a train.
    pub segments: u16,
    pub lane: u32,
    pub kind: PacketKind,
    /// Bits of [`flag`](windtunnel_model::record::flag).
    pub flags: u8,
}

/// The state of one side's TCP. Absent values are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpSample {
    pub time: u64,
    /// Segments.
    pub cwnd: u32,
    /// Bytes of a segment.
    pub segment: u32,
    pub srtt_us: u32,
    pub rto_us: u32,
    /// What the peer lets it send, in bytes.
    pub send_window: u32,
    /// Bytes that the program has not read yet.
    pub unread: u32,
}

/// A direction of a link, by the numbers of its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectedLinkEnds {
    pub from: u32,
    pub to: u32,
}

/// Whether the call gives bytes to the socket.
#[must_use]
pub const fn is_write(call: Call) -> bool {
    matches!(
        call,
        Call::Write
            | Call::Writev
            | Call::Send
            | Call::Sendto
            | Call::Sendmsg
            | Call::Sendmmsg
            | Call::Sendfile
            | Call::SpliceTo
    )
}

/// Whether the call takes bytes from the socket.
#[must_use]
pub const fn is_read(call: Call) -> bool {
    matches!(
        call,
        Call::Read
            | Call::Readv
            | Call::Recv
            | Call::Recvfrom
            | Call::Recvmsg
            | Call::Recvmmsg
            | Call::SpliceFrom
    )
}

/// The whole offset of which these are the low 32 bits and that is nearest to `near`.
#[must_use]
pub const fn widen(near: u64, low: u32) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "low halves")]
    let difference = low.wrapping_sub(near as u32) as i32;
    match near.checked_add_signed(difference as i64) {
        Some(whole) => whole,
        None => low as u64,
    }
}
