//! One other machine of the run, as the tunnel sees it.

use std::net::SocketAddr;

use windtunnel_wire::tunnel::{TAG_LEN, TunnelDatagramKind, TunnelHeader};

use crate::batch::Batch;
use crate::counters::{PeerCounters, TunnelTraffic};
use crate::join::FrameReassembler;
use crate::path::PeerPathState;
use crate::seal::{DatagramSeries, EpochKeyring, Secret, first_number};
use crate::setup::OpenError;
use crate::window::AntiReplayWindow;

pub(crate) struct TunnelPeer {
    /// Where it is, in the family of the socket.
    pub(crate) address: SocketAddr,
    pub(crate) batch: Batch,
    pub(crate) path: PeerPathState,
    pub(crate) joiner: FrameReassembler,
    pub(crate) incoming: PeerReceiveState,
    pub(crate) outgoing: PeerSendState,
    /// Whether a genuine datagram of it has come.
    pub(crate) reached: bool,
    /// Whether it has frames that are not flushed.
    pub(crate) queued: bool,
    /// Number of the next frame to it.
    pub(crate) frame: u32,
    /// Datagrams with frames that went to it, and that came from it.
    pub(crate) sent: TunnelTraffic,
    pub(crate) received: TunnelTraffic,
}

/// Datagrams from it, by series.
pub(crate) struct PeerReceiveState {
    pub(crate) windows: [AntiReplayWindow; 2],
    pub(crate) keys: Option<[EpochKeyring; 2]>,
}

/// Datagrams to it, by series.
pub(crate) struct PeerSendState {
    run: u64,
    from: u16,
    to: u16,
    /// The next number of each series; never used twice.
    next: [u64; 2],
    keys: Option<[EpochKeyring; 2]>,
}

impl TunnelPeer {
    pub(crate) fn new(
        run: u64,
        secret: Option<&Secret>,
        own: u16,
        number: u16,
        address: SocketAddr,
    ) -> Result<Self, OpenError> {
        let first = || first_number().ok_or(OpenError::NoEntropy);
        let keys = |from, to| {
            secret.map(|secret| {
                [DatagramSeries::Data, DatagramSeries::Control]
                    .map(|series| EpochKeyring::new(secret, from, to, series))
            })
        };
        let path = PeerPathState::new();
        let tag = if secret.is_some() { TAG_LEN } else { 0 };
        Ok(TunnelPeer {
            address,
            batch: Batch::new(path.size(), tag),
            path,
            joiner: FrameReassembler::default(),
            incoming: PeerReceiveState {
                windows: [AntiReplayWindow::new(), AntiReplayWindow::new()],
                keys: keys(number, own),
            },
            outgoing: PeerSendState {
                run,
                from: own,
                to: number,
                next: [first()?, first()?],
                keys: keys(own, number),
            },
            reached: false,
            queued: false,
            frame: 0,
            sent: TunnelTraffic::default(),
            received: TunnelTraffic::default(),
        })
    }

    pub(crate) fn counters(&self) -> PeerCounters {
        let lost = self.incoming.windows[index(DatagramSeries::Data)].missing();
        PeerCounters { sent: self.sent, received: self.received, lost }
    }
}

impl PeerSendState {
    /// Writes the header of a datagram that is complete but for it and the tag, and seals it. The
    /// number that it takes is used up even if the datagram is not sent.
    pub(crate) fn finish(&mut self, kind: TunnelDatagramKind, datagram: &mut [u8]) {
        let series = index(DatagramSeries::of(kind));
        let number = self.next[series];
        self.next[series] += 1;
        let header = TunnelHeader {
            kind,
            sealed: self.keys.is_some(),
            sender: self.from,
            receiver: self.to,
            run: self.run,
            sequence: number,
        };
        let (front, behind) =
            datagram.split_first_chunk_mut().expect("datagrams are made with room for the header");
        *front = header.emit(behind.len()).expect("datagrams are shorter than 64 KiB");
        if let Some(keys) = &mut self.keys {
            keys[series].seal(number, datagram);
        }
    }
}

/// Where a series is in arrays.
pub(crate) fn index(series: DatagramSeries) -> usize {
    match series {
        DatagramSeries::Data => 0,
        DatagramSeries::Control => 1,
    }
}
