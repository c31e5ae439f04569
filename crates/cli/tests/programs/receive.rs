//! Nodes that pay for receiving, with real programs. How much is delivered depends on how busy the
//! machine is; that everything is counted does not.

use serde_json::Value;

use super::support::{Lab, Outcome, User, any_user, is_missing};

/// Sends datagrams of 10 bytes as fast as it can for so many seconds, and prints how many.
const FLOOD: &str = "
import socket, sys, time
to = (sys.argv[1], int(sys.argv[2]))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
until, sent = time.monotonic() + float(sys.argv[3]), 0
while time.monotonic() < until:
    for _ in range(50):
        sender.sendto(b'0123456789', to)
        sent += 1
print(sent)
";

/// Counts datagrams until none has come for a second.
const COUNT: &str = "
import socket, sys
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(('', int(sys.argv[1])))
got = 0
receiver.settimeout(20)
try:
    while True:
        receiver.recv(100)
        got += 1
        receiver.settimeout(1)
except TimeoutError:
    print(got)
";

fn lab(user: User) -> Lab {
    let lab = Lab::new(user);
    lab.write("flood.py", FLOOD);
    lab.write("count.py", COUNT);
    lab
}

fn received(outcome: &Outcome, node: &str) -> Value {
    let report = outcome.report();
    let all = report["received"].as_array().unwrap();
    all.iter().find(|received| received["node"] == node).expect(node).clone()
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().expect(key)
}

#[track_caller]
fn printed(outcome: &Outcome, node: &str) -> u64 {
    outcome.output(node).trim().parse().unwrap()
}

#[test]
fn a_flood_at_a_limited_node_is_dropped_and_counted_and_paid_for_by_the_node() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = lab(user);
        let outcome = lab.run(
            "nodes:\n  server: {cpu: 10%, address: 10.7.0.1, run: python3 count.py 9000}\n\
             \x20 client: {run: python3 flood.py 10.7.0.1 9000 4, start: 1s}\n\
             links: [{between: [server, client]}]\n",
        );
        let received = received(&outcome, "server");
        let (came, delivered) = (number(&received, "came"), number(&received, "delivered"));
        let (full, early) = (number(&received, "dropped_full"), number(&received, "dropped_early"));
        assert_eq!(came, delivered + full + early, "{received}");
        assert!(came > 20_000, "{received}");
        assert!(delivered < came, "a tenth of a processor cannot receive them all: {received}");
        // What the program read is what the kernel had room for.
        let (read, overflowed) = (printed(&outcome, "server"), number(&received, "overflowed"));
        assert!(read > 0 && read + overflowed <= delivered, "{read}: {received}");
        // The kernel's work is in the node's account, beside that of the program.
        let report = outcome.report();
        let used_ns = number(&report["limits"][0], "used_ns");
        let computed_ns = number(&received, "computed_ns");
        assert!(computed_ns > 1_000_000, "{received}");
        assert!(used_ns > 10_000_000, "{}", report["limits"]);
        assert!(outcome.stdout.contains("receiving took"), "{}", outcome.stdout);
    }
}

#[test]
fn a_limited_node_serves_as_any_other() {
    if is_missing(&["python3", "curl"]) {
        return;
    }
    for user in any_user() {
        let lab = lab(user);
        lab.write("page", "x".repeat(3_000_000));
        let outcome = lab.run(
            "nodes:\n  server: {cpu: 50%, run: python3 -m http.server 80, daemon: true, ready: tcp:80}\n\
             \x20 client: {cpu: 50%, after: server, run: [curl, -sf, -o, /dev/null, -w, '%{size_download}', http://server/page]}\n\
             links: [{between: [server, client], rate: 100mbit, latency: 5ms}]\n",
        );
        assert_eq!(printed(&outcome, "client"), 3_000_000);
        for node in ["server", "client"] {
            let received = received(&outcome, node);
            assert!(number(&received, "delivered") > 0, "{received}");
        }
        lab.assert_nothing_left();
    }
}

#[test]
fn a_node_without_a_limit_can_have_a_receive_queue() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = lab(user);
        let outcome = lab.run(
            "nodes: {a: {run: ping -q -c 5 -i 0.2 b}, b: {receive-queue: 20p}}\n\
             links: [{between: [a, b]}]\n",
        );
        assert_eq!(outcome.report()["programs"][0]["exit"], 0, "{}", outcome.stdout);
        let report = outcome.report();
        let nodes: Vec<_> = report["received"].as_array().unwrap().iter().collect();
        assert_eq!(nodes.len(), 1);
        assert_eq!((nodes[0]["node"].as_str(), number(nodes[0], "came")), (Some("b"), 5));
    }
}

#[test]
fn a_node_that_is_limited_while_it_lives_pays_for_receiving_from_then_on() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = lab(user);
        let mut live = lab.start(
            "nodes: {a: {run: ping -q -c 15 -i 0.2 b}, b: {}}\nlinks: [{between: [a, b]}]\n",
        );
        live.wait_for(&[("event", "program-started")]);
        assert!(live.ask("set", &["b.cpu=50%"]).status.success());
        let outcome = live.finish();
        let received = received(&outcome, "b");
        assert!(number(&received, "came") > 0, "{received}");
        assert_eq!(outcome.report()["programs"][0]["exit"], 0, "{}", outcome.stdout);
    }
}
