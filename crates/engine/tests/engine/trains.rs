//! Lazy segmentation: a train has the times, the losses and the bytes that its segments would have
//! had alone.

use proptest::prelude::*;
use windtunnel_engine::LaneCounters;
use windtunnel_model::profile::{
    CodelParameters, FairBy, FlowQueues, HostFairParameters, Jitter, LossModel, Overhead,
    PacketReordering, PieParameters, QueueDiscipline, QueueLimit, RedParameters, Wf2qParameters,
};
use windtunnel_model::record::EventRecord;
use windtunnel_model::{LinkProfile, Packets, Plan, Probability, Span};
use windtunnel_wire::build;
use windtunnel_wire::segment::PacketTrain;

use crate::records::laws;
use crate::support::{MS, Net, US, pair, path, rated, segments};

/// When, how many payload bytes, of what segment size.
type Sent = (u64, usize, u16);

/// Each arriving segment: when the frame that it came in arrived, and the segment.
struct Arrived {
    /// Arrival of the frame, for the last segment of each frame.
    at: Option<u64>,
    frame: Vec<u8>,
}

/// What arrived, what the lanes counted, and what was recorded.
type World = (Vec<Arrived>, Vec<LaneCounters>, Vec<EventRecord>);

fn run(plan: &Plan, trains: &[Sent], whole: bool) -> World {
    let mut net = Net::recorded(plan.clone());
    for (index, (at, len, gso_size)) in trains.iter().enumerate() {
        let payload: Vec<u8> =
            (0..*len).map(|n| u8::try_from((n + index) % 251).unwrap()).collect();
        let sequence = u32::try_from(index).unwrap() << 17;
        let (from, to) = (net.socket(0), net.socket(1));
        let (frame, header) = build::tcp_train(from, to, sequence, 0x10, &payload, *gso_size);
        if whole {
            net.send(*at, 0, header, &frame);
        } else {
            for (frame, header) in segments(&frame, &header) {
                net.send(*at, 0, header, &frame);
            }
        }
    }
    net.finish();
    net.check_conservation();
    let arrived = net.out.iter().flat_map(|out| {
        let count = PacketTrain::new(&out.frame, &out.vnet).count;
        let at = move |index| (index + 1 == count).then_some(out.at);
        let parts = segments(&out.frame, &out.vnet);
        (0..count).zip(parts).map(move |(index, (frame, _))| Arrived { at: at(index), frame })
    });
    let links = u32::try_from(plan.links.len()).unwrap();
    let arrived = arrived.collect();
    let lanes = (0..links).map(|link| *net.lane(link)).collect();
    (arrived, lanes, net.records)
}

/// Compares the trains' world with that of their segments.
fn compare([(whole, whole_lanes, train), (single, single_lanes, alone)]: [World; 2]) {
    let frames = |arrived: &[Arrived]| arrived.iter().map(|a| a.frame.clone()).collect::<Vec<_>>();
    assert!(frames(&whole) == frames(&single), "{whole_lanes:?}\n{single_lanes:?}");
    for (index, (whole, single)) in whole.iter().zip(&single).enumerate() {
        if let Some(at) = whole.at {
            assert_eq!(at, single.at.unwrap(), "segment {index}");
        }
    }
    for (whole, single) in whole_lanes.iter().zip(&single_lanes) {
        assert_eq!(whole.dropped, single.dropped);
        assert_eq!(whole.delivered_wire_bytes, single.delivered_wire_bytes);
        assert_eq!(whole.marked, single.marked);
        assert_eq!(whole.busy_ns, single.busy_ns);
    }
    laws::compare(&train, &alone);
}

#[test]
fn a_train_passes_a_gigabit_in_parts_of_at_most_100_us() {
    let mut net = Net::new(pair(1, LinkProfile { overhead: None, ..rated(1_000_000_000) }));
    let (frame, header) =
        build::tcp_train(net.socket(0), net.socket(1), 0, 0x10, &[1; 14_600], 1460);
    net.send(0, 0, header, &frame);
    net.finish();
    // 1538 bytes take 12.304 µs, so eight of them are the most that 100 µs hold.
    assert_eq!(net.times(), [98_432, 123_040]);
    let counts = net.out.iter().map(|out| PacketTrain::new(&out.frame, &out.vnet).count);
    assert_eq!(counts.collect::<Vec<_>>(), [8, 2]);
}

#[test]
fn a_train_is_pipelined_over_hops_not_stored_and_forwarded() {
    let mut net = Net::new(path(1, vec![rated(1_000_000_000); 3]));
    let (frame, header) = build::tcp_train(net.socket(0), net.socket(1), 0, 0x10, &[1; 5840], 1460);
    net.send(0, 0, header, &frame);
    net.finish();
    // Four segments of 12 µs, and two more hops for the last of them.
    assert_eq!(net.times(), [6 * 12 * US]);
    assert_eq!(net.out.len(), 1);
}

