//! `generate`: networks by rule.

use std::path::Path;
use std::str::FromStr;

use clap::ValueEnum;
use serde::Serialize;
use windtunnel_model::profile::QueueLimit;
use windtunnel_model::{Probability, Rate, Span};
use windtunnel_topology::{
    GenerateError, GeneratedLinkProperties, GeneratorParameters, LatencyRange, TopologyShape,
};

use crate::arguments::{OutputFormat, node_command};
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::output::{self, OutputDestination};

/// Write the scenario of a star, a ring, a tree, a random graph and the like
///
/// The file goes to standard output, ready for `check` and `run`. Routers have the shape; nodes are
/// attached to them in turn (at the leaves of a tree, at the first and the last level of a
/// butterfly). The same options and seed give the same bytes everywhere. An option that the shape
/// does not use is refused.
#[derive(Debug, clap::Args)]
pub(crate) struct GenerateArguments {
    /// The shape
    #[arg(value_name = "SHAPE")]
    kind: TopologyShapeChoice,
    /// Nodes in all [default: one for each router that takes nodes; 10 for star and dumbbell]
    #[arg(long, value_name = "N", env = "WINDTUNNEL_NODES")]
    nodes: Option<u32>,
    /// Routers of a chain, ring, full-mesh, random or scale-free shape [default: as many as
    /// --nodes, else 10]
    #[arg(long, value_name = "N", env = "WINDTUNNEL_ROUTERS")]
    routers: Option<u32>,
    /// Rows and columns of a grid or torus, such as 3x5 [default: 4x4]
    #[arg(long, value_name = "ROWSxCOLUMNS", env = "WINDTUNNEL_SIZE")]
    size: Option<GridDimensions>,
    /// Children of each router of a tree that is not a leaf [default: 3]
    #[arg(long, value_name = "N", env = "WINDTUNNEL_FANOUT")]
    fanout: Option<u32>,
    /// Levels of a tree below its root [default: 2]
    #[arg(long, value_name = "N", env = "WINDTUNNEL_DEPTH")]
    depth: Option<u32>,
    /// Dimension of a butterfly: it has D+1 levels of 2^D routers [default: 2]
    #[arg(long, value_name = "D", env = "WINDTUNNEL_DIMENSION")]
    dimension: Option<u32>,
    /// Nodes on the left of a dumbbell [default: half of --nodes, else 5]
    #[arg(long, value_name = "N", env = "WINDTUNNEL_LEFT")]
    left: Option<u32>,
    /// Nodes on the right of a dumbbell [default: half of --nodes, else 5]
    #[arg(long, value_name = "N", env = "WINDTUNNEL_RIGHT")]
    right: Option<u32>,
    /// Probability that two routers of a random graph are joined [default: 2·ln(n)/n]
    #[arg(long, value_name = "P", env = "WINDTUNNEL_PROBABILITY")]
    probability: Option<Probability>,
    /// Links that each new router of a scale-free graph brings [default: 2]
    #[arg(long, value_name = "N", env = "WINDTUNNEL_ATTACH")]
    attach: Option<u32>,
    /// Latency of the shape's links, or a range to draw from, such as 5ms..50ms
    #[arg(long, value_name = "TIME[..TIME]", env = "WINDTUNNEL_LATENCY", default_value = "10ms")]
    latency: Latency,
    /// Jitter of the shape's links
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_JITTER")]
    jitter: Option<Span>,
    /// Loss of the shape's links
    #[arg(long, value_name = "P", env = "WINDTUNNEL_LOSS")]
    loss: Option<Probability>,
    /// Rate of the shape's links [default: no limit]
    #[arg(long, value_name = "RATE", env = "WINDTUNNEL_RATE")]
    rate: Option<Rate>,
    /// Queue in front of that rate, such as 100p, 256KB or 50ms
    #[arg(long, value_name = "QUEUE", env = "WINDTUNNEL_QUEUE", value_parser = queue, requires = "rate")]
    queue: Option<QueueLimit>,
    /// Latency of the links that attach nodes, or a range to draw from [default: 1ms]
    #[arg(long, value_name = "TIME[..TIME]", env = "WINDTUNNEL_ACCESS_LATENCY")]
    access_latency: Option<Latency>,
    /// Jitter of the links that attach nodes
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_ACCESS_JITTER")]
    access_jitter: Option<Span>,
    /// Loss of the links that attach nodes
    #[arg(long, value_name = "P", env = "WINDTUNNEL_ACCESS_LOSS")]
    access_loss: Option<Probability>,
    /// Rate of the links that attach nodes [default: no limit]
    #[arg(long, value_name = "RATE", env = "WINDTUNNEL_ACCESS_RATE")]
    access_rate: Option<Rate>,
    /// Queue in front of that rate
    #[arg(
        long,
        value_name = "QUEUE",
        env = "WINDTUNNEL_ACCESS_QUEUE",
        value_parser = queue,
        requires = "access_rate"
    )]
    access_queue: Option<QueueLimit>,
    /// The command of every node [default: none; nodes are there for exec and shell]
    #[arg(long, value_name = "COMMAND", env = "WINDTUNNEL_NODE_COMMAND", value_parser = node_command)]
    run: Option<String>,
    /// Seed of random shapes and of latencies from a range
    #[arg(long, value_name = "N", env = "WINDTUNNEL_SEED", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    destination: OutputDestination,
    #[command(flatten)]
    format: OutputFormat,
}

