//! A virtual slower processor: when programs that share a limit of processor time may run.
//!
//! [`DutyCycle`] gets the time and how much processor time the group has used, and says whether the
//! group may run and when to look again. Time beyond the share is a debt, which is paid by
//! being stopped. What a group does not use while it may run is not kept, but for [`CREDIT_NS`]:
//! so only computing is stretched, and never sleeping. Programs that compute for c and sleep for w
//! take w + c/s at a share s. What it earned while it waited for a processor that others had is
//! kept, as far as [`OWED_NS_MAX`]: it wanted to compute.
//!
//! A group is seen at looks, so it may run at full speed for up to [`LOOK_NS_MAX`] before it is first
//! seen to compute, and sleep again by then. A debt is not paid by sleeping: it is kept until the group
//! computes again ([`DutyCycle::defer`]), so that turns that are shorter than a look are as long as
//! they would be, with their stop in another place. More than [`DEFERRED_NS_MAX`], and what is older than
//! [`DEFERRED_FOR_NS`], is paid asleep: so much computing was not stretched.
//!
//! [`CpuUsageMeter`] divides the readings of any controller into windows of a second, for reports.
//!
//! ```
//! use windtunnel_budget::processor::DutyCycle;
//!
//! let mut cycle = DutyCycle::new(250, 0, 0);
//! let none_waited = || 0;
//! let first = cycle.look(0, 0, none_waited);
//! assert!(first.run);
//! // It computed until the next look, at 2 ms: at a quarter that is worth 8 ms.
//! let next = cycle.look(2_000_000, 2_000_000, none_waited);
//! assert!(!next.run);
//! assert_eq!(next.at_ns, 8_000_000);
//! assert!(cycle.look(8_000_000, 2_000_000, none_waited).run);
//! ```

mod meter;
#[cfg(test)]
mod tests;
mod window;

pub use meter::{CpuUsageMeter, CpuUsageReading, CpuUsageWindow, WINDOW_NS};
pub use window::{bandwidth, exceeded};

/// Processor time that an idle group is lent at most.
pub const CREDIT_NS: u64 = 100_000;
/// The longest time between two looks at a group that runs.
pub const LOOK_NS_MAX: u64 = 8_000_000;
/// The most processor time that a group is owed, because looks came late or others had the
/// processors: it may exceed its share by so much afterwards.
pub const OWED_NS_MAX: u64 = 20_000_000;

/// The most processor time of a debt that waits until a group computes again.
pub const DEFERRED_NS_MAX: u64 = 20_000_000;
/// For how long it waits.
pub const DEFERRED_FOR_NS: u64 = 1_000_000_000;

/// The controller of one group of programs.
#[derive(Debug, Clone)]
pub struct DutyCycle {
    /// Thousandths of one processor.
    share: u32,
    now_ns: u64,
    used_ns: u64,
    /// Processor time to its credit in [`UNIT`]s of a nanosecond; negative: its debt.
    balance: i128,
    /// What it earned and did not use, in the same unit: its own as far as it waited meanwhile.
    forgone: i128,
    run: bool,
    /// Until the next look, where the group runs.
    interval_ns: u64,
    stopped_ns: u64,
    /// How long the group has used nothing where it might have.
    idle_ns: u64,
}

/// What is to be done with a group now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DutyCycleDecision {
    /// Whether it may run.
    pub run: bool,
    /// When to look again.
    pub at_ns: u64,
}

impl DutyCycle {
    /// A group that has used `used_ns` of processor time so far, and now gets `share` thousandths
    /// of a processor, at least one.
    #[must_use]
    pub fn new(share: u32, now_ns: u64, used_ns: u64) -> Self {
        let share = share.max(1);
        let interval_ns = run_ns(share);
        DutyCycle {
            share,
            now_ns,
            used_ns,
            balance: 0,
            forgone: 0,
            run: true,
            interval_ns,
            stopped_ns: 0,
            idle_ns: 0,
        }
    }

    /// From now on another share holds: what was used until now counts by the share before. A debt
    /// stays one.
    pub fn set_share(&mut self, share: u32, now_ns: u64, used_ns: u64) {
        self.catch_up(now_ns, used_ns, || 0);
        self.share = share.max(1);
        self.interval_ns = run_ns(self.share);
    }

    /// How long the group has been stopped, until the last look.
    #[must_use]
    pub fn stopped_ns(&self) -> u64 {
        self.stopped_ns
    }

