//! The machine's outside as a node: real programs reach servers of this machine's loopback, by the name
//! `host`, across emulated links. Nothing of these tests leaves the machine.

#[path = "internet/ending.rs"]
mod ending;
#[path = "internet/nat.rs"]
mod nat;
#[path = "internet/server.rs"]
mod server;
#[path = "internet/world.rs"]
mod world;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;

use serde_json::Value;

use super::free_port::free_port;
use super::support::{Lab, Outcome, is_missing, is_root, missing, users};
use server::{Behaviour, Server, echo};

const HOST: [&str; 1] = ["--allow-host"];

/// A client that runs a command, and the way out.
fn behind(link: &str, command: &[&str]) -> String {
    let command = serde_json::to_string(command).unwrap();
    format!(
        "nodes: {{client: {{run: {command}}}, internet: {{}}}}\n\
         links: [{{between: [client, internet], {link}}}]\n"
    )
}

fn python(lines: &str) -> Vec<String> {
    vec!["python3".to_owned(), "-c".to_owned(), lines.to_owned()]
}

fn run_python(lab: &Lab, link: &str, lines: &str, options: &[&str]) -> Outcome {
    let words = python(lines);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    lab.run_with(&behind(link, &words), options)
}

fn report(outcome: &Outcome) -> Value {
    let text = std::fs::read_to_string(outcome.folder.join("run.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn flows(outcome: &Outcome) -> String {
    std::fs::read_to_string(outcome.folder.join("internet.csv")).unwrap()
}

#[test]
fn a_page_of_the_machines_loopback_comes_across_the_link_and_is_in_the_flow_log() {
    if is_missing(&["curl"]) {
        return;
    }
    let body = "x".repeat(200_000);
    let server = Server::start(Behaviour::Page(body.clone()));
    let url = format!("http://host:{}/", server.port());
    for user in users() {
        let lab = Lab::new(user);
        let command = ["curl", "-s", "-4", "-o", "page", &url];
        let outcome = lab.run_with(&behind("latency: 10ms", &command), &HOST);
        outcome.assert_code(0);
        assert_eq!(std::fs::read_to_string(lab.path().join("page")).unwrap(), body);
        let report = report(&outcome);
        assert_eq!(report["internet"]["flows"]["tcp"], 1);
        assert!(report["internet"]["received_bytes"].as_u64().unwrap() >= 200_000);
        let flows = flows(&outcome);
        let line = flows.lines().nth(1).unwrap();
        let outside = format!(":{},", server.port());
        assert!(line.contains(",tcp,10.0.0.1:") && line.contains(&outside), "{flows}");
        // The run may be over before the client's last segment has come through the link.
        assert!(line.ends_with(",closed") || line.ends_with(",run ended"), "{flows}");
        lab.assert_nothing_left();
    }
}

#[test]
fn a_static_program_reaches_the_machine_by_both_versions_of_ip() {
    if is_missing(&["busybox"]) {
        return;
    }
    let server = Server::start(Behaviour::Page("static".to_owned()));
    let six = Server::start_at("[::1]:0", Behaviour::Page("six".to_owned()));
    // A server at 127.0.0.1 is reached by either address of `host`, and one at `::1` by that of IPv4.
    let script = format!(
        "busybox wget -q -O - http://host:{}/ && busybox wget -q -O - http://[fd00::3]:{}/ && \
         busybox wget -q -O - http://10.0.0.3:{}/",
        server.port(),
        server.port(),
        six.as_ref().map_or(server.port(), Server::port),
    );
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.run_with(&behind("latency: 1ms", &["sh", "-c", &script]), &HOST);
        outcome.assert_code(0);
        assert_eq!(outcome.stdout.contains("six"), six.is_some(), "{}", outcome.stdout);
        assert!(outcome.stdout.contains("static"), "{}", outcome.stdout);
    }
}

#[test]
fn a_file_alone_opens_nothing() {
    let lab = Lab::new(users()[0]);
    let outcome = lab.run(&behind("latency: 1ms", &["true"]));
    outcome.assert_code(2);
    assert!(outcome.stderr.contains("--allow-internet"), "{}", outcome.stderr);
    let words = ["true"];
    let scenario = behind("latency: 1ms", &words)
        .replace("{client: {run", "{client: {publish: '0.0.0.0:18999:80', run");
    let outcome = lab.run_with(&scenario, &HOST);
    outcome.assert_code(2);
    assert!(outcome.stderr.contains("lets other machines in"), "{}", outcome.stderr);
}

#[test]
fn the_machine_is_refused_without_its_permission_and_by_its_own_addresses_always() {
    let server = Server::start(Behaviour::Page("secret".to_owned()));
    let port = server.port();
    // Each is answered with "administratively prohibited", which Linux reports to a program as EHOSTUNREACH
    // (v4, code 13) or EACCES (v6, code 1).
    let lines = format!(
        "import socket, errno, sys\n\
         for address in sys.argv[1:] or ['host', '169.254.169.254', '240.0.0.1', '::ffff:0:7f00:1', 'fec0::1']:\n\
         \x20 for family, _, _, _, at in socket.getaddrinfo(address, {port}, type=socket.SOCK_STREAM):\n\
         \x20   with socket.socket(family, socket.SOCK_STREAM) as it:\n\
         \x20     it.settimeout(20)\n\
         \x20     error = it.connect_ex(at)\n\
         \x20     assert error in (errno.EHOSTUNREACH, errno.EACCES, errno.ENETUNREACH), (at, error)\n\
         \x20     print('refused', at[0])\n"
    );
    for user in users() {
        let lab = Lab::new(user);
        // `--allow-internet` alone: nothing here is outside.
        let outcome = run_python(&lab, "latency: 1ms", &lines, &["--allow-internet"]);
        outcome.assert_code(0);
        assert!(outcome.stdout.matches("refused").count() >= 6, "{}", outcome.stdout);
        let report = report(&outcome);
        let refused = &report["internet"]["refused"];
        assert!(refused["host_not_allowed"].as_u64().unwrap() >= 2, "{refused}");
        assert!(refused["machine"].as_u64().unwrap() >= 2, "{refused}");
        assert_eq!(report["verdict"]["faithful"], true, "what is refused is not lost");
        let warnings = report["verdict"]["warnings"].to_string();
        assert!(warnings.contains("no --allow-host"), "{warnings}");
    }
    assert_eq!(server.served(), 0);
}

#[test]
fn what_the_outside_refuses_is_refused_and_what_it_tears_is_torn() {
    let closed = free_port();
    let torn = Server::start(Behaviour::Tear);
    let half = Server::start(Behaviour::EchoAtEnd);
    let lines = format!(
        "import socket, errno\n\
         it = socket.socket()\n\
         assert it.connect_ex(('host', {closed})) == errno.ECONNREFUSED\n\
         it = socket.create_connection(('host', {}))\n\
         it.sendall(b'x')\n\
         try:\n\
         \x20 it.recv(1)\n\
         \x20 raise SystemExit('not torn')\n\
         except ConnectionResetError: pass\n\
         it = socket.create_connection(('host', {}))\n\
         data = bytes(range(256)) * 4000\n\
         it.sendall(data)\n\
         it.shutdown(socket.SHUT_WR)\n\
         got = b''\n\
         while part := it.recv(65536): got += part\n\
         assert got == data, len(got)\n",
        torn.port(),
        half.port()
    );
    for user in users() {
        let lab = Lab::new(user);
        let outcome = run_python(&lab, "latency: 5ms", &lines, &HOST);
        outcome.assert_code(0);
        let flows = flows(&outcome);
        for end in [",0,0,refused", ",reset", ",1024000,1024000,closed"] {
            assert!(flows.lines().any(|line| line.ends_with(end)), "{end}: {flows}");
        }
    }
}

#[test]
fn datagrams_of_any_length_come_back_and_a_closed_port_is_reported() {
    let port = echo();
    let closed = free_port();
    // 5000 bytes are four fragments of 1500 bytes each way.
    let lines = format!(
        "import socket\n\
         it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         it.settimeout(20)\n\
         for length in (0, 1, 1472, 5000):\n\
         \x20 it.sendto(bytes(length), ('host', {port}))\n\
         \x20 data, sender = it.recvfrom(65536)\n\
         \x20 assert (len(data), sender) == (length, (socket.gethostbyname('host'), {port}))\n\
         it.connect(('host', {closed}))\n\
         it.send(b'x')\n\
         try:\n\
         \x20 it.recv(1)\n\
         \x20 raise SystemExit('not refused')\n\
         except ConnectionRefusedError: pass\n"
    );
    for user in users() {
        let lab = Lab::new(user);
        let outcome = run_python(&lab, "latency: 2ms", &lines, &HOST);
        outcome.assert_code(0);
        let report = report(&outcome);
        assert_eq!(report["internet"]["flows"]["udp"], 1, "one socket outside for one inside");
        assert_eq!(report["internet"]["lost"], serde_json::json!({}));
    }
}

#[test]
fn a_long_ping_of_the_machine_is_answered_in_fragments_and_the_run_stays_faithful() {
    if is_missing(&["ping"]) {
        return;
    }
    // 3008 bytes of ICMP are three fragments of 1500 bytes, each way.
    let script =
        "ping -n -w 20 -c 2 -i 0.2 -s 3000 10.0.0.3 && ping -n -w 20 -c 2 -i 0.2 -s 3000 fd00::3";
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.run_with(&behind("latency: 2ms", &["sh", "-c", script]), &HOST);
        outcome.assert_code(0);
        assert_eq!(outcome.stdout.matches("3008 bytes from").count(), 4, "{}", outcome.stdout);
        let report = report(&outcome);
        assert_eq!(report["internet"]["lost"], serde_json::json!({}));
        assert_eq!(report["verdict"]["faithful"], true);
    }
}

