//! Which replica a new connection gets, by each policy; nearest and weighted are tested beside what changes.

use super::*;

fn started<'a>(lab: &'a Lab, text: &str) -> Live<'a> {
    let mut live = lab.start(text);
    wait_for_replicas(&mut live);
    live
}

#[test]
fn ordered_takes_the_first_that_is_registered_however_far_it_is() {
    for lab in labs() {
        let text = file("ports: 80/tcp, policy: ordered", "tcp 0.0.0.0 80", "each www 80");
        let live = started(&lab, &text.replace("[s1, s2, s3]", "[s3, s1, s2]"));
        let known = wait_for_line(&live, 0, "new s3");
        happen(&live, "{node: s3, do: stop}");
        let known = wait_for_line(&live, known, "new s1");
        happen(&live, "{node: s3, do: restart}");
        wait_for_line(&live, known, "new s3");
        stop(live).assert_code(0);
    }
}

#[test]
fn hops_takes_the_fewest_links_whatever_their_latency() {
    for lab in labs() {
        let text = file("ports: 80/tcp, policy: hops", "tcp 0.0.0.0 80", "each www 80");
        let text = text.replace("between: [s1, paris],", "between: [s1, paris], name: edge,");
        let live = started(&lab, &text);
        let known = wait_for_line(&live, 0, "new s1");
        good(&live.ask("set", &["edge", "latency=50ms"]));
        let known = wait_for_line(&live, known + 2, "new s1");
        good(&live.ask("down", &["edge"]));
        wait_for_line(&live, known, "new s2");
        let outcome = stop(live);
        let served = outcome.output("c");
        // s2 is nearer by latency than s1 was at the end.
        assert!(!served.contains("new s3"), "{served}");
    }
}

#[test]
fn hash_gives_a_client_the_same_replica_again_and_another_one_only_while_that_is_away() {
    for lab in labs() {
        let text = file("ports: 80/tcp, policy: hash", "tcp 0.0.0.0 80", "each www 80");
        let live = started(&lab, &text);
        let known = wait_for_line(&live, 0, "new s");
        wait_for_line(&live, known + 10, "new s");
        let served: std::collections::BTreeSet<_> =
            lines(&live).iter().map(|line| line[..6].to_owned()).collect();
        let mine = served.first().unwrap().strip_prefix("new ").unwrap().to_owned();
        assert_eq!(served.len(), 1, "{served:?}");
        let others = ["s1", "s2", "s3"].into_iter().filter(|it| *it != mine);
        let known = lines(&live).len();
        good(&live.ask_service(&["drain", "www", &mine]));
        until("another one serves", || {
            let lines = lines(&live);
            let is_there =
                |it: &str| lines[known..].iter().any(|line| line.starts_with(&format!("new {it}")));
            others.clone().any(is_there).then_some(())
        });
        let known = lines(&live).len();
        good(&live.ask_service(&["drain", "www", &mine, "--undo"]));
        wait_for_line(&live, known, &format!("new {mine}"));
        stop(live).assert_code(0);
    }
}

#[test]
fn least_connections_gives_three_connections_that_stay_to_three_replicas() {
    for lab in labs() {
        let text = file("ports: 80/tcp, policy: least-connections", "tcp 0.0.0.0 80", "X");
        let stay = "{run: python3 -u ask.py stay www 80, daemon: true}";
        let clients = format!("c: {{run: [{stay}, {stay}, {stay}]}}");
        let text = text.replace(r#"c: {run: "python3 -u ask.py X", daemon: true}"#, &clients);
        let live = started(&lab, &text);
        let served = |program: usize| {
            let path = live.folder().join(format!("nodes/c/stdout.{program}"));
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.lines().next().and_then(|line| line.get(6..8)).map(str::to_owned)
        };
        let mut all =
            until("all three are served", || (0..3).map(served).collect::<Option<Vec<_>>>());
        all.sort();
        assert_eq!(all, ["s1", "s2", "s3"]);
        stop(live).assert_code(0);
    }
}

/// Turns, the ping of an address, and what is expected of a service, all at once: one run for each
/// user. The answers are counted by the client.
#[test]
fn round_robin_shares_are_equal_and_expected_and_the_nearest_replica_answers_ping() {
    if is_missing(&["ping"]) {
        return;
    }
    for lab in labs() {
        let service = "ports: 80/tcp, policy: round-robin, ping: replica, address: 10.1.0.80";
        let expect = "expect:\n  - {service: www, lost: 0, unserved: 0}\n  \
                      - {service: www, share: {s1: {min: 30%, max: 40%}, s3: {min: 30%}}}\n";
        let text = file(service, "tcp 0.0.0.0 80", "each www 80");
        let live = started(&lab, &format!("{text}{expect}"));
        let known = wait_for_line(&live, 0, "new s3");
        wait_for_line(&live, known + 24, "new s");
        // 2 ms to s1 and 2 back; s2 is 24 ms away.
        let ping = live.exec("c", &["ping", "-n", "-c", "3", "-i", "0.2", "www"]);
        let seen = String::from_utf8_lossy(&ping.stdout).into_owned();
        assert!(seen.contains("3 received") && seen.contains("from 10.1.0.80"), "{seen}");
        let outcome = stop(live);
        outcome.assert_code(0);
        let output = outcome.output("c");
        let served: Vec<&str> =
            output.lines().filter_map(|line| line.strip_prefix("new ")?.get(..2)).collect();
        let turns = ["s1", "s2", "s3"];
        for pair in served.windows(2).skip(3) {
            let at = turns.iter().position(|name| name == &pair[0]).unwrap();
            assert_eq!(pair[1], turns[(at + 1) % 3], "{served:?}");
        }
        let expectations = outcome.report()["expectations"].as_array().unwrap().clone();
        assert_eq!(expectations.len(), 4);
        assert!(expectations.iter().all(|it| it["met"] == true), "{expectations:?}");
    }
}