/// The shapes that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TopologyShapeChoice {
    /// Nodes around one router
    Star,
    /// Routers in a row
    Chain,
    /// Routers in a circle
    Ring,
    /// Every router joined to every other
    FullMesh,
    /// A complete tree, nodes at its leaves
    Tree,
    /// A rectangle of routers, joined to their neighbours
    Grid,
    /// A grid with opposite edges joined
    Torus,
    /// Two groups of nodes on the two sides of one link
    Dumbbell,
    /// D+1 levels of 2^D routers, nodes at the first and the last
    Butterfly,
    /// A connected random graph G(n, p)
    Random,
    /// Preferential attachment (Barabási–Albert)
    ScaleFree,
}

/// Rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GridDimensions(u32, u32);

impl FromStr for GridDimensions {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let sides = text.split_once('x').map(|(rows, columns)| (rows.parse(), columns.parse()));
        match sides {
            Some((Ok(rows), Ok(columns))) => Ok(GridDimensions(rows, columns)),
            _ => Err("write rows and columns, such as 3x5"),
        }
    }
}

/// A latency or a range of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Latency(LatencyRange);

impl FromStr for Latency {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = |text: &str| text.parse::<Span>().map_err(|error| error.to_string());
        match text.split_once("..") {
            Some((least, most)) => {
                Ok(Latency(LatencyRange { least: read(least)?, most: read(most)? }))
            }
            None => read(text).map(|latency| Latency(LatencyRange::fixed(latency))),
        }
    }
}

/// For `--json`.
#[derive(Debug, Serialize)]
struct GenerateOutput<'a> {
    /// `null`: it is not in a file.
    path: Option<&'a Path>,
    scenario: &'a str,
}

pub(crate) fn run(arguments: &GenerateArguments) -> Outcome {
    arguments.refuse_strays()?;
    let shape = arguments.shape()?;
    let fixed = matches!(shape, TopologyShape::Star { .. } | TopologyShape::Dumbbell { .. });
    let nodes = arguments.nodes.filter(|_| !fixed);
    let trunk = GeneratedLinkProperties {
        jitter: arguments.jitter.unwrap_or_default(),
        loss: arguments.loss.unwrap_or_default(),
        rate: arguments.rate,
        queue: arguments.queue,
    };
    let access = GeneratedLinkProperties {
        jitter: arguments.access_jitter.unwrap_or_default(),
        loss: arguments.access_loss.unwrap_or_default(),
        rate: arguments.access_rate,
        queue: arguments.access_queue,
    };
    let default = GeneratorParameters::new(shape);
    let request = GeneratorParameters {
        nodes,
        latency: arguments.latency.0,
        trunk,
        access,
        access_latency: arguments
            .access_latency
            .map_or(default.access_latency, |latency| latency.0),
        run: arguments.run.clone(),
        seed: arguments.seed,
        ..default
    };
    let scenario = windtunnel_topology::generate(&request).map_err(refused)?.to_yaml();
    let destination = &arguments.destination;
    destination.write(&scenario)?;
    if arguments.format.json {
        output::json(&GenerateOutput { path: destination.path(), scenario: &scenario })?;
    } else if destination.path().is_none() {
        output::data(&scenario)?;
    }
    Ok(ExitCategory::Fine.code())
}