#[test]
fn datagrams_reach_a_server_that_has_the_other_loopback_address_only() {
    let port = echo();
    let six = UdpSocket::bind("[::1]:0").ok();
    let six = six.map(|server| {
        let port = server.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while let Ok((length, client)) = server.recv_from(&mut buffer) {
                let _ = server.send_to(&buffer[..length], client);
            }
        });
        port
    });
    // As `iperf3 -u -c host` does, which takes the first address that `host` has.
    let lines = format!(
        "import socket\n\
         for family, host, port in ((socket.AF_INET6, 'fd00::3', {port}), (socket.AF_INET, '10.0.0.3', {})):\n\
         \x20 it = socket.socket(family, socket.SOCK_DGRAM)\n\
         \x20 it.settimeout(20)\n\
         \x20 it.connect((host, port))\n\
         \x20 it.send(b'question')\n\
         \x20 assert it.recv(100) == b'question'\n",
        six.unwrap_or(port)
    );
    for user in users() {
        let lab = Lab::new(user);
        let outcome = run_python(&lab, "latency: 2ms", &lines, &HOST);
        outcome.assert_code(0);
        assert_eq!(report(&outcome)["internet"]["lost"], serde_json::json!({}));
    }
}

#[test]
fn the_link_in_front_holds_its_bandwidth() {
    if is_missing(&["curl"]) {
        return;
    }
    const BODY: usize = 289_600;
    let server = Server::start(Behaviour::Page("x".repeat(BODY)));
    let url = format!("http://host:{}/", server.port());
    let lab = Lab::new(users()[0]);
    let command = ["curl", "-s", "-4", "-o", "/dev/null", "-w", "%{time_total}", &url];
    let outcome = lab.run_with(&behind("rate: 1mbit, latency: 5ms", &command), &HOST);
    outcome.assert_code(0);
    // 1448 bytes of payload in each IP packet of 1500: 200 packets of 12 000 bits, and less than one of
    // headers of HTTP: 2.4 s at 1 Mbit/s.
    let text = outcome.stdout.lines().find_map(|line| line.split('|').next_back()).unwrap();
    let took: f64 = text.trim().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(took >= 2.4, "{took}");
    let report = report(&outcome);
    let down = &report["links"][1]["achieved"]["rate_busy_bit_per_s"];
    let rate = down.as_u64().unwrap();
    assert!((990_000..=1_010_000).contains(&rate), "{rate}");
}

