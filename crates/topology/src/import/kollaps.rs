//! Kollaps' experiments (Gouveia et al., EuroSys 2020): services, bridges, links, and a schedule.

mod schedule;

use std::collections::BTreeMap;

use roxmltree::Node as Element;
use windtunnel_model::{Probability, Rate, Span};
use windtunnel_scenario::Mistake;

use super::input::{Input, shorten};
use super::names::{self, Namer};
use super::xml::{self, elements};
use super::{Options, decimal};
use crate::topology::{Link, Node, Properties, Router, Topology};

/// Attributes that are understood, by element.
const SERVICE: [&str; 9] =
    ["name", "image", "command", "replicas", "share", "reuse", "supervisor", "port", "activepaths"];
const LINK: [&str; 8] =
    ["origin", "dest", "latency", "jitter", "drop", "upload", "download", "network"];

/// A service or bridge: its name in the scenario, and how many there are.
#[derive(Debug, Clone)]
struct Vertex {
    /// Where its links end: the node, the group, or a router.
    name: String,
    /// The node or group; `None` for a bridge.
    node: Option<String>,
    replicas: u32,
    /// Whether its replicas share each of its links.
    shared: bool,
}

/// A link of the file: the links of the scenario that came of it, and which way it was written.
#[derive(Debug, Clone)]
struct Known {
    names: Vec<String>,
    origin: String,
    dest: String,
}

/// The experiment while it is read.
struct Experiment<'a> {
    input: &'a Input<'a>,
    namer: Namer,
    link_names: Namer,
    vertices: BTreeMap<String, Vertex>,
    links: Vec<Known>,
    topology: Topology,
}

/// Services become nodes or groups, bridges routers.
pub(super) fn convert(input: &Input<'_>, options: &Options) -> Result<Topology, Mistake> {
    let document = xml::parse(input)?;
    let root = document.root_element();
    if root.tag_name().name() != "experiment" {
        return Err(xml::mistake(input, root, "Kollaps' XML begins with <experiment>"));
    }
    let mut experiment = Experiment {
        input,
        namer: Namer::default(),
        link_names: Namer::default(),
        vertices: BTreeMap::new(),
        links: Vec::new(),
        topology: Topology::default(),
    };
    let section = |name: &'static str| {
        elements(root).filter(move |node| node.tag_name().name() == name).flat_map(elements)
    };
    let events: Vec<_> = section("dynamic").collect();
    let links: Vec<_> = section("links").collect();
    for service in section("services") {
        experiment.service(service, &events, &links)?;
    }
    for bridge in section("bridges") {
        experiment.bridge(bridge)?;
    }
    for link in links {
        experiment.link(link)?;
    }
    for other in elements(root) {
        let name = other.tag_name().name();
        if !["services", "bridges", "links", "dynamic"].contains(&name) {
            experiment
                .topology
                .notes
                .lose("Parts of the file that are not read", format!("<{}>", shorten(name)));
        }
    }
    schedule::read(&mut experiment, &events, options)?;
    Ok(experiment.topology)
}

