//! What ends a command or a limit, and a recording: its program, or a signal.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use windtunnel_sys::clock;
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::process::{self, Pid, ProcessExitStatus, Signal};
use windtunnel_sys::signal::{ReceivedSignal, SignalReader};

use crate::error::{SystemStepError, system};

/// Signals to this process.
#[derive(Debug)]
pub(crate) struct CommandSignalReader(SignalReader);

/// What a signal means for a command.
#[derive(Debug, PartialEq, Eq)]
enum CommandSignalEffect {
    /// A child has ended, stopped or gone on.
    Child,
    /// The command has to get it as well.
    PassOn(Signal),
    /// The terminal has sent it to all of the group.
    Known,
}

impl CommandSignalReader {
    /// Blocks them: threads that start later must not take them.
    pub(crate) fn open() -> Result<CommandSignalReader, SystemStepError> {
        let signals = [&ENDING[..], &PASSED[..], &[Signal::CHILD]].concat();
        let reader = SignalReader::open(&signals).map_err(system("read signals"))?;
        Ok(CommandSignalReader(reader))
    }

    /// The same for a process that starts a command, whose orphans it inherits from now on.
    pub(crate) fn open_for_command() -> Result<CommandSignalReader, SystemStepError> {
        let signals = CommandSignalReader::open()?;
        process::set_child_subreaper().map_err(system("inherit orphans"))?;
        Ok(signals)
    }

    /// Waits for a child's end, and passes on to it what processes send to this one. Other children
    /// are reaped.
    pub(crate) fn wait_for(&self, child: Pid) -> ProcessExitStatus {
        loop {
            self.wait(None);
            while let Ok(Some(received)) = self.0.read() {
                if let CommandSignalEffect::PassOn(signal) = CommandSignalEffect::of(received) {
                    // That it has just ended shows in a moment.
                    let _ = process::kill(child, signal);
                }
            }
            while let Ok(Some((pid, status))) = process::wait_any(true) {
                if pid == child {
                    return status;
                }
            }
        }
    }

    /// Waits until something is true, or a signal is to end this process.
    pub(crate) fn wait_until(&self, holds: impl Fn() -> bool) {
        while !holds() {
            self.wait(Some(LOOK));
            if self.is_to_end() {
                return;
            }
            while let Ok(Some(_)) = process::wait_any(true) {}
        }
    }

    /// Waits for what is left of a command that has ended, of which `left` is how many: once it is not
    /// gone in a moment, `waits` is called with that. Each wait ends with a signal, too.
    pub(crate) fn wait_for_rest(&self, left: impl Fn() -> u64, waits: impl FnOnce(u64)) {
        let ended_ns = clock::monotonic_ns();
        let is_patient = || clock::monotonic_ns().saturating_sub(ended_ns) < PATIENCE_NS;
        self.wait_until(|| left() == 0 || !is_patient());
        let still = left();
        if still > 0 {
            waits(still);
            self.wait_until(|| left() == 0);
        }
    }

    /// Waits until a process has ended, or a signal is to end this one.
    pub(crate) fn wait_for_end_of(&self, ended: &OwnedFd) {
        loop {
            let both = [self.0.as_fd(), ended.as_fd()];
            let mut wanted =
                both.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
            // A signal's handler is no reason to stop.
            let _ = poll::wait(&mut wanted, None);
            let has_ended = !wanted[1].revents().is_empty();
            if has_ended || self.is_to_end() {
                return;
            }
        }
    }

    fn wait(&self, most: Option<Duration>) {
        let _ = poll::wait(&mut [PollFd::new(&self.0, PollFlags::IN)], most);
    }

    fn is_to_end(&self) -> bool {
        let mut ends = false;
        while let Ok(Some(received)) = self.0.read() {
            ends |= ENDING.iter().any(|signal| signal.as_raw() == received.signal);
        }
        ends
    }
}

impl CommandSignalEffect {
    fn of(received: ReceivedSignal) -> CommandSignalEffect {
        if received.signal == Signal::CHILD.as_raw() {
            return CommandSignalEffect::Child;
        }
        let all = ENDING.iter().chain(&PASSED);
        let signal = all.copied().find(|signal| signal.as_raw() == received.signal);
        match (signal, received.sender) {
            (Some(signal), Some(_)) => CommandSignalEffect::PassOn(signal),
            _ => CommandSignalEffect::Known,
        }
    }
}

/// Those that end a program that does not handle them, and that a user sends for that.
const ENDING: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
/// Others that programs take orders by.
const PASSED: [Signal; 3] = [Signal::USR1, Signal::USR2, Signal::WINCH];
/// From one look at programs that are left to the next.
const LOOK: Duration = Duration::from_millis(20);
/// How long programs that are left are waited for without a word.
const PATIENCE_NS: u64 = 200_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_sends_is_passed_on_and_what_the_terminal_sends_is_known() {
        let received = |signal: Signal, sender| ReceivedSignal { signal: signal.as_raw(), sender };
        let other = Pid::from_raw(7);
        assert_eq!(
            CommandSignalEffect::of(received(Signal::INT, None)),
            CommandSignalEffect::Known
        );
        assert_eq!(
            CommandSignalEffect::of(received(Signal::INT, other)),
            CommandSignalEffect::PassOn(Signal::INT)
        );
        assert_eq!(
            CommandSignalEffect::of(received(Signal::USR1, other)),
            CommandSignalEffect::PassOn(Signal::USR1)
        );
        assert_eq!(
            CommandSignalEffect::of(received(Signal::CHILD, other)),
            CommandSignalEffect::Child
        );
    }
}