#[test]
fn a_published_port_leads_through_the_link_and_a_taken_one_is_an_error_before_the_run() {
    let port = free_port();
    for user in users() {
        let lab = Lab::new(user);
        lab.write(
            "serve.py",
            "import socket\n\
             it = socket.create_server(('', 80))\n\
             one, _ = it.accept()\n\
             data = one.recv(100)\n\
             one.sendall(b'got ' + data)\n\
             one.shutdown(socket.SHUT_WR)\n\
             one.recv(1)\n",
        );
        let scenario = format!(
            "nodes: {{web: {{run: python3 serve.py, ready: {{listen: 80}}, publish: '{port}:80'}}, \
             internet: {{}}}}\n\
             routers: [r]\nlinks: [{{between: [web, r], latency: 20ms}}, {{between: [r, internet]}}]\n"
        );
        let scenario = scenario.replace("ready: {listen: 80}", "ready: 'tcp:80'");
        let mut live = lab.start_with(&scenario, &HOST);
        live.wait_for(&[("event", "program-ready"), ("node", "web")]);
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let began = std::time::Instant::now();
        client.write_all(b"hello").unwrap();
        let mut got = String::new();
        client.read_to_string(&mut got).unwrap();
        assert_eq!(got, "got hello");
        assert!(began.elapsed().as_millis() >= 40, "a round trip of the link");
        // The program waits for that, and the run for the program.
        drop(client);
        let outcome = live.finish();
        outcome.assert_code(0);
        assert_eq!(report(&outcome)["internet"]["flows"]["publish"], 1);
        // Taken by another program.
        let _taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let outcome = lab.run_with(&scenario, &HOST);
        outcome.assert_code(4);
        let at = format!("127.0.0.1:{port} of this machine");
        assert!(outcome.stderr.contains(&at), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("another program listens there"), "{}", outcome.stderr);
    }
}

