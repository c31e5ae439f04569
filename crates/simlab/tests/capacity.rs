//! The model of paths: capacity that flows leave is used, and no link carries more than its rate.

use windtunnel_model::{Span, Time};
use windtunnel_simlab::{ConstantRateSender, RenoReceiver, RenoSender, SimulationRng, World, ms};

#[path = "common/rates.rs"]
mod rates;

use rates::{assert_near, rate};

/// UDP payload of a packet of 1500 bytes, 1538 on the wire.
const FULL: usize = 1472;
const FULL_ON_WIRE: u64 = 1538;
/// Between the nearest and the farthest source.
const SPREAD_MS: u64 = 100;

/// Six senders, six receivers and one link that all of them share.
fn star(head: &str, shared: &str, latencies: [u64; 6]) -> World {
    let mut text = format!("model: paths\n{head}nodes: {{");
    (0..6).for_each(|n| text += &format!("s{n}: {{}}, r{n}: {{}}, "));
    text +=
        &format!("}}\nrouters: [l, r]\nlinks:\n  - {{between: [l, r], {shared}, latency: 5ms}}\n");
    for (n, latency) in latencies.iter().enumerate() {
        text += &format!(
            "  - {{between: [s{n}, l], latency: {latency}ms}}\n  - {{between: [r{n}, r]}}\n"
        );
    }
    World::new(&text)
}

/// Sends from the n-th sender to the n-th receiver.
fn send(world: &mut World, n: usize, kbit: u64, left: u64) {
    let gap = Span::from_nanos(FULL_ON_WIRE * 8 * 1_000_000 / kbit);
    let (from, to) = (world.socket(&format!("s{n}")), world.socket(&format!("r{n}")));
    world.attach(&format!("s{n}"), ConstantRateSender { from, to, payload: FULL, gap, left });
}

fn window(world: &mut World, n: usize) {
    let (from, to) = (format!("s{n}"), format!("r{n}"));
    let sender =
        RenoSender::new(world.socket(&from), world.socket(&to), FULL, Span::from_millis(1000));
    world.attach(&to, RenoReceiver::default());
    world.attach(&from, sender);
}

fn seen(world: &World, n: usize, from: u64, to: u64) -> f64 {
    rate(world.deliveries(&format!("r{n}")), ms(from), ms(to))
}

/// The most bytes by which arrivals exceed what a rate carries, over all spans of time: the
/// level of a bucket that leaks at the rate.
fn burst(world: &World, mbit: u64) -> u64 {
    let mut all: Vec<(Time, u64)> = Vec::new();
    for n in 0..6 {
        let came = world.deliveries(&format!("r{n}"));
        all.extend(came.iter().map(|it| (it.at, it.frame.len() as u64 + 24)));
    }
    all.sort();
    let (mut level, mut most, mut before) = (0u64, 0, Time::ZERO);
    for (at, bytes) in all {
        // In bits of 10⁻³: Mbit/s times nanoseconds.
        level = level.saturating_sub(mbit * at.since(before).as_nanos()) + bytes * 8000;
        before = at;
        most = most.max(level);
    }
    most / 8000
}

/// 15 ms of the rate, and three packets for each way; with eight packets where those are more than
/// 10 ms.
fn allowed(mbit: u64, ways: u64) -> u64 {
    let credit = (mbit * 1250).max(8 * FULL_ON_WIRE);
    credit + mbit * 625 + ways * 3 * FULL_ON_WIRE
}

#[test]
fn a_greedy_flow_has_all_that_a_modest_one_leaves() {
    for kbit in [100, 300, 1000, 2000, 3000, 4000, 4500, 4900] {
        let mut world = star("sharing: equal\n", "rate: 10mbit", [0; 6]);
        send(&mut world, 0, kbit, u64::MAX);
        send(&mut world, 1, 20_000, u64::MAX);
        world.run_until(ms(8000));
        let modest = kbit as f64 / 1000.0;
        let [a, b] = [0, 1].map(|n| seen(&world, n, 3000, 8000));
        assert_near(a, modest, 0.01 + 0.0025 / modest);
        assert!(b >= (10.0 - modest) * 0.99, "{b} beside {a}");
        assert!(a + b <= 10.0 + 15e-3 * 10.0 / 5.0, "{a} + {b}");
        assert!(burst(&world, 10) <= allowed(10, 2), "{}", burst(&world, 10));
        world.assert_conservation();
    }
}

