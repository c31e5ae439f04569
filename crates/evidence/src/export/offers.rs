//! Which offer of a packet to a lane a later record of that lane belongs to.

use std::collections::{BTreeMap, VecDeque};

use crate::AttributedRecord;
use crate::file::FlowDirection;

/// Packets that have been offered to lanes and have not come out.
#[derive(Debug, Default)]
pub(super) struct PendingLaneOffers {
    waiting: BTreeMap<LaneOfferKey, VecDeque<LaneOffer>>,
}

/// The packets of a flow on a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LaneOfferKey {
    flow: Option<usize>,
    direction: FlowDirection,
    member: u16,
    lane: u32,
}

/// A packet, or a train.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaneOffer {
    pub(super) offset: u32,
    pub(super) length: u32,
    pub(super) ack: u32,
    /// A number that no other offer has.
    pub(super) number: u64,
}

/// Later records of a lane are sought among so many offers.
const WAITING_MAX: usize = 65_536;

impl PendingLaneOffers {
    pub(super) fn offered(&mut self, member: u16, entry: &AttributedRecord, number: u64) {
        let [offset, length, _, ack] = entry.record.args;
        let waiting = self.waiting.entry(LaneOfferKey::of(member, entry)).or_default();
        if waiting.len() == WAITING_MAX {
            waiting.pop_front();
        }
        waiting.push_back(LaneOffer { offset, length, ack, number });
    }

    /// The offer that the entry's packet is of, or a part of; the offer is forgotten with its last
    /// part. The second value says whether it was that.
    pub(super) fn take(
        &mut self,
        member: u16,
        entry: &AttributedRecord,
    ) -> Option<(LaneOffer, bool)> {
        let [offset, length, ..] = entry.record.args;
        let waiting = self.waiting.get_mut(&LaneOfferKey::of(member, entry))?;
        let fits = |offer: &LaneOffer| {
            let inside = offset.wrapping_sub(offer.offset);
            match offer.length {
                0 => length == 0 && inside == 0,
                _ => length > 0 && inside < offer.length,
            }
        };
        let at = waiting.iter().position(fits)?;
        let offer = waiting[at];
        let end = offset.wrapping_sub(offer.offset).wrapping_add(length);
        let is_last = end >= offer.length;
        if is_last {
            waiting.remove(at);
        }
        Some((offer, is_last))
    }
}

impl LaneOfferKey {
    fn of(member: u16, entry: &AttributedRecord) -> LaneOfferKey {
        let (flow, direction) = (entry.flow(), entry.direction());
        LaneOfferKey { flow, direction, member, lane: entry.record.args[2] }
    }
}
