//! Processor time of processes that have ended, which no account has.

/// Compares what was last seen of processes that ended with what their parents' accounts gained.
#[derive(Debug, Default)]
pub(super) struct ExitedProcessCpuTime {
    accounts_ns: u64,
    /// What was seen and is yet to appear in an account.
    missing_ns: i128,
    forgotten_ns: u64,
}

impl ExitedProcessCpuTime {
    /// Processes of which `last_seen_ns` was seen together had ended when the accounts of all
    /// parents were `accounts_ns` together. The accounts may be behind by `rounding_ns`; what is
    /// missing beyond that never comes.
    pub(super) fn settle(&mut self, last_seen_ns: u64, accounts_ns: u64, rounding_ns: u64) {
        let gained = i128::from(accounts_ns) - i128::from(self.accounts_ns);
        self.accounts_ns = accounts_ns;
        // An account gains more than was seen: what a process did after it was last seen.
        self.missing_ns = (self.missing_ns + i128::from(last_seen_ns) - gained).max(0);
        let forgotten_ns = self.missing_ns - i128::from(rounding_ns);
        if let Ok(forgotten_ns @ 1..) = u64::try_from(forgotten_ns) {
            self.forgotten_ns = self.forgotten_ns.saturating_add(forgotten_ns);
            self.missing_ns = i128::from(rounding_ns);
        }
    }

    /// Nanoseconds that are in no account.
    pub(super) fn forgotten_ns(&self) -> u64 {
        self.forgotten_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDING: u64 = 20;

    #[test]
    fn what_accounts_have_is_not_forgotten() {
        let mut ended = ExitedProcessCpuTime::default();
        ended.settle(100, 105, ROUNDING);
        // Cut to ticks: it comes later.
        ended.settle(15, 105, ROUNDING);
        ended.settle(4, 125, ROUNDING);
        assert_eq!(ended.forgotten_ns(), 0);
    }

    #[test]
    fn children_in_no_account_count_but_for_what_may_be_rounding() {
        let mut ended = ExitedProcessCpuTime::default();
        for _ in 0..100 {
            ended.settle(15, 0, ROUNDING);
        }
        assert_eq!(ended.forgotten_ns(), 100 * 15 - ROUNDING);
    }

    #[test]
    fn what_a_forgotten_parent_had_of_its_children_counts_too() {
        let mut ended = ExitedProcessCpuTime::default();
        ended.settle(50, 50, ROUNDING);
        // The parent goes, and its account with it.
        ended.settle(7, 0, ROUNDING);
        assert_eq!(ended.forgotten_ns(), 57 - ROUNDING);
    }
}
