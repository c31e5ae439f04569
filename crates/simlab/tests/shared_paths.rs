//! The model of paths: flows of several kinds between the same two nodes, which wait in one queue
//! at their source.

use std::net::SocketAddr;

use windtunnel_model::{Span, Time};
use windtunnel_simlab::{ConstantRateSender, World, ms};
use windtunnel_wire::build;

#[path = "common/rates.rs"]
mod rates;

use rates::{assert_near, rate};

/// UDP payload of a packet of 1500 bytes, 1538 on the wire.
const FULL: usize = 1472;
/// TCP payload of a packet of 1500 bytes, and of a small one.
const SEGMENT: usize = 1460;
const WORD: usize = 60;
const PUSH_ACK: u8 = 0x18;

/// Round trips of 20 and 60 ms over one link.
fn near_and_far(rate: &str) -> World {
    World::new(&format!(
        "model: paths\nnodes: {{near: {{}}, far: {{}}, x: {{}}, y: {{}}}}\nrouters: [a, b]\nlinks:\n  \
         - {{between: [near, a], latency: 5ms}}\n  - {{between: [far, a], latency: 25ms}}\n  \
         - {{between: [a, b], rate: {rate}, latency: 5ms}}\n  - {{between: [b, x]}}\n  - {{between: [b, y]}}\n"
    ))
}

/// More than all of the link.
fn flood(world: &mut World, from: &str, to: &str) {
    let gap = Span::from_nanos(1538 * 8 * 1000 / 15);
    let (sender, receiver) = (world.socket(from), world.socket(to));
    world.attach(
        from,
        ConstantRateSender { from: sender, to: receiver, payload: FULL, gap, left: u64::MAX },
    );
}

/// Some bytes on a connection beside that.
fn say(world: &mut World, at: Time, from: &str, to: &str, bytes: usize) {
    let socket = |node, port| SocketAddr::new(world.socket(node).ip(), port);
    let word = build::tcp(socket(from, 40_000), socket(to, 5201), 1, PUSH_ACK, &vec![0; bytes]);
    world.at(at).send(from, word);
}

/// Two bulk flows, each with a connection over which it was agreed and which is silent since then.
#[test]
fn a_silent_connection_beside_a_greedy_flow_keeps_no_share() {
    for words in 0..12 {
        let mut world = near_and_far("12mbit");
        for (from, to, start, trip) in [("near", "x", 0, 20), ("far", "y", 3000, 60)] {
            for word in 0..words {
                say(&mut world, ms(start + word * trip), from, to, WORD);
            }
            world.run_until(ms(start + words * trip));
            flood(&mut world, from, to);
        }
        world.run_until(ms(8000));
        let [x, y] = ["x", "y"].map(|to| world.deliveries(to));
        assert_near(rate(x, ms(1000), ms(3000)), 12.0, 0.005);
        // Weights of 1/20 and 1/60.
        assert_near(rate(x, ms(6000), ms(8000)), 9.0, 0.005);
        assert_near(rate(y, ms(6000), ms(8000)), 3.0, 0.005);
        world.assert_conservation();
    }
}

/// Rare small messages wait as long as the flood, and yet their demand is no more than they bring.
#[test]
fn a_connection_that_says_little_beside_a_greedy_flow_keeps_what_it_needs() {
    let mut world = near_and_far("12mbit");
    flood(&mut world, "near", "x");
    flood(&mut world, "far", "y");
    for word in 0..80 {
        say(&mut world, ms(word * 100), "near", "x", WORD);
    }
    world.run_until(ms(8000));
    let [x, y] = ["x", "y"].map(|to| rate(world.deliveries(to), ms(4000), ms(8000)));
    // The least demand, one full packet a period, to 8/7 of that; the rest as 3 to 1.
    let least = 1538.0 * 8.0 * 20.0 / 1e6;
    assert!(
        y < (12.0 - least) / 4.0 * 1.005 && y > (12.0 - least * 8.0 / 7.0) / 4.0 * 0.995,
        "{y}"
    );
    assert_near(x + y, 12.0, 0.005);
    world.assert_conservation();
}

/// The same connection begins to send all that it can: it takes part with its weight from the next
/// packets on.
#[test]
fn a_connection_beside_a_greedy_flow_has_a_share_of_its_own_when_it_wants_one() {
    let mut world = near_and_far("12mbit");
    flood(&mut world, "near", "x");
    flood(&mut world, "far", "y");
    for word in 0..40 {
        say(&mut world, ms(word * 100), "near", "x", WORD);
    }
    for number in 0..4000 {
        say(&mut world, ms(4000 + number), "near", "x", SEGMENT);
    }
    let [x, y] = ["x", "y"].map(|to| rate(world.deliveries(to), ms(4500), ms(8000)));
    // Weights of 1/20 twice, and 1/60.
    assert_near(x, 12.0 * 6.0 / 7.0, 0.005);
    assert_near(y, 12.0 / 7.0, 0.01);
    world.assert_conservation();
}
