//! What the gateway process knows from the fork.

use std::collections::BTreeSet;
use std::net::IpAddr;

use windtunnel_model::Plan;
use windtunnel_model::plan::{InternetAccess, PortPublication};

/// What the gateway process knows from the fork.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatewaySettings {
    /// Whether anything but the machine's loopback may be reached.
    pub allow_internet: bool,
    /// Whether the machine's loopback may be reached, by its name `host`.
    pub allow_host: bool,
    /// What the file says of the outside.
    pub internet: InternetAccess,
    /// The node's own addresses.
    pub own: Vec<IpAddr>,
    /// Addresses of the network that no packet for the outside can mean.
    pub inside: BTreeSet<IpAddr>,
    /// The Ethernet address of its link.
    pub mac: [u8; 6],
    /// The bytes of an IP packet that its link takes.
    pub mtu: u32,
    pub published: Vec<PublishedNodePort>,
}

/// A port of the machine that leads to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedNodePort {
    /// The name of the node.
    pub node: String,
    pub publish: PortPublication,
    /// The node's address.
    pub to: IpAddr,
}

impl GatewaySettings {
    /// Those of a plan; `None`: nothing stands for the machine's outside.
    #[must_use]
    pub fn of(plan: &Plan, allow_internet: bool, allow_host: bool) -> Option<GatewaySettings> {
        let node = &plan.nodes[plan.internet()?.index()];
        let interface = node.interfaces.first()?;
        let nodes = plan.nodes.iter().flat_map(|node| &node.interfaces);
        let routers = plan.routers.iter().flat_map(|router| &router.interfaces);
        let v4 = nodes.clone().map(|it| it.v4).chain(routers.clone().map(|it| it.v4));
        let v6 = nodes.map(|it| it.v6).chain(routers.map(|it| it.v6));
        let v4 = v4.chain(plan.services.iter().map(|service| service.v4));
        let v6 = v6.chain(plan.services.iter().map(|service| service.v6));
        let v4 = v4.flatten().map(IpAddr::V4);
        let published = plan.published().filter_map(|(id, publish)| {
            let node = &plan.nodes[id.index()];
            let to = node.interfaces.first()?.addresses().next()?;
            Some(PublishedNodePort { node: node.name.clone(), publish: *publish, to })
        });
        Some(GatewaySettings {
            allow_internet,
            allow_host,
            internet: node.internet.clone()?,
            own: interface.addresses().collect(),
            inside: v4.chain(v6.flatten().map(IpAddr::V6)).collect(),
            mac: interface.mac(),
            mtu: interface.mtu,
            published: published.collect(),
        })
    }

    /// The node's own address of the version of `like`.
    pub(crate) fn own_like(&self, like: IpAddr) -> Option<IpAddr> {
        self.own.iter().copied().find(|own| own.is_ipv4() == like.is_ipv4())
    }
}
