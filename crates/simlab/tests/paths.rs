//! The model of paths: delays and losses of a whole path, and shares of the links on it.

use windtunnel_model::plan::{EventAction, LinkChange, Plan};
use windtunnel_model::profile::PropertySetting;
use windtunnel_model::{DropReason, LinkPatch, Rate, Span, Time};
use windtunnel_simlab::{ConstantRateSender, FrameDelivery, RenoReceiver, RenoSender, World, ms};

#[path = "common/rates.rs"]
mod rates;

use rates::{assert_near, rate};

/// UDP payload of a packet of 1500 bytes, 1538 on the wire.
const FULL: usize = 1472;

/// Sources a, b and c, receivers x, y and z, and one link that all of them share.
fn dumbbell(shared: &str, head: &str) -> World {
    World::new(&format!(
        "model: paths\n{head}nodes: {{a: {{}}, b: {{}}, c: {{}}, x: {{}}, y: {{}}, z: {{}}}}\nrouters: [l, r]\n\
         links:\n  - {{between: [l, r], name: shared, {shared}}}\n\
         \x20 - {{between: [a, l]}}\n  - {{between: [b, l]}}\n  - {{between: [c, l]}}\n\
         \x20 - {{between: [x, r]}}\n  - {{between: [y, r]}}\n  - {{between: [z, r]}}\n"
    ))
}

fn steady(world: &World, from: &str, to: &str, mbit: u64, left: u64) -> ConstantRateSender {
    let gap = Span::from_nanos(1538 * 8 * 1000 / mbit);
    ConstantRateSender { from: world.socket(from), to: world.socket(to), payload: FULL, gap, left }
}

fn window(world: &mut World, from: &str, to: &str) {
    let sender =
        RenoSender::new(world.socket(from), world.socket(to), FULL, Span::from_millis(1000));
    world.attach(to, RenoReceiver::default());
    world.attach(from, sender);
}

#[test]
fn a_lone_window_fills_its_narrowest_link() {
    let mut world = dumbbell("rate: 10mbit, latency: 10ms", "");
    window(&mut world, "a", "x");
    world.run_until(ms(20_000));
    // Its slow start loses a hundred packets at once, which it makes up for one a round trip.
    assert_near(rate(world.deliveries("x"), ms(4000), ms(20_000)), 10.0, 0.005);
    world.assert_conservation();
}

/// A flow alone meets the same queue in both models, and no packet is there before its time, though
/// the last link takes none.
#[test]
fn a_lone_window_goes_as_with_the_model_of_hops() {
    let run = |model: &str| {
        let mut world = World::new(&format!(
            "model: {model}\nnodes: {{a: {{}}, x: {{}}}}\nrouters: [l, r]\nlinks:\n  - {{between: [a, l]}}\n  \
             - {{between: [l, r], rate: 10mbit, latency: 10ms}}\n  - {{between: [r, x]}}\n"
        ));
        window(&mut world, "a", "x");
        world.run_until(ms(5000));
        world.deliveries("x").to_vec()
    };
    let hops = run("hops");
    assert!(hops.len() > 1000);
    assert!(run("paths") == hops);
}

#[test]
fn a_lone_packet_takes_the_latencies_of_its_path_and_one_transmission() {
    let text = "model: paths\nnodes: {a: {}, x: {}}\nrouters: [l, r]\nlinks:\n  \
                - {between: [a, l], latency: 3ms}\n  - {between: [l, r], rate: 10mbit, latency: 20ms}\n  \
                - {between: [r, x], latency: 7ms}\n";
    let mut world = World::new(text);
    let frame = world.udp("a", "x", &[0; FULL]);
    world.at(ms(1)).send("a", frame);
    world.run_until(ms(100));
    let transmission = Span::from_nanos(1538 * 800);
    let due = ms(1) + Span::from_millis(30) + transmission;
    assert_eq!(world.deliveries("x").iter().map(|it| it.at).collect::<Vec<_>>(), [due]);
}

