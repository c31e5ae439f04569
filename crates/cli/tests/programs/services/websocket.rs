//! WebSockets that live long (RFC 6455).

use super::*;

/// Starts it, with one socket at s1.
fn at_the_nearest<'a>(lab: &'a Lab, service: &str) -> Live<'a> {
    lab.write("websocket.py", include_str!("websocket.py"));
    let text = file(service, "X", "X");
    let text = text.replace("serve.py X", "websocket.py serve 0.0.0.0 80");
    let mut live = lab.start(&text.replace("ask.py X", "websocket.py talk www 80"));
    wait_for_replicas(&mut live);
    wait_for_line(&live, 0, "s1 ");
    live
}

#[test]
fn a_websocket_stays_with_its_replica_while_routes_and_replicas_change() {
    for lab in labs() {
        let live = at_the_nearest(&lab, "ports: 80/tcp");
        let mut known = lines(&live).len();
        for change in [&["drain", "www", "s1"][..], &["remove", "www", "s2"], &["add", "www", "s2"]]
        {
            good(&live.ask_service(change));
            known = wait_for_line(&live, known + 2, "s1 ");
        }
        good(&live.ask("set", &["near", "latency=1ms"]));
        known = wait_for_line(&live, known + 2, "s1 ");
        good(&live.ask_service(&["remove", "www", "s1"]));
        wait_for_line(&live, known + 2, "s1 ");
        let said = lines(&live);
        let outcome = stop(live);
        for (number, line) in said.iter().enumerate() {
            assert_eq!(*line, format!("s1 {number}"));
        }
        let www = &outcome.report()["services"][0];
        assert_eq!(www["replicas"][0]["connections"], 1, "{www}");
    }
}

#[test]
fn the_client_of_a_websocket_whose_replica_dies_opens_another_at_the_next_one() {
    for lab in labs() {
        let live = at_the_nearest(&lab, "ports: 80/tcp, on-loss: reset");
        let known = lines(&live).len();
        happen(&live, "{node: s1, do: kill}");
        wait_for_line(&live, known, "s2 ");
        let said = lines(&live);
        let outcome = stop(live);
        let ended = said.iter().position(|line| line == "ended: ConnectionResetError");
        let ended = ended.unwrap_or_else(|| panic!("{said:?}"));
        assert_eq!(said[ended + 1], "s2 0", "{said:?}");
        let www = &outcome.report()["services"][0];
        assert!(www["resets"].as_u64().unwrap() > 0, "{www}");
    }
}
