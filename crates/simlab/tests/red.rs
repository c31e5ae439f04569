//! RED under senders that answer to it.

use windtunnel_model::Span;
use windtunnel_simlab::{RenoReceiver, RenoSender, World, ms};

#[path = "common/rates.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod rates;

use rates::rate;

/// A Reno stream over 10 Mbit/s with a round trip of 20 ms.
fn stream(red: &str, ecn: bool) -> World {
    let mut world = World::new(&format!(
        "nodes: {{a: {{}}, b: {{}}}}\nlinks:\n  - {{between: [a, b], latency: 10ms, rate: 10mbit, discipline: {red}}}\n"
    ));
    let sender =
        RenoSender::new(world.socket("a"), world.socket("b"), 1472, Span::from_millis(1000));
    world.attach("b", RenoReceiver::default());
    world.attach("a", if ecn { sender.with_ecn() } else { sender });
    world
}

/// Its slow start, with hundreds of losses that take it a round trip each, brings the average above
/// `max`, where packets that are sent again, which are not capable, are dropped: with an average
/// that fell only by arrivals it would never come back.
#[test]
fn red_lets_a_stream_recover_from_its_slow_start_and_keep_its_rate() {
    for red in ["red", "{red: {adaptive: true}}"] {
        for ecn in [false, true] {
            let mut world = stream(red, ecn);
            world.run_until(ms(40_000));
            for second in 15..40 {
                let rate = rate(world.deliveries("b"), ms(second * 1000), ms(second * 1000 + 1000));
                // The sawtooth of one Reno stream keeps at least three quarters of a link busy.
                assert!(rate > 7.5, "{red}, ecn {ecn}: {rate} Mbit/s in second {second}");
            }
            world.assert_conservation();
        }
    }
}
