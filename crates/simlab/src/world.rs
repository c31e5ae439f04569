//! The engine and its nodes in virtual time.

use std::net::SocketAddr;

use windtunnel_engine::{Departure, Engine, Limits, NetworkChange};
use windtunnel_model::{Lane, NodeId, Plan, PortId, Time};
use windtunnel_scenario::Source;
use windtunnel_wire::{build, vnet};

use crate::endpoint::{Endpoint, Turn};

/// `millis` milliseconds after the world began.
#[must_use]
pub fn ms(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// A frame that came to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// When.
    pub at: Time,
    /// The frame.
    pub frame: Vec<u8>,
}

/// A network with its nodes. Each node uses its first interface.
#[derive(Debug)]
pub struct World {
    plan: Plan,
    engine: Engine,
    now: Time,
    agents: Vec<Agent>,
}

#[derive(Debug, Default)]
struct Agent {
    endpoint: Option<Box<dyn Endpoint>>,
    wake: Option<Time>,
    deliveries: Vec<Delivery>,
}

impl World {
    /// A world of the network that `text` describes, with 1 GiB for packets.
    ///
    /// # Panics
    /// If the text has mistakes; they are the message.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let source =
            Source { name: "world", text: text.as_bytes(), default_name: "world", base_dir: "/" };
        match windtunnel_scenario::load(&source) {
            Ok(loaded) => World::with_plan(loaded.plan, 1 << 30),
            Err(errors) => panic!("{errors}"),
        }
    }

    /// A world of a plan, with `packet_memory` bytes for packets.
    #[must_use]
    pub fn with_plan(plan: Plan, packet_memory: u64) -> Self {
        let engine = Engine::new(&plan, Limits { packet_memory });
        let agents = plan.nodes.iter().map(|_| Agent::default()).collect();
        World { plan, engine, now: Time::ZERO, agents }
    }

    /// The engine, to read its counters.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Puts an endpoint on a node; it starts at once.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn attach(&mut self, node: &str, endpoint: impl Endpoint + 'static) {
        let id = self.node(node);
        self.agents[id.index()].endpoint = Some(Box::new(endpoint));
        self.take_turn(id, |endpoint, turn| endpoint.on_wake(turn));
    }

    /// Goes to a time, for something to be done then.
    pub fn at(&mut self, time: Time) -> At<'_> {
        self.run_until(time);
        At { world: self }
    }

    /// Lets everything happen until `end`, that time included.
    pub fn run_until(&mut self, end: Time) {
        loop {
            let wakes = self.agents.iter().filter_map(|agent| agent.wake);
            let next = wakes.chain(self.engine.poll_timeout()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            self.engine.handle_timeout(self.now);
            self.deliver_all();
            self.wake_all();
        }
        self.now = end;
        self.engine.handle_timeout(end);
        self.deliver_all();
    }

    /// What came to a node.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn deliveries(&self, node: &str) -> &[Delivery] {
        &self.agents[self.node(node).index()].deliveries
    }

    /// A UDP packet from one node to another, port 7000 on both sides.
    ///
    /// # Panics
    /// If there is no such node, or it has no IPv4 address.
    #[must_use]
    pub fn udp(&self, from: &str, to: &str, payload: &[u8]) -> Vec<u8> {
        build::udp(self.socket(from), self.socket(to), payload)
    }

    /// The first IPv4 address of a node, with port 7000.
    ///
    /// # Panics
    /// If there is no such node, or it has no IPv4 address.
    #[must_use]
    pub fn socket(&self, node: &str) -> SocketAddr {
        let interface = &self.plan.nodes[self.node(node).index()].interfaces[0];
        let address = interface.v4.expect("simlab's networks have IPv4");
        SocketAddr::from((address, 7000))
    }

    /// The lane with a name such as `a-b`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn lane(&self, name: &str) -> Lane {
        let mut lanes = (0..self.plan.links.len() * 2).map(Lane::from_index);
        lanes.find(|lane| self.plan.lane_name(*lane) == name).expect("the test names a lane")
    }

    /// Checks that every packet offered to a lane is delivered, dropped with a reason, or inside.
    ///
    /// # Panics
    /// If one is missing.
    pub fn assert_conservation(&self) {
        for lane in (0..self.plan.links.len() * 2).map(Lane::from_index) {
            let counters = self.engine.lane(lane);
            let made = counters.duplicated + counters.fragments - counters.fragmented;
            let gone = counters.delivered_packets + counters.dropped.total();
            let inside = self.engine.in_lane_packets(lane);
            assert_eq!(counters.offered_packets + made, gone + inside, "{lane:?}: {counters:?}");
        }
    }

    fn node(&self, name: &str) -> NodeId {
        self.plan.node_named(name).expect("the test names a node")
    }

    fn send(&mut self, node: NodeId, vnet: vnet::Header, mut frame: Vec<u8>) {
        let port = self.plan.nodes[node.index()].interfaces[0].port;
        if let Some(express) = self.engine.handle_packet(self.now, port, vnet, &mut frame) {
            self.deliver(express.port, self.now, frame);
        }
    }

    fn deliver_all(&mut self) {
        while let Some(Departure { port, intended, frame, .. }) = self.engine.poll_output() {
            assert!(intended <= self.now, "given out before its time");
            let bytes = frame.to_vec();
            self.engine.recycle(frame);
            self.deliver(port, intended, bytes);
        }
    }

    fn deliver(&mut self, port: PortId, at: Time, frame: Vec<u8>) {
        let owner = self.plan.ports().nth(port.index()).map(|(owner, _)| owner);
        let Some(owner) = owner else { return };
        self.take_turn(owner, |endpoint, turn| endpoint.on_frame(turn, &frame));
        self.agents[owner.index()].deliveries.push(Delivery { at, frame });
    }

    fn wake_all(&mut self) {
        for index in 0..self.agents.len() {
            if self.agents[index].wake.is_some_and(|wake| wake <= self.now) {
                self.agents[index].wake = None;
                self.take_turn(NodeId::from_index(index), |endpoint, turn| endpoint.on_wake(turn));
            }
        }
    }

    fn take_turn(&mut self, id: NodeId, act: impl FnOnce(&mut dyn Endpoint, &mut Turn)) {
        let agent = &mut self.agents[id.index()];
        let Some(mut endpoint) = agent.endpoint.take() else { return };
        let mut turn = Turn { now: self.now, frames: Vec::new(), wake: agent.wake };
        act(endpoint.as_mut(), &mut turn);
        agent.wake = turn.wake;
        agent.endpoint = Some(endpoint);
        for frame in turn.frames {
            self.send(id, vnet::Header::default(), frame);
        }
        self.deliver_all();
    }
}

/// A world at the time when something is to be done.
#[derive(Debug)]
pub struct At<'a> {
    world: &'a mut World,
}

impl At<'_> {
    /// A node sends a frame.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn send(self, node: &str, frame: Vec<u8>) {
        self.send_train(node, vnet::Header::default(), frame);
    }

    /// A node sends a frame with a header, perhaps a train.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn send_train(self, node: &str, vnet: vnet::Header, frame: Vec<u8>) {
        let id = self.world.node(node);
        self.world.send(id, vnet, frame);
        self.world.deliver_all();
    }

    /// The network changes.
    pub fn apply(self, change: &NetworkChange<'_>) {
        self.world.engine.apply(self.world.now, change);
        self.world.deliver_all();
    }
}
