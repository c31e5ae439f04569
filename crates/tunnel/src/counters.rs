//! Counters of a tunnel.

use std::ops::AddAssign;

/// Counters of a tunnel since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TunnelCounters {
    /// Datagrams sent.
    pub sent: TunnelTraffic,
    /// Datagrams received and accepted.
    pub received: TunnelTraffic,
    /// Frames that were not sent.
    pub unsent: UnsentFrameCounts,
    /// Datagrams that came and were not accepted.
    pub refused: DatagramRefusalCounters,
    /// Frames of which some pieces came, and the rest did not in time.
    pub incomplete: u64,
    /// Datagrams with frames that others have overtaken and that have not come. Those that still
    /// come are counted no more.
    pub lost: u64,
}

/// Traffic between this machine and one other, in datagrams with frames: probes and answers are
/// not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeerCounters {
    /// Accepted by the kernel for sending to it.
    pub sent: TunnelTraffic,
    /// Received from it and accepted.
    pub received: TunnelTraffic,
    /// Datagrams that others of it have overtaken and that have not come.
    pub lost: u64,
}

/// Traffic in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TunnelTraffic {
    /// Datagrams; in [`TunnelCounters`] with probes and answers.
    pub datagrams: u64,
    /// Their bytes, headers of IP and UDP not counted.
    pub bytes: u64,
    /// Whole frames.
    pub frames: u64,
}

/// Frames that were not sent, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnsentFrameCounts {
    /// There was no room in the socket's send buffer, and none within the time that is waited.
    pub blocked: u64,
    /// The device does not take datagrams of the size in use any more; the next ones are smaller.
    pub too_big: u64,
    /// The kernel refused them: no route, a device that is down.
    pub failed: u64,
    /// An empty frame, one longer than [`FRAME_MAX`](windtunnel_wire::tunnel::FRAME_MAX), or for
    /// no peer.
    pub unfit: u64,
}

/// Datagrams that were not accepted, by reason, in the order in which they are looked for. All
/// before `forged` are found without any cryptography.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatagramRefusalCounters {
    /// None of ours, cut, or of contradictory content.
    pub malformed: u64,
    /// Of another run.
    pub other_run: u64,
    /// For another member, from none, or from another address than that member's.
    pub stranger: u64,
    /// Sealed where this side is plain, or the other way round.
    pub other_security: u64,
    /// They have come before.
    pub replayed: u64,
    /// So late that whether they have come before is not known any more.
    pub too_late: u64,
    /// Not sealed by their alleged sender.
    pub forged: u64,
}

impl UnsentFrameCounts {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.blocked + self.too_big + self.failed + self.unfit
    }
}

impl DatagramRefusalCounters {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.malformed
            + self.other_run
            + self.stranger
            + self.other_security
            + self.replayed
            + self.too_late
            + self.forged
    }
}

impl AddAssign for UnsentFrameCounts {
    fn add_assign(&mut self, other: UnsentFrameCounts) {
        self.blocked += other.blocked;
        self.too_big += other.too_big;
        self.failed += other.failed;
        self.unfit += other.unfit;
    }
}
