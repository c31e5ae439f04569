//! Whether a plan is one: what the resolver of a file promises of it, checked anew where a plan
//! comes from another process or machine.

mod action;
mod expect;
mod link;
mod middlebox;
mod network;
mod node;
mod reservation;
mod service;
mod trace;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use crate::id::{Lane, NetworkVertex, NodeId};
use crate::name;
use crate::plan::{FixedRoute, Plan};

/// Why something that came from elsewhere cannot be what it says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanValidationError(String);

impl PlanValidationError {
    /// With a reason in words.
    #[must_use]
    pub fn new(why: impl Into<String>) -> Self {
        PlanValidationError(why.into())
    }
}

/// A message of another process or machine. What reads messages looks at each before anything is
/// done with it, so that the rules for a message are in one place; what only its receiver can know
/// (of which run it is) is checked there.
pub trait Validate {
    /// Whether it can be a message.
    ///
    /// # Errors
    /// The first thing that is wrong.
    fn validate(&self) -> Result<(), PlanValidationError>;
}

/// Refuses what does not hold.
///
/// # Errors
/// `why`, unless it `holds`.
pub fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), PlanValidationError> {
    if holds { Ok(()) } else { Err(PlanValidationError(why())) }
}

/// A text of another process as a message may show it: short, and without control characters.
#[must_use]
pub fn shown(text: &str) -> String {
    plain(text, SHOWN_MAX)
}

/// At most so many characters of a text of another process, without control characters.
#[must_use]
pub fn plain(text: &str, most: usize) -> String {
    let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let mut shown: String = text.chars().take(most).map(plain).collect();
    if text.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}

/// Whether a text is short enough to be kept and shown.
///
/// # Errors
/// If it is not.
pub fn ensure_short(what: &str, text: &str) -> Result<(), PlanValidationError> {
    ensure(text.len() <= TEXT_BYTES_MAX, || format!("{what} has {} bytes", text.len()))
}

/// The most bytes of a reason, a hint or another text that one process sends another.
pub(crate) const TEXT_BYTES_MAX: usize = 64 << 10;

impl Plan {
    /// The most nodes.
    pub const NODES_MAX: usize = 10_000;
    /// The most links.
    pub const LINKS_MAX: usize = 50_000;
    /// The most vertices that a fixed route passes.
    pub(crate) const ROUTE_VERTICES_MAX: usize = Self::LINKS_MAX + 1;

    /// Whether the plan is what a file can mean: names by the file's rules, ids that index the
    /// lists, values that the emulation has a place for. What is valid can be run, and its
    /// names are parts of paths.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), PlanValidationError> {
        ensure(name::is_experiment(&self.name), || {
            format!("`{}` cannot name an experiment", shown(&self.name))
        })?;
        ensure(self.duration.is_none_or(|duration| !duration.is_zero()), || {
            "a run of no time shows nothing".to_owned()
        })?;
        self.traces.iter().try_for_each(trace::validate)?;
        reservation::validate(self)?;
        network::validate(self)?;
        middlebox::validate(self)?;
        service::validate(self)?;
        self.nodes.iter().try_for_each(|node| node::validate(self, node))?;
        self.record.validate(self)?;
        self.routes.iter().try_for_each(|route| self.validate_route(route))?;
        ensure(self.events.is_sorted_by_key(|event| event.at), || {
            "the events are not in the order of their times".to_owned()
        })?;
        self.events.iter().try_for_each(|event| self.validate_action(&event.action))?;
        self.expectations.iter().try_for_each(|wanted| expect::validate(self, wanted))
    }

    /// Whether there is such a lane.
    #[must_use]
    pub fn has_lane(&self, lane: Lane) -> bool {
        lane.link.index() < self.links.len()
    }

    /// Whether there is such a node.
    #[must_use]
    pub fn has_node(&self, node: NodeId) -> bool {
        node.index() < self.nodes.len()
    }

    /// Whether there is such a vertex.
    #[must_use]
    pub(crate) fn has_vertex(&self, vertex: NetworkVertex) -> bool {
        match vertex {
            NetworkVertex::Node(id) => self.has_node(id),
            NetworkVertex::Router(id) => id.index() < self.routers.len(),
            NetworkVertex::Lan(id) => id.index() < self.lans.len(),
        }
    }

    fn validate_route(&self, route: &FixedRoute) -> Result<(), PlanValidationError> {
        let length = route.path.len();
        ensure((2..=Self::ROUTE_VERTICES_MAX).contains(&length), || {
            format!("a route passes {length} vertices")
        })?;
        let known = route.path.iter().all(|vertex| self.has_vertex(*vertex));
        let ends = [route.path.first(), route.path.last()];
        let is_node = |end: &Option<&NetworkVertex>| matches!(end, Some(NetworkVertex::Node(_)));
        ensure(known && ends.iter().all(is_node), || {
            "a route does not lead from a node to a node of the plan".to_owned()
        })
    }
}

/// The most letters of a text that a message shows.
const SHOWN_MAX: usize = 40;
