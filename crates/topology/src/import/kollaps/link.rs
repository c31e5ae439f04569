//! The links of an experiment: two that go one way each are the two directions of one.

use std::collections::BTreeMap;

use roxmltree::Node as Element;
use windtunnel_model::{Probability, Rate, Span};
use windtunnel_scenario::ScenarioMistake;

use super::super::delay::{DelayDistribution, DelayJitterShape};
use super::super::input::ImportSourceText;
use super::super::pair::{BidirectionalEdge, DirectedEdge, pair};
use super::super::{decimal, xml};
use super::{Experiment, KollapsVertex};
use crate::topology::{LinkDirectionProperties, TopologyLink, TopologyRouter};

/// Attributes that are understood.
const KNOWN: [&str; 7] = ["origin", "dest", "latency", "jitter", "drop", "upload", "download"];

/// What the file says of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KollapsLinkDirection {
    pub(super) delay: DelayDistribution,
    pub(super) loss: Probability,
    pub(super) rate: Rate,
}

/// A link of the file: the links of the scenario that came of it, and what they are by now.
#[derive(Debug, Clone)]
pub(super) struct KollapsLink {
    pub(super) names: Vec<String>,
    /// The labels of its ends.
    pub(super) ends: [String; 2],
    /// From the first end to the second, and back.
    pub(super) ways: [KollapsLinkDirection; 2],
    /// Whether the file has no way back.
    pub(super) is_one_way: bool,
}

impl KollapsLinkDirection {
    /// Kollaps gives netem's normal distribution to what it sends to each destination.
    fn properties(self) -> LinkDirectionProperties {
        let KollapsLinkDirection { delay, loss, rate } = self;
        let reorders = !delay.jitter.is_zero();
        LinkDirectionProperties { loss, rate: Some(rate), reorders, ..delay.properties() }
    }
}

