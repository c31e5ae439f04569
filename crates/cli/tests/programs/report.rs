//! Reports of real runs.

use std::fs;

use serde_json::Value;

use super::support::{Lab, is_missing, users};

const SCENARIO: &str = "record: [engine, calls, tcp]\n\
    nodes:\n\
    \x20 server: {run: iperf3 -s -1, daemon: true, ready: tcp:5201}\n\
    \x20 client: {run: iperf3 -c server -t 1, after: server}\n\
    links: [{between: [client, server], name: wire, latency: 5ms, rate: 20mbit, queue: 20p}]\n";

/// The document of runs, as `report --json` prints it.
fn document(lab: &Lab, runs: &[&str]) -> Value {
    let output = lab.windtunnel(&[&["report", "--json"], runs].concat()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_report_shows_what_a_bulk_transfer_did_to_the_queue_and_each_drop_has_its_reason() {
    if is_missing(&["iperf3"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.run_with(SCENARIO, &["--report"]);
        let html = fs::read_to_string(outcome.folder.join("report.html")).unwrap();
        assert!(
            html.starts_with("<!doctype html>")
                && html.contains("data-encoding=\"deflate-base64\"")
        );
        let folder = outcome.folder.to_str().unwrap().to_owned();
        let run = document(&lab, &[&folder])["runs"][0].clone();
        let report = outcome.report();
        assert_eq!(run["summary"], report);
        let sum = |values: &Value| {
            let values = values.as_array().into_iter().flatten();
            values.filter_map(Value::as_u64).sum::<u64>()
        };
        for (lane, link) in report["links"].as_array().unwrap().iter().enumerate() {
            let series = &run["series"]["lanes"][lane];
            assert_eq!(sum(&series["delivered_bytes"]), link["delivered_bytes"].as_u64().unwrap());
            let dropped = series["dropped"].as_object();
            let dropped: serde_json::Map<String, Value> = dropped
                .into_iter()
                .flatten()
                .map(|(reason, packets)| (reason.clone(), sum(packets).into()))
                .collect();
            assert_eq!(Value::Object(dropped), link["dropped_packets"], "{link:#}");
        }
        let packets = report["lateness"]["packets"].as_u64().unwrap();
        assert_eq!(run["lateness"][0]["count"].as_u64(), Some(packets));
        let bulk = &run["flows"][0];
        assert!(bulk["rtt_ns"]["p50"].as_u64().unwrap() >= 10_000_000, "{bulk:#}");
        assert!(run["rtt"].as_array().is_some_and(|all| !all.is_empty()));
        assert!(run["requests"].is_object() && run["modulation"].is_array());
    }
}

#[test]
fn repetitions_differ_in_their_seeds_and_are_compared() {
    for user in users() {
        let lab = Lab::new(user);
        for (name, latency) in [("near", "2ms"), ("far", "20ms")] {
            let net = format!(
                "seed: 7\nnodes: {{a: {{run: ping -c 3 -i 0.05 b}}, b: {{}}}}\n\
                 links: [{{between: [a, b], name: wire, latency: {latency}}}]\n\
                 expect: [{{path: [a, b], rtt: {{max: 1s}}}}]\n"
            );
            lab.write(&format!("{name}.yaml"), &net);
            let file = format!("{name}.yaml");
            let words = ["run", &file, "--repeat", "2", "--out", name, "--quiet"];
            let output = lab.windtunnel(&words).output().unwrap();
            assert!(output.status.code().is_some_and(|code| code < 2), "{output:?}");
        }
        let seeds: Vec<u64> = (1..=2)
            .map(|n| {
                let report = fs::read_to_string(lab.path().join(format!("near/{n}/run.json")));
                serde_json::from_str::<Value>(&report.unwrap()).unwrap()["seed"].as_u64().unwrap()
            })
            .collect();
        assert_eq!(seeds, [7, 8]);
        let comparison = document(&lab, &["near", "far"])["comparison"].clone();
        let measures = comparison["measures"].as_array().unwrap();
        let rtt = measures.iter().find(|it| it["what"] == "rtt p50").unwrap();
        let difference = &rtt["difference"][0];
        let mean = difference["mean"].as_f64().unwrap();
        // Twice 18 ms more, of values to three digits.
        assert!((35.5e6..60e6).contains(&mean), "{rtt:#}");
        // Of two runs that came to the same there is no spread.
        assert!(difference["low"].as_f64().unwrap() <= mean, "{rtt:#}");
        assert!(difference["high"].as_f64().unwrap() >= mean, "{rtt:#}");
    }
}
