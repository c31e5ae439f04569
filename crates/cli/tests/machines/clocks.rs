//! The clocks of machines, which were started at different times.

use serde_json::Value;

use super::support::{Machines, address, clock_ahead_s};

/// Bounds widen by 250 ppm from one exchange to the next; on a busy machine that takes a while.
const AGED_10_S_NS: i64 = 2_500_000;

#[test]
fn agents_measure_each_others_clocks_to_the_error_that_they_state() {
    let Some(machines) = Machines::new(3) else { return };
    let output = machines.ask(0, &["hosts", &address(0), "--key", "../key", "--json"]);
    let hosts: Value = serde_json::from_slice(&output.stdout).unwrap();
    let hosts = hosts["hosts"].as_array().unwrap();
    let by_address: Vec<_> = (0..3)
        .map(|at| hosts.iter().find(|host| host["address"] == address(at)).unwrap())
        .collect();
    for (own, host) in by_address.iter().enumerate() {
        for (other, peer) in by_address.iter().enumerate().filter(|(other, _)| *other != own) {
            let peers = host["peers"].as_array().unwrap();
            let peer = peers.iter().find(|one| one["agent"] == peer["agent"]).unwrap();
            let clock = |field: &str| peer["clock"][field].as_i64().unwrap();
            let ahead_ns =
                (i64::from(clock_ahead_s(other)) - i64::from(clock_ahead_s(own))) * 1_000_000_000;
            let error_ns = (clock("offset_ns") - ahead_ns).abs();
            assert!(error_ns <= clock("error_ns"), "{own} of {other}: {peer}, truly {ahead_ns}");
            assert!(clock("error_ns") <= clock("rtt_ns") / 2 + AGED_10_S_NS, "{peer}");
        }
    }
}
