//! Keys, read by a thread: the library blocks until the rest of a key's bytes has come.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use windtunnel_sys::poll::Event as Wake;

/// An event of the terminal.
#[derive(Debug)]
pub(super) enum Input {
    /// A key.
    Key(KeyEvent),
    /// The window has another size.
    Resized,
    /// The terminal cannot be read any more.
    Lost(io::Error),
}

/// The thread's other end; the thread ends with the process.
#[derive(Debug)]
pub(super) struct Inputs {
    wake: Arc<Wake>,
    inputs: Receiver<Input>,
}

impl Inputs {
    /// Starts reading standard input, which must be a terminal.
    ///
    /// # Errors
    /// Errors of starting a thread.
    pub(super) fn start() -> io::Result<Inputs> {
        let wake = Arc::new(Wake::open()?);
        let (sender, inputs) = channel();
        let raise = Arc::clone(&wake);
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
            loop {
                let input = event::read()
                    .map_or_else(|error| Some(Input::Lost(error)), |event| known(&event));
                let Some(input) = input else { continue };
                let lost = matches!(input, Input::Lost(_));
                // Without a receiver, the process is about to end.
                if sender.send(input).is_err() || raise.raise().is_err() || lost {
                    return;
                }
            }
        })?;
        Ok(Inputs { wake, inputs })
    }

    /// Everything that has come.
    pub(super) fn take(&self) -> Vec<Input> {
        // Later input raises it again.
        let _ = self.wake.clear();
        self.inputs.try_iter().collect()
    }
}

impl AsFd for Inputs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

fn known(event: &Event) -> Option<Input> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(Input::Key(*key)),
        Event::Resize(..) => Some(Input::Resized),
        _ => None,
    }
}