impl Experiment<'_> {
    pub(super) fn links(&mut self, elements: &[Element<'_, '_>]) -> Result<(), ScenarioMistake> {
        let mut index: BTreeMap<String, usize> = BTreeMap::new();
        let (mut labels, mut edges) = (Vec::new(), Vec::new());
        for element in elements {
            self.known_only(*element, &KNOWN, "links");
            let Some((out, back)) = self.edge(*element)? else { continue };
            let [from, to] = ["origin", "dest"].map(|end| {
                let label = element.attribute(end).unwrap_or("").trim().to_owned();
                *index.entry(label.clone()).or_insert_with(|| {
                    labels.push(label);
                    labels.len() - 1
                })
            });
            edges.push(DirectedEdge { from, to, out, back });
        }
        for paired in pair(edges) {
            let ends = paired.ends.map(|end| labels[end].clone());
            self.link(ends, &paired);
        }
        Ok(())
    }

    /// What is said of the way there and back; `None`: it is a supervisor's.
    fn edge(
        &mut self,
        element: Element<'_, '_>,
    ) -> Result<Option<(KollapsLinkDirection, Option<KollapsLinkDirection>)>, ScenarioMistake> {
        let (Some(origin), Some(dest)) = (self.end(element, "origin")?, self.end(element, "dest")?)
        else {
            self.topology.notes.lose("Links of supervisors", "");
            return Ok(None);
        };
        if origin.name == dest.name {
            return Err(xml::mistake(self.input, element, "this link joins a service to itself"));
        }
        let Some(mean) = time(self.input, element, "latency")? else {
            return Err(xml::mistake(self.input, element, "this link has no `latency`"));
        };
        let jitter = time(self.input, element, "jitter")?.unwrap_or_default();
        let delay = DelayDistribution { mean, jitter, shape: DelayJitterShape::Normal };
        delay.note(&mut self.topology.notes, &format!("{}--{}", origin.name, dest.name));
        let loss = loss(self.input, element)?.unwrap_or_default();
        let Some(up) = rate(self.input, element, "upload")? else {
            return Err(xml::mistake(self.input, element, "this link has no `upload`"));
        };
        let down = rate(self.input, element, "download")?;
        let way = |rate| KollapsLinkDirection { delay, loss, rate };
        Ok(Some((way(up), down.map(way))))
    }

    fn link(&mut self, ends: [String; 2], paired: &BidirectionalEdge<KollapsLinkDirection>) {
        let vertices = ends.each_ref().map(|label| self.vertices.get(label).cloned());
        let [Some(origin), Some(dest)] = vertices else { return };
        let both = format!("{}--{}", origin.name, dest.name);
        if paired.down.is_none() {
            let text = "Links without `download` or a link back go one way only: they go both ways with the same \
                        properties";
            self.topology.notes.lose(text, both.clone());
        }
        let ways = [paired.up, paired.down.unwrap_or(paired.up)];
        let first = self.meeting(&origin, ways);
        let [up, down] = ways;
        let second = self.meeting(&dest, [down, up]);
        let names = self.join(&both, &first, &second, ways);
        let is_one_way = paired.down.is_none();
        self.links.push(KollapsLink { names, ends, ways, is_one_way });
    }

    /// Where a link begins: a service whose replicas share it has a router in front of them.
    fn meeting(
        &mut self,
        vertex: &KollapsVertex,
        ways: [KollapsLinkDirection; 2],
    ) -> KollapsVertex {
        if !vertex.shared {
            return vertex.clone();
        }
        let name = self.namer.take(&format!("{}-shared", vertex.name), "shared");
        self.topology.routers.push(TopologyRouter { name: name.clone(), comment: None });
        let only_rate = |way: KollapsLinkDirection| LinkDirectionProperties {
            rate: Some(way.rate),
            ..LinkDirectionProperties::default()
        };
        let between = [vertex.name.clone(), name.clone()];
        let [up, down] = ways.map(only_rate);
        self.topology.links.push(TopologyLink { between, up, down, ..TopologyLink::default() });
        KollapsVertex { name, node: None, replicas: 1, shared: false }
    }

    /// One link, or one for each pair of replicas of two services. Their names.
    fn join(
        &mut self,
        label: &str,
        a: &KollapsVertex,
        b: &KollapsVertex,
        ways: [KollapsLinkDirection; 2],
    ) -> Vec<String> {
        let firsts = match a.replicas > 1 && b.replicas > 1 {
            true => (1..=a.replicas).map(|member| format!("{}-{member}", a.name)).collect(),
            false => vec![a.name.clone()],
        };
        let members = if firsts.len() > 1 { b.replicas } else { a.replicas.max(b.replicas) };
        let mut names = Vec::new();
        for first in firsts {
            let name = match members {
                1 => self.link_names.take(label, "link"),
                members => self.link_names.take_group(label, "link", members),
            };
            names.push(name.clone());
            let between = [first, b.name.clone()];
            let [up, down] = ways.map(KollapsLinkDirection::properties);
            self.topology.links.push(TopologyLink {
                between,
                name: Some(name),
                up,
                down,
                comment: None,
            });
        }
        names
    }
}

/// A time in ms.
pub(super) fn time(
    input: &ImportSourceText<'_>,
    element: Element<'_, '_>,
    name: &str,
) -> Result<Option<Span>, ScenarioMistake> {
    xml::value(input, element, name, "a time in ms", |text| decimal::time(text, Some(1_000_000)))
}

pub(super) fn rate(
    input: &ImportSourceText<'_>,
    element: Element<'_, '_>,
    name: &str,
) -> Result<Option<Rate>, ScenarioMistake> {
    let needed = "a rate of more than zero, such as 10Mbps";
    xml::value(input, element, name, needed, |text| decimal::rate(text, Some(1)))
}

pub(super) fn loss(
    input: &ImportSourceText<'_>,
    element: Element<'_, '_>,
) -> Result<Option<Probability>, ScenarioMistake> {
    xml::value(input, element, "drop", "a probability from 0 to 1", decimal::probability)
}