impl GenerateArguments {
    fn shape(&self) -> Result<TopologyShape, VerbFailure> {
        let routers = self.routers.or(self.nodes).unwrap_or(10);
        let GridDimensions(rows, columns) = self.size.unwrap_or(GridDimensions(4, 4));
        Ok(match self.kind {
            TopologyShapeChoice::Star => TopologyShape::Star { nodes: self.nodes.unwrap_or(10) },
            TopologyShapeChoice::Chain => TopologyShape::Chain { routers },
            TopologyShapeChoice::Ring => TopologyShape::Ring { routers },
            TopologyShapeChoice::FullMesh => TopologyShape::FullMesh { routers },
            TopologyShapeChoice::Tree => TopologyShape::Tree {
                fanout: self.fanout.unwrap_or(3),
                depth: self.depth.unwrap_or(2),
            },
            TopologyShapeChoice::Grid => TopologyShape::Grid { rows, columns },
            TopologyShapeChoice::Torus => TopologyShape::Torus { rows, columns },
            TopologyShapeChoice::Dumbbell => self.dumbbell()?,
            TopologyShapeChoice::Butterfly => {
                TopologyShape::Butterfly { dimension: self.dimension.unwrap_or(2) }
            }
            TopologyShapeChoice::Random => {
                TopologyShape::Random { routers, probability: self.probability }
            }
            TopologyShapeChoice::ScaleFree => {
                TopologyShape::ScaleFree { routers, attach: self.attach.unwrap_or(2) }
            }
        })
    }

    fn dumbbell(&self) -> Result<TopologyShape, VerbFailure> {
        let sides = self.left.is_some() || self.right.is_some();
        if self.nodes.is_some() && sides {
            let text =
                "--nodes counts the nodes on both sides: it does not go with --left and --right";
            return Err(VerbFailure::new(ExitCategory::Usage, text));
        }
        let all = self.nodes.unwrap_or(10);
        let (left, right) = (self.left.unwrap_or(all - all / 2), self.right.unwrap_or(all / 2));
        Ok(TopologyShape::Dumbbell { left, right })
    }

    /// An option that would change nothing is a misunderstanding.
    fn refuse_strays(&self) -> Result<(), VerbFailure> {
        use TopologyShapeChoice::{
            Butterfly, Chain, Dumbbell, FullMesh, Grid, Random, Ring, ScaleFree, Star, Torus,
        };
        let many = [Chain, Ring, FullMesh, Random, ScaleFree];
        let options: [(&str, bool, &[TopologyShapeChoice]); 9] = [
            ("routers", self.routers.is_some(), &many),
            ("size", self.size.is_some(), &[Grid, Torus]),
            ("fanout", self.fanout.is_some(), &[TopologyShapeChoice::Tree]),
            ("depth", self.depth.is_some(), &[TopologyShapeChoice::Tree]),
            ("dimension", self.dimension.is_some(), &[Butterfly]),
            ("left", self.left.is_some(), &[Dumbbell]),
            ("right", self.right.is_some(), &[Dumbbell]),
            ("probability", self.probability.is_some(), &[Random]),
            ("attach", self.attach.is_some(), &[ScaleFree]),
        ];
        let stray = options.iter().find(|(_, given, kinds)| *given && !kinds.contains(&self.kind));
        if let Some((option, _, kinds)) = stray {
            let kinds = kinds.iter().map(|kind| word(*kind)).collect::<Vec<_>>().join(", ");
            let text = format!("--{option} means nothing for `{}`", word(self.kind));
            return Err(VerbFailure::new(ExitCategory::Usage, text)
                .hint(format!("--{option} is for {kinds}")));
        }
        let access = self.access_latency.is_some()
            || self.access_jitter.is_some()
            || self.access_loss.is_some()
            || self.access_rate.is_some();
        if access && self.kind == Star {
            let text =
                "a star has no links but those of its nodes: --access-… means nothing for it";
            let hint = "write --latency, --rate and the like: they are for a star's links";
            return Err(VerbFailure::new(ExitCategory::Usage, text).hint(hint));
        }
        Ok(())
    }
}

/// As it is written on the command line.
fn word(kind: TopologyShapeChoice) -> String {
    kind.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn refused(error: GenerateError) -> VerbFailure {
    let hint = error.hint();
    let failure = VerbFailure::caused(ExitCategory::Usage, error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The scenario file's `queue`, read by its own rules.
fn queue(text: &str) -> Result<QueueLimit, String> {
    let patch = windtunnel_scenario::parse_patch(&[("queue", text)]);
    match patch.map_err(|error| error.to_string())?.queue {
        Some(windtunnel_model::profile::PropertySetting::To(limit)) => Ok(limit),
        _ => Err("write packets, bytes or a time, such as 100p, 256KB or 50ms".to_owned()),
    }
}
