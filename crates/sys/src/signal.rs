//! Signals as something to read, and those of other threads. Source: signalfd(2), pthread_sigmask(3).

mod sets;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::{Pid, Signal};

use crate::ffi::check;

pub use sets::ThreadSignalSets;

/// Signals to the process (or the thread that opened it), read instead of handled. Nonblocking.
///
/// When it is dropped, in the thread that opened it, the signals have their usual effects again;
/// those that have come by then and were not read are forgotten.
#[derive(Debug)]
pub struct SignalReader {
    descriptor: OwnedFd,
    /// Those that were not blocked before.
    blocked: Vec<Signal>,
}

/// A signal that came in. Several of one kind between two reads may be merged into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedSignal {
    pub signal: i32,
    /// The process that sent it, or the child that changed; none for the kernel or a foreign PID
    /// namespace.
    pub sender: Option<Pid>,
}

impl SignalReader {
    /// Blocks the given signals in the calling thread and opens them for reading. Threads started
    /// later inherit the block; those started before would still take the signals.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn open(signals: &[Signal]) -> io::Result<SignalReader> {
        let set = set_of(signals)?;
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set is valid, and -1 asks for a new descriptor.
        let raw = check(unsafe { libc::signalfd(-1, &raw const set, flags) })?;
        // SAFETY: the kernel has just given this descriptor to us alone.
        let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
        let before = change_mask(libc::SIG_BLOCK, &set)?;
        // SAFETY: the set is valid for reads.
        let free =
            |signal: &Signal| unsafe { libc::sigismember(&raw const before, signal.as_raw()) == 0 };
        Ok(SignalReader { descriptor, blocked: signals.iter().copied().filter(free).collect() })
    }

    /// The next signal, if one has come.
    ///
    /// # Errors
    /// What read(2) says.
    pub fn read(&self) -> io::Result<Option<ReceivedSignal>> {
        const LENGTH: usize = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the structure consists of numbers only.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        // SAFETY: the buffer is valid for writes of its length.
        let read =
            unsafe { libc::read(self.descriptor.as_raw_fd(), (&raw mut info).cast(), LENGTH) };
        if read < 0 {
            let error = io::Error::last_os_error();
            let none = error.kind() == io::ErrorKind::WouldBlock;
            return if none { Ok(None) } else { Err(error) };
        }
        Ok(Some(ReceivedSignal {
            signal: info.ssi_signo.cast_signed(),
            sender: Pid::from_raw(info.ssi_pid.cast_signed()),
        }))
    }
}

impl AsFd for SignalReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for SignalReader {
    fn drop(&mut self) {
        while let Ok(Some(_)) = self.read() {}
        // The numbers exist: they could be blocked.
        let _ = unblock(&self.blocked);
    }
}

/// Blocks signals in the calling thread: they wait until they are read or unblocked.
///
/// # Errors
/// `EINVAL` for numbers that do not exist.
pub fn block(signals: &[Signal]) -> io::Result<()> {
    change_mask(libc::SIG_BLOCK, &set_of(signals)?).map(drop)
}

/// Lets the given signals through again in the calling thread.
///
/// # Errors
/// `EINVAL` for numbers that do not exist.
pub fn unblock(signals: &[Signal]) -> io::Result<()> {
    change_mask(libc::SIG_UNBLOCK, &set_of(signals)?).map(drop)
}

/// Lets every signal through in the calling thread, as a new program should find it.
/// [`spawn`](crate::process::spawn) does this by itself.
///
/// # Errors
/// None that is known.
pub fn unblock_all() -> io::Result<()> {
    change_mask(libc::SIG_SETMASK, &set_of(&[])?).map(drop)
}

/// Gives a signal its default effect again, for a child that goes on without a new program.
///
/// # Errors
/// `EINVAL` for SIGKILL and SIGSTOP.
pub fn reset(signal: Signal) -> io::Result<()> {
    set_disposition(signal, libc::SIG_DFL)
}

/// Has the process ignore a signal.
///
/// # Errors
/// `EINVAL` for SIGKILL and SIGSTOP.
pub fn ignore(signal: Signal) -> io::Result<()> {
    set_disposition(signal, libc::SIG_IGN)
}

fn set_disposition(signal: Signal, disposition: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: the disposition is one of the two that run no code of ours.
    let before = unsafe { libc::signal(signal.as_raw(), disposition) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn set_of(signals: &[Signal]) -> io::Result<libc::sigset_t> {
    // SAFETY: a sigset_t is an array of numbers, and all zero is the empty set on Linux.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    for signal in signals {
        // SAFETY: the set is valid for reads and writes.
        check(unsafe { libc::sigaddset(&raw mut set, signal.as_raw()) })?;
    }
    Ok(set)
}

/// Returns the mask that was there before.
fn change_mask(how: libc::c_int, set: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = set_of(&[])?;
    // SAFETY: both sets are valid, and the second is ours to write.
    let error = unsafe { libc::pthread_sigmask(how, set, &raw mut before) };
    if error == 0 { Ok(before) } else { Err(io::Error::from_raw_os_error(error)) }
}
