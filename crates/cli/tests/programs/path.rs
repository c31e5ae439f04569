//! Routers on a path, and its MTU.

use super::support::{Lab, any_user, is_missing};

#[test]
fn traceroute_and_tracepath_show_each_router_by_name() {
    if is_missing(&["traceroute", "tracepath"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes:
  a:
    user: root
    run:
      - {run: traceroute -4 b}
      - {run: traceroute -6 b}
      - {run: traceroute -4 -I b}
      - {run: traceroute -6 -I b}
      - {run: tracepath -4 b}
      - {run: tracepath -6 b}
  b: {}
routers: [paris, tokyo]
links:
  - {between: [a, paris], latency: 1ms}
  - {between: [paris, tokyo], latency: 2ms}
  - {between: [tokyo, b], latency: 1ms}
",
        );
        for program in 0..6 {
            let text = outcome.file(&format!("nodes/a/stdout.{program}"));
            let hop = |hop: &str, name: &str| {
                text.lines().any(|line| {
                    let mut words = line.split_whitespace();
                    words.next().is_some_and(|first| first.trim_end_matches(':') == hop)
                        && words.next().is_some_and(|second| second.starts_with(name))
                })
            };
            assert!(hop("1", "paris") && hop("2", "tokyo") && hop("3", "b"), "{text}");
        }
    }
}

#[test]
fn an_ordinary_program_may_trace_without_being_root() {
    if is_missing(&["traceroute", "tracepath"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes: {a: {run: [{run: traceroute b}, {run: tracepath b}]}, b: {}}
routers: [paris]
links: [{between: [a, paris]}, {between: [paris, b]}]
",
        );
        for program in 0..2 {
            let text = outcome.file(&format!("nodes/a/stdout.{program}"));
            assert!(text.contains("paris"), "{text}");
        }
    }
}

#[test]
fn a_packet_larger_than_a_link_is_answered_with_the_links_mtu() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(&format!(
            "{NARROW}
  a:
    run:
      - {{run: ping -4 -M do -s 1472 -c 2 -W 2 b}}
      - {{run: ping -6 -M do -s 1452 -c 2 -W 2 b}}
expect: [{{node: a, exit: any}}]
"
        ));
        for (stream, words) in [("0", "mtu = 1400"), ("1", "mtu=1400")] {
            let text = outcome.file(&format!("nodes/a/stdout.{stream}"))
                + &outcome.file(&format!("nodes/a/stderr.{stream}"));
            // The first is sent by the router, the second is the node's own cached path MTU.
            assert!(text.contains(words) || text.contains("mtu=1400"), "{text}");
            assert!(text.contains("100% packet loss"), "{text}");
        }
    }
}

#[test]
fn a_packet_that_may_be_cut_passes_a_smaller_link_in_fragments() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(&format!(
            "{NARROW}
  a: {{run: ping -4 -M dont -s 2600 -c 3 -i 0.1 b}}
"
        ));
        let text = outcome.output("a");
        assert!(text.contains("3 received") && text.contains("2608 bytes"), "{text}");
        assert!(outcome.link("left-right")["fragments_packets"].as_u64() > Some(0));
        outcome.assert_conserved();
    }
}