impl Experiment<'_> {
    fn service(
        &mut self,
        element: Element<'_, '_>,
        events: &[Element<'_, '_>],
        links: &[Element<'_, '_>],
    ) -> Result<(), Mistake> {
        let label = xml::required(self.input, element, "name")?;
        self.known_only(element, &SERVICE, "services");
        if element.attribute("supervisor").is_some() {
            self.topology.notes.lose("Supervisors, such as the dashboard", shorten(label));
            return Ok(());
        }
        let ends_here = |link: &&Element<'_, '_>| {
            ["origin", "dest"].iter().any(|end| link.attribute(*end).map(str::trim) == Some(label))
        };
        let links = links.iter().filter(ends_here).count();
        let needed = "a number of replicas from 1 to 10000";
        let count =
            |text: &str| text.trim().parse().ok().filter(|count| (1..=10_000).contains(count));
        let asked = xml::value(self.input, element, "replicas", needed, count)?.unwrap_or(1);
        let replicas = schedule::replicas(element, label, events).unwrap_or(asked).clamp(1, 10_000);
        self.unknown_before(element, label)?;
        let count = (replicas > 1).then_some(replicas);
        let node = match count {
            Some(count) => self.namer.take_group(label, "service", count),
            None => self.namer.take(label, "service"),
        };
        let shared = element.attribute("share") == Some("true") && replicas > 1;
        let name = if links > 1 { self.place(&node, count.is_some()) } else { node.clone() };
        let vertex = Vertex { name, node: Some(node.clone()), replicas, shared };
        self.vertices.insert(label.to_owned(), vertex);
        if let Some(image) = element.attribute("image") {
            let command =
                element.attribute("command").map(|command| format!(" {}", shorten(command)));
            let item = format!("{node} ({}{})", shorten(image), command.unwrap_or_default());
            self.topology.notes.lose("Images and commands are not run", item);
        }
        let comment = names::comment(label, &node);
        let forward = links > 1 && count.is_some();
        self.topology.nodes.push(Node { name: node, count, forward, comment, ..Node::default() });
        Ok(())
    }

    /// Where the links of a service with several of them end: paths may lead through it, so it is
    /// attached to a router of its own. Replicas have their links each and forward themselves.
    fn place(&mut self, node: &str, many: bool) -> String {
        if many {
            let text = "Paths may lead through these services: they have `forward: true`";
            self.topology.notes.assume(text, node);
            return node.to_owned();
        }
        let router = self.namer.take(&format!("{node}-router"), "router");
        let text = "Paths may lead through these services: each has a router of its own, to which it is attached \
                    by a link without properties";
        self.topology.notes.assume(text, node);
        let between = [node.to_owned(), router.clone()];
        self.topology.links.push(Link { between, ..Link::default() });
        self.topology.routers.push(Router { name: router.clone(), comment: None });
        router
    }

    fn bridge(&mut self, element: Element<'_, '_>) -> Result<(), Mistake> {
        let label = xml::required(self.input, element, "name")?;
        self.unknown_before(element, label)?;
        let name = self.namer.take(label, "bridge");
        let vertex = Vertex { name: name.clone(), node: None, replicas: 1, shared: false };
        self.vertices.insert(label.to_owned(), vertex);
        self.topology.access.insert(name.clone(), [Properties::default(); 2]);
        let comment = names::comment(label, &name);
        self.topology.routers.push(Router { name, comment });
        Ok(())
    }

    fn link(&mut self, element: Element<'_, '_>) -> Result<(), Mistake> {
        self.known_only(element, &LINK, "links");
        let end = |name| self.end(element, name);
        let (Some(origin), Some(dest)) = (end("origin")?, end("dest")?) else {
            self.topology.notes.lose("Links of supervisors", "");
            return Ok(());
        };
        if origin.name == dest.name {
            return Err(xml::mistake(self.input, element, "this link joins a service to itself"));
        }
        let base = self.properties(element)?;
        let Some(up) = rate(self.input, element, "upload")? else {
            return Err(xml::mistake(self.input, element, "this link has no `upload`"));
        };
        let both = format!("{}--{}", origin.name, dest.name);
        let down = rate(self.input, element, "download")?;
        if down.is_none() {
            let text = "Links without `download` go one way only: they go both ways with the same properties";
            self.topology.notes.lose(text, both.clone());
        }
        let up = Properties { rate: Some(up), ..base };
        let down = Properties { rate: down.or(up.rate), ..base };
        let (first, second) = (self.meeting(&origin, up, down), self.meeting(&dest, down, up));
        let names = self.join(&both, &first, &second, up, down);
        let label = |end| element.attribute(end).unwrap_or("").trim().to_owned();
        self.links.push(Known { names, origin: label("origin"), dest: label("dest") });
        Ok(())
    }

    /// Where a link begins: a service whose replicas share it has a router in front of them.
    fn meeting(&mut self, vertex: &Vertex, out: Properties, back: Properties) -> Vertex {
        if !vertex.shared {
            return vertex.clone();
        }
        let name = self.namer.take(&format!("{}-shared", vertex.name), "shared");
        self.topology.routers.push(Router { name: name.clone(), comment: None });
        let only_rate =
            |properties: Properties| Properties { rate: properties.rate, ..Properties::default() };
        let between = [vertex.name.clone(), name.clone()];
        let (up, down) = (only_rate(out), only_rate(back));
        self.topology.links.push(Link { between, up, down, ..Link::default() });
        Vertex { name, node: None, replicas: 1, shared: false }
    }

    /// One link, or one for each pair of replicas of two services. Their names.
    fn join(
        &mut self,
        label: &str,
        a: &Vertex,
        b: &Vertex,
        up: Properties,
        down: Properties,
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
            self.topology.links.push(Link { between, name: Some(name), up, down, comment: None });
        }
        names
    }

    /// The vertex that a link names; `None` for a supervisor.
    fn end(&self, element: Element<'_, '_>, name: &str) -> Result<Option<Vertex>, Mistake> {
        let label = xml::required(self.input, element, name)?;
        if let Some(vertex) = self.vertices.get(label) {
            return Ok(Some(vertex.clone()));
        }
        let supervisor = "Supervisors";
        let notes =
            self.topology.notes.lost.iter().filter(|note| note.text.starts_with(supervisor));
        if notes.flat_map(|note| &note.items).any(|item| *item == shorten(label)) {
            return Ok(None);
        }
        let message = format!("no service or bridge is called `{}`", shorten(label));
        Err(xml::mistake(self.input, element, message))
    }

    fn properties(&self, element: Element<'_, '_>) -> Result<Properties, Mistake> {
        let Some(latency) = time(self.input, element, "latency")? else {
            return Err(xml::mistake(self.input, element, "this link has no `latency`"));
        };
        let jitter = time(self.input, element, "jitter")?.unwrap_or_default();
        let loss = loss(self.input, element)?.unwrap_or_default();
        Ok(Properties { latency, jitter, loss, ..Properties::default() })
    }

    fn unknown_before(&self, element: Element<'_, '_>, label: &str) -> Result<(), Mistake> {
        match self.vertices.contains_key(label) {
            true => {
                let message = format!("`{}` names something else already", shorten(label));
                Err(xml::mistake(self.input, element, message))
            }
            false => Ok(()),
        }
    }

    /// Attributes that are not understood are reported.
    fn known_only(&mut self, element: Element<'_, '_>, known: &[&str], of: &str) {
        for attribute in element.attributes().filter(|a| !known.contains(&a.name())) {
            let text = format!("Attributes of {of} whose meaning is not known");
            self.topology.notes.lose(&text, shorten(attribute.name()));
        }
    }
}

/// A time in ms.
fn time(input: &Input<'_>, element: Element<'_, '_>, name: &str) -> Result<Option<Span>, Mistake> {
    xml::value(input, element, name, "a time in ms", |text| decimal::time(text, Some(1_000_000)))
}

fn rate(input: &Input<'_>, element: Element<'_, '_>, name: &str) -> Result<Option<Rate>, Mistake> {
    let needed = "a rate of more than zero, such as 10Mbps";
    xml::value(input, element, name, needed, |text| decimal::rate(text, Some(1)))
}

fn loss(input: &Input<'_>, element: Element<'_, '_>) -> Result<Option<Probability>, Mistake> {
    xml::value(input, element, "drop", "a probability from 0 to 1", decimal::probability)
}
