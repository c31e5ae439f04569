//! `windtunnel service` on a live run.

use serde_json::Value;

use super::*;

fn json(live: &Live<'_>, words: &[&str]) -> Value {
    let seen = live.ask_service(words);
    good(&seen);
    serde_json::from_slice(&seen.stdout).unwrap()
}

#[test]
fn replicas_are_listed_drained_removed_and_added() {
    for lab in labs() {
        let mut live = lab.start(&file("ports: 80/tcp", "tcp 0.0.0.0 80", "each www 80"));
        wait_for_replicas(&mut live);
        let known = wait_for_line(&live, 0, "new s1");
        good(&live.ask_service(&["drain", "www", "s1"]));
        let known = wait_for_line(&live, known, "new s2");
        good(&live.ask_service(&["drain", "www", "s1", "--undo"]));
        let known = wait_for_line(&live, known, "new s1");
        good(&live.ask_service(&["remove", "www", "s1"]));
        let known = wait_for_line(&live, known, "new s2");
        let list = json(&live, &["list", "--json"]);
        let states: Vec<&str> = list["services"][0]["replicas"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["state"].as_str().unwrap())
            .collect();
        assert_eq!(states, ["removed", "registered", "registered"]);
        good(&live.ask_service(&["add", "www", "s1"]));
        wait_for_line(&live, known, "new s1");
        let people = String::from_utf8(live.ask_service(&["list"]).stdout).unwrap();
        assert!(people.contains("www") && people.contains("registered"), "{people}");
        let shown = json(&live, &["show", "www", "--json"]);
        let table = shown["services"][0]["table"].as_array().unwrap();
        let of =
            |router: &str| &table.iter().find(|row| row["router"] == router).unwrap()["replica"];
        assert_eq!(
            (of("paris"), of("york"), of("tokyo")),
            (&"s1".into(), &"s2".into(), &"s3".into())
        );
        let seen = live.ask_service(&["drain", "www", "s9"]);
        assert_eq!(seen.status.code(), Some(2), "{seen:?}");
        let seen = live.ask_service(&["weight", "www", "s1", "3"]);
        assert_eq!(seen.status.code(), Some(2), "the policy is nearest: {seen:?}");
        stop(live).assert_code(0);
    }
}

#[test]
fn a_node_that_becomes_a_replica_gets_connections_when_its_program_listens() {
    for lab in labs() {
        let text =
            file("ports: [80/tcp, 53/udp], address: 10.1.0.80", "tcp 0.0.0.0 80", "each www 80");
        let text = text.replace("[s1, s2, s3]", "[s2, s3]");
        let mut live = lab.start(&text);
        wait_for(&mut live, &["s2", "s3"]);
        let known = wait_for_line(&live, 0, "new s2");
        good(&live.ask_service(&["add", "www", "s1"]));
        // Its server has listened all the time.
        live.wait_for(&[("event", "service-registered"), ("replica", "s1")]);
        wait_for_line(&live, known, "new s1 at 10.1.0.80 ");
        let outcome = stop(live);
        outcome.assert_code(0);
        let replicas = &outcome.report()["services"][0]["replicas"];
        assert_eq!(replicas[2]["replica"], "s1");
        assert!(replicas[2]["connections"].as_u64().unwrap() > 0);
    }
}

#[test]
fn weights_divide_new_connections_and_change_while_it_runs() {
    for lab in labs() {
        let policy = "ports: 80/tcp, policy: {weighted: {s1: 1, s2: 0, s3: 0}}";
        let mut live = lab.start(&file(policy, "tcp 0.0.0.0 80", "each www 80"));
        wait_for_replicas(&mut live);
        let known = wait_for_line(&live, 0, "new s1");
        good(&live.ask_service(&["weight", "www", "s2", "1"]));
        let known = wait_for_line(&live, known, "new s2");
        good(&live.ask_service(&["weight", "www", "s1", "0"]));
        // Those of s1 that had begun are answered at most once more.
        let known = wait_for_line(&live, known + 2, "new s2");
        let known = wait_for_line(&live, known, "new s2");
        wait_for_line(&live, known, "new s2");
        let lines = lines(&live);
        assert!(lines[known..].iter().all(|line| line.starts_with("new s2")), "{lines:?}");
        stop(live).assert_code(0);
    }
}

#[test]
fn ps_and_top_show_services() {
    for lab in labs() {
        let mut live = lab.start(&file("ports: 80/tcp", "tcp 0.0.0.0 80", "each www 80"));
        wait_for_replicas(&mut live);
        wait_for_line(&live, 0, "new s1");
        for (verb, words) in [("ps", &[][..]), ("top", &["--once"])] {
            let text = String::from_utf8(live.ask(verb, words).stdout).unwrap();
            assert!(text.contains("www") && text.contains("registered"), "{verb}: {text}");
        }
        let seen = live.ask("ps", &["--json"]);
        let status: Value = serde_json::from_slice(&seen.stdout).unwrap();
        assert_eq!(status["services"][0]["replicas"][0]["state"], "registered");
        stop(live).assert_code(0);
    }
}
