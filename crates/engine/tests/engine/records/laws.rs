//! What holds for the records of every network.

use std::collections::BTreeMap;

use proptest::prelude::*;
use windtunnel_engine::{DROP_REASON_NAMES, RecordSettings};
use windtunnel_model::plan::{BandwidthSharing, NetworkModel};
use windtunnel_model::record::kind::SOURCE_QUEUE;
use windtunnel_model::record::{EventRecord, Kind};
use windtunnel_model::{DropReason, Lane, LinkProfile, Plan};

use super::{events, of};
use crate::properties::play;
use crate::properties::strategy::{profile, steps};
use crate::support::{Net, US, path};

/// Segments of the records of a kind.
fn segments(records: &[EventRecord], kind: Kind) -> u64 {
    of(records, kind).iter().map(|record| u64::from(record.extra)).sum()
}

fn kind(record: &EventRecord) -> Kind {
    Kind::from_number(record.kind).expect("a kind that we know")
}

/// Checks what was recorded from the beginning against what was counted, when nothing is under way.
pub(crate) fn check(net: &Net) {
    for index in 0..net.plan.links.len() * 2 {
        let number = u32::try_from(index).unwrap();
        let of_lane = |lane: u32| -> Vec<EventRecord> {
            let all = events(&net.records).into_iter();
            all.filter(|record| record.args[2] == lane).collect()
        };
        let at_source = of_lane(SOURCE_QUEUE | number);
        check_lane(net, Lane::from_index(index), &of_lane(number), &at_source);
        check_sum(&of_lane(number));
        check_sum(&at_source);
    }
    check_arrivals(net);
}

fn check_lane(net: &Net, lane: Lane, records: &[EventRecord], at_source: &[EventRecord]) {
    let counters = net.engine.lane(lane);
    let dropped = |records: &[EventRecord], reason: usize| {
        let of_reason = of(records, Kind::Dropped).into_iter();
        let of_reason = of_reason.filter(|record| record.args[3] == u32::try_from(reason).unwrap());
        of_reason.map(|record| u64::from(record.extra)).sum::<u64>()
    };
    let mut refused = 0;
    for (index, (reason, count)) in counters.dropped.iter().enumerate() {
        let before = dropped(at_source, index);
        refused += before;
        assert_eq!(dropped(records, index) + before, count, "{lane:?}: {reason:?}");
    }
    // What the queue at the source drops counts as offered to the lane.
    assert_eq!(segments(records, Kind::Offered) + refused, counters.offered_packets, "{lane:?}");
    assert_eq!(segments(records, Kind::Delivered), counters.delivered_packets, "{lane:?}");
    assert_eq!(segments(records, Kind::Duplicated), counters.duplicated, "{lane:?}");
    assert_eq!(segments(records, Kind::Corrupted), counters.corrupted, "{lane:?}");
    assert!(segments(records, Kind::Marked) >= counters.marked, "{lane:?}");
    let fragmented = of(records, Kind::Fragmented);
    let fragments: u64 = fragmented.iter().map(|record| u64::from(record.args[3])).sum();
    let counted = (counters.fragmented, counters.fragments);
    assert_eq!((u64::try_from(fragmented.len()).unwrap(), fragments), counted, "{lane:?}");
    let delays = of(records, Kind::Delivered).into_iter();
    let delays = delays.map(|record| u64::from(record.extra) * u64::from(record.args[3]));
    assert_eq!(delays.sum::<u64>(), counters.delay_sum_ns, "{lane:?}");
}

/// Which bytes a record is of.
fn which(record: &EventRecord) -> (u32, u8, u32, u32, u16) {
    // A mark may be added on the way.
    let flags = record.flags & !windtunnel_model::record::flag::MARKED;
    (record.flow, flags, record.args[0], record.args[1], record.extra)
}

/// Each transmission's begin, its length and the delay behind it add up to the delivery's time.
fn check_sum(records: &[EventRecord]) {
    let memory = DropReason::ALL.iter().position(|reason| *reason == DropReason::Memory);
    let memory = u32::try_from(memory.unwrap()).unwrap();
    if of(records, Kind::Dropped).iter().any(|record| record.args[3] == memory) {
        // Such a drop may be behind the transmission.
        return;
    }
    let mut ends: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for record in of(records, Kind::Delivered) {
        ends.entry(last_byte(&record)).or_default().push(record.time - u64::from(record.args[3]));
    }
    for record in of(records, Kind::Sent) {
        let end = record.time + u64::from(record.args[3]);
        let ends = ends.get_mut(&last_byte(&record)).expect("what was sent is delivered");
        let at = ends.iter().position(|it| *it == end);
        let at = at.unwrap_or_else(|| panic!("{record:?} ends at {end}, not {ends:?}"));
        ends.swap_remove(at);
    }
}

