//! A LAN's segment: a learning switch (IEEE 802.1D, 7.8 and 7.9) with one port for each attachment.
//!
//! It learns behind which attachment an Ethernet address is from the frames that come by it, and
//! sends frames for that address only there; frames for groups and for unknown addresses leave by
//! all others. It takes no time, touches no byte and loses nothing: all that happens on the
//! attachments' lanes.
//!
//! Not done: spanning trees (no two LANs are joined, so there is no loop), VLANs, and snooping of
//! multicast membership: all stations get every group's frames, as on a switch without that option.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use windtunnel_model::plan::{PartitionMode, PartitionSides};
use windtunnel_model::{Lane, NetworkVertex, Plan, Span, Time};
use windtunnel_wire::ethernet;

/// An address from which no frame came for so long is forgotten (802.1D, table 7-5).
pub(crate) const AGEING: Span = Span::from_millis(300_000);
/// Addresses that a segment knows at most; the frames for others leave by all attachments.
const STATIONS_MAX: usize = 8192;

#[derive(Debug)]
pub(crate) struct LearningSwitch {
    /// The lanes that leave it, with the groups of a partition that the far end is in, in ascending
    /// order.
    attachments: Vec<(Lane, Vec<usize>)>,
    /// What the partition cuts.
    cut: PartitionMode,
    stations: BTreeMap<[u8; 6], MacTableEntry>,
}

#[derive(Debug, Clone, Copy)]
struct MacTableEntry {
    /// The lane that leads there.
    lane: Lane,
    last_seen: Time,
}

/// By which lanes a frame leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SwitchEgress {
    /// One.
    One(Lane),
    /// That one, but a partition lies between.
    Parted(Lane),
    /// All but the one that leads back.
    Others,
    /// None: its receiver is where it came from.
    None,
}

impl LearningSwitch {
    /// The segments of a plan.
    pub(crate) fn all(plan: &Plan) -> Vec<LearningSwitch> {
        let segment = |lan: &windtunnel_model::Lan| LearningSwitch {
            attachments: lan.attachments.iter().map(|lane| (*lane, Vec::new())).collect(),
            cut: PartitionMode::default(),
            stations: BTreeMap::new(),
        };
        plan.lans.iter().map(segment).collect()
    }

    /// Notes that the sender of a frame, which came by `came`, is there, and says where it goes.
    pub(crate) fn pass(&mut self, now: Time, came: Lane, frame: &[u8]) -> SwitchEgress {
        let Ok(view) = ethernet::EthernetFrame::parse(frame) else { return SwitchEgress::None };
        self.learn(now, came.reverse(), view.source());
        if view.is_multicast() {
            return SwitchEgress::Others;
        }
        match self.stations.get(&view.destination()) {
            Some(station) if now.since(station.last_seen) > AGEING => SwitchEgress::Others,
            Some(station) if station.lane == came.reverse() => SwitchEgress::None,
            Some(station) if self.parts(came, station.lane) => SwitchEgress::Parted(station.lane),
            Some(station) => SwitchEgress::One(station.lane),
            None => SwitchEgress::Others,
        }
    }

    /// The lane at a position of those that leave it.
    pub(crate) fn attachment(&self, position: usize) -> Option<Lane> {
        self.attachments.get(position).map(|(lane, _)| *lane)
    }

    /// Whether a partition lies between the far ends of two lanes, one that came and one that
    /// leaves.
    pub(crate) fn parts(&self, came: Lane, leaves: Lane) -> bool {
        let groups = |lane| {
            let known = self.attachments.iter().find(|(known, _)| *known == lane);
            known.map_or(&[][..], |(_, groups)| groups.as_slice())
        };
        self.cut.parts(groups(came.reverse()), groups(leaves))
    }

    /// Puts the far end of each attachment on the sides of a partition.
    pub(crate) fn part(&mut self, sides: &PartitionSides, ends: &[[NetworkVertex; 2]]) {
        self.cut = sides.cut();
        for (lane, known) in &mut self.attachments {
            *known = sides.of(ends[lane.link.index()][1 - lane.direction.index()]).to_vec();
        }
    }

