//! What programs of a node have of groups and limits when they start, and the watch over what they
//! use where there are no groups.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use windtunnel_limit::watch::ResourceWatchLimits;
use windtunnel_limit::{ProcessScope, ResourceWatch};
use windtunnel_sys::poll::EventFd;
use windtunnel_sys::process::ProcessLimits;

use crate::message::{NodeInitReply, ProgramBounds, ProgramUse};

/// The limits of programs.
#[derive(Debug, Default)]
pub(super) struct ProgramBoundsTable {
    /// By position of the program; `None`: for those that are not here.
    given: BTreeMap<Option<usize>, (ProgramBounds, Vec<OwnedFd>)>,
    watch: Option<ResourceWatch>,
}

impl ProgramBoundsTable {
    /// Programs that start from now on have these.
    pub(super) fn give(&mut self, bounds: ProgramBounds, groups: Vec<OwnedFd>) {
        self.given.insert(bounds.program, (bounds, groups));
    }

    /// What a program has that starts now.
    pub(super) fn of(&self, program: Option<usize>) -> (ProcessLimits, Vec<BorrowedFd<'_>>) {
        let common = self.given.get(&None);
        let Some((bounds, groups)) = self.given.get(&program).or(common) else {
            return (ProcessLimits::default(), Vec::new());
        };
        let ProgramBounds { open_files, processes, data, .. } = *bounds;
        let limits = ProcessLimits { open_files, processes, data };
        (limits, groups.iter().map(OwnedFd::as_fd).collect())
    }

    /// From now on, what is more than this is ended. What goes wrong is reported.
    pub(super) fn watch(&mut self, allowed: ResourceWatchLimits) -> Option<NodeInitReply> {
        let done = match &self.watch {
            Some(watch) => watch.set(allowed),
            None => ResourceWatch::begin(ProcessScope::Namespace, allowed)
                .map(|watch| self.watch = Some(watch)),
        };
        let failed = |error: io::Error| NodeInitReply::Used {
            used: ProgramUse::default(),
            failure: Some(format!("programs cannot be watched: {error}")),
        };
        done.err().map(failed)
    }

    /// What becomes readable when there is something to report.
    pub(super) fn news(&self) -> Option<&EventFd> {
        self.watch.as_ref().map(ResourceWatch::news)
    }

    /// What programs use, if that is news.
    pub(super) fn report(&self) -> Option<NodeInitReply> {
        let seen = self.watch.as_ref()?.take()?;
        let used = ProgramUse {
            memory: seen.memory,
            memory_peak: seen.memory_peak,
            processes: seen.processes,
            processes_peak: seen.processes_peak,
            faults: seen.faults,
            ended_for_memory: seen.ended_for_memory,
            ended_for_number: seen.ended_for_number,
            ended: seen.ended,
        };
        Some(NodeInitReply::Used { used, failure: seen.failure })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_limits_of_its_own_has_those_of_all() {
        let mut bounds = ProgramBoundsTable::default();
        assert_eq!(bounds.of(Some(0)).0, ProcessLimits::default());
        let all = ProgramBounds { open_files: Some(64), ..ProgramBounds::default() };
        bounds.give(all, Vec::new());
        let file = std::fs::File::open("/dev/null").unwrap();
        let (open_files, data) = (Some(32), Some(7));
        let one = ProgramBounds { program: Some(1), open_files, data, ..ProgramBounds::default() };
        bounds.give(one, vec![file.into()]);
        let seen = |program| {
            let (limits, groups) = bounds.of(program);
            (limits.open_files, limits.data, groups.len())
        };
        assert_eq!(seen(None), (Some(64), None, 0));
        assert_eq!(seen(Some(0)), (Some(64), None, 0));
        assert_eq!(seen(Some(1)), (Some(32), Some(7), 1));
    }
}
