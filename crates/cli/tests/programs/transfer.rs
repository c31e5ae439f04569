//! Rates and queues under iperf3.

use serde_json::Value;

use super::support::{Lab, any_user, is_missing};

#[test]
fn tcp_gets_what_the_links_rate_leaves_for_its_payload() {
    if is_missing(&["iperf3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass_faithful(
            "nodes:
  server: {run: iperf3 -s -1, ready: tcp:5201}
  client: {run: iperf3 -c server -4 -t 4 -J, after: server}
links: [{between: [client, server], latency: 5ms, rate: 10mbit}]
",
        );
        let result: Value = serde_json::from_str(&outcome.output("client")).unwrap();
        let goodput = result["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
        // 1448 B of 1538 B on the wire are payload (TCP with timestamps): 9.415 Mbit/s.
        assert!((8.9e6..9.5e6).contains(&goodput), "{goodput}");
        let peak = outcome.link("client-server")["achieved"]["rate_peak_bit_per_s"].as_u64();
        // Sampling may count up to one interval's edge packet more than a second carries.
        assert!(peak.unwrap() <= 10_100_000, "{peak:?}");
        outcome.assert_conserved();
    }
}

#[test]
fn an_overload_is_dropped_at_the_queue_and_every_packet_is_accounted_for() {
    if is_missing(&["iperf3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes:
  server: {run: iperf3 -s -1, ready: tcp:5201}
  client: {run: iperf3 -c server -4 -u -b 20m -l 1000 -t 2 -J, after: server}
links: [{between: [client, server], latency: 5ms, rate: 5mbit, queue: 20p}]
expect: [{link: client--server, direction: client-server, rate: {min: 4.5mbit, max: 5.05mbit}}]
",
        );
        outcome.assert_conserved();
        let link = outcome.link("client-server");
        let (offered, dropped) = (&link["offered_packets"], &link["dropped_packets"]["queue_full"]);
        let (offered, dropped) = (offered.as_u64().unwrap(), dropped.as_u64().unwrap());
        // 20 Mbit/s of payload into 5 Mbit/s: three quarters have no place.
        assert!(dropped > offered / 2, "{link}");
        assert!(link["queue_max_packets"].as_u64().unwrap() <= 20, "{link}");
    }
}

#[test]
fn a_program_that_is_root_in_its_node_may_choose_cubic() {
    if is_missing(&["iperf3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes:
  server: {run: iperf3 -s -1, ready: tcp:5201, user: root}
  client: {run: iperf3 -c server -t 1 -C cubic -J, after: server, user: root}
links: [{between: [client, server], latency: 2ms, rate: 20mbit}]
",
        );
        let result: Value = serde_json::from_str(&outcome.output("client")).unwrap();
        assert_eq!(result["end"]["sender_tcp_congestion"], "cubic");
    }
}
