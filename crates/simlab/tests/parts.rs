//! One network of paths on several machines: it behaves as on one, but for the time that news take.

use windtunnel_model::{DropReason, Span};
use windtunnel_simlab::{
    ConstantRateSender, FrameDelivery, RenoReceiver, RenoSender, Wire, World, ms,
};
use windtunnel_wire::build;

#[path = "common/rates.rs"]
mod rates;

use rates::{assert_near, rate};

/// UDP payload of a packet of 1500 bytes, 1538 on the wire.
const FULL: usize = 1472;

/// SplayNet, Figure 3.5: a link of 2 Mbit/s, round trips of 100 and 300 ms.
const FIGURE: &str = "model: paths\nnodes: {n0: {}, n0b: {}, n2: {}, n3: {}, n5: {}}\nrouters: [r1, r4]\nlinks:\n  \
    - {between: [n0, r1], latency: 10ms}\n  - {between: [n0b, r1], latency: 10ms}\n  \
    - {between: [r1, r4], rate: 2mbit, latency: 10ms}\n  - {between: [r4, n2], latency: 30ms}\n  \
    - {between: [r4, n5], latency: 130ms, rate: 2mbit}\n  - {between: [n3, r4], latency: 20ms}\n";

fn wire(least: u64, most: u64) -> Wire {
    Wire::new(Span::from_micros(200), [Span::from_micros(least), Span::from_micros(most)], 7)
}

fn dumbbell(shared: &str) -> String {
    format!(
        "model: paths\nseed: 5\nnodes: {{a: {{}}, b: {{}}, c: {{}}, x: {{}}, y: {{}}, z: {{}}}}\nrouters: [l, r]\n\
         links:\n  - {{between: [l, r], {shared}}}\n\
         \x20 - {{between: [a, l]}}\n  - {{between: [b, l]}}\n  - {{between: [c, l]}}\n\
         \x20 - {{between: [x, r]}}\n  - {{between: [y, r]}}\n  - {{between: [z, r]}}\n"
    )
}

/// Senders on machines of their own, receivers on those of the next one.
const THREE: [&[&str]; 3] = [&["a", "z"], &["b", "x"], &["c", "y"]];

fn send(world: &mut World, from: &str, to: &str, kbit: u64, left: u64) {
    let gap = Span::from_nanos(1538 * 8 * 1_000_000 / kbit);
    let (from_socket, to_socket) = (world.socket(from), world.socket(to));
    let sender = ConstantRateSender { from: from_socket, to: to_socket, payload: FULL, gap, left };
    world.attach(from, sender);
}

#[test]
fn flows_of_three_machines_share_a_link_as_in_splaynets_example() {
    let machines: [&[&str]; 3] = [&["n0", "n5"], &["n0b", "n2"], &["n3"]];
    let mut world = World::over(FIGURE, &machines, wire(100, 5000));
    send(&mut world, "n0", "n2", 5000, u64::MAX);
    world.run_until(ms(5000));
    assert_near(rate(world.deliveries("n2"), ms(1000), ms(5000)), 2.0, 0.005);
    send(&mut world, "n0b", "n5", 5000, u64::MAX);
    world.run_until(ms(10_000));
    assert_near(rate(world.deliveries("n2"), ms(6000), ms(10_000)), 1.5, 0.005);
    assert_near(rate(world.deliveries("n5"), ms(6000), ms(10_000)), 0.5, 0.01);
    send(&mut world, "n3", "n5", 5000, u64::MAX);
    world.run_until(ms(15_000));
    assert_near(rate(world.deliveries("n2"), ms(9900), ms(15_000)), 1.5, 0.005);
    assert_near(rate(world.deliveries("n5"), ms(11_000), ms(15_000)), 2.0, 0.005);
    assert_eq!(world.wire().late(), 0);
    assert!(world.engines().iter().all(|engine| engine.flow_counts().refused == 0));
    world.assert_conservation();
}

/// A datagram each 100 ms is a new flow each time: it has a share for 50 ms, of the least demand.
/// Only its own machine can use that.
#[test]
fn a_small_datagram_now_and_then_takes_no_more_than_a_full_packet_a_period() {
    let text = dumbbell("rate: 12mbit, latency: 5ms");
    let mut world = World::over(&text, &THREE, wire(100, 200));
    send(&mut world, "a", "x", 8000, u64::MAX);
    send(&mut world, "b", "y", 8000, u64::MAX);
    let (from, to) = (world.socket("a"), world.socket("y"));
    for number in 0..60 {
        world.at(ms(number * 100)).send("a", build::udp(from, to, &[0; 56]));
    }
    world.run_until(ms(6000));
    let [x, y] = ["x", "y"].map(|to| rate(world.deliveries(to), ms(1000), ms(6000)));
    let least = 1538.0 * 8.0 * 20.0 / 1e6;
    assert!(y > (12.0 - least) / 2.0 * 0.995 && y < 6.0 * 1.005, "{y}");
    assert_near(x + y, 12.0, 0.005);
    world.assert_conservation();
}

