//! What nodes have been asked to do and are not done with: by number, each with a deadline.
//!
//! While all programs are paused because the emulation is behind, no time passes: deadlines are that much
//! later. Something whose end says nothing any more still has its deadline, as a command that hangs is
//! killed then, and its place is free only after its end.

use std::collections::BTreeMap;

use windtunnel_model::{Span, Time};

/// By number, what was begun and has not ended.
#[derive(Debug)]
pub(super) struct UnderWay<T> {
    all: BTreeMap<u64, InFlightRequest<T>>,
    /// The number of the next one.
    next: u64,
    /// Since when programs are paused.
    frozen: Option<Time>,
}

#[derive(Debug)]
struct InFlightRequest<T> {
    what: T,
    deadline: Time,
    /// Whether its end says anything.
    counts: bool,
    is_late: bool,
}

impl<T> UnderWay<T> {
    /// Nothing is; the numbers begin with this one.
    pub(super) fn new(first: u64) -> Self {
        UnderWay { all: BTreeMap::new(), next: first, frozen: None }
    }

    /// Something begins that has so much time. Returns its number.
    pub(super) fn begin(&mut self, what: T, now: Time, timeout: Span) -> u64 {
        let number = self.next;
        self.next += 1;
        let one = InFlightRequest { what, deadline: now + timeout, counts: true, is_late: false };
        self.all.insert(number, one);
        number
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.all.get_mut(&number).map(|one| &mut one.what)
    }

    pub(super) fn get(&self, number: u64) -> Option<&T> {
        self.all.get(&number).map(|one| &one.what)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.values().map(|one| &one.what)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.values_mut().map(|one| &mut one.what)
    }

    /// It has ended. Also returned is whether that says anything.
    pub(super) fn end(&mut self, number: u64) -> Option<(T, bool)> {
        self.all.remove(&number).map(|one| (one.what, one.counts))
    }

    /// The end of this one says nothing; somebody ends it.
    pub(super) fn give_up(&mut self, number: u64) {
        if let Some(one) = self.all.get_mut(&number) {
            (one.counts, one.is_late) = (false, true);
        }
    }

    /// The end of none of them says anything.
    pub(super) fn discount(&mut self) {
        self.all.values_mut().for_each(|one| one.counts = false);
    }

    pub(super) fn retain(&mut self, keeps: impl Fn(&T) -> bool) {
        self.all.retain(|_, one| keeps(&one.what));
    }

    /// Programs are paused from now on, or no longer.
    pub(super) fn freeze(&mut self, frozen: bool, now: Time) {
        if frozen {
            self.frozen.get_or_insert(now);
        } else if let Some(since) = self.frozen.take() {
            let lasted = now.since(since);
            self.all.values_mut().for_each(|one| one.deadline += lasted);
        }
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// Those whose time is over since this was last called, and whether they counted until now. Their
    /// ends say nothing any more.
    pub(super) fn expire(&mut self, now: Time) -> Vec<(u64, bool)> {
        if self.is_frozen() {
            return Vec::new();
        }
        let late = self.all.iter_mut().filter(|(_, one)| !one.is_late && one.deadline <= now);
        let late = late.map(|(number, one)| {
            one.is_late = true;
            (*number, std::mem::replace(&mut one.counts, false))
        });
        late.collect()
    }

    /// When [`UnderWay::expire`] has something next.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let waited_for = self.all.values().filter(|one| !one.is_late && !self.is_frozen());
        waited_for.map(|one| one.deadline).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn what_is_late_is_so_once_and_its_end_says_nothing() {
        let mut all = UnderWay::new(7);
        let (timeout, later) = (Span::from_millis(300), Span::from_millis(400));
        assert_eq!(all.begin("a", at(0), timeout), 7);
        assert_eq!(all.begin("b", at(0), later), 8);
        assert_eq!((all.next_deadline(), all.expire(at(299))), (Some(at(300)), Vec::new()));
        assert_eq!(all.expire(at(300)), [(7, true)]);
        assert_eq!((all.next_deadline(), all.expire(at(301))), (Some(at(400)), Vec::new()));
        assert_eq!((all.end(7), all.end(7)), (Some(("a", false)), None));
        assert_eq!(all.end(8), Some(("b", true)));
    }

    #[test]
    fn no_time_passes_while_programs_are_paused_and_what_says_nothing_is_late_all_the_same() {
        let mut all = UnderWay::new(0);
        all.begin("a", at(0), Span::from_millis(300));
        all.freeze(true, at(100));
        all.discount();
        assert_eq!((all.next_deadline(), all.expire(at(5000))), (None, Vec::new()));
        all.freeze(false, at(5000));
        assert_eq!(all.next_deadline(), Some(at(5200)));
        assert_eq!(all.expire(at(5200)), [(0, false)]);
    }
}
