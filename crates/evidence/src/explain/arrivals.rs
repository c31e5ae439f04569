//! When a byte of a stream could be read: when it and all before it had come.

use std::ops::Range;

use super::route::FlowDirectionRoute;
use crate::history::{DirectedLinkEnds, EndpointRole, FlowHistory, PacketKind, is_read};

/// How the bytes of a direction became readable.
#[derive(Debug, Default)]
pub(crate) struct InOrderDeliverySeries {
    /// Sorted by `upto` and by time.
    steps: Vec<InOrderDelivery>,
}

/// From then on bytes below `upto` could be read.
#[derive(Debug, Clone, Copy)]
struct InOrderDelivery {
    upto: u64,
    time: u64,
    /// The byte that had been missing.
    missing: u64,
}

impl InOrderDeliverySeries {
    /// Of what `sender` sends. A byte that was read had come, even where no record says so.
    pub(crate) fn new(
        history: &FlowHistory,
        sender: EndpointRole,
        route: &FlowDirectionRoute,
        lanes: &[DirectedLinkEnds],
    ) -> InOrderDeliverySeries {
        let packets = history.packets[sender.index()].iter().filter(|packet| {
            packet.kind == PacketKind::Delivered
                && packet.length > 0
                && lanes.get(packet.lane as usize).is_some_and(|lane| route.is_exit(lane))
        });
        let begin = packets.clone().map(|packet| packet.offset).min().unwrap_or(0);
        let mut arrivals = InOrderDeliverySeries::default();
        let mut frontier = Frontier { next: begin, ahead: Vec::new() };
        let mut reads = read_ends(history, sender.peer()).peekable();
        for packet in packets {
            while let Some((time, upto)) = reads.next_if(|(time, _)| *time < packet.time) {
                arrivals.step(&mut frontier, 0..upto, time);
            }
            let end = packet.offset + u64::from(packet.length);
            arrivals.step(&mut frontier, packet.offset..end, packet.time);
        }
        for (time, upto) in reads {
            arrivals.step(&mut frontier, 0..upto, time);
        }
        arrivals
    }

    fn step(&mut self, frontier: &mut Frontier, bytes: Range<u64>, time: u64) {
        let missing = frontier.next;
        if frontier.add(bytes.start, bytes.end) {
            self.steps.push(InOrderDelivery { upto: frontier.next, time, missing });
        }
    }

    /// When the byte could be read, and the byte whose arrival made that so.
    pub(crate) fn readable(&self, byte: u64) -> Option<(u64, u64)> {
        let at = self.steps.partition_point(|step| step.upto <= byte);
        let step = self.steps.get(at)?;
        Some((step.time, step.missing.min(byte)))
    }

    /// Each time at which more could be read, and up to where.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (u64, u64)> {
        self.steps.iter().map(|step| (step.time, step.upto))
    }
}

fn read_ends(history: &FlowHistory, reader: EndpointRole) -> impl Iterator<Item = (u64, u64)> {
    let calls = history.calls[reader.index()].iter();
    calls
        .filter(|call| is_read(call.call) && call.result > 0)
        .map(|call| (call.end, call.offset + u64::from(call.result.unsigned_abs())))
}

/// The first byte that is missing, and ranges beyond it that have come.
struct Frontier {
    next: u64,
    /// Disjoint, by offset, the last first.
    ahead: Vec<(u64, u64)>,
}

impl Frontier {
    /// Adds a range; whether the first missing byte is another now.
    fn add(&mut self, offset: u64, end: u64) -> bool {
        if end <= self.next {
            return false;
        }
        if offset > self.next {
            self.keep(offset, end);
            return false;
        }
        self.next = end;
        while let Some((_, end)) = self.ahead.pop_if(|(offset, _)| *offset <= self.next) {
            self.next = self.next.max(end);
        }
        true
    }

    fn keep(&mut self, mut offset: u64, mut end: u64) {
        let first = self.ahead.partition_point(|known| known.0 > end);
        let after = self.ahead.partition_point(|known| known.1 >= offset);
        for known in self.ahead.drain(first..after.max(first)) {
            offset = offset.min(known.0);
            end = end.max(known.1);
        }
        self.ahead.insert(first, (offset, end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_come_before_a_missing_one_wait_for_it() {
        let mut frontier = Frontier { next: 0, ahead: Vec::new() };
        assert!(frontier.add(0, 10));
        assert!(!frontier.add(30, 40));
        assert!(!frontier.add(20, 30));
        assert!(!frontier.add(60, 70));
        assert_eq!(frontier.ahead, [(60, 70), (20, 40)]);
        assert!(frontier.add(10, 20));
        assert_eq!(frontier.next, 40);
        assert!(!frontier.add(5, 40));
        assert!(frontier.add(40, 60));
        assert_eq!((frontier.next, frontier.ahead.len()), (70, 0));
    }
}
