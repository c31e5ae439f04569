//! One flow: which packets are of it, and where they are in its streams.

use windtunnel_model::Time;
use windtunnel_model::record::kind::Kind;
use windtunnel_model::record::{EventRecord, flag, words};
use windtunnel_wire::{tcp, udp};

use super::super::sight::{FlowHeaderFields, MappedSocket};
use super::super::tag::PacketRecordTag;

/// A flow.
#[derive(Debug, Clone)]
pub(in crate::records) struct RecordedFlow {
    pub(super) key: RecordedFlowKey,
    pub(super) number: u32,
    /// The next entry of the chain.
    pub(super) next: u32,
    /// The side that sent first is `key.low`.
    pub(super) from_low: bool,
    /// By direction: the sequence number of the first byte after the SYN.
    pub(super) origins: [Option<u32>; 2],
    /// By direction: packets so far.
    pub(super) packets: [u32; 2],
    /// Whether packets may have passed that no one counted.
    pub(super) is_partial: bool,
    /// More than SYNs were seen.
    pub(super) is_open: bool,
    pub(super) has_ended: bool,
    pub(super) last_seen: Time,
    /// Of the judgement below.
    pub(in crate::records) generation: u32,
    pub(in crate::records) wanted: bool,
    pub(in crate::records) definition: Definition,
}

/// What readers have been given of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::records) enum Definition {
    Missing,
    /// Its ends, but not all that is known of where its streams begin.
    Ends,
    Whole,
}

/// Both directions have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordedFlowKey {
    low: MappedSocket,
    high: MappedSocket,
    pub(super) protocol: u8,
}

impl RecordedFlow {
    pub(in crate::records) fn protocol(&self) -> u8 {
        self.key.protocol
    }

    /// From, to.
    pub(in crate::records) fn ends(&self) -> (MappedSocket, MappedSocket) {
        let RecordedFlowKey { low, high, .. } = self.key;
        if self.from_low { (low, high) } else { (high, low) }
    }

    /// What readers have to know of it, and were not given yet.
    pub(in crate::records) fn definitions(
        &self,
        time: u64,
    ) -> impl Iterator<Item = EventRecord> + use<> {
        let (from, to) = self.ends();
        let end = |kind: Kind, end: MappedSocket| EventRecord {
            time,
            kind: kind as u8,
            flags: self.key.protocol,
            extra: end.port,
            flow: self.number,
            args: words(end.address.to_be_bytes()),
        };
        let [forward, reverse] = self.origins.map(|origin| origin.map(|it| it.wrapping_sub(1)));
        let sequence = EventRecord {
            time,
            kind: Kind::FlowSequence as u8,
            flags: u8::from(forward.is_some()) | u8::from(reverse.is_some()) << 1,
            flow: self.number,
            args: [forward.unwrap_or(0), reverse.unwrap_or(0), 0, 0],
            ..EventRecord::default()
        };
        let sequence = (sequence.flags != 0).then_some(sequence);
        let ends = (self.definition == Definition::Missing)
            .then(|| [end(Kind::FlowFrom, from), end(Kind::FlowTo, to)]);
        ends.into_iter().flatten().chain(sequence)
    }

    pub(super) fn is_linked(&self) -> bool {
        self.key.protocol != UNLINKED
    }

    /// Whether a packet is a SYN that cannot be of this flow any more.
    #[inline]
    pub(super) fn begins_anew(&self, from_low: bool, sight: &FlowHeaderFields) -> bool {
        if !sight.has(flag::SYN) || self.key.protocol != tcp::PROTOCOL {
            return false;
        }
        let side = usize::from(self.from_low != from_low);
        match self.origins[side] {
            Some(origin) => origin != sight.sequence.wrapping_add(1),
            None => self.is_open || self.has_ended,
        }
    }

    pub(super) fn renew(&mut self, number: u32, from_low: bool) {
        self.number = number;
        self.from_low = from_low;
        (self.origins, self.packets) = ([None; 2], [0; 2]);
        (self.is_open, self.has_ended) = (false, false);
        // It is to be judged and defined.
        self.generation = self.generation.wrapping_sub(1);
    }

