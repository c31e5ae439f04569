//! The topology: vertices and links, without places.

use serde::Serialize;
use windtunnel_model::NetworkVertex as Place;
use windtunnel_model::{LinkProfile, Plan};

/// Nodes, routers and LANs, and the links between them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopologyMap {
    pub vertices: Vec<MapVertex>,
    pub links: Vec<MapLink>,
}

/// A node, router or LAN.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MapVertex {
    pub name: String,
    pub kind: VertexKind,
    /// The name in the file where several nodes were made of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub addresses: Vec<String>,
    /// Command lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
}

/// What a vertex is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VertexKind {
    Node,
    Router,
    Lan,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MapLink {
    pub name: String,
    /// Positions of vertices.
    pub ends: [usize; 2],
    /// Positions of lanes, up and down.
    pub lanes: [usize; 2],
    /// What was asked of both when the run began.
    pub asked: [LinkProfile; 2],
}

/// A link direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MapDirectedLink {
    pub link: String,
    /// `from-to`.
    pub direction: String,
    /// The position of a vertex.
    pub from: usize,
    pub to: usize,
}

impl TopologyMap {
    /// The map of a plan, and its lanes by lane index.
    #[must_use]
    pub fn of(plan: &Plan) -> (TopologyMap, Vec<MapDirectedLink>) {
        let nodes = plan.nodes.iter().map(node);
        let routers = plan.routers.iter().map(|router| {
            let addresses = router.interfaces.iter().flat_map(|it| addresses(it.v4, it.v6));
            plain(&router.name, VertexKind::Router, addresses.collect())
        });
        let lans = plan.lans.iter().map(|lan| plain(&lan.name, VertexKind::Lan, Vec::new()));
        let vertices: Vec<MapVertex> = nodes.chain(routers).chain(lans).collect();
        let (mut links, mut lanes) = (Vec::new(), Vec::new());
        for (index, link) in plan.links.iter().enumerate() {
            let ends = [0, 1].map(|end: usize| position(plan, link.ends[end].vertex));
            for (from, to) in [(ends[0], ends[1]), (ends[1], ends[0])] {
                let direction = format!("{}-{}", vertices[from].name, vertices[to].name);
                lanes.push(MapDirectedLink { link: link.name.clone(), direction, from, to });
            }
            links.push(MapLink {
                name: link.name.clone(),
                ends,
                lanes: [index * 2, index * 2 + 1],
                asked: link.profiles.clone(),
            });
        }
        (TopologyMap { vertices, links }, lanes)
    }
}

/// The position of a vertex: nodes come first, then routers, then LANs.
fn position(plan: &Plan, vertex: Place) -> usize {
    match vertex {
        Place::Node(node) => node.index(),
        Place::Router(router) => plan.nodes.len() + router.index(),
        Place::Lan(lan) => plan.nodes.len() + plan.routers.len() + lan.index(),
    }
}

fn node(node: &windtunnel_model::plan::Node) -> MapVertex {
    let of_all = node.interfaces.iter().flat_map(|interface| {
        let (v4, v6) = (interface.v4, interface.v6);
        addresses(v4, v6)
    });
    MapVertex {
        group: (node.group != node.name).then(|| node.group.clone()),
        programs: node.programs.iter().map(|program| program.argv.join(" ")).collect(),
        ..plain(&node.name, VertexKind::Node, of_all.collect())
    }
}

fn plain(name: &str, kind: VertexKind, addresses: Vec<String>) -> MapVertex {
    MapVertex { name: name.to_owned(), kind, group: None, addresses, programs: Vec::new() }
}

fn addresses(v4: Option<impl ToString>, v6: Option<impl ToString>) -> impl Iterator<Item = String> {
    v4.map(|it| it.to_string()).into_iter().chain(v6.map(|it| it.to_string()))
}
