//! Network graphs of Shadow: places where hosts are, and what lies between them.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::{Probability, Rate};
use windtunnel_scenario::ScenarioMistake;

use super::decimal;
use super::delay::{DelayDistribution, DelayJitterShape};
use super::graph::{Attribute, AttributedGraph, GraphEdge};
use super::input::{ImportSourceText, shorten};
use super::names::{self, UniqueNameAllocator};
use super::options::ImportOptions;
use super::pair::{DirectedEdge, connect};
use crate::topology::{ConversionReport, LinkDirectionProperties, Topology, TopologyRouter};

/// Attributes of nodes that are understood.
const OF_NODES: [&str; 4] = ["host_bandwidth_up", "host_bandwidth_down", "label", "id"];
/// Attributes of edges that are understood.
const OF_EDGES: [&str; 5] = ["latency", "jitter", "packet_loss", "label", "id"];
/// Attributes that describe.
const DESCRIPTIONS: [&str; 5] = ["country_code", "city_code", "type", "asn", "geocode"];

/// Whether a graph has what only Shadow's graphs have.
pub(super) fn is_shadow(graph: &AttributedGraph) -> bool {
    let any = |attributes: &BTreeMap<String, Attribute>, keys: &[&str]| {
        keys.iter().any(|key| attributes.contains_key(*key))
    };
    let hosts = ["host_bandwidth_up", "host_bandwidth_down"];
    graph.vertices.iter().any(|vertex| any(&vertex.attributes, &hosts))
        || graph.edges.iter().any(|edge| any(&edge.attributes, &["packet_loss"]))
}

/// Each node of the graph becomes a router whose hosts have the bandwidths of the node.
pub(super) fn convert(
    input: &ImportSourceText<'_>,
    graph: &AttributedGraph,
    options: &ImportOptions,
) -> Result<Topology, ScenarioMistake> {
    let mut topology = Topology::default();
    let mut namer = UniqueNameAllocator::default();
    for vertex in &graph.vertices {
        let name = namer.take(vertex.label(), "net");
        let rate = |key: &str| match vertex.attributes.get(key) {
            Some(text) => bandwidth(input, key, text).map(Some),
            None => Ok(None),
        };
        let up = LinkDirectionProperties {
            rate: rate("host_bandwidth_up")?,
            ..LinkDirectionProperties::default()
        };
        let down = LinkDirectionProperties {
            rate: rate("host_bandwidth_down")?,
            ..LinkDirectionProperties::default()
        };
        topology.access.insert(name.clone(), [up, down]);
        let comment = names::comment(vertex.label(), &name);
        topology.routers.push(TopologyRouter { name, comment });
    }
    topology.notes.assume(
        "Each node of the graph is a router, and its hosts' links have its bandwidths; which hosts there are \
         stands in Shadow's own YAML file: --hosts says how many to put at each",
        "",
    );
    topology
        .notes
        .assume("Routes have the least latency, as with Shadow's `use_shortest_path: true`", "");
    links(input, graph, options, &mut topology)?;
    unread(graph, &mut topology);
    Ok(topology)
}

fn links(
    input: &ImportSourceText<'_>,
    graph: &AttributedGraph,
    options: &ImportOptions,
    topology: &mut Topology,
) -> Result<(), ScenarioMistake> {
    let mut edges = Vec::new();
    for edge in &graph.edges {
        let names = edge.ends.map(|end| topology.routers[end].name.clone());
        let properties = properties(input, edge, &names.join("--"), &mut topology.notes)?;
        if edge.ends[0] == edge.ends[1] {
            within(graph, options, &names[0], &properties, topology);
        } else if edge.directed {
            edges.push(DirectedEdge::one_way(edge.ends, properties));
        } else {
            edges.push(DirectedEdge::both_ways(edge.ends, properties));
        }
    }
    let lonely = "Edges that go one way only: they go both ways with the same properties";
    connect(topology, edges, lonely);
    Ok(())
}

