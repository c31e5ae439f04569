//! Graphs of places, as of the Internet Topology Zoo (Knight, Nguyen, Falkner, Bowden, Roughan
//! 2011).

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::{Rate, Span};
use windtunnel_scenario::ScenarioMistake;

use super::geography::Coordinates;
use super::graph::{AttributedGraph, GraphEdge, GraphVertex};
use super::input::{ImportSourceText, shorten};
use super::names::{self, UniqueNameAllocator};
use super::options::ImportOptions;
use super::pair::{DirectedEdge, connect};
use super::{decimal, units};
use crate::topology::{ConversionReport, LinkDirectionProperties, Topology, TopologyRouter};

/// Attributes that describe and change nothing that a packet would notice.
const DESCRIPTIONS: [&str; 20] = [
    "id",
    "key",
    "label",
    "type",
    "Country",
    "Internal",
    "geocode_append",
    "geocode_country",
    "geocode_id",
    "hyperedge",
    "doubted",
    "LinkLabel",
    "LinkType",
    "LinkNote",
    "LinkStatus",
    "LinkSpeedUnits",
    "name",
    "comment",
    "asn",
    "Network",
];
/// Attributes of vertices that are carried.
const CARRIED: [&str; 3] = ["label", "Latitude", "Longitude"];
/// Of attributes that would be rates or latencies.
const NO_UNIT: &str = "Numbers without a unit that is known: write it behind the number or into the attribute's \
                       name, as in `bandwidth_mbps`";
/// Attributes of the whole graph that stand in the file's head.
const HEAD: [&str; 5] = ["Network", "GeoLocation", "Source", "NetworkDate", "Note"];

/// Each vertex becomes a router, each edge a link.
pub(super) fn convert(
    input: &ImportSourceText<'_>,
    graph: &AttributedGraph,
    options: &ImportOptions,
) -> Result<Topology, ScenarioMistake> {
    let mut topology = Topology::default();
    let label = ["Network", "label"].iter().find_map(|key| graph.attributes.get(*key));
    if let Some(label) = label.filter(|label| !label.text.trim().is_empty()) {
        topology.name = names::experiment(&label.text);
    }
    for key in HEAD {
        let text = graph.attributes.get(key).map(|attribute| attribute.text.trim());
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            topology.about.push(format!("{key}: {text}"));
        }
    }
    let mut namer = UniqueNameAllocator::default();
    let mut places = Vec::new();
    for vertex in &graph.vertices {
        // A hyperedge joins several places: it is not a place itself, and has no nodes.
        let hyperedge =
            vertex.attributes.get("hyperedge").is_some_and(|text| text.text.trim() == "1");
        let kind = if hyperedge { "hyperedge" } else { "pop" };
        let name = namer.take(vertex.label(), kind);
        places.push(coordinates(input, vertex)?);
        if !hyperedge {
            topology.access.insert(name.clone(), Default::default());
        }
        let comment = names::comment(vertex.label(), &name);
        topology.routers.push(TopologyRouter { name, comment });
    }
    topology.notes.assume(
        "Each place is a router, and has a node of its own by a link without properties",
        "",
    );
    let edges = ZooLinkBuilder { input, graph, places: &places, default: options.latency };
    let read = edges.links(&mut topology)?;
    for (text, item) in &graph.assumed {
        topology.notes.assume(text, item.clone());
    }
    unread(graph, &read, &mut topology.notes);
    Ok(topology)
}

fn coordinates(
    input: &ImportSourceText<'_>,
    vertex: &GraphVertex,
) -> Result<Option<Coordinates>, ScenarioMistake> {
    let attributes = &vertex.attributes;
    let (Some(latitude), Some(longitude)) =
        (attributes.get("Latitude"), attributes.get("Longitude"))
    else {
        return Ok(None);
    };
    let [north, east] =
        [latitude, longitude].map(|degrees| degrees.text.trim().parse::<f64>().ok());
    let place = north.zip(east).and_then(|(north, east)| Coordinates::new(north, east));
    match place {
        Some(place) => Ok(Some(place)),
        None => {
            let (north, east) = (shorten(&latitude.text), shorten(&longitude.text));
            let message =
                format!("latitude `{north}` and longitude `{east}` are not a place on Earth");
            Err(input.mistake(latitude.offset, 1, message))
        }
    }
}