#[test]
fn tcp_learns_the_smaller_mtu_and_completes() {
    if is_missing(&["curl", "python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("large", vec![b'x'; 2_000_000]);
        let served =
            "b: {run: [python3, -m, http.server, 80, --bind, '::'], daemon: true, ready: tcp:80}";
        let outcome = lab.pass(&format!(
            "{}
  a:
    after: b
    run:
      - {{run: curl -sS -4 -o down4 http://b/large}}
      - {{run: curl -sS -6 -o down6 http://b/large}}
",
            NARROW.replace("b: {}", served)
        ));
        for name in ["down4", "down6"] {
            let size = std::fs::metadata(lab.path().join(name)).unwrap().len();
            assert_eq!(size, 2_000_000, "{name}");
        }
        let narrow = outcome.link("right-left");
        let largest = narrow["delivered_bytes"].as_u64().unwrap()
            / narrow["delivered_packets"].as_u64().unwrap();
        assert!(largest <= 1400, "{narrow}");
    }
}

#[test]
fn tracepath_finds_the_paths_mtu() {
    if is_missing(&["tracepath"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(&format!(
            "{NARROW}
  a: {{run: [{{run: tracepath -4 b}}, {{run: tracepath -6 b}}]}}
"
        ));
        for program in 0..2 {
            let text = outcome.file(&format!("nodes/a/stdout.{program}"));
            assert!(text.contains("Resume: pmtu 1400 hops 3 back 3"), "{text}");
        }
    }
}

#[test]
fn datagrams_of_every_size_pass_a_smaller_link() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("datagrams.py", DATAGRAMS);
        let serves = "b: {run: python3 datagrams.py, ready: log:ready}";
        let outcome = lab.pass(&format!(
            "{}
  a: {{run: python3 datagrams.py b, after: b}}
",
            NARROW.replace("b: {}", serves)
        ));
        assert_eq!(outcome.output("b"), "ready\n0\n1\n1372\n1373\n1472\n1473\n9000\n65507\n");
    }
}

/// Sends datagrams that may be fragmented, or prints the sizes of received ones up to the largest.
/// The first one is answered: what a kernel sends while it resolves the neighbour's address may be
/// overtaken by what it sends as soon as it knows it.
const DATAGRAMS: &str = "import socket, sys
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1:]:
    datagrams.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER: IP_PMTUDISC_DONT
    for size in (0, 1, 1372, 1373, 1472, 1473, 9000, 65507):
        datagrams.sendto(b'x' * size, (sys.argv[1], 5000))
        if size == 0:
            datagrams.recv(1)
else:
    datagrams.bind(('', 5000))
    print('ready', flush=True)
    size = 0
    while size < 65507:
        data, sender = datagrams.recvfrom(70000)
        size = len(data)
        print(size, flush=True)
        if size == 0:
            datagrams.sendto(b'', sender)
";

#[test]
fn datagrams_keep_their_order_beside_busy_programs_whether_they_are_cut_or_not() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(any_user()[0]);
    lab.write("numbers.py", NUMBERS);
    let nodes = "  b: {run: python3 numbers.py, ready: log:ready}
  a: {run: python3 numbers.py b, after: b}
  busy: {run: [timeout, 4, sh, -c, 'while :; do :; done'], after: b, count: 2}
";
    let outcome = lab.run(&format!("{}{nodes}", NARROW.replace("  b: {}", "")));
    let counts = outcome.output("b").lines().last().unwrap().to_owned();
    let [all, overtaken] = counts.split(' ').collect::<Vec<_>>()[..] else { panic!("{counts}") };
    assert!(all.parse::<u32>().unwrap() > 3000, "{counts}");
    assert_eq!(overtaken, "0", "{counts}");
}

/// Sends numbered datagrams, of which each fourth is cut on its way, or counts those that are overtaken. The
/// first one is answered, as in `DATAGRAMS`.
const NUMBERS: &str = "import socket, sys, time
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1:]:
    datagrams.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER: IP_PMTUDISC_DONT
    datagrams.sendto(b'', (sys.argv[1], 5000))
    datagrams.recv(1)
    for number in range(4000):
        text = number.to_bytes(4, 'big') + bytes(1469 if number % 4 == 1 else 100)
        datagrams.sendto(text, (sys.argv[1], 5000))
        if number % 4 == 3:
            time.sleep(0.0005)
else:
    datagrams.bind(('', 5000))
    print('ready', flush=True)
    data, sender = datagrams.recvfrom(1)
    datagrams.sendto(b'', sender)
    last, count, overtaken = -1, 0, 0
    datagrams.settimeout(5)  # Those that the socket had no room for are lost, the last ones, too.
    try:
        while last < 3999:
            number = int.from_bytes(datagrams.recv(2000)[:4], 'big')
            overtaken += number < last
            count += 1
            last = max(last, number)
    except TimeoutError:
        pass
    print(count, overtaken, flush=True)
";

/// Nodes on both sides of a link with an MTU of 1400; `nodes` comes last for more of them.
const NARROW: &str = "routers: [left, right]
links:
  - {between: [a, left], latency: 1ms}
  - {between: [left, right], latency: 1ms, mtu: 1400}
  - {between: [right, b], latency: 1ms}
nodes:
  b: {}";
