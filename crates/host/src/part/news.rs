//! Messages between the parts of a run.

use serde::{Deserialize, Serialize};
use windtunnel_model::Span;
use windtunnel_model::plan::{Action, ServiceChange};
use windtunnel_model::valid::{Invalid, Validate};

use crate::ending::Ending;
use crate::output::ProgramKey;
use crate::supervisor::Supervised;

/// Something that the other parts have to know. State, not steps: the last word counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "news", rename_all = "kebab-case")]
pub(crate) enum News {
    /// Where a program of the writer is in its life.
    Program { key: ProgramKey, state: Box<Supervised> },
    /// Whether all programs of the writer except daemons have had their lives.
    Idle { idle: bool },
    /// Something that was ordered at the writer, to be done by all at that time of the run.
    Order { at: Span, action: Box<Action> },
    /// What was seen of a service's replica at the writer.
    Service { change: ServiceChange },
    /// The run is over for the sender, and so for all members.
    End { ending: Ending },
    /// The writer sends no more packets; so many datagrams with packets have gone to each member.
    Sent { datagrams: Vec<(u16, u64)> },
}

impl Validate for News {
    /// What it names, the receiver looks for in its plan.
    fn validate(&self) -> Result<(), Invalid> {
        match self {
            News::Program { state, .. } => state.validate(),
            News::End { ending } => ending.validate(),
            News::Idle { .. } | News::Order { .. } | News::Service { .. } | News::Sent { .. } => {
                Ok(())
            }
        }
    }
}
