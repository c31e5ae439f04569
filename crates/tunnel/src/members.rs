//! The members of a run and all that is between this one and the others, without a socket:
//! datagrams and time come in, datagrams and frames go out.

mod frame;
mod incoming;
mod outgoing;

use std::net::SocketAddr;

use windtunnel_model::Time;
use windtunnel_wire::tunnel::{FRAME_MAX, Label};

use crate::batch::BYTES_MAX;
use crate::counters::{TunnelCounters, UnsentFrameCounts};
use crate::peer::TunnelPeer;
use crate::seal::Secret;
use crate::setup::{OpenError, Security, TunnelSettings};

pub use frame::FrameBuffer;

/// A frame on its way to another machine.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingFrame<'a> {
    /// Member number of that machine.
    pub to: u16,
    /// Its label.
    pub label: Label,
    /// The frame, from its Ethernet header on.
    pub frame: &'a [u8],
}

/// A frame that has come.
#[derive(Debug)]
pub struct ReceivedFrame<'a> {
    /// Member number of the machine that sent it.
    pub from: u16,
    /// Its label.
    pub label: Label,
    /// The frame.
    pub frame: FrameBuffer<'a>,
}

/// The fate of the frames since the last flush.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TunnelFlushOutcome {
    /// Frames that the kernel has taken.
    pub sent: u64,
    /// Those that it has not.
    pub unsent: UnsentFrameCounts,
}

/// Carries datagrams to another machine.
pub(crate) trait DatagramCarrier {
    /// Takes `bytes`: datagrams of `size` bytes, the last perhaps shorter. With `patience` it may
    /// wait for room.
    fn carry(
        &mut self,
        to: SocketAddr,
        bytes: &[u8],
        size: usize,
        patience: bool,
    ) -> Result<(), DatagramCarrierRefusal>;
}

/// Why a carrier did not take datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatagramCarrierRefusal {
    /// There is no room.
    Blocked,
    /// Datagrams of this size cannot be carried.
    TooBig,
    Failed,
}

/// See the module.
pub(crate) struct TunnelMembership {
    pub(crate) run: u64,
    pub(crate) own: u16,
    pub(crate) sealed: bool,
    peers: Vec<Option<TunnelPeer>>,
    /// Peers with frames that are not flushed.
    waiting: Vec<u16>,
    flushed: TunnelFlushOutcome,
    counters: TunnelCounters,
    /// Not later than anything that is to be done at a time.
    due: Time,
    /// Where probes and answers are made.
    scratch: Vec<u8>,
}

impl TunnelMembership {
    pub(crate) fn new(setup: TunnelSettings, local: SocketAddr) -> Result<Self, OpenError> {
        let secret = match &setup.security {
            Security::Sealed(key) => Some(Secret::new(key, setup.run)),
            Security::Plain => None,
        };
        let TunnelSettings { run, own, .. } = setup;
        let peers = peers(setup, local, secret.as_ref())?;
        Ok(TunnelMembership {
            run,
            own,
            sealed: secret.is_some(),
            waiting: Vec::with_capacity(peers.len()),
            peers,
            flushed: TunnelFlushOutcome::default(),
            counters: TunnelCounters::default(),
            due: Time::ZERO,
            scratch: vec![0; BYTES_MAX],
        })
    }

    pub(crate) fn peer(&self, number: u16) -> Option<&TunnelPeer> {
        self.peers.get(usize::from(number))?.as_ref()
    }

    pub(crate) fn counters(&self) -> TunnelCounters {
        let mut counters = self.counters;
        for peer in self.peers.iter().flatten() {
            counters.incomplete += peer.joiner.incomplete();
            let missing = peer.incoming.windows[0].missing();
            // Without a seal, anybody can send any number.
            counters.lost = counters.lost.saturating_add(missing);
        }
        counters
    }

    pub(crate) fn refused(&self) -> u64 {
        self.counters.refused.total()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        (self.due < Time::MAX).then_some(self.due)
    }

    pub(crate) fn handle_timeout(&mut self, now: Time, carrier: &mut impl DatagramCarrier) {
        if now < self.due {
            return;
        }
        self.due = Time::MAX;
        for number in 0..self.peers.len() {
            let Some(peer) = &mut self.peers[number] else { continue };
            if let Some(expires) = peer.joiner.expire(now) {
                self.due = self.due.min(expires);
            }
            self.probe(now, number, carrier);
        }
    }
}

fn peers(
    setup: TunnelSettings,
    local: SocketAddr,
    secret: Option<&Secret>,
) -> Result<Vec<Option<TunnelPeer>>, OpenError> {
    let mut seen = std::collections::BTreeMap::new();
    let count = setup.peers.len();
    let mut peers = Vec::with_capacity(count);
    for (number, address) in setup.peers.into_iter().enumerate() {
        let number = u16::try_from(number).map_err(|_| OpenError::TooMany(count))?;
        let Some(address) = address.filter(|_| number != setup.own) else {
            peers.push(None);
            continue;
        };
        let reachable = in_family_of(local, address).ok_or(OpenError::OtherFamily {
            member: number,
            address,
            local,
        })?;
        if let Some(other) = seen.insert(reachable, number) {
            return Err(OpenError::SameAddress(other, number, address));
        }
        peers.push(Some(TunnelPeer::new(setup.run, secret, setup.own, number, reachable)?));
    }
    Ok(peers)
}

/// An address as a socket bound to `local` names it: one for IPv6 names IPv4 addresses in the
/// mapped form (RFC 4291, 2.5.5.2).
fn in_family_of(local: SocketAddr, address: SocketAddr) -> Option<SocketAddr> {
    let canonical = SocketAddr::new(address.ip().to_canonical(), address.port());
    match (local, canonical) {
        (SocketAddr::V4(_), SocketAddr::V4(_)) => Some(canonical),
        (SocketAddr::V4(_), SocketAddr::V6(_)) => None,
        (SocketAddr::V6(_), SocketAddr::V4(v4)) => {
            Some(SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()))
        }
        // The scope of a link-local address must stay.
        (SocketAddr::V6(_), SocketAddr::V6(_)) => Some(address),
    }
}

/// Whether a frame can be carried at all.
fn fits(frame: &[u8]) -> bool {
    (1..=FRAME_MAX).contains(&frame.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_names_addresses_in_its_own_family() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let named = |local, peer| in_family_of(address(local), address(peer));
        let v4 = Some(address("10.0.0.1:7"));
        assert_eq!(named("0.0.0.0:1", "10.0.0.1:7"), v4);
        assert_eq!(named("0.0.0.0:1", "[::ffff:10.0.0.1]:7"), v4);
        assert_eq!(named("0.0.0.0:1", "[fd00::1]:7"), None);
        assert_eq!(named("[::]:1", "10.0.0.1:7"), Some(address("[::ffff:10.0.0.1]:7")));
        assert_eq!(named("[::]:1", "[fe80::1%3]:7"), Some(address("[fe80::1%3]:7")));
    }
}
