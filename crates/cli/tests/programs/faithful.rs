//! Causes of an unfaithful run. The rule itself is tested in virtual time; here real stalls.

use std::time::Duration;

use super::support::{Lab, is_missing, users};

/// Pings that are under way whenever the emulation is stopped, and events that are due then.
fn pings() -> String {
    let events = (4..29).map(|tenths: u32| {
        let verb = if tenths.is_multiple_of(2) { "pause" } else { "resume" };
        format!("  - {{at: {tenths}00ms, node: c, do: {verb}}}\n")
    });
    let events: String = events.collect();
    format!(
        "allow-unreachable: true
nodes: {{a: {{run: ping -i 0.01 -c 300 b}}, b: {{}}, c: {{run: sleep 60, daemon: true}}}}
links: [{{between: [a, b], name: wire, latency: 2ms}}, {{between: [b, c]}}]
events:
{events}"
    )
}

#[test]
fn a_stall_of_most_of_a_second_makes_the_run_unfaithful_and_is_reported_with_its_length() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        // Ordinary lateness of this machine is forgiven, up to 20 times as much by one packet.
        let mut live = lab.start_with(&pings(), &["--max-lateness", "40ms"]);
        live.wait_for_output("a", "icmp_seq=5 ");
        live.signal("STOP");
        // No event ends this: the length of the stop is tested.
        std::thread::sleep(Duration::from_millis(900));
        live.signal("CONT");
        let outcome = live.finish();
        outcome.assert_code(1);
        let report = outcome.report();
        assert_eq!(report["verdict"]["passed"], true, "{report}");
        let machine = &report["machine"];
        let counted = |key: &str| machine[key].as_u64().unwrap();
        let (overloaded, stalled) = (counted("overload_worst_ns"), counted("stall_worst_ns"));
        assert!(overloaded.max(stalled) > 800_000_000, "{machine}");
        assert_eq!(overloaded > 0, counted("overloads") > 0, "{machine}");
        assert_eq!(stalled > 0, counted("stalls") > 0, "{machine}");
        let doubts = report["verdict"]["unfaithful"].to_string();
        assert!(doubts.contains("wire") && doubts.contains("late"), "{doubts}");
        assert!(doubts.contains("planned events were late: "), "{doubts}");
        assert!(doubts.contains(" of c, planned for "), "{doubts}");
        assert_eq!(report["planned"]["happened"], 25, "{report}");
        assert!(report["planned"]["latest_ns"].as_u64() > Some(100_000_000), "{report}");
        assert!(outcome.stdout.lines().last().unwrap().contains("NOT FAITHFUL"));
    }
}
