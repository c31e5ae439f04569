//! When each of some things is looked at: once a second, a few at a time, so that what is due
//! meanwhile waits for a few looks and not for all.

use std::ops::Range;

/// Rounds of a second each, in which all are looked at in the order of their positions, spread over
/// the second.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// When the round began.
    began_ns: u64,
    /// What is looked at next.
    next: usize,
}

impl Rounds {
    /// The first begins then.
    pub(super) fn beginning(at_ns: u64) -> Rounds {
        Rounds { began_ns: at_ns, next: 0 }
    }

    /// When something is due of `count` things; `None` without any.
    pub(super) fn due_ns(&self, count: usize) -> Option<u64> {
        let next = self.next.min(count);
        let part_ns = u128::from(ROUND_NS) * next as u128 / count.max(1) as u128;
        let part_ns = u64::try_from(part_ns).unwrap_or(ROUND_NS);
        (count > 0).then_some(self.began_ns.saturating_add(part_ns))
    }

    /// What is to be looked at now, of `count` things: no more than [`TURN_MOST`]. What else is due
    /// is so at the next call.
    pub(super) fn due(&mut self, now_ns: u64, count: usize) -> Range<usize> {
        if self.due_ns(count).is_none_or(|due_ns| due_ns > now_ns) {
            return 0..0;
        }
        let begin = self.next.min(count);
        let end = count.min(begin + TURN_MOST);
        self.next = end;
        if end == count {
            self.next = 0;
            // Rounds that were missed as a whole are not caught up with.
            let is_missed = now_ns.saturating_sub(self.began_ns) >= 2 * ROUND_NS;
            self.began_ns = if is_missed { now_ns } else { self.began_ns + ROUND_NS };
        }
        begin..end
    }
}

/// How many are looked at in one turn of the main loop: a node with three processes takes some 0.2 ms.
pub(super) const TURN_MOST: usize = 2;
const ROUND_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// When each of `count` things was looked at until then, where the loop turns when something is
    /// due, and not before it has done something else until `busy`.
    fn looks(count: usize, until_ns: u64, busy: Range<u64>) -> Vec<Vec<u64>> {
        let mut rounds = Rounds::beginning(0);
        let mut seen = vec![Vec::new(); count];
        let mut now_ns = 0;
        while now_ns < until_ns {
            let due = rounds.due(now_ns, count);
            assert!((1..=TURN_MOST).contains(&due.len()), "{due:?}");
            due.for_each(|position| seen[position].push(now_ns));
            now_ns = now_ns.max(rounds.due_ns(count).unwrap());
            if busy.contains(&now_ns) {
                now_ns = busy.end;
            }
        }
        seen
    }

    #[test]
    fn each_is_looked_at_once_a_second_and_few_at_a_time() {
        for count in [1, 3, 4, 5, 8, 9, 100, 1001] {
            for (position, times) in looks(count, 10_000 * MS, 0..0).iter().enumerate() {
                assert_eq!(times.len(), 10, "{position} of {count}");
                let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
                assert!(gaps.clone().all(|gap| gap == 1_000 * MS), "{position} of {count}");
            }
        }
    }

    /// What is due beside looks waits for one turn: of 100, there are 50 turns, 20 ms apart.
    #[test]
    fn turns_are_spread_over_the_second() {
        let mut times: Vec<u64> = looks(100, 1_000 * MS, 0..0).concat();
        times.sort_unstable();
        times.dedup();
        let expected: Vec<u64> = (0..50).map(|turn| turn * 20 * MS).collect();
        assert_eq!(times, expected);
    }

    #[test]
    fn a_loop_that_was_busy_catches_up_with_a_round_and_not_with_many() {
        let seen = looks(100, 10_000 * MS, 2_500 * MS..6_300 * MS);
        for (position, times) in seen.iter().enumerate() {
            let missed = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
            assert!(missed <= 4_800 * MS, "{position}: {times:?}");
            assert!((6..=8).contains(&times.len()), "{position}: {times:?}");
            let after = times.iter().filter(|at| **at > 6_300 * MS);
            assert!((3..=4).contains(&after.count()), "{position}: {times:?}");
        }
    }

    #[test]
    fn without_anything_nothing_is_due_and_what_is_added_is_looked_at() {
        let mut rounds = Rounds::beginning(0);
        assert_eq!((rounds.due_ns(0), rounds.due(MS, 0)), (None, 0..0));
        assert_eq!(rounds.due(MS, 3), 0..2);
        assert_eq!(rounds.due(MS, 3), 0..0, "the other is due later");
        assert_eq!(rounds.due(900 * MS, 4), 2..4);
        assert_eq!(rounds.due_ns(4), Some(1_000 * MS));
    }
}
