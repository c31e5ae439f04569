//! Acknowledgements of a direction's bytes: when they left the receiver, and when they came to the
//! sender.

use std::collections::{HashMap, VecDeque};

use windtunnel_model::record::flag;

use super::route::FlowDirectionRoute;
use crate::history::{DirectedLinkEnds, EndpointRole, FlowHistory, PacketEvent, PacketKind, widen};

/// An acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) time: u64,
    /// All bytes below have come.
    pub(crate) upto: u64,
    /// Whether its packet carried nothing else.
    pub(crate) is_pure: bool,
}

/// The acknowledgements of what one side sends, each list sorted by time.
#[derive(Debug, Default)]
pub(crate) struct AckTimeline {
    left: Vec<Ack>,
    came: Vec<Ack>,
}

impl AckTimeline {
    /// Those of the bytes that `sender` sends; `back` is the way of the other direction.
    pub(crate) fn new(
        history: &FlowHistory,
        sender: EndpointRole,
        back: &FlowDirectionRoute,
        lanes: &[DirectedLinkEnds],
    ) -> AckTimeline {
        let mut acks = AckTimeline::default();
        // By what identifies a packet on all lanes: those that are on their way, in order.
        let mut under_way: HashMap<(u64, u32), VecDeque<u64>> = HashMap::new();
        let mut near = 0;
        for packet in &history.packets[sender.peer().index()] {
            let Some(lane) = lanes.get(packet.lane as usize) else { continue };
            let key = (packet.offset, packet.length);
            match packet.kind {
                PacketKind::Offered if back.is_entry(lane) && packet.flags & flag::ACK != 0 => {
                    #[expect(clippy::cast_possible_truncation, reason = "the low half is widened")]
                    let upto = widen(near, packet.value as u32);
                    near = near.max(upto);
                    under_way.entry(key).or_default().push_back(upto);
                    acks.left.push(ack(packet, upto));
                }
                PacketKind::Dropped => {
                    under_way.get_mut(&key).and_then(VecDeque::pop_front);
                }
                PacketKind::Delivered if back.is_exit(lane) => {
                    let known = under_way.get_mut(&key).and_then(VecDeque::pop_front);
                    let upto = known.or(acks.came.last().map(|ack| ack.upto));
                    acks.came.push(ack(packet, upto.unwrap_or(0)));
                }
                _ => {}
            }
        }
        acks
    }

    /// The last that had come to the sender at `time`.
    pub(crate) fn before(&self, time: u64) -> Option<&Ack> {
        let after = self.came.partition_point(|ack| ack.time <= time);
        after.checked_sub(1).map(|at| &self.came[at])
    }

    /// Those that came to the sender in `from < time <= to`.
    pub(crate) fn between(&self, from: u64, to: u64) -> &[Ack] {
        let first = self.came.partition_point(|ack| ack.time <= from);
        let after = self.came.partition_point(|ack| ack.time <= to);
        &self.came[first..after.max(first)]
    }

    /// When the receiver's stack first acknowledged the byte, from `time` on.
    pub(crate) fn left_for(&self, byte: u64, time: u64) -> Option<u64> {
        let first = self.left.partition_point(|ack| ack.time < time);
        self.left[first..]
            .iter()
            .take(ACKS_SEARCHED)
            .find(|ack| ack.upto > byte)
            .map(|ack| ack.time)
    }
}

fn ack(packet: &PacketEvent, upto: u64) -> Ack {
    Ack { time: packet.time, upto, is_pure: packet.length == 0 }
}

/// How far on an acknowledgement of a byte that has come is searched.
const ACKS_SEARCHED: usize = 64;