    fn learn(&mut self, now: Time, lane: Lane, source: [u8; 6]) {
        let is_group = source[0] & 1 != 0;
        if is_group {
            return;
        }
        if self.stations.len() >= STATIONS_MAX && !self.stations.contains_key(&source) {
            self.stations.retain(|_, station| now.since(station.last_seen) <= AGEING);
            if self.stations.len() >= STATIONS_MAX {
                return;
            }
        }
        self.stations.insert(source, MacTableEntry { lane, last_seen: now });
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_model::{LinkDirection, LinkId};

    use super::*;

    /// The lane from the segment to the station number `link`.
    fn out(link: u32) -> Lane {
        Lane { link: LinkId(link), direction: LinkDirection::Down }
    }

    fn mac(number: u16) -> [u8; 6] {
        let [a, b] = number.to_be_bytes();
        [2, 0, 0, 0, a, b]
    }

    fn frame(to: u16, from: u16) -> Vec<u8> {
        [&mac(to)[..], &mac(from), &[8, 0]].concat()
    }

    fn segment() -> LearningSwitch {
        let attachments = (0..3).map(|link| (out(link), Vec::new())).collect();
        LearningSwitch { attachments, cut: PartitionMode::default(), stations: BTreeMap::new() }
    }

    #[test]
    fn an_address_is_learned_and_forgotten_when_it_is_silent() {
        let mut segment = segment();
        let at = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        assert_eq!(segment.pass(at(0), out(0).reverse(), &frame(1, 0)), SwitchEgress::Others);
        assert_eq!(segment.pass(at(1), out(1).reverse(), &frame(0, 1)), SwitchEgress::One(out(0)));
        assert_eq!(
            segment.pass(at(300), out(1).reverse(), &frame(0, 1)),
            SwitchEgress::One(out(0))
        );
        assert_eq!(segment.pass(at(301), out(1).reverse(), &frame(0, 1)), SwitchEgress::Others);
    }

    #[test]
    fn an_address_that_moves_is_followed_and_a_frame_never_goes_back() {
        let mut segment = segment();
        segment.pass(Time::ZERO, out(0).reverse(), &frame(9, 0));
        segment.pass(Time::ZERO, out(2).reverse(), &frame(9, 0));
        assert_eq!(
            segment.pass(Time::ZERO, out(1).reverse(), &frame(0, 1)),
            SwitchEgress::One(out(2))
        );
        assert_eq!(segment.pass(Time::ZERO, out(2).reverse(), &frame(0, 5)), SwitchEgress::None);
    }

    #[test]
    fn more_addresses_than_it_can_know_are_not_learned_until_old_ones_are_forgotten() {
        let mut segment = segment();
        for number in 0..8193 {
            segment.pass(Time::ZERO, out(0).reverse(), &frame(9999, number));
        }
        let ask =
            |segment: &mut LearningSwitch, at| segment.pass(at, out(1).reverse(), &frame(8192, 1));
        assert_eq!(ask(&mut segment, Time::ZERO), SwitchEgress::Others);
        let later = Time::ZERO + AGEING + Span::from_millis(1);
        segment.pass(later, out(0).reverse(), &frame(9999, 8192));
        assert_eq!(ask(&mut segment, later), SwitchEgress::One(out(0)));
    }

    #[test]
    fn only_different_sides_of_a_partition_are_parted() {
        let mut segment = segment();
        segment.cut = PartitionMode::OneWay;
        segment.attachments[0].1 = vec![0];
        segment.attachments[1].1 = vec![1];
        assert!(segment.parts(out(0).reverse(), out(1)));
        assert!(!segment.parts(out(1).reverse(), out(0)), "one way only");
        assert!(!segment.parts(out(0).reverse(), out(2)));
    }
}
