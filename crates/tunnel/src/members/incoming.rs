//! Datagrams that have come: from cheap questions to dear ones, then to frames.

use std::net::SocketAddr;

use windtunnel_model::Time;
use windtunnel_wire::tunnel::{Answer, HEADER_LEN, Header, Kind, Malformed, Piece, Question};

use crate::counters::Refused;
use crate::join::Contradiction;
use crate::peer::{Peer, index};
use crate::seal::{Forged, Series};
use crate::window::Verdict;

use super::{Frame, Members, Received};

/// Why a datagram is not accepted; see [`Refused`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Malformed,
    OtherRun,
    Stranger,
    OtherSecurity,
    Replayed,
    TooLate,
    Forged,
}

impl Members {
    /// Takes in one datagram. Frames that it makes whole go to `hand`; a probe's answer is returned
    /// for the member that asked.
    pub(crate) fn accept(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &mut [u8],
        hand: &mut impl FnMut(Received<'_>),
    ) -> Option<(u16, Answer)> {
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
        hand: &mut impl FnMut(Received<'_>),
    ) -> Result<Option<(u16, Answer)>, Cause> {
        let header = Header::parse(datagram)?;
        if header.run != self.run {
            return Err(Cause::OtherRun);
        }
        let peer = self.peers.get_mut(usize::from(header.sender)).and_then(Option::as_mut);
        let known = peer.filter(|peer| header.receiver == self.own && is_at(peer, from));
        let peer = known.ok_or(Cause::Stranger)?;
        if header.sealed != self.sealed {
            return Err(Cause::OtherSecurity);
        }
        let size = datagram.len();
        let payload = open(peer, &header, datagram)?;
        // From here on it is genuine.
        peer.reached = true;
        self.counters.received.datagrams += 1;
        self.counters.received.bytes += size as u64;
        match header.kind {
            Kind::Data => {
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
            Kind::Probe => {
                let Question { stamp } = Question::parse(payload)?;
                let size = u16::try_from(size).map_err(|_| Cause::Malformed)?;
                Ok(Some((header.sender, Answer { stamp, size })))
            }
            Kind::Ack => {
                let Answer { stamp, size } = Answer::parse(payload)?;
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
    peer: &mut Peer,
    header: &Header,
    datagram: &'a mut [u8],
) -> Result<&'a mut [u8], Cause> {
    let series = index(Series::of(header.kind));
    match peer.incoming.windows[series].look(header.sequence) {
        Verdict::New => {}
        Verdict::Seen => return Err(Cause::Replayed),
        Verdict::TooOld => return Err(Cause::TooLate),
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
    peer: &mut Peer,
    from: u16,
    payload: &mut [u8],
    hand: &mut impl FnMut(Received<'_>),
) -> Result<(), Cause> {
    let mut at = 0;
    while let Some(placed) = Piece::parse(payload, at)? {
        let piece = &mut payload[placed.start..placed.end];
        match placed.label {
            Some(label) if placed.is_whole() => {
                hand(Received { from, label, frame: Frame::in_datagram(piece) });
            }
            _ => peer.joiner.add(now, &placed, piece, |label, frame| {
                hand(Received { from, label: *label, frame: Frame::joined(frame) });
            })?,
        }
        at = placed.end;
    }
    Ok(())
}

/// The flow label of IPv6 is not part of the address.
fn is_at(peer: &Peer, from: SocketAddr) -> bool {
    peer.address.ip() == from.ip() && peer.address.port() == from.port()
}

impl Cause {
    fn count(self, refused: &mut Refused) {
        let counter = match self {
            Cause::Malformed => &mut refused.malformed,
            Cause::OtherRun => &mut refused.other_run,
            Cause::Stranger => &mut refused.stranger,
            Cause::OtherSecurity => &mut refused.other_security,
            Cause::Replayed => &mut refused.replayed,
            Cause::TooLate => &mut refused.too_late,
            Cause::Forged => &mut refused.forged,
        };
        *counter += 1;
    }
}

impl From<Malformed> for Cause {
    fn from(_: Malformed) -> Self {
        Cause::Malformed
    }
}

impl From<Contradiction> for Cause {
    fn from(_: Contradiction) -> Self {
        Cause::Malformed
    }
}

impl From<Forged> for Cause {
    fn from(_: Forged) -> Self {
        Cause::Forged
    }
}
