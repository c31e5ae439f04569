//! NATs and firewalls between real programs: hole punching by pairs of types, TCP through a NAT, and
//! the kernel's own NAT as a reference.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::support::{Lab, any_user, is_missing, users};

const TYPES: [&str; 4] = ["full-cone", "address-restricted", "port-restricted", "symmetric"];

/// Which pairs meet, as theory has it (RFC 5128, 3.3): a symmetric NAT and one that asks for the port
/// do not, unless its next port is predicted.
fn meets(one: &str, other: &str, predicts: bool) -> bool {
    let strict = |name: &str| matches!(name, "port-restricted" | "symmetric");
    let has = |name: &str| one == name || other == name;
    predicts || !(has("symmetric") && strict(one) && strict(other))
}

/// A network in which each pair of types has two nodes behind two NATs, and a server outside.
fn pairs(predicts: bool) -> String {
    let (mut routers, mut nodes, mut links) = (String::new(), String::new(), String::new());
    let option = if predicts { " --predict" } else { "" };
    for (i, one) in TYPES.iter().enumerate() {
        for (k, other) in TYPES.iter().enumerate() {
            for (side, kind) in [("a", one), ("b", other)] {
                let name = format!("{side}{i}{k}");
                let nat = match (*kind, predicts) {
                    ("symmetric", true) => "{type: symmetric, port-allocation: sequential}",
                    (kind, _) => kind,
                };
                // Nothing that is expected to fail is a failure of the run.
                let _ = writeln!(routers, "  home-{name}: {{nat: {nat}}}");
                let _ = writeln!(
                    nodes,
                    "  {name}: {{after: server, run: \"sh -c 'python3 punch.py client server {i}{k} \
                     {name}{option} || true'\"}}"
                );
                let _ = writeln!(links, "  - {{between: [{name}, home-{name}]}}");
                let _ = writeln!(links, "  - {{between: [home-{name}, net], latency: 2ms}}");
            }
        }
    }
    format!(
        "ipv6: false\nrouters:\n{routers}  net:\nnodes:\n{nodes}  server: {{run: python3 punch.py \
         server, daemon: true, ready: 'log:^ready'}}\nlinks:\n{links}  \
         - {{between: [server, net], latency: 2ms}}\n"
    )
}

fn example(file: &str) -> Vec<u8> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    fs::read(examples.join(file)).unwrap()
}

#[test]
fn programs_meet_through_the_pairs_of_nats_that_theory_names() {
    if is_missing(&["python3"]) {
        return;
    }
    for predicts in [false, true] {
        let lab = Lab::new(users()[0]);
        lab.write("punch.py", example("punch.py"));
        let outcome = lab.pass(&pairs(predicts));
        for (i, one) in TYPES.iter().enumerate() {
            for (k, other) in TYPES.iter().enumerate() {
                for side in ["a", "b"] {
                    let text = outcome.output(&format!("{side}{i}{k}"));
                    assert!(text.contains(" met "), "{one}, {other}: {text}");
                    let met = !text.contains("met no peer");
                    assert_eq!(met, meets(one, other, predicts), "{one}, {other}: {text}");
                }
            }
        }
        outcome.assert_conserved();
    }
}

