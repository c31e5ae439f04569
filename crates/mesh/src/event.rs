//! Events for the caller of the mesh.

use alloc::vec::Vec;
use core::net::SocketAddr;

use crate::id::{AgentId, Identity, PlanHash, RunId};
use windtunnel_model::Time;
use windtunnel_model::flow::FlowChange;

/// A datagram to be sent. The carrier encrypts and authenticates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingDatagram {
    /// Where to.
    pub to: SocketAddr,
    /// Its bytes, at most the MTU.
    pub payload: Vec<u8>,
}

/// Something that happened, in the order in which it did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MeshEvent {
    /// An agent is there.
    AgentUp(Identity),
    /// A life of an agent is over. Its flows have ended in all runs ([`MeshEvent::Flows`] and
    /// [`MeshEvent::RunLost`] say so for each).
    AgentDown {
        /// Which life of which agent.
        life: Identity,
        /// How it ended.
        how: AgentDepartureReason,
    },
    /// The others had declared this agent lost, or know a life of it that began with a greater
    /// number: it goes on as `now`. Runs that the others have cut it out of are reported one by
    /// one, as [`MeshEvent::RunLost`]. If this comes again and again, two agents have the same id.
    Renewed {
        /// The life that is over for the others.
        was: Identity,
        /// The present one.
        now: Identity,
    },
    /// A member of a run has the same plan.
    RunConfirmed {
        /// The run.
        run: RunId,
        /// The member.
        agent: AgentId,
    },
    /// An agent takes this run's id for something else. The run cannot become ready.
    RunRefused {
        /// The run.
        run: RunId,
        /// The agent that refused.
        agent: AgentId,
        /// The plan here.
        ours: PlanHash,
        /// The plan there.
        theirs: PlanHash,
        /// The difference.
        why: RunViewMismatch,
    },
    /// All members of a run have the same plan.
    RunReady {
        /// The run.
        run: RunId,
    },
    /// A member ended its part in a run. Final.
    RunLeft {
        /// The run.
        run: RunId,
        /// The member.
        agent: AgentId,
    },
    /// A member is silent, and not lost yet: the run has more patience ([`crate::Mesh::set_patience`]).
    RunSilent {
        /// The run.
        run: RunId,
        /// The member.
        agent: AgentId,
        /// When something was last received from it.
        since: Time,
    },
    /// A member that was silent answers again.
    RunAnswers {
        /// The run.
        run: RunId,
        /// The member.
        agent: AgentId,
    },
    /// A member is lost to a run. Final, also when its agent comes back.
    RunLost {
        /// The run.
        run: RunId,
        /// The member.
        agent: AgentId,
        /// How that is known.
        cause: LossCause,
    },
    /// Flows of another member began, changed or ended.
    Flows {
        /// The run.
        run: RunId,
        /// The agent that announces them.
        agent: AgentId,
        /// Each flow that changed.
        changes: Vec<FlowChange>,
    },
    /// A member has announced more flows than [`crate::config::MeshLimits::flows`]; those beyond are
    /// not known here. Reported once for each member and run.
    FlowsRefused {
        /// The run.
        run: RunId,
        /// The agent that announces them.
        agent: AgentId,
    },
    /// An agent's clock, or ours, was stepped: earlier measurements are void and made anew.
    ClockStepped {
        /// The agent whose clock was compared.
        agent: AgentId,
        /// By how many nanoseconds that clock is further ahead than it was, about.
        by: i64,
    },
}

/// How a life of an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentDepartureReason {
    /// It did not answer, or another agent reported so.
    Lost,
    /// It said so.
    Left,
    /// A later life of it has begun.
    Replaced,
}

/// The difference between two agents' views of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunViewMismatch {
    /// The hash.
    Plan,
    /// The list of members.
    Members,
    /// The agent is not in our list of members.
    NoMember,
}

/// How it is known that a member is lost to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause {
    /// The agent's life is over.
    AgentDown,
    /// This member said so.
    ReportedBy(AgentId),
    /// The member has declared this agent lost, and so ignores it.
    CutUsOff,
}
