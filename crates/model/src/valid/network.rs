//! Vertices, links, interfaces and how they name each other.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use crate::id::{LanId, Lane, LinkDirection, LinkId, NetworkVertex, NodeId, PortId, RouterId};
use crate::lan::{Lan, Subnet};
use crate::name;
use crate::plan::{Link, LinkEnd, NodeInterface, Plan};

use super::link;
use crate::message::{PlanValidationError, ensure, shown};

pub(super) fn validate(plan: &Plan) -> Result<(), PlanValidationError> {
    counts(plan)?;
    names(plan)?;
    for (index, link) in plan.links.iter().enumerate() {
        ends_exist(plan, LinkId::from_index(index), link)?;
    }
    for (index, node) in plan.nodes.iter().enumerate() {
        let vertex = NetworkVertex::Node(NodeId::from_index(index));
        for (position, interface) in node.interfaces.iter().enumerate() {
            let outward = Lane { link: interface.link, direction: interface.outward };
            is_attached(plan, vertex, position, outward)?;
            is_a_device(interface, position)?;
        }
    }
    for (index, router) in plan.routers.iter().enumerate() {
        let vertex = NetworkVertex::Router(RouterId::from_index(index));
        for (position, interface) in router.interfaces.iter().enumerate() {
            let outward = Lane { link: interface.link, direction: interface.outward };
            is_attached(plan, vertex, position, outward)?;
        }
    }
    for (index, lan) in plan.lans.iter().enumerate() {
        let vertex = NetworkVertex::Lan(LanId::from_index(index));
        for (position, lane) in lan.attachments.iter().enumerate() {
            is_attached(plan, vertex, position, *lane)?;
        }
        subnets(lan)?;
    }
    let dense = (0..).zip(plan.ports()).all(|(number, (_, it))| it.port == PortId(number));
    ensure(dense, || "the ports of nodes are not numbered one by one".to_owned())?;
    plan.links.iter().try_for_each(|it| link::validate(plan, it))
}

fn counts(plan: &Plan) -> Result<(), PlanValidationError> {
    let counts = [
        ("nodes", plan.nodes.len(), Plan::NODES_MAX),
        ("routers", plan.routers.len(), Plan::LINKS_MAX),
        ("LANs", plan.lans.len(), Plan::LINKS_MAX),
        ("links", plan.links.len(), Plan::LINKS_MAX),
    ];
    for (what, count, most) in counts {
        ensure(count <= most, || format!("{count} {what} are more than {most}"))?;
    }
    ensure(!plan.nodes.is_empty(), || "there is no node".to_owned())
}

fn names(plan: &Plan) -> Result<(), PlanValidationError> {
    let nodes = plan.nodes.iter().map(|node| (&node.name, "a node"));
    let groups = plan.nodes.iter().map(|node| (&node.group, "a group"));
    let routers = plan.routers.iter().map(|router| (&router.name, "a router"));
    let lans = plan.lans.iter().map(|lan| (&lan.name, "a LAN"));
    let vertices = nodes.chain(routers).chain(lans);
    for (text, what) in vertices.clone().chain(groups) {
        name::check_label(text, name::LABEL_LETTERS_MAX).map_err(|error| {
            PlanValidationError::new(format!("`{}` cannot name {what}: {error}", shown(text)))
        })?;
    }
    let links = plan.links.iter().map(|link| &link.name);
    for text in links.clone() {
        ensure(name::is_link(text, name::PLAN_LINK_LETTERS_MAX), || {
            format!("`{}` cannot name a link", shown(text))
        })?;
    }
    let reservations = plan.reservations.iter().map(|it| &it.name);
    let services = plan.services.iter().map(|it| &it.name);
    unique(vertices.map(|(text, _)| text).chain(reservations).chain(services))?;
    unique(links)
}

fn unique<'a>(names: impl Iterator<Item = &'a String>) -> Result<(), PlanValidationError> {
    let mut seen = BTreeSet::new();
    for text in names {
        ensure(seen.insert(text), || format!("`{text}` is there twice"))?;
    }
    Ok(())
}

/// Both ends of a link are vertices that have it there.
fn ends_exist(plan: &Plan, id: LinkId, link: &Link) -> Result<(), PlanValidationError> {
    for (end, direction) in link.ends.iter().zip(LinkDirection::BOTH) {
        let position = end.interface as usize;
        let attached = match end.vertex {
            NetworkVertex::Node(node) => {
                let node = plan.nodes.get(node.index());
                let at = node.and_then(|node| node.interfaces.get(position));
                at.map(|interface| (interface.link, interface.outward))
            }
            NetworkVertex::Router(router) => {
                let router = plan.routers.get(router.index());
                let at = router.and_then(|router| router.interfaces.get(position));
                at.map(|interface| (interface.link, interface.outward))
            }
            NetworkVertex::Lan(lan) => {
                let lan = plan.lans.get(lan.index());
                let at = lan.and_then(|lan| lan.attachments.get(position));
                at.map(|lane| (lane.link, lane.direction))
            }
        };
        ensure(attached == Some((id, direction)), || {
            format!("link `{}` has an end at nothing", link.name)
        })?;
    }
    Ok(())
}

/// An interface is at the end of its link that names it: where the lane begins that leads out of it.
fn is_attached(
    plan: &Plan,
    vertex: NetworkVertex,
    position: usize,
    outward: Lane,
) -> Result<(), PlanValidationError> {
    let link = plan.links.get(outward.link.index());
    let end = link.map(|link| link.ends[outward.direction.index()]);
    let interface = u32::try_from(position).unwrap_or(u32::MAX);
    ensure(end == Some(LinkEnd { vertex, interface }), || {
        format!(
            "interface {position} of `{}` is on a link that ends elsewhere",
            plan.vertex_name(vertex)
        )
    })
}

fn is_a_device(interface: &NodeInterface, position: usize) -> Result<(), PlanValidationError> {
    ensure(interface.name == format!("eth{position}"), || {
        format!("`{}` is not the name of interface {position}", shown(&interface.name))
    })?;
    link::is_mtu(interface.mtu)
}

fn subnets(lan: &Lan) -> Result<(), PlanValidationError> {
    let fits = |subnet: &Option<Subnet>, v4: bool, most: u8| {
        subnet.is_none_or(|it| it.network.is_ipv4() == v4 && (1..=most).contains(&it.prefix))
    };
    ensure(fits(&lan.v4, true, V4_PREFIX_MAX) && fits(&lan.v6, false, V6_PREFIX_MAX), || {
        format!("LAN `{}` has a subnet that is none", lan.name)
    })
}

/// The longest prefixes that leave room for two hosts.
const V4_PREFIX_MAX: u8 = 30;
const V6_PREFIX_MAX: u8 = 126;
