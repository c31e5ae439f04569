//! The pairs of devices that join the nodes to the fabric.

use windtunnel_model::Plan;

use super::error::CreateError;
use super::steering::ReceivePacketSteering;
use super::{FABRIC_INDEX_FIRST, NodeSetOptions, RunningNode};
use crate::net_config::device_index;
use crate::netlink::request::{self, Veth};
use crate::netlink::{Netlink, NetlinkError};

/// Makes the devices of all nodes, the far end of each straight in its node's namespace. The devices of
/// a node have one processor, of which the nodes take turns. What is worth noting.
pub(super) fn make(
    plan: &Plan,
    nodes: &[RunningNode],
    options: &NodeSetOptions,
) -> Result<Option<String>, CreateError> {
    let (mut netlink, mut steering) = (Netlink::open()?, ReceivePacketSteering::new());
    let processors = steering.processors();
    // By processor, as what the kernel gives to new devices is written once for many of them.
    for number in 0..processors {
        let mut own = nodes.iter().skip(number).step_by(processors).peekable();
        if own.peek().is_none() {
            break;
        }
        steering.turn_to(number);
        for node in own {
            make_of(plan, node, options, &mut netlink)?;
        }
        netlink.flush()?;
    }
    Ok(steering.note())
}

fn make_of(
    plan: &Plan,
    made: &RunningNode,
    options: &NodeSetOptions,
    netlink: &mut Netlink,
) -> Result<(), NetlinkError> {
    let node = &plan.nodes[made.id.index()];
    for (number, interface) in node.interfaces.iter().enumerate() {
        let pair = Veth {
            fabric_name: format!("wt{}", interface.port.0),
            fabric_index: FABRIC_INDEX_FIRST + interface.port.0,
            node_name: &interface.name,
            node_index: device_index(number),
            node_pid: made.pid(),
            mac: interface.mac(),
            mtu: interface.mtu,
            offload: options.offload,
            on_lan: plan.lan_of(interface.link).is_some(),
        };
        let action = format!("make device {} of node {}", interface.name, node.name);
        netlink.create(request::veth(&pair), action)?;
    }
    Ok(())
}
