//! Deficit round robin over flows or hosts, with a list for those that have just come.

/// No index.
pub(in super::super) const NONE: u32 = u32::MAX;

/// The state of one flow or host in the round.
#[derive(Debug, Clone)]
pub(super) struct RoundRobinEntry {
    /// Bytes that it may still send.
    deficit: i64,
    next: u32,
    listed: bool,
}

impl RoundRobinEntry {
    pub(super) const NEW: RoundRobinEntry =
        RoundRobinEntry { deficit: 0, next: NONE, listed: false };

    /// Whether it takes turns.
    pub(super) fn is_listed(&self) -> bool {
        self.listed
    }

    /// How many segments of `full` bytes start while there is credit.
    pub(super) fn covers(&self, full: u64) -> u32 {
        let full = i64::try_from(full.max(1)).unwrap_or(i64::MAX);
        let count = (self.deficit - 1).max(0) / full + 1;
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    pub(super) fn charge(&mut self, bytes: u64) {
        self.deficit -= i64::try_from(bytes).unwrap_or(i64::MAX);
    }

    /// Begins as many turns as it takes, for one that is alone: each next turn is its own.
    pub(super) fn renew(&mut self, quantum: i64) -> bool {
        let spent = self.deficit <= 0;
        while self.deficit <= 0 {
            self.deficit += quantum;
        }
        spent
    }
}

/// The order of turns (RFC 8290, section 4.2): first the new list, then the old one.
#[derive(Debug, Clone)]
pub(super) struct RoundRobin {
    new: RoundRobinList,
    old: RoundRobinList,
    listed: u32,
}

impl RoundRobin {
    pub(super) const EMPTY: RoundRobin =
        RoundRobin { new: RoundRobinList::EMPTY, old: RoundRobinList::EMPTY, listed: 0 };

    /// How many take turns.
    pub(super) fn listed(&self) -> u32 {
        self.listed
    }

    /// Adds one to the round, with one quantum of credit, unless it is there already.
    pub(super) fn enter(&mut self, turns: &mut [RoundRobinEntry], number: u32, quantum: i64) {
        let turn = &mut turns[index(number)];
        if !turn.listed {
            (turn.listed, turn.deficit) = (true, quantum);
            self.listed += 1;
            self.new.push(turns, number);
        }
    }

    /// The one that is alone has had a turn: it is no longer new.
    pub(super) fn ripen(&mut self, turns: &mut [RoundRobinEntry]) {
        let number = self.new.head;
        if number != NONE {
            self.new.pop(turns);
            self.old.push(turns, number);
        }
    }

    /// The next in turn. One that has no more to send, as `is_done` says, goes from the new list to
    /// the end of the old one, so that it gains nothing by coming back at once, and from there out.
    pub(super) fn select(
        &mut self,
        turns: &mut [RoundRobinEntry],
        quantum: i64,
        mut is_done: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        loop {
            let is_new = self.new.head != NONE;
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = list.head;
            if number == NONE {
                return None;
            }
            if turns[index(number)].deficit <= 0 {
                turns[index(number)].deficit += quantum;
            } else if !is_done(number) {
                return Some(number);
            } else if !is_new {
                list.pop(turns);
                turns[index(number)].listed = false;
                self.listed -= 1;
                continue;
            }
            list.pop(turns);
            self.old.push(turns, number);
        }
    }
}

#[derive(Debug, Clone)]
struct RoundRobinList {
    head: u32,
    tail: u32,
}

impl RoundRobinList {
    const EMPTY: RoundRobinList = RoundRobinList { head: NONE, tail: NONE };

    fn push(&mut self, turns: &mut [RoundRobinEntry], number: u32) {
        turns[index(number)].next = NONE;
        match self.tail {
            NONE => self.head = number,
            tail => turns[index(tail)].next = number,
        }
        self.tail = number;
    }

    fn pop(&mut self, turns: &[RoundRobinEntry]) {
        if self.head != NONE {
            self.head = turns[index(self.head)].next;
            if self.head == NONE {
                self.tail = NONE;
            }
        }
    }
}

/// An index; on every machine we build for it fits.
pub(in super::super) fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
