//! Replicas that die, close and come back, and links that change.

use super::super::support::Outcome;
use super::*;

/// Clients: one that connects each time and one that stays, both on node c.
fn two_clients(service: &str) -> String {
    let both = "[{run: python3 -u ask.py each www 80, daemon: true}, \
                {run: python3 -u ask.py stay www 80, daemon: true}]";
    file(service, "tcp 0.0.0.0 80", "X")
        .replace(r#"c: {run: "python3 -u ask.py X", daemon: true}"#, &format!("c: {{run: {both}}}"))
}

/// Starts it, once s1 serves both clients.
#[track_caller]
fn served_by_the_nearest<'a>(lab: &'a Lab, service: &str) -> Live<'a> {
    let mut live = lab.start(&two_clients(service));
    wait_for_replicas(&mut live);
    until("both clients are served by s1", || {
        let all = all_lines(&live);
        let served = |what: &str| all.iter().any(|line| line.starts_with(what));
        (served("new s1") && served("stays s1")).then_some(())
    });
    live
}

/// The lines of both clients.
fn all_lines(live: &Live<'_>) -> Vec<String> {
    let read = |program: usize| {
        let path = live.folder().join(format!("nodes/c/stdout.{program}"));
        std::fs::read_to_string(path).unwrap_or_default()
    };
    [read(0), read(1)].concat().lines().map(str::to_owned).collect()
}

/// Waits until a client that begins so has got this answer after now.
#[track_caller]
fn wait_for_answer(live: &Live<'_>, begin: &str) {
    let count = || all_lines(live).iter().filter(|line| line.starts_with(begin)).count();
    let known = count();
    until(&format!("{begin:?} once more"), || (count() > known).then_some(()));
}

/// How the connection of the client that stays has ended.
#[track_caller]
fn end_of_staying(live: &Live<'_>) -> String {
    until("the end of the connection that stays", || {
        let lines = all_lines(live).into_iter();
        lines.rev().find(|line| line.starts_with("stays ") && line.ends_with("Error"))
    })
}

/// What the client that stays has said last.
fn last_of_staying(outcome: &Outcome) -> String {
    outcome.file("nodes/c/stdout.1").lines().last().unwrap_or_default().to_owned()
}

#[test]
fn the_nearest_is_killed_and_new_connections_go_to_the_next_at_once() {
    for lab in labs() {
        let mut live = served_by_the_nearest(&lab, "ports: 80/tcp");
        happen(&live, "{node: s1, do: kill}");
        live.wait_for(&[("event", "service-lost"), ("replica", "s1")]);
        wait_for_answer(&live, "new s2");
        assert_eq!(end_of_staying(&live), "stays TimeoutError");
        let outcome = stop(live);
        let www = &outcome.report()["services"][0];
        assert_eq!(www["picked_up"], 0, "{www}");
        assert!(www["lost_packets"].as_u64().unwrap() > 0, "{www}");
        assert_eq!((&www["resets"], &www["replicas"][0]["state"]), (&0.into(), &"lost".into()));
    }
}

#[test]
fn with_on_loss_reset_the_client_of_a_killed_replica_is_reset() {
    for lab in labs() {
        let live = served_by_the_nearest(&lab, "ports: 80/tcp, on-loss: reset");
        happen(&live, "{node: s1, do: kill}");
        assert_eq!(end_of_staying(&live), "stays ConnectionResetError");
        wait_for_answer(&live, "new s2");
        let outcome = stop(live);
        assert!(outcome.report()["services"][0]["resets"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_server_that_ends_by_itself_is_withdrawn_and_registers_again_with_its_next_start() {
    for lab in labs() {
        let mut live = served_by_the_nearest(&lab, "ports: 80/tcp");
        let killed = live.exec(
            "s1",
            &[
                "sh",
                "-c",
                "kill -9 $(cat /proc/[0-9]*/stat | grep python \
             | grep -v sh | cut -d ' ' -f 1)",
            ],
        );
        live.wait_for(&[("event", "service-withdrawn"), ("replica", "s1")]);
        wait_for_answer(&live, "new s2");
        // The node's kernel is alive, and resets the connection of the server that is gone.
        let end = end_of_staying(&live);
        assert!(["stays ConnectionResetError", "stays EOFError"].contains(&end.as_str()), "{end}");
        happen(&live, "{node: s1, do: restart}");
        wait_for_answer(&live, "new s1");
        let outcome = stop(live);
        let s1 = &outcome.report()["services"][0]["replicas"][0];
        assert_eq!(
            (&s1["state"], &s1["withdrawals"]),
            (&"registered".into(), &1.into()),
            "{killed:?}"
        );
        assert_eq!(s1["registrations"], 2);
    }
}

#[test]
fn the_nearest_is_what_is_nearest_now_and_connections_stay_where_they_are() {
    for lab in labs() {
        // From york and tokyo on, s1 is farther than s2 then.
        let text = two_clients("ports: 80/tcp");
        let text = text.replace("between: [s1, paris],", "between: [s1, paris], name: edge,");
        let mut live = lab.start(&text);
        wait_for_replicas(&mut live);
        until("both are served", || {
            all_lines(&live).iter().any(|line| line.starts_with("stays s1")).then_some(())
        });
        good(&live.ask("set", &["edge", "latency=50ms"]));
        wait_for_answer(&live, "new s2");
        wait_for_answer(&live, "stays s1");
        good(&live.ask("set", &["edge", "latency=1ms"]));
        wait_for_answer(&live, "new s1");
        good(&live.ask("down", &["edge"]));
        wait_for_answer(&live, "new s2");
        good(&live.ask("down", &["near"]));
        good(&live.ask("up", &["edge"]));
        wait_for_answer(&live, "new s1");
        let outcome = stop(live);
        assert!(!outcome.events(&[("event", "redirected"), ("replica", "s2")]).is_empty());
        assert!(!last_of_staying(&outcome).is_empty());
    }
}
