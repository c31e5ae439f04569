//! Datagrams that have come: from cheap questions to dear ones, then to frames.

use std::net::SocketAddr;

use windtunnel_model::Time;
use windtunnel_wire::tunnel::{
    FrameFragment, HEADER_LEN, TunnelDatagramKind, TunnelHeader, TunnelParseError,
    TunnelProbeReply, TunnelProbeRequest,
};

use crate::counters::DatagramRefusalCounters;
use crate::join::FragmentConflict;
use crate::peer::{TunnelPeer, index};
use crate::seal::{DatagramSeries, SealVerificationError};
use crate::window::AntiReplayVerdict;

use super::{FrameBuffer, ReceivedFrame, TunnelMembership};

/// Why a datagram is not accepted; see [`DatagramRefusalCounters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DatagramRefusalCause {
    Malformed,
    OtherRun,
    Stranger,
    OtherSecurity,
    Replayed,
    TooLate,
    Forged,
}

impl TunnelMembership {
    /// Takes in one datagram. Frames that it makes whole go to `hand`; a probe's answer is returned
    /// for the member that asked.
    pub(crate) fn accept(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &mut [u8],
        hand: &mut impl FnMut(ReceivedFrame<'_>),
    ) -> Option<(u16, TunnelProbeReply)> {
        match self.try_accept(now, from, datagram, hand) {
            Ok(answer) => answer,
            Err(cause) => {
                cause.count(&mut self.counters.refused);
                None
            }
        }
    }

    fn try_accept(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &mut [u8],
        hand: &mut impl FnMut(ReceivedFrame<'_>),
    ) -> Result<Option<(u16, TunnelProbeReply)>, DatagramRefusalCause> {
        let header = TunnelHeader::parse(datagram)?;
        if header.run != self.run {
            return Err(DatagramRefusalCause::OtherRun);
        }
        let peer = self.peers.get_mut(usize::from(header.sender)).and_then(Option::as_mut);
        let known = peer.filter(|peer| header.receiver == self.own && is_at(peer, from));
        let peer = known.ok_or(DatagramRefusalCause::Stranger)?;
        if header.sealed != self.sealed {
            return Err(DatagramRefusalCause::OtherSecurity);
        }
        let size = datagram.len();
        let payload = open(peer, &header, datagram)?;
        // From here on it is genuine.
        peer.reached = true;
        self.counters.received.datagrams += 1;
        self.counters.received.bytes += size as u64;
        match header.kind {
            TunnelDatagramKind::Data => {
                let mut frames = 0;
                let outcome = unpack(now, peer, header.sender, payload, &mut |received| {
                    frames += 1;
                    hand(received);
                });
                self.counters.received.frames += frames;
                peer.received.datagrams += 1;
                peer.received.bytes += size as u64;
                peer.received.frames += frames;
                if let Some(due) = peer.joiner.due() {
                    self.due = self.due.min(due);
                }
                outcome.map(|()| None)
            }
            TunnelDatagramKind::Probe => {
                let TunnelProbeRequest { stamp } = TunnelProbeRequest::parse(payload)?;
                let size = u16::try_from(size).map_err(|_| DatagramRefusalCause::Malformed)?;
                Ok(Some((header.sender, TunnelProbeReply { stamp, size })))
            }
            TunnelDatagramKind::Ack => {
                let TunnelProbeReply { stamp, size } = TunnelProbeReply::parse(payload)?;
                let rtt = now.since(Time::from_nanos(stamp));
                peer.path.answered(now, usize::from(size), rtt);
                self.due = self.due.min(peer.path.due());
                Ok(None)
            }
        }
    }
}

/// Proves a datagram genuine and new, and returns its payload in the clear. Only then is its number
/// taken note of.
fn open<'a>(
    peer: &mut TunnelPeer,
    header: &TunnelHeader,
    datagram: &'a mut [u8],
) -> Result<&'a mut [u8], DatagramRefusalCause> {
    let series = index(DatagramSeries::of(header.kind));
    match peer.incoming.windows[series].look(header.sequence) {
        AntiReplayVerdict::New => {}
        AntiReplayVerdict::Seen => return Err(DatagramRefusalCause::Replayed),
        AntiReplayVerdict::TooOld => return Err(DatagramRefusalCause::TooLate),
    }
    let payload = match &mut peer.incoming.keys {
        Some(keys) => keys[series].open(header.sequence, datagram)?,
        None => &mut datagram[HEADER_LEN..],
    };
    peer.incoming.windows[series].mark(header.sequence);
    Ok(payload)
}

/// Hands over the frames of a payload that are whole, and those that its pieces make whole.
fn unpack(
    now: Time,
    peer: &mut TunnelPeer,
    from: u16,
    payload: &mut [u8],
    hand: &mut impl FnMut(ReceivedFrame<'_>),
) -> Result<(), DatagramRefusalCause> {
    let mut at = 0;
    while let Some(placed) = FrameFragment::parse(payload, at)? {
        let piece = &mut payload[placed.start..placed.end];
        match placed.label {
            Some(label) if placed.is_whole() => {
                hand(ReceivedFrame { from, label, frame: FrameBuffer::in_datagram(piece) });
            }
            _ => peer.joiner.add(now, &placed, piece, |label, frame| {
                hand(ReceivedFrame { from, label: *label, frame: FrameBuffer::joined(frame) });
            })?,
        }
        at = placed.end;
    }
    Ok(())
}

/// The flow label of IPv6 is not part of the address.
fn is_at(peer: &TunnelPeer, from: SocketAddr) -> bool {
    peer.address.ip() == from.ip() && peer.address.port() == from.port()
}

impl DatagramRefusalCause {
    fn count(self, refused: &mut DatagramRefusalCounters) {
        let counter = match self {
            DatagramRefusalCause::Malformed => &mut refused.malformed,
            DatagramRefusalCause::OtherRun => &mut refused.other_run,
            DatagramRefusalCause::Stranger => &mut refused.stranger,
            DatagramRefusalCause::OtherSecurity => &mut refused.other_security,
            DatagramRefusalCause::Replayed => &mut refused.replayed,
            DatagramRefusalCause::TooLate => &mut refused.too_late,
            DatagramRefusalCause::Forged => &mut refused.forged,
        };
        *counter += 1;
    }
}

impl From<TunnelParseError> for DatagramRefusalCause {
    fn from(_: TunnelParseError) -> Self {
        DatagramRefusalCause::Malformed
    }
}

impl From<FragmentConflict> for DatagramRefusalCause {
    fn from(_: FragmentConflict) -> Self {
        DatagramRefusalCause::Malformed
    }
}

impl From<SealVerificationError> for DatagramRefusalCause {
    fn from(_: SealVerificationError) -> Self {
        DatagramRefusalCause::Forged
    }
}
