//! Whom a limit holds.

use serde::{Deserialize, Serialize};
use windtunnel_model::Plan;
use windtunnel_model::valid::{Invalid, ensure};

/// What shares a limit, by positions in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Owner {
    /// All programs of a node together.
    Node(usize),
    /// One program of a node.
    Program(usize, usize),
    /// All that is within a reservation.
    Reservation(usize),
}

impl Owner {
    /// The node, of its own limits and those of its programs.
    pub(crate) fn node(self) -> Option<usize> {
        match self {
            Owner::Node(node) | Owner::Program(node, _) => Some(node),
            Owner::Reservation(_) => None,
        }
    }

    pub(crate) fn program(self) -> Option<usize> {
        match self {
            Owner::Program(_, program) => Some(program),
            Owner::Node(_) | Owner::Reservation(_) => None,
        }
    }

    pub(crate) fn reservation(self) -> Option<usize> {
        match self {
            Owner::Reservation(reservation) => Some(reservation),
            Owner::Node(_) | Owner::Program(..) => None,
        }
    }

    /// The name of the node or reservation.
    pub(crate) fn name(self, plan: &Plan) -> &str {
        match self {
            Owner::Node(node) | Owner::Program(node, _) => &plan.nodes[node].name,
            Owner::Reservation(reservation) => &plan.reservations[reservation].name,
        }
    }

    /// In a sentence.
    pub(crate) fn describe(self, plan: &Plan) -> String {
        let name = self.name(plan);
        match self {
            Owner::Node(_) => format!("node {name}"),
            Owner::Program(_, program) => format!("program {program} of node {name}"),
            Owner::Reservation(_) => format!("reservation {name}"),
        }
    }

    /// Whether the plan has it: it may come from another machine.
    pub(crate) fn validate(self, plan: &Plan) -> Result<(), Invalid> {
        let known = match self {
            Owner::Node(node) => node < plan.nodes.len(),
            Owner::Program(node, program) => {
                plan.nodes.get(node).is_some_and(|node| program < node.programs.len())
            }
            Owner::Reservation(reservation) => reservation < plan.reservations.len(),
        };
        ensure(known, || "it has limits of what the plan does not have".to_owned())
    }
}
