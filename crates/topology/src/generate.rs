//! Networks by rule: a shape of routers, and nodes attached to them.

mod random;
mod shape;

use windtunnel_model::profile::{Jitter, QueueLimit};
use windtunnel_model::random::RandomStream;
use windtunnel_model::{LinkDirection, Probability, Rate, Span};

use crate::topology::{
    ConversionRemark, ConversionReport, LinkDirectionProperties, MOST_LINKS, MOST_NODES, Topology,
    TopologyLink, TopologyNode, TopologyRouter,
};

pub use shape::TopologyShape;
use shape::TopologySkeleton;

/// What is to be generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratorParameters {
    /// The shape.
    pub shape: TopologyShape,
    /// How many nodes, dealt out in turn to the routers that take nodes; `None`: one for each of
    /// these. A star and a dumbbell have their nodes in their shape.
    pub nodes: Option<u32>,
    /// Latency of the shape's links.
    pub latency: LatencyRange,
    /// The shape's links, without the latency.
    pub trunk: GeneratedLinkProperties,
    /// The links that attach nodes to the routers of the shape.
    pub access: GeneratedLinkProperties,
    /// Latency of these.
    pub access_latency: LatencyRange,
    /// Every node's command.
    pub run: Option<String>,
    /// The same seed gives the same network.
    pub seed: u64,
}

impl GeneratorParameters {
    /// This shape with 10 ms on its links, 1 ms on the nodes' links, and nothing else.
    #[must_use]
    pub fn new(shape: TopologyShape) -> Self {
        GeneratorParameters {
            shape,
            nodes: None,
            latency: LatencyRange::fixed(Span::from_millis(10)),
            trunk: GeneratedLinkProperties::default(),
            access: GeneratedLinkProperties::default(),
            access_latency: LatencyRange::fixed(Span::from_millis(1)),
            run: None,
            seed: 1,
        }
    }
}

/// Properties of links other than their latency, the same both ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GeneratedLinkProperties {
    /// Random delay, uniform from zero to this.
    pub jitter: Span,
    /// Probability that a packet vanishes.
    pub loss: Probability,
    /// Bandwidth, unless it is unlimited.
    pub rate: Option<Rate>,
    /// Room in front of the rate.
    pub queue: Option<QueueLimit>,
}

/// Latencies that are drawn for each link: uniform from `least` to `most` in steps of 1 µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyRange {
    /// The shortest.
    pub least: Span,
    /// The longest; not shorter.
    pub most: Span,
}

impl LatencyRange {
    /// The same latency for every link.
    #[must_use]
    pub const fn fixed(latency: Span) -> Self {
        LatencyRange { least: latency, most: latency }
    }

    /// The latency that a draw stands for.
    fn pick(self, draw: u64) -> Span {
        const STEP: u64 = 1_000;
        let steps = self.most.saturating_sub(self.least).as_nanos() / STEP;
        self.least.saturating_add(Span::from_micros(random::below(draw, steps.saturating_add(1))))
    }
}

/// Why nothing can be generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// A number of the shape is too small for it.
    #[error("{what} is {value}: {shape} needs at least {least}")]
    TooSmall {
        /// The shape, with its article.
        shape: &'static str,
        /// What the number counts.
        what: &'static str,
        /// What was asked.
        value: u64,
        /// The least that makes sense.
        least: u64,
    },
    /// The network would be larger than a scenario may be.
    #[error("this would make {value} {what}: at most {most} can be made")]
    TooLarge {
        /// `nodes`, `routers` or `links`.
        what: &'static str,
        /// How many.
        value: u64,
        /// The most.
        most: u64,
    },
    /// No random graph was connected.
    #[error(
        "none of {attempts} random graphs with {routers} routers and probability {probability} was connected"
    )]
    NotConnected {
        /// How many were drawn.
        attempts: u64,
        /// Their size.
        routers: u32,
        /// The probability of a link.
        probability: Probability,
        /// The probability from which graphs of this size are likely to be connected.
        threshold: Probability,
    },
    /// Nodes were asked for a shape that has its own.
    #[error("{0} has its nodes in its shape: they cannot be given separately")]
    NodesInShape(&'static str),
    /// The range of latencies ends before it begins.
    #[error("the latencies end at {most}, before they begin at {least}")]
    Range {
        /// The first.
        least: Span,
        /// The last.
        most: Span,
    },
}

impl GenerateError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            GenerateError::NotConnected { threshold, .. } => Some(format!(
                "graphs of this size are likely to be connected from a probability of {threshold}; \
                 below that, another seed may do"
            )),
            _ => None,
        }
    }
}

/// Makes the network. Every two nodes can reach each other.
///
/// # Errors
/// If numbers do not fit the shape, the network is larger than a scenario may be, or no connected
/// random graph was found.
pub fn generate(request: &GeneratorParameters) -> Result<Topology, GenerateError> {
    for range in [request.latency, request.access_latency] {
        if range.least > range.most {
            return Err(GenerateError::Range { least: range.least, most: range.most });
        }
    }
    let (routers, links) = request.shape.size()?;
    at_most("routers", routers, MOST_NODES)?;
    at_most("links", links, MOST_LINKS)?;
    let skeleton = request.shape.skeleton(request.seed)?;
    let mut topology = Topology {
        name: request.shape.name().to_owned(),
        about: vec!["Made by `windtunnel generate`.".to_owned(), describe(request)],
        ..Topology::default()
    };
    let draws = LatencyStreams::new(request.seed);
    if let TopologyShape::Star { nodes } = request.shape {
        refuse_nodes(request, "a star")?;
        at_most("nodes", u64::from(nodes), MOST_NODES)?;
        star(&mut topology, request, nodes, &draws);
    } else if let TopologyShape::Dumbbell { left, right } = request.shape {
        refuse_nodes(request, "a dumbbell")?;
        at_most("nodes", u64::from(left) + u64::from(right), MOST_NODES)?;
        dumbbell(&mut topology, request, [left, right], &draws);
    } else {
        routed(&mut topology, request, &skeleton, &draws)?;
    }
    topology.notes = notes(request);
    Ok(topology)
}