/// Round trips of 20 and 60 ms: capacity that a third one leaves is divided as 3 to 1 too.
#[test]
fn spare_capacity_is_divided_as_the_shares_are() {
    let mut world = star("", "rate: 12mbit", [5, 25, 5, 5, 5, 5]);
    for (n, kbit) in [(0, 20_000), (1, 20_000), (2, 2000)] {
        send(&mut world, n, kbit, u64::MAX);
    }
    world.run_until(ms(10_000));
    let [near, far, modest] = [0, 1, 2].map(|n| seen(&world, n, 4000, 10_000));
    assert_near(modest, 2.0, 0.01);
    assert_near(near + far, 10.0, 0.01);
    assert_near(near / far, 3.0, 0.02);
}

/// It sends at the whole rate for 100 ms of each 300 ms; the other one has the rest in the long
/// run.
#[test]
fn capacity_that_a_flow_leaves_in_its_pauses_is_used() {
    let mut world = star("sharing: equal\n", "rate: 10mbit, queue: 200p", [0; 6]);
    send(&mut world, 1, 20_000, u64::MAX);
    let (from, to) = (world.socket("s0"), world.socket("r0"));
    for turn in 0..27 {
        world.run_until(ms(turn * 300));
        let gap = Span::from_nanos(FULL_ON_WIRE * 800);
        world.attach("s0", ConstantRateSender { from, to, payload: FULL, gap, left: 81 });
    }
    world.run_until(ms(8100));
    let [a, b] = [0, 1].map(|n| seen(&world, n, 3000, 8100));
    assert_near(a + b, 10.0, 0.01);
    assert!(burst(&world, 10) <= allowed(10, 2), "{}", burst(&world, 10));
}

/// Streams with a window start and end; the capacity that they leave and take never adds up to
/// more than the link's.
#[test]
fn no_link_carries_more_than_it_can_when_flows_begin_and_end() {
    for seed in 0..30 {
        let mut rng = SimulationRng::new(seed);
        let head = if seed % 2 == 0 { "sharing: equal\n" } else { "" };
        let mbit = [1, 6, 40][usize::try_from(seed % 3).unwrap_or(0)];
        let mut world = star(head, &format!("rate: {mbit}mbit"), [0, 5, 25, 50, 1, SPREAD_MS]);
        for turn in 0..40 {
            world.run_until(ms(turn * 250));
            let n = usize::try_from(rng.below(6)).unwrap_or(0);
            if rng.below(3) == 0 {
                window(&mut world, n);
            } else {
                let kbit = mbit * (20 + rng.below(1500));
                send(&mut world, n, kbit, kbit * rng.below(2000) / (FULL_ON_WIRE * 8));
            }
        }
        world.run_until(ms(12_000));
        // Shares that move to a nearer source are there before packets under way from the farther
        // one have passed.
        let most = allowed(mbit, 6) + mbit * 125 * SPREAD_MS;
        let burst = burst(&world, mbit);
        assert!(burst <= most, "seed {seed}: {burst} of {most}");
        world.assert_conservation();
    }
}

/// Three modest flows that pause and go on together: each may use the spare capacity, but not all
/// of them at once.
#[test]
fn modest_flows_that_burst_together_do_not_use_spare_capacity_twice() {
    let mut world = star("sharing: equal\n", "rate: 6mbit", [0; 6]);
    for turn in 0..20 {
        world.run_until(ms(turn * 500));
        for n in 0..3 {
            let (from, to) = (world.socket(&format!("s{n}")), world.socket(&format!("r{n}")));
            // 30 packets at once in each half second: 0.74 Mbit/s.
            world.attach(
                &format!("s{n}"),
                ConstantRateSender { from, to, payload: FULL, gap: Span::from_nanos(1), left: 30 },
            );
        }
    }
    world.run_until(ms(10_500));
    assert!(burst(&world, 6) <= allowed(6, 3), "{} of {}", burst(&world, 6), allowed(6, 3));
}

/// The farther flow ends while 100 ms of its packets are under way: the nearer one waits for them
/// to pass.
#[test]
fn packets_under_way_of_a_flow_that_ended_are_waited_for() {
    for kbit in [3000, 20_000] {
        let mut world = star("sharing: equal\n", "rate: 6mbit", [100, 0, 0, 0, 0, 0]);
        send(&mut world, 0, kbit, kbit * 3000 / (FULL_ON_WIRE * 8));
        send(&mut world, 1, 20_000, u64::MAX);
        world.run_until(ms(8000));
        let second =
            |from: u64| seen(&world, 0, from, from + 1000) + seen(&world, 1, from, from + 1000);
        let most = (300..700).map(|at| second(at * 10)).fold(0.0, f64::max);
        assert!(most <= 6.0 + allowed(6, 2) as f64 * 8e-6, "{most}");
        assert_near(seen(&world, 1, 5000, 8000), 6.0, 0.01);
    }
}
