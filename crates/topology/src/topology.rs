//! A network between its source and the scenario file: names are final, properties are exact.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::plan::NodeVerb;
use windtunnel_model::profile::{Jitter, QueueLimit};
use windtunnel_model::{LinkDirection, Probability, Rate, Span};

/// The most nodes that a scenario may have.
pub(crate) const MOST_NODES: u64 = 10_000;
/// The most links that a scenario may have.
pub(crate) const MOST_LINKS: u64 = 50_000;

/// A network, and what there is to say about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology {
    /// Name of the experiment.
    pub name: String,
    /// Where it is from: the first lines of the file, as comments.
    pub about: Vec<String>,
    /// What was assumed, and what was not carried over.
    pub notes: ConversionReport,
    /// Nodes, in the order of the file.
    pub nodes: Vec<TopologyNode>,
    /// Routers.
    pub routers: Vec<TopologyRouter>,
    /// Names of LANs.
    pub lans: Vec<String>,
    /// Subnets of LANs that have some of their own.
    pub(crate) subnets: BTreeMap<String, Vec<String>>,
    /// Links.
    pub links: Vec<TopologyLink>,
    /// Changes at times.
    pub events: Vec<TopologyEvent>,
    /// Whether a shortest route has the fewest hops instead of the least latency.
    pub fewest_hops: bool,
    /// Whether some nodes cannot reach each other.
    pub unreachable: bool,
    /// Routers that may get a node of its own, with the properties of that node's link up and
    /// down.
    pub(crate) access: BTreeMap<String, [LinkDirectionProperties; 2]>,
}

/// A node, or a group of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopologyNode {
    /// Its name, valid in a scenario.
    pub name: String,
    /// So many of them, called `name-1`, `name-2` …; `None` for one without a number.
    pub count: Option<u32>,
    /// Whether it passes packets on.
    pub forward: bool,
    /// Its command.
    pub run: Option<String>,
    /// Its command starts no earlier than this after the run began.
    pub start: Span,
    /// Further keys of the scenario file with their values in YAML.
    pub more: Vec<(&'static str, String)>,
    /// What it is called elsewhere, where that is not its name.
    pub comment: Option<String>,
}

/// A router.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopologyRouter {
    /// Its name, valid in a scenario.
    pub name: String,
    /// What it is called elsewhere, where that is not its name.
    pub comment: Option<String>,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopologyLink {
    /// The names of its ends: nodes, groups (one link a member) or routers.
    pub between: [String; 2],
    /// Its name, where it is not the automatic one.
    pub name: Option<String>,
    /// From the first end to the second.
    pub up: LinkDirectionProperties,
    /// From the second end to the first.
    pub down: LinkDirectionProperties,
    /// What there is to say about it.
    pub comment: Option<String>,
}

/// What one direction of a link does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkDirectionProperties {
    /// Propagation delay.
    pub latency: Span,
    /// Random delay on top of it.
    pub jitter: Jitter,
    /// Whether packets may overtake each other by their random delay.
    pub reorders: bool,
    /// Probability that a packet vanishes.
    pub loss: Probability,
    /// Bandwidth, unless it is unlimited.
    pub rate: Option<Rate>,
    /// Bytes that the rate counts for each packet beside the packet, unless they are Ethernet's.
    pub overhead: Option<u32>,
    /// Room in front of the rate, unless it is the default's.
    pub queue: Option<QueueLimit>,
    /// The largest IP packet in bytes, unless it is the default's.
    pub mtu: Option<u32>,
}

impl Topology {
    /// Has rates count so many bytes for each packet beside it, now and where events change them.
    pub(crate) fn count_overhead(&mut self, bytes: u32) {
        let mut later = BTreeSet::new();
        for event in &self.events {
            if let TopologyChange::Set { link, set, .. } = &event.change
                && set.iter().any(|(key, _)| *key == "rate")
            {
                later.insert(link.clone());
            }
        }
        for link in &mut self.links {
            let [a, b] = &link.between;
            let name = link.name.clone().unwrap_or_else(|| format!("{a}--{b}"));
            for direction in [&mut link.up, &mut link.down] {
                if direction.rate.is_some() || later.contains(&name) {
                    direction.overhead = Some(bytes);
                }
            }
        }
    }
}

