//! The names of flows between machines: [`FlowKey`] says how they are made.

use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::flow::FlowKey;
use windtunnel_model::plan::Plan;
use windtunnel_model::{NodeId, PortId, RouterId};
use windtunnel_routing::RouteDestination;

use crate::network;

/// What names are made of, from the plan: the same on every machine.
#[derive(Debug)]
pub(crate) struct FlowKeyCodec {
    /// By node: its ports.
    ports: Vec<Vec<PortId>>,
    /// By port: its node, and which of its ports it is.
    owners: Vec<(NodeId, usize)>,
    routers: usize,
    /// How many classes of flows routes distinguish.
    classes: u64,
}

/// From where to where a flow goes, and what chooses among equal paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowRoute {
    pub(crate) port: PortId,
    pub(crate) target: RouteDestination,
    pub(crate) class: u64,
}

impl FlowKeyCodec {
    pub(crate) fn new(plan: &Plan) -> Self {
        let ports_of = |node: &windtunnel_model::plan::Node| {
            node.interfaces.iter().map(|interface| interface.port).collect()
        };
        let ports: Vec<Vec<PortId>> = plan.nodes.iter().map(ports_of).collect();
        let mut owners = vec![(NodeId(0), 0); plan.ports().count()];
        for (node, list) in ports.iter().enumerate() {
            for (index, port) in list.iter().enumerate() {
                owners[port.index()] = (NodeId::from_index(node), index);
            }
        }
        let classes = if plan.routing.ecmp { network::CLASSES } else { 1 };
        FlowKeyCodec { ports, owners, routers: plan.routers.len(), classes }
    }

    /// The route of a flow with this hash.
    pub(crate) fn route(&self, port: PortId, target: RouteDestination, hash: u64) -> FlowRoute {
        FlowRoute { port, target, class: hash % self.classes }
    }

    /// The name of the flow on `route` with this serial number; `None` where there are too many.
    pub(crate) fn name(&self, route: &FlowRoute, serial: u64) -> Option<FlowKey> {
        let (source, interface) = self.owners[route.port.index()];
        let (destination, place) = match route.target {
            RouteDestination::Port(port) => self.owners[port.index()],
            RouteDestination::Router(router) => (source, self.interfaces(source) + router.index()),
            RouteDestination::Lan(_) => return None,
        };
        let number = serial.checked_mul(self.classes)?.checked_add(route.class)?;
        let number = then(number, self.places(source, destination), place)?;
        let number = then(number, self.interfaces(source), interface)?;
        Some(FlowKey { source, destination, number: u32::try_from(number).ok()? })
    }

    /// The route of a flow, by its name; `None` where no plan gives such a name.
    pub(crate) fn read(&self, key: &FlowKey) -> Option<FlowRoute> {
        let own = self.ports.get(key.source.index())?;
        let aimed = self.ports.get(key.destination.index())?;
        let (number, interface) = last(u64::from(key.number), own.len())?;
        let (number, place) = last(number, self.places(key.source, key.destination))?;
        let target = match aimed.get(place) {
            Some(port) => RouteDestination::Port(*port),
            None => RouteDestination::Router(RouterId::from_index(place - aimed.len())),
        };
        Some(FlowRoute { port: own[interface], target, class: number % self.classes })
    }

    fn interfaces(&self, node: NodeId) -> usize {
        self.ports[node.index()].len()
    }

    /// How many places a flow of `source` that is named after `destination` may be aimed at.
    fn places(&self, source: NodeId, destination: NodeId) -> usize {
        let routers = if source == destination { self.routers } else { 0 };
        self.interfaces(destination) + routers
    }
}

/// One more digit, of so many.
fn then(number: u64, radix: usize, digit: usize) -> Option<u64> {
    number.checked_mul(u64::try_from(radix).ok()?)?.checked_add(u64::try_from(digit).ok()?)
}

/// The number without its last digit, of so many, and that digit.
fn last(number: u64, radix: usize) -> Option<(u64, usize)> {
    let radix = u64::try_from(radix).ok().filter(|radix| *radix > 0)?;
    Some((number / radix, usize::try_from(number % radix).ok()?))
}
