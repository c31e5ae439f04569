//! Frames to batches, batches to the carrier; probes and answers.

use std::net::SocketAddr;

use windtunnel_model::Time;
use windtunnel_wire::tunnel::{
    HEADER_LEN, TAG_LEN, TunnelDatagramKind, TunnelProbeReply, TunnelProbeRequest,
};

use crate::counters::{TunnelCounters, UnsentFrameCounts};
use crate::peer::TunnelPeer;

use super::{
    DatagramCarrier, DatagramCarrierRefusal, OutgoingFrame, TunnelFlushOutcome, TunnelMembership,
    fits,
};

impl TunnelMembership {
    pub(crate) fn push(
        &mut self,
        now: Time,
        outgoing: &OutgoingFrame<'_>,
        carrier: &mut impl DatagramCarrier,
    ) {
        let peer = self.peers.get_mut(usize::from(outgoing.to)).and_then(Option::as_mut);
        let (Some(peer), true) = (peer, fits(outgoing.frame)) else {
            self.flushed.unsent.unfit += 1;
            return;
        };
        if !peer.queued {
            peer.queued = true;
            peer.batch.reset(peer.path.size());
            self.waiting.push(outgoing.to);
        }
        let number = peer.frame;
        peer.frame = number.wrapping_add(1);
        let (frame, mut offset) = (outgoing.frame, 0);
        loop {
            offset += peer.batch.add(number, &outgoing.label, frame, offset);
            if offset == frame.len() {
                return;
            }
            peer.outgoing.finish(TunnelDatagramKind::Data, peer.batch.close(true));
            if !peer.batch.is_full() {
                continue;
            }
            if let Err(refusal) = deliver(now, peer, carrier, &mut self.flushed, &mut self.counters)
            {
                // The rest of this frame is of no use to anybody.
                refusal.count(&mut self.flushed.unsent, 1);
                return;
            }
        }
    }

    pub(crate) fn flush(
        &mut self,
        now: Time,
        carrier: &mut impl DatagramCarrier,
    ) -> TunnelFlushOutcome {
        for number in self.waiting.drain(..) {
            let peer = self.peers.get_mut(usize::from(number)).and_then(Option::as_mut);
            let Some(peer) = peer else { continue };
            peer.queued = false;
            if peer.batch.is_open() {
                peer.outgoing.finish(TunnelDatagramKind::Data, peer.batch.close(false));
            }
            // A refusal has been counted.
            let _: Result<(), DatagramCarrierRefusal> =
                deliver(now, peer, carrier, &mut self.flushed, &mut self.counters);
            self.due = self.due.min(peer.path.due());
        }
        let flushed = std::mem::take(&mut self.flushed);
        self.counters.unsent += flushed.unsent;
        self.counters.sent.frames += flushed.sent;
        flushed
    }

    /// Sends the probe that is due to a peer, and notes when the next one is.
    pub(super) fn probe(&mut self, now: Time, number: usize, carrier: &mut impl DatagramCarrier) {
        let Some(peer) = &mut self.peers[number] else { return };
        while let Some(size) = peer.path.poll(now) {
            let probe = &mut self.scratch[..size];
            probe.fill(0);
            let question = TunnelProbeRequest { stamp: now.as_nanos() }.emit();
            probe[HEADER_LEN..HEADER_LEN + TunnelProbeRequest::LEN].copy_from_slice(&question);
            peer.outgoing.finish(TunnelDatagramKind::Probe, probe);
            match carry(carrier, peer.address, probe, size, false, &mut self.counters) {
                Err(DatagramCarrierRefusal::TooBig) => peer.path.too_big(now, size),
                // A probe that is not sent gets no answer: its time-out handles that.
                Ok(()) | Err(DatagramCarrierRefusal::Blocked | DatagramCarrierRefusal::Failed) => {}
            }
        }
        self.due = self.due.min(peer.path.due());
    }

    pub(crate) fn answer(
        &mut self,
        number: u16,
        answer: TunnelProbeReply,
        carrier: &mut impl DatagramCarrier,
    ) {
        let Some(Some(peer)) = self.peers.get_mut(usize::from(number)) else { return };
        let tag = if self.sealed { TAG_LEN } else { 0 };
        let size = HEADER_LEN + TunnelProbeReply::LEN + tag;
        let datagram = &mut self.scratch[..size];
        datagram[HEADER_LEN..HEADER_LEN + TunnelProbeReply::LEN].copy_from_slice(&answer.emit());
        peer.outgoing.finish(TunnelDatagramKind::Ack, datagram);
        // The other side asks again.
        let _: Result<(), DatagramCarrierRefusal> =
            carry(carrier, peer.address, datagram, size, false, &mut self.counters);
    }
}

impl DatagramCarrierRefusal {
    fn count(self, unsent: &mut UnsentFrameCounts, frames: u64) {
        let counter = match self {
            DatagramCarrierRefusal::Blocked => &mut unsent.blocked,
            DatagramCarrierRefusal::TooBig => &mut unsent.too_big,
            DatagramCarrierRefusal::Failed => &mut unsent.failed,
        };
        *counter += frames;
    }
}

/// Hands the closed datagrams of a peer's batch over and empties it.
fn deliver(
    now: Time,
    peer: &mut TunnelPeer,
    carrier: &mut impl DatagramCarrier,
    flushed: &mut TunnelFlushOutcome,
    counters: &mut TunnelCounters,
) -> Result<(), DatagramCarrierRefusal> {
    let (bytes, size) = peer.batch.closed();
    let frames = peer.batch.frames();
    let longest = size.min(bytes.len());
    let outcome = match bytes {
        [] => Ok(()),
        _ => carry(carrier, peer.address, bytes, size, true, counters),
    };
    match outcome {
        Ok(()) => {
            flushed.sent += frames;
            peer.sent.datagrams += bytes.len().div_ceil(size) as u64;
            peer.sent.bytes += bytes.len() as u64;
            peer.sent.frames += frames;
        }
        Err(refusal) => refusal.count(&mut flushed.unsent, frames),
    }
    if outcome == Err(DatagramCarrierRefusal::TooBig) {
        peer.path.too_big(now, longest);
    }
    peer.batch.reset(peer.path.size());
    outcome
}

fn carry(
    carrier: &mut impl DatagramCarrier,
    to: SocketAddr,
    bytes: &[u8],
    size: usize,
    patience: bool,
    counters: &mut TunnelCounters,
) -> Result<(), DatagramCarrierRefusal> {
    carrier.carry(to, bytes, size, patience)?;
    counters.sent.datagrams += bytes.len().div_ceil(size) as u64;
    counters.sent.bytes += bytes.len() as u64;
    Ok(())
}