/// A change at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyEvent {
    /// After the run began.
    pub at: Span,
    /// What happens.
    pub change: TopologyChange,
}

/// What an event changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopologyChange {
    /// Takes links up (`true`) or down.
    State {
        /// Names of links.
        links: Vec<String>,
        /// `None`: both.
        direction: Option<LinkDirection>,
        /// Up or down.
        up: bool,
    },
    /// Gives a link new properties.
    Set {
        /// Name of a link.
        link: String,
        /// `None`: both.
        direction: Option<LinkDirection>,
        /// Keys of the scenario file with their values.
        set: Vec<(&'static str, String)>,
    },
    /// Computes the routes again.
    Reroute,
    /// Does something to the programs of nodes.
    Node {
        /// Names of nodes.
        nodes: Vec<String>,
        /// What is done.
        verb: NodeVerb,
    },
}

/// What must be known about a network that was not written for Windtunnel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConversionReport {
    /// What was chosen because the source does not say it.
    pub assumed: Vec<ConversionRemark>,
    /// What the source says and the scenario does not: it would change what packets experience.
    pub lost: Vec<ConversionRemark>,
    /// What the source says and what changes nothing: descriptions.
    pub left_out: Vec<ConversionRemark>,
}

/// A statement, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionRemark {
    /// The statement.
    pub text: String,
    /// The things that it is about, if there is a list.
    pub items: Vec<String>,
}

impl ConversionReport {
    /// Notes an assumption about `item`; equal texts share one note. An empty item only makes the
    /// note.
    pub(crate) fn assume(&mut self, text: &str, item: impl Into<String>) {
        add(&mut self.assumed, text, item.into());
    }

    /// The same, unless it is noted already.
    pub(crate) fn assume_once(&mut self, text: &str, item: impl Into<String>) {
        add_once(&mut self.assumed, text, item.into());
    }

    /// Notes what is not carried over.
    pub(crate) fn lose(&mut self, text: &str, item: impl Into<String>) {
        add(&mut self.lost, text, item.into());
    }

    /// The same, unless it is noted already.
    pub(crate) fn lose_once(&mut self, text: &str, item: impl Into<String>) {
        add_once(&mut self.lost, text, item.into());
    }

    /// Notes a description that is left out.
    pub(crate) fn leave_out(&mut self, text: &str, item: impl Into<String>) {
        add(&mut self.left_out, text, item.into());
    }

    /// The same, unless it is noted already.
    pub(crate) fn leave_out_once(&mut self, text: &str, item: impl Into<String>) {
        add_once(&mut self.left_out, text, item.into());
    }
}

impl ConversionRemark {
    /// The statement with its items: the first `most` of them, and how many more there are.
    #[must_use]
    pub fn shown(&self, most: usize) -> String {
        if self.items.is_empty() {
            return self.text.clone();
        }
        let some = self.items.iter().take(most).map(String::as_str).collect::<Vec<_>>();
        let more = match self.items.len().saturating_sub(most) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}: {}{more}", self.text, some.join(", "))
    }
}

/// Adds `item` to the note with this text, unless it has it.
fn add_once(notes: &mut Vec<ConversionRemark>, text: &str, item: String) {
    let known = |note: &ConversionRemark| note.text == text && note.items.contains(&item);
    if !notes.iter().any(known) {
        add(notes, text, item);
    }
}

/// Adds `item` to the note with this text.
fn add(notes: &mut Vec<ConversionRemark>, text: &str, item: String) {
    let index = match notes.iter().position(|note| note.text == text) {
        Some(index) => index,
        None => {
            notes.push(ConversionRemark { text: text.to_owned(), items: Vec::new() });
            notes.len() - 1
        }
    };
    if !item.is_empty() {
        notes[index].items.push(item);
    }
}