    #[inline]
    pub(super) fn tag(
        &mut self,
        sight: &FlowHeaderFields,
        reverse: bool,
        count: u32,
    ) -> PacketRecordTag {
        let direction = if reverse { flag::REVERSE } else { 0 };
        let base = PacketRecordTag {
            flow: self.number,
            header: sight.header,
            flags: direction,
            ..PacketRecordTag::NONE
        };
        let is_whole = sight.fragment.is_none_or(|(_, first)| first);
        if self.key.protocol == tcp::PROTOCOL && is_whole {
            return self.tag_tcp(sight, usize::from(reverse), base);
        }
        let packets = &mut self.packets[usize::from(reverse)];
        let offset = *packets;
        *packets = packets.wrapping_add(count);
        let unknown = if self.is_partial { flag::OFFSET_UNKNOWN } else { 0 };
        PacketRecordTag { offset, flags: base.flags | unknown | sight.flags, ..base }
    }

    #[inline]
    fn tag_tcp(
        &mut self,
        sight: &FlowHeaderFields,
        side: usize,
        base: PacketRecordTag,
    ) -> PacketRecordTag {
        self.learn(sight, side);
        let syn = u32::from(sight.has(flag::SYN));
        let sequence = sight.sequence.wrapping_add(syn);
        let mut flags = base.flags | sight.flags;
        let (offset, ack) = match (self.origins[side], self.origins[1 - side]) {
            (Some(own), Some(other)) => {
                (sequence.wrapping_sub(own), sight.acknowledgement.wrapping_sub(other))
            }
            (Some(own), None) => {
                flags &= !flag::ACK;
                (sequence.wrapping_sub(own), 0)
            }
            (None, _) => {
                flags |= flag::OFFSET_UNKNOWN;
                (sequence, sight.acknowledgement)
            }
        };
        let ack = if flags & flag::ACK == 0 { 0 } else { ack };
        PacketRecordTag { offset, ack, flags, is_stream: true, ..base }
    }

    /// Takes what a segment says of where the streams begin.
    #[inline]
    fn learn(&mut self, sight: &FlowHeaderFields, side: usize) {
        if sight.has(flag::SYN) {
            self.learn_origin(side, sight.sequence.wrapping_add(1));
        }
        // What a handshake acknowledges is the other side's SYN, seen or not.
        let shakes = sight.has(flag::ACK) && !self.is_open && !sight.has(flag::RST);
        if shakes && self.origins[side].is_some() {
            self.learn_origin(1 - side, sight.acknowledgement);
        }
        self.is_open |= !sight.has(flag::SYN);
        self.has_ended |= sight.flags & (flag::FIN | flag::RST) != 0;
    }

    fn learn_origin(&mut self, side: usize, origin: u32) {
        if self.origins[side].is_none() {
            self.origins[side] = Some(origin);
            if self.definition == Definition::Whole {
                self.definition = Definition::Ends;
            }
        }
    }
}

impl RecordedFlowKey {
    /// With whether the sender is the low end.
    #[inline]
    pub(super) fn of(sight: &FlowHeaderFields) -> (RecordedFlowKey, bool) {
        let (from, to) = match sight.protocol {
            // Of fragments whose first was not seen, and of other protocols, the ports are 0.
            tcp::PROTOCOL | udp::PROTOCOL => (sight.from, sight.to),
            _ => (sight.from.without_port(), sight.to.without_port()),
        };
        let from_low = from <= to;
        let (low, high) = if from_low { (from, to) } else { (to, from) };
        (RecordedFlowKey { low, high, protocol: sight.protocol }, from_low)
    }

    #[inline]
    pub(super) fn hash(&self) -> u64 {
        let fold = |MappedSocket { address, port }: MappedSocket| {
            let [low, high] = halves(address);
            (low ^ high.rotate_left(29)).wrapping_add(u64::from(port) << 40 | u64::from(port))
        };
        let mixed = fold(self.low).wrapping_mul(ODD) ^ fold(self.high).rotate_left(23);
        let mixed = (mixed ^ u64::from(self.protocol)).wrapping_mul(ODD);
        (mixed ^ (mixed >> 29)).wrapping_mul(ODD)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
fn halves(number: u128) -> [u64; 2] {
    [number as u64, (number >> 64) as u64]
}

/// Whether the sender of a packet is not the side that began: it answers a SYN.
#[inline]
pub(super) fn is_answer(sight: &FlowHeaderFields) -> bool {
    sight.flags & (flag::SYN | flag::ACK) == flag::SYN | flag::ACK
}

/// The protocol of an entry that holds no flow (255 is reserved and never on a wire).
pub(super) const UNLINKED: u8 = 255;
/// Of the golden ratio, as in Fibonacci hashing (Knuth, 6.4).
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
