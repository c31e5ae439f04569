//! The program that stands for the process that runs windtunnel.

use std::os::fd::OwnedFd;

use crate::options::Foreground;
use windtunnel_verdict::evidence::ProgramKey;

/// A program that has this process's standard streams, and gets its signals.
#[derive(Debug)]
pub(super) struct ForegroundProgram {
    key: ProgramKey,
    /// Until it is started: then only the program holds them, so that their end is seen.
    stdio: Option<[OwnedFd; 3]>,
    has_terminal: bool,
    /// The number of its start.
    spawn: Option<u64>,
}

impl ForegroundProgram {
    pub(super) fn new(foreground: Foreground) -> Self {
        let Foreground { node, program, stdio, has_terminal } = foreground;
        let key = ProgramKey { node: node.index(), program };
        ForegroundProgram { key, stdio: Some(stdio), has_terminal, spawn: None }
    }

    /// The standard streams of a program that is about to start, if they are this process's, and
    /// whether the first is its terminal. Only the first start has them.
    pub(super) fn take_streams(
        &mut self,
        key: ProgramKey,
        spawn: u64,
    ) -> Option<([OwnedFd; 3], bool)> {
        if key != self.key {
            return None;
        }
        let stdio = self.stdio.take()?;
        self.spawn = Some(spawn);
        Some((stdio, self.has_terminal))
    }

    /// The program and the number of the start that has the streams, once it has been started.
    pub(super) fn started(&self) -> Option<(ProgramKey, u64)> {
        Some((self.key, self.spawn?))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use windtunnel_model::NodeId;

    use super::*;

    #[test]
    fn only_the_first_start_of_the_program_has_the_streams() {
        let null = || OwnedFd::from(File::open("/dev/null").unwrap());
        let stdio = [null(), null(), null()];
        let mut front = ForegroundProgram::new(Foreground {
            node: NodeId(1),
            program: 0,
            stdio,
            has_terminal: true,
        });
        let (own, other) = (ProgramKey { node: 1, program: 0 }, ProgramKey { node: 0, program: 0 });
        assert!(front.take_streams(other, 1).is_none());
        assert_eq!(front.started(), None, "it gets no signals before it runs");
        assert!(front.take_streams(own, 2).is_some_and(|(_, has_terminal)| has_terminal));
        assert!(front.take_streams(own, 3).is_none(), "a restart writes to the run folder");
        assert_eq!(front.started(), Some((own, 2)));
    }
}
