//! The engine and its nodes in virtual time; perhaps several engines, on machines with a wire
//! between them.

use std::net::SocketAddr;

use windtunnel_engine::{Engine, EngineLimits, FrameDeparture, NetworkPart};
use windtunnel_model::plan::EventAction;
use windtunnel_model::{Lane, NodeId, Plan, PortId, Time};
use windtunnel_scenario::ScenarioSource;
use windtunnel_wire::{build, vnet};

use crate::endpoint::{EndpointActions, SimulatedEndpoint};
use crate::wire::{InFlight, Wire};

/// `millis` milliseconds after the world began.
#[must_use]
pub fn ms(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// A frame that came to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameDelivery {
    /// When.
    pub at: Time,
    /// The frame.
    pub frame: Vec<u8>,
}

/// A network with its nodes. Each node uses its first interface.
#[derive(Debug)]
pub struct World {
    plan: Plan,
    /// By machine.
    engines: Vec<Engine>,
    /// By node: its machine.
    places: Vec<usize>,
    wire: Wire,
    now: Time,
    agents: Vec<SimulatedNode>,
}

#[derive(Debug, Default)]
struct SimulatedNode {
    endpoint: Option<Box<dyn SimulatedEndpoint>>,
    wake: Option<Time>,
    deliveries: Vec<FrameDelivery>,
}

impl World {
    /// A world of the network that `text` describes, with 1 GiB for packets.
    ///
    /// # Panics
    /// If the text has mistakes; they are the message.
    #[must_use]
    pub fn new(text: &str) -> Self {
        World::with_plan(plan_of(text), 1 << 30)
    }

    /// A world of a plan, with `packet_memory` bytes for packets.
    #[must_use]
    pub fn with_plan(plan: Plan, packet_memory: u64) -> Self {
        let places = vec![0; plan.nodes.len()];
        World::placed(plan, places, Wire::default(), packet_memory)
    }

    /// The same network on several machines, whose nodes `machines` names: each has an engine of
    /// the whole plan, and `wire` is between them.
    ///
    /// # Panics
    /// As [`World::new`], and if a node is on no machine.
    #[must_use]
    pub fn over(text: &str, machines: &[&[&str]], wire: Wire) -> Self {
        let plan = plan_of(text);
        let place = |node: &windtunnel_model::plan::Node| {
            let on = |machine: &&[&str]| machine.contains(&node.name.as_str());
            machines.iter().position(on).expect("every node has a machine")
        };
        let places = plan.nodes.iter().map(place).collect();
        World::placed(plan, places, wire, 1 << 30)
    }

    fn placed(plan: Plan, places: Vec<usize>, wire: Wire, packet_memory: u64) -> Self {
        let machines = places.iter().max().map_or(1, |last| last + 1);
        let engine = |machine: usize| {
            let here = places.iter().map(|place| *place == machine).collect();
            let number = u32::try_from(machine).unwrap_or(u32::MAX);
            Engine::of_part(&plan, EngineLimits { packet_memory }, &NetworkPart { number, here })
        };
        let engines = (0..machines).map(engine).collect();
        let agents = plan.nodes.iter().map(|_| SimulatedNode::default()).collect();
        World { plan, engines, places, wire, now: Time::ZERO, agents }
    }

