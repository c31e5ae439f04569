//! Addresses of services, as programs of replicas see them.

use windtunnel_model::Plan;
use windtunnel_model::id::{NodeId, RouterId};
use windtunnel_model::plan::{Replica, Service};
use windtunnel_routing::Routes;

use crate::Case;
use crate::support::{World, row, star};

pub(crate) const CASES: &[Case] = &[
    ("a program of a replica binds the service's addresses and finds its name", bind),
    ("what is sent from a service's UDP port comes from its address", sources),
    ("a replica with two links answers by the best one", two_links),
    ("a node becomes a replica while it runs", becomes),
];

fn with_service(mut plan: Plan, replicas: &[u32]) -> Plan {
    plan.services.push(Service {
        v4: Some("10.1.0.80".parse().unwrap()),
        v6: Some("fd00:1::80".parse().unwrap()),
        ports: ["80/tcp", "53/udp"].iter().map(|port| port.parse().unwrap()).collect(),
        at: vec![RouterId(0)],
        ..Service::new("www", replicas.iter().copied().map(NodeId))
    });
    plan
}

/// Where a UDP socket that is bound to a port only, or to an address as well, sends from.
fn source(world: &World, node: &str, from: (&str, u16), to: &str) -> String {
    let family = if to.contains(':') { "AF_INET6" } else { "AF_INET" };
    let (address, port) = from;
    let code = format!(
        "import socket; s = socket.socket(socket.{family}, socket.SOCK_DGRAM); \
         s.bind(('{address}', {port})); s.connect(('{to}', 9)); print(s.getsockname()[0])"
    );
    world.output(node, &format!("python3 -c \"{code}\"")).trim_end().to_owned()
}

fn bind() {
    let world = World::new(with_service(star(&["a", "b"]), &[0]));
    for (family, address) in [("AF_INET", "10.1.0.80"), ("AF_INET6", "fd00:1::80")] {
        let code = format!(
            "import socket; l = socket.create_server(('{address}', 80), \
             family=socket.{family}); c = socket.create_connection(('www', 80)) if \
             '{family}' == 'AF_INET' else socket.create_connection(('{address}', 80)); \
             print(c.getpeername()[0], l.accept()[0].getsockname()[0])"
        );
        let text = world.output("a", &format!("python3 -c \"{code}\""));
        assert_eq!(text, format!("{address} {address}\n"));
    }
    assert_eq!(world.output("a", "uname -n; cat /etc/hostname"), "a\na\n");
    let found = world.output("b", "getent ahosts www");
    assert!(found.contains("10.1.0.80") && found.contains("fd00:1::80"), "{found}");
    assert!(!world.output("b", "cat /proc/net/fib_trie").contains("|-- 10.1.0.80"));
    let settings =
        "cat /proc/sys/net/ipv4/conf/lo/rp_filter /proc/sys/net/ipv4/conf/eth0/rp_filter";
    assert_eq!(world.output("a", settings), "0\n0\n");
}

fn sources() {
    let world = World::new(with_service(star(&["a", "b"]), &[0]));
    for (any, own, service, peer) in [
        ("0.0.0.0", "10.0.0.1", "10.1.0.80", "10.0.0.2"),
        ("::", "fd00::1", "fd00:1::80", "fd00::2"),
    ] {
        assert_eq!(source(&world, "a", (any, 53), peer), service);
        assert_eq!(source(&world, "a", (any, 54), peer), own, "another port");
        assert_eq!(source(&world, "a", (own, 53), peer), own, "it has said so");
        assert_eq!(source(&world, "a", (service, 54), peer), service);
    }
    assert_eq!(source(&world, "b", ("0.0.0.0", 53), "10.0.0.1"), "10.0.0.2", "no replica");
}

fn two_links() {
    let mut plan = with_service(row(&["left", "middle", "right"]), &[1]);
    plan.services[0].at.clear();
    let world = World::new(plan);
    let leaves = |to: &str| {
        let words = format!("ip route get {to} ipproto udp sport 53");
        let text = world.output("middle", &words);
        let word = |key: &str| {
            let mut after = text.split_whitespace().skip_while(|word| *word != key);
            after.nth(1).expect("a word").to_owned()
        };
        (word("dev"), word("src"))
    };
    // As without a service (network.rs), but for the source.
    assert_eq!(leaves("10.0.0.1"), ("eth0".to_owned(), "10.1.0.80".to_owned()));
    assert_eq!(leaves("10.0.0.4"), ("eth1".to_owned(), "10.1.0.80".to_owned()));
    assert_eq!(leaves("fd00::4"), ("eth1".to_owned(), "fd00:1::80".to_owned()));
}

fn becomes() {
    let before = with_service(star(&["a", "b"]), &[0]);
    let world = World::new(before.clone());
    let routes = Routes::compute(&before);
    let mut after = before.clone();
    after.services[0].replicas.push(Replica { node: NodeId(1), weight: 1 });
    assert_eq!(source(&world, "b", ("0.0.0.0", 53), "10.0.0.1"), "10.0.0.2");
    world.node_set.change_services(&before, &after, &routes, NodeId(1)).unwrap();
    assert_eq!(source(&world, "b", ("0.0.0.0", 53), "10.0.0.1"), "10.1.0.80");
    assert_eq!(source(&world, "b", ("::", 53), "fd00::1"), "fd00:1::80");
    // Once more is no change, and no failure.
    world.node_set.change_services(&after, &after, &routes, NodeId(1)).unwrap();
    assert_eq!(source(&world, "b", ("10.1.0.80", 7), "10.0.0.1"), "10.1.0.80");
}
