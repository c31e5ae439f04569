//! Nodes that come and go, links that flap, and cuts of one way.

use serde_json::Value;

use super::support::{Lab, Outcome, any_user, is_missing, users};

/// The nodes that are there after each event, by the log, starting from `there`.
fn populations(outcome: &Outcome, mut there: usize) -> Vec<(u64, usize)> {
    let events = outcome.events(&[("event", "node")]);
    let mut seen = Vec::new();
    for event in &events {
        match event["verb"].as_str().unwrap() {
            "join" => there += 1,
            "leave" => there -= 1,
            other => panic!("{other}"),
        }
        seen.push((event["intended_ns"].as_u64().unwrap() / 1_000_000, there));
    }
    seen
}

#[test]
fn the_population_follows_a_script_and_no_node_starts_before_joining() {
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes:
  peer: {count: 6, run: [sh, -c, 'echo began; exec sleep 1000']}
events:
  - churn:
      nodes: peer
      script: |
        at 300ms join 3
        from 600ms to 1s join 1
        at 1500ms leave 50%
        at 2s join 1
        at 2500ms stop
expect: [{node: peer, exit: 0}]
",
        );
        let expected = [
            (300, 1),
            (300, 2),
            (300, 3),
            (1000, 4),
            (1500, 3),
            (1500, 2),
            (2000, 3),
            (2500, 2),
            (2500, 1),
            (2500, 0),
        ];
        assert_eq!(populations(&outcome, 0), expected);
        let mut starts = 0;
        for node in (1..=6).map(|number| format!("peer-{number}")) {
            let joins = outcome.events(&[("event", "node"), ("node", &node), ("verb", "join")]);
            let began = outcome.events(&[("event", "program-started"), ("node", &node)]);
            assert_eq!(joins.len(), began.len(), "{node}");
            for (join, start) in joins.iter().zip(&began) {
                assert!(start["at_ns"].as_u64() >= join["at_ns"].as_u64(), "{start}");
            }
            assert_eq!(outcome.output(&node).lines().count(), began.len(), "{node}");
            starts += began.len();
        }
        assert_eq!(starts, 5);
        assert_eq!(outcome.events(&[("event", "absent")])[0]["nodes"].as_array().unwrap().len(), 6);
        lab.assert_nothing_left();
    }
}

#[test]
fn two_runs_with_one_seed_have_the_same_churn_and_another_seed_has_another() {
    let lab = Lab::new(users()[0]);
    let scenario = "duration: 2500ms
nodes: {peer: {count: 8, daemon: true, run: sleep 1000}}
events:
  - churn: {nodes: peer, rate: 50%, every: 1s, for: 2s, away: 300ms}
";
    let moves = |options: &[&str]| {
        let outcome = lab.run_with(scenario, options);
        outcome.assert_code(0);
        let events = outcome.events(&[("event", "node")]);
        let words =
            |event: &Value| format!("{} {} {}", event["intended_ns"], event["node"], event["verb"]);
        events.iter().map(words).collect::<Vec<_>>()
    };
    let (one, two, other) = (moves(&[]), moves(&[]), moves(&["--seed", "2"]));
    assert_eq!(one.len(), 16, "8 leave, 8 come back: {one:?}");
    assert_eq!(one, two);
    assert_ne!(one, other);
}

#[test]
fn a_store_that_leaves_and_joins_serves_again() {
    if is_missing(&["redis-server", "redis-cli"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes:
  store: {run: redis-server --port 6379 --bind 0.0.0.0 --protected-mode no --save '', daemon: true, ready: tcp:6379}
  client:
    after: store
    run:
      - sh
      - -c
      - |
        redis-cli -h store set k before
        until ! redis-cli -h store get k >/dev/null 2>&1; do sleep 0.05; done
        echo gone
        until redis-cli -h store set k after >/dev/null 2>&1; do sleep 0.05; done
        redis-cli -h store get k
links: [{between: [client, store], latency: 1ms}]
events:
  - {at: 1500ms, churn: {nodes: store, rate: 100%, every: 200ms, away: 600ms, times: 1}}
expect: [{node: client, exit: 0}]
",
        );
        let output = outcome.output("client");
        assert!(output.contains("gone\n") && output.ends_with("after\n"), "{output}");
        assert_eq!(outcome.program("store")["starts"], 2);
        lab.assert_nothing_left();
    }
}

#[test]
fn a_cut_of_one_way_lets_datagrams_through_the_other_way_only() {
    if is_missing(&["python3"]) {
        return;
    }
    const TALK: &str = "import os, socket, sys, time
me, other = os.environ['WINDTUNNEL_NODE'], sys.argv[1]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', 9000)); s.settimeout(0.02)
begin = time.time()
while time.time() < begin + 2:
    s.sendto(me.encode(), (other, 9000))
    try: print('from', s.recv(100).decode(), flush=True)
    except socket.timeout: pass
    time.sleep(0.02)
";
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("talk.py", TALK);
        let outcome = lab.pass(
            "nodes: {a: {run: python3 talk.py b}, b: {run: python3 talk.py a}}
routers: [r]
links: [{between: [a, r]}, {between: [b, r]}]
events: [{at: 0s, partition: {from: a, to: r}}]
",
        );
        assert!(outcome.output("a").lines().count() > 5, "{}", outcome.describe());
        assert_eq!(outcome.output("b"), "");
        assert!(outcome.link("a-r")["dropped_packets"]["partition"].as_u64().unwrap() > 5);
        assert_eq!(outcome.link("r-a")["dropped_packets"]["partition"].as_u64().unwrap_or(0), 0);
    }
}

