//! Rates of deliveries, for the tests of shares.

use windtunnel_model::Time;
use windtunnel_simlab::FrameDelivery;

/// Mbit/s of the wire that came in a time.
pub(crate) fn rate(deliveries: &[FrameDelivery], from: Time, to: Time) -> f64 {
    let inside = deliveries.iter().filter(|it| it.at > from && it.at <= to);
    let bits: u64 = inside.map(|it| (it.frame.len() as u64 + 24) * 8).sum();
    bits as f64 * 1000.0 / to.since(from).as_nanos() as f64
}

/// Asserts that a figure is as asked, but for a part of it.
pub(crate) fn assert_near(seen: f64, asked: f64, part: f64) {
    assert!((seen - asked).abs() <= asked * part, "{seen}, asked {asked}");
}
