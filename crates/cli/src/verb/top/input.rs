//! Keys, read by a thread: the library blocks until the rest of a key's bytes has come.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use windtunnel_sys::poll::EventFd as Wake;

/// An event of the terminal.
#[derive(Debug)]
pub(super) enum TerminalEvent {
    /// A key.
    Key(KeyEvent),
    /// The window has another size.
    Resized,
    /// The terminal cannot be read any more.
    Lost(io::Error),
}

/// The thread's other end; the thread ends with the process.
#[derive(Debug)]
pub(super) struct TerminalEventReceiver {
    wake: Arc<Wake>,
    inputs: Receiver<TerminalEvent>,
}

impl TerminalEventReceiver {
    /// Starts reading standard input, which must be a terminal.
    ///
    /// # Errors
    /// Errors of starting a thread.
    pub(super) fn start() -> io::Result<TerminalEventReceiver> {
        let wake = Arc::new(Wake::open()?);
        let (sender, inputs) = channel();
        let raise = Arc::clone(&wake);
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
            loop {
                let input = event::read()
                    .map_or_else(|error| Some(TerminalEvent::Lost(error)), |event| known(&event));
                let Some(input) = input else { continue };
                let lost = matches!(input, TerminalEvent::Lost(_));
                // Without a receiver, the process is about to end.
                if sender.send(input).is_err() || raise.raise().is_err() || lost {
                    return;
                }
            }
        })?;
        Ok(TerminalEventReceiver { wake, inputs })
    }

    /// Everything that has come.
    pub(super) fn take(&self) -> Vec<TerminalEvent> {
        // Later input raises it again.
        let _ = self.wake.clear();
        self.inputs.try_iter().collect()
    }
}

impl AsFd for TerminalEventReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

fn known(event: &Event) -> Option<TerminalEvent> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(TerminalEvent::Key(*key)),
        Event::Resize(..) => Some(TerminalEvent::Resized),
        _ => None,
    }
}
