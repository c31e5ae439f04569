//! One run: its members, the state of each, and the flows.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::{Span, Time};

use crate::flow::meetings::Meetings;
use crate::flow::own::OwnFlows;
use crate::flow::peer::PeerFlows;
use crate::id::{AgentId, PlanHash, RunId, mix};
use crate::wire::message::{PAGE_BYTES, PAGE_MEMBERS, RunState};

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
    pub(crate) flows: PeerFlows,
    /// It was informed that not all of its flows were taken.
    pub(crate) overflow_reported: bool,
    /// It was sent our flows up to this version…
    pub(crate) sent: u64,
    /// …of which those up to this one in full, regardless of its own table.
    pub(crate) full_until: u64,
    /// The greatest version that it was ever sent.
    pub(crate) sent_max: u64,
    /// It is sent something that could wait.
    pub(crate) has_time: bool,
    pub(crate) digest_wait: Span,
    pub(crate) want_wait: Span,
    /// The greatest version that its digests name.
    pub(crate) want_top: u64,
    /// The last request of its that was answered.
    pub(crate) rewound: Option<(Time, u64)>,
}

/// A run.
#[derive(Debug)]
pub(crate) struct RunParticipation {
    pub(crate) plan: PlanHash,
    /// All members, sorted.
    pub(crate) members: Vec<AgentId>,
    pub(crate) members_sum: u64,
    /// The position of this agent.
    pub(crate) me: u32,
    /// By position; the entry at our own has no meaning.
    pub(crate) peers: Vec<RunPeer>,
    pub(crate) own: OwnFlows,
    /// Members that are lost to all, not only to us because they cut us off.
    pub(crate) lost: BTreeSet<u32>,
    /// Their fingerprint.
    pub(crate) lost_sum: u64,
    pub(crate) ready: bool,
    /// Members that have not been sent everything, and are to be.
    pub(crate) dirty: BTreeSet<u32>,
    /// Others that have not been sent everything, and can wait.
    pub(crate) later: BTreeSet<u32>,
    /// Members that share the way into a node.
    pub(crate) meetings: Meetings,
    pub(crate) flushed: Option<Time>,
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
            flows: PeerFlows::default(),
            overflow_reported: false,
            sent: 0,
            sent_max: 0,
            full_until: 0,
            has_time: false,
            digest_wait: Span::ZERO,
            want_wait: Span::ZERO,
            want_top: 0,
            rewound: None,
        }
    }

    /// Something of it is known to be missing.
    pub(crate) fn lacks(&self) -> bool {
        self.flows.has_gap() || self.flows.have() < self.want_top
    }
}

impl RunParticipation {
    pub(crate) fn new(plan: PlanHash, members: Vec<AgentId>, me: u32) -> Self {
        RunParticipation {
            plan,
            members_sum: members_sum(&members),
            me,
            peers: members.iter().map(|_| RunPeer::new()).collect(),
            own: OwnFlows::new(members.len()),
            members,
            lost: BTreeSet::new(),
            lost_sum: 0,
            ready: false,
            dirty: BTreeSet::new(),
            later: BTreeSet::new(),
            meetings: Meetings::default(),
            flushed: None,
            patience: None,
        }
    }

    /// The position of an agent.
    pub(crate) fn position(&self, agent: AgentId) -> Option<u32> {
        position(&self.members, agent)
    }

    pub(crate) fn agent(&self, member: u32) -> AgentId {
        self.members[member as usize]
    }

    pub(crate) fn peer(&mut self, member: u32) -> &mut RunPeer {
        &mut self.peers[member as usize]
    }

    /// The positions of the others.
    pub(crate) fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let (me, end) = (self.me, u32::try_from(self.members.len()).unwrap_or(u32::MAX));
        (0..end).filter(move |member| *member != me)
    }

    /// A member is lost to all.
    pub(crate) fn lose_to_all(&mut self, member: u32) {
        if self.lost.insert(member) {
            self.lost_sum = self.lost_sum.wrapping_add(mix(self.agent(member).0));
        }
    }

    /// The others that have confirmed.
    pub(crate) fn confirmed(&self) -> impl Iterator<Item = AgentId> + '_ {
        let peers = self.members.iter().zip(&self.peers);
        peers.filter(|(_, peer)| peer.part == RunPeerState::Confirmed).map(|(agent, _)| *agent)
    }

    /// Whether all others have confirmed.
    pub(crate) fn all_confirmed(&self) -> bool {
        self.others().all(|member| self.peers[member as usize].part == RunPeerState::Confirmed)
    }

    /// The messages that describe our part to a member: one for each page with lost members, at
    /// least one.
    pub(crate) fn states(&self, run: RunId, member: u32, ask: bool) -> Vec<RunState> {
        let received = self.peers[member as usize].part == RunPeerState::Confirmed;
        let mut pages = vec![(0, Vec::new())];
        for index in self.lost.iter().copied() {
            let page = u16::try_from(index / PAGE_MEMBERS).unwrap_or(u16::MAX);
            let (byte, bit) = ((index % PAGE_MEMBERS / 8) as usize, index % 8);
            if pages.last().is_none_or(|(last, _)| *last != page) {
                pages.push((page, Vec::new()));
            }
            if let Some((_, bits)) = pages.last_mut() {
                bits.resize(bits.len().max(byte + 1).min(PAGE_BYTES), 0);
                bits[byte] |= 1 << bit;
            }
        }
        let state = |(page, lost)| RunState {
            run,
            plan: self.plan,
            members: self.members_sum,
            received,
            ask,
            page,
            lost,
        };
        pages.into_iter().map(state).collect()
    }
}

/// The members that a page of bits names.
pub(crate) fn named(page: u16, bits: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let start = u32::from(page) * PAGE_MEMBERS;
    let bytes = (start..).step_by(8).zip(bits);
    bytes.flat_map(|(first, byte)| {
        (0..8).filter(move |bit| byte & 1 << bit != 0).map(move |bit| first + bit)
    })
}

/// A fingerprint of a sorted list of members.
pub(crate) fn members_sum(members: &[AgentId]) -> u64 {
    members.iter().fold(0, |sum, agent| mix(sum ^ agent.0))
}

/// The position of an agent in a sorted list.
pub(crate) fn position(members: &[AgentId], agent: AgentId) -> Option<u32> {
    members.binary_search(&agent).ok().and_then(|index| u32::try_from(index).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_members_on_several_pages_are_all_named() {
        let members: Vec<_> = (0..3000).map(AgentId).collect();
        let mut run = RunParticipation::new(PlanHash([1; 32]), members, 0);
        let lost = [5, 8, 1023, 1024, 2999];
        for member in lost {
            run.peer(member).part = RunPeerState::Lost;
            run.lose_to_all(member);
        }
        let states = run.states(RunId(1), 1, false);
        assert_eq!(states.iter().map(|state| state.page).collect::<Vec<_>>(), [0, 1, 2]);
        let sent: Vec<u32> =
            states.iter().flat_map(|state| named(state.page, &state.lost)).collect();
        assert_eq!(sent, lost);
        assert!(states.iter().all(|state| state.lost.len() <= PAGE_BYTES));
    }
}
