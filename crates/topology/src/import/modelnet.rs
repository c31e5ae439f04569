//! ModelNet's XML (Vahdat et al., OSDI 2002), as SPLAY and SplayNet use it: vertices, edges, specs.

use std::collections::BTreeMap;

use roxmltree::Node as Element;
use windtunnel_model::profile::QueueLimit;
use windtunnel_model::{Packets, Probability, Rate, Span};
use windtunnel_scenario::ScenarioMistake;

use super::decimal;
use super::input::{ImportSourceText, shorten};
use super::names::UniqueNameAllocator;
use super::options::ImportOptions;
use super::pair::{DirectedEdge, pair};
use super::xml::{self, elements};
use crate::topology::{
    LinkDirectionProperties, Topology, TopologyLink, TopologyNode, TopologyRouter,
};

/// Attributes of vertices, edges and specs that are understood.
const CARRIED: [&str; 10] = [
    "int_idx",
    "role",
    "int_src",
    "int_dst",
    "specs",
    "dbl_plr",
    "dbl_kbps",
    "int_delayms",
    "int_qlen",
    "dbl_delayms",
];

/// What an edge or its specs say.
#[derive(Debug, Clone, Copy, Default)]
struct Specs {
    loss: Option<Probability>,
    rate: Option<Rate>,
    latency: Option<Span>,
    queue: Option<u64>,
}

/// A vertex: its name in the scenario, and whether programs run there.
struct Vertices {
    names: Vec<String>,
    virtual_nodes: Vec<bool>,
    by_index: BTreeMap<String, usize>,
    namer: UniqueNameAllocator,
}

/// Virtual nodes become nodes, all other vertices routers.
pub(super) fn convert(
    input: &ImportSourceText<'_>,
    _: &ImportOptions,
) -> Result<Topology, ScenarioMistake> {
    let document = xml::parse(input)?;
    let root = document.root_element();
    if root.tag_name().name() != "topology" {
        return Err(xml::mistake(input, root, "ModelNet's XML begins with <topology>"));
    }
    let mut topology = Topology::default();
    let section = |name: &'static str| {
        elements(root).filter(move |node| node.tag_name().name() == name).flat_map(elements)
    };
    for other in elements(root) {
        let name = other.tag_name().name();
        if !["vertices", "edges", "specs"].contains(&name) {
            topology
                .notes
                .lose("Parts of the file that are not read", format!("<{}>", shorten(name)));
        }
    }
    let mut vertices = vertices(input, section("vertices"), &mut topology)?;
    let mut specs = BTreeMap::new();
    for element in section("specs") {
        specs.insert(element.tag_name().name().to_owned(), read(input, element)?);
        note_unread(element, &mut topology);
    }
    let mut edges = Vec::new();
    for element in section("edges") {
        let properties = properties(input, element, &specs)?;
        let end = |name| xml::required(input, element, name);
        let (source, target) = (end("int_src")?, end("int_dst")?);
        if source == target {
            // Nothing that leaves a vertex comes back to it without another one.
            let name = vertices.by_index.get(source).map(|at| vertices.names[*at].clone());
            let name = name.unwrap_or_else(|| shorten(source));
            topology.notes.lose("Edges from a vertex to itself", name);
            continue;
        }
        let mut end = |index| vertices.end(index, &mut topology);
        let (from, to) = (end(source), end(target));
        note_unread(element, &mut topology);
        edges.push(DirectedEdge::one_way([from, to], properties));
    }
    links(&mut vertices, edges, &mut topology);
    Ok(topology)
}

fn vertices<'d, 'i: 'd>(
    input: &ImportSourceText<'_>,
    elements: impl Iterator<Item = Element<'d, 'i>>,
    topology: &mut Topology,
) -> Result<Vertices, ScenarioMistake> {
    let mut vertices = Vertices {
        names: Vec::new(),
        virtual_nodes: Vec::new(),
        by_index: BTreeMap::new(),
        namer: UniqueNameAllocator::default(),
    };
    for element in elements {
        let index = xml::required(input, element, "int_idx")?;
        let role = xml::required(input, element, "role")?;
        let is_node = match role {
            "virtnode" => true,
            "gateway" | "stub" | "transit" => false,
            other => {
                let message =
                    format!("role: `{}` is not virtnode, gateway, stub or transit", shorten(other));
                return Err(xml::mistake(input, element, message));
            }
        };
        if vertices.by_index.contains_key(index) {
            let message = format!("a second vertex with int_idx {}", shorten(index));
            return Err(xml::mistake(input, element, message));
        }
        vertices.add(index, if is_node { "n" } else { "g" }, is_node);
        note_unread(element, topology);
    }
    Ok(vertices)
}

impl Vertices {
    fn add(&mut self, index: &str, letter: &str, is_node: bool) -> usize {
        let at = self.names.len();
        self.names.push(self.namer.take(&format!("{letter}-{index}"), letter));
        self.virtual_nodes.push(is_node);
        self.by_index.insert(index.to_owned(), at);
        at
    }

