//! What a process is doing, as far as stopping it depends on that.

use std::fs;

use windtunnel_sys::process::{Pid, Signal};
use windtunnel_sys::signal;

/// The state of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProcessState {
    pub(crate) letter: char,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Whether a terminal controls it.
    pub(crate) has_terminal: bool,
    /// The process group in the foreground of that.
    pub(crate) foreground: i32,
    /// The kernel's `PF_` flags.
    pub(crate) flags: u32,
    pub(crate) threads: u64,
    /// When it began, in ticks since the machine did.
    pub(crate) began: u64,
}

impl ProcessState {
    pub(crate) fn of(pid: Pid) -> Option<ProcessState> {
        let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        ProcessState::of_line(&text)
    }

    /// `pid (name) state ppid pgrp session tty …`: a name may hold anything.
    fn of_line(text: &str) -> Option<ProcessState> {
        let (_, rest) = text.rsplit_once(") ")?;
        let mut fields = rest.split_ascii_whitespace();
        let letter = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let (group, session) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let has_terminal = fields.next()? != "0";
        let foreground = fields.next()?.parse().ok()?;
        let flags = fields.next()?.parse().ok()?;
        let threads = fields.nth(10)?.parse().ok()?;
        let began = fields.nth(1)?.parse().ok()?;
        Some(ProcessState {
            letter,
            parent,
            group,
            session,
            has_terminal,
            foreground,
            flags,
            threads,
            began,
        })
    }

    /// Whether it has not ended, nor been stopped by a signal. Of one whose first thread has ended
    /// others can live.
    pub(crate) fn can_run(&self) -> bool {
        match self.letter {
            'T' | 'X' => false,
            'Z' => self.threads > 1,
            _ => true,
        }
    }

    /// Whether all of its threads have ended.
    pub(crate) fn has_ended(&self) -> bool {
        match self.letter {
            'X' => true,
            'Z' => self.threads <= 1,
            _ => false,
        }
    }

    /// Whether it has not called execve(2) since it was made.
    pub(crate) fn is_forked_without_exec(&self) -> bool {
        self.flags & FORKED_WITHOUT_EXEC != 0
    }

    /// Whether it has not called execve(2) since it was made, or is about to end.
    pub(crate) fn is_beginning_or_ending(&self) -> bool {
        self.flags & (FORKED_WITHOUT_EXEC | EXITING) != 0
    }

    /// The shell with job control whose foreground job a process is.
    pub(crate) fn shell_of(pid: Pid) -> Option<Pid> {
        let state = ProcessState::of(pid)?;
        let shell = Pid::from_raw(state.parent)?;
        state.is_foreground_of(&ProcessState::of(shell)?).then_some(shell)
    }

    /// A shell with job control gives each job a process group of its own.
    fn is_foreground_of(&self, parent: &ProcessState) -> bool {
        let is_foreground = self.has_terminal && self.foreground == self.group;
        is_foreground && parent.session == self.session && parent.group != self.group
    }

    /// Signals of job control that wait for a process to go on, where a terminal controls it.
    pub(crate) fn pending_stops(pid: Pid) -> Vec<Signal> {
        if ProcessState::of(pid).is_none_or(|state| !state.has_terminal) {
            return Vec::new();
        }
        stops_of(signal::ThreadSignalSets::of(pid).unwrap_or_default())
    }
}

fn stops_of(sets: signal::ThreadSignalSets) -> Vec<Signal> {
    let set = sets.pending_for_process;
    let is_in = |signal: &Signal| set & (1 << (signal.as_raw() - 1)) != 0;
    JOB_CONTROL.into_iter().filter(is_in).collect()
}

/// `PF_FORKNOEXEC` and `PF_EXITING` of the kernel's `include/linux/sched.h`.
const FORKED_WITHOUT_EXEC: u32 = 0x40;
const EXITING: u32 = 0x4;

/// Not SIGSTOP, which may be ours.
const JOB_CONTROL: [Signal; 3] = [Signal::TSTP, Signal::TTIN, Signal::TTOU];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_behind_any_name() {
        let line = |state, terminal, threads| {
            let line = format!(
                "7 (a ) T) {state} 3 5 6 {terminal} 7 64 1 2 3 4 5 6 7 8 20 0 {threads} 0 99 1"
            );
            ProcessState::of_line(&line).unwrap()
        };
        let state = line("T", 34816, 4);
        let parts = (state.letter, state.parent, state.group, state.session);
        assert_eq!((parts, state.threads, state.began), (('T', 3, 5, 6), 4, 99));
        assert!(state.has_terminal);
        assert!(!state.can_run() && line("S", 0, 1).can_run());
        assert!(!line("S", 0, 1).has_terminal);
        assert!(line("Z", 0, 2).can_run() && !line("Z", 0, 1).can_run());
        assert!(line("Z", 0, 1).has_ended() && !line("Z", 0, 2).has_ended() && !state.has_ended());
        assert!(state.is_beginning_or_ending());
        assert!(!ProcessState { flags: 0x40_0000, ..state }.is_beginning_or_ending());
        assert_eq!(ProcessState::of_line("7 (a) S"), None);
    }

    #[test]
    fn only_a_shell_with_job_control_has_a_job_in_the_foreground() {
        let state = |group, foreground| ProcessState {
            group,
            session: 3,
            has_terminal: true,
            foreground,
            ..ProcessState::default()
        };
        let (job, shell) = (state(7, 7), state(3, 7));
        assert!(job.is_foreground_of(&shell));
        assert!(!state(7, 3).is_foreground_of(&shell), "in the background");
        assert!(!job.is_foreground_of(&state(7, 7)), "in the group of its parent");
        assert!(!ProcessState { has_terminal: false, ..job }.is_foreground_of(&shell));
    }

    #[test]
    fn pending_signals_of_job_control_are_found_and_no_others() {
        assert_eq!(
            stops_of(signal::ThreadSignalSets::parse("Name:\tsh\nShdPnd:\t0000000000080000\n")),
            [Signal::TSTP]
        );
        assert_eq!(
            stops_of(signal::ThreadSignalSets::parse("ShdPnd:\t0000000000740002\n")),
            [Signal::TTIN, Signal::TTOU]
        );
        assert_eq!(stops_of(signal::ThreadSignalSets::parse("SigPnd:\t0000000000080000\n")), []);
    }
}
