//! Which records are wanted.

use std::collections::BTreeSet;

use windtunnel_model::record::Kind;
use windtunnel_model::record::kind::{MACHINE, RecordSource};

use crate::rows::is_packet;
use crate::{AttributedRecord, RecordedRun};

/// What a record must be to be wanted; each empty part wants all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordFilter {
    /// Of these layers.
    pub layers: Vec<RecordSource>,
    /// Of these kinds.
    pub kinds: Vec<Kind>,
    /// Of sources of these nodes, or of a lane from or to them.
    pub nodes: Vec<String>,
    /// Of these global flows.
    pub flows: Vec<usize>,
    /// Of a lane of these links.
    pub links: Vec<String>,
    /// Not before, in nanoseconds since the run began.
    pub from_ns: Option<i64>,
    /// Before, in nanoseconds since the run began.
    pub to_ns: Option<i64>,
}

/// A name that a filter wants and no record can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no {what} {name:?} in these records")]
#[non_exhaustive]
pub struct UnknownName {
    /// Node, link or flow.
    pub what: &'static str,
    /// As it was given.
    pub name: String,
    /// Those that there are.
    pub known: Vec<String>,
}

/// A [`RecordFilter`] with its names looked up.
#[derive(Debug)]
pub struct CompiledRecordFilter {
    layers: Vec<RecordSource>,
    kinds: Vec<Kind>,
    flows: BTreeSet<usize>,
    /// By origin: whether its node is wanted; empty: all.
    origins: Vec<bool>,
    /// By member and lane: whether a node at its end, and whether its link is wanted.
    lanes: Vec<Vec<(bool, bool)>>,
    any_node: bool,
    any_link: bool,
    from_ns: u64,
    to_ns: u64,
}

impl RecordFilter {
    /// Looks its names up.
    ///
    /// # Errors
    /// If there is no such node, link or flow.
    pub fn prepare(&self, evidence: &RecordedRun) -> Result<CompiledRecordFilter, UnknownName> {
        self.check(evidence)?;
        Ok(self.sieve(evidence))
    }

    /// The same where names may become known later: of those that are not, nothing is wanted yet.
    #[must_use]
    pub fn sieve(&self, evidence: &RecordedRun) -> CompiledRecordFilter {
        let wanted = |names: &[String], name: &str| names.iter().any(|wanted| wanted == name);
        let origins = evidence.origins().iter().map(|origin| {
            origin.source.node != MACHINE
                && evidence.node_name(*origin).is_some_and(|name| wanted(&self.nodes, name))
        });
        let lanes = evidence.members().iter().map(|member| {
            let lanes = member.header.lanes.iter().map(|lane| {
                let ends = wanted(&self.nodes, &lane.from) || wanted(&self.nodes, &lane.to);
                (ends, wanted(&self.links, &lane.link))
            });
            lanes.collect()
        });
        let at = |time: Option<i64>, otherwise: u64| {
            time.map_or(otherwise, |ns| evidence.origin_ns().saturating_add_signed(ns))
        };
        CompiledRecordFilter {
            layers: self.layers.clone(),
            kinds: self.kinds.clone(),
            flows: self.flows.iter().copied().collect(),
            origins: origins.collect(),
            lanes: lanes.collect(),
            any_node: self.nodes.is_empty(),
            any_link: self.links.is_empty(),
            from_ns: at(self.from_ns, 0),
            to_ns: at(self.to_ns, u64::MAX),
        }
    }

    fn check(&self, evidence: &RecordedRun) -> Result<(), UnknownName> {
        let headers = || evidence.members().iter().map(|member| &member.header);
        let lanes = || headers().flat_map(|header| &header.lanes);
        let ends = lanes().flat_map(|lane| [lane.from.clone(), lane.to.clone()]);
        let nodes: BTreeSet<String> =
            headers().flat_map(|header| header.nodes.clone()).chain(ends).collect();
        let links: BTreeSet<String> = lanes().map(|lane| lane.link.clone()).collect();
        known("node", &self.nodes, nodes)?;
        known("link", &self.links, links)?;
        match self.flows.iter().find(|flow| **flow >= evidence.flows().len()) {
            Some(flow) => {
                let known = (0..evidence.flows().len()).map(|flow| flow.to_string()).collect();
                Err(UnknownName { what: "flow", name: flow.to_string(), known })
            }
            None => Ok(()),
        }
    }
}

fn known(what: &'static str, names: &[String], known: BTreeSet<String>) -> Result<(), UnknownName> {
    match names.iter().find(|name| !known.contains(*name)) {
        Some(name) => {
            Err(UnknownName { what, name: name.clone(), known: known.into_iter().collect() })
        }
        None => Ok(()),
    }
}

impl CompiledRecordFilter {
    /// Whether the record is wanted.
    #[must_use]
    pub fn passes(&self, evidence: &RecordedRun, entry: &AttributedRecord) -> bool {
        let time = entry.record.time;
        let origin = evidence.origin_of(entry);
        (self.from_ns..self.to_ns).contains(&time)
            && (self.flows.is_empty()
                || entry.flow().is_some_and(|flow| self.flows.contains(&flow)))
            && (self.kinds.is_empty()
                || entry.kind().is_some_and(|kind| self.kinds.contains(&kind)))
            && (self.layers.is_empty()
                || origin.layer().is_some_and(|layer| self.layers.contains(&layer)))
            && (self.any_node || self.origins[entry.origin()] || self.lane(evidence, entry).0)
            && (self.any_link || self.lane(evidence, entry).1)
    }

    fn lane(&self, evidence: &RecordedRun, entry: &AttributedRecord) -> (bool, bool) {
        let member = usize::from(evidence.origin_of(entry).member);
        match entry.kind() {
            Some(kind) if is_packet(kind) => {
                let lane = self.lanes[member].get(entry.record.args[2] as usize);
                lane.copied().unwrap_or_default()
            }
            _ => (false, false),
        }
    }
}
