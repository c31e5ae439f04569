//! Loss, duplicates and damage, packet by packet.

use std::collections::BTreeSet;

use super::support::{Lab, any_user, is_missing};

#[test]
fn exactly_the_listed_packets_are_lost() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes: {a: {run: ping -c 10 -i 0.05 -W 1 b}, b: {}}
links: [{between: [a, b], latency: 1ms, up: {loss: {packets: [2, 3, 7]}}}]
expect: [{node: a, exit: 0}]
",
        );
        assert_eq!(answered(&outcome.output("a")), BTreeSet::from([1, 4, 5, 6, 8, 9, 10]));
        assert_eq!(outcome.link("a-b")["dropped_packets"]["loss"], 3);
        outcome.assert_conserved();
    }
}

#[test]
fn the_same_seed_loses_the_same_packets_and_another_seed_others() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let run = |seed: &str| {
            let outcome = lab.run_with(
                "nodes: {a: {run: ping -c 60 -i 0.02 -W 1 b}, b: {}}
links: [{between: [a, b], latency: 1ms, loss: 20%}]
expect: [{node: a, exit: 0}]
",
                &["--seed", seed],
            );
            outcome.assert_code(0);
            answered(&outcome.output("a"))
        };
        let (first, again, other) = (run("7"), run("7"), run("8"));
        assert!(first.len() < 60, "{first:?}");
        assert_eq!(first, again);
        assert_ne!(first, other);
    }
}

#[test]
fn a_link_elsewhere_does_not_change_the_losses_of_a_link() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let run = |more: &str| {
            let outcome = lab.pass(&format!(
                "nodes: {{a: {{run: ping -c 40 -i 0.02 -W 1 b}}, b: {{}}, c: {{}}}}
links:
  - {{between: [a, b], latency: 1ms, loss: 20%}}
  - {{between: [b, c], loss: 50%}}
{more}
allow-unreachable: true
expect: [{{node: a, exit: 0}}]
"
            ));
            answered(&outcome.output("a"))
        };
        assert_eq!(run(""), run("  - {between: [a, c], loss: 50%, latency: 9ms}"));
    }
}

#[test]
fn a_duplicate_is_seen_by_ping() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes: {a: {run: ping -c 5 -i 0.1 b}, b: {}}
links: [{between: [a, b], latency: 1ms, down: {duplicate: 100%}}]
",
        );
        let text = outcome.output("a");
        // ping leaves at the last first answer, before that answer's duplicate.
        assert!(text.matches("(DUP!)").count() >= 4, "{text}");
        assert_eq!(outcome.link("b-a")["duplicated_packets"], 5);
        outcome.assert_conserved();
    }
}

#[test]
fn damage_is_found_by_the_receivers_checksums() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("send.py", SEND);
        lab.write("counters.py", COUNTERS);
        let outcome = lab.pass(
            "nodes:
  a: {run: python3 send.py, ready: exit}
  b: {run: python3 counters.py, after: a}
links: [{between: [a, b], latency: 1ms, up: {corrupt: 100%}}]
",
        );
        let udp = counters(&outcome.output("b"), "Udp");
        // No packet arrives intact: damage outside of UDP's checksum is in the IP header.
        assert_eq!(udp("InDatagrams") + udp("NoPorts"), 0);
        assert!(udp("InCsumErrors") >= 150, "{}", outcome.output("b"));
        assert_eq!(outcome.link("a-b")["corrupted_packets"], 200);
    }
}

#[test]
fn flipped_bits_of_datagrams_without_a_checksum_come_to_their_program() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("bare.py", BARE);
        lab.write("listen.py", LISTEN);
        let outcome = lab.pass(
            "nodes:
  b: {run: python3 listen.py, ready: 'log:listening'}
  a: {run: python3 bare.py, after: b}
links: [{between: [a, b], latency: 1ms, up: {corrupt: 100%}}]
",
        );
        assert_eq!(outcome.output("b").trim().lines().last(), Some("200 with 1 bit of 8000 wrong"));
        assert_eq!(outcome.link("a-b")["corrupted_packets"], 200);
    }
}

/// 200 datagrams with `SO_NO_CHECK`, and the word that all have been sent.
const BARE: &str = "import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, 11, 1)
for _ in range(200):
    sender.sendto(bytes(1000), ('b', 9000))
";

/// Waits for 200 datagrams and says how many of them have just one bit set.
const LISTEN: &str = "import socket
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
receiver.bind(('', 9000))
print('listening', flush=True)
received = [receiver.recv(2000) for _ in range(200)]
print(sum(int.from_bytes(it, 'big').bit_count() == 1 for it in received), 'with 1 bit of 8000 wrong')
";

/// 200 datagrams without a receiver.
const SEND: &str = "import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(200):
    sender.sendto(b'x' * 1000, ('b', 9))
";

/// Shows the node's counters as soon as most of the datagrams have been counted, at the latest
/// after 20 s.
const COUNTERS: &str = "import time
deadline = time.monotonic() + 20
while True:
    text = open('/proc/net/snmp').read()
    names, values = [line.split() for line in text.splitlines() if line.startswith('Udp:')]
    if int(values[names.index('InCsumErrors')]) >= 150 or time.monotonic() > deadline:
        break
    time.sleep(0.01)
print(text)
";

/// The sequence numbers that ping got answers for.
fn answered(text: &str) -> BTreeSet<u32> {
    let numbers = text.lines().filter_map(|line| line.split("icmp_seq=").nth(1));
    numbers.filter_map(|rest| rest.split(' ').next()?.parse().ok()).collect()
}

/// A protocol's counters in `/proc/net/snmp`, by name.
fn counters(text: &str, protocol: &str) -> impl Fn(&str) -> u64 + use<> {
    let prefix = format!("{protocol}: ");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(&prefix));
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (names, values) = (words(lines.next().unwrap()), words(lines.next().unwrap()));
    move |name| {
        let position = names.iter().position(|other| other == name).expect("the kernel counts it");
        values[position].parse().unwrap()
    }
}
