//! Raw mode that is left in any case, and what a panic does.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use windtunnel_sys::terminal::RawMode;

/// The user's terminal, while it is in raw mode. Global, because the panic hook must reach it.
static RAW: Mutex<Option<RawMode>> = Mutex::new(None);

/// Raw mode for as long as this value lives.
#[derive(Debug)]
pub(crate) struct Raw(());

impl Raw {
    /// Puts a terminal into raw mode.
    ///
    /// # Errors
    /// `ENOTTY` when it is no terminal.
    pub(crate) fn enter(terminal: impl AsFd) -> io::Result<Raw> {
        let mode = RawMode::enter(terminal)?;
        *RAW.lock().unwrap_or_else(PoisonError::into_inner) = Some(mode);
        Ok(Raw(()))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        leave();
    }
}

/// Has a panic first restore the terminal and then say what to do.
pub(crate) fn restore_on_panic() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        leave();
        default(panic);
        crate::output::talk("error: this is a fault of windtunnel itself\nhint: please report it");
    }));
}

fn leave() {
    // The value restores the terminal when it is dropped.
    drop(RAW.lock().unwrap_or_else(PoisonError::into_inner).take());
}