/// Streams of latencies.
struct LatencyStreams {
    trunk: RandomStream,
    access: RandomStream,
}

impl LatencyStreams {
    fn new(seed: u64) -> Self {
        let stream = |of| RandomStream::derive(seed, "generate", LinkDirection::Up, of);
        LatencyStreams { trunk: stream("latency"), access: stream("access-latency") }
    }
}

fn star(
    topology: &mut Topology,
    request: &GeneratorParameters,
    nodes: u32,
    draws: &LatencyStreams,
) {
    topology.nodes.push(group("node", nodes, request));
    topology.routers.push(router("hub".to_owned()));
    for node in 1..=nodes {
        let latency = request.latency.pick(draws.trunk.at(u64::from(node)));
        let between = [format!("node-{node}"), "hub".to_owned()];
        topology.links.push(link(between, latency, request.trunk));
    }
}

fn dumbbell(
    topology: &mut Topology,
    request: &GeneratorParameters,
    sides: [u32; 2],
    draws: &LatencyStreams,
) {
    let names = [("left", "west"), ("right", "east")];
    let latency = request.latency.pick(draws.trunk.at(0));
    let between = ["west".to_owned(), "east".to_owned()];
    let mut bottleneck = link(between, latency, request.trunk);
    bottleneck.name = Some("bottleneck".to_owned());
    topology.links.push(bottleneck);
    let mut index = 0;
    for ((group_name, router_name), count) in names.into_iter().zip(sides) {
        topology.nodes.push(group(group_name, count, request));
        topology.routers.push(router(router_name.to_owned()));
        for member in 1..=count {
            let latency = request.access_latency.pick(draws.access.at(index));
            let between = [format!("{group_name}-{member}"), router_name.to_owned()];
            topology.links.push(link(between, latency, request.access));
            index += 1;
        }
    }
}

/// Routers joined as the shape says, and nodes dealt out to those that take nodes.
fn routed(
    topology: &mut Topology,
    request: &GeneratorParameters,
    skeleton: &TopologySkeleton,
    draws: &LatencyStreams,
) -> Result<(), GenerateError> {
    let TopologySkeleton { names, edges, takers } = skeleton;
    let each = u32::try_from(takers.len()).unwrap_or(u32::MAX);
    let nodes = request.nodes.unwrap_or(each);
    if nodes == 0 {
        let what = "the number of nodes";
        let shape = "a network";
        return Err(GenerateError::TooSmall { shape, what, value: 0, least: 1 });
    }
    at_most("nodes", u64::from(nodes), MOST_NODES)?;
    at_most("links", to_u64(edges.len()) + u64::from(nodes), MOST_LINKS)?;
    topology.nodes.push(group("node", nodes, request));
    topology.routers.extend(names.iter().cloned().map(router));
    for (index, [a, b]) in (0..).zip(edges) {
        let latency = request.latency.pick(draws.trunk.at(index));
        let between = [names[*a].clone(), names[*b].clone()];
        topology.links.push(link(between, latency, request.trunk));
    }
    for ((index, node), taker) in (0..).zip(1..=nodes).zip(takers.iter().cycle()) {
        let latency = request.access_latency.pick(draws.access.at(index));
        let between = [format!("node-{node}"), names[*taker].clone()];
        topology.links.push(link(between, latency, request.access));
    }
    Ok(())
}

fn group(name: &str, count: u32, request: &GeneratorParameters) -> TopologyNode {
    let run = request.run.clone();
    TopologyNode { name: name.to_owned(), count: Some(count), run, ..TopologyNode::default() }
}

fn router(name: String) -> TopologyRouter {
    TopologyRouter { name, comment: None }
}

fn link(between: [String; 2], latency: Span, rest: GeneratedLinkProperties) -> TopologyLink {
    let GeneratedLinkProperties { jitter, loss, rate, queue } = rest;
    let jitter = Jitter { spread: jitter, ..Jitter::default() };
    let properties = LinkDirectionProperties {
        latency,
        jitter,
        loss,
        rate,
        queue,
        ..LinkDirectionProperties::default()
    };
    TopologyLink { between, up: properties.clone(), down: properties, ..TopologyLink::default() }
}

fn describe(request: &GeneratorParameters) -> String {
    let drawn = request.shape.is_random()
        || [request.latency, request.access_latency].iter().any(|range| range.least != range.most);
    let seed = match drawn {
        true => format!(" Seed {}.", request.seed),
        false => String::new(),
    };
    format!("{}{seed}", request.shape.definition())
}

fn notes(request: &GeneratorParameters) -> ConversionReport {
    let mut notes = ConversionReport::default();
    if request.run.is_none() {
        let text = "The nodes run nothing: they are there for `exec` and `shell`. Give them `run:` \
                    for programs of their own.";
        notes.assumed.push(ConversionRemark { text: text.to_owned(), items: Vec::new() });
    }
    notes
}

fn refuse_nodes(request: &GeneratorParameters, shape: &'static str) -> Result<(), GenerateError> {
    match request.nodes {
        Some(_) => Err(GenerateError::NodesInShape(shape)),
        None => Ok(()),
    }
}

fn at_most(what: &'static str, value: u64, most: u64) -> Result<(), GenerateError> {
    match value <= most {
        true => Ok(()),
        false => Err(GenerateError::TooLarge { what, value, most }),
    }
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
