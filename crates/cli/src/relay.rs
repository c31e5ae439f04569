//! Bytes between the user's terminal and the terminal that a command has been given.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::OFlags;
use windtunnel_sys::poll::{PollFd, PollFlags};
use windtunnel_sys::terminal;

use crate::terminal::RawModeGuard;

/// Whether a command gets a terminal of its own: where both its input and its output are the user's
/// terminal. Where only one is, such as in `… | less`, the terminal stays as it is, for the
/// program at the other end of the pipe needs it.
pub(crate) fn is_wanted() -> bool {
    terminal::is_terminal(rustix::stdio::stdin()) && terminal::is_terminal(rustix::stdio::stdout())
}

/// Carries bytes between the user's terminal and the command's.
#[derive(Debug)]
pub(crate) struct Relay {
    controller: OwnedFd,
    /// Typed and not yet taken by the command's terminal.
    typed: Vec<u8>,
    /// Whether the user's terminal can still be read.
    input_open: bool,
    /// Whether a process still holds the command's terminal open.
    output_open: bool,
    raw: Option<RawModeGuard>,
}

/// Descriptors that are ready.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TerminalRelayReadiness {
    output: bool,
    room: bool,
    input: bool,
}

impl Relay {
    /// A relay for the command behind `controller`; it has the size of the user's terminal.
    ///
    /// # Errors
    /// Errors of fcntl(2).
    pub(crate) fn new(controller: OwnedFd) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&controller)?;
        // A command that does not read must not block its own output.
        rustix::fs::fcntl_setfl(&controller, flags | OFlags::NONBLOCK)?;
        let relay =
            Relay { controller, typed: Vec::new(), input_open: true, output_open: true, raw: None };
        relay.adopt_size();
        Ok(relay)
    }

    /// From now on every key goes to the command.
    ///
    /// # Errors
    /// Errors of tcsetattr(3).
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        self.raw = Some(RawModeGuard::enter(rustix::stdio::stdin())?);
        Ok(())
    }

    /// A size that cannot be read is left as it is.
    pub(crate) fn adopt_size(&self) {
        if let Ok(size) = terminal::size(rustix::stdio::stdin()) {
            let _ = terminal::set_size(&self.controller, size);
        }
    }

    /// The descriptors to poll; pass the same ones to [`Relay::ready`] afterwards.
    pub(crate) fn interests(&self) -> Vec<PollFd<'_>> {
        // poll(2) reports a hangup even without requested events, so the descriptor is left out.
        let mut interests = Vec::with_capacity(2);
        if !self.interest().is_empty() {
            interests.push(PollFd::new(&self.controller, self.interest()));
        }
        if self.wants_input() {
            interests.push(PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN));
        }
        interests
    }

    /// The result of polling the descriptors of [`Relay::interests`].
    pub(crate) fn ready(&self, polled: &[PollFd<'_>]) -> TerminalRelayReadiness {
        let mut polled = polled.iter().map(PollFd::revents);
        let none = PollFlags::empty();
        let controller =
            if self.interest().is_empty() { none } else { polled.next().unwrap_or(none) };
        let input = if self.wants_input() { polled.next().unwrap_or(none) } else { none };
        TerminalRelayReadiness {
            output: controller.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR),
            room: controller.contains(PollFlags::OUT),
            input: !input.is_empty(),
        }
    }

    /// Carries what is ready.
    ///
    /// # Errors
    /// Errors of writing to the user's terminal.
    pub(crate) fn carry(&mut self, ready: TerminalRelayReadiness) -> io::Result<()> {
        if ready.input && self.wants_input() {
            self.read_typed();
        }
        if ready.room || ready.input {
            self.pass_typed();
        }
        if ready.output && self.output_open {
            self.show()?;
        }
        Ok(())
    }

    /// Shows the rest of what the command wrote before it exited.
    pub(crate) fn drain(&mut self) {
        while matches!(self.show(), Ok(true)) {}
    }

    fn wants_input(&self) -> bool {
        self.input_open && self.raw.is_some() && self.typed.len() < TYPED_BYTES_MAX
    }

    fn interest(&self) -> PollFlags {
        let mut interest = PollFlags::empty();
        interest.set(PollFlags::IN, self.output_open);
        interest.set(PollFlags::OUT, self.output_open && !self.typed.is_empty());
        interest
    }

    fn read_typed(&mut self) {
        let mut buffer = [0; 4096];
        match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
            Ok(0) => self.input_open = false,
            Ok(got) => self.typed.extend_from_slice(&buffer[..got]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            // The user's terminal is gone.
            Err(_) => self.input_open = false,
        }
    }

    fn pass_typed(&mut self) {
        if self.typed.is_empty() {
            return;
        }
        match rustix::io::write(&self.controller, &self.typed) {
            Ok(written) => drop(self.typed.drain(..written)),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            // The other end is closed.
            Err(_) => self.typed.clear(),
        }
    }

    /// Shows output of the command, by one read.
    fn show(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 16 * 1024];
        match rustix::io::read(&self.controller, &mut buffer) {
            Ok(got) if got > 0 => {
                write_all(&buffer[..got])?;
                Ok(true)
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(false),
            // EIO: the command and its descendants have closed the terminal.
            _ => {
                self.output_open = false;
                Ok(false)
            }
        }
    }
}

/// To the user's terminal, wherever standard output goes: it is the terminal that shows the
/// command's.
fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    let out = [rustix::stdio::stdout(), rustix::stdio::stderr(), rustix::stdio::stdin()];
    let is_terminal = |end: &BorrowedFd<'_>| terminal::is_terminal(end);
    let shown = out.into_iter().find(is_terminal).unwrap_or(rustix::stdio::stdout());
    while !bytes.is_empty() {
        match rustix::io::write(shown, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The descriptors of a command with the terminal `terminal`. A stream that the user has
/// redirected (`2> log`) is passed on and does not go through the terminal.
pub(crate) fn through<'a>(terminal: &'a OwnedFd) -> [BorrowedFd<'a>; 3] {
    let own: [BorrowedFd<'a>; 3] =
        [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    own.map(|end| if terminal::is_terminal(end) { terminal.as_fd() } else { end })
}

/// More than this is left in the user's terminal until the command reads.
const TYPED_BYTES_MAX: usize = 64 * 1024;
