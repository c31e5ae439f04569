//! Links that follow a trace, under real programs.

use serde_json::Value;

use super::support::{Lab, any_user, is_missing};

#[test]
fn a_transfer_gets_what_its_trace_carries_until_a_rate_replaces_it() {
    if is_missing(&["iperf3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        // Two opportunities every 3 ms: 8 Mbit/s.
        let lines: String = (1..=500).map(|n| format!("{0}\n{0}\n", n * 3)).collect();
        lab.write("radio.trace", lines);
        let outcome = lab.pass(
            "nodes:
  server: {run: iperf3 -s -1, ready: tcp:5201}
  client: {run: iperf3 -c server -4 -t 6 -i 1 -J, after: server}
links: [{between: [client, server], name: radio, latency: 5ms, rate: {trace: radio.trace}}]
events: [{at: 4s, link: radio, set: {rate: 2mbit}}]
",
        );
        let result: Value = serde_json::from_str(&outcome.output("client")).unwrap();
        let rates = result["intervals"].as_array().unwrap().iter();
        let rates: Vec<f64> =
            rates.map(|second| second["sum"]["bits_per_second"].as_f64().unwrap()).collect();
        // 1448 B of an opportunity of 1500 B are payload: 7.72 Mbit/s; then 1.88 Mbit/s.
        assert!((6.0e6..9.5e6).contains(&rates[2]), "{rates:?}");
        let link = outcome.link("client-server");
        let peak = link["achieved"]["rate_peak_bit_per_s"].as_u64().unwrap();
        assert!((7_900_000..8_150_000).contains(&peak), "{link}");
        assert_eq!(link["asked"]["traces"]["rate"]["mode"], "opportunities");
        let events = outcome.file("events.jsonl");
        assert!(events.contains("\"follows-no-more-its-trace-of\":\"rate\""), "{events}");
        outcome.assert_conserved();
    }
}
