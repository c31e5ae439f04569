//! The calls that a process makes to install a filter.
//!
//! All that can fail for a reason that shows before is done for all processes first
//! ([`SeccompInstallation`]); it leaves nothing. What cannot be undone comes last.

use std::io;
use std::os::fd::OwnedFd;

use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::process;
use windtunnel_sys::seccomp::filter::{self, Instruction};
use windtunnel_sys::seccomp::{self, SeccompListener};

use super::injection::Injection;
use super::stopped::PtraceStoppedProcess;
use super::{AttachRefusal, candidate};

/// A process that is about to install a filter, which lies in a page of its own.
#[derive(Debug)]
pub(super) struct SeccompInstallation {
    pidfd: OwnedFd,
    injection: Injection,
    page: u64,
}

/// A filter that a process has installed.
#[derive(Debug)]
pub(super) struct Installed {
    pub(super) listener: SeccompListener,
    /// The number of the first call that was shown: those of later ones are greater.
    pub(super) first_id: u64,
}

impl SeccompInstallation {
    /// Looks at a stopped process, and has it map a page with a filter.
    pub(super) fn of(
        process: &PtraceStoppedProcess,
        filter: &[Instruction],
    ) -> Result<SeccompInstallation, AttachRefusal> {
        check(process)?;
        let failed = |error: io::Error| {
            AttachRefusal::of(process.pid, format!("it cannot be prepared: {error}"), "")
        };
        let pidfd = process::open_pidfd(process.pid).map_err(failed)?;
        // A number that no process has: what is asked is whether descriptors may be copied.
        match process::pidfd_getfd(&pidfd, i32::MAX) {
            Err(error) if error.raw_os_error() != Some(EBADF) => {
                return Err(candidate::denied(process.pid, &error));
            }
            _ => {}
        }
        let mut injection = Injection::begin(process).map_err(failed)?;
        let page = injection.call(MMAP, [0, PAGE, READ_WRITE, ANONYMOUS, u64::MAX, 0], || {});
        let page = match page {
            Ok(page) => page,
            Err(error) => {
                // What went wrong first is the reason.
                let _ = injection.end();
                return Err(failed(error));
            }
        };
        let prepared = SeccompInstallation { pidfd, injection, page };
        let text = program(filter, page);
        if let Err(error) = process::write_memory(process.pid, page, &text) {
            prepared.undo();
            return Err(failed(error));
        }
        Ok(prepared)
    }

    /// Nothing is left of it.
    pub(super) fn undo(mut self) {
        // A process that has ended has no page.
        let _ = self.injection.call(MUNMAP, [self.page, PAGE, 0, 0, 0, 0], || {});
        let _ = self.injection.end();
    }

    /// Installs the filter, for all threads.
    pub(super) fn install(mut self) -> io::Result<Installed> {
        let installed = self.install_filter();
        self.undo();
        installed
    }

    fn install_filter(&mut self) -> io::Result<Installed> {
        // Room for the copy, which has to be made.
        let room = self.pidfd.try_clone()?;
        let number = match self.seccomp() {
            // Without rights, they have to be renounced first.
            Err(error) if error.raw_os_error() == Some(EACCES) => {
                self.injection.call(PRCTL, [NO_NEW_PRIVS, 1, 0, 0, 0, 0], || {})?;
                self.seccomp()?
            }
            other => other?,
        };
        drop(room);
        let of_process = i32::try_from(number).map_err(io::Error::other)?;
        let listener = SeccompListener::new(process::pidfd_getfd(&self.pidfd, of_process)?);
        // From now on the calls of the process are shown, and wait for an answer.
        let mut first_id = None;
        let mut answer = || {
            if let Some(id) = answer_one(&listener) {
                first_id.get_or_insert(id);
            }
        };
        let closed = self.injection.call(CLOSE, [number, 0, 0, 0, 0, 0], &mut answer);
        // A call that all filters show, and that fails.
        let _ = self.injection.call(CONNECT, [u64::MAX, 0, 0, 0, 0, 0], &mut answer);
        closed?;
        let first_id = first_id.ok_or_else(|| io::Error::other("no call was shown"))?;
        Ok(Installed { listener, first_id })
    }

    fn seccomp(&mut self) -> io::Result<u64> {
        let mode = u64::from(filter::SET_MODE_FILTER);
        let arguments = [mode, u64::from(seccomp::FLAGS_RUNNING), self.page, 0, 0, 0];
        self.injection.call(SECCOMP, arguments, || {})
    }
}

/// Lets a call go on that waits: its number.
fn answer_one(listener: &SeccompListener) -> Option<u64> {
    let mut ready = [PollFd::new(listener, PollFlags::IN)];
    poll::wait(&mut ready, Some(std::time::Duration::ZERO)).ok().filter(|count| *count > 0)?;
    let shown = listener.receive().ok()??;
    listener.resume(shown.id).ok()?;
    Some(shown.id)
}

/// What shows only while a process is stopped.
fn check(process: &PtraceStoppedProcess) -> Result<(), AttachRefusal> {
    candidate::check(process.pid)?;
    for tracee in &process.threads {
        let registers = tracee.registers().map_err(|error| {
            AttachRefusal::of(process.pid, format!("a thread cannot be looked at: {error}"), "")
        })?;
        let why = match registers {
            None => "it is a program of 32 bits, of which the filter sees no calls",
            Some(_) if tracee.dispatches_calls() => {
                "it handles its system calls itself (PR_SET_SYSCALL_USER_DISPATCH), as Wine does"
            }
            Some(_) => continue,
        };
        return Err(AttachRefusal::of(process.pid, why, ""));
    }
    Ok(())
}

/// `struct sock_fprog`, and behind it the instructions, as they lie at an address.
fn program(filter: &[Instruction], at: u64) -> Vec<u8> {
    let mut bytes = u64::try_from(filter.len()).unwrap_or(0).to_ne_bytes().to_vec();
    bytes.extend((at + PROGRAM_BYTES).to_ne_bytes());
    for Instruction { code, then, or_else, value } in filter {
        bytes.extend(code.to_ne_bytes());
        bytes.extend([*then, *or_else]);
        bytes.extend(value.to_ne_bytes());
    }
    bytes
}

/// Numbers of the calls of x86-64.
const CLOSE: u64 = 3;
const MMAP: u64 = 9;
const MUNMAP: u64 = 11;
const CONNECT: u64 = 42;
const PRCTL: u64 = 157;
const SECCOMP: u64 = 317;
const NO_NEW_PRIVS: u64 = 38;
/// `PROT_READ | PROT_WRITE`.
const READ_WRITE: u64 = 3;
/// `MAP_PRIVATE | MAP_ANONYMOUS`.
const ANONYMOUS: u64 = 0x22;
/// Bytes that are mapped: more than any filter has.
const PAGE: u64 = 4096;
/// Of `struct sock_fprog`: the number of instructions, padded, and their address.
const PROGRAM_BYTES: u64 = 16;
/// "Bad file descriptor", of errno(3).
const EBADF: i32 = 9;
/// "Permission denied".
const EACCES: i32 = 13;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_lies_in_memory_as_the_kernel_reads_it() {
        let filter = [Instruction { code: 0x15, then: 1, or_else: 2, value: 0x0304_0506 }];
        let bytes = program(&filter, 0x1000);
        assert_eq!(bytes[..2], [1, 0]);
        assert_eq!(bytes[8..16], 0x1010_u64.to_ne_bytes());
        assert_eq!(bytes[16..], [0x15, 0, 1, 2, 6, 5, 4, 3]);
    }
}
