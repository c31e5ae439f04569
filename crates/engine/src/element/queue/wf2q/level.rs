//! One server of WF²Q+: which of the children that share it is next (Bennett and Zhang 1997, figure
//! 5 and equations 27 to 29).
//!
//! A child that has something to send has a start and a finish in virtual time. Those that have
//! started are eligible; of these the one that finishes first is next. Virtual time passes with what
//! is sent, as fast as if all children had something to send, and is never behind the earliest
//! start. So no child saves up what it did not use.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::index;
use crate::packet::PacketTrainShape;

#[derive(Debug)]
pub(super) struct Wf2qServerNode {
    /// The sum of shares by which virtual time passes; `None`: of the children that have something
    /// to send.
    whole: Option<u64>,
    /// Virtual time, but for what was sent since.
    base: u128,
    /// Bytes sent since.
    since: u64,
    /// The sum of shares for these.
    pace: u64,
    /// The sum of shares of children that have something to send, and their number.
    active: u64,
    busy: u32,
    /// Of the busy period: what was noted in an earlier one counts for nothing.
    period: u64,
    children: Vec<Wf2qChildNode>,
    /// By start: those that have not started when last looked.
    later: BTreeSet<(u128, u32)>,
    /// By finish: those that have.
    eligible: BTreeSet<(u128, u32)>,
}

#[derive(Debug, Clone)]
struct Wf2qChildNode {
    share: u64,
    start: u128,
    finish: u128,
    period: u64,
    state: Wf2qEligibility,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wf2qEligibility {
    /// It has nothing to send, or is being served.
    Out,
    Later,
    Eligible,
}

impl Wf2qServerNode {
    /// Without children.
    pub(super) fn new() -> Self {
        Wf2qServerNode {
            whole: None,
            base: 0,
            since: 0,
            pace: 1,
            active: 0,
            busy: 0,
            period: 0,
            children: Vec::new(),
            later: BTreeSet::new(),
            eligible: BTreeSet::new(),
        }
    }

    /// For children with these shares, of which all may have something to send.
    pub(super) fn of(shares: &[u64]) -> Self {
        let whole = shares.iter().fold(0, |sum: u64, share| sum.saturating_add(*share));
        let mut level = Wf2qServerNode::new();
        level.whole = Some(whole.max(1));
        shares.iter().for_each(|share| level.add(*share));
        level
    }

    /// One more child.
    pub(super) fn add(&mut self, share: u64) {
        let share = share.max(1);
        self.children.push(Wf2qChildNode {
            share,
            start: 0,
            finish: 0,
            period: 0,
            state: Wf2qEligibility::Out,
        });
    }

    /// A child that had nothing to send has something, of which so many bytes are first.
    pub(super) fn enter(&mut self, number: u32, bytes: u64) {
        let (time, period) = (self.time(), self.period);
        let child = &mut self.children[index(number)];
        let finish = if child.period == period { child.finish } else { 0 };
        child.period = period;
        self.active = self.active.saturating_add(child.share);
        self.busy += 1;
        self.line_up(number, finish.max(time), bytes);
    }

    /// A child that was served goes on with so many bytes, or has no more (`None`).
    pub(super) fn go_on(&mut self, number: u32, bytes: Option<u64>) {
        match bytes {
            Some(bytes) => self.line_up(number, self.children[index(number)].finish, bytes),
            None => self.quit(number),
        }
    }

    /// What a child sends first has become something else, or nothing, without being served.
    pub(super) fn amend(&mut self, number: u32, bytes: Option<u64>) {
        let start = self.children[index(number)].start;
        if !self.leave(number) {
            return;
        }
        match bytes {
            Some(bytes) => self.line_up(number, start, bytes),
            None => {
                self.children[index(number)].finish = start;
                self.quit(number);
            }
        }
    }

    /// The child that is next.
    pub(super) fn next(&mut self) -> Option<u32> {
        if self.eligible.is_empty() {
            let (earliest, _) = *self.later.first()?;
            if self.time() < earliest {
                (self.base, self.since) = (earliest, 0);
            }
        }
        let time = self.time();
        while let Some((_, number)) =
            self.later.first().filter(|(start, _)| *start <= time).copied()
        {
            self.later.pop_first();
            let child = &mut self.children[index(number)];
            child.state = Wf2qEligibility::Eligible;
            self.eligible.insert((child.finish, number));
        }
        self.eligible.first().map(|(_, number)| *number)
    }

    /// Whether only one child has something to send.
    pub(super) fn is_alone(&self) -> bool {
        self.busy <= 1
    }

    /// Begins to serve a child with segments of this shape. It is to go on afterwards.
    pub(super) fn serve(&mut self, number: u32, shape: &PacketTrainShape, overhead: u32) {
        self.leave(number);
        let pace = self.whole.unwrap_or(self.active).max(1);
        if pace != self.pace {
            (self.base, self.since, self.pace) = (self.time(), 0, pace);
        }
        let child = &mut self.children[index(number)];
        // As if they came singly, to the last bit.
        let time = |bytes: u32| virtual_down(u64::from(bytes) + u64::from(overhead), child.share);
        let each = time(shape.each).saturating_mul(u128::from(shape.count - 1));
        let last = time(shape.last);
        child.finish = child.start.saturating_add(each).saturating_add(last);
    }

    /// So many bytes were sent.
    pub(super) fn pass(&mut self, bytes: u64) {
        self.since = self.since.saturating_add(bytes);
    }

    /// Nothing is left to send, and nothing is being sent.
    pub(super) fn end_period(&mut self) {
        (self.base, self.since) = (0, 0);
        self.period += 1;
    }

    fn time(&self) -> u128 {
        self.base.saturating_add(virtual_up(self.since, self.pace))
    }

    fn quit(&mut self, number: u32) {
        self.active = self.active.saturating_sub(self.children[index(number)].share);
        self.busy -= 1;
    }

    fn line_up(&mut self, number: u32, start: u128, bytes: u64) {
        let child = &mut self.children[index(number)];
        child.start = start;
        child.finish = start.saturating_add(virtual_down(bytes, child.share));
        child.state = Wf2qEligibility::Later;
        self.later.insert((start, number));
    }

    /// Takes a child out of those that wait; whether it was there.
    fn leave(&mut self, number: u32) -> bool {
        let child = &mut self.children[index(number)];
        match core::mem::replace(&mut child.state, Wf2qEligibility::Out) {
            Wf2qEligibility::Out => false,
            Wf2qEligibility::Later => self.later.remove(&(child.start, number)),
            Wf2qEligibility::Eligible => self.eligible.remove(&(child.finish, number)),
        }
    }
}

/// Virtual time is in 2⁻⁶⁴ bytes for each unit of a share. It is rounded so that what starts just
/// now has started.
fn virtual_down(bytes: u64, share: u64) -> u128 {
    (u128::from(bytes) << 64) / u128::from(share)
}

fn virtual_up(bytes: u64, share: u64) -> u128 {
    (u128::from(bytes) << 64).div_ceil(u128::from(share))
}