/// An edge from a node to itself is what lies between two hosts of that node. It is exact where the
/// graph has one node: all of it is put on the way from a host into the router.
fn within(
    graph: &AttributedGraph,
    options: &ImportOptions,
    name: &str,
    properties: &LinkDirectionProperties,
    topology: &mut Topology,
) {
    if graph.vertices.len() == 1 {
        if let Some([up, _]) = topology.access.get_mut(name) {
            *up = LinkDirectionProperties { rate: up.rate, ..properties.clone() };
        }
        let text = "What lies between two hosts is on the way from each host into the router, so that it counts \
                    once for each packet";
        topology.notes.assume(text, "");
    } else if options.hosts.is_some_and(|hosts| hosts > 1) {
        let text = "What lies between two hosts of one node (edges to itself)";
        topology.notes.lose(text, format!("{name} ({})", properties.latency));
    } else {
        let text = "Edges of nodes to themselves: they lie between two hosts of one node, and there is one host";
        topology.notes.leave_out(text, name);
    }
}

fn properties(
    input: &ImportSourceText<'_>,
    edge: &GraphEdge,
    name: &str,
    notes: &mut ConversionReport,
) -> Result<LinkDirectionProperties, ScenarioMistake> {
    let time = |key: &str| match edge.attributes.get(key) {
        Some(text) => {
            let needed = "a time with a unit such as \"50 ms\"";
            decimal::time(&text.text, None).ok_or_else(|| wrong(input, key, text, needed)).map(Some)
        }
        None => Ok(None),
    };
    let Some(mean) = time("latency")? else {
        return Err(input.mistake(edge.offset, 4, "this edge has no `latency`"));
    };
    let loss = match edge.attributes.get("packet_loss") {
        Some(text) => decimal::probability(&text.text)
            .ok_or_else(|| wrong(input, "packet_loss", text, "a probability from 0 to 1"))?,
        None => Probability::NEVER,
    };
    let delay = DelayDistribution {
        mean,
        jitter: time("jitter")?.unwrap_or_default(),
        shape: DelayJitterShape::Uniform,
    };
    if !delay.jitter.is_zero() {
        notes.assume("Jitter is carried over, and Shadow itself ignores it", "");
    }
    delay.note(notes, name);
    Ok(LinkDirectionProperties { loss, ..delay.properties() })
}

fn bandwidth(
    input: &ImportSourceText<'_>,
    key: &str,
    text: &Attribute,
) -> Result<Rate, ScenarioMistake> {
    let needed = "a rate of more than zero with a unit such as \"100 Mbit\"";
    decimal::rate(&text.text, None).ok_or_else(|| wrong(input, key, text, needed))
}

fn wrong(
    input: &ImportSourceText<'_>,
    key: &str,
    text: &Attribute,
    needed: &str,
) -> ScenarioMistake {
    let message = format!("{key}: `{}` is not {needed}", shorten(&text.text));
    input.mistake(text.offset, text.text.chars().count(), message)
}

fn unread(graph: &AttributedGraph, topology: &mut Topology) {
    let vertices = graph.vertices.iter().flat_map(|vertex| vertex.attributes.keys());
    let edges = graph.edges.iter().flat_map(|edge| edge.attributes.keys());
    let vertices = vertices.map(String::as_str).filter(|key| !OF_NODES.contains(key));
    let edges = edges.map(String::as_str).filter(|key| !OF_EDGES.contains(key));
    let keys: BTreeSet<&str> = vertices.chain(edges).collect();
    for key in graph.attributes.keys() {
        topology.notes.leave_out("Attributes of the whole graph", shorten(key));
    }
    for key in keys {
        match DESCRIPTIONS.contains(&key) {
            true => topology.notes.leave_out("Attributes", shorten(key)),
            false if key == "ip_address" => {
                topology.notes.lose("Addresses: hosts get theirs from the scenario's pool", "");
            }
            false => topology.notes.lose("Attributes whose meaning is not known", shorten(key)),
        }
    }
    for what in &graph.unread {
        topology.notes.lose("Parts of the file that are not read", what.clone());
    }
}
