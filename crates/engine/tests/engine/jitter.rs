//! Delays as distributions: Kolmogorov–Smirnov against the exact distribution functions.

use windtunnel_model::profile::{Jitter, JitterDistribution, PacketReordering};
use windtunnel_model::{LinkProfile, Probability, Span};

use crate::support::{MS, Net, US, pair};

const SPREAD: f64 = 2e6;
const LATENCY: u64 = 10 * MS;
const COUNT: u32 = 20_000;

/// Delays beyond the latency of packets sent every second, sorted.
fn delays(distribution: JitterDistribution) -> Vec<u64> {
    let jitter = Jitter { spread: Span::from_millis(2), distribution };
    let latency = Span::from_nanos(LATENCY);
    let mut net = Net::new(pair(11, LinkProfile { latency, jitter, ..LinkProfile::default() }));
    (0..COUNT).for_each(|tag| net.send_udp(u64::from(tag) * 1000 * MS, 100, tag));
    net.finish();
    let sent = |tag: u32| u64::from(tag) * 1000 * MS + LATENCY;
    let mut delays: Vec<u64> = net.arrivals().iter().map(|(at, tag)| at - sent(*tag)).collect();
    assert_eq!(delays.len(), 20_000);
    delays.sort_unstable();
    delays
}

#[expect(clippy::cast_precision_loss, reason = "delays lie far below 2^52")]
fn float(value: u64) -> f64 {
    value as f64
}

/// The greatest distance between the empirical distribution and `cdf`, times √n; above 1.95 it
/// happens once in a thousand seeds.
fn assert_distributed(delays: &[u64], cdf: impl Fn(f64) -> f64) {
    let count = f64::from(COUNT);
    let distance = (0u32..).zip(delays).fold(0f64, |most, (index, delay)| {
        let expected = cdf(float(*delay));
        let (low, high) = (f64::from(index) / count, f64::from(index + 1) / count);
        most.max((expected - low).abs()).max((high - expected).abs())
    });
    let statistic = distance * count.sqrt();
    assert!(statistic < 1.95, "{statistic}");
}

#[test]
fn uniform_jitter_is_uniform() {
    assert_distributed(&delays(JitterDistribution::Uniform), |x| (x / SPREAD).min(1.0));
}

#[test]
fn normal_jitter_is_half_normal() {
    let delays = delays(JitterDistribution::Normal);
    assert_distributed(&delays, |x| libm::erf(x / SPREAD / 2f64.sqrt()));
    assert!(delays.iter().all(|delay| *delay <= 8 * MS));
}

#[test]
fn pareto_jitter_has_its_shape_and_mean() {
    let delays = delays(JitterDistribution::Pareto);
    assert_distributed(&delays, |x| 1.0 - (1.0 + x / (2.0 * SPREAD)).powi(-3));
    assert!(delays.iter().all(|delay| *delay <= 80 * MS));
    let mean = delays.iter().sum::<u64>() / u64::from(COUNT);
    assert!(mean.abs_diff(2 * MS) < MS / 10, "{mean}");
}

#[test]
fn table_jitter_follows_its_quantiles() {
    let table = [0, 1, 1, 9].map(Span::from_millis).to_vec();
    let delays = delays(JitterDistribution::Table(table));
    let below = |limit: u64| delays.iter().filter(|delay| **delay < limit).count();
    // A third is uniform below 1 ms, a third is 1 ms exactly, a third is uniform up to 9 ms.
    assert!(below(MS).abs_diff(6667) < 200);
    assert!(below(MS + 1).abs_diff(13_333) < 200);
    assert!(below(5 * MS).abs_diff(16_667) < 200);
}

#[test]
fn jitter_keeps_the_order_unless_reorder_lets_it_not() {
    let by = |by_jitter| {
        let mut net = Net::new(pair(
            3,
            LinkProfile {
                latency: Span::from_millis(1),
                jitter: Jitter { spread: Span::from_millis(5), ..Jitter::default() },
                reorder: PacketReordering { by_jitter, ..PacketReordering::default() },
                ..LinkProfile::default()
            },
        ));
        (0..1000).for_each(|tag| net.send_udp(u64::from(tag) * 100 * US, 100, tag));
        net.finish();
        assert!(net.times().is_sorted());
        (net.tags().is_sorted(), net.lane(0).reordered, net.arrivals())
    };
    let (kept, mixed) = (by(false), by(true));
    assert_eq!((kept.0, kept.1), (true, 0));
    assert!(!mixed.0 && mixed.1 > 500, "{}", mixed.1);
    // The drawn delay never falls below the latency, and is the same for the same packet.
    let least = mixed.2.iter().map(|(at, tag)| at - u64::from(*tag) * 100 * US).min().unwrap();
    assert!((MS..MS + 100 * US).contains(&least));
}

