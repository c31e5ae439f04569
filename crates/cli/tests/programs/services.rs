//! One address, several replicas: real servers that know nothing of it.

#[path = "services/database.rs"]
mod database;
#[path = "services/evidence.rs"]
mod evidence;
#[path = "services/examples.rs"]
mod examples;
#[path = "services/flood.rs"]
mod flood;
#[path = "services/health.rs"]
mod health;
#[path = "services/live.rs"]
mod live;
#[path = "services/loss.rs"]
mod loss;
#[path = "services/name_server.rs"]
mod name_server;
#[path = "services/policies.rs"]
mod policies;
#[path = "services/ports.rs"]
mod ports;
#[path = "services/tls.rs"]
mod tls;
#[path = "services/transparent.rs"]
mod transparent;
#[path = "services/udp.rs"]
mod udp;
#[path = "services/websocket.rs"]
mod websocket;

use super::support::{Lab, Live, Outcome, User, any_user, is_missing, until};

/// Three regions in a row: `paris` with the client and s1, `york` with s2 10 ms away, `tokyo` with
/// s3 another 20 ms away. `$SERVER` runs on each of s1 to s3, `$CLIENT` on c.
const REGIONS: &str = r#"
routers: [paris, york, tokyo]
nodes:
  s1: {run: "$SERVER", daemon: true}
  s2: {run: "$SERVER", daemon: true}
  s3: {run: "$SERVER", daemon: true}
  c: {run: "$CLIENT", daemon: true}
  idle: {}
links:
  - {between: [s1, paris], latency: 1ms}
  - {between: [s2, york], latency: 1ms}
  - {between: [s3, tokyo], latency: 1ms}
  - {between: [c, paris], latency: 1ms}
  - {between: [idle, tokyo], latency: 1ms}
  - {between: [paris, york], name: near, latency: 10ms}
  - {between: [york, tokyo], name: far, latency: 20ms}
duration: 100s
"#;

/// A file with a service `www` that has these keys beside its replicas.
fn file(service: &str, server: &str, client: &str) -> String {
    let regions = REGIONS.replace("$SERVER", &format!("python3 -u serve.py {server}"));
    let regions = regions.replace("$CLIENT", &format!("python3 -u ask.py {client}"));
    format!("ipv6: false\nservices: {{www: {{replicas: [s1, s2, s3], {service}}}}}{regions}")
}

/// The servers and the client, for a user of windtunnel.
fn lab(user: User) -> Lab {
    let lab = Lab::new(user);
    lab.write("serve.py", include_str!("services/serve.py"));
    lab.write("ask.py", include_str!("services/ask.py"));
    lab
}

/// For every user that can run Python.
fn labs() -> Vec<Lab> {
    if is_missing(&["python3"]) {
        return Vec::new();
    }
    any_user().into_iter().map(lab).collect()
}

/// Waits until all replicas are registered, and lets the client begin.
#[track_caller]
fn wait_for_replicas(live: &mut Live<'_>) {
    wait_for(live, &["s1", "s2", "s3"]);
}

/// The same with these replicas.
#[track_caller]
fn wait_for(live: &mut Live<'_>, replicas: &[&str]) {
    for replica in replicas {
        live.wait_for(&[("event", "service-registered"), ("replica", replica)]);
    }
    std::fs::write(live.folder().with_file_name("go"), "").unwrap();
}

/// The client's lines until now.
fn lines(live: &Live<'_>) -> Vec<String> {
    let text = std::fs::read_to_string(live.folder().join("nodes/c/stdout")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Waits until the client has written a line that begins so, after the first `known` ones. Returns
/// how many it has written.
#[track_caller]
fn wait_for_line(live: &Live<'_>, known: usize, begin: &str) -> usize {
    until(&format!("{begin:?}, saw {:?}", lines(live).last()), || {
        let lines = lines(live);
        let found = lines.iter().skip(known).any(|line| line.starts_with(begin));
        found.then_some(lines.len())
    })
}

/// Lets an event happen.
#[track_caller]
fn happen(live: &Live<'_>, event: &str) {
    good(&live.ask("do", &[event]));
}

#[track_caller]
fn good(seen: &std::process::Output) {
    assert!(seen.status.success(), "{seen:?}");
}

/// Ends the run.
#[track_caller]
fn stop(live: Live<'_>) -> Outcome {
    good(&live.ask("stop", &[]));
    live.finish()
}

#[test]
fn the_nearest_replica_serves_and_the_client_sees_the_services_address_alone() {
    for lab in labs() {
        let file = file("ports: 80/tcp, address: 10.1.0.80", "tcp 0.0.0.0 80", "each www 80");
        let mut live = lab.start(&file);
        wait_for_replicas(&mut live);
        wait_for_line(&live, 0, "new s1");
        for node in ["s1", "s3", "c", "idle"] {
            let found = live.exec(node, &["getent", "hosts", "www"]);
            let found = String::from_utf8_lossy(&found.stdout).into_owned();
            assert!(found.starts_with("10.1.0.80 "), "{node}: {found}");
        }
        let outcome = stop(live);
        outcome.assert_conserved();
        let (c, output) = (address_of(&outcome, "c"), outcome.output("c"));
        let served = output.lines().filter(|line| line.starts_with("new s1"));
        for line in served {
            assert!(line.starts_with(&format!("new s1 at 10.1.0.80 sees {c} ")), "{line}");
            assert!(line.ends_with(" from 10.1.0.80"), "{line}");
        }
        lab.assert_nothing_left();
    }
}

/// A node's first address.
fn address_of(outcome: &Outcome, node: &str) -> String {
    let plan: serde_json::Value = serde_json::from_str(&outcome.file("plan.json")).unwrap();
    let nodes = plan["nodes"].as_array().unwrap();
    let node = nodes.iter().find(|it| it["name"] == node).unwrap();
    node["interfaces"][0]["v4"].as_str().unwrap().to_owned()
}

#[test]
fn an_unmodified_server_binds_the_services_address_itself() {
    for lab in labs() {
        let service = "ports: 80/tcp, address: 10.1.0.80";
        let mut live = lab.start(&file(service, "tcp 10.1.0.80 80", "each www 80"));
        wait_for_replicas(&mut live);
        wait_for_line(&live, 0, "new s1 at 10.1.0.80 ");
        stop(live).assert_code(0);
    }
}

#[test]
fn a_service_has_both_versions_of_ip_and_the_nearest_replica_for_each() {
    for lab in labs() {
        let file = file("ports: 80/tcp", "tcp :: 80", "each www 80").replace("ipv6: false", "");
        let mut live = lab.start(&file);
        wait_for_replicas(&mut live);
        wait_for_line(&live, 0, "new s1");
        let ask = |client: &str| {
            let code = format!(
                "import socket; c = socket.create_connection(socket.getaddrinfo('www', 80, \
                 socket.{client}, socket.SOCK_STREAM)[0][4][:2]); c.sendall(b'x\\n'); \
                 print(c.recv(100).decode(), c.getpeername()[0])"
            );
            let seen = live.exec("idle", &["python3", "-c", &code]);
            String::from_utf8_lossy(&seen.stdout).into_owned()
        };
        let (four, six) = (ask("AF_INET"), ask("AF_INET6"));
        assert!(four.starts_with("s3 at 10.") && !four.contains(':'), "{four}");
        assert!(six.starts_with("s3 at fd00:") && !six.contains("10."), "{six}");
        stop(live).assert_code(0);
    }
}
