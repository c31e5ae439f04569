//! Terminals: pairs, sizes, raw mode. Source: pty(7), termios(3), ioctl_tty(2).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pty::OpenptFlags;
use rustix::termios::{OptionalActions, Termios, Winsize};

/// The two ends of a pseudoterminal.
#[derive(Debug)]
pub struct PseudoterminalPair {
    /// The end that plays the user: what is written here, the program reads.
    pub controller: OwnedFd,
    /// The end for the program.
    pub terminal: OwnedFd,
}

/// The size of a terminal's window, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines from top to bottom.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// A terminal in raw mode, for as long as this value lives.
#[derive(Debug)]
pub struct RawMode {
    terminal: OwnedFd,
    before: Termios,
}

/// Opens a new pseudoterminal, which is not made a controlling terminal.
///
/// # Errors
/// `ENOENT` where /dev/ptmx is missing, `ENOSPC` at the limit of pseudoterminals.
pub fn open_pair() -> io::Result<PseudoterminalPair> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let controller = rustix::pty::openpt(flags)?;
    rustix::pty::unlockpt(&controller)?;
    // By descriptor, not by name: the mount namespace may show another /dev/pts.
    let terminal = rustix::pty::ioctl_tiocgptpeer(&controller, flags)?;
    Ok(PseudoterminalPair { controller, terminal })
}

/// The size of a terminal's window.
///
/// # Errors
/// `ENOTTY` when it is not a terminal.
pub fn size(terminal: impl AsFd) -> io::Result<TerminalSize> {
    let size = rustix::termios::tcgetwinsize(terminal)?;
    Ok(TerminalSize { rows: size.ws_row, columns: size.ws_col })
}

/// Sets the size of a terminal's window; its programs get SIGWINCH when it changes.
///
/// # Errors
/// `ENOTTY` when it is not a terminal.
pub fn set_size(terminal: impl AsFd, size: TerminalSize) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(rustix::termios::tcsetwinsize(terminal, size)?)
}

/// Whether the descriptor is a terminal.
pub fn is_terminal(descriptor: impl AsFd) -> bool {
    rustix::termios::isatty(descriptor)
}

/// Gives up the controlling terminal; the session and with it the scheduler's autogroup (sched(7))
/// stay. Without one, nothing happens.
///
/// # Errors
/// What ioctl(2) says of `TIOCNOTTY`.
pub fn give_up_controlling() -> io::Result<()> {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return Ok(()) };
    // SAFETY: this request takes no argument.
    let returned =
        unsafe { libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&terminal), libc::TIOCNOTTY) };
    crate::ffi::check(returned).map(drop)
}

impl RawMode {
    /// Makes a terminal pass every byte through as it is (cfmakeraw(3)) until the value is
    /// dropped.
    ///
    /// # Errors
    /// `ENOTTY` when it is not a terminal.
    pub fn enter(terminal: impl AsFd) -> io::Result<RawMode> {
        let terminal = terminal.as_fd().try_clone_to_owned()?;
        let before = rustix::termios::tcgetattr(&terminal)?;
        let mut raw = before.clone();
        raw.make_raw();
        rustix::termios::tcsetattr(&terminal, OptionalActions::Now, &raw)?;
        Ok(RawMode { terminal, before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring, and the error has no reader.
        let _ = rustix::termios::tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}