/// Flow, flags and end of the payload. Its end stays when a train is cut behind its transmission,
/// because each segment has a delay of its own.
fn last_byte(record: &EventRecord) -> (u32, u8, u32) {
    let (flow, flags, offset, length, _) = which(record);
    (flow, flags, offset.wrapping_add(length))
}

/// What nodes received is what was delivered to them, when it was.
fn check_arrivals(net: &Net) {
    let ends_at_node = |record: &EventRecord| {
        let lane = Lane::from_index(usize::try_from(record.args[2]).unwrap());
        let link = &net.plan.links[lane.link.index()];
        let end = link.ends[1 - lane.direction.index()].vertex;
        matches!(end, windtunnel_model::NetworkVertex::Node(_))
    };
    let delivered = of(&net.records, Kind::Delivered).into_iter();
    let delivered = delivered.filter(|record| record.args[2] & SOURCE_QUEUE == 0);
    let mut expected: Vec<u64> = delivered.filter(ends_at_node).map(|record| record.time).collect();
    let mut times: Vec<u64> = net.out.iter().map(|out| out.at).collect();
    // Messages to a node about its own link come from the link itself.
    let own = times.len().saturating_sub(expected.len());
    expected.sort_unstable();
    times.sort_unstable();
    if own == 0 {
        assert_eq!(times, expected);
    } else {
        let missing = |time: &u64| times.binary_search(time).is_err();
        assert!(!expected.iter().any(missing), "{expected:?} are not all of {times:?}");
    }
}

/// What happened to a segment: kind, flow, flags, its offset, lane, reason.
type Happening = (Kind, u32, u8, u32, u32, Option<u32>);
/// When, of the first or the last segment of each record.
type Moments = BTreeMap<Happening, Vec<u64>>;

/// Takes records apart into what happened to each segment, where `lengths` has the length of the
/// segment at each offset.
fn happenings(
    records: &[EventRecord],
    lengths: &BTreeMap<u32, u32>,
) -> (Vec<Happening>, Moments, Moments) {
    let (mut all, mut firsts, mut lasts) = (Vec::new(), Moments::new(), Moments::new());
    for record in events(records) {
        let [from, length, lane, last] = record.args;
        let offsets: Vec<u32> = lengths.range(from..from + length).map(|(at, _)| *at).collect();
        let bytes: u32 = lengths.range(from..from + length).map(|(_, length)| *length).sum();
        assert_eq!((offsets.len(), bytes), (usize::from(record.extra), length), "{record:?}");
        let reason = (kind(&record) == Kind::Dropped).then_some(last);
        let one = |at: u32| (kind(&record), record.flow, record.flags, at, lane, reason);
        all.extend(offsets.iter().map(|at| one(*at)));
        let (first, end) = match kind(&record) {
            Kind::Sent => (Some(record.time), Some(record.time + u64::from(last))),
            Kind::Delivered => (None, Some(record.time)),
            _ => (Some(record.time), None),
        };
        first.into_iter().for_each(|at| firsts.entry(one(from)).or_default().push(at));
        let back = one(offsets[offsets.len() - 1]);
        end.into_iter().for_each(|at| lasts.entry(back).or_default().push(at));
    }
    all.sort_unstable();
    (all, firsts, lasts)
}

/// Compares the records of trains with those of their segments, sent singly.
pub(crate) fn compare(trains: &[EventRecord], alone: &[EventRecord]) {
    let offered = of(alone, Kind::Offered);
    let lengths = offered.iter().map(|record| (record.args[0], record.args[1])).collect();
    let (all, firsts, lasts) = happenings(trains, &lengths);
    let (expected, expected_firsts, expected_lasts) = happenings(alone, &lengths);
    assert_eq!(all, expected);
    for (some, expected) in [(firsts, expected_firsts), (lasts, expected_lasts)] {
        for (what, times) in some {
            let known = &expected[&what];
            assert!(times.iter().all(|at| known.contains(at)), "{what:?}: {times:?}, {known:?}");
        }
    }
}

