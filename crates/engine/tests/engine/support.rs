//! Small plans, and a virtual clock around an engine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use windtunnel_engine::{
    Engine, EngineLimits, FrameDeparture, FrameOrigin, LaneCounters, RecordSettings, SenderClass,
};
use windtunnel_model::plan::{
    EventAction, LinkChange, LinkEnd, Node, NodeInterface, PartitionMode, Plan, Router,
    RouterInterface, RoutingMetric,
};
use windtunnel_model::record::EventRecord;
use windtunnel_model::{
    Lan, LanId, Lane, LinkDirection, LinkId, LinkPatch, LinkProfile, NetworkVertex, NodeId, PortId,
    RouterId, Span, Subnet, Time,
};
use windtunnel_wire::segment::{PacketTrain, write_range};
use windtunnel_wire::{build, vnet};

/// Builds a plan link by link. Ports are numbered node by node, so every node has to be complete
/// before its packets are sent.
pub(crate) struct Topology {
    plan: Plan,
}

impl Topology {
    pub(crate) fn new(seed: u64) -> Self {
        Topology {
            plan: Plan {
                name: "test".to_owned(),
                seed,
                routing: RoutingMetric::Hops.into(),
                ..Plan::default()
            },
        }
    }

    pub(crate) fn node(&mut self, name: &str) -> NetworkVertex {
        self.plan.nodes.push(Node {
            name: name.to_owned(),
            group: name.to_owned(),
            ..Node::default()
        });
        NetworkVertex::Node(NodeId::from_index(self.plan.nodes.len() - 1))
    }

    pub(crate) fn router(&mut self, name: &str) -> NetworkVertex {
        self.plan.routers.push(Router { name: name.to_owned(), interfaces: Vec::new() });
        NetworkVertex::Router(RouterId::from_index(self.plan.routers.len() - 1))
    }

    /// A LAN with the subnets 10.1.0.0/24 and fd00:1::/64, 10.2.0.0/24 and fd00:2::/64, and so on.
    pub(crate) fn lan(&mut self, name: &str) -> NetworkVertex {
        let number = u8::try_from(self.plan.lans.len() + 1).unwrap();
        let v6 = Ipv6Addr::new(0xfd00, number.into(), 0, 0, 0, 0, 0, 0);
        self.plan.lans.push(Lan {
            name: name.to_owned(),
            v4: Some(Subnet { network: Ipv4Addr::new(10, number, 0, 0).into(), prefix: 24 }),
            v6: Some(Subnet { network: v6.into(), prefix: 64 }),
            attachments: Vec::new(),
        });
        NetworkVertex::Lan(LanId::from_index(self.plan.lans.len() - 1))
    }

    pub(crate) fn link(&mut self, ends: [NetworkVertex; 2], profiles: [LinkProfile; 2]) -> LinkId {
        let id = LinkId::from_index(self.plan.links.len());
        let name =
            format!("{}--{}", self.plan.vertex_name(ends[0]), self.plan.vertex_name(ends[1]));
        let mtu = profiles[0].mtu.max(profiles[1].mtu);
        let ends = [0, 1].map(|side| {
            let lan = match ends[1 - side] {
                NetworkVertex::Lan(id) => Some(id),
                _ => None,
            };
            let interface = self.attach(ends[side], lan, id, LinkDirection::BOTH[side], mtu);
            LinkEnd { vertex: ends[side], interface }
        });
        self.plan.links.push(windtunnel_model::plan::Link { name, ends, profiles });
        id
    }

    pub(crate) fn build(mut self) -> Plan {
        let interfaces = self.plan.nodes.iter_mut().flat_map(|node| &mut node.interfaces);
        for (index, interface) in interfaces.enumerate() {
            interface.port = PortId::from_index(index);
        }
        self.plan
    }

    fn attach(
        &mut self,
        vertex: NetworkVertex,
        lan: Option<LanId>,
        link: LinkId,
        outward: LinkDirection,
        mtu: u32,
    ) -> u32 {
        let host = u8::try_from(link.0).unwrap();
        let side = u8::try_from(outward.index()).unwrap() + 1;
        let (v4, v6) = match lan {
            None => (
                Ipv4Addr::new(10, 0, host, side),
                Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, u16::from(host), u16::from(side)),
            ),
            Some(lan) => {
                let (lan, host) = (u8::try_from(lan.0).unwrap() + 1, host + 1);
                let v6 = Ipv6Addr::new(0xfd00, lan.into(), 0, 0, 0, 0, 0, host.into());
                (Ipv4Addr::new(10, lan, 0, host), v6)
            }
        };
        let (v4, v6) = (Some(v4), Some(v6));
        let count = match vertex {
            NetworkVertex::Node(id) => {
                let interfaces = &mut self.plan.nodes[id.index()].interfaces;
                interfaces.push(NodeInterface {
                    port: PortId(0),
                    name: format!("eth{}", interfaces.len()),
                    link,
                    outward,
                    v4,
                    v6,
                    mtu,
                });
                interfaces.len()
            }
            NetworkVertex::Router(id) => {
                let interfaces = &mut self.plan.routers[id.index()].interfaces;
                interfaces.push(RouterInterface { link, outward, v4, v6 });
                interfaces.len()
            }
            NetworkVertex::Lan(id) => {
                let attachments = &mut self.plan.lans[id.index()].attachments;
                attachments.push(Lane { link, direction: outward });
                attachments.len()
            }
        };
        u32::try_from(count - 1).unwrap()
    }
}