/// SplayNet, Figure 3.5: a link of 2 Mbit/s, round trips of 100 and 300 ms.
#[test]
fn flows_share_a_link_as_in_splaynets_example() {
    let text = "model: paths\nnodes: {n0: {}, n0b: {}, n2: {}, n3: {}, n5: {}}\nrouters: [r1, r4]\nlinks:\n  \
                - {between: [n0, r1], latency: 10ms}\n  - {between: [n0b, r1], latency: 10ms}\n  \
                - {between: [r1, r4], rate: 2mbit, latency: 10ms}\n  - {between: [r4, n2], latency: 30ms}\n  \
                - {between: [r4, n5], latency: 130ms, rate: 10mbit}\n  - {between: [n3, r4], latency: 20ms}\n";
    let mut world = World::new(text);
    let first = steady(&world, "n0", "n2", 5, u64::MAX);
    world.attach("n0", first);
    world.run_until(ms(5000));
    assert_near(rate(world.deliveries("n2"), ms(1000), ms(5000)), 2.0, 0.005);
    let second = steady(&world, "n0b", "n5", 5, u64::MAX);
    world.attach("n0b", second);
    world.run_until(ms(10_000));
    assert_near(rate(world.deliveries("n2"), ms(6000), ms(10_000)), 1.5, 0.005);
    assert_near(rate(world.deliveries("n5"), ms(6000), ms(10_000)), 0.5, 0.01);
    let third = steady(&world, "n3", "n5", 5, u64::MAX);
    world.attach("n3", third);
    world.run_until(ms(15_000));
    assert_near(rate(world.deliveries("n2"), ms(11_000), ms(15_000)), 1.5, 0.005);
    assert_near(rate(world.deliveries("n5"), ms(11_000), ms(15_000)), 5.5, 0.005);
    world.assert_conservation();
}

#[test]
fn equal_sharing_does_not_look_at_round_trips() {
    let text = "model: paths\nsharing: equal\nnodes: {a: {}, b: {}, x: {}, y: {}}\nrouters: [l, r]\nlinks:\n  \
                - {between: [a, l]}\n  - {between: [b, l], latency: 90ms}\n  - {between: [l, r], rate: 8mbit, latency: 10ms}\n  \
                - {between: [r, x]}\n  - {between: [r, y]}\n";
    let mut world = World::new(text);
    for (from, to) in [("a", "x"), ("b", "y")] {
        let sender = steady(&world, from, to, 10, u64::MAX);
        world.attach(from, sender);
    }
    world.run_until(ms(4000));
    for to in ["x", "y"] {
        assert_near(rate(world.deliveries(to), ms(1000), ms(4000)), 4.0, 0.005);
    }
}

#[test]
fn a_flow_takes_a_share_when_it_starts_and_leaves_it_when_it_ends() {
    let mut world = dumbbell("rate: 9mbit, latency: 5ms", "");
    let whole = steady(&world, "a", "x", 20, u64::MAX);
    world.attach("a", whole);
    world.run_until(ms(2000));
    // Two seconds of 20 Mbit/s.
    let guest = steady(&world, "b", "y", 20, 3251);
    world.attach("b", guest);
    world.run_until(ms(6000));
    let x = world.deliveries("x");
    assert_near(rate(x, ms(1000), ms(2000)), 9.0, 0.005);
    assert_near(rate(x, ms(2200), ms(3900)), 4.5, 0.005);
    // The packets in its queue (100 at half of 9 Mbit/s) go first.
    assert_near(rate(x, ms(4500), ms(6000)), 9.0, 0.005);
    assert_near(rate(world.deliveries("y"), ms(2200), ms(3900)), 4.5, 0.005);
    world.assert_conservation();
}

#[test]
fn capacity_that_a_modest_flow_does_not_use_is_left_to_the_others() {
    let mut world = dumbbell("rate: 10mbit, latency: 5ms", "");
    for (from, to, mbit) in [("a", "x", 1), ("b", "y", 20), ("c", "z", 20)] {
        let sender = steady(&world, from, to, mbit, u64::MAX);
        world.attach(from, sender);
    }
    world.run_until(ms(6000));
    let [x, y, z] = ["x", "y", "z"].map(|to| rate(world.deliveries(to), ms(3000), ms(6000)));
    assert_near(x, 1.0, 0.005);
    assert!(y + z >= 9.0 * 0.99, "{y} + {z}");
    assert_near(y, z, 0.005);
    let lost = world.engine().lane(world.lane("l-r")).dropped[DropReason::QueueFull];
    assert!(lost > 0, "the others send more than their shares");
    assert_eq!(world.deliveries("x").windows(2).filter(|it| it[1].at < it[0].at).count(), 0);
}

#[test]
fn a_source_is_not_held_up_by_packets_of_others_that_have_further_to_go() {
    let text = "model: paths\nnodes: {far: {}, near: {}, x: {}}\nrouters: [r]\nlinks:\n  \
                - {between: [far, r], latency: 500ms}\n  - {between: [near, r], latency: 1ms}\n  \
                - {between: [r, x], latency: 1ms, jitter: 1us}\n";
    let mut world = World::new(text);
    let [far, near] = ["far", "near"].map(|from| world.udp(from, "x", &[0; 100]));
    world.at(ms(0)).send("far", far);
    world.at(ms(1)).send("near", near);
    world.run_until(ms(1000));
    let times: Vec<Time> = world.deliveries("x").iter().map(|it| it.at).collect();
    assert!(times[0] >= ms(3) && times[0] < ms(4), "{times:?}");
    assert!(times[1] >= ms(501) && times[1] < ms(502), "{times:?}");
}

