//! Loss, duplication and corruption, and what their random numbers depend on.

use windtunnel_model::profile::{GilbertElliott, LossModel};
use windtunnel_model::random::RandomStream;
use windtunnel_model::{DropReason, LinkDirection, LinkProfile, Plan, Probability};
use windtunnel_wire::{checksum, vnet};

use crate::support::{MS, Net, Topology, pair, rated};

fn lossy(loss: LossModel) -> LinkProfile {
    LinkProfile { loss, ..LinkProfile::default() }
}

fn percent(text: &str) -> Probability {
    text.parse().unwrap()
}

/// Which of `count` packets arrive.
fn survivors(plan: Plan, count: u32) -> Vec<u32> {
    let mut net = Net::new(plan);
    (0..count).for_each(|tag| net.send_udp(0, 100, tag));
    net.finish();
    net.check_conservation();
    net.tags()
}

/// Lost packets of each hundred.
fn lost_by_hundreds(survivors: &[u32], count: u32) -> Vec<u32> {
    let mut lost = vec![100; usize::try_from(count / 100).unwrap()];
    survivors.iter().for_each(|tag| lost[usize::try_from(tag / 100).unwrap()] -= 1);
    lost
}

#[test]
fn loss_is_independent_with_its_probability() {
    let count = 100_000;
    let tags = survivors(pair(5, lossy(LossModel::Independent(percent("3%")))), count);
    // Chi-square of the losses of each hundred packets against 100·p, with 999 degrees of freedom
    // (p is given): its mean is 999, its standard deviation 44.7.
    let variance = 100.0 * 0.03 * 0.97;
    let deviation = |lost: &u32| (f64::from(*lost) - 3.0).powi(2) / variance;
    let statistic: f64 = lost_by_hundreds(&tags, count).iter().map(deviation).sum();
    assert!((statistic - 1000.0).abs() < 4.0 * 44.7, "{statistic}");
    let lost = count - u32::try_from(tags.len()).unwrap();
    assert!(lost.abs_diff(3000) < 216, "{lost} is four deviations from 3000");
}

#[test]
fn bursts_have_the_mean_length_and_the_share_of_their_chain() {
    let loss = LossModel::GilbertElliott(GilbertElliott {
        good_to_bad: percent("1%"),
        bad_to_good: percent("25%"),
        loss_in_good: Probability::NEVER,
        loss_in_bad: Probability::ALWAYS,
    });
    let count = 200_000u32;
    let tags = survivors(pair(5, lossy(loss)), count);
    let gaps: Vec<u32> =
        tags.windows(2).map(|pair| pair[1] - pair[0] - 1).filter(|gap| *gap > 0).collect();
    let lost: u32 = gaps.iter().sum();
    let bursts = u32::try_from(gaps.len()).unwrap();
    let mean = f64::from(lost) / f64::from(bursts);
    // 1/0.25, with a deviation of √12/√1900.
    assert!((mean - 4.0).abs() < 0.32, "{mean}");
    let share = f64::from(lost) / f64::from(count);
    assert!((share - 0.01 / 0.26).abs() < 0.003, "{share}");
    let longest = gaps.iter().max().unwrap();
    assert!((15..60).contains(longest), "{longest}");
}

#[test]
fn exactly_the_listed_packets_vanish() {
    let tags = survivors(pair(5, lossy(LossModel::Listed(vec![1, 4, 5]))), 8);
    assert_eq!(tags, [1, 2, 5, 6, 7]);
}

#[test]
fn the_fate_of_a_packet_is_that_of_its_number_in_the_links_stream() {
    let probability = percent("20%");
    let tags = survivors(pair(9, lossy(LossModel::Independent(probability))), 500);
    let stream = RandomStream::derive(9, "a--b", LinkDirection::Up, "loss");
    let expected = (0..500).filter(|tag| !probability.decides(stream.at(u64::from(*tag) + 1)));
    assert_eq!(tags, expected.collect::<Vec<u32>>());
}

#[test]
fn another_link_changes_no_links_luck() {
    let profile = LinkProfile {
        loss: LossModel::Independent(percent("20%")),
        duplicate: percent("10%"),
        ..rated(100_000_000)
    };
    let alone = pair(4, profile.clone());
    let mut more = Topology::new(4);
    let (a, b, c) = (more.node("a"), more.node("b"), more.node("c"));
    more.link([a, b], [profile, LinkProfile::default()]);
    more.link([c, b], [lossy(LossModel::Independent(percent("50%"))), LinkProfile::default()]);
    let run = |plan| {
        let mut net = Net::new(plan);
        (0..500).for_each(|tag| net.send_udp(u64::from(tag) * MS, 100, tag));
        net.finish();
        net.arrivals()
    };
    assert_eq!(run(alone), run(more.build()));
}

#[test]
fn luck_does_not_depend_on_when_packets_come() {
    let plan = pair(4, lossy(LossModel::Independent(percent("20%"))));
    let at_once = survivors(plan.clone(), 500);
    let mut net = Net::new(plan);
    (0..500).for_each(|tag| net.send_udp(u64::from(tag * tag), 700, tag));
    net.finish();
    assert_eq!(net.tags(), at_once);
}

#[test]
fn a_copy_follows_right_behind_its_original() {
    let profile = LinkProfile { duplicate: percent("30%"), ..rated(8_000_000) };
    let mut net = Net::new(pair(2, profile));
    (0..400).for_each(|tag| net.send_udp(u64::from(tag) * 10 * MS, 1000, tag));
    net.finish();
    let duplicated = net.lane(0).duplicated;
    assert!((80..160).contains(&duplicated), "{duplicated}");
    assert_eq!(u64::try_from(net.out.len()).unwrap(), 400 + duplicated);
    for pair in net.arrivals().windows(2) {
        let sent = u64::from(pair[1].1) * 10 * MS;
        let copy = pair[0].1 == pair[1].1;
        assert_eq!(pair[1].0, sent + if copy { 2 * MS } else { MS });
    }
    net.check_conservation();
}

#[test]
fn a_corrupted_packet_fails_the_receivers_checksum_and_others_do_not() {
    let profile = LinkProfile { corrupt: percent("25%"), ..LinkProfile::default() };
    let mut net = Net::new(pair(2, profile));
    for tag in 0..400 {
        let (frame, header) = windtunnel_wire::build::partial(net.udp(200, tag));
        net.send(0, 0, header, &frame);
    }
    net.finish();
    let wrong = |out: &&crate::support::Out| {
        out.vnet.flags & vnet::NEEDS_CSUM == 0 && !checksum::verify(&out.frame)
    };
    let wrong = u64::try_from(net.out.iter().filter(wrong).count()).unwrap();
    assert_eq!(net.lane(0).corrupted, wrong);
    assert!((70..130).contains(&wrong), "{wrong}");
    assert_eq!(net.out.len(), 400);
}

#[test]
fn packets_beyond_the_memory_are_dropped_and_counted() {
    let mut net = Net::with_memory(pair(1, rated(8_000_000)), 10 * 2048);
    (0..30).for_each(|tag| net.send_udp(0, 1000, tag));
    assert_eq!(net.engine.in_flight_bytes(), 10 * 2048);
    assert_eq!(net.lane(0).dropped[DropReason::Memory], 20);
    net.check_conservation();
    net.finish();
    assert_eq!(net.tags(), (0..10).collect::<Vec<_>>());
}