#[test]
fn names_are_not_resolved_outside_without_permission_and_those_of_the_network_always() {
    let lines = "import socket, time\n\
        began = time.monotonic()\n\
        try:\n\
        \x20 socket.getaddrinfo('example.invalid', 80)\n\
        \x20 raise SystemExit('resolved')\n\
        except socket.gaierror: pass\n\
        assert time.monotonic() - began < 4, 'refused, not silent'\n\
        assert socket.gethostbyname('client') == '10.0.0.1'\n\
        assert socket.gethostbyname('internet') == '10.0.0.2'\n";
    for user in users() {
        let lab = Lab::new(user);
        let outcome = run_python(&lab, "latency: 1ms", lines, &HOST);
        outcome.assert_code(0);
        assert!(report(&outcome)["internet"]["refused"]["not_allowed"].as_u64().unwrap() > 0);
    }
}

#[test]
fn one_line_runs_a_command_behind_a_link() {
    if is_missing(&["curl"]) {
        return;
    }
    let server = Server::start(Behaviour::Page("one line".to_owned()));
    let url = format!("http://host:{}/", server.port());
    for user in users() {
        let lab = Lab::new(user);
        let words = ["link", "--preset", "3g", "--internet", "--allow-host", "--out", "run"];
        let words = [&words[..], &["--max-lateness", "5s", "--", "curl", "-s", &url]].concat();
        let output = lab.windtunnel(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "one line");
        // 3g has 100 ms each way: a handshake and a request are two round trips.
        let report = std::fs::read_to_string(lab.path().join("run/run.json")).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        assert!(report["elapsed_ns"].as_u64().unwrap() >= 200_000_000);
    }
}

#[test]
fn a_gateway_that_is_killed_makes_the_run_unfaithful() {
    let lab = Lab::new(users()[0]);
    let scenario = behind("latency: 1ms", &["sleep", "60"]);
    let mut live = lab.start_with(&scenario, &HOST);
    live.wait_for(&[("event", "program-started"), ("node", "client")]);
    let gateway = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "wt-gateway"
    };
    let pid = lab.processes().into_iter().find(gateway).expect("a gateway process");
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
    live.signal("INT");
    let outcome = live.finish();
    let report = report(&outcome);
    assert_eq!(report["verdict"]["faithful"], false);
    let why = report["verdict"]["unfaithful"].to_string();
    assert!(why.contains("the gateway to the machine's outside failed"), "{why}");
}

#[test]
fn garbage_does_not_stop_the_gateway() {
    if !is_root() {
        return missing("root, whose programs may send any frame");
    }
    let server = Server::start(Behaviour::Page("alive".to_owned()));
    let lines = format!(
        "import random, socket, time, urllib.request\n\
         raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n\
         raw.bind(('eth0', 0))\n\
         random.seed(7)\n\
         base = bytes.fromhex('0277740000010277740000000800450000280001000040060000 0a000001c0000201'\n\
         \x20 '1f900050000000010000000050020400 00000000'.replace(' ', ''))\n\
         for i in range(20000):\n\
         \x20 frame = bytearray(base + random.randbytes(random.randrange(0, 1400)))\n\
         \x20 for _ in range(random.randrange(0, 12)):\n\
         \x20   frame[random.randrange(12, min(len(frame), 74))] = random.randrange(256)\n\
         \x20 raw.send(frame[:random.randrange(14, len(frame) + 1)])\n\
         \x20 if i % 50 == 0: time.sleep(0.002)\n\
         page = urllib.request.urlopen('http://host:{}/').read()\n\
         assert page == b'alive', page\n",
        server.port()
    );
    let lab = Lab::new(super::support::User::Invoker);
    let words = python(&lines);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let scenario =
        behind("latency: 1ms", &words).replace("{client: {run", "{client: {user: root, run");
    let outcome = lab.run_with(&scenario, &HOST);
    // A busy machine's kernel may drop some of the flood, which the verdict says.
    let report = report(&outcome);
    assert_eq!(report["verdict"]["passed"], true, "{}", outcome.describe());
    let ignored = report["internet"]["ignored"].as_object().unwrap();
    assert!(!ignored.is_empty(), "{report}");
}

#[test]
fn a_browser_behind_3g_shows_a_page_of_the_machine() {
    if is_missing(&["chromium"]) || !is_root() {
        return;
    }
    let page = "<html><title>t</title><body><p id=it>seen through 3G</p></body></html>";
    let server = Server::start(Behaviour::Page(page.to_owned()));
    let url = format!("http://host:{}/", server.port());
    let lab = Lab::new(super::support::User::Invoker);
    let browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"];
    // Without --allow-internet nothing of the browser's own leaves the machine.
    let words = [&browser[..], &[&url]].concat();
    let scenario = behind("preset: 3g", &words);
    let outcome = lab.run_with(&scenario, &HOST);
    outcome.assert_code(0);
    assert!(outcome.stdout.contains("seen through 3G"), "{}", outcome.stdout);
}