    /// The vertex with this index; one that is not declared becomes a router.
    fn end(&mut self, index: &str, topology: &mut Topology) -> usize {
        if let Some(at) = self.by_index.get(index) {
            return *at;
        }
        let at = self.add(index, "g", false);
        let text = "These vertices are not declared, and edges use them: they are routers";
        topology.notes.assume(text, self.names[at].clone());
        at
    }
}

fn read(input: &ImportSourceText<'_>, element: Element<'_, '_>) -> Result<Specs, ScenarioMistake> {
    let value = |name, needed| (name, needed);
    let (plr, probability) = value("dbl_plr", "a probability from 0 to 1");
    let (kbps, rate) = value("dbl_kbps", "a rate in kbit/s of more than zero");
    let milliseconds = |text: &str| decimal::scaled(text, 1_000_000).map(Span::from_nanos);
    let kilobits = |text: &str| decimal::scaled(text, 1_000).and_then(Rate::from_bits_per_second);
    let latency = xml::value(input, element, "int_delayms", "a time in ms", milliseconds)?;
    let exact = xml::value(input, element, "dbl_delayms", "a time in ms", milliseconds)?;
    Ok(Specs {
        loss: xml::value(input, element, plr, probability, decimal::probability)?,
        rate: xml::value(input, element, kbps, rate, kilobits)?,
        latency: latency.or(exact),
        queue: xml::value(input, element, "int_qlen", "a number of packets", |text| {
            text.trim().parse().ok()
        })?,
    })
}

/// The edge's own values before those of its specs.
fn properties(
    input: &ImportSourceText<'_>,
    element: Element<'_, '_>,
    specs: &BTreeMap<String, Specs>,
) -> Result<LinkDirectionProperties, ScenarioMistake> {
    let own = read(input, element)?;
    let common = match element.attribute("specs") {
        None => Specs::default(),
        Some(name) => *specs.get(name).ok_or_else(|| {
            let known = specs.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let message = format!("no specs are called `{}`; there are {known}", shorten(name));
            xml::mistake(input, element, message)
        })?,
    };
    Ok(LinkDirectionProperties {
        latency: own.latency.or(common.latency).unwrap_or_default(),
        loss: own.loss.or(common.loss).unwrap_or_default(),
        rate: own.rate.or(common.rate),
        queue: own.queue.or(common.queue).map(|packets| QueueLimit::Packets(Packets(packets))),
        ..LinkDirectionProperties::default()
    })
}

fn links(
    vertices: &mut Vertices,
    edges: Vec<DirectedEdge<LinkDirectionProperties>>,
    topology: &mut Topology,
) {
    let paired = pair(edges);
    let mut degrees = vec![0_usize; vertices.names.len()];
    for end in paired.iter().flat_map(|paired| paired.ends) {
        degrees[end] += 1;
    }
    let meetings = place(vertices, &degrees, topology);
    let mut own = std::mem::take(&mut topology.links);
    for paired in paired {
        let between = paired.ends.map(|end| meetings[end].clone());
        if paired.down.is_none() {
            let text = "These edges have none back: they go both ways with the same properties";
            topology.notes.assume(text, between.join("--"));
        }
        let down = paired.down.unwrap_or_else(|| paired.up.clone());
        let up = paired.up;
        topology.links.push(TopologyLink { between, up, down, ..TopologyLink::default() });
    }
    topology.links.append(&mut own);
}

/// Makes nodes and routers, and returns where each vertex's links end: at the node, at the router,
/// or, since ModelNet's paths may lead through a virtual node, at a router that its node is
/// attached to.
fn place(vertices: &mut Vertices, degrees: &[usize], topology: &mut Topology) -> Vec<String> {
    let mut meetings = vertices.names.clone();
    for (at, name) in vertices.names.iter().enumerate() {
        if !vertices.virtual_nodes[at] {
            topology.access.insert(name.clone(), Default::default());
            topology.routers.push(TopologyRouter { name: name.clone(), comment: None });
            continue;
        }
        topology.nodes.push(TopologyNode { name: name.clone(), ..TopologyNode::default() });
        if degrees[at] > 1 {
            let router = vertices.namer.take(&name.replacen("n-", "r-", 1), "r");
            let text = "Paths may lead through these virtual nodes: each has a router of its own, to which \
                        it is attached by a link without properties";
            topology.notes.assume(text, format!("{name} ({router})"));
            let between = [name.clone(), router.clone()];
            topology.links.push(TopologyLink { between, ..TopologyLink::default() });
            topology.routers.push(TopologyRouter { name: router.clone(), comment: None });
            meetings[at] = router;
        }
    }
    meetings
}

fn note_unread(element: Element<'_, '_>, topology: &mut Topology) {
    for attribute in element.attributes().filter(|a| !CARRIED.contains(&a.name())) {
        let name = attribute.name();
        match name {
            // The length of a cable: the delay is given separately. The number of a virtual node.
            "int_len" | "int_vn" => topology.notes.leave_out_once("Attributes", name),
            _ => topology.notes.lose_once("Attributes whose meaning is not known", shorten(name)),
        }
    }
}
