//! One other machine of the run, as the tunnel sees it.

use std::net::SocketAddr;

use windtunnel_wire::tunnel::{Header, Kind, TAG_LEN};

use crate::batch::Batch;
use crate::counters::{PeerCounters, Traffic};
use crate::join::Joiner;
use crate::path::Path;
use crate::seal::{Keys, Secret, Series, first_number};
use crate::setup::OpenError;
use crate::window::Window;

pub(crate) struct Peer {
    /// Where it is, in the family of the socket.
    pub(crate) address: SocketAddr,
    pub(crate) batch: Batch,
    pub(crate) path: Path,
    pub(crate) joiner: Joiner,
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
    /// Whether a genuine datagram of it has come.
    pub(crate) reached: bool,
    /// Whether it has frames that are not flushed.
    pub(crate) queued: bool,
    /// Number of the next frame to it.
    pub(crate) frame: u32,
    /// Datagrams with frames that went to it, and that came from it.
    pub(crate) sent: Traffic,
    pub(crate) received: Traffic,
}

/// Datagrams from it, by series.
pub(crate) struct Incoming {
    pub(crate) windows: [Window; 2],
    pub(crate) keys: Option<[Keys; 2]>,
}

/// Datagrams to it, by series.
pub(crate) struct Outgoing {
    run: u64,
    from: u16,
    to: u16,
    /// The next number of each series; never used twice.
    next: [u64; 2],
    keys: Option<[Keys; 2]>,
}

impl Peer {
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
                [Series::Data, Series::Control].map(|series| Keys::new(secret, from, to, series))
            })
        };
        let path = Path::new();
        let tag = if secret.is_some() { TAG_LEN } else { 0 };
        Ok(Peer {
            address,
            batch: Batch::new(path.size(), tag),
            path,
            joiner: Joiner::default(),
            incoming: Incoming { windows: [Window::new(), Window::new()], keys: keys(number, own) },
            outgoing: Outgoing {
                run,
                from: own,
                to: number,
                next: [first()?, first()?],
                keys: keys(own, number),
            },
            reached: false,
            queued: false,
            frame: 0,
            sent: Traffic::default(),
            received: Traffic::default(),
        })
    }

    pub(crate) fn counters(&self) -> PeerCounters {
        let lost = self.incoming.windows[index(Series::Data)].missing();
        PeerCounters { sent: self.sent, received: self.received, lost }
    }
}

impl Outgoing {
    /// Writes the header of a datagram that is complete but for it and the tag, and seals it. The
    /// number that it takes is used up even if the datagram is not sent.
    pub(crate) fn finish(&mut self, kind: Kind, datagram: &mut [u8]) {
        let series = index(Series::of(kind));
        let number = self.next[series];
        self.next[series] += 1;
        let header = Header {
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
pub(crate) fn index(series: Series) -> usize {
    match series {
        Series::Data => 0,
        Series::Control => 1,
    }
}
