//! The examples: what they say of themselves is what happens.

use std::fs;
use std::path::Path;

use super::*;

/// Runs an example to its end.
#[track_caller]
fn example(lab: &Lab, name: &str) -> Outcome {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    lab.write(name, fs::read(examples.join(name)).unwrap());
    let outcome = lab.start_file(name, &[]).finish();
    outcome.assert_code(0);
    outcome
}

#[test]
fn anycast_is_served_by_the_nearest_which_dies_and_comes_back() {
    if is_missing(&["nginx", "curl"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = example(&lab, "anycast.yaml");
        let served = |client: &str| -> Vec<String> {
            let text = outcome.output(client);
            let by = text.lines().filter_map(|line| line.split([' ', ',']).nth(2));
            by.map(str::to_owned).filter(|by| by.starts_with("web-")).collect()
        };
        assert_eq!(served("client-paris"), ["web-paris", "web-york", "web-paris"]);
        assert_eq!(served("client-york"), ["web-york"]);
        assert_eq!(served("client-tokyo"), ["web-tokyo"]);
    }
}

#[test]
fn all_five_systems_in_one_run_a_flooded_small_replica_serves_when_the_nearest_dies() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("kv.py", include_str!("../../../../../examples/kv.py"));
        let outcome = example(&lab, "five.yaml");
        for client in ["client-1", "client-2"] {
            let seen = outcome.output(client);
            assert!(seen.contains("moved from kv-1 to kv-2: "), "{seen}");
            assert!(!seen.contains("kv-3: "), "the third is never the nearest: {seen}");
        }
        let report = outcome.report();
        let replicas = &report["services"][0]["replicas"];
        assert_eq!(replicas[0]["state"], "lost", "{report}");
        let folder = outcome.path("");
        let explained =
            ["explain", folder.to_str().unwrap(), "--client", "client-1", "-n", "1", "--json"];
        let explained = lab.windtunnel(&explained).output().unwrap();
        assert!(explained.status.success(), "{explained:?}");
        let explained: serde_json::Value = serde_json::from_slice(&explained.stdout).unwrap();
        let slowest = &explained["requests"][0];
        let client = slowest["client"].as_str().unwrap();
        assert!(client.starts_with("client-1:"), "{slowest}");
        let parts = slowest["parts"].as_array().unwrap();
        let crosses = |part: &serde_json::Value| part["lane"]["link"] == "transit";
        assert!(parts.iter().any(crosses), "the slowest read crossed the transit: {slowest}");
        let sum: u64 = parts.iter().map(|part| part["ns"].as_u64().unwrap()).sum();
        assert_eq!(sum, slowest["duration_ns"], "{slowest}");
        outcome.assert_conserved();
    }
}

#[test]
fn a_crowd_is_served_by_the_edge_that_got_the_content_before_it_came() {
    if is_missing(&["python3", "curl"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = example(&lab, "cdn.yaml");
        assert!(outcome.output("early").ends_with("from origin\n"), "{}", outcome.output("early"));
        // On a machine so slow that the edges were not ready, the crowd is served by the origin.
        let registered =
            outcome.events(&[("event", "service-registered"), ("replica", "edge-tokyo")]);
        let at_ns = registered.first().and_then(|event| event["at_ns"].as_u64());
        let began = |node: &str| {
            let event = outcome.event(&[("event", "program-started"), ("node", node)]);
            event["at_ns"].as_u64().unwrap()
        };
        for visitor in (1..=20).map(|number| format!("crowd-{number}")) {
            let output = outcome.output(&visitor);
            assert!(output.starts_with("200000 bytes in "), "{visitor}: {output}");
            let is_served = at_ns.is_some_and(|at_ns| began(&visitor) > at_ns);
            let by = if is_served { "edge-tokyo\n" } else { "\n" };
            assert!(output.ends_with(by), "{visitor}: {output}");
        }
    }
}

#[test]
fn maglevs_table_keeps_downloads_that_change_between_load_balancers_and_turns_break_them() {
    if is_missing(&["nginx", "curl"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = example(&lab, "maglev.yaml");
        let whole = |client: &str| -> u64 {
            let output = outcome.output(client);
            output.split(' ').next().unwrap().parse().unwrap()
        };
        let report = outcome.report();
        let [turns, maglev] = [0, 1].map(|service| &report["services"][service]);
        assert_eq!(whole("to-maglev"), 12, "{report}");
        assert_eq!(maglev["moved_flows"], 0, "{report}");
        assert!(maglev["picked_up"].as_u64() > Some(0), "some came to the other one: {report}");
        // Each that got another server, and no other one, was reset by it.
        let moved = turns["moved_flows"].as_u64().unwrap();
        assert!(moved > 0, "{report}");
        assert_eq!(whole("to-turns"), 12 - moved, "{report}");
    }
}