#[test]
fn goodput_over_machines_is_that_on_one() {
    let text = dumbbell("rate: 12mbit, latency: 20ms");
    let run = |mut world: World| {
        for (from, to) in [("a", "x"), ("b", "y"), ("c", "z")] {
            let sender = RenoSender::new(
                world.socket(from),
                world.socket(to),
                FULL,
                Span::from_millis(1000),
            );
            world.attach(to, RenoReceiver::default());
            world.attach(from, sender);
        }
        world.run_until(ms(60_000));
        world.assert_conservation();
        assert_eq!(world.wire().late(), 0);
        ["x", "y", "z"].map(|to| rate(world.deliveries(to), ms(6000), ms(60_000)))
    };
    let one = run(World::new(&text));
    let two: [&[&str]; 2] = [&["a", "b", "z"], &["c", "x", "y"]];
    for over in [
        run(World::over(&text, &THREE, wire(100, 5000))),
        run(World::over(&text, &two, wire(100, 5000))),
    ] {
        for (one, over) in one.iter().zip(over) {
            // Saw-teeth fall at other moments, and with them what the others get meanwhile.
            assert_near(over, *one, 0.01);
        }
        assert!(over.iter().sum::<f64>() <= 12.0 * 1.001, "{over:?}");
    }
}

#[test]
fn losses_over_machines_are_those_on_one_in_number_but_not_packet_by_packet() {
    let text = dumbbell("loss: 4%, latency: 5ms");
    let mut worlds = [World::new(&text), World::over(&text, &THREE, wire(100, 200))];
    for world in &mut worlds {
        for number in 0..4000u32 {
            for (from, to) in [("a", "x"), ("b", "y"), ("c", "z")] {
                let frame = world.udp(from, to, &number.to_be_bytes());
                world.at(ms(u64::from(number))).send(from, frame);
            }
        }
        world.run_until(ms(5000));
        world.assert_conservation();
        for to in ["x", "y", "z"] {
            // Four deviations of √(4000 · 0.04 · 0.96).
            let lost = 4000 - world.deliveries(to).len();
            assert!(lost.abs_diff(160) <= 50, "{lost}");
        }
    }
    let lost =
        |engine: &windtunnel_engine::Engine, lane| engine.lane(lane).dropped[DropReason::Loss];
    let lane = worlds[1].lane("l-r");
    let each: Vec<u64> = worlds[1].engines().iter().map(|engine| lost(engine, lane)).collect();
    let seen: usize = ["x", "y", "z"].iter().map(|to| worlds[1].deliveries(to).len()).sum();
    assert_eq!(
        each.iter().sum::<u64>(),
        12_000 - seen as u64,
        "the machines' counters add up to the loss"
    );
    let payloads = |to: &str| {
        let payload = |it: &FrameDelivery| it.frame[42..46].to_vec();
        worlds[1].deliveries(to).iter().map(payload).collect::<Vec<_>>()
    };
    assert!(
        payloads("x") != payloads("y") && payloads("y") != payloads("z"),
        "random draws of their own"
    );
}

#[test]
fn a_machine_that_is_lost_leaves_its_share() {
    let mut world = World::over(&dumbbell("rate: 9mbit, latency: 5ms"), &THREE, wire(100, 5000));
    for (from, to) in [("a", "x"), ("b", "y"), ("c", "z")] {
        send(&mut world, from, to, 20_000, u64::MAX);
    }
    world.run_until(ms(3000));
    for to in ["x", "y", "z"] {
        assert_near(rate(world.deliveries(to), ms(1000), ms(3000)), 3.0, 0.005);
    }
    world.lose(2);
    world.run_until(ms(6000));
    assert_near(rate(world.deliveries("x"), ms(3100), ms(6000)), 4.5, 0.005);
    assert_eq!(world.engines()[0].flow_counts().remote, 1);
}

/// Flows that come and go on three machines: over any time, a link carries no more than its rate,
/// and for each start of a flow the packets it sends before the others know.
#[test]
fn a_link_carries_no_more_than_its_rate_and_the_starts_of_flows() {
    for most in [200, 5000] {
        let mut world =
            World::over(&dumbbell("rate: 10mbit, latency: 5ms"), &THREE, wire(100, most));
        send(&mut world, "a", "x", 4000, u64::MAX);
        let mut starts = 1.0;
        for round in 0..8u64 {
            world.run_until(ms(1000 + round * 1000));
            // 400 ms of 20 Mbit/s, then silence.
            send(&mut world, "b", "y", 20_000, 650);
            send(&mut world, "c", "z", 20_000, 650);
            starts += 2.0;
        }
        world.run_until(ms(10_000));
        let carried: f64 = ["x", "y", "z"]
            .iter()
            .map(|to| rate(world.deliveries(to), ms(0), ms(10_000)) * 10.0)
            .sum();
        // A flow of no connection sends at the link's rate until its first 50 ms are over, and news
        // take their time.
        let unknown = 0.05 + most as f64 / 1e6;
        assert!(carried <= 10.0 * 10.0 + starts * 10.0 * unknown, "{carried} Mbit");
        let busy = [("y", 1500), ("z", 1500), ("x", 1500)]
            .map(|(to, from)| rate(world.deliveries(to), ms(from - 300), ms(from)));
        let sum: f64 = busy.iter().sum();
        assert!(sum > 9.8 && sum <= 10.1, "all of it is used, and no more: {busy:?}");
        world.assert_conservation();
    }
}

#[test]
fn news_stop_when_nothing_changes() {
    let mut world = World::over(&dumbbell("rate: 9mbit, latency: 5ms"), &THREE, wire(100, 200));
    send(&mut world, "a", "x", 20_000, u64::MAX);
    send(&mut world, "b", "y", 1000, u64::MAX);
    world.run_until(ms(4000));
    let announced = world.wire().announced();
    world.run_until(ms(20_000));
    assert_eq!(world.wire().announced(), announced, "a steady flow is not announced again");
    assert!(announced <= 40, "{announced}");
}
