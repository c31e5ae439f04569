//! What events do.

use alloc::borrow::ToOwned;
use alloc::format;

use crate::demand::Demand;
use crate::plan::{EventAction, NodeVerb, PartitionMode, Plan, RouteChange};

use crate::message::{PlanValidationError, Validate, ensure};

impl Plan {
    /// Whether an action fits the plan: everything that it names exists, and every value is one
    /// that a file can set.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn validate_action(&self, action: &EventAction) -> Result<(), PlanValidationError> {
        ensure(self.has_all(action), || "an event names what this run does not have".to_owned())?;
        match action {
            EventAction::Link(change) => change.patches.iter().try_for_each(|(lane, patch)| {
                let profile = &self.links[lane.link.index()].profiles[lane.direction.index()];
                let free = patch.traces.rate.is_none() || profile.rate_limit.is_none();
                ensure(free, || "a rate that a node limits follows no trace".to_owned())?;
                let named =
                    |error| PlanValidationError::new(format!("{}: {error}", self.lane_name(*lane)));
                profile.takes(patch).map_err(named)?;
                patch.validate(self)
            }),
            EventAction::Churn { by, .. } => {
                ensure(matches!(by, NodeVerb::Kill | NodeVerb::Stop), || {
                    format!("nodes do not leave by `{}`", by.name())
                })
            }
            EventAction::Limit { limits, .. } => {
                let Demand { cpu_millis, memory, pids, disk, .. } = *limits;
                let live = Demand { cpu_millis, memory, pids, disk, ..Demand::default() };
                let changes = live == *limits && !limits.is_unknown();
                ensure(changes, || "an event limits what does not change in a run".to_owned())?;
                limits.validate()
            }
            EventAction::Route(RouteChange { fix, .. }) => {
                fix.iter().try_for_each(|route| self.validate_route(route))
            }
            EventAction::Service(changes) => changes.iter().try_for_each(|change| {
                ensure(change.update.is_asked_for(), || {
                    "an event says of a service what only its replicas can".to_owned()
                })?;
                self.validate_service_change(change)
            }),
            _ => Ok(()),
        }
    }

    fn has_all(&self, action: &EventAction) -> bool {
        match action {
            EventAction::Link(change) => {
                let patched = change.patches.iter().map(|(lane, _)| lane);
                patched
                    .chain(change.state.iter().map(|(lane, _)| lane))
                    .all(|it| self.has_lane(*it))
            }
            EventAction::Flap { lanes, .. } => lanes.iter().all(|lane| self.has_lane(*lane)),
            EventAction::Node { nodes, .. }
            | EventAction::Absent { nodes }
            | EventAction::Limit { nodes, .. } => nodes.iter().all(|node| self.has_node(*node)),
            EventAction::Churn { leave, join, .. } => {
                leave.iter().chain(join).all(|node| self.has_node(*node))
            }
            EventAction::Partition { groups, cut } => {
                let paired = *cut != PartitionMode::Pairs || groups.len() % 2 == 0;
                paired && groups.iter().flatten().all(|vertex| self.has_vertex(*vertex))
            }
            EventAction::Route(change) => {
                let mut ends = change.release.iter().flat_map(|(from, to)| [from, to]);
                ends.all(|node| self.has_node(*node))
            }
            EventAction::Heal | EventAction::Reroute | EventAction::Service(_) => true,
        }
    }
}
