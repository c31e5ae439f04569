//! NATs and firewalls in the emulated network.

#![expect(clippy::unwrap_used, reason = "a test that cannot build its world has failed")]

mod errors;
mod firewall;
mod fragments;
mod golden;
mod laws;
mod pairs;
mod reach;
#[path = "../engine/support.rs"]
#[allow(dead_code, reason = "most of it is for the other tests of engines")]
mod support;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use windtunnel_model::{Plan, RouterId};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{build, checksum, vnet};

use crate::support::{MS, Net};

const PLAIN: vnet::VirtioNetHeader = vnet::VirtioNetHeader {
    flags: 0,
    gso_type: 0,
    hdr_len: 0,
    gso_size: 0,
    csum_start: 0,
    csum_offset: 0,
};

/// Inside.
const A: u32 = 0;
const B: u32 = 1;
/// Outside.
const S: u32 = 2;
const T: u32 = 3;

fn load(text: &str) -> Plan {
    let source = windtunnel_scenario::ScenarioSource {
        name: "nat.yaml",
        text: text.as_bytes(),
        default_name: "nat",
        base_dir: "/",
    };
    windtunnel_scenario::load(&source).unwrap_or_else(|errors| panic!("{errors}")).plan
}

/// Nodes a and b behind router `home`, which is what is given; s and t behind router r.
struct Home {
    net: Net,
    /// Time of the next packet.
    at: u64,
    /// Packets that have been looked at.
    seen: usize,
}

/// A packet that came out: where, and its ends.
type Seen = (u32, SocketAddr, SocketAddr);

impl Home {
    fn new(router: &str) -> Home {
        Home::with_links(router, "")
    }

    /// With these properties of the link between `home` and r.
    fn with_links(router: &str, outer: &str) -> Home {
        let text = format!(
            "ipv6: false\nnodes: {{a: {{}}, b: {{}}, s: {{}}, t: {{}}}}\n\
             routers:\n  home: {router}\n  r:\nlinks:\n\
             - {{between: [a, home]}}\n- {{between: [b, home]}}\n- {{between: [home, r]{outer}}}\n\
             - {{between: [s, r]}}\n- {{between: [t, r]}}\n"
        );
        Home { net: Net::new(load(&text)), at: 0, seen: 0 }
    }

    fn of_type(name: &str) -> Home {
        Home::new(&format!("{{nat: {name}}}"))
    }

    /// An endpoint of a node.
    fn end(&self, node: u32, port: u16) -> SocketAddr {
        SocketAddr::new(self.net.address(usize::try_from(node).unwrap()), port)
    }

    /// An endpoint of the NAT outside.
    fn external(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.router(2), port)
    }

    /// The address of an interface of `home`: towards a, b and r.
    fn router(&self, interface: usize) -> IpAddr {
        self.net.plan.routers[0].interfaces[interface].v4.unwrap().into()
    }

    fn wait(&mut self, ms: u64) {
        self.at += ms * MS;
        self.net.run_until(self.at);
    }

    /// Sends a frame; what came of it.
    fn send(&mut self, node: u32, frame: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.at += MS;
        self.net.send(self.at, node, PLAIN, frame);
        self.wait(1);
        self.new_frames()
    }

    fn new_frames(&mut self) -> Vec<(u32, Vec<u8>)> {
        let new = self.net.out[self.seen..].iter().map(|out| (out.port, out.frame.clone()));
        let new: Vec<_> = new.collect();
        self.seen = self.net.out.len();
        for (_, frame) in &new {
            assert!(checksum::verify(frame), "a good checksum");
        }
        new
    }

    /// Sends a datagram; where it came, and between which ends.
    fn udp(&mut self, node: u32, from: SocketAddr, to: SocketAddr) -> Option<Seen> {
        let frames = self.send(node, &build::udp(from, to, b"hello"));
        assert!(frames.len() <= 1);
        frames.first().map(|(port, frame)| seen(*port, frame))
    }

    /// The same of a TCP segment.
    fn tcp(&mut self, node: u32, from: SocketAddr, to: SocketAddr, flags: u8) -> Option<Seen> {
        let frames = self.send(node, &build::tcp(from, to, 1, flags, b""));
        assert!(frames.len() <= 1);
        frames.first().map(|(port, frame)| seen(*port, frame))
    }

    /// The external endpoint of what a sends to s.
    fn mapped(&mut self, port: u16, to: SocketAddr) -> SocketAddr {
        let from = self.end(A, port);
        let node = if to.ip() == self.end(S, 0).ip() { S } else { T };
        let (came, source, destination) = self.udp(A, from, to).expect("it gets outside");
        assert_eq!((came, destination), (node, to));
        assert_eq!(source.ip(), self.router(2));
        source
    }

    fn counters(&self) -> windtunnel_engine::RouterCounters {
        *self.net.engine.router(RouterId(0))
    }

    fn nat(&self) -> &windtunnel_engine::NetworkAddressTranslator {
        self.net.engine.nat(RouterId(0)).expect("the router has a NAT")
    }

    /// Mappings and sessions that there are.
    fn nat_held(&self) -> (usize, usize) {
        (self.nat().mappings_held(), self.nat().sessions_held())
    }
}

fn seen(port: u32, frame: &[u8]) -> Seen {
    let packet = ParsedPacket::parse(frame).unwrap();
    let (info, (from, to)) = (packet.info, packet.ports().unwrap_or((0, 0)));
    (port, SocketAddr::new(info.source, from), SocketAddr::new(info.destination, to))
}

fn v4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(v4) => v4,
        IpAddr::V6(_) => panic!("{address} is no IPv4 address"),
    }
}

const TYPES: [&str; 4] = ["full-cone", "address-restricted", "port-restricted", "symmetric"];
