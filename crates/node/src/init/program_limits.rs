//! What programs of a node have of groups and limits when they start.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use windtunnel_sys::process::ProcessLimits;

use crate::message::ProgramLimits;

/// The limits of programs.
#[derive(Debug, Default)]
pub(super) struct ProgramLimitTable {
    /// By position of the program; `None`: for those that are not here.
    given: BTreeMap<Option<usize>, (ProgramLimits, Vec<OwnedFd>)>,
}

impl ProgramLimitTable {
    /// Programs that start from now on have these.
    pub(super) fn give(&mut self, limits: ProgramLimits, groups: Vec<OwnedFd>) {
        self.given.insert(limits.program, (limits, groups));
    }

    /// What a program has that starts now.
    pub(super) fn of(&self, program: Option<usize>) -> (ProcessLimits, Vec<BorrowedFd<'_>>) {
        let common = self.given.get(&None);
        let Some((limits, groups)) = self.given.get(&program).or(common) else {
            return (ProcessLimits::default(), Vec::new());
        };
        let ProgramLimits { open_files, pids, data, .. } = *limits;
        let limits = ProcessLimits { open_files, pids, data };
        (limits, groups.iter().map(OwnedFd::as_fd).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_limits_of_its_own_has_those_of_all() {
        let mut table = ProgramLimitTable::default();
        assert_eq!(table.of(Some(0)).0, ProcessLimits::default());
        let all = ProgramLimits { open_files: Some(64), ..ProgramLimits::default() };
        table.give(all, Vec::new());
        let file = std::fs::File::open("/dev/null").unwrap();
        let (open_files, data) = (Some(32), Some(7));
        let one = ProgramLimits { program: Some(1), open_files, data, ..ProgramLimits::default() };
        table.give(one, vec![file.into()]);
        let seen = |program| {
            let (limits, groups) = table.of(program);
            (limits.open_files, limits.data, groups.len())
        };
        assert_eq!(seen(None), (Some(64), None, 0));
        assert_eq!(seen(Some(0)), (Some(64), None, 0));
        assert_eq!(seen(Some(1)), (Some(32), Some(7), 1));
    }
}
