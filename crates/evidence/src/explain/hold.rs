//! What held bytes back that had been written: a busy line, a loss, a window.

use super::acks::AckTimeline;
use super::losses::{PacketRetransmission, RetransmissionHistory};
use super::part::LatencyComponent;
use super::route::{DirectedLinkPassages, FlowDirectionRoute};
use super::walk::LatencyAttribution;
use crate::history::{DirectedLinkEnds, EndpointRole, FlowHistory, PacketKind, TcpSample};

/// When the narrowest lane of a way was occupied by the flow: it was being used as far as it can,
/// and a larger window would only have made a longer queue.
#[derive(Debug, Default)]
pub(crate) struct BottleneckOccupancy {
    lane: u32,
    /// Disjoint and sorted.
    of: Vec<OccupancyInterval>,
}

#[derive(Debug, Clone, Copy)]
struct OccupancyInterval {
    queued: u64,
    sent: u64,
    end: u64,
}

impl BottleneckOccupancy {
    /// The lane on which the packets' transmission took the longest in all.
    pub(crate) fn new(route: &FlowDirectionRoute) -> BottleneckOccupancy {
        let time = |lane: &DirectedLinkPassages| {
            lane.sent.all().iter().map(|sent| sent.value).sum::<u64>()
        };
        let narrowest = route.lanes().iter().map(|lane| (time(lane), lane)).rev();
        let Some((1.., lane)) = narrowest.max_by_key(|(time, _)| *time) else {
            return BottleneckOccupancy::default();
        };
        let mut sent = lane.sent.all().to_vec();
        sent.sort_by_key(|passage| passage.time);
        let mut line = BottleneckOccupancy { lane: lane.lane, of: Vec::with_capacity(sent.len()) };
        let mut before = 0;
        for passage in sent {
            let sent = passage.time.max(before);
            let offered = lane.offered.latest(passage.offset, passage.time);
            let queued = offered.map_or(sent, |offered| offered.time.max(before));
            let end = (passage.time + passage.value).max(sent);
            line.of.push(OccupancyInterval { queued, sent, end });
            before = end;
        }
        line
    }

    /// The latest stretch in `from..to` in which it was occupied.
    fn before(&self, from: u64, to: u64) -> Option<(u64, u64, LatencyComponent)> {
        let after = self.of.partition_point(|occupied| occupied.queued < to);
        let occupied = self.of[..after].last().filter(|occupied| occupied.end > from)?;
        Some(if occupied.sent < to && occupied.end > occupied.sent {
            let (begin, end) = (occupied.sent.max(from), occupied.end.min(to));
            (begin, end, LatencyComponent::Transmission(self.lane))
        } else {
            let (begin, end) = (occupied.queued.max(from), occupied.sent.min(to));
            (begin, end, LatencyComponent::Queue(self.lane))
        })
    }
}

/// How far a side had sent, at each time at which it sent something new: (time, end).
pub(crate) fn progress(
    history: &FlowHistory,
    sender: EndpointRole,
    route: &FlowDirectionRoute,
    lanes: &[DirectedLinkEnds],
) -> Vec<(u64, u64)> {
    let mut progress: Vec<(u64, u64)> = Vec::new();
    for packet in &history.packets[sender.index()] {
        let end = packet.offset + u64::from(packet.length);
        let is_new = progress.last().is_none_or(|(_, known)| end > *known);
        let is_data = packet.kind == PacketKind::Offered && packet.length > 0;
        if is_data
            && is_new
            && lanes.get(packet.lane as usize).is_some_and(|lane| route.is_entry(lane))
        {
            progress.push((packet.time, end));
        }
    }
    progress
}

/// What is known of a side that sends.
#[derive(Debug)]
pub(crate) struct SenderHistory<'a> {
    pub(crate) side: EndpointRole,
    pub(crate) line: BottleneckOccupancy,
    pub(crate) acks: AckTimeline,
    pub(crate) losses: RetransmissionHistory,
    pub(crate) progress: Vec<(u64, u64)>,
    pub(crate) samples: &'a [TcpSample],
}

impl SenderHistory<'_> {
    /// Attributes the time from `from` to where the walk is, in which there was something to send:
    /// to the narrowest lane while it was occupied, to losses while one was open, then to a window
    /// that was full, else to `otherwise`. Losses that took part join `losses`.
    pub(crate) fn hold(
        &self,
        walk: &mut LatencyAttribution,
        from: u64,
        otherwise: LatencyComponent,
        losses: &mut Vec<PacketRetransmission>,
    ) {
        while walk.now() > from && !walk.is_done() {
            let now = walk.now();
            let busy = self.line.before(from, now);
            if let Some((begin, _, part)) = busy.filter(|(_, end, _)| *end == now) {
                walk.back_to(begin, part);
                continue;
            }
            let idle = busy.map_or(from, |(_, end, _)| end);
            let open = self.losses.open_before(idle, now);
            if let Some((begin, _, loss)) = open.filter(|(_, end, _)| *end == now) {
                walk.back_to(
                    begin,
                    LatencyComponent::Recovery(loss.dropped.map(|(lane, ..)| lane)),
                );
                losses.push(*loss);
                continue;
            }
            walk.back_to(open.map_or(idle, |(_, end, _)| end), self.limit(now, otherwise));
        }
    }

    /// The window that was full just before `time`.
    fn limit(&self, time: u64, otherwise: LatencyComponent) -> LatencyComponent {
        let before = time.saturating_sub(1);
        let in_flight = self.in_flight(before);
        let after = self.samples.partition_point(|sample| sample.time <= before);
        let around = [after.checked_sub(1), Some(after)].into_iter().flatten();
        let around = around.filter_map(|at| self.samples.get(at));
        let known = around.filter(|sample| sample.cwnd > 0 && sample.segment > 0);
        let cwnd = known.clone().map(|it| u64::from(it.cwnd) * u64::from(it.segment)).min();
        let window = known.map(|sample| u64::from(sample.send_window)).min();
        let (Some(cwnd), Some(window)) = (cwnd, window) else {
            let is_sending = in_flight > 0 && matches!(otherwise, LatencyComponent::SendBuffer(_));
            return if is_sending {
                LatencyComponent::Acknowledgement(self.side)
            } else {
                otherwise
            };
        };
        // Linux waits for room for a larger packet, up to half of the window (tcp_tso_should_defer).
        match (in_flight * 2 >= cwnd.min(window), window < cwnd) {
            (true, true) => LatencyComponent::Window(self.side),
            (true, false) => LatencyComponent::Congestion(self.side),
            (false, _) => otherwise,
        }
    }

    fn in_flight(&self, time: u64) -> u64 {
        let after = self.progress.partition_point(|(sent, _)| *sent <= time);
        let sent = after.checked_sub(1).map_or(0, |at| self.progress[at].1);
        sent.saturating_sub(self.acks.before(time).map_or(0, |ack| ack.upto))
    }
}
