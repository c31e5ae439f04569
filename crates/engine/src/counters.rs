//! What a lane and a router did, in numbers that only grow (except the queue's present length).

mod classes;

use core::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};
use windtunnel_model::{DropReason, Span};

use crate::packet::EmulatedPacket;
use crate::records::RouterReason;
pub use classes::{ClassCounters, LaneClassCounters, TrafficOwnershipCounts, TrafficVolume};

/// Dropped segments by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DropCounters([u64; DropReason::ALL.len()]);

impl DropCounters {
    /// All reasons together.
    #[must_use]
    pub fn total(&self) -> u64 {
        windtunnel_model::quantity::total(self.0)
    }

    /// Each reason with its number.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> {
        DropReason::ALL.into_iter().zip(self.0)
    }
}

impl Index<DropReason> for DropCounters {
    type Output = u64;
    fn index(&self, reason: DropReason) -> &u64 {
        &self.0[reason as usize]
    }
}

impl IndexMut<DropReason> for DropCounters {
    fn index_mut(&mut self, reason: DropReason) -> &mut u64 {
        &mut self.0[reason as usize]
    }
}

/// The counters of one lane. A *packet* is an MTU segment; bytes are those of IP packets unless the
/// name says wire.
///
/// At any time `offered_packets + duplicated + (fragments − fragmented) = delivered_packets +
/// dropped.total() + Engine::in_lane_packets`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LaneCounters {
    /// Packets that came to the lane's start.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that came out at its end.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Their bytes with the overhead that the lane charges.
    pub delivered_wire_bytes: u64,
    /// Packets that did not.
    pub dropped: DropCounters,
    /// Copies that were made.
    pub duplicated: u64,
    /// Packets with a flipped bit.
    pub corrupted: u64,
    /// Packets that were held back so that others overtake, or overtook because of jitter.
    pub reordered: u64,
    /// Packets that came out marked with congestion experienced by this lane; those that were
    /// marked and then dropped are among the dropped only.
    pub marked: u64,
    /// Packets that were fragmented.
    pub fragmented: u64,
    /// The fragments that came of them.
    pub fragments: u64,
    /// Packets waiting for the rate now, the ones in transmission not counted.
    pub queue_packets: u64,
    /// Their bytes with overhead.
    pub queue_bytes: u64,
    /// The most packets that ever waited.
    pub queue_packets_max: u64,
    /// The most bytes with overhead that ever waited.
    pub queue_bytes_max: u64,
    /// Bytes with overhead that the rate has begun to transmit.
    pub transmitted_wire_bytes: u64,
    /// How long the rate was transmitting them.
    pub busy_ns: u64,
    /// Packets that the rate transmitted right behind another one: the line was not idle in
    /// between.
    pub backlogged_packets: u64,
    /// Their bytes with overhead.
    pub backlogged_wire_bytes: u64,
    /// How long that took.
    pub backlogged_ns: u64,
    /// Sum of the delays of the packets delivered: from the end of the transmission to the lane's
    /// end.
    pub delay_sum_ns: u64,
    /// The number of packets in that sum.
    pub delay_count: u64,
}

impl LaneCounters {
    /// Adds what another part of the network counted on the same lane. What is a maximum is so of
    /// each part by itself: parts do not know of each other's queues.
    pub fn add(&mut self, other: &LaneCounters) {
        let more = { *other }.sums().map(|sum| *sum);
        let sums = self.sums().into_iter().zip(more);
        sums.for_each(|(sum, more)| *sum = sum.saturating_add(more));
        let dropped = self.dropped.0.iter_mut().zip(other.dropped.0);
        dropped.for_each(|(sum, more)| *sum = sum.saturating_add(more));
        self.queue_packets_max = self.queue_packets_max.max(other.queue_packets_max);
        self.queue_bytes_max = self.queue_bytes_max.max(other.queue_bytes_max);
    }

    /// What was counted after `earlier`, which these counters were before. What is present or a
    /// maximum stays as it is.
    #[must_use]
    pub fn since(&self, earlier: &LaneCounters) -> LaneCounters {
        let mut since = *self;
        let before = { *earlier }.sums().map(|sum| *sum);
        let present = (self.queue_packets, self.queue_bytes);
        since.sums().into_iter().zip(before).for_each(|(sum, before)| *sum -= before.min(*sum));
        (since.queue_packets, since.queue_bytes) = present;
        let dropped = since.dropped.0.iter_mut().zip(earlier.dropped.0);
        dropped.for_each(|(sum, before)| *sum -= before.min(*sum));
        since
    }

