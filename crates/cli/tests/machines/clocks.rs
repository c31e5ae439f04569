//! The clocks of machines, which were started at different times.

use serde_json::Value;

use super::support::{Machines, address, clock_ahead_s};

/// Bounds widen by 250 ppm from one exchange to the next; on a busy machine that takes a while.
const AGED_10_S_NS: i64 = 2_500_000;

#[test]
fn agents_measure_each_others_clocks_to_the_error_that_they_state() {
    let Some(machines) = Machines::new(3) else { return };
    for (clock, truth_ns) in clocks(&machines, 3) {
        let (error_ns, rtt_ns) = (number(&clock, "error_ns"), number(&clock, "rtt_ns"));
        assert!((number(&clock, "offset_ns") - truth_ns).abs() <= error_ns, "{clock}, {truth_ns}");
        assert!(error_ns <= rtt_ns / 2 + AGED_10_S_NS, "{clock}");
    }
}

/// The machines of this test have one clock of the day, so that it is true what their operator states.
#[test]
fn what_an_operator_states_of_the_clocks_of_the_day_bounds_the_error_and_is_named() {
    let stated = ["--clock-offsets", "1us"];
    let Some(mut machines) = Machines::with(&[&stated[..]; 2]) else { return };
    for (clock, truth_ns) in clocks(&machines, 2) {
        let error_ns = number(&clock, "error_ns");
        assert_eq!(clock["by"], "stated", "{clock}");
        assert!((number(&clock, "offset_ns") - truth_ns).abs() <= error_ns, "{clock}, {truth_ns}");
        assert!(error_ns < number(&clock, "rtt_ns") / 2, "{clock}");
    }
    let outcome = machines.pass(
        "nodes: {a: {run: ping -c 3 -i 0.1 b, pin: one}, b: {pin: two}}\n\
         links: [{between: [a, b], latency: 20ms}]\nmodel: paths\n",
    );
    let report = outcome.report();
    let text = report["hosts"].to_string();
    assert_eq!(text.matches("\"by\":\"stated\"").count(), 2, "{text}");
}

/// What each of so many agents knows of the clock of each other one, and by how many nanoseconds that is
/// ahead.
fn clocks(machines: &Machines, count: usize) -> Vec<(Value, i64)> {
    let output = machines.ask(0, &["hosts", &address(0), "--key", "../key", "--json"]);
    let hosts: Value = serde_json::from_slice(&output.stdout).unwrap();
    let hosts = hosts["hosts"].as_array().unwrap();
    let of = |at| hosts.iter().find(|host| host["address"] == address(at)).unwrap();
    let pairs = (0..count).flat_map(|own| (0..count).map(move |other| (own, other)));
    let known = pairs.filter(|(own, other)| own != other).map(|(own, other)| {
        let mut peers = of(own)["peers"].as_array().unwrap().iter();
        let peer = peers.find(|one| one["agent"] == of(other)["agent"]).unwrap();
        let ahead_s = i64::from(clock_ahead_s(other)) - i64::from(clock_ahead_s(own));
        (peer["clock"].clone(), ahead_s * 1_000_000_000)
    });
    known.collect()
}

fn number(clock: &Value, field: &str) -> i64 {
    clock[field].as_i64().unwrap()
}
