//! A device of a node, and the LAN that it is attached to.

use std::net::{IpAddr, Ipv6Addr};

use windtunnel_model::id::LanId;
use windtunnel_model::plan::NodeInterface;
use windtunnel_model::{Plan, Subnet};

use super::FAMILIES;
use super::routes::NodeEgressRoutes;
use crate::netlink::request::{DeviceAddress, RouteNextHop};

/// The node's end of one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) addresses: Vec<IpAddr>,
    /// The LAN that it is on.
    pub(super) lan: Option<LanConfig>,
}

/// What a device on a LAN has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LanConfig {
    pub(super) subnets: Vec<Subnet>,
    /// With IPv6: the address that is valid on this LAN only.
    pub(super) link_local: Option<Ipv6Addr>,
    /// The gateway out of it, by family.
    pub(super) gateways: [Option<IpAddr>; 2],
}

impl Device {
    /// Its addresses with their subnets.
    pub(crate) fn own(&self) -> impl Iterator<Item = DeviceAddress> {
        let subnet = |address: IpAddr| {
            let lan = self.lan.as_ref()?;
            lan.subnets.iter().copied().find(|subnet| subnet.contains(address))
        };
        let own = self
            .addresses
            .iter()
            .map(move |&address| DeviceAddress { address, subnet: subnet(address) });
        let local = self.lan.as_ref().and_then(|lan| lan.link_local);
        own.chain(local.map(|address| {
            let network = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0).into();
            DeviceAddress { address: address.into(), subnet: Some(Subnet { network, prefix: 64 }) }
        }))
    }

    /// The vertex there that forwards to other networks; none on a LAN that leads nowhere.
    pub(super) fn usual(&self, like: IpAddr) -> RouteNextHop {
        match &self.lan {
            None => RouteNextHop::Anyone,
            Some(lan) => lan.gateways[usize::from(like.is_ipv6())]
                .map_or(RouteNextHop::Owner, RouteNextHop::Gateway),
        }
    }
}

impl LanConfig {
    /// Whether an address is of the LAN's subnets.
    pub(super) fn holds(&self, address: IpAddr) -> bool {
        self.subnets.iter().any(|subnet| subnet.contains(address))
    }
}

pub(super) fn side(
    plan: &Plan,
    exits: &NodeEgressRoutes<'_>,
    interface: &NodeInterface,
    id: LanId,
) -> LanConfig {
    let lan = &plan.lans[id.index()];
    let has = |subnet: &Subnet| interface.addresses().any(|address| subnet.contains(address));
    LanConfig {
        subnets: [lan.v4, lan.v6].into_iter().flatten().filter(has).collect(),
        link_local: interface.v6.map(|_| link_local(interface.mac())),
        gateways: FAMILIES.map(|like| exits.way_out(id, like)),
    }
}

/// The address that a device gives itself (RFC 4291, 2.5.6 and appendix A).
fn link_local([a, b, c, d, e, f]: [u8; 6]) -> Ipv6Addr {
    let pair = u16::from_be_bytes;
    let middle = [pair([c, 0xff]), pair([0xfe, d])];
    Ipv6Addr::new(0xfe80, 0, 0, 0, pair([a ^ 2, b]), middle[0], middle[1], pair([e, f]))
}
