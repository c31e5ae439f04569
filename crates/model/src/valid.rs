//! Whether a plan is one: what the resolver of a file promises of it, checked anew where a plan
//! comes from another process or machine.

mod action;
mod expect;
mod link;
mod middlebox;
mod network;
mod node;
mod recording;
mod reservation;
mod service;
mod trace;

use alloc::borrow::ToOwned;
use alloc::format;

use crate::id::{Lane, NetworkVertex, NodeId};
use crate::name;
use crate::plan::{FixedRoute, Plan};

pub use crate::message::{PlanValidationError, Validate, ensure, ensure_short, plain, shown};

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
