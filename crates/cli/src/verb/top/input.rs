//! Keys, read by a thread: the library waits for the rest of a key's bytes, and nobody else should.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use windtunnel_sys::poll::Event as Wake;

/// What comes from the terminal.
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
    /// What the system says about a thread more.
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
                // When nobody listens any more, the process is about to end.
                if sender.send(input).is_err() || raise.raise().is_err() || lost {
                    return;
                }
            }
        })?;
        Ok(Inputs { wake, inputs })
    }

    /// Everything that has come.
    pub(super) fn take(&self) -> Vec<Input> {
        // What comes after this raises it again.
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
