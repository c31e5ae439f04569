//! Devices, addresses, routes and rules, from inside the node.

use std::net::IpAddr;

use crate::message::{NodeSetupFailure, NodeSetupStage};
use crate::net_config::NetConfig;
use crate::net_config::edit::RouteEdit;
use crate::net_config::prefixes::Prefix;
use crate::netlink::request::{self, DeviceAddress, Hop, RoutingPolicyRule};
use crate::netlink::{Netlink, NetlinkError};

pub(super) fn configure(
    net_config: &NetConfig,
    notes: &mut Vec<String>,
) -> Result<(), NodeSetupFailure> {
    add_main(net_config).map_err(|error| failure(&error))?;
    // Two kernel options that some small kernels lack, and that most experiments can do without.
    if let Err(error) = add_choices(net_config) {
        let NetlinkError { action, source } = error;
        let lost = match net_config.services.is_empty() {
            true => "what comes from an address need not leave by its device",
            false => "datagrams of a service may have another source address than the service's",
        };
        notes.push(format!("{lost}: cannot {action} ({source})"));
    }
    Ok(())
}

/// The devices, and the main table.
fn add_main(net_config: &NetConfig) -> Result<(), NetlinkError> {
    let mut netlink = Netlink::open()?;
    netlink.change(request::up(LOOPBACK), "take lo up".into())?;
    for device in &net_config.devices {
        let name = &device.name;
        netlink.change(request::up(device.index), format!("take {name} up"))?;
        for own in device.own() {
            let action = format!("add the address {} to {name}", own.address);
            netlink.create(request::address(device.index, own), action)?;
        }
    }
    add_services(&mut netlink, &net_config.services)?;
    add_routes(&mut netlink, net_config, |table| table == request::TABLE_MAIN)?;
    netlink.flush()
}

/// Addresses of services are the loopback device's: they are those of no link, and stay whatever
/// becomes of these. There is no detection of duplicates (RFC 4862, 5.4): all replicas have them.
fn add_services(netlink: &mut Netlink, addresses: &[IpAddr]) -> Result<(), NetlinkError> {
    for &address in addresses {
        let own = DeviceAddress { address, subnet: None };
        let action = format!("add the service's address {address} to lo");
        netlink.create(request::address(LOOPBACK, own), action)?;
    }
    Ok(())
}

/// The tables for single sources.
fn add_choices(net_config: &NetConfig) -> Result<(), NetlinkError> {
    let mut netlink = Netlink::open()?;
    add_routes(&mut netlink, net_config, |table| table != request::TABLE_MAIN)?;
    for rule in &net_config.rules {
        netlink.create(request::rule(*rule), about(*rule))?;
    }
    netlink.flush()
}

/// Changes routes and rules while programs run: first what is new, so that no packet finds nothing.
pub(super) fn edit(edit: &RouteEdit) -> Result<(), NetlinkError> {
    let mut netlink = Netlink::open()?;
    // Routes name them.
    add_services(&mut netlink, &edit.services)?;
    for (to, hop) in &edit.set {
        netlink.replace(request::route(*to, *hop), action(*to, *hop))?;
    }
    for rule in &edit.add_rules {
        netlink.create(request::rule(*rule), about(*rule))?;
    }
    for rule in &edit.remove_rules {
        netlink.change(request::no_rule(*rule), format!("remove what was to {}", about(*rule)))?;
    }
    for (to, hop) in &edit.remove {
        netlink.change(request::no_route(*to, *hop), format!("remove the route to {to}"))?;
    }
    netlink.flush()
}

fn add_routes(
    netlink: &mut Netlink,
    net_config: &NetConfig,
    wanted: impl Fn(u32) -> bool,
) -> Result<(), NetlinkError> {
    for (to, hop) in net_config.routes.iter().filter(|(_, hop)| wanted(hop.table)) {
        netlink.create(request::route(*to, *hop), action(*to, *hop))?;
    }
    Ok(())
}

fn action(to: Prefix, hop: Hop) -> String {
    match to.length {
        0 => format!("add a default route from {}", hop.source),
        _ => format!("add a route to {to} from {}", hop.source),
    }
}

fn about(rule: RoutingPolicyRule) -> String {
    match rule.udp_port {
        Some(port) => format!("add a rule for what comes from UDP port {port}"),
        None => format!("add a rule for what comes from {}", rule.from),
    }
}

fn failure(error: &NetlinkError) -> NodeSetupFailure {
    let NetlinkError { action, source } = error;
    NodeSetupFailure {
        stage: NodeSetupStage::Devices,
        message: format!("cannot {action}: {source}"),
        hint: None,
    }
}

/// The loopback device is the first of each namespace.
const LOOPBACK: u32 = 1;
