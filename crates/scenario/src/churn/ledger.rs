//! A population with the record of its changes.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::Span;
use windtunnel_model::random::RandomSequence;

use super::PopulationChange;

/// The members inside and outside, and the changes so far.
#[derive(Debug)]
pub(super) struct MembershipLedger {
    inside: Vec<usize>,
    outside: Vec<usize>,
    draws: RandomSequence,
    moves: BTreeMap<Span, (BTreeSet<usize>, BTreeSet<usize>)>,
}

impl MembershipLedger {
    /// Members from 0 to below `members`, those of `inside` there.
    pub(super) fn new(members: usize, inside: &BTreeSet<usize>, draws: RandomSequence) -> Self {
        let (inside, outside) = (0..members).partition(|member| inside.contains(member));
        MembershipLedger { inside, outside, draws, moves: BTreeMap::new() }
    }

    pub(super) fn inside(&self) -> usize {
        self.inside.len()
    }

    pub(super) fn outside(&self) -> usize {
        self.outside.len()
    }

    /// A member leaves, and is returned; `None` if none is there.
    pub(super) fn leave(&mut self, at: Span) -> Option<usize> {
        let member = self.draws.take(&mut self.inside)?;
        self.outside.push(member);
        let (leave, join) = self.moves.entry(at).or_default();
        // A member that has joined at this very instant has not been there.
        if !join.remove(&member) {
            leave.insert(member);
        }
        Some(member)
    }

    /// A member joins; false if none is outside.
    pub(super) fn join(&mut self, at: Span) -> bool {
        let member = self.draws.take(&mut self.outside);
        member.map(|member| self.enter(at, member)).is_some()
    }

    /// A member leaves and, if `replaced`, another joins, or the same if there is no other. False
    /// if none is there.
    pub(super) fn swap(&mut self, at: Span, replaced: bool) -> bool {
        let Some(gone) = self.leave(at) else { return false };
        if replaced {
            self.outside.retain(|member| *member != gone);
            match self.draws.take(&mut self.outside) {
                Some(other) => {
                    self.outside.push(gone);
                    self.enter(at, other);
                }
                None => self.enter(at, gone),
            }
        }
        true
    }

    /// This one joins.
    pub(super) fn bring(&mut self, at: Span, member: usize) {
        self.outside.retain(|other| *other != member);
        self.enter(at, member);
    }

    pub(super) fn into_moves(self) -> Vec<PopulationChange> {
        let moves = self.moves.into_iter().map(|(at, (leave, join))| PopulationChange {
            at,
            leave: leave.into_iter().collect(),
            join: join.into_iter().collect(),
        });
        moves.filter(|step| !step.leave.is_empty() || !step.join.is_empty()).collect()
    }

    fn enter(&mut self, at: Span, member: usize) {
        self.inside.push(member);
        self.moves.entry(at).or_default().1.insert(member);
    }
}
