//! What is the service's, and what is its origin's.

use super::*;

/// Asks from a node, and what it got.
fn asked(live: &Live<'_>, node: &str, port: u16) -> String {
    let code = format!(
        "import socket; c = socket.create_connection(('www', {port}), 2); c.sendall(b'x\\n'); \
         print(c.recv(100).decode())"
    );
    let seen = live.exec(node, &["python3", "-c", &code]);
    let text = String::from_utf8_lossy(&seen.stdout).into_owned();
    let why = String::from_utf8_lossy(&seen.stderr).into_owned();
    text + why.lines().last().unwrap_or_default()
}

#[test]
fn ports_that_are_not_the_services_stay_the_origins() {
    for lab in labs() {
        let text = file("ports: 80/tcp, origin: idle", "tcp 0.0.0.0 80", "each www 80");
        let text = text.replace(
            "idle: {}",
            "idle: {run: python3 -u serve.py tcp 0.0.0.0 8080, daemon: true, ready: tcp:8080}",
        );
        let mut live = lab.start(&text);
        live.wait_for(&[("event", "program-ready"), ("node", "idle")]);
        wait_for_replicas(&mut live);
        wait_for_line(&live, 0, "new s1");
        assert!(asked(&live, "c", 8080).starts_with("idle at "));
        assert!(asked(&live, "c", 80).starts_with("s1 at "));
        assert!(asked(&live, "c", 81).contains("ConnectionRefused"), "the origin's kernel says so");
        stop(live).assert_code(0);
    }
}

#[test]
fn without_an_origin_other_ports_are_unreachable() {
    for lab in labs() {
        let mut live = lab.start(&file("ports: 80/tcp", "tcp 0.0.0.0 80", "each www 80"));
        wait_for_replicas(&mut live);
        let seen = asked(&live, "c", 81);
        assert!(seen.contains("No route to host") || seen.contains("unreachable"), "{seen}");
        stop(live).assert_code(0);
    }
}

#[test]
fn a_client_without_a_redirector_on_its_way_reaches_the_origin() {
    for lab in labs() {
        // c is in paris, as is the origin; tokyo alone redirects.
        let service = "ports: 80/tcp, origin: s1, at: tokyo";
        let text =
            file(service, "tcp 0.0.0.0 80", "each www 80").replace("[s1, s2, s3]", "[s2, s3]");
        let mut live = lab.start(&text);
        wait_for(&mut live, &["s2", "s3"]);
        wait_for_line(&live, 0, "new s1");
        assert!(asked(&live, "idle", 80).starts_with("s3 at "));
        stop(live).assert_code(0);
    }
}

#[test]
fn where_no_replica_listens_the_origin_gets_what_comes() {
    for lab in labs() {
        let text = file("ports: 80/tcp, origin: idle", "tcp 0.0.0.0 81", "each www 80");
        let text = text
            .replace("idle: {}", "idle: {run: python3 -u serve.py tcp 0.0.0.0 80, daemon: true}");
        let mut live = lab.start(&text);
        wait_for(&mut live, &[]);
        wait_for_line(&live, 0, "new idle");
        let outcome = stop(live);
        assert!(outcome.report()["services"][0]["unserved_packets"].as_u64().unwrap() > 0);
    }
}