#[test]
fn the_example_meets_and_its_firewall_holds() {
    if is_missing(&["python3", "curl"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        for file in ["hole-punching.yaml", "punch.py"] {
            lab.write(file, example(file));
        }
        let outcome = lab.start_file("hole-punching.yaml", &[]).finish();
        outcome.assert_code(0);
        let report = outcome.report();
        let router = |name: &str| {
            let mut routers = report["routers"].as_array().unwrap().iter();
            routers.find(|it| it["router"] == name).unwrap().clone()
        };
        assert_eq!(router("home-a")["nat"]["type"], "port-restricted");
        assert_eq!(router("home-a")["nat"]["mappings_made"], 1);
        assert!(router("office")["packets"]["filtered"].as_u64().unwrap() > 0);
        let table = outcome.file("nat.csv");
        let of_bob = table.lines().find(|line| line.starts_with("home-b,udp,")).unwrap();
        let external = of_bob.split(',').nth(3).unwrap();
        let port: u16 = external.split(':').nth(1).unwrap().parse().unwrap();
        assert!((40_000..50_000).contains(&port), "{of_bob}");
    }
}

/// TCP in trains, as kernels make them, both ways, and a forwarded port.
#[test]
fn connections_pass_a_nat_out_and_by_a_forwarded_port_in() {
    if is_missing(&["iperf3", "curl", "python3", "ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("page", "hello from inside");
        let text = "ipv6: false
routers:
  home: {nat: {type: port-restricted, forward: [{port: 8080, to: 'web:80'}]}}
  net:
nodes:
  web: {run: python3 -m http.server 80, daemon: true, ready: tcp:80}
  server:
    run:
      - {run: iperf3 -s -p 1, daemon: true, ready: tcp:1}
      - {run: iperf3 -s -p 2, daemon: true, ready: tcp:2}
      - {run: iperf3 -s -p 3, daemon: true, ready: tcp:3}
  client:
    after: [server, web]
    run:
      - run: iperf3 -c server -p 1 -t 1 -J
      - {run: iperf3 -c server -p 2 -t 1 -R -J, start: 2s}
      - {run: iperf3 -c server -p 3 -t 1 -u -b 10M -l 4000 -J, start: 4s}
      - run: ping -c 2 -i 0.2 server
      - run: ping -c 1 -s 4000 server
  visitor: {after: web, run: 'curl -sS http://10.0.0.7:8080/page'}
links:
  - {between: [web, home]}
  - {between: [client, home]}
  - {between: [home, net], latency: 5ms, rate: 50mbit}
  - {between: [server, net]}
  - {between: [visitor, net]}
";
        // The NAT outside: behind four nodes and two interfaces of `home`.
        let outcome = lab.pass(text);
        assert_eq!(outcome.output("visitor"), "hello from inside");
        for position in 0..3 {
            let result = outcome.file(&format!("nodes/client/stdout.{position}"));
            let result: serde_json::Value = serde_json::from_str(&result).unwrap();
            let bytes = result["end"]["sum_received"]["bytes"]
                .as_u64()
                .or_else(|| result["end"]["sum"]["bytes"].as_u64());
            assert!(bytes.unwrap() > 500_000, "{result:#}");
        }
        for position in [3, 4] {
            assert!(
                outcome.file(&format!("nodes/client/stdout.{position}")).contains(" 0% packet")
            );
        }
        let report = outcome.report();
        let home = &report["routers"][0];
        assert_eq!(home["packets"]["untranslatable"], serde_json::Value::Null, "{home}");
        assert!(home["packets"]["reassembled"].as_u64().unwrap() > 0, "{home}");
        outcome.assert_conserved();
    }
}

/// A server that answers from another port, or says what it sees; two ports, two addresses.
const PROBED: &str = "import selectors, socket
chooser = selectors.DefaultSelector()
ports = {}
for port in (7000, 7001):
    ports[port] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ports[port].bind(('0.0.0.0', port))
    chooser.register(ports[port], selectors.EVENT_READ, port)
print('ready', flush=True)
while True:
    for key, _ in chooser.select():
        data, source = key.fileobj.recvfrom(2048)
        other = data.split()[0] == b'other'
        sender = ports[14001 - key.data] if other else key.fileobj
        sender.sendto(b'%s %s %d' % (data, source[0].encode(), source[1]), source)
";

/// What a NAT does with a client inside of it: one line for each question.
const PROBE: &str = "import socket, sys
def ask(client, word, where):
    for attempt in range(3):
        question = b'%s %d' % (word, attempt)
        client.sendto(question, where)
        client.settimeout(0.3)
        try:
            while True:
                answer, source = client.recvfrom(2048)
                if answer.startswith(question):
                    return answer.split()[2].decode(), int(answer.split()[3]), source[1]
        except TimeoutError:
            pass
    return None
one, two = (socket.gethostbyname(name) for name in ('one', 'two'))
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.bind(('0.0.0.0', 6000))
first = ask(client, b'same', (one, 7000))
print('hidden', first[0] != socket.gethostbyname(socket.gethostname()))
print('preserved', first[1] == 6000)
print('mapped alike for another port', ask(client, b'same', (one, 7001))[1] == first[1])
print('mapped alike for another address', ask(client, b'same', (two, 7000))[1] == first[1])
fresh = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fresh.bind(('0.0.0.0', 6001))
print('another port passes', ask(fresh, b'other', (one, 7000)) is not None)
print('answers pass', ask(fresh, b'same', (one, 7000)) is not None)
second = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
second.bind(('0.0.0.0', 6002))
print('two sockets differ', ask(second, b'same', (one, 7000))[1] != first[1])
tcp = socket.create_connection((one, 80), 5)
tcp.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
print('tcp', tcp.recv(100).split()[1])
closed = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
closed.connect((one, 9))
closed.send(b'x')
closed.settimeout(1)
try:
    closed.recv(10)
except OSError as error:
    print('errors pass', error.errno)
";

/// The kernel's masquerading, in a node that forwards, is mapped by endpoint as long as ports do not
/// clash, and filtered by address and port: what `port-restricted` is.
#[test]
fn a_port_restricted_nat_does_what_the_kernels_masquerading_does() {
    if is_missing(&["nft", "python3", "ping"]) {
        return;
    }
    let rest = "ipv6: false
nodes:
  one: &server
    run:
      - {run: python3 probed.py, daemon: true, ready: 'log:ready'}
      - {run: python3 -m http.server 80, daemon: true, ready: tcp:80}
  two: *server
  client:
    after: [one, two, HOME]
    run: \"sh -c 'python3 probe.py && ping -c 1 one > ping && echo ping'\"
";
    let links = "links:
  - {between: [client, home], latency: 1ms}
  - {between: [home, net], latency: 1ms}
  - {between: [one, net]}
  - {between: [two, net]}
";
    let ours = format!(
        "routers: {{home: {{nat: port-restricted}}, net: }}\n{}{links}",
        rest.replace(", HOME", "")
    );
    let rules = "nft add table t && nft add chain t c '{ type nat hook postrouting priority 100; }' \
                 && nft add rule t c oifname eth1 masquerade && echo masquerading && sleep 60";
    let theirs = format!(
        "routers: [net]\n{}  home: {{forward: true, user: root, run: [sh, -c, \"{rules}\"], \
         daemon: true, ready: 'log:masquerading'}}\n{links}",
        rest.replace("HOME", "home")
    );
    let play = |text: &str| {
        let lab = Lab::new(users()[0]);
        lab.write("probed.py", PROBED);
        lab.write("probe.py", PROBE);
        lab.pass(text).output("client")
    };
    let (ours, theirs) = (play(&ours), play(&theirs));
    assert_eq!(ours, theirs);
    let expected = "hidden True\npreserved True\nmapped alike for another port True\n\
                    mapped alike for another address True\nanother port passes False\n\
                    answers pass True\ntwo sockets differ True\ntcp b'200'\nerrors pass 111\nping\n";
    assert_eq!(ours, expected);
}