#[test]
fn jitter_keeps_the_order_of_a_path() {
    let mut world = World::new(
        "model: paths\nnodes: {a: {}, x: {}}\nrouters: [r]\nlinks:\n  \
         - {between: [a, r], latency: 10ms, jitter: 20ms}\n  - {between: [r, x], jitter: 20ms}\n",
    );
    let sender = steady(&world, "a", "x", 10, 2000);
    world.attach("a", sender);
    world.run_until(ms(5000));
    assert_eq!(world.deliveries("x").len(), 2000);
    assert!(world.deliveries("x").is_sorted_by_key(|it| it.at));
}

#[test]
fn losses_are_those_of_the_model_of_hops() {
    let text = |model: &str| {
        format!(
            "model: {model}\nseed: 9\nnodes: {{a: {{}}, x: {{}}}}\nrouters: [l, r]\nlinks:\n  \
             - {{between: [a, l], loss: 2%}}\n  - {{between: [l, r], loss: 3%, latency: 4ms, rate: 50mbit}}\n  \
             - {{between: [r, x], loss: 1%}}\n"
        )
    };
    let [hops, paths] = ["hops", "paths"].map(|model| {
        let mut world = World::new(&text(model));
        for number in 0..5000u32 {
            let frame = world.udp("a", "x", &number.to_be_bytes());
            world.at(ms(u64::from(number))).send("a", frame);
        }
        world.run_until(ms(6000));
        world.assert_conservation();
        let payload = |it: &FrameDelivery| it.frame[42..46].to_vec();
        world.deliveries("x").iter().map(payload).collect::<Vec<_>>()
    });
    assert!(hops.len() < 4800 && hops.len() > 4600, "{}", hops.len());
    assert_eq!(hops, paths);
}

#[test]
fn a_rate_that_changes_is_divided_anew() {
    let mut world = dumbbell("rate: 12mbit, latency: 5ms", "");
    for (from, to) in [("a", "x"), ("b", "y"), ("c", "z")] {
        let sender = steady(&world, from, to, 20, u64::MAX);
        world.attach(from, sender);
    }
    world.run_until(ms(3000));
    assert_near(rate(world.deliveries("x"), ms(1000), ms(3000)), 4.0, 0.005);
    let rate_of = |mbit: u64| Rate::from_bits_per_second(mbit * 1_000_000).map(PropertySetting::To);
    let patch = LinkPatch { rate: rate_of(6), ..LinkPatch::default() };
    let patches = vec![(world.lane("l-r"), patch)];
    let change = LinkChange { patches, state: Vec::new() };
    world.at(ms(3000)).apply(&EventAction::Link(change));
    world.run_until(ms(6000));
    for to in ["x", "y", "z"] {
        assert_near(rate(world.deliveries(to), ms(3500), ms(6000)), 2.0, 0.005);
    }
    world.assert_conservation();
}

#[test]
fn a_path_with_a_link_down_loses_packets_sent_then_and_no_others() {
    let mut world = dumbbell("rate: 10mbit, latency: 50ms", "");
    let sender = steady(&world, "a", "x", 5, u64::MAX);
    world.attach("a", sender);
    let turn = |world: &mut World, at: Time, up: bool| {
        let state = vec![(world.lane("l-r"), up)];
        let change = LinkChange { patches: Vec::new(), state };
        world.at(at).apply(&EventAction::Link(change));
    };
    turn(&mut world, ms(1000), false);
    turn(&mut world, ms(2000), true);
    world.run_until(ms(3000));
    let down = world.engine().lane(world.lane("l-r")).dropped[DropReason::Down];
    let second = 5_000_000 / (1538 * 8);
    assert!(down.abs_diff(second) <= 2, "{down} of {second}");
    let in_the_dark = |it: &&FrameDelivery| it.at > ms(1052) && it.at < ms(2050);
    assert_eq!(world.deliveries("x").iter().filter(in_the_dark).count(), 0);
    world.assert_conservation();
}

#[test]
fn the_same_packets_give_the_same_deliveries() {
    let run = || {
        let mut world = dumbbell("rate: 10mbit, latency: 20ms, jitter: 2ms, loss: 1%", "seed: 4\n");
        for (from, to) in [("a", "x"), ("b", "y"), ("c", "z")] {
            window(&mut world, from, to);
        }
        world.run_until(ms(8000));
        world.assert_conservation();
        ["x", "y", "z"].map(|to| world.deliveries(to).to_vec())
    };
    assert_eq!(run(), run());
}

#[test]
fn a_plan_of_hops_says_nothing_of_models() {
    let world = World::new("nodes: {a: {}, b: {}}\nlinks: [{between: [a, b]}]\n");
    let plan: &Plan = world.plan();
    assert_eq!(plan.model, windtunnel_model::plan::NetworkModel::Hops);
}