#[test]
fn a_packet_that_is_held_back_delays_no_other() {
    let probability: Probability = "10%".parse().unwrap();
    let extra = Span::from_millis(2);
    let mut net = Net::new(pair(
        3,
        LinkProfile {
            latency: Span::from_millis(1),
            reorder: PacketReordering { probability, extra, ..PacketReordering::default() },
            ..LinkProfile::default()
        },
    ));
    (0..1000).for_each(|tag| net.send_udp(u64::from(tag) * 100 * US, 100, tag));
    net.finish();
    let delay = |(at, tag): (u64, u32)| at - u64::from(tag) * 100 * US;
    let held = net.arrivals().into_iter().filter(|arrival| delay(*arrival) == 3 * MS).count();
    let others = net.arrivals().into_iter().filter(|arrival| delay(*arrival) == MS).count();
    assert_eq!(held + others, 1000);
    assert_eq!(net.lane(0).reordered, u64::try_from(held).unwrap());
    assert!((70..130).contains(&held));
    // Those that were not held back are in order.
    let order: Vec<u32> =
        net.arrivals().into_iter().filter(|a| delay(*a) == MS).map(|a| a.1).collect();
    assert!(order.is_sorted());
}

/// Packets every 2 ms, and the mean of what the lane says of their delay beside that of what
/// arrived.
fn mean_delays(profile: LinkProfile) -> (u64, u64) {
    const PACKETS: u32 = 100_000;
    let sent = |tag: u32| u64::from(tag) * 2 * MS;
    let mut net = Net::new(pair(5, profile));
    (0..PACKETS).for_each(|tag| net.send_udp(sent(tag), 100, tag));
    net.finish();
    let seen: u64 = net.arrivals().iter().map(|(at, tag)| at - sent(*tag)).sum();
    let lane = net.lane(0);
    assert_eq!(lane.delay_count, u64::from(PACKETS));
    (lane.delay_sum_ns / lane.delay_count, seen / u64::from(PACKETS))
}

/// A packet leaves in order with the greatest of its own delay and those of its predecessors, each
/// 2 ms less than the one behind it: P(delay of 5 ms + x or less) is the product of (x + 2j)/40
/// over all j with x + 2j below 40.
fn mean_of_uniform_jitter_in_order_ns() -> f64 {
    let steps = 100_000;
    let width = 40.0 / f64::from(steps);
    let beyond = (0..steps).map(|step| {
        let x = (f64::from(step) + 0.5) * width;
        let at_most: f64 = (0..20).map(|j| ((x + 2.0 * f64::from(j)) / 40.0).min(1.0)).product();
        (1.0 - at_most) * width
    });
    (5.0 + beyond.sum::<f64>()) * 1e6
}

#[test]
fn the_delay_that_is_counted_is_the_one_that_packets_have_also_where_order_is_kept() {
    let jitter = Jitter { spread: Span::from_millis(40), ..Jitter::default() };
    let latency = Span::from_millis(5);
    let (counted, seen) = mean_delays(LinkProfile { latency, jitter, ..LinkProfile::default() });
    assert_eq!(counted, seen);
    let expected = mean_of_uniform_jitter_in_order_ns();
    // 35.46 ms, where 25 ms are drawn. 0.2 ms are three deviations of the mean of so many.
    assert!((float(counted) - expected).abs() < 2e5, "{counted} beside {expected}");
    assert!((expected - 35.457e6).abs() < 1e3, "{expected}");
}

#[test]
fn the_delay_that_is_counted_has_what_reorder_adds() {
    let half = Probability::from_parts_per_billion(500_000_000).unwrap();
    let extra = Span::from_millis(7);
    let reorder = PacketReordering { probability: half, extra, ..PacketReordering::default() };
    let latency = Span::from_millis(5);
    let (counted, seen) = mean_delays(LinkProfile { latency, reorder, ..LinkProfile::default() });
    assert_eq!(counted, seen);
    assert!(counted.abs_diff(8 * MS + MS / 2) < MS / 20, "{counted}");
}
