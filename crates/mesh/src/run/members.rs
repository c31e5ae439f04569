//! The members of a run, in the order that all of them count by, and which are lost to all.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use super::{MEMBERS_MAX, RunCommandError};
use crate::id::{AgentId, RunId, mix};
use crate::wire::message::{PAGE_BYTES, PAGE_MEMBERS};

/// The members of a run by their positions, this agent among them.
#[derive(Debug)]
pub(crate) struct RunMemberList {
    /// All members, sorted.
    agents: Vec<AgentId>,
    /// Their fingerprint.
    pub(crate) sum: u64,
    /// The position of this agent.
    pub(crate) me: u32,
    /// Members that are lost to all, not only to us because they cut us off.
    lost: BTreeSet<u32>,
    /// Their fingerprint.
    pub(crate) lost_sum: u64,
}

impl RunMemberList {
    /// The members of a run in any order, of which `agent` is this agent.
    pub(crate) fn new(
        run: RunId,
        members: &[AgentId],
        agent: AgentId,
    ) -> Result<Self, RunCommandError> {
        let mut agents = members.to_vec();
        agents.sort_unstable();
        agents.dedup();
        if agents.len() > MEMBERS_MAX {
            return Err(RunCommandError::TooManyMembers { run, count: agents.len() });
        }
        let me = position(&agents, agent).ok_or(RunCommandError::NoMember { run, agent })?;
        let sum = members_sum(&agents);
        Ok(RunMemberList { agents, sum, me, lost: BTreeSet::new(), lost_sum: 0 })
    }

    /// How many they are, with this agent.
    pub(crate) fn len(&self) -> usize {
        self.agents.len()
    }

    pub(crate) fn position(&self, agent: AgentId) -> Option<u32> {
        position(&self.agents, agent)
    }

    pub(crate) fn agent(&self, member: u32) -> AgentId {
        self.agents[member as usize]
    }

    /// All, by position.
    pub(crate) fn agents(&self) -> impl Iterator<Item = AgentId> + '_ {
        self.agents.iter().copied()
    }

    /// The positions of the others.
    pub(crate) fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let (me, end) = (self.me, u32::try_from(self.agents.len()).unwrap_or(u32::MAX));
        (0..end).filter(move |member| *member != me)
    }

    /// A member is lost to all.
    pub(crate) fn lose_to_all(&mut self, member: u32) {
        if self.lost.insert(member) {
            self.lost_sum = self.lost_sum.wrapping_add(mix(self.agent(member).0));
        }
    }

    /// The members that are lost to all, as pages of bits: at least one page, and no other without
    /// any.
    pub(crate) fn lost_pages(&self) -> Vec<(u16, Vec<u8>)> {
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
        pages
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
fn position(members: &[AgentId], agent: AgentId) -> Option<u32> {
    members.binary_search(&agent).ok().and_then(|index| u32::try_from(index).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId(1);

    #[test]
    fn members_are_counted_in_one_order_whatever_the_order_of_the_list() {
        let list = [AgentId(9), AgentId(2), AgentId(5), AgentId(2)];
        let members = RunMemberList::new(RUN, &list, AgentId(5)).expect("a member");
        assert_eq!((members.len(), members.me), (3, 1));
        assert_eq!(members.others().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(members.sum, members_sum(&[AgentId(2), AgentId(5), AgentId(9)]));
        let error = RunMemberList::new(RUN, &list, AgentId(3)).expect_err("no member");
        assert_eq!(error, RunCommandError::NoMember { run: RUN, agent: AgentId(3) });
    }

    #[test]
    fn lost_members_on_several_pages_are_all_named() {
        let all: Vec<_> = (0..3000).map(AgentId).collect();
        let mut members = RunMemberList::new(RUN, &all, AgentId(0)).expect("a member");
        let lost = [5, 8, 1023, 1024, 2999];
        lost.into_iter().for_each(|member| members.lose_to_all(member));
        let pages = members.lost_pages();
        assert_eq!(pages.iter().map(|(page, _)| *page).collect::<Vec<_>>(), [0, 1, 2]);
        let sent: Vec<u32> = pages.iter().flat_map(|(page, bits)| named(*page, bits)).collect();
        assert_eq!(sent, lost);
        assert!(pages.iter().all(|(_, bits)| bits.len() <= PAGE_BYTES));
    }
}
