//! Messages between the parts of a run.

use serde::{Deserialize, Serialize};
use windtunnel_model::Span;
use windtunnel_model::plan::{EventAction, ServiceChange};
use windtunnel_model::valid::{PlanValidationError, Validate};
use windtunnel_verdict::evidence::{ProgramKey, RunEndReason, SupervisedProgram};

/// Something that the other parts have to know. State, not steps: the last word counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "news", rename_all = "kebab-case")]
pub(crate) enum MemberAnnouncement {
    /// Where a program of the writer is in its life.
    Program { key: ProgramKey, state: Box<SupervisedProgram> },
    /// Whether all programs of the writer except daemons have had their lives.
    Idle { idle: bool },
    /// Something that was ordered at the writer, to be done by all at that time of the run.
    Order { at: Span, action: Box<EventAction> },
    /// What was seen of a service's replica at the writer.
    Service { change: ServiceChange },
    /// The run is over for the sender, and so for all members.
    End { ending: RunEndReason },
    /// The writer sends no more packets; so many datagrams with packets have gone to each member.
    Sent { datagrams: Vec<(u16, u64)> },
}

impl Validate for MemberAnnouncement {
    /// What it names, the receiver looks for in its plan.
    fn validate(&self) -> Result<(), PlanValidationError> {
        match self {
            MemberAnnouncement::Program { state, .. } => state.validate(),
            MemberAnnouncement::End { ending } => ending.validate(),
            MemberAnnouncement::Idle { .. }
            | MemberAnnouncement::Order { .. }
            | MemberAnnouncement::Service { .. }
            | MemberAnnouncement::Sent { .. } => Ok(()),
        }
    }
}
