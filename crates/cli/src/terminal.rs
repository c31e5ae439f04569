//! Raw mode and the alternate screen. Both are left in any case, also by the panic hook.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crossterm::cursor::Show;
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};

use windtunnel_sys::terminal::RawMode;

use crate::allowance;

/// The user's terminal, while it is in raw mode. Global, because the panic hook must reach it.
static RAW: Mutex<Option<RawMode>> = Mutex::new(None);

/// Whether a screen is shown that is not the user's.
static SCREEN: AtomicBool = AtomicBool::new(false);

/// Raw mode for as long as this value lives.
#[derive(Debug)]
pub(crate) struct RawModeGuard(());

impl RawModeGuard {
    /// Puts a terminal into raw mode.
    ///
    /// # Errors
    /// `ENOTTY` when it is not a terminal.
    pub(crate) fn enter(terminal: impl AsFd) -> io::Result<RawModeGuard> {
        let mode = RawMode::enter(terminal)?;
        *RAW.lock().unwrap_or_else(PoisonError::into_inner) = Some(mode);
        Ok(RawModeGuard(()))
    }
}

impl Drop for RawModeGuard {
    fn drop(&mut self) {
        leave();
    }
}

/// A screen of one's own on the terminal, in raw mode, for as long as this value lives; then the
/// user's is as it was.
#[derive(Debug)]
pub(crate) struct Screen {
    _raw: RawModeGuard,
}

impl Screen {
    /// Puts the terminal of standard input into raw mode and shows a new screen on standard output.
    ///
    /// # Errors
    /// `ENOTTY` when standard input is not a terminal, and errors of writing.
    pub(crate) fn enter() -> io::Result<Screen> {
        let screen = Screen { _raw: RawModeGuard::enter(rustix::stdio::stdin())? };
        SCREEN.store(true, Ordering::Relaxed);
        execute!(io::stdout(), EnterAlternateScreen)?;
        Ok(screen)
    }
}

/// Has a panic first restore the terminal and then say what to do.
pub(crate) fn restore_on_panic() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        leave();
        if let Some(failure) = allowance::of_panic(panic.payload()) {
            crate::output::talk(&failure.text());
            return;
        }
        default(panic);
        crate::output::talk("error: this is a fault of windtunnel itself\nhint: please report it");
    }));
}

fn leave() {
    if SCREEN.swap(false, Ordering::Relaxed) {
        // A terminal that is gone shows nothing.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    }
    // The value restores the terminal when it is dropped.
    drop(RAW.lock().unwrap_or_else(PoisonError::into_inner).take());
}