    /// At `now_ns` the group has used `used_ns`, since the same beginning as at [`DutyCycle::new`].
    /// Neither decreases. `waited_ns` is for how long its threads have waited for a processor since
    /// it was last called, which is not done at each look.
    pub fn look(
        &mut self,
        now_ns: u64,
        used_ns: u64,
        waited_ns: impl FnOnce() -> u64,
    ) -> DutyCycleDecision {
        let (passed, used) = self.catch_up(now_ns, used_ns, waited_ns);
        let debt_ns = u64::try_from(-self.balance / UNIT).unwrap_or(0);
        let due_ns = debt_ns.saturating_mul(u64::from(PROCESSOR)) / u64::from(self.share);
        if due_ns >= if self.run { STOP_NS_MIN } else { 1 } {
            self.run = false;
            self.interval_ns = run_ns(self.share);
            return DutyCycleDecision { run: false, at_ns: self.now_ns.saturating_add(due_ns) };
        }
        if self.run {
            self.interval_ns = self.interval(passed, used, due_ns);
        }
        self.run = true;
        DutyCycleDecision { run: true, at_ns: self.now_ns.saturating_add(self.interval_ns) }
    }

    /// After a look at which a group that ran is to be stopped: it goes on if it sleeps, as it would pay
    /// nothing that way, and is stopped when it computes again. `sleeps` is asked only if it has used
    /// something since the look before.
    pub fn defer(&mut self, sleeps: impl FnOnce() -> bool) -> Option<DutyCycleDecision> {
        let is_little = -self.balance <= i128::from(DEFERRED_NS_MAX) * UNIT;
        let is_recent = self.idle_ns <= DEFERRED_FOR_NS;
        if !is_little || !is_recent || self.idle_ns == 0 && !sleeps() {
            return None;
        }
        self.run = true;
        // It is to be seen soon after it wakes: so much later at the most as it has slept longer.
        let interval_ns = run_ns(self.share).max(self.idle_ns / 128);
        Some(DutyCycleDecision { run: true, at_ns: self.now_ns.saturating_add(interval_ns) })
    }

    /// Accounts for the time since the last reading: how much passed, and was used.
    fn catch_up(&mut self, now: u64, total: u64, waited_ns: impl FnOnce() -> u64) -> (u64, u64) {
        let passed = now.saturating_sub(self.now_ns);
        let used = total.saturating_sub(self.used_ns);
        (self.now_ns, self.used_ns) = (now.max(self.now_ns), total.max(self.used_ns));
        self.account(passed, used, waited_ns);
        (passed, used)
    }

    fn account(&mut self, passed: u64, used: u64, waited_ns: impl FnOnce() -> u64) {
        let share = i128::from(self.share);
        let after = self.balance + i128::from(passed) * share - i128::from(used) * UNIT;
        self.idle_ns = if used > 0 || !self.run { 0 } else { self.idle_ns.saturating_add(passed) };
        // While it sleeps it pays nothing.
        let paid = i128::from(passed.min(used)) * share - i128::from(used) * UNIT;
        let keeps_debt = self.balance + paid < 0 && self.idle_ns <= DEFERRED_FOR_NS;
        let (credit, owed_most) = (i128::from(CREDIT_NS) * UNIT, i128::from(OWED_NS_MAX) * UNIT);
        self.balance = match self.run {
            true if keeps_debt => self.balance + paid,
            // It used less than its share: it slept, or it waited.
            true => after.min(credit.max(self.balance)),
            // Its debt is paid, and the look comes late: what it earned since is owed to it.
            false => after.min(owed_most),
        };
        self.forgone = (self.forgone + after - self.balance).min(owed_most);
        if self.forgone > 0 && used > 0 {
            // A wait is known once it has ended, and the thread computes.
            let kept = self.forgone.min(i128::from(waited_ns()) * share);
            self.balance = (self.balance + kept).min(owed_most);
            // The rest of the time it slept.
            self.forgone = 0;
        }
        if !self.run {
            self.stopped_ns = self.stopped_ns.saturating_add(passed);
        }
    }

    /// Until the next look at a group that goes on: as long as it takes a thread to get into a debt
    /// that is worth a stop; longer and longer while it does nothing.
    fn interval(&self, passed: u64, used: u64, due_ns: u64) -> u64 {
        if used < passed / 20 {
            return (self.interval_ns * 2).min(LOOK_NS_MAX);
        }
        let surplus = u64::from(PROCESSOR.saturating_sub(self.share).max(1));
        let share = u64::from(self.share);
        let left_ns = (STOP_NS_MIN - due_ns.min(STOP_NS_MIN)).saturating_mul(share) / surplus;
        left_ns.clamp(run_ns(self.share) / 2, LOOK_NS_MAX)
    }
}

/// How long a group runs at least before it is looked at: of a cycle of 10 ms its share, as far as
/// neither stopping it costs more than a few per cent, nor a run is longer than 2 ms.
fn run_ns(share: u32) -> u64 {
    (u64::from(share) * 10_000).clamp(500_000, 2_000_000)
}

/// One processor, in the unit of shares.
const PROCESSOR: u32 = 1000;
/// Balances are exact: a nanosecond of a thousandth of a processor is one.
const UNIT: i128 = 1000;
/// A shorter stop is not worth its cost.
const STOP_NS_MIN: u64 = 1_000_000;
