//! What the programs of a limited node had of the processors.

use serde::{Deserialize, Serialize};
use windtunnel_budget::processor::{self, OWED_NS_MAX};
use windtunnel_limit::group::bandwidth;
use windtunnel_model::Plan;
use windtunnel_model::valid::{PlanValidationError, ensure};
use windtunnel_node::ProcessorWindow;

use super::owner::ResourceLimitOwner;

/// The account of one node, program or reservation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuUsageAccount {
    pub owner: ResourceLimitOwner,
    /// In words.
    pub mechanism: String,
    /// Thousandths of a processor that it may use now.
    pub asked_millis: u32,
    /// Each of about a second, in the order of time.
    pub windows: Vec<CpuAccountWindow>,
    /// Why the limit could not be held.
    pub failure: Option<String>,
    /// When the run began.
    #[serde(skip)]
    pub origin_ns: u64,
    /// When it ended.
    #[serde(skip)]
    pub ended_ns: Option<u64>,
}

/// About a second of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuAccountWindow {
    /// When it ended: after the beginning of the run, once it is in an account.
    pub end_ns: u64,
    pub length_ns: u64,
    /// Processor time that was used.
    pub used_ns: u64,
    /// How long programs were kept from running.
    pub held_ns: u64,
    /// Thousandths of a processor that were asked.
    pub asked_millis: u32,
}

impl CpuUsageAccount {
    /// An account in which nothing was used yet.
    pub fn new(owner: ResourceLimitOwner, asked_millis: u32, mechanism: &str) -> CpuUsageAccount {
        let (mechanism, windows) = (mechanism.to_owned(), Vec::new());
        CpuUsageAccount {
            owner,
            mechanism,
            asked_millis,
            windows,
            failure: None,
            origin_ns: 0,
            ended_ns: None,
        }
    }

    /// The run has ended.
    pub fn end(&mut self, now_ns: u64) {
        self.ended_ns = Some(now_ns);
    }

    /// Adds a window that is complete, unless it began before the run, or ended after it.
    pub fn add(&mut self, window: CpuAccountWindow) {
        let began_ns = window.end_ns.saturating_sub(window.length_ns);
        let is_over = self.ended_ns.is_some_and(|ended_ns| window.end_ns > ended_ns);
        if self.origin_ns > 0 && began_ns >= self.origin_ns && !is_over {
            let end_ns = window.end_ns - self.origin_ns;
            self.windows.push(CpuAccountWindow { end_ns, ..window });
        }
    }

    /// The windows in which the limit was exceeded.
    pub fn exceeded(&self) -> Vec<&CpuAccountWindow> {
        exceeded(&self.windows)
    }

    /// The limit could not be held. The first reason counts, and none after the end of the run.
    pub fn fail(&mut self, why: String) {
        if self.ended_ns.is_some() {
            return;
        }
        self.failure.get_or_insert(why);
    }

    /// Whether it can be that of something in the plan.
    pub fn validate(&self, plan: &Plan) -> Result<(), PlanValidationError> {
        let sane = |window: &CpuAccountWindow| window.length_ns > 0;
        self.owner.validate(plan)?;
        ensure(self.windows.iter().all(sane), || "it has limited nodes for no time".to_owned())
    }
}

/// Of windows in the order of time, those in which the limit was exceeded.
pub fn exceeded(windows: &[CpuAccountWindow]) -> Vec<&CpuAccountWindow> {
    let mut owed_ns = 0;
    let mut exceeds = |window: &&CpuAccountWindow| {
        let exceeds = window.is_exceeded(owed_ns);
        let missed_ns = (owed_ns + window.asked_ns()).saturating_sub(window.used_ns);
        owed_ns = missed_ns.min(OWED_NS_MAX);
        exceeds
    };
    windows.iter().filter(&mut exceeds).collect()
}

impl CpuAccountWindow {
    /// That of a group, with the thousandths of a processor that were asked.
    pub fn new(window: processor::CpuUsageWindow, asked_millis: u32) -> CpuAccountWindow {
        let processor::CpuUsageWindow { end_ns, length_ns, used_ns, held_ns } = window;
        CpuAccountWindow { end_ns, length_ns, used_ns, held_ns, asked_millis }
    }

    /// Whether programs wanted more than they got.
    pub fn is_bound(&self) -> bool {
        self.held_ns > 0
    }

    /// Processors that were used.
    pub fn delivered(&self) -> f64 {
        self.used_ns as f64 / self.length_ns.max(1) as f64
    }

    /// Processor time that was asked, in nanoseconds.
    fn asked_ns(&self) -> u64 {
        let asked_ns = u128::from(self.length_ns) * u128::from(self.asked_millis) / 1000;
        u64::try_from(asked_ns).unwrap_or(u64::MAX)
    }