    /// All that adds up, except drops.
    fn sums(&mut self) -> [&mut u64; 20] {
        [
            &mut self.offered_packets,
            &mut self.offered_bytes,
            &mut self.delivered_packets,
            &mut self.delivered_bytes,
            &mut self.delivered_wire_bytes,
            &mut self.duplicated,
            &mut self.corrupted,
            &mut self.reordered,
            &mut self.marked,
            &mut self.fragmented,
            &mut self.fragments,
            &mut self.queue_packets,
            &mut self.queue_bytes,
            &mut self.transmitted_wire_bytes,
            &mut self.busy_ns,
            &mut self.backlogged_packets,
            &mut self.backlogged_wire_bytes,
            &mut self.backlogged_ns,
            &mut self.delay_sum_ns,
            &mut self.delay_count,
        ]
    }

    /// Counts a transmission that began when the one before it ended.
    pub(crate) fn count_backlogged(&mut self, packets: u32, wire_bytes: u64, busy: Span) {
        // A line that a trace stops for ever transmits nothing.
        if !busy.is_zero() {
            self.backlogged_packets += u64::from(packets);
            self.backlogged_wire_bytes += wire_bytes;
            self.backlogged_ns = self.backlogged_ns.saturating_add(busy.as_nanos());
        }
    }

    /// Counts how long a packet that leaves the lane was in its delay.
    pub(crate) fn count_delay(&mut self, packet: &EmulatedPacket) {
        let count = u64::from(packet.shape.count);
        let delay = packet.times.last.since(packet.delayed_from).as_nanos();
        self.delay_count += count;
        self.delay_sum_ns = self.delay_sum_ns.saturating_add(delay.saturating_mul(count));
    }
}

impl RouterCounters {
    /// Adds what another part of the network counted at the same router.
    pub fn add(&mut self, other: &RouterCounters) {
        let more = { *other }.all().map(|sum| *sum);
        let sums = self.all().into_iter().zip(more);
        sums.for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }

    /// Counts packets that the router drops.
    pub(crate) fn count_refusal(&mut self, reason: RouterReason, packets: u32) {
        let counter = match reason {
            RouterReason::TtlExpired => &mut self.ttl_expired,
            RouterReason::NoRoute => &mut self.no_route,
            RouterReason::NotForwarded => &mut self.not_forwarded,
            RouterReason::Malformed => &mut self.malformed,
            RouterReason::ReplicaLost => &mut self.replica_lost,
            RouterReason::Filtered => &mut self.filtered,
            RouterReason::NoMapping => &mut self.no_mapping,
            RouterReason::Exhausted => &mut self.exhausted,
            RouterReason::Untranslatable => &mut self.untranslatable,
        };
        *counter += u64::from(packets);
    }

    fn all(&mut self) -> [&mut u64; 17] {
        [
            &mut self.forwarded,
            &mut self.ttl_expired,
            &mut self.no_route,
            &mut self.not_forwarded,
            &mut self.malformed,
            &mut self.echo_answered,
            &mut self.icmp_sent,
            &mut self.redirected,
            &mut self.replica_lost,
            &mut self.translated,
            &mut self.filtered,
            &mut self.no_mapping,
            &mut self.exhausted,
            &mut self.untranslatable,
            &mut self.fragments,
            &mut self.reassembled,
            &mut self.not_reassembled,
        ]
    }
}

/// The counters of one router, in MTU segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RouterCounters {
    /// Forwarded.
    pub forwarded: u64,
    /// Died of their TTL or hop limit.
    pub ttl_expired: u64,
    /// Had no route, or an address that no interface has.
    pub no_route: u64,
    /// Must not be forwarded (multicast, broadcast, link-local), or were for the router itself and
    /// of no use to it.
    pub not_forwarded: u64,
    /// Were not IP packets, or contradicted themselves.
    pub malformed: u64,
    /// Echo requests answered.
    pub echo_answered: u64,
    /// ICMP errors sent.
    pub icmp_sent: u64,
    /// Of the forwarded: sent to a replica of a service.
    #[serde(default)]
    pub redirected: u64,
    /// Dropped, because their connection's replica is lost.
    #[serde(default)]
    pub replica_lost: u64,
    /// Of the forwarded: those whose addresses a NAT has changed.
    #[serde(default)]
    pub translated: u64,
    /// Dropped by a firewall, or by the filter of a NAT.
    #[serde(default)]
    pub filtered: u64,
    /// Dropped, because a NAT knows nothing inside that they are for.
    #[serde(default)]
    pub no_mapping: u64,
    /// Dropped, because no port or no memory was left for a new mapping or flow.
    #[serde(default)]
    pub exhausted: u64,
    /// Dropped, because a NAT cannot translate them.
    #[serde(default)]
    pub untranslatable: u64,
    /// Fragments that came to a NAT or firewall, which puts them together.
    #[serde(default)]
    pub fragments: u64,
    /// Packets that came of them; they count as forwarded or dropped then.
    #[serde(default)]
    pub reassembled: u64,
    /// Packets that never became whole.
    #[serde(default)]
    pub not_reassembled: u64,
}