/// Attributes of edges that were read, by the position of the edge.
type Read<'a> = BTreeSet<(usize, &'a str)>;

/// What is needed to make links of edges.
struct ZooLinkBuilder<'a> {
    input: &'a ImportSourceText<'a>,
    graph: &'a AttributedGraph,
    places: &'a [Option<Coordinates>],
    default: Span,
}

impl<'a> ZooLinkBuilder<'a> {
    /// Returns the attributes that were read, by edge.
    fn links(&self, topology: &mut Topology) -> Result<Read<'a>, ScenarioMistake> {
        let mut edges = Vec::new();
        let (mut computed, mut unrated) = (0_usize, Vec::new());
        let mut read = BTreeSet::new();
        for (at, edge) in self.graph.edges.iter().enumerate() {
            let names = edge.ends.map(|end| topology.routers[end].name.clone());
            let [a, b] = &names;
            if a == b {
                topology.notes.lose("Links from a router to itself", a.clone());
                continue;
            }
            let both = format!("{a}--{b}");
            let mut keys = Vec::new();
            let (latency, from_place) =
                self.latency(edge, &both, &mut topology.notes, &mut keys)?;
            let rate = self.rate(edge, &both, &mut topology.notes, &mut keys);
            read.extend(keys.into_iter().map(|key| (at, key)));
            computed += usize::from(from_place);
            if rate.is_none() {
                unrated.push(both);
            }
            let properties =
                LinkDirectionProperties { latency, rate, ..LinkDirectionProperties::default() };
            edges.push(match edge.directed {
                true => DirectedEdge::one_way(edge.ends, properties),
                false => DirectedEdge::both_ways(edge.ends, properties),
            });
        }
        let all = edges.len();
        let lonely = "Links that go one way only: they go both ways with the same properties";
        connect(topology, edges, lonely);
        if computed > 0 {
            let text = format!(
                "The latency of {computed} of {} links is the time of light over the great circle \
                 at 2/3 c, to the nearest 1us: cables are longer",
                self.graph.edges.len()
            );
            topology.notes.assume(&text, "");
        }
        if unrated.len() == all && !unrated.is_empty() {
            topology.notes.assume("No link has a rate in the file: they are without limit", "");
        } else {
            for both in unrated {
                topology
                    .notes
                    .assume("These links have no rate in the file: they are without limit", both);
            }
        }
        Ok(read)
    }

    /// The file's latency, else that of light, else the default. Whether it is that of light. The
    /// attribute that it is from goes to `keys`.
    fn latency(
        &self,
        edge: &'a GraphEdge,
        both: &str,
        notes: &mut ConversionReport,
        keys: &mut Vec<&'a str>,
    ) -> Result<(Span, bool), ScenarioMistake> {
        const MILLISECOND: u64 = 1_000_000;
        if let Some(found) = units::latency(&edge.attributes, &self.graph.attributes) {
            keys.push(found.key);
            return Ok((found.value, false));
        }
        let given = ["latency", "delay"].into_iter().find_map(|key| {
            let given = edge.attributes.get(key).filter(|given| !given.text.trim().is_empty());
            given.map(|given| (key, given))
        });
        if let Some((key, given)) = given {
            keys.push(key);
            if given.text.trim().parse::<f64>().is_ok() {
                notes.assume("A latency without a unit is in milliseconds", "");
            }
            let latency = decimal::time(&given.text, Some(MILLISECOND)).ok_or_else(|| {
                let message = format!("latency: `{}` is not a time", shorten(&given.text));
                self.input.mistake(given.offset, 1, message)
            })?;
            return Ok((latency, false));
        }
        let [a, b] = edge.ends.map(|end| self.places[end]);
        if let (Some(a), Some(b)) = (a, b) {
            return Ok((a.latency(b), true));
        }
        let default = self.default;
        let text = format!(
            "These links have a latency of {default}, because the file has neither a latency nor the coordinates \
             of both ends (--latency chooses another)"
        );
        notes.assume(&text, both);
        Ok((self.default, false))
    }

    fn rate(
        &self,
        edge: &'a GraphEdge,
        both: &str,
        notes: &mut ConversionReport,
        keys: &mut Vec<&'a str>,
    ) -> Option<Rate> {
        let text = |key: &str| {
            let attribute = edge.attributes.get(key).map(|attribute| attribute.text.trim());
            attribute.filter(|text| !text.is_empty())
        };
        // Of one speed that is written three times, or of none that can be read, which is noted.
        keys.extend(["LinkSpeed", "LinkSpeedRaw", "LinkSpeedUnits"]);
        let raw = text("LinkSpeedRaw").and_then(|text| decimal::rate(text, Some(1)));
        if raw.is_some() {
            return raw;
        }
        if let (Some(speed), Some(units)) = (text("LinkSpeed"), text("LinkSpeedUnits"))
            && let Some(rate) = decimal::rate(&format!("{speed} {units}"), None)
        {
            return Some(rate);
        }
        if let Some(found) = units::rate(&edge.attributes, &self.graph.attributes) {
            keys.push(found.key);
            return Some(found.value);
        }
        if let Some(rate) = text("LinkLabel").and_then(|label| decimal::rate(label, None)) {
            notes.assume("The rate of these links is from their LinkLabel", both);
            return Some(rate);
        }
        let asked = text("LinkSpeedRaw").or(text("LinkSpeed"));
        if let Some(asked) = asked {
            let item = format!("{both} {}", names::shown(asked));
            notes.lose("A LinkSpeed that is not a number with units", item);
        }
        None
    }
}

