//! The program that stands for the process that runs windtunnel.

use std::os::fd::OwnedFd;

use windtunnel_node::Request;

use super::Live;
use crate::options::Foreground;
use crate::output::ProgramKey;

/// A program in the foreground.
#[derive(Debug)]
pub(super) struct Front {
    key: ProgramKey,
    /// Until it is started: then only the program holds them, so that their end is seen.
    stdio: Option<[OwnedFd; 3]>,
    has_terminal: bool,
    /// The number of its start.
    spawn: Option<u64>,
}

impl Live {
    /// Has a program stand for this process.
    pub(crate) fn put_in_foreground(&mut self, foreground: Foreground) {
        let Foreground { node, program, stdio, has_terminal } = foreground;
        let key = ProgramKey { node: node.index(), program };
        self.front = Some(Front { key, stdio: Some(stdio), has_terminal, spawn: None });
    }

    /// The standard streams of a program that is about to start, if they are this process's, and
    /// whether the first is its terminal.
    pub(super) fn streams_of_front(
        &mut self,
        key: ProgramKey,
        spawn: u64,
    ) -> Option<([OwnedFd; 3], bool)> {
        let front = self.front.as_mut().filter(|front| front.key == key)?;
        let stdio = front.stdio.take()?;
        front.spawn = Some(spawn);
        Some((stdio, front.has_terminal))
    }

    /// Passes a signal on to the program in the foreground. False if none runs, or the run is
    /// ending: then the signal is for the run.
    pub(super) fn pass_on(&self, signal: i32) -> bool {
        let Some(Front { key, spawn: Some(spawn), .. }) = &self.front else { return false };
        let runs = self.supervisor.program(*key).is_some_and(|program| program.life.is_running());
        if !runs || self.supervisor.is_stopping() {
            return false;
        }
        let request = Request::Signal { id: Some(*spawn), signal };
        self.send(key.node, &request, &[]).is_ok()
    }
}