/// Two nodes and one link, with `profile` from port 0 to port 1.
pub(crate) fn pair(seed: u64, profile: LinkProfile) -> Plan {
    let mut plan = Topology::new(seed);
    let ends = [plan.node("a"), plan.node("b")];
    plan.link(ends, [profile, LinkProfile::default()]);
    plan.build()
}

/// Nodes a (port 0) and b (port 1) with a router between each two of `profiles`, which lie on the
/// way from a to b; the way back is without properties.
pub(crate) fn path(seed: u64, profiles: Vec<LinkProfile>) -> Plan {
    let mut plan = Topology::new(seed);
    let (a, b) = (plan.node("a"), plan.node("b"));
    let count = profiles.len();
    let mut at = a;
    for (index, profile) in profiles.into_iter().enumerate() {
        let to = if index + 1 == count { b } else { plan.router(&format!("r{}", index + 1)) };
        plan.link([at, to], [profile, LinkProfile::default()]);
        at = to;
    }
    plan.build()
}

/// Groups that are parted from each other.
pub(crate) fn partition(groups: Vec<Vec<NetworkVertex>>) -> EventAction {
    EventAction::Partition { groups, cut: PartitionMode::Between }
}

/// The direction in which a link of the two above has its properties.
pub(crate) fn up(link: u32) -> Lane {
    Lane { link: LinkId(link), direction: LinkDirection::Up }
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Out {
    pub(crate) port: u32,
    pub(crate) at: u64,
    pub(crate) frame: Vec<u8>,
    pub(crate) vnet: vnet::VirtioNetHeader,
}

/// An engine that is woken exactly when it asks for it.
pub(crate) struct Net {
    pub(crate) engine: Engine,
    pub(crate) plan: Plan,
    pub(crate) out: Vec<Out>,
    pub(crate) now: Time,
    /// What was recorded so far.
    pub(crate) records: Vec<EventRecord>,
}

impl Net {
    pub(crate) fn new(plan: Plan) -> Self {
        Net::with_memory(plan, 1 << 30)
    }

    pub(crate) fn with_memory(plan: Plan, packet_memory: u64) -> Self {
        let engine = Engine::new(&plan, EngineLimits { packet_memory });
        Net { engine, plan, out: Vec::new(), now: Time::ZERO, records: Vec::new() }
    }

    /// As `new`, with everything recorded.
    pub(crate) fn recorded(plan: Plan) -> Self {
        let mut net = Net::new(plan);
        net.engine.recorder_mut().record(Some(RecordSettings::default()));
        net
    }

    /// Sends a frame at `at` ns.
    pub(crate) fn send(&mut self, at: u64, port: u32, vnet: vnet::VirtioNetHeader, frame: &[u8]) {
        self.send_of(at, port, SenderClass::Flow, vnet, frame);
    }

    /// The same of a packet of which this is known of its sender.
    pub(crate) fn send_of(
        &mut self,
        at: u64,
        port: u32,
        sender: SenderClass,
        vnet: vnet::VirtioNetHeader,
        frame: &[u8],
    ) {
        self.run_until(at);
        let mut frame = frame.to_vec();
        let origin = FrameOrigin { port: PortId(port), sent: self.now, sender };
        if let Some(express) = self.engine.handle_packet_of(self.now, origin, vnet, &mut frame) {
            self.out.push(Out { port: express.port.0, at, frame, vnet: express.vnet });
        }
        self.drain();
    }

    /// Sends a UDP packet of `ip_len` bytes from a to b, whose payload begins with `tag`.
    pub(crate) fn send_udp(&mut self, at: u64, ip_len: usize, tag: u32) {
        let frame = self.udp(ip_len, tag);
        self.send(at, 0, vnet::VirtioNetHeader::default(), &frame);
    }

    /// A UDP packet from port 0's address to port 1's.
    pub(crate) fn udp(&self, ip_len: usize, tag: u32) -> Vec<u8> {
        let mut payload = vec![0; ip_len - 28];
        payload[..4].copy_from_slice(&tag.to_be_bytes());
        build::udp(self.socket(0), self.socket(1), &payload)
    }

    pub(crate) fn address(&self, port: usize) -> IpAddr {
        self.plan.ports().nth(port).unwrap().1.v4.unwrap().into()
    }

    pub(crate) fn socket(&self, port: usize) -> SocketAddr {
        SocketAddr::new(self.address(port), 7000)
    }

    pub(crate) fn run_until(&mut self, at: u64) {
        let until = Time::from_nanos(at);
        while let Some(due) = self.engine.poll_timeout().filter(|due| *due <= until) {
            // What came late may have been due before.
            self.now = self.now.max(due);
            self.engine.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
        self.engine.handle_timeout(until);
        self.drain();
    }

    /// Runs until nothing is left to happen.
    pub(crate) fn finish(&mut self) {
        while let Some(due) = self.engine.poll_timeout() {
            self.run_until(due.max(self.now).as_nanos());
        }
        assert_eq!(self.engine.in_flight_bytes(), 0, "every buffer has come back");
    }

    pub(crate) fn patch(&mut self, at: u64, lane: Lane, patch: LinkPatch) {
        let change = LinkChange { patches: vec![(lane, patch)], state: Vec::new() };
        self.apply(at, &EventAction::Link(change));
    }

    pub(crate) fn set_up(&mut self, at: u64, lane: Lane, up: bool) {
        let change = LinkChange { patches: Vec::new(), state: vec![(lane, up)] };
        self.apply(at, &EventAction::Link(change));
    }

    pub(crate) fn apply(&mut self, at: u64, action: &EventAction) {
        self.run_until(at);
        self.engine.apply(Time::from_nanos(at), action);
        self.drain();
    }

    pub(crate) fn lane(&self, link: u32) -> &LaneCounters {
        self.engine.lane(up(link))
    }

    /// The tags of the packets that came, and when.
    pub(crate) fn arrivals(&self) -> Vec<(u64, u32)> {
        let tag = |out: &Out| u32::from_be_bytes(out.frame[42..46].try_into().unwrap());
        self.out.iter().map(|out| (out.at, tag(out))).collect()
    }

    pub(crate) fn times(&self) -> Vec<u64> {
        self.out.iter().map(|out| out.at).collect()
    }

    pub(crate) fn tags(&self) -> Vec<u32> {
        self.arrivals().into_iter().map(|(_, tag)| tag).collect()
    }

    /// Checks the conservation of packets on every lane.
    pub(crate) fn check_conservation(&self) {
        for index in 0..self.plan.links.len() * 2 {
            let lane = Lane::from_index(index);
            let counters = self.engine.lane(lane);
            let inside = self.engine.in_lane_packets(lane);
            let made = counters.duplicated + counters.fragments - counters.fragmented;
            let gone = counters.delivered_packets + counters.dropped.total();
            assert_eq!(counters.offered_packets + made, gone + inside, "{lane:?}: {counters:?}");
        }
    }

    pub(crate) fn drain(&mut self) {
        if self.engine.recorder().has_records() {
            self.engine.recorder_mut().take(&mut self.records);
        }
        while let Some(departure) = self.engine.poll_output() {
            let FrameDeparture { port, intended, vnet, frame, .. } = departure;
            assert!(intended <= self.now, "given out before its time");
            self.out.push(Out {
                port: port.0,
                at: intended.as_nanos(),
                frame: frame.to_vec(),
                vnet,
            });
            self.engine.recycle(frame);
        }
    }
}

/// The packets of a train as frames of their own.
pub(crate) fn segments(
    frame: &[u8],
    vnet: &vnet::VirtioNetHeader,
) -> Vec<(Vec<u8>, vnet::VirtioNetHeader)> {
    let count = PacketTrain::new(frame, vnet).count;
    let one = |index| {
        let mut out = vec![0; frame.len()];
        let (len, header) = write_range(frame, vnet, index..index + 1, &mut out).unwrap();
        out.truncate(len);
        (out, header)
    };
    (0..count).map(one).collect()
}

/// No properties but a rate in bit/s, without overhead.
pub(crate) fn rated(bits_per_second: u64) -> LinkProfile {
    LinkProfile {
        rate: windtunnel_model::Rate::from_bits_per_second(bits_per_second),
        overhead: Some(windtunnel_model::profile::Overhead::NONE),
        ..LinkProfile::default()
    }
}

/// No properties but a latency.
pub(crate) fn delayed(latency: Span) -> LinkProfile {
    LinkProfile { latency, ..LinkProfile::default() }
}

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const US: u64 = 1_000;
