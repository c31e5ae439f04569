//! Hole punching between two nodes behind two NATs, for all pairs of types (RFC 5128, 3.3 and 3.4).

use std::net::SocketAddr;

use windtunnel_wire::build;

use crate::support::{MS, Net};
use crate::{PLAIN, TYPES, load, seen};

/// Which pairs meet, without and with the prediction of the next port, as theory has it: only what
/// asks another endpoint first differs for a symmetric NAT, and its peer must let that in by its
/// address, or know the port.
fn meets(one: &str, other: &str, predicts: bool) -> bool {
    let strict = |name: &str| matches!(name, "port-restricted" | "symmetric");
    let symmetric = |name: &str| name == "symmetric";
    let hopeless = (symmetric(one) && strict(other)) || (symmetric(other) && strict(one));
    predicts || !hopeless
}

/// A network of two homes and a server: ports 0, 1 and 2.
struct World {
    net: Net,
    at: u64,
    seen: usize,
}

impl World {
    fn new(types: [&str; 2]) -> World {
        let [one, other] = types.map(|name| match name {
            "symmetric" => "{type: symmetric, port-allocation: sequential}".to_owned(),
            name => name.to_owned(),
        });
        let text = format!(
            "ipv6: false\nnodes: {{a: {{}}, b: {{}}, s: {{}}}}\nrouters:\n  one: {{nat: {one}}}\n  \
             other: {{nat: {other}}}\n  r:\nlinks:\n- {{between: [a, one]}}\n\
             - {{between: [b, other]}}\n- {{between: [one, r]}}\n- {{between: [other, r]}}\n\
             - {{between: [s, r]}}\n"
        );
        World { net: Net::new(load(&text)), at: 0, seen: 0 }
    }

    fn own(&self, node: usize) -> SocketAddr {
        SocketAddr::new(self.net.address(node), 5000)
    }

    /// Sends a datagram from a node.
    fn send(&mut self, node: usize, to: SocketAddr) {
        self.at += MS;
        let frame = build::udp(self.own(node), to, b"punch");
        self.net.send(self.at, u32::try_from(node).unwrap(), PLAIN, &frame);
        self.net.run_until(self.at);
    }

    /// What has come to a node since the last call, by its source; for others it is lost.
    fn came(&mut self) -> Vec<(u32, SocketAddr)> {
        let new = self.net.out[self.seen..].iter().map(|out| seen(out.port, &out.frame));
        let new = new.map(|(port, from, _)| (port, from)).collect();
        self.seen = self.net.out.len();
        new
    }

    /// The endpoint that the server sees.
    fn ask(&mut self, node: usize) -> SocketAddr {
        let server = SocketAddr::new(self.net.address(2), 3478);
        self.send(node, server);
        self.came()[0].1
    }
}

/// Whether both nodes got something of the other, by the procedure of RFC 5128, 3.3: both ask the
/// server for their external endpoints, exchange them, and send to these and to whatever answers.
fn punch(types: [&str; 2], predicts: bool) -> bool {
    let mut world = World::new(types);
    let mut peers = [1, 0].map(|node| world.ask(node));
    if predicts {
        for (peer, name) in peers.iter_mut().zip([types[1], types[0]]) {
            let next = u16::from(name == "symmetric");
            peer.set_port(peer.port() + next);
        }
    }
    let mut met = [false; 2];
    for _ in 0..4 {
        for node in [0, 1] {
            world.send(node, peers[node]);
        }
        for (port, from) in world.came() {
            let node = usize::try_from(port).unwrap();
            assert!(node < 2);
            met[node] = true;
            peers[node] = from;
        }
    }
    met == [true; 2]
}

#[test]
fn pairs_of_nats_meet_as_theory_says() {
    for one in TYPES {
        for other in TYPES {
            for predicts in [false, true] {
                let met = punch([one, other], predicts);
                assert_eq!(met, meets(one, other, predicts), "{one}, {other}, {predicts}");
            }
        }
    }
}

#[test]
fn thirteen_of_sixteen_pairs_meet_without_prediction() {
    let pairs = TYPES.iter().flat_map(|one| TYPES.iter().map(move |other| (one, other)));
    assert_eq!(pairs.filter(|(one, other)| meets(one, other, false)).count(), 13);
}

/// A NAT behind another one, and two homes behind one CGNAT that reach each other by its hairpin.
#[test]
fn nats_in_a_chain_translate_one_after_the_other() {
    let text = "ipv6: false\nnodes: {a: {}, b: {}, s: {}}\nrouters:\n\
                \x20 one: {nat: port-restricted}\n  other: {nat: port-restricted}\n\
                \x20 isp: {nat: full-cone, outside: r}\n  r:\nlinks:\n- {between: [a, one]}\n\
                - {between: [b, other]}\n- {between: [one, isp]}\n- {between: [other, isp]}\n\
                - {between: [isp, r]}\n- {between: [s, r]}\n";
    let mut world = World { net: Net::new(load(text)), at: 0, seen: 0 };
    let [a, b] = [0, 1].map(|node| world.ask(node));
    let isp = world.net.plan.routers[2].interfaces[2].v4.unwrap();
    assert_eq!((a.ip(), b.ip()), (isp.into(), isp.into()));
    assert_ne!(a.port(), b.port());
    // Each opens its own home's filter towards the other's external endpoint of the outer NAT.
    world.send(0, b);
    world.send(1, a);
    world.send(0, b);
    assert_eq!(world.came(), [(0, b), (1, a)]);
}
