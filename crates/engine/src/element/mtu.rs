//! MTU: packets larger than the link takes are refused or fragmented.
//!
//! - **Parameters**: the largest IP packet in bytes, default 1500.
//! - **Time, order**: unchanged; fragments follow each other at once, each with a packet number of
//!   its own (the first keeps the packet's).
//! - **Bytes**: IPv4 without DF is fragmented, after its checksum has been completed. IPv6, and
//!   IPv4 with DF, is dropped, and the engine sends fragmentation-needed or packet-too-big with
//!   this MTU (one message for the refused segments of a train). On a LAN only routers do that: its
//!   segment, and a node's own attachment, drop what is too large without a message.
//! - **Drop reasons**: `mtu`.
//! - **Model**: RFC 791 3.2, RFC 1191, RFC 1812 4.2.2.7, RFC 8201.

use windtunnel_wire::packet::ParsedPacket;

use crate::packet::PacketTrainShape;

#[derive(Debug, Clone, Copy)]
pub(crate) struct MtuLimit(pub(crate) u32);

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MtuVerdict {
    Whole,
    /// May be fragmented; without, `segments` from the front do not fit.
    Fragments {
        segments: u32,
    },
    /// Refused; `segments` from the front do not fit (the last one of a train may).
    No {
        segments: u32,
    },
}

impl MtuLimit {
    pub(crate) fn takes_all(self, shape: &PacketTrainShape) -> bool {
        shape.each <= self.0 && shape.last <= self.0
    }

    pub(crate) fn fit(self, shape: &PacketTrainShape, frame: &[u8]) -> MtuVerdict {
        if self.takes_all(shape) {
            return MtuVerdict::Whole;
        }
        let last_fits = shape.count > 1 && shape.last <= self.0;
        let segments = shape.count - u32::from(last_fits);
        match ParsedPacket::parse(frame) {
            Ok(packet) if !packet.info.dont_fragment => MtuVerdict::Fragments { segments },
            _ => MtuVerdict::No { segments },
        }
    }
}
