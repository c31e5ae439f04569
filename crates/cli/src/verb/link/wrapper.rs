//! The time in which a command runs in a node and this process stands for it: its streams, its
//! terminal, its exit code. Nothing of windtunnel's own is on standard output.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use windtunnel_host::{Foreground, Observer, ObserverNotice};
use windtunnel_model::NodeId;
use windtunnel_sys::poll::{self, EventFd as Wake, PollFd, PollFlags};
use windtunnel_sys::process::Signal;
use windtunnel_sys::signal::SignalReader;
use windtunnel_sys::terminal::{self, PseudoterminalPair};
use windtunnel_trace::event::{EventLogEntry, EventLogEntryKind};

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;
use crate::output;
use crate::relay::{self, Relay};
use crate::render::event;
use crate::render::text::shown;

/// Observes the run while the command runs.
pub(super) struct LinkCommandObserver {
    /// The node with the command as its only program.
    node: String,
    seen: Mutex<WrapperState>,
    over: Arc<Wake>,
}

#[derive(Default)]
struct WrapperState {
    began: bool,
    exit: Option<u8>,
    /// The command's terminal, until it starts.
    terminal: Option<Terminal>,
    relay: Option<JoinHandle<()>>,
    /// The last lines of other programs: printed if the run fails.
    lines: VecDeque<String>,
}

struct Terminal {
    relay: Relay,
    sizes: SignalReader,
}

impl LinkCommandObserver {
    /// The command of `node`, and the descriptors that it inherits. Call before there are threads.
    pub(super) fn new(node: &str, id: NodeId) -> Result<(Self, Foreground), VerbFailure> {
        let over = Wake::open().map_err(|error| failed("make an event descriptor", &error))?;
        let mut seen = WrapperState::default();
        let (stdio, has_terminal) = if relay::is_wanted() {
            let PseudoterminalPair { controller, terminal } =
                terminal::open_pair().map_err(|error| failed("make a terminal", &error))?;
            let sizes = SignalReader::open(&[Signal::WINCH])
                .map_err(|error| failed("take over a signal", &error))?;
            let relay = Relay::new(controller).map_err(|error| failed("use a terminal", &error))?;
            seen.terminal = Some(Terminal { relay, sizes });
            (copies(relay::through(&terminal))?, true)
        } else {
            (
                copies([rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()])?,
                false,
            )
        };
        let foreground = Foreground { node: id, program: 0, stdio, has_terminal };
        let (seen, over) = (Mutex::new(seen), Arc::new(over));
        Ok((LinkCommandObserver { node: node.to_owned(), seen, over }, foreground))
    }

    /// Waits until all that the command wrote is shown. Returns its exit code, if it has run.
    pub(super) fn finish(&self) -> Option<u8> {
        let relay = self.seen().relay.take();
        // Usually already raised at the command's end.
        let _ = self.over.raise();
        if let Some(relay) = relay {
            // A panic there has been printed.
            let _ = relay.join();
        }
        let seen = self.seen();
        // Its end was not seen where only SIGKILL ended it, with its node.
        seen.exit.or(seen.began.then_some(KILLED))
    }

    /// The last lines that other programs wrote.
    pub(super) fn lines(&self) -> Vec<String> {
        self.seen().lines.iter().cloned().collect()
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, WrapperState> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn event(&self, event: &EventLogEntry) {
        match &event.what {
            EventLogEntryKind::ProgramStarted { node, .. } if *node == self.node => self.began(),
            EventLogEntryKind::ProgramFailed { node, .. } if *node == self.node => {
                self.seen().exit = Some(ExitCategory::NOT_EXECUTABLE);
            }
            EventLogEntryKind::ProgramExited { node, code, .. } if *node == self.node => {
                self.seen().exit = Some(*code);
                let _ = self.over.raise();
            }
            // The command has not begun: the terminal is still ours.
            EventLogEntryKind::ProgramAwaited { .. } if !self.seen().began => {
                output::talk(&event::text(event));
            }
            _ => {}
        }
    }

    fn began(&self) {
        let mut seen = self.seen();
        seen.began = true;
        if let Some(terminal) = seen.terminal.take() {
            let over = Arc::clone(&self.over);
            seen.relay = Some(std::thread::spawn(move || terminal.carry(&over)));
        }
    }
}

impl Observer for LinkCommandObserver {
    fn notice(&self, notice: &ObserverNotice<'_>) {
        match notice {
            ObserverNotice::Event(event) => self.event(event),
            ObserverNotice::Output { source, line, .. } => {
                let lines = &mut self.seen().lines;
                lines.push_back(format!("{source} | {}", shown(line)));
                if lines.len() > LINES_KEPT {
                    lines.pop_front();
                }
            }
            _ => {}
        }
    }
}

impl Terminal {
    /// Until the command has ended.
    fn carry(mut self, over: &Wake) {
        let done = self.relay.begin().and_then(|()| self.until(over));
        self.relay.drain();
        if let Err(error) = done {
            // Back to the usual mode before anything is printed.
            drop(self);
            output::talk(&format!("error: cannot use the terminal: {error}"));
        }
    }

    fn until(&mut self, over: &Wake) -> io::Result<()> {
        loop {
            let mut polled =
                vec![PollFd::new(over, PollFlags::IN), PollFd::new(&self.sizes, PollFlags::IN)];
            polled.extend(self.relay.interests());
            match poll::wait(&mut polled, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                waited => drop(waited?),
            }
            let (is_over, sizes) =
                (!polled[0].revents().is_empty(), !polled[1].revents().is_empty());
            let ready = self.relay.ready(&polled[2..]);
            drop(polled);
            if sizes {
                while let Ok(Some(_)) = self.sizes.read() {}
                self.relay.adopt_size();
            }
            self.relay.carry(ready)?;
            if is_over {
                return Ok(());
            }
        }
    }
}

fn copies(ends: [std::os::fd::BorrowedFd<'_>; 3]) -> Result<[OwnedFd; 3], VerbFailure> {
    let copy = |end: std::os::fd::BorrowedFd<'_>| {
        end.as_fd()
            .try_clone_to_owned()
            .map_err(|error| failed("pass on its standard streams", &error))
    };
    let [input, output, error] = ends;
    Ok([copy(input)?, copy(output)?, copy(error)?])
}

fn failed(what: &str, error: &io::Error) -> VerbFailure {
    VerbFailure::new(ExitCategory::Machine, format!("cannot {what}: {error}"))
}

/// 128 + SIGKILL.
const KILLED: u8 = 137;
/// Enough to show why a server does not start.
const LINES_KEPT: usize = 20;
