//! Whom a limit holds.

use serde::{Deserialize, Serialize};
use windtunnel_model::Plan;
use windtunnel_model::valid::{PlanValidationError, ensure};

/// What shares a limit, by positions in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceLimitOwner {
    /// All programs of a node together.
    Node(usize),
    /// One program of a node.
    Program(usize, usize),
    /// All that is within a reservation.
    Reservation(usize),
}

impl ResourceLimitOwner {
    /// That of one program of a node; `None`: of all of them.
    pub(super) fn of_program(self, program: Option<usize>) -> ResourceLimitOwner {
        match (self, program) {
            (ResourceLimitOwner::Node(node), Some(program)) => {
                ResourceLimitOwner::Program(node, program)
            }
            (owner, _) => owner,
        }
    }

    /// The node, of its own limits and those of its programs.
    #[must_use]
    pub fn node(self) -> Option<usize> {
        match self {
            ResourceLimitOwner::Node(node) | ResourceLimitOwner::Program(node, _) => Some(node),
            ResourceLimitOwner::Reservation(_) => None,
        }
    }

    /// The position of a program that has limits of its own.
    #[must_use]
    pub fn program(self) -> Option<usize> {
        match self {
            ResourceLimitOwner::Program(_, program) => Some(program),
            ResourceLimitOwner::Node(_) | ResourceLimitOwner::Reservation(_) => None,
        }
    }

    /// A reservation, by its position.
    #[must_use]
    pub fn reservation(self) -> Option<usize> {
        match self {
            ResourceLimitOwner::Reservation(reservation) => Some(reservation),
            ResourceLimitOwner::Node(_) | ResourceLimitOwner::Program(..) => None,
        }
    }

    /// The name of the node or reservation.
    #[must_use]
    pub fn name(self, plan: &Plan) -> &str {
        match self {
            ResourceLimitOwner::Node(node) | ResourceLimitOwner::Program(node, _) => {
                &plan.nodes[node].name
            }
            ResourceLimitOwner::Reservation(reservation) => &plan.reservations[reservation].name,
        }
    }

    /// In a sentence.
    #[must_use]
    pub fn describe(self, plan: &Plan) -> String {
        let name = self.name(plan);
        match self {
            ResourceLimitOwner::Node(_) => format!("node {name}"),
            ResourceLimitOwner::Program(_, program) => format!("program {program} of node {name}"),
            ResourceLimitOwner::Reservation(_) => format!("reservation {name}"),
        }
    }

    /// Whether the plan has it: it may come from another machine.
    ///
    /// # Errors
    /// If it does not.
    pub fn validate(self, plan: &Plan) -> Result<(), PlanValidationError> {
        let known = match self {
            ResourceLimitOwner::Node(node) => node < plan.nodes.len(),
            ResourceLimitOwner::Program(node, program) => {
                plan.nodes.get(node).is_some_and(|node| program < node.programs.len())
            }
            ResourceLimitOwner::Reservation(reservation) => reservation < plan.reservations.len(),
        };
        ensure(known, || "it has limits of what the plan does not have".to_owned())
    }
}