    /// The engine, to read its counters; of several the first.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engines[0]
    }

    /// The engines of all machines.
    #[must_use]
    pub fn engines(&self) -> &[Engine] {
        &self.engines
    }

    /// The wire between the machines.
    #[must_use]
    pub fn wire(&self) -> &Wire {
        &self.wire
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
    pub fn attach(&mut self, node: &str, endpoint: impl SimulatedEndpoint + 'static) {
        let id = self.node(node);
        self.agents[id.index()].endpoint = Some(Box::new(endpoint));
        self.take_turn(id, |endpoint, turn| endpoint.on_wake(turn));
    }

    /// Goes to a time, for something to be done then.
    pub fn at(&mut self, time: Time) -> WorldInstant<'_> {
        self.run_until(time);
        WorldInstant { world: self }
    }

    /// Lets everything happen until `end`, that time included.
    pub fn run_until(&mut self, end: Time) {
        loop {
            let wakes = self.agents.iter().filter_map(|agent| agent.wake);
            let timeouts = self.engines.iter().filter_map(Engine::poll_timeout);
            let next = wakes.chain(timeouts).chain(self.wire.next()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.turn_to(next);
            self.wake_all();
        }
        self.turn_to(end);
    }

    /// A machine is lost now: its nodes fall silent, and the others forget its flows.
    pub fn lose(&mut self, machine: usize) {
        let part = u32::try_from(machine).unwrap_or(u32::MAX);
        for (agent, place) in self.agents.iter_mut().zip(&self.places) {
            if *place == machine {
                (agent.endpoint, agent.wake) = (None, None);
            }
        }
        for (index, engine) in self.engines.iter_mut().enumerate() {
            if index != machine {
                engine.forget_part(self.now, part);
            }
        }
        self.deliver_all();
    }

    /// The frames that came to a node.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn deliveries(&self, node: &str) -> &[FrameDelivery] {
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
        for engine in &self.engines {
            for lane in (0..self.plan.links.len() * 2).map(Lane::from_index) {
                let counters = engine.lane(lane);
                let made = counters.duplicated + counters.fragments - counters.fragmented;
                let gone = counters.delivered_packets + counters.dropped.total();
                let inside = engine.in_lane_packets(lane);
                let sum = gone + inside;
                assert_eq!(counters.offered_packets + made, sum, "{lane:?}: {counters:?}");
            }
        }
    }

    fn node(&self, name: &str) -> NodeId {
        self.plan.node_named(name).expect("the test names a node")
    }

    fn send(&mut self, node: NodeId, vnet: vnet::VirtioNetHeader, mut frame: Vec<u8>) {
        let port = self.plan.nodes[node.index()].interfaces[0].port;
        let engine = &mut self.engines[self.places[node.index()]];
        if let Some(express) = engine.handle_packet(self.now, port, vnet, &mut frame) {
            self.deliver(express.port, self.now, frame);
        }
    }

    fn turn_to(&mut self, time: Time) {
        self.now = self.now.max(time);
        self.engines.iter_mut().for_each(|engine| engine.handle_timeout(self.now));
        self.deliver_all();
        while let Some(packet) = self.wire.take(self.now) {
            match packet {
                InFlight::Frame { port, frame } => self.deliver(port, self.now, frame),
                InFlight::News { from, to, news } => {
                    self.engines[to].handle_flows(self.now, from, &news);
                }
            }
            self.deliver_all();
        }
    }

    fn deliver_all(&mut self) {
        for machine in 0..self.engines.len() {
            while let Some(departure) = self.engines[machine].poll_output() {
                let FrameDeparture { port, intended, frame, .. } = departure;
                let bytes = frame.to_vec();
                self.engines[machine].recycle(frame);
                if self.engines[machine].is_here(port) {
                    assert!(intended <= self.now, "given out before its time");
                    self.deliver(port, intended, bytes);
                } else {
                    self.wire.carry(self.now, intended, port, bytes);
                }
            }
            let news: Vec<_> = std::iter::from_fn(|| self.engines[machine].poll_flow()).collect();
            let others = (0..self.engines.len()).filter(|other| *other != machine);
            self.wire.announce(self.now, machine, others, &news);
        }
    }

    fn deliver(&mut self, port: PortId, at: Time, frame: Vec<u8>) {
        let owner = self.plan.ports().nth(port.index()).map(|(owner, _)| owner);
        let Some(owner) = owner else { return };
        self.take_turn(owner, |endpoint, turn| endpoint.on_frame(turn, &frame));
        self.agents[owner.index()].deliveries.push(FrameDelivery { at, frame });
    }

    fn wake_all(&mut self) {
        for index in 0..self.agents.len() {
            if self.agents[index].wake.is_some_and(|wake| wake <= self.now) {
                self.agents[index].wake = None;
                self.take_turn(NodeId::from_index(index), |endpoint, turn| endpoint.on_wake(turn));
            }
        }
    }

    fn take_turn(
        &mut self,
        id: NodeId,
        act: impl FnOnce(&mut dyn SimulatedEndpoint, &mut EndpointActions),
    ) {
        let agent = &mut self.agents[id.index()];
        let Some(mut endpoint) = agent.endpoint.take() else { return };
        let mut turn = EndpointActions { now: self.now, frames: Vec::new(), wake: agent.wake };
        act(endpoint.as_mut(), &mut turn);
        agent.wake = turn.wake;
        agent.endpoint = Some(endpoint);
        for frame in turn.frames {
            self.send(id, vnet::VirtioNetHeader::default(), frame);
        }
        self.deliver_all();
    }
}

/// A world at the time when something is to be done.
#[derive(Debug)]
pub struct WorldInstant<'a> {
    world: &'a mut World,
}

impl WorldInstant<'_> {
    /// A node sends a frame.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn send(self, node: &str, frame: Vec<u8>) {
        self.send_train(node, vnet::VirtioNetHeader::default(), frame);
    }

    /// A node sends a frame with a header, perhaps a train.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn send_train(self, node: &str, vnet: vnet::VirtioNetHeader, frame: Vec<u8>) {
        let id = self.world.node(node);
        self.world.send(id, vnet, frame);
        self.world.deliver_all();
    }

    /// The network changes.
    pub fn apply(self, action: &EventAction) {
        for engine in &mut self.world.engines {
            engine.apply(self.world.now, action);
        }
        self.world.deliver_all();
    }
}

fn plan_of(text: &str) -> Plan {
    let source = ScenarioSource {
        name: "world",
        text: text.as_bytes(),
        default_name: "world",
        base_dir: "/",
    };
    match windtunnel_scenario::load(&source) {
        Ok(loaded) => loaded.plan,
        Err(errors) => panic!("{errors}"),
    }
}