#[test]
fn only_what_is_lost_is_cut_out_of_a_train() {
    let mut net = Net::new(pair(
        1,
        LinkProfile {
            loss: LossModel::Listed(vec![3, 4, 10]),
            latency: Span::from_millis(1),
            ..LinkProfile::default()
        },
    ));
    let (frame, header) = build::tcp_train(net.socket(0), net.socket(1), 0, 0x10, &[1; 1000], 100);
    net.send(0, 0, header, &frame);
    net.finish();
    let counts = net.out.iter().map(|out| PacketTrain::new(&out.frame, &out.vnet).count);
    assert_eq!(counts.collect::<Vec<_>>(), [2, 5]);
    assert_eq!(net.times(), [MS, MS]);
    assert_eq!(net.lane(0).dropped.total(), 3);
}

fn trains() -> impl Strategy<Value = Vec<Sent>> {
    let train = (0u64..300 * US, 1usize..60_000, 500u16..1460);
    prop::collection::vec(train, 1..8).prop_map(|mut trains| {
        let mut at = 0;
        for train in &mut trains {
            at += train.0;
            train.0 = at;
        }
        trains
    })
}

fn discipline() -> impl Strategy<Value = QueueDiscipline> {
    let codel = CodelParameters {
        target: Span::from_micros(50),
        interval: Span::from_micros(400),
        ecn: true,
    };
    let red = |adaptive| {
        let weight: Probability = "20%".parse().unwrap();
        QueueDiscipline::Red(RedParameters {
            adaptive,
            weight,
            probability: weight,
            ..RedParameters::default()
        })
    };
    let pie = |derandomise| {
        let span = Span::from_micros(100);
        QueueDiscipline::Pie(PieParameters {
            target: span,
            update: span,
            burst: span,
            derandomise,
            ecn: true,
        })
    };
    prop_oneof![
        Just(QueueDiscipline::DropTail),
        Just(QueueDiscipline::DropHead),
        Just(QueueDiscipline::Codel(codel)),
        any::<bool>().prop_map(red),
        any::<bool>().prop_map(pie),
        Just(QueueDiscipline::Wf2q(Wf2qParameters::default())),
        Just(QueueDiscipline::FqCodel(FlowQueues { codel, ..FlowQueues::default() })),
        Just(QueueDiscipline::Fair(HostFairParameters {
            by: FairBy::Destination,
            queues: FlowQueues { codel, ..FlowQueues::default() }
        })),
    ]
}

fn hop() -> impl Strategy<Value = LinkProfile> {
    let rate = prop_oneof![Just(None), (1_000_000u64..20_000_000_000).prop_map(Some)];
    let loss = prop_oneof![
        Just(LossModel::None),
        Just(LossModel::Listed(vec![2, 5, 6, 30, 90])),
        Just(LossModel::Independent("5%".parse().unwrap()))
    ];
    let latency = prop_oneof![Just(0), 0..MS];
    let queue = prop_oneof![3 => 1u64..100, 1 => Just(100_000)];
    (rate, loss, latency, queue, 0u32..50, discipline()).prop_map(
        |(rate, loss, latency, queue, overhead, discipline)| LinkProfile {
            rate: rate.and_then(windtunnel_model::Rate::from_bits_per_second),
            latency: Span::from_nanos(latency),
            queue: Some(QueueLimit::Packets(Packets(queue))),
            overhead: Some(Overhead(overhead)),
            loss,
            discipline,
            ..LinkProfile::default()
        },
    )
}

proptest! {
    #[test]
    fn one_link_treats_a_train_exactly_as_its_segments(trains in trains(), hop in hop()) {
        let plan = pair(7, hop);
        compare([true, false].map(|whole| run(&plan, &trains, whole)));
    }

    #[test]
    fn jitter_duplicates_corruption_and_reordering_touch_the_same_segments(
        trains in trains(), hop in hop(), by_jitter: bool
    ) {
        let tenth: Probability = "10%".parse().unwrap();
        let profile = LinkProfile {
            jitter: Jitter { spread: Span::from_micros(50), ..Jitter::default() },
            reorder: PacketReordering {
                by_jitter,
                probability: tenth,
                extra: Span::from_micros(30),
                ..PacketReordering::default()
            },
            duplicate: tenth,
            corrupt: tenth,
            ..hop
        };
        let plan = pair(7, profile);
        compare([true, false].map(|whole| run(&plan, &trains, whole)));
    }

    #[test]
    fn reordering_alone_cuts_out_the_same_segments(trains in trains(), hop in hop()) {
        // A node gets a train when its last segment is there: what was held back may come between the
        // segments there, but not between those of a train here. So only times are compared.
        let reorder = PacketReordering {
            by_jitter: false,
            probability: "10%".parse().unwrap(),
            extra: Span::from_micros(30),
            ..PacketReordering::default()
        };
        let plan = pair(7, LinkProfile { reorder, ..hop });
        let worlds = [run(&plan, &trains, true), run(&plan, &trains, false)];
        compare(worlds.map(|(mut arrived, lanes, records)| {
            arrived.sort_by(|a, b| a.frame.cmp(&b.frame));
            (arrived, lanes, records)
        }));
    }
}