/// Attributes that nothing was made of, with how often they occur.
fn unread(graph: &AttributedGraph, read: &Read<'_>, notes: &mut ConversionReport) {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let vertices = (0..).zip(&graph.vertices).map(|(at, v)| ("node", at, &v.attributes));
    let edges = (0..).zip(&graph.edges).map(|(at, e)| ("edge", at, &e.attributes));
    for (of, at, attributes) in vertices.chain(edges) {
        for (key, attribute) in attributes {
            let carried = match of {
                "edge" => read.contains(&(at, key)),
                _ => CARRIED.contains(&key.as_str()),
            };
            if !carried && !attribute.text.trim().is_empty() {
                *counts.entry((of, key)).or_default() += 1;
            }
        }
    }
    for ((of, key), count) in counts {
        let plural = if count == 1 { "" } else { "s" };
        let item = format!("{} ({count} {of}{plural})", shorten(key));
        if DESCRIPTIONS.contains(&key) || of == "edge" && units::names_unit(key) {
            notes.leave_out("Attributes", item);
        } else if of == "edge" && second(graph, key, read) {
            let text = "Rates and latencies of edges for which another attribute was read";
            notes.lose(text, item);
        } else if of == "edge" && units::names_quantity(key) {
            notes.lose(NO_UNIT, item);
        } else {
            notes.lose("Attributes whose meaning is not known", item);
        }
    }
    for key in graph.attributes.keys().filter(|key| !HEAD.contains(&key.as_str())) {
        notes.leave_out("Attributes of the whole graph", shorten(key));
    }
    for what in &graph.unread {
        notes.lose("Parts of the file that are not read", what.clone());
    }
}

/// Whether an attribute has a unit, so that it was not read because another one came before it.
fn second(graph: &AttributedGraph, key: &str, read: &Read<'_>) -> bool {
    (0..).zip(&graph.edges).any(|(at, edge)| {
        let only = edge.attributes.get_key_value(key).filter(|_| !read.contains(&(at, key)));
        let only = only.map(|(key, attribute)| [(key.clone(), attribute.clone())].into());
        only.is_some_and(|only| {
            units::rate(&only, &graph.attributes).is_some()
                || units::latency(&only, &graph.attributes).is_some()
        })
    })
}