proptest! {
    #[test]
    fn the_parts_of_a_packets_time_add_up_from_lane_to_lane(
        profiles in prop::collection::vec(profile(), 3),
        gaps in prop::collection::vec((0..400 * US, 60usize..1500), 1..80),
    ) {
        // Such packets are never cut.
        let whole = |profile: LinkProfile| LinkProfile { mtu: 1500, ..profile };
        let mut net = Net::recorded(path(5, profiles.into_iter().map(whole).collect()));
        let mut at = 1000;
        for (index, (gap, len)) in gaps.iter().enumerate() {
            at += gap;
            net.send_udp(at, *len, u32::try_from(index).unwrap());
        }
        net.finish();
        check(&net);
        for lane in [0, 2, 4] {
            check_timeline(&net, lane);
        }
    }

    #[test]
    fn the_model_of_paths_records_all_that_it_counts(
        profiles in prop::collection::vec(profile(), 3),
        steps in steps(),
    ) {
        let mut plan = path(3, profiles);
        plan.model = NetworkModel::Paths(BandwidthSharing::Equal);
        check(&play(&plan, &steps, 1 << 30, true));
    }

    #[test]
    fn records_and_lost_are_all_events(
        profiles in prop::collection::vec(profile(), 3),
        steps in steps(),
        room in 0usize..40,
    ) {
        let plan = path(3, profiles);
        let all = play(&plan, &steps, 1 << 30, true);
        let few = play_with_room(&plan, &steps, room);
        let (all, lost_none) = count(&all.records);
        let (kept, lost) = count(&few.records);
        prop_assert_eq!(lost_none, 0);
        prop_assert_eq!(kept + lost, all);
        let counts = few.engine.recorder().counts();
        prop_assert_eq!((counts.events, counts.lost), (all, lost));
    }
}

/// Each delivery of a packet that was not touched follows its offer, and where it came from.
fn check_timeline(net: &Net, lane: u32) {
    let records: Vec<EventRecord> =
        events(&net.records).into_iter().filter(|record| record.args[2] == lane).collect();
    let rated = net.plan.links[usize::try_from(lane / 2).unwrap()].profiles[0].rate.is_some();
    let find = |kind: Kind, packet: &EventRecord| {
        let same = |it: &&EventRecord| it.kind == kind as u8 && it.args[0] == packet.args[0];
        records.iter().find(same).copied()
    };
    let copies = of(&net.records, Kind::Duplicated);
    let once = |packet: &EventRecord| copies.iter().all(|copy| copy.args[0] != packet.args[0]);
    for delivered in of(&records, Kind::Delivered).iter().filter(|it| once(it)) {
        let offered = find(Kind::Offered, delivered).expect("it was offered");
        let sent = find(Kind::Sent, delivered);
        let delay = u64::from(delivered.args[3]);
        let (waits, transmission) = match sent {
            Some(sent) => (sent.time - offered.time, u64::from(sent.args[3])),
            None => (delivered.time - delay - offered.time, 0),
        };
        assert_eq!(sent.is_some(), rated, "{delivered:?}");
        assert!(rated || waits == 0, "{delivered:?}");
        assert_eq!(offered.time + waits + transmission + delay, delivered.time);
        let next = events(&net.records).into_iter().find(|it| {
            it.kind == Kind::Offered as u8
                && which(it) == which(delivered)
                && it.args[2] == lane + 2
        });
        assert!(lane == 4 || next.is_some_and(|next| next.time == delivered.time), "{delivered:?}");
    }
}

fn play_with_room(
    plan: &Plan,
    steps: &[(u64, crate::properties::strategy::Step)],
    room: usize,
) -> Net {
    crate::properties::play_with(plan, steps, 1 << 30, |engine| {
        engine.recorder_mut().set_room(room);
        engine.recorder_mut().record(Some(RecordSettings::default()));
    })
}

/// Events among the records, and those that were lost.
fn count(records: &[EventRecord]) -> (u64, u64) {
    let lost = of(records, Kind::Lost);
    assert!(lost.iter().all(|gap| gap.wide(0) <= gap.time && gap.wide(2) > 0));
    let events = u64::try_from(events(records).len() - lost.len()).unwrap();
    (events, lost.iter().map(|gap| gap.wide(2)).sum())
}

#[test]
fn the_names_of_reasons_begin_with_those_of_lanes() {
    let names = DropReason::ALL.map(DropReason::name);
    assert_eq!(DROP_REASON_NAMES[..names.len()], names);
    assert_eq!(
        DROP_REASON_NAMES[7..],
        [
            "ttl_expired",
            "no_route",
            "not_forwarded",
            "malformed",
            "replica_lost",
            "filtered",
            "no_mapping",
            "exhausted",
            "untranslatable"
        ]
    );
}
