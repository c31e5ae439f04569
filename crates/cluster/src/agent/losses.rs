//! Which side of a cut network goes on with a run whose file says `continue`: the other would
//! outlive it.

use std::collections::BTreeMap;

use windtunnel_model::{Span, Time};

/// The members that were lost to one of them, and when.
#[derive(Debug, Default)]
pub(super) struct MemberLossTimes(BTreeMap<u16, Time>);

/// How a member stands to the group that it was in before the last losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LossState {
    /// With most of them, or with a half that has the first: they go on.
    Going,
    /// With the other half: it goes on as long as a client watches it.
    Half,
    /// With fewer than half: it is lost itself.
    Lost,
}

impl MemberLossTimes {
    /// A member is lost.
    pub(super) fn add(&mut self, member: u16, at: Time) {
        self.0.entry(member).or_insert(at);
    }

    /// How the group of this member stands, of so many members. Losses within a short time count as
    /// one: a cut is not noticed for all behind it at once.
    pub(super) fn stand(&self, members: u16, now: Time) -> LossState {
        let just = |member: &u16| self.0.get(member).is_some_and(|at| now.since(*at) <= AT_ONCE);
        let before: Vec<u16> =
            (0..members).filter(|member| !self.0.contains_key(member) || just(member)).collect();
        let left = before.iter().filter(|member| !self.0.contains_key(member)).count();
        let has_first = before.first().is_some_and(|first| !self.0.contains_key(first));
        match (2 * left).cmp(&before.len()) {
            std::cmp::Ordering::Greater => LossState::Going,
            std::cmp::Ordering::Equal if has_first => LossState::Going,
            std::cmp::Ordering::Equal => LossState::Half,
            std::cmp::Ordering::Less => LossState::Lost,
        }
    }
}

/// Twice as long as the mesh takes to notice a loss.
const AT_ONCE: Span = Span::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Time {
        Time::ZERO + Span::from_secs(second)
    }

    /// Each member's view, from how many there are and which were lost at which second.
    fn stand(members: u16, lost: &[(u16, u64)]) -> LossState {
        let mut losses = MemberLossTimes::default();
        for (member, second) in lost {
            losses.add(*member, at(*second));
        }
        losses.stand(members, at(lost.iter().map(|(_, at)| *at).max().unwrap_or(0)))
    }

    #[test]
    fn of_the_sides_of_a_cut_one_goes_on() {
        assert_eq!(stand(3, &[(2, 10)]), LossState::Going);
        assert_eq!(stand(3, &[(0, 10), (1, 11)]), LossState::Lost);
        assert_eq!(stand(4, &[(2, 10), (3, 10)]), LossState::Going);
        assert_eq!(stand(4, &[(0, 10), (1, 11)]), LossState::Half);
    }

    #[test]
    fn machines_that_are_lost_one_by_one_leave_the_others_going() {
        assert_eq!(stand(5, &[(0, 10), (1, 20)]), LossState::Going);
        assert_eq!(stand(5, &[(0, 10), (1, 20), (2, 30)]), LossState::Going);
        assert_eq!(stand(5, &[(4, 10), (1, 20), (2, 30), (3, 40)]), LossState::Going);
        assert_eq!(stand(5, &[(0, 10), (1, 20), (2, 30), (3, 40)]), LossState::Half);
    }

    #[test]
    fn losses_within_two_seconds_are_one_cut_and_later_ones_are_another() {
        let stand_at = |lost: &[(u16, u64)], now: Time| {
            let mut losses = MemberLossTimes::default();
            lost.iter().for_each(|(member, second)| losses.add(*member, at(*second)));
            losses.stand(5, now)
        };
        let lost = [(0, 10), (1, 10), (2, 12)];
        assert_eq!(stand_at(&lost, at(12)), LossState::Lost);
        // A nanosecond later the first two belong to the past: one of three is lost now.
        assert_eq!(stand_at(&lost, at(12) + Span::from_nanos(1)), LossState::Going);
        // A member that is lost again stays lost since the first time.
        assert_eq!(stand_at(&[(0, 10), (1, 10), (2, 12), (0, 12)], at(13)), LossState::Going);
    }

    #[test]
    fn of_two_machines_the_first_goes_on_and_the_second_only_while_it_is_watched() {
        assert_eq!(stand(2, &[(1, 10)]), LossState::Going);
        assert_eq!(stand(2, &[(0, 10)]), LossState::Half);
        assert_eq!(stand(1, &[]), LossState::Going);
    }
}
