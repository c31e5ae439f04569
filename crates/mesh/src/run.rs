//! One run: its members, the state of each, and the flows.

pub(crate) mod members;

use alloc::vec::Vec;

use windtunnel_model::{Span, Time};

use crate::event::RunViewMismatch;
use crate::flow::delivery::FlowDelivery;
use crate::flow::meetings::SharedDestinationTable;
use crate::flow::own::OwnFlows;
use crate::flow::queue::AnnouncementQueue;
use crate::flow::reception::FlowReception;
use crate::id::{AgentId, PlanHash, RunId};
use crate::wire::message::RunState;
use members::RunMemberList;

/// Members of a run at the most: as many as pages of lost ones can be named.
pub(crate) const MEMBERS_MAX: usize = 65_536;

/// A member's part in a run, as this agent knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPeerState {
    /// Nothing has been received from it.
    Waiting,
    /// It has the same plan.
    Confirmed,
    /// It has another plan, or another list of members.
    Refused,
    /// It has ended its part.
    Left,
    /// It is lost to the run.
    Lost,
}

/// Why a command about a run or a flow is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunCommandError {
    /// There is no such run here.
    #[error("this agent has no part in run {0}")]
    Unknown(RunId),
    /// The id is in use, or was.
    #[error("run {0} has begun here already: an id is never used twice")]
    Repeated(RunId),
    /// The agent itself is not among the members.
    #[error("agent {agent} is not a member of run {run}")]
    NoMember {
        /// The run.
        run: RunId,
        /// The agent.
        agent: AgentId,
    },
    /// More members than a run can have.
    #[error("run {run} has {count} members, at most {MEMBERS_MAX}")]
    TooManyMembers {
        /// The run.
        run: RunId,
        /// How many.
        count: usize,
    },
    /// More runs than the limits allow.
    #[error("this agent has {limit} runs already, its limit")]
    TooManyRuns {
        /// The limit.
        limit: usize,
    },
    /// More flows than the limits allow.
    #[error("this agent has {limit} flows in run {run} already, its limit")]
    TooManyFlows {
        /// The run.
        run: RunId,
        /// The limit.
        limit: usize,
    },
}

/// Another member of a run, or the place of this agent among them.
#[derive(Debug)]
pub(crate) struct RunPeer {
    pub(crate) part: RunPeerState,
    /// It is known to have received our part.
    pub(crate) acked: bool,
    /// How long until it is sent again.
    pub(crate) state_wait: Span,
    /// When it was last answered although it is outside.
    pub(crate) answered: Option<Time>,
    /// It announced something before we knew its part.
    pub(crate) early: bool,
    /// A refusal of this plan of its has been reported.
    pub(crate) refused: Option<PlanHash>,
    /// Its flows, as far as they have been received.
    pub(crate) reception: FlowReception,
    /// Our flows, as far as it has been sent them.
    pub(crate) delivery: FlowDelivery,
}

/// A run.
#[derive(Debug)]
pub(crate) struct RunParticipation {
    pub(crate) id: RunId,
    pub(crate) plan: PlanHash,
    pub(crate) members: RunMemberList,
    /// By position; the entry at our own has no meaning.
    pub(crate) peers: Vec<RunPeer>,
    pub(crate) own: OwnFlows,
    pub(crate) queue: AnnouncementQueue,
    /// Members that share the way into a node.
    pub(crate) meetings: SharedDestinationTable,
    pub(crate) ready: bool,
    /// How long a member may be silent; `None`: as long as a suspected agent has to object.
    pub(crate) patience: Option<Span>,
}

impl RunPeer {
    fn new() -> Self {
        RunPeer {
            part: RunPeerState::Waiting,
            acked: false,
            state_wait: Span::ZERO,
            answered: None,
            early: false,
            refused: None,
            reception: FlowReception::default(),
            delivery: FlowDelivery::default(),
        }
    }
}

impl RunParticipation {
    pub(crate) fn new(id: RunId, plan: PlanHash, members: RunMemberList) -> Self {
        RunParticipation {
            id,
            plan,
            peers: members.agents().map(|_| RunPeer::new()).collect(),
            own: OwnFlows::new(members.len()),
            members,
            queue: AnnouncementQueue::default(),
            meetings: SharedDestinationTable::default(),
            ready: false,
            patience: None,
        }
    }

    pub(crate) fn peer(&mut self, member: u32) -> &mut RunPeer {
        &mut self.peers[member as usize]
    }

    /// Whether a member has confirmed.
    pub(crate) fn has_confirmed(&self, member: u32) -> bool {
        self.peers[member as usize].part == RunPeerState::Confirmed
    }

    /// The others that have confirmed.
    pub(crate) fn confirmed(&self) -> impl Iterator<Item = AgentId> + '_ {
        let peers = self.members.agents().zip(&self.peers);
        peers.filter(|(_, peer)| peer.part == RunPeerState::Confirmed).map(|(agent, _)| agent)
    }

    /// Whether all others have confirmed.
    pub(crate) fn all_confirmed(&self) -> bool {
        self.members.others().all(|member| self.has_confirmed(member))
    }

    /// How a member's plan or list of members differs from ours, if it does.
    pub(crate) fn mismatch(&self, state: &RunState) -> Option<RunViewMismatch> {
        if state.plan != self.plan {
            Some(RunViewMismatch::Plan)
        } else if state.members != self.members.sum {
            Some(RunViewMismatch::Members)
        } else {
            None
        }
    }

    /// The messages that describe our part to a member: one for each page with lost members, at
    /// least one.
    pub(crate) fn states(&self, member: u32, ask: bool) -> impl Iterator<Item = RunState> + '_ {
        let received = self.has_confirmed(member);
        self.members.lost_pages().into_iter().map(move |(page, lost)| RunState {
            run: self.id,
            plan: self.plan,
            members: self.members.sum,
            received,
            ask,
            page,
            lost,
        })
    }
}
