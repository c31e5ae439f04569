//! Kollaps' experiments (Gouveia et al., EuroSys 2020): services, bridges, links, and a schedule.

mod link;
mod schedule;

use std::collections::{BTreeMap, BTreeSet};

use roxmltree::Node as Element;
use windtunnel_scenario::ScenarioMistake;

use super::input::{ImportSourceText, shorten};
use super::names::{self, UniqueNameAllocator};
use super::options::ImportOptions;
use super::xml::{self, elements};
use crate::topology::{Topology, TopologyLink, TopologyNode, TopologyRouter};
use link::KollapsLink;

/// Attributes of services that are understood.
const SERVICE: [&str; 7] = ["name", "image", "command", "replicas", "share", "reuse", "supervisor"];
/// Attributes that change nothing that a packet would notice: names for Docker, the dashboard's
/// port, and what keeps Kollaps' own work small.
const DESCRIPTIONS: [&str; 6] =
    ["boot", "network", "port", "activepaths", "pool_period", "max_age"];

/// A service or bridge: its name in the scenario, and how many there are.
#[derive(Debug, Clone)]
struct KollapsVertex {
    /// Where its links end: the node, the group, or a router.
    name: String,
    /// The node or group; `None` for a bridge.
    node: Option<String>,
    replicas: u32,
    /// Whether its replicas share each of its links.
    shared: bool,
}

/// The experiment while it is read.
struct Experiment<'a> {
    input: &'a ImportSourceText<'a>,
    namer: UniqueNameAllocator,
    link_names: UniqueNameAllocator,
    vertices: BTreeMap<String, KollapsVertex>,
    links: Vec<KollapsLink>,
    topology: Topology,
}

/// Services become nodes or groups, bridges routers.
pub(super) fn convert(
    input: &ImportSourceText<'_>,
    options: &ImportOptions,
) -> Result<Topology, ScenarioMistake> {
    let document = xml::parse(input)?;
    let root = document.root_element();
    if root.tag_name().name() != "experiment" {
        return Err(xml::mistake(input, root, "Kollaps' XML begins with <experiment>"));
    }
    let mut experiment = Experiment {
        input,
        namer: UniqueNameAllocator::default(),
        link_names: UniqueNameAllocator::default(),
        vertices: BTreeMap::new(),
        links: Vec::new(),
        topology: Topology::default(),
    };
    let section = |name: &'static str| {
        elements(root).filter(move |node| node.tag_name().name() == name).flat_map(elements)
    };
    experiment.known_only(root, &[], "the experiment");
    experiment.configuration(section("config"));
    let events: Vec<_> = section("dynamic").collect();
    let links: Vec<_> = section("links").collect();
    for service in section("services") {
        experiment.service(service, &events, &links)?;
    }
    for bridge in section("bridges") {
        experiment.bridge(bridge)?;
    }
    experiment.links(&links)?;
    for other in elements(root) {
        let name = other.tag_name().name();
        if !["config", "services", "bridges", "links", "dynamic"].contains(&name) {
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
    /// Kollaps' paths have the fewest hops, unless its configuration says otherwise.
    fn configuration<'d, 'i: 'd>(&mut self, properties: impl Iterator<Item = Element<'d, 'i>>) {
        let mut metric = "hop".to_owned();
        for property in properties {
            self.known_only(property, &["shortest_path"], "the configuration");
            let asked = property.attribute("shortest_path").map(str::to_owned);
            metric = asked.unwrap_or(metric);
        }
        self.topology.fewest_hops = metric != "latency";
        if self.topology.fewest_hops {
            let text = "Paths have the fewest hops, as Kollaps' own where its configuration does not say \
                        `shortest_path=\"latency\"`";
            self.topology.notes.assume(text, "");
        }
    }

    fn service(
        &mut self,
        element: Element<'_, '_>,
        events: &[Element<'_, '_>],
        links: &[Element<'_, '_>],
    ) -> Result<(), ScenarioMistake> {
        let label = xml::required(self.input, element, "name")?;
        self.known_only(element, &SERVICE, "services");
        if element.attribute("supervisor").is_some() {
            self.topology.notes.lose("Supervisors, such as the dashboard", shorten(label));
            return Ok(());
        }
        let links = neighbours(label, links);
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
        let vertex = KollapsVertex { name, node: Some(node.clone()), replicas, shared };
        self.vertices.insert(label.to_owned(), vertex);
        if let Some(image) = element.attribute("image") {
            let command =
                element.attribute("command").map(|command| format!(" {}", shorten(command)));
            let item = format!("{node} ({}{})", shorten(image), command.unwrap_or_default());
            self.topology.notes.lose("Images and commands are not run", item);
        }
        let comment = names::comment(label, &node);
        let forward = links > 1 && count.is_some();
        self.topology.nodes.push(TopologyNode {
            name: node,
            count,
            forward,
            comment,
            ..TopologyNode::default()
        });
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
        self.topology.links.push(TopologyLink { between, ..TopologyLink::default() });
        self.topology.routers.push(TopologyRouter { name: router.clone(), comment: None });
        router
    }

    fn bridge(&mut self, element: Element<'_, '_>) -> Result<(), ScenarioMistake> {
        let label = xml::required(self.input, element, "name")?;
        self.known_only(element, &["name"], "bridges");
        self.unknown_before(element, label)?;
        let name = self.namer.take(label, "bridge");
        let vertex = KollapsVertex { name: name.clone(), node: None, replicas: 1, shared: false };
        self.vertices.insert(label.to_owned(), vertex);
        self.topology.access.insert(name.clone(), Default::default());
        let comment = names::comment(label, &name);
        self.topology.routers.push(TopologyRouter { name, comment });
        Ok(())
    }

    /// The vertex that a link names; `None` for a supervisor.
    fn end(
        &self,
        element: Element<'_, '_>,
        name: &str,
    ) -> Result<Option<KollapsVertex>, ScenarioMistake> {
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

    fn unknown_before(&self, element: Element<'_, '_>, label: &str) -> Result<(), ScenarioMistake> {
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
            let name = shorten(attribute.name());
            if DESCRIPTIONS.contains(&attribute.name()) {
                self.topology.notes.leave_out_once("Attributes", name);
                continue;
            }
            let text = format!("Attributes of {of} whose meaning is not known");
            self.topology.notes.lose_once(&text, name);
        }
    }
}

/// With how many others links join the service or bridge of this name.
fn neighbours(label: &str, links: &[Element<'_, '_>]) -> usize {
    let other = |link: &Element<'_, '_>| {
        let [origin, dest] = ["origin", "dest"].map(|end| link.attribute(end).map(str::trim));
        let other = if origin == Some(label) { dest } else { origin };
        (origin == Some(label) || dest == Some(label)).then(|| other.map(str::to_owned))
    };
    links.iter().filter_map(other).collect::<BTreeSet<_>>().len()
}