#[test]
fn a_flap_loses_the_pings_of_its_dark_phases_and_no_others() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes: {a: {run: ping -c 80 -i 0.05 -W 1 b}, b: {}}
links: [{between: [a, b], name: wire, latency: 1ms}]
events: [{at: 500ms, flap: {link: wire, every: 1s, down: 300ms, times: 3}}]
expect: [{node: a, exit: 0}]
",
        );
        for (up, times) in [("false", [500, 1500, 2500]), ("true", [800, 1800, 2800])] {
            let events =
                outcome.events(&[("event", "link-flap"), ("direction", "a-b"), ("up", up)]);
            let seen: Vec<u64> =
                events.iter().map(|e| e["intended_ns"].as_u64().unwrap() / 1_000_000).collect();
            assert_eq!(seen, times);
            assert!(events.iter().all(|e| e["at_ns"].as_u64() >= e["intended_ns"].as_u64()));
        }
        let dropped = |direction: &str| {
            outcome.link(direction)["dropped_packets"]["down"].as_u64().unwrap_or(0)
        };
        // About 6 pings fall into each of the three windows.
        let lost = dropped("a-b") + dropped("b-a");
        assert!((3..=36).contains(&lost), "{lost}");
        let received = u64::try_from(outcome.output("a").matches("time=").count()).unwrap();
        assert_eq!(received, 80 - lost, "{}", outcome.output("a"));
    }
}

#[test]
fn do_takes_the_words_of_the_file_and_answers_with_times() {
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start(
            "nodes: {peer: {count: 4, daemon: true, run: sleep 1000}, box: {}}
routers: [r]
links: [{between: [peer, r], name: access}, {between: [box, r], name: near}]
",
        );
        live.wait_for(&[("event", "program-started"), ("node", "peer-4")]);
        let seen = live.ask("do", &["{link: access, direction: up, down: true}", "--json"]);
        let answer: Value = serde_json::from_slice(&seen.stdout).unwrap();
        let events = answer["events"].as_array().unwrap();
        assert_eq!((events.len(), &answer["later"]), (4, &0.into()), "{answer}");
        for event in events {
            assert_eq!((&event["event"], &event["up"]), (&"link-state".into(), &false.into()));
            assert!(event["at_ns"].as_u64() >= event["intended_ns"].as_u64(), "{event}");
        }
        let seen = live.ask("do", &["{node: peer, do: pause, some: 50%}", "--json"]);
        let answer: Value = serde_json::from_slice(&seen.stdout).unwrap();
        assert_eq!(answer["events"].as_array().unwrap().len(), 2, "{answer}");
        let seen = live.ask("do", &["partition: [[box], [r]]"]);
        assert!(seen.status.success(), "{seen:?}");
        assert!(String::from_utf8_lossy(&seen.stderr).contains("partition: box | r"), "{seen:?}");
        let flap = "{flap: {link: near, every: 200ms, down: 100ms, times: 2}}";
        let seen = live.ask("do", &[flap]);
        assert!(String::from_utf8_lossy(&seen.stderr).contains("3 more events"), "{seen:?}");
        let seen = live.ask("do", &["{churn: {nodes: peer, script: at 0s leave 3}}"]);
        assert!(seen.status.success(), "{seen:?}");
        let seen = live.ask("ps", &["--json"]);
        let status: Value = serde_json::from_slice(&seen.stdout).unwrap();
        let absent = status["nodes"].as_array().unwrap().iter().filter(|n| n["absent"] == true);
        assert_eq!(absent.count(), 3, "{status}");
        let seen = live.ask("do", &["{churn: {nodes: peer, script: at 0s join 3}}"]);
        assert!(seen.status.success(), "{seen:?}");
        let seen = live.ask("do", &["{link: naer, down: true}"]);
        let stderr = String::from_utf8_lossy(&seen.stderr).into_owned();
        assert_eq!(seen.status.code(), Some(2), "{seen:?}");
        assert!(
            stderr.contains("event:1:8") && stderr.contains("did you mean `near`?"),
            "{stderr}"
        );
        let fields = [("event", "link-flap"), ("direction", "box-r"), ("up", "true")];
        super::support::until("the second mend", || {
            let log = std::fs::read_to_string(live.folder().join("events.jsonl")).unwrap();
            (log.matches("\"link-flap\"").count() == 8).then_some(())
        });
        assert!(live.ask("stop", &[]).status.success());
        let outcome = live.finish();
        outcome.assert_code(0);
        assert_eq!(outcome.events(&fields).len(), 2);
        assert_eq!(outcome.events(&[("event", "node"), ("verb", "join")]).len(), 3);
        lab.assert_nothing_left();
    }
}
