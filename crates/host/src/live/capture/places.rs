//! Where frames can be captured: where links end at nodes.

use windtunnel_model::Plan;
use windtunnel_model::plan::{Node, NodeInterface};

use crate::live::refusal::{RequestRefusal, list};
use windtunnel_dataplane::tap::CapturePoint;

/// Where a node, or a link, meets nodes' devices.
pub(crate) fn capture_places(plan: &Plan, name: &str) -> Result<Vec<CapturePoint>, RequestRefusal> {
    let everywhere =
        || plan.nodes.iter().flat_map(|node| node.interfaces.iter().map(move |it| (node, it)));
    let (places, nothing): (Vec<CapturePoint>, _) = if let Some(node) = plan.node_named(name) {
        let node = &plan.nodes[node.index()];
        let places = node.interfaces.iter().map(|interface| place(plan, node, interface));
        (places.collect(), format!("node {name} has no link"))
    } else if let Some(link) = plan.link_named(name) {
        let ends = everywhere().filter(|(_, interface)| interface.link == link);
        let places = ends.map(|(node, interface)| place(plan, node, interface));
        (places.collect(), format!("no end of link {name} is at a node"))
    } else {
        return Err(unknown(plan, name));
    };
    if places.is_empty() {
        let text = format!("{nothing}: no frames of it can be captured");
        return Err(RequestRefusal::with_hint(text, HEADERS));
    }
    Ok(places)
}

fn place(plan: &Plan, node: &Node, interface: &NodeInterface) -> CapturePoint {
    let link = &plan.links[interface.link.index()].name;
    CapturePoint {
        port: interface.port,
        name: format!("{} {}", node.name, interface.name),
        description: format!("node {}, device {}, link {link}", node.name, interface.name),
    }
}

fn unknown(plan: &Plan, name: &str) -> RequestRefusal {
    let is_lan = plan.lans.iter().any(|lan| lan.name == name);
    if plan.router_named(name).is_some() || is_lan {
        let kind = if is_lan { "LAN" } else { "router" };
        let text = format!("{name} is a {kind}: frames are captured at nodes only");
        return RequestRefusal::with_hint(text, HEADERS);
    }
    let nodes = plan.nodes.iter().map(|node| node.name.as_str());
    let names = nodes.chain(plan.links.iter().map(|link| link.name.as_str()));
    let hint = list("nodes and links are", names);
    RequestRefusal::with_hint(format!("no node or link is called {name}"), &hint)
}

const HEADERS: &str = "`run --record`, then `records export --format pcapng` has the headers of packets on every link";

#[cfg(test)]
mod tests {
    use super::*;
    use windtunnel_dataplane::testing::plan;

    const FILE: &str = "
nodes: {a: {}, b: {}, c: {}}
routers: [r, s]
links: [{between: [a, r]}, {between: [r, s]}, {between: [s, b]}, {between: [a, b]}]
";

    /// Names of places, or the refusal.
    fn names(name: &str) -> Result<Vec<String>, (String, Option<String>)> {
        let places = capture_places(&plan(FILE), name).map_err(RequestRefusal::into_parts)?;
        Ok(places.into_iter().map(|place| place.name).collect())
    }

    #[test]
    fn a_node_is_captured_at_all_of_its_links_and_a_link_at_those_ends_that_are_nodes() {
        assert_eq!(names("a").unwrap(), ["a eth0", "a eth1"]);
        assert_eq!(names("a--r").unwrap(), ["a eth0"]);
        assert_eq!(names("a--b").unwrap(), ["a eth1", "b eth1"]);
    }

    #[test]
    fn what_has_no_frames_at_a_node_is_refused_by_name() {
        let text = |name: &str| names(name).unwrap_err();
        let headers = Some(HEADERS.to_owned());
        let link = "no end of link r--s is at a node: no frames of it can be captured".to_owned();
        assert_eq!(text("r--s"), (link, headers.clone()));
        let node = "node c has no link: no frames of it can be captured".to_owned();
        assert_eq!(text("c"), (node, headers.clone()));
        let router = "r is a router: frames are captured at nodes only".to_owned();
        assert_eq!(text("r"), (router, headers));
        let hint = "nodes and links are a, b, c, a--r, r--s, s--b, a--b".to_owned();
        assert_eq!(text("x"), ("no node or link is called x".to_owned(), Some(hint)));
    }
}