    /// Whether programs had clearly more than was asked, whether or not they were kept from running:
    /// what has left its control group is kept from nothing. `owed_ns` is what they could be given for
    /// the time before.
    fn is_exceeded(&self, owed_ns: u64) -> bool {
        let asked_ns = self.asked_ns();
        let (quota_us, _) = bandwidth(self.asked_millis);
        let kernel_ns = TICKS_NS + 2 * quota_us * 1_000;
        let slack_ns = (asked_ns / 100 * SLACK_PERCENT).max(SLACK_NS).max(kernel_ns);
        self.used_ns > asked_ns.saturating_add(slack_ns).saturating_add(owed_ns)
    }
}

impl From<ProcessorWindow> for CpuAccountWindow {
    fn from(window: ProcessorWindow) -> Self {
        let ProcessorWindow { end_ns, length_ns, used_ns, held_ns, share } = window;
        CpuAccountWindow { end_ns, length_ns, used_ns, held_ns, asked_millis: share }
    }
}

/// What may be delivered beyond what is asked.
const SLACK_PERCENT: u64 = 3;
/// The same at least, however short the window is: the quota of a pause, and a burst of another one.
const SLACK_NS: u64 = 10_000_000;
/// A stop that comes one tick of the kernel late, 4 ms, on each of two processors; beside that, the
/// quotas of the periods in which the window begins and ends.
const TICKS_NS: u64 = 8_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn window(used_ms: u64, held_ms: u64, asked_millis: u32) -> CpuAccountWindow {
        let ns = |ms: u64| ms * 1_000_000;
        let (end_ns, length_ns) = (ns(5_000), ns(1_000));
        CpuAccountWindow {
            end_ns,
            length_ns,
            used_ns: ns(used_ms),
            held_ns: ns(held_ms),
            asked_millis,
        }
    }

    #[test]
    fn a_limit_is_exceeded_by_three_per_cent_or_one_per_cent_of_a_processor() {
        assert!(!window(514, 400, 500).is_exceeded(0));
        assert!(window(516, 400, 500).is_exceeded(0));
        assert!(!window(311, 700, 300).is_exceeded(0), "two ticks, and two quotas of 1.5 ms");
        assert!(window(312, 700, 300).is_exceeded(0));
        assert!(!window(19, 900, 10).is_exceeded(0));
        assert!(window(21, 900, 10).is_exceeded(0));
        assert!(!window(500, 0, 500).is_exceeded(0));
        assert!(window(900, 0, 500).is_exceeded(0), "what is kept from nothing is not limited");
        let short = CpuAccountWindow { length_ns: 100_000_000, ..window(19, 0, 100) };
        assert!(
            !short.is_exceeded(0)
                && CpuAccountWindow { used_ns: 21_000_000, ..short }.is_exceeded(0)
        );
    }

    #[test]
    fn what_programs_did_not_get_although_they_wanted_it_may_come_in_the_next_second() {
        let mut account = CpuUsageAccount::new(ResourceLimitOwner::Node(0), 500, "duty cycle");
        account.windows = vec![window(490, 400, 500), window(524, 400, 500), window(524, 400, 500)];
        assert_eq!(account.exceeded(), [&account.windows[2]]);
        account.windows = vec![window(100, 400, 500), window(534, 400, 500), window(536, 400, 500)];
        assert_eq!(account.exceeded(), [&account.windows[2]], "20 ms of processor time at most");
    }

    #[test]
    fn what_ended_after_the_run_is_not_in_its_account_nor_is_what_failed_then() {
        let mut account = CpuUsageAccount::new(ResourceLimitOwner::Node(0), 250, "duty cycle");
        account.origin_ns = 3_000_000_000;
        account.end(5_500_000_000);
        // The last whole second of the run may be reported late.
        account.add(CpuAccountWindow { end_ns: 5_000_000_000, ..window(3, 1, 250) });
        account.add(CpuAccountWindow { end_ns: 5_600_000_000, ..window(900, 1, 250) });
        account.fail("its init is gone".to_owned());
        let ends: Vec<u64> = account.windows.iter().map(|it| it.end_ns).collect();
        assert_eq!((ends, account.failure), (vec![2_000_000_000], None));
    }

    #[test]
    fn what_began_before_the_run_is_not_in_its_account() {
        let mut account = CpuUsageAccount::new(ResourceLimitOwner::Node(0), 250, "duty cycle");
        account.add(window(1, 1, 250));
        account.origin_ns = 4_500_000_000;
        account.add(window(2, 1, 250));
        account.origin_ns = 4_000_000_000;
        account.add(window(3, 1, 250));
        let seen: Vec<_> =
            account.windows.iter().map(|it| (it.end_ns, it.used_ns, it.asked_millis)).collect();
        assert_eq!(seen, [(1_000_000_000, 3_000_000, 250)]);
    }
}
