//! Packets that were dropped, and the copies that were sent in their place.

use serde::Serialize;

use super::acks::AckTimeline;
use super::route::FlowDirectionRoute;
use crate::history::{DirectedLinkEnds, EndpointRole, FlowHistory, PacketKind, TcpSample};

/// How the sender noticed that a packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum LossDetectionMethod {
    /// The retransmission timer ran out (RFC 6298).
    #[serde(rename = "retransmission timeout")]
    Timeout,
    /// Acknowledgements showed it (RFC 5681, 8985).
    #[serde(rename = "fast retransmit")]
    FastRetransmit,
    /// A probe for loss at the tail (RFC 8985, section 7).
    #[serde(rename = "tail loss probe")]
    Probe,
    /// The program sent again.
    #[serde(rename = "sent again by the program")]
    Program,
}

impl LossDetectionMethod {
    /// The name in tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LossDetectionMethod::Timeout => "retransmission timeout",
            LossDetectionMethod::FastRetransmit => "fast retransmit",
            LossDetectionMethod::Probe => "tail loss probe",
            LossDetectionMethod::Program => "sent again by the program",
        }
    }
}

/// A packet that was dropped and sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketRetransmission {
    /// Who sent it.
    pub sender: EndpointRole,
    /// Its first byte, or its number.
    pub offset: u64,
    /// When it was sent, the copy that was dropped.
    pub sent_at: u64,
    /// The lane that dropped it, when, and the reason's number; `None`: not on a recorded lane.
    pub dropped: Option<(u32, u64, u32)>,
    /// When it was sent again.
    pub resent_at: u64,
    pub notice: LossDetectionMethod,
}

/// Losses of one direction.
#[derive(Debug, Default)]
pub(crate) struct RetransmissionHistory {
    /// Sorted by when they were sent again; only those that were dropped on a lane.
    of: Vec<PacketRetransmission>,
    /// When at least one was open: dropped, and not yet sent again. Disjoint and sorted.
    open: Vec<LossRecoveryInterval>,
}

/// A stretch in which a loss was open.
#[derive(Debug, Clone, Copy)]
struct LossRecoveryInterval {
    from: u64,
    to: u64,
    loss: usize,
}

impl RetransmissionHistory {
    /// What `sender` sent again because it had been dropped.
    pub(crate) fn new(
        history: &FlowHistory,
        sender: EndpointRole,
        route: &FlowDirectionRoute,
        acks: &AckTimeline,
        lanes: &[DirectedLinkEnds],
    ) -> RetransmissionHistory {
        let mut losses = RetransmissionHistory::default();
        let mut end = 0;
        let samples = &history.samples[sender.index()];
        for packet in &history.packets[sender.index()] {
            let is_new = packet.offset >= end;
            let is_entry = || lanes.get(packet.lane as usize).is_some_and(|it| route.is_entry(it));
            if packet.kind != PacketKind::Offered || packet.length == 0 || !is_entry() {
                continue;
            }
            end = end.max(packet.offset + u64::from(packet.length));
            if is_new || packet.time == 0 {
                continue;
            }
            let before = packet.time - 1;
            let Some(sent_at) = route.last_entered(packet.offset, before) else { continue };
            let drop = route.dropped(packet.offset, packet.time);
            let Some((lane, drop)) = drop.filter(|(_, drop)| drop.time >= sent_at) else {
                continue;
            };
            let dropped = Some((lane, drop.time, u32::try_from(drop.value).unwrap_or(u32::MAX)));
            let (offset, resent_at) = (packet.offset, packet.time);
            let notice = losses.notice(offset, sent_at, resent_at, acks, samples);
            losses.of.push(PacketRetransmission {
                sender,
                offset,
                sent_at,
                dropped,
                resent_at,
                notice,
            });
        }
        losses.finish();
        losses
    }

    fn finish(&mut self) {
        let begin =
            |loss: &PacketRetransmission| loss.dropped.map_or(loss.sent_at, |(_, time, _)| time);
        let mut order: Vec<usize> = (0..self.of.len()).collect();
        order.sort_by_key(|at| begin(&self.of[*at]));
        let mut covered = 0;
        for loss in order {
            let (from, to) = (begin(&self.of[loss]).max(covered), self.of[loss].resent_at);
            if from < to {
                self.open.push(LossRecoveryInterval { from, to, loss });
                covered = to;
            }
        }
    }

    /// What made the sender send a byte again.
    pub(crate) fn notice(
        &self,
        byte: u64,
        sent_at: u64,
        resent_at: u64,
        acks: &AckTimeline,
        samples: &[TcpSample],
    ) -> LossDetectionMethod {
        let earlier = self.of.iter().rev().take_while(|loss| loss.resent_at > sent_at);
        if earlier.clone().any(|loss| loss.notice == LossDetectionMethod::Timeout) {
            return LossDetectionMethod::Timeout;
        }
        let seen = acks.between(sent_at, resent_at);
        let waited = resent_at - seen.last().map_or(sent_at, |ack| ack.time);
        let known = samples.partition_point(|sample| sample.time <= resent_at);
        let known = samples[..known].iter().rev().find(|sample| sample.rto_us > 0);
        let rto = known.map_or(RTO_MIN_NS, |sample| u64::from(sample.rto_us) * 1000 / 10 * 9);
        let duplicates = seen.iter().filter(|ack| ack.is_pure && ack.upto <= byte).count();
        match () {
            () if waited >= rto => LossDetectionMethod::Timeout,
            () if duplicates > 0 => LossDetectionMethod::FastRetransmit,
            () => LossDetectionMethod::Probe,
        }
    }

    /// The latest stretch in `from..to` in which a loss was open: its begin and end, and the loss.
    pub(crate) fn open_before(
        &self,
        from: u64,
        to: u64,
    ) -> Option<(u64, u64, &PacketRetransmission)> {
        let after = self.open.partition_point(|open| open.from < to);
        let open = self.open[..after].last().filter(|open| open.to > from)?;
        Some((open.from.max(from), open.to.min(to), &self.of[open.loss]))
    }

    /// The loss in whose place a packet was sent at this time.
    pub(crate) fn resent(&self, byte: u64, time: u64) -> Option<&PacketRetransmission> {
        let first = self.of.partition_point(|loss| loss.resent_at < time);
        let there = self.of[first..].iter().take_while(|loss| loss.resent_at == time);
        there.filter(|loss| loss.offset <= byte).max_by_key(|loss| loss.offset)
    }
}

/// The least retransmission timeout of Linux.
const RTO_MIN_NS: u64 = 200_000_000;
