//! What a run says of its services when it is over.

use serde_json::Value;

use super::*;

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or_else(|| panic!("{key}: {of}"))
}

#[test]
fn each_listen_and_close_is_known_to_routers_within_100_ms() {
    for lab in labs() {
        let outcome = lab.pass_faithful(
            "ipv6: false
services: {www: {ports: 80/tcp, replicas: s1}}
routers: [r]
nodes: {s1: {run: python3 -u serve.py toggle 0.0.0.0 80 8}, c: {}}
links: [{between: [s1, r]}, {between: [c, r]}]
",
        );
        let said = outcome.output("s1");
        let mut times: Vec<i64> = Vec::new();
        for (line, event) in [("listens", "service-registered"), ("closes", "service-withdrawn")] {
            let program = said.lines().filter_map(|it| it.strip_prefix(line)?.trim().parse().ok());
            let program: Vec<u64> = program.collect();
            let events = outcome.events(&[("event", event)]);
            assert_eq!((program.len(), events.len()), (8, 8), "{line}: {events:?}");
            for (program, event) in program.iter().zip(&events) {
                assert!(number(event, "seen_ns") <= number(event, "at_ns"), "{event}");
                let at = i64::try_from(number(event, "at_ns")).unwrap();
                times.push(i64::try_from(*program).unwrap() - at);
            }
        }
        // The clocks have an unknown offset, and no change is known before it is made: what is above
        // the least delay is at most the longest.
        let spread = times.iter().max().unwrap() - times.iter().min().unwrap();
        assert!(spread < 100_000_000, "{spread} ns");
        let report = outcome.report();
        let watched = &report["replicas_watched"];
        let s1 = &report["services"][0]["replicas"][0];
        assert_eq!((number(s1, "registrations"), number(s1, "withdrawals")), (8, 8));
        let longest = number(s1, "registering_max_ns").max(number(s1, "withdrawing_max_ns"));
        assert!(number(watched, "interval_max_ns") + longest < 100_000_000, "{report}");
        assert_eq!(number(watched, "overruns"), 0);
    }
}

#[test]
fn the_report_has_what_each_replica_got_and_the_summary_a_line() {
    for lab in labs() {
        let mut live = lab.start(&file("ports: 80/tcp", "tcp 0.0.0.0 80", "each www 80"));
        wait_for_replicas(&mut live);
        wait_for_line(&live, 0, "new s1");
        let outcome = stop(live);
        let report = outcome.report();
        let www = &report["services"][0];
        assert_eq!((&www["service"], &www["policy"]), (&"www".into(), &"nearest".into()));
        let [s1, s2, s3] = [0, 1, 2].map(|at| &www["replicas"][at]);
        let served = outcome.output("c").lines().filter(|line| line.starts_with("new s1")).count();
        assert!(number(s1, "connections") >= u64::try_from(served).unwrap(), "{www}");
        assert_eq!((number(s2, "connections"), number(s3, "connections")), (0, 0), "{www}");
        // Programs that end with the run do not change the service.
        for replica in [s1, s2, s3] {
            assert_eq!((number(replica, "registrations"), number(replica, "withdrawals")), (1, 0));
        }
        let redirected: u64 = report["routers"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|router| router["packets"]["redirected"].as_u64())
            .sum();
        // Both to the end of the run: programs that are being stopped go on for a moment.
        assert_eq!(number(s1, "packets"), redirected, "{www}");
        let mut printed = outcome.stdout.lines().chain(outcome.stderr.lines());
        let line = printed.rfind(|line| line.starts_with("www "));
        assert!(line.is_some_and(|line| line.contains("s1 ")), "{}", outcome.describe());
    }
}
