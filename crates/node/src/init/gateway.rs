//! The inside of the machine's outside: what the gateway process needs in the network namespace of
//! its node, and cannot make itself, being outside.
//!
//! What comes by the device [`FAR`] is for the node itself, whatever its destination. So the
//! gateway process has the kernel's own TCP talk in the name of any address, by sending it the
//! packets through [`NEAR`]; what the kernel answers leaves by the node's own link.

use std::io;
use std::os::fd::OwnedFd;

use windtunnel_gateway::inside::{self, GatewayDevices};

use crate::net_config::{FAMILIES, FIRST_DEVICE};
use crate::netlink::{Netlink, NetlinkError, request};

/// Makes the devices and opens the sockets, which go to the gateway process at the other end of the
/// socket that came along, and serves that on a thread. What goes wrong is sent there, too.
pub(super) fn begin(descriptors: Vec<OwnedFd>, v6: bool) -> io::Result<()> {
    let socket = descriptors.into_iter().next().ok_or(io::ErrorKind::InvalidInput)?;
    let made = make_devices(v6)
        .map_err(|NetlinkError { action, source }| format!("cannot {action}: {source}"));
    let devices = GatewayDevices { link: FIRST_DEVICE, near: NEAR, far_mac: FAR_MAC };
    inside::begin(socket, made.map(|()| devices))
}

fn make_devices(v6: bool) -> Result<(), NetlinkError> {
    let mut netlink = Netlink::open()?;
    let ends = [(NEAR, "gw0"), (FAR, FAR_NAME)];
    netlink.create(request::own_pair(ends, FAR_MAC), "make the devices gw0 and gw1".into())?;
    netlink.change(request::up(FAR), format!("take {FAR_NAME} up"))?;
    // The rules name it.
    netlink.flush()?;
    for like in FAMILIES.into_iter().filter(|like| v6 || like.is_ipv4()) {
        let rule = request::rule_of_device(like, FAR_NAME, TABLE);
        netlink.create(rule, format!("add a rule for what comes by {FAR_NAME}"))?;
        let route = request::all_is_local(like, TABLE);
        netlink.create(route, "add a route by which all addresses are local".into())?;
    }
    netlink.flush()
}

/// Below those of links ([`FIRST_DEVICE`]), above those that kernel modules make.
const NEAR: u32 = 90;
const FAR: u32 = 91;
const FAR_NAME: &str = "gw1";
const FAR_MAC: [u8; 6] = [0x02, 0x77, 0x74, 0xff, 0xff, 0xfe];
/// Above those of services.
const TABLE: u32 = 3_000_000;
