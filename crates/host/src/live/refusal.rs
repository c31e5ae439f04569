//! Why a request is refused, and the objects of a plan that requests name.

use windtunnel_control::{ControlReply, LaneChoice};
use windtunnel_model::plan::ScheduledEvent;
use windtunnel_model::{Lane, LinkDirection, NodeId, Plan};

/// Why a request is refused, and what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestRefusal {
    message: String,
    hint: Option<String>,
}

impl From<String> for RequestRefusal {
    fn from(message: String) -> Self {
        RequestRefusal { message, hint: None }
    }
}

impl RequestRefusal {
    pub(super) fn with_hint(message: String, hint: &str) -> RequestRefusal {
        RequestRefusal { message, hint: Some(hint.to_owned()) }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// The message, and the hint behind it.
    pub(crate) fn into_parts(self) -> (String, Option<String>) {
        (self.message, self.hint)
    }

    pub(super) fn into_reply(self) -> ControlReply {
        ControlReply::Error { message: self.message, hint: self.hint }
    }
}

/// A node by its name.
pub(super) fn find_node(plan: &Plan, name: &str) -> Result<NodeId, RequestRefusal> {
    plan.node_named(name).ok_or_else(|| {
        let names = plan.nodes.iter().map(|node| node.name.as_str());
        let hint = Some(list("the nodes are", names));
        RequestRefusal { message: format!("no node is called {name}"), hint }
    })
}

/// The directions of a link that are chosen.
pub(super) fn find_lanes(plan: &Plan, choice: &LaneChoice) -> Result<Vec<Lane>, RequestRefusal> {
    let link = plan.link_named(&choice.link).ok_or_else(|| {
        let names = plan.links.iter().map(|link| link.name.as_str());
        let hint = Some(list("the links are", names));
        RequestRefusal { message: format!("no link is called {}", choice.link), hint }
    })?;
    let both = LinkDirection::BOTH.map(|direction| Lane { link, direction });
    let Some(asked) = &choice.direction else { return Ok(both.to_vec()) };
    let named = |lane: &Lane| lane.direction.name() == asked || plan.lane_name(*lane) == *asked;
    both.iter().find(|lane| named(lane)).map(|lane| vec![*lane]).ok_or_else(|| {
        let names = both.map(|lane| plan.lane_name(lane));
        let names = ["up", "down"].into_iter().chain(names.iter().map(String::as_str));
        let hint = Some(list("the directions are", names));
        RequestRefusal { message: format!("link {} has no direction {asked}", choice.link), hint }
    })
}

/// A client of the same version sends what fits the plan; anything else must do no harm.
pub(super) fn check_events(plan: &Plan, events: &[ScheduledEvent]) -> Result<(), RequestRefusal> {
    let mut actions = events.iter().map(|event| &event.action);
    let checked = actions.try_for_each(|action| plan.validate_action(action));
    checked.map_err(|error| error.to_string().into())
}

/// Enough names to help, not a wall of text.
pub(super) fn list<'a>(intro: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names.iter().take(NAMES_LISTED).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(NAMES_LISTED) {
        None | Some(0) => format!("{intro} {shown}"),
        Some(more) => format!("{intro} {shown} and {more} more"),
    }
}

const NAMES_LISTED: usize = 12;

#[cfg(test)]
mod tests {
    use windtunnel_model::Span;
    use windtunnel_model::plan::{EventAction, NodeVerb};

    use super::*;
    use crate::live::testing::plan;

    const FILE: &str = "nodes: {web: {}, peer: {count: 13}}\nlinks: [{between: [web, peer]}]";

    fn choice(link: &str, direction: Option<&str>) -> LaneChoice {
        LaneChoice { link: link.to_owned(), direction: direction.map(str::to_owned) }
    }

    #[test]
    fn an_unknown_node_is_refused_with_the_first_names() {
        let plan = plan(FILE);
        assert_eq!(find_node(&plan, "peer-2"), Ok(NodeId(2)));
        let ControlReply::Error { message, hint } =
            find_node(&plan, "wev").unwrap_err().into_reply()
        else {
            panic!("not an error");
        };
        assert_eq!(message, "no node is called wev");
        let hint = hint.unwrap();
        assert!(hint.starts_with("the nodes are web, peer-1, "), "{hint}");
        // Of 14 nodes, 12 are listed.
        assert!(hint.ends_with("peer-11 and 2 more"), "{hint}");
    }

    #[test]
    fn a_link_is_both_directions_or_the_one_that_is_named() {
        let plan = plan(FILE);
        let find = |link: &str, direction: Option<&str>| {
            let lanes = find_lanes(&plan, &choice(link, direction))?;
            Ok::<_, RequestRefusal>(lanes.into_iter().map(Lane::index).collect::<Vec<_>>())
        };
        let link = plan.links[1].name.clone();
        assert_eq!(find(&link, None).unwrap(), [2, 3]);
        assert_eq!(find(&link, Some("down")).unwrap(), [3]);
        let down = plan.lane_name(Lane::from_index(3));
        assert_eq!(find(&link, Some(&down)).unwrap(), [3], "by the names of its ends");
        let ControlReply::Error { message, hint } =
            find(&link, Some("left")).unwrap_err().into_reply()
        else {
            panic!("not an error");
        };
        assert_eq!(message, format!("link {link} has no direction left"));
        assert!(hint.unwrap().starts_with("the directions are up, down, "));
        let message = find("atlantic", None).unwrap_err();
        assert_eq!(message.message(), "no link is called atlantic");
    }

    #[test]
    fn events_on_nodes_that_the_plan_does_not_have_are_refused() {
        let plan = plan(FILE);
        let on = |node| ScheduledEvent {
            at: Span::ZERO,
            action: EventAction::Node { nodes: vec![NodeId(node)], verb: NodeVerb::Kill },
        };
        assert_eq!(check_events(&plan, &[on(0), on(13)]), Ok(()));
        assert!(check_events(&plan, &[on(0), on(14)]).is_err());
    }
}
