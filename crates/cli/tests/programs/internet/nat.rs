//! The machine's outside behind NATs: what each says of a flow is what the next one says.

use std::net::SocketAddr;

use serde_json::Value;

use super::super::support::{Lab, Outcome, any_user, is_missing};
use super::server::{Behaviour, Server, echo};
use super::{HOST, flows, report};

/// A page by curl, then ten datagrams from one socket to each of two servers.
fn client(page: &Server, echoes: [u16; 2]) -> String {
    format!(
        "import socket, subprocess\n\
         page = ['curl', '-sS', 'http://host:{}/']\n\
         print(subprocess.run(page, check=True, capture_output=True, text=True).stdout)\n\
         it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         it.bind(('', 6000))\n\
         it.settimeout(20)\n\
         for number in range(10):\n\
         \x20 for port in {echoes:?}:\n\
         \x20   asked = b'%d of %d' % (number, port)\n\
         \x20   it.sendto(asked, ('host', port))\n\
         \x20   assert it.recvfrom(100) == (asked, (socket.gethostbyname('host'), port))\n\
         print('answered')\n",
        page.port()
    )
}

/// A flow as a NAT or the gateway has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Flow {
    protocol: String,
    /// The end inside of it, and its name outside.
    ends: [SocketAddr; 2],
}

fn rows(table: &str) -> Vec<Vec<&str>> {
    table.lines().skip(1).map(|line| line.split(',').collect()).collect()
}

/// Mappings of a router, of which something has gone both ways.
fn mappings(outcome: &Outcome, router: &str) -> Vec<Flow> {
    let table = outcome.file("nat.csv");
    let rows = rows(&table).into_iter().filter(|row| row[0] == router);
    let flow = |row: Vec<&str>| {
        assert!(row[8] != "0" && row[9] != "0", "{table}");
        Flow { protocol: row[1].into(), ends: [row[2].parse().unwrap(), row[3].parse().unwrap()] }
    };
    rows.map(flow).collect()
}

/// The ends inside of what the gateway carried, once each, in order.
fn inside(outcome: &Outcome, protocol: &str) -> Vec<SocketAddr> {
    let table = flows(outcome);
    let rows = rows(&table).into_iter().filter(|row| row[2] == protocol);
    let mut ends: Vec<SocketAddr> = rows.map(|row| row[3].parse().unwrap()).collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

fn externals(mappings: &[Flow], protocol: &str) -> Vec<SocketAddr> {
    let wanted = mappings.iter().filter(|flow| flow.protocol == protocol);
    let mut ends: Vec<SocketAddr> = wanted.map(|flow| flow.ends[1]).collect();
    ends.sort_unstable();
    ends
}

fn router<'a>(report: &'a Value, name: &str) -> &'a Value {
    let routers = report["routers"].as_array().unwrap();
    routers.iter().find(|it| it["router"] == name).unwrap()
}

/// Runs the client behind routers, the last of which is linked with the outside.
#[track_caller]
fn run(lab: &Lab, routers: &str, chain: &[&str]) -> Outcome {
    let page = Server::start(Behaviour::Page("a page".to_owned()));
    lab.write("client.py", client(&page, [echo(), echo()]));
    let places = [&["phone"], chain, &["internet"]].concat();
    let links: String = places
        .windows(2)
        .map(|ends| format!("  - {{between: [{}, {}], latency: 2ms}}\n", ends[0], ends[1]))
        .collect();
    let outcome = lab.run_with(
        &format!(
            "ipv6: false\nrouters: {{{routers}}}\n\
             nodes: {{phone: {{run: python3 client.py}}, internet: {{}}}}\nlinks:\n{links}"
        ),
        &HOST,
    );
    outcome.assert_code(0);
    assert_eq!(outcome.output("phone"), "a page\nanswered\n", "{}", outcome.describe());
    assert_eq!(page.served(), 1);
    outcome.assert_conserved();
    outcome
}

/// The gateway has carried what comes out of the last NAT, and nothing is lost or refused.
#[track_caller]
fn assert_agree(outcome: &Outcome, last: &[Flow]) {
    let report = report(outcome);
    assert_eq!(report["verdict"]["faithful"], true, "{}", report["verdict"]);
    let internet = &report["internet"];
    assert_eq!(internet["lost"], serde_json::json!({}), "{internet}");
    assert_eq!(internet["refused"], serde_json::json!({}), "{internet}");
    for protocol in ["tcp", "udp"] {
        let external = externals(last, protocol);
        assert_eq!(inside(outcome, protocol), external, "{}", outcome.file("nat.csv"));
        assert_eq!(internet["flows"][protocol], external.len(), "{internet}");
    }
}

#[test]
fn a_node_behind_a_nat_reaches_the_machine_and_all_tables_agree() {
    if is_missing(&["python3", "curl"]) {
        return;
    }
    // One name outside for each end that datagrams go to, or one for all.
    for (kind, of_udp) in [("symmetric", 2), ("port-restricted", 1)] {
        for user in any_user() {
            let lab = Lab::new(user);
            let home = format!("home: {{nat: {kind}, outside: internet}}");
            let outcome = run(&lab, &home, &["home"]);
            let mappings = mappings(&outcome, "home");
            let count = |protocol| externals(&mappings, protocol).len();
            assert_eq!((count("tcp"), count("udp")), (1, of_udp), "{mappings:?}");
            assert_agree(&outcome, &mappings);
            let report = report(&outcome);
            let home = router(&report, "home");
            assert_eq!(home["nat"]["mappings_made"], 1 + of_udp, "{home}");
            assert_eq!(home["packets"]["no_mapping"], Value::Null, "{home}");
            assert_eq!(home["packets"]["filtered"], Value::Null, "{home}");
            lab.assert_nothing_left();
        }
    }
}

#[test]
fn a_node_behind_two_nats_reaches_the_machine_and_each_has_the_ends_of_the_one_before() {
    if is_missing(&["python3", "curl"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let routers = "home: {nat: port-restricted}, carrier: {nat: symmetric, outside: internet}";
        let outcome = run(&lab, routers, &["home", "carrier"]);
        let (home, carrier) = (mappings(&outcome, "home"), mappings(&outcome, "carrier"));
        assert_eq!((home.len(), carrier.len()), (2, 3), "{}", outcome.file("nat.csv"));
        for flow in &carrier {
            let before = |it: &&Flow| it.protocol == flow.protocol && it.ends[1] == flow.ends[0];
            assert!(home.iter().any(|it| before(&it)), "{flow:?} of {home:?}");
        }
        assert_agree(&outcome, &carrier);
    }
}
