//! Network graphs of Shadow: places where hosts are, and what lies between them.

use windtunnel_model::{Probability, Rate, Span};
use windtunnel_scenario::Mistake;

use super::graph::{Attribute, Attributes, Edge, Graph};
use super::input::{Input, shorten};
use super::names::{self, Namer};
use super::pair::{OneWay, connect};
use super::{Options, decimal};
use crate::topology::{Link, Properties, Router, Topology};

/// Attributes of nodes and edges that are understood.
const CARRIED: [&str; 7] =
    ["host_bandwidth_up", "host_bandwidth_down", "latency", "jitter", "packet_loss", "label", "id"];
/// Attributes that describe.
const DESCRIPTIONS: [&str; 5] = ["country_code", "city_code", "type", "asn", "geocode"];

/// Whether a graph has what only Shadow's graphs have.
pub(super) fn is_shadow(graph: &Graph) -> bool {
    let any = |attributes: &Attributes, keys: &[&str]| {
        keys.iter().any(|key| attributes.contains_key(*key))
    };
    let hosts = ["host_bandwidth_up", "host_bandwidth_down"];
    graph.vertices.iter().any(|vertex| any(&vertex.attributes, &hosts))
        || graph.edges.iter().any(|edge| any(&edge.attributes, &["packet_loss"]))
}

/// Each node of the graph becomes a router whose hosts have the bandwidths of the node.
pub(super) fn convert(
    input: &Input<'_>,
    graph: &Graph,
    options: &Options,
) -> Result<Topology, Mistake> {
    let mut topology = Topology::default();
    let mut namer = Namer::default();
    for vertex in &graph.vertices {
        let name = namer.take(vertex.label(), "net");
        let rate = |key: &str| match vertex.attributes.get(key) {
            Some(text) => bandwidth(input, key, text).map(Some),
            None => Ok(None),
        };
        let up = Properties { rate: rate("host_bandwidth_up")?, ..Properties::default() };
        let down = Properties { rate: rate("host_bandwidth_down")?, ..Properties::default() };
        topology.access.insert(name.clone(), [up, down]);
        let comment = names::comment(vertex.label(), &name);
        topology.routers.push(Router { name, comment });
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
    input: &Input<'_>,
    graph: &Graph,
    options: &Options,
    topology: &mut Topology,
) -> Result<(), Mistake> {
    let mut directed = Vec::new();
    for edge in &graph.edges {
        let properties = properties(input, edge)?;
        if !properties.jitter.is_zero() {
            let text = "Jitter is uniform from zero to the file's value; Shadow itself ignores it";
            topology.notes.assume(text, "");
        }
        let names = edge.ends.map(|end| topology.routers[end].name.clone());
        if edge.ends[0] == edge.ends[1] {
            within(graph, options, &names[0], properties, topology);
        } else if edge.directed {
            directed.push(OneWay { from: edge.ends[0], to: edge.ends[1], properties });
        } else {
            let (up, down) = (properties, properties);
            topology.links.push(Link { between: names, up, down, ..Link::default() });
        }
    }
    let lonely = "Edges that go one way only: they go both ways with the same properties";
    connect(topology, directed, lonely);
    Ok(())
}

/// An edge from a node to itself is what lies between two hosts of that node. It is exact where the
/// graph has one node: all of it is put on the way from a host into the router.
fn within(
    graph: &Graph,
    options: &Options,
    name: &str,
    properties: Properties,
    topology: &mut Topology,
) {
    if graph.vertices.len() == 1 {
        if let Some([up, _]) = topology.access.get_mut(name) {
            *up = Properties { rate: up.rate, ..properties };
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

fn properties(input: &Input<'_>, edge: &Edge) -> Result<Properties, Mistake> {
    let time = |key: &str| match edge.attributes.get(key) {
        Some(text) => {
            let needed = "a time with a unit such as \"50 ms\"";
            decimal::time(&text.text, None).ok_or_else(|| wrong(input, key, text, needed)).map(Some)
        }
        None => Ok(None),
    };
    let Some(latency) = time("latency")? else {
        return Err(input.mistake(edge.offset, 4, "this edge has no `latency`"));
    };
    let loss = match edge.attributes.get("packet_loss") {
        Some(text) => decimal::probability(&text.text)
            .ok_or_else(|| wrong(input, "packet_loss", text, "a probability from 0 to 1"))?,
        None => Probability::NEVER,
    };
    let jitter: Span = time("jitter")?.unwrap_or_default();
    Ok(Properties { latency, jitter, loss, ..Properties::default() })
}

fn bandwidth(input: &Input<'_>, key: &str, text: &Attribute) -> Result<Rate, Mistake> {
    let needed = "a rate of more than zero with a unit such as \"100 Mbit\"";
    decimal::rate(&text.text, None).ok_or_else(|| wrong(input, key, text, needed))
}

fn wrong(input: &Input<'_>, key: &str, text: &Attribute, needed: &str) -> Mistake {
    let message = format!("{key}: `{}` is not {needed}", shorten(&text.text));
    input.mistake(text.offset, text.text.chars().count(), message)
}

fn unread(graph: &Graph, topology: &mut Topology) {
    let vertices = graph.vertices.iter().map(|vertex| &vertex.attributes);
    let all = vertices.chain(graph.edges.iter().map(|edge| &edge.attributes));
    let mut keys: Vec<&str> =
        all.flat_map(|attributes| attributes.keys().map(String::as_str)).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys.into_iter().filter(|key| !CARRIED.contains(key)) {
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
