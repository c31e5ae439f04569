//! The tunnel: the members of a run, and the socket between them.

mod link;

use std::array;
use std::fmt;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};

use quinn_udp::{BATCH_SIZE, RecvMeta};
use windtunnel_model::{Span, Time};

use crate::counters::{PeerCounters, TunnelCounters};
use crate::members::{OutgoingFrame, ReceivedFrame, TunnelFlushOutcome, TunnelMembership};
use crate::setup::{OpenError, TunnelSettings};
use link::TunnelSocket;

pub use link::Buffers;

/// Bytes of a receive buffer: the datagrams of a GRO train, or one as long as IP carries.
const TRAIN_MAX: usize = 1 << 16;

/// One UDP socket to all other machines of a run. For one thread; for polling it is a descriptor.
///
/// The caller's loop: [`push`](Self::push) frames and [`flush`](Self::flush);
/// [`receive`](Self::receive) until it returns 0, when the descriptor is readable;
/// [`handle_timeout`](Self::handle_timeout) when the time that [`poll_timeout`](Self::poll_timeout)
/// says has come. `now` is of one clock, and does not go back.
pub struct UdpTunnel {
    members: TunnelMembership,
    link: TunnelSocket,
    inbox: Vec<u8>,
}

/// The socket could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot receive from the UDP socket of the tunnel: {0}")]
pub struct ReceiveError(#[source] io::Error);

impl UdpTunnel {
    /// Opens the tunnel over a bound socket, which may be of another network namespace than the
    /// process. The socket is made non-blocking, never lets IP fragment, and asks for large
    /// buffers.
    ///
    /// # Errors
    /// A socket that cannot be used; peers that it cannot reach or distinguish.
    pub fn open(socket: UdpSocket, setup: TunnelSettings) -> Result<UdpTunnel, OpenError> {
        let local = socket.local_addr().map_err(OpenError::Socket)?;
        let members = TunnelMembership::new(setup, local)?;
        let link = TunnelSocket::new(socket).map_err(OpenError::Socket)?;
        Ok(UdpTunnel { members, link, inbox: vec![0; BATCH_SIZE * TRAIN_MAX] })
    }

    /// Adds a frame to those that [`flush`](Self::flush) sends. Datagrams that are full may be sent
    /// at once.
    pub fn push(&mut self, now: Time, outgoing: &OutgoingFrame<'_>) {
        self.members.push(now, outgoing, &mut self.link);
    }

    /// Sends the pushed frames, and returns the fate of all frames since the last flush. It waits
    /// for room in the socket's send buffer for 5 ms at the most.
    pub fn flush(&mut self, now: Time) -> TunnelFlushOutcome {
        self.link.rest();
        let flushed = self.members.flush(now, &mut self.link);
        self.link.rest();
        flushed
    }

    /// Takes a batch of datagrams in and hands over the frames that are whole now. Returns how many
    /// datagrams there were: 0, and nothing is left for now.
    ///
    /// # Errors
    /// If the socket cannot be read.
    pub fn receive(
        &mut self,
        now: Time,
        mut hand: impl FnMut(ReceivedFrame<'_>),
    ) -> Result<usize, ReceiveError> {
        let mut trains = self.inbox.chunks_exact_mut(TRAIN_MAX);
        let mut buffers: [IoSliceMut<'_>; BATCH_SIZE] =
            array::from_fn(|_| IoSliceMut::new(trains.next().unwrap_or_default()));
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let count = match self.link.receive(&mut buffers, &mut metas) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(ReceiveError(error)),
        };
        let mut taken = 0;
        for (buffer, meta) in buffers.iter_mut().zip(&metas[..count]) {
            let mut rest = &mut buffer[..meta.len.min(TRAIN_MAX)];
            loop {
                let stride = meta.stride.clamp(1, rest.len().max(1)).min(rest.len());
                let (datagram, behind) = rest.split_at_mut(stride);
                taken += 1;
                let answer = self.members.accept(now, meta.addr, datagram, &mut hand);
                if let Some((peer, answer)) = answer {
                    self.members.answer(peer, answer, &mut self.link);
                }
                rest = behind;
                if rest.is_empty() {
                    break;
                }
            }
        }
        Ok(taken)
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called; perhaps too early, never
    /// too late. `None` without peers.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.members.poll_timeout()
    }

    /// Greets peers, tries how large datagrams may be, and gives up frames that stay unfinished.
    /// Called too early, it does nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        self.members.handle_timeout(now, &mut self.link);
    }

    /// Whether a genuine datagram of this peer has come.
    #[must_use]
    pub fn reached(&self, peer: u16) -> bool {
        self.members.peer(peer).is_some_and(|peer| peer.reached)
    }

    /// The least round trip to this peer in the last seconds, its time to answer included. With
    /// one, both directions have carried a datagram.
    #[must_use]
    pub fn rtt(&self, peer: u16) -> Option<Span> {
        self.members.peer(peer)?.path.rtt()
    }

    /// Bytes of a datagram to this peer, our header and tag included, those of IP and UDP not;
    /// `None` for no peer.
    #[must_use]
    pub fn mtu(&self, peer: u16) -> Option<usize> {
        Some(self.members.peer(peer)?.path.size())
    }

    /// The counters so far.
    #[must_use]
    pub fn counters(&self) -> TunnelCounters {
        self.members.counters()
    }

    /// Datagrams that were refused so far, for any reason: without a look at each peer.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.members.refused()
    }

    /// Traffic between this machine and a peer; `None` for no peer. Once one side sends nothing
    /// more and all datagrams under way have arrived, its `sent` and the other's `received` differ
    /// by the lost ones.
    #[must_use]
    pub fn peer_counters(&self, peer: u16) -> Option<PeerCounters> {
        Some(self.members.peer(peer)?.counters())
    }

    /// Since when this peer has answered none of the probes that the way to it should carry, if
    /// that is for two seconds or longer.
    #[must_use]
    pub fn silent_since(&self, peer: u16, now: Time) -> Option<Time> {
        self.members.peer(peer)?.path.silent_since(now)
    }

    /// The socket's buffer sizes. A receive buffer of less than a few MB loses datagrams in
    /// bursts: the owner of the machine raises `net.core.rmem_max`.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn buffers(&self) -> io::Result<Buffers> {
        self.link.buffers()
    }
}

impl AsFd for UdpTunnel {
    /// For polling: readable when there is something to receive.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

impl fmt::Debug for UdpTunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel")
            .field("run", &self.members.run)
            .field("own", &self.members.own)
            .field("sealed", &self.members.sealed)
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}
