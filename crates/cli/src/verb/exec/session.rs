//! The time in which a command runs elsewhere and this process stands for it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::OFlags;
use windtunnel_control::{Client, Reply, Request};
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::process::Signal;
use windtunnel_sys::signal::Reader;
use windtunnel_sys::terminal::{self, Pair};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Raw;
use crate::verb::Outcome;

/// Has the run start the command of `request`, stands for it, and returns its exit code.
pub(crate) fn run(mut client: Client, request: Request) -> Outcome {
    let signals = Reader::open(&FORWARDED).map_err(|error| failed("take over signals", &error))?;
    let ends = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    if !terminal::is_terminal(ends[0]) {
        client.send(&request, &ends)?;
        return Session { client, signals, relay: None }.until_exit();
    }
    let Pair { controller, terminal } =
        terminal::open_pair().map_err(|error| failed("make a terminal", &error))?;
    let relay = Relay::new(controller).map_err(|error| failed("use a terminal", &error))?;
    // What the user has sent elsewhere (`| less`, `2> log`) goes there and not through the terminal.
    let own = |end: BorrowedFd<'_>| terminal::is_terminal(end);
    let given = |end| if own(end) { terminal.as_fd() } else { end };
    client.send(&with_terminal(request), &[terminal.as_fd(), given(ends[1]), given(ends[2])])?;
    // Only the command may hold its terminal, else its end would not be seen.
    drop(terminal);
    Session { client, signals, relay: Some(relay) }.until_exit()
}

/// SIGWINCH is not passed on: the kernel sends one when the size of the command's terminal changes.
const FORWARDED: [Signal; 5] =
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::WINCH];

fn with_terminal(mut request: Request) -> Request {
    if let Request::Exec { terminal, .. } = &mut request {
        *terminal = true;
    }
    request
}

fn failed(what: &str, error: &io::Error) -> Failure {
    Failure::new(Exit::Machine, format!("cannot {what}: {error}"))
}

struct Session {
    client: Client,
    signals: Reader,
    relay: Option<Relay>,
}

impl Session {
    fn until_exit(mut self) -> Outcome {
        let code = loop {
            let ready = self.wait().map_err(|error| failed("wait", &error))?;
            if ready.signal {
                self.forward_signals()?;
            }
            if let Some(relay) = &mut self.relay {
                relay.carry(&ready).map_err(|error| failed("use the terminal", &error))?;
            }
            if ready.reply
                && let Some(code) = self.answer()?
            {
                break code;
            }
        };
        if let Some(relay) = &mut self.relay {
            relay.drain();
        }
        Ok(code)
    }

    /// Reads one answer; the exit code if it is the last.
    fn answer(&mut self) -> Result<Option<u8>, Failure> {
        match self.client.receive()? {
            Reply::Started { .. } => {
                if let Some(relay) = &mut self.relay {
                    // Only now, so that a refusal is told on a terminal in its usual mode.
                    relay.begin().map_err(|error| failed("use the terminal", &error))?;
                }
                Ok(None)
            }
            Reply::Done => Ok(None),
            Reply::Exited { code } => Ok(Some(code)),
            other => {
                self.relay = None;
                Err(Failure::unexpected(other))
            }
        }
    }

    fn forward_signals(&mut self) -> Result<(), Failure> {
        while let Ok(Some(received)) = self.signals.read() {
            match &mut self.relay {
                Some(relay) if received.signal == Signal::WINCH.as_raw() => relay.adopt_size(),
                None if received.signal == Signal::WINCH.as_raw() => {}
                _ => self.client.send(&Request::Signal { signal: received.signal }, &[])?,
            }
        }
        Ok(())
    }

    fn wait(&self) -> io::Result<Ready> {
        let mut polled = vec![
            PollFd::new(&self.client, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        if let Some(relay) = &self.relay {
            // A descriptor that is not asked about is still told to be closed, so it is left out.
            polled.push(PollFd::new(&relay.controller, relay.interest()));
            if relay.wants_input() {
                polled.push(PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN));
            }
        }
        if self.client.has_buffered() {
            poll::wait(&mut polled, Some(std::time::Duration::ZERO))?;
        } else {
            poll::wait(&mut polled, None)?;
        }
        let at = |index: usize| polled.get(index).map_or(PollFlags::empty(), PollFd::revents);
        Ok(Ready {
            reply: !at(0).is_empty() || self.client.has_buffered(),
            signal: !at(1).is_empty(),
            output: at(2).intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR),
            room: at(2).contains(PollFlags::OUT),
            input: !at(3).is_empty(),
        })
    }
}

/// What can be done without waiting.
struct Ready {
    reply: bool,
    signal: bool,
    output: bool,
    room: bool,
    input: bool,
}

/// Carries bytes between the user's terminal and the command's.
struct Relay {
    controller: std::os::fd::OwnedFd,
    /// Typed and not yet taken by the command's terminal.
    typed: Vec<u8>,
    /// Whether the user's terminal can still be read.
    input_open: bool,
    /// Whether the command's terminal still has somebody.
    output_open: bool,
    raw: Option<Raw>,
}

impl Relay {
    fn new(controller: std::os::fd::OwnedFd) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&controller)?;
        // A command that does not read must not keep us from showing what it writes.
        rustix::fs::fcntl_setfl(&controller, flags | OFlags::NONBLOCK)?;
        let relay =
            Relay { controller, typed: Vec::new(), input_open: true, output_open: true, raw: None };
        relay.adopt_size();
        Ok(relay)
    }

    fn begin(&mut self) -> io::Result<()> {
        self.raw = Some(Raw::enter(rustix::stdio::stdin())?);
        Ok(())
    }

    /// A size that cannot be told is left as it is.
    fn adopt_size(&self) {
        if let Ok(size) = terminal::size(rustix::stdio::stdin()) {
            let _ = terminal::set_size(&self.controller, size);
        }
    }

    fn wants_input(&self) -> bool {
        self.input_open && self.raw.is_some() && self.typed.len() < TYPED_BYTES_MAX
    }

    fn interest(&self) -> PollFlags {
        let mut interest = PollFlags::empty();
        interest.set(PollFlags::IN, self.output_open);
        interest.set(PollFlags::OUT, !self.typed.is_empty());
        interest
    }

    fn carry(&mut self, ready: &Ready) -> io::Result<()> {
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
            // Nobody reads there any more.
            Err(_) => self.typed.clear(),
        }
    }

    /// Shows what the command has written, once.
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

    /// Shows the rest of what the command wrote before it exited.
    fn drain(&mut self) {
        while matches!(self.show(), Ok(true)) {}
    }
}

/// To the user's terminal, wherever standard output goes: it is the terminal that shows the command's.
fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    let out = [rustix::stdio::stdout(), rustix::stdio::stderr(), rustix::stdio::stdin()];
    let shown =
        out.into_iter().find(|end| terminal::is_terminal(end)).unwrap_or(rustix::stdio::stdout());
    while !bytes.is_empty() {
        match rustix::io::write(shown, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// More than this is left in the user's terminal until the command reads.
const TYPED_BYTES_MAX: usize = 64 * 1024;
