//! Churn at a rate: in each period so many leave, and each comes back.

use std::collections::{BTreeSet, VecDeque};

use windtunnel_model::Span;
use windtunnel_model::random::RandomSequence;

use super::ledger::MembershipLedger;
use super::{PopulationChange, middle};

/// How fast.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChurnRate {
    /// How many leave in each period, at the middles of equal parts of it.
    pub(crate) leavers: u64,
    /// The period.
    pub(crate) every: Span,
    /// How long each stays away.
    pub(crate) away: Span,
    /// When it ends; members that are away then still come back.
    pub(crate) end: Option<Span>,
    /// After how many periods it ends.
    pub(crate) periods: Option<u64>,
}

/// The moves of `members`, all of them there at the beginning but `absent`; `None` if at some time
/// none is left that could leave, or there are more than `most` moves. Times count from 0.
pub(crate) fn by_rate(
    members: usize,
    absent: &BTreeSet<usize>,
    rate: &ChurnRate,
    draws: RandomSequence,
    most: usize,
) -> Option<Vec<PopulationChange>> {
    let inside = (0..members).filter(|member| !absent.contains(member)).collect();
    let mut ledger = MembershipLedger::new(members, &inside, draws);
    let mut away: VecDeque<(Span, usize)> = VecDeque::new();
    let mut left = 0;
    let periods = rate.periods.unwrap_or(u64::MAX);
    'periods: for period in 0..periods {
        let begin = Span::from_nanos(rate.every.as_nanos().saturating_mul(period));
        for i in 0..rate.leavers {
            let at = middle(begin, rate.every, i, rate.leavers);
            if rate.end.is_some_and(|end| at >= end) {
                break 'periods;
            }
            // A member that comes back at the very same instant is not there yet.
            while let Some((back, member)) = away.front().copied().filter(|(back, _)| *back < at) {
                away.pop_front();
                ledger.bring(back, member);
            }
            away.push_back((at + rate.away, ledger.leave(at)?));
            left += 1;
            if left > most {
                return None;
            }
        }
    }
    for (back, member) in away {
        ledger.bring(back, member);
    }
    Some(ledger.into_moves())
}
