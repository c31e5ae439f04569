//! Threads of other processes: stopped, looked into, and let go on. Source: ptrace(2).
//!
//! A thread is [seized](Tracee::seize), which stops nothing, by the one thread of this process that
//! makes all further calls about it. Where the tracing process ends, the kernel lets the thread go on
//! with the registers that it has then.

mod registers;

use std::io;
use std::ptr;

use rustix::process::Pid;

pub use registers::ThreadRegisters;

/// Whether the registers of threads are known on this architecture.
pub const SUPPORTED: bool = cfg!(target_arch = "x86_64");

/// A thread that the calling one traces, until it is detached or has ended.
#[derive(Clone, Debug)]
pub struct Tracee {
    thread: Pid,
}

/// Why a thread has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtraceStop {
    /// It was interrupted, or its process has been stopped by a signal of job control.
    Interrupted,
    /// A signal of this number is about to be delivered.
    Signal(i32),
    /// It enters a system call, or leaves it.
    Call,
    /// Something else that was not asked for.
    Other,
    /// It has ended.
    Ended,
}

impl Tracee {
    /// Traces a thread, which runs on.
    ///
    /// # Errors
    /// `EPERM` without the right to, also where another process traces it; `ESRCH` when it has
    /// ended; `Unsupported` on an architecture that is not [`SUPPORTED`].
    pub fn seize(thread: Pid) -> io::Result<Tracee> {
        if !SUPPORTED {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let tracee = Tracee { thread };
        tracee.request(PTRACE_SEIZE, 0, libc::PTRACE_O_TRACESYSGOOD as usize)?;
        Ok(tracee)
    }

    /// Its number.
    #[must_use]
    pub fn thread(&self) -> Pid {
        self.thread
    }

    /// Has it stop: see [`Tracee::poll`].
    ///
    /// # Errors
    /// `ESRCH` when it has ended.
    pub fn interrupt(&self) -> io::Result<()> {
        self.request(PTRACE_INTERRUPT, 0, 0)
    }

    /// Why it has stopped, if it has since it was last let go on.
    ///
    /// # Errors
    /// `ECHILD` when it has ended and that was returned before.
    pub fn poll(&self) -> io::Result<Option<PtraceStop>> {
        let mut status = 0;
        let (number, options) = (self.thread.as_raw_nonzero().get(), libc::__WALL | libc::WNOHANG);
        // SAFETY: the pointer is to a live number.
        let found = unsafe { libc::waitpid(number, &raw mut status, options) };
        match crate::ffi::check(found)? {
            0 => Ok(None),
            _ => Ok(Some(PtraceStop::of(status))),
        }
    }

    /// Lets it go on, with a signal that was about to be delivered; 0: with none.
    ///
    /// # Errors
    /// `ESRCH` when it is not stopped, or has ended.
    pub fn resume(&self, signal: i32) -> io::Result<()> {
        self.request(PTRACE_CONT, 0, number(signal))
    }

    /// The same, until it enters a system call or leaves it.
    ///
    /// # Errors
    /// As [`Tracee::resume`].
    pub fn resume_to_call(&self, signal: i32) -> io::Result<()> {
        self.request(PTRACE_SYSCALL, 0, number(signal))
    }

    /// Lets it go on untraced, from a stop.
    ///
    /// # Errors
    /// As [`Tracee::resume`].
    pub fn detach(&self, signal: i32) -> io::Result<()> {
        self.request(PTRACE_DETACH, 0, number(signal))
    }

    /// Its registers in a stop; `None`: it runs code of 32 bits.
    ///
    /// # Errors
    /// As [`Tracee::resume`].
    pub fn registers(&self) -> io::Result<Option<ThreadRegisters>> {
        let mut registers = ThreadRegisters::default();
        let length = size_of::<ThreadRegisters>();
        let mut part = libc::iovec { iov_base: (&raw mut registers).cast(), iov_len: length };
        self.request(PTRACE_GETREGSET, NT_PRSTATUS, (&raw mut part).expose_provenance())?;
        Ok((part.iov_len == length && registers.is_64_bit()).then_some(registers))
    }

    /// Gives it other registers.
    ///
    /// # Errors
    /// As [`Tracee::resume`].
    pub fn set_registers(&self, registers: &ThreadRegisters) -> io::Result<()> {
        let base = ptr::from_ref(registers).cast_mut().cast();
        let part = libc::iovec { iov_base: base, iov_len: size_of::<ThreadRegisters>() };
        self.request(PTRACE_SETREGSET, NT_PRSTATUS, (&raw const part).expose_provenance())
    }

    /// The signals that it blocks: those after a call that blocks others for its own time.
    ///
    /// # Errors
    /// As [`Tracee::resume`].
    pub fn signal_mask(&self) -> io::Result<u64> {
        let mut mask = 0_u64;
        let at = (&raw mut mask).expose_provenance();
        self.request(PTRACE_GETSIGMASK, size_of::<u64>(), at)?;
        Ok(mask)
    }

    /// Has it block these signals.
    ///
    /// # Errors
    /// As [`Tracee::resume`].
    pub fn set_signal_mask(&self, mask: u64) -> io::Result<()> {
        let at = (&raw const mask).expose_provenance();
        self.request(PTRACE_SETSIGMASK, size_of::<u64>(), at)
    }

    /// Where its area for restartable sequences is (rseq(2)); 0: it has none, or the kernel does not
    /// say.
    #[must_use]
    pub fn restartable_sequences(&self) -> u64 {
        let mut configuration = [0_u64; 3];
        let at = configuration.as_mut_ptr().expose_provenance();
        let asked = self.request(PTRACE_GET_RSEQ_CONFIGURATION, size_of_val(&configuration), at);
        if asked.is_ok() { configuration[0] } else { 0 }
    }

    /// Whether calls of the thread are handed to the thread itself (`PR_SET_SYSCALL_USER_DISPATCH`);
    /// `false` where the kernel does not say.
    #[must_use]
    pub fn dispatches_calls(&self) -> bool {
        let mut configuration = [0_u64; 4];
        let at = configuration.as_mut_ptr().expose_provenance();
        let bytes = size_of_val(&configuration);
        let asked = self.request(PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, bytes, at);
        asked.is_ok() && configuration[0] != 0
    }

    /// `address` is a number or a size for all requests that are made here.
    fn request(&self, request: u32, address: usize, data: usize) -> io::Result<()> {
        let thread = self.thread.as_raw_nonzero().get();
        // SAFETY: the requests write no more than to what `data` points to where it is a pointer, which
        // lives and has the size that the request, `address` or the structure there says.
        let returned = unsafe { libc::ptrace(request as _, thread, address, data) };
        if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl PtraceStop {
    fn of(status: libc::c_int) -> PtraceStop {
        if !libc::WIFSTOPPED(status) {
            return PtraceStop::Ended;
        }
        match (libc::WSTOPSIG(status), status >> 16) {
            (_, libc::PTRACE_EVENT_STOP) => PtraceStop::Interrupted,
            (_, 1..) => PtraceStop::Other,
            (signal, _) if signal == libc::SIGTRAP | SYSTEM_CALL => PtraceStop::Call,
            (signal, _) => PtraceStop::Signal(signal),
        }
    }
}

fn number(signal: i32) -> usize {
    usize::try_from(signal).unwrap_or(0)
}

/// General registers, of elf.h.
const NT_PRSTATUS: usize = 1;
/// Set in the signal of a stop at a system call (`PTRACE_O_TRACESYSGOOD`).
const SYSTEM_CALL: i32 = 0x80;
/// Of linux/ptrace.h; C libraries differ in their type.
const PTRACE_CONT: u32 = 7;
const PTRACE_DETACH: u32 = 17;
const PTRACE_SYSCALL: u32 = 24;
const PTRACE_GETREGSET: u32 = 0x4204;
const PTRACE_SETREGSET: u32 = 0x4205;
const PTRACE_SEIZE: u32 = 0x4206;
const PTRACE_INTERRUPT: u32 = 0x4207;
const PTRACE_GETSIGMASK: u32 = 0x420a;
const PTRACE_SETSIGMASK: u32 = 0x420b;
const PTRACE_GET_RSEQ_CONFIGURATION: u32 = 0x420f;
const PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG: u32 = 0x4211;

#[cfg(target_arch = "x86_64")]
#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn sleeper() -> (Child, Tracee) {
        let child = Command::new("sleep").arg("100").stdout(Stdio::null()).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let tracee = Tracee::seize(pid).unwrap();
        (child, tracee)
    }

    fn wait(tracee: &Tracee) -> PtraceStop {
        loop {
            if let Some(stop) = tracee.poll().unwrap() {
                return stop;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_thread_that_is_interrupted_has_registers_and_goes_on() {
        let (mut child, tracee) = sleeper();
        assert_eq!(tracee.poll().unwrap(), None);
        tracee.interrupt().unwrap();
        assert_eq!(wait(&tracee), PtraceStop::Interrupted);
        let registers = tracee.registers().unwrap().unwrap();
        assert_ne!(registers.counter(), 0);
        tracee.set_registers(&registers).unwrap();
        assert_eq!(tracee.registers().unwrap(), Some(registers));
        let mask = tracee.signal_mask().unwrap();
        tracee.set_signal_mask(mask).unwrap();
        assert!(!tracee.dispatches_calls());
        tracee.detach(0).unwrap();
        assert!(tracee.interrupt().is_err());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_signal_is_seen_before_it_is_delivered_and_the_end_of_a_thread_too() {
        let (mut child, tracee) = sleeper();
        crate::process::kill(tracee.thread(), crate::process::Signal::USR1).unwrap();
        assert_eq!(wait(&tracee), PtraceStop::Signal(libc::SIGUSR1));
        tracee.resume(libc::SIGUSR1).unwrap();
        assert_eq!(wait(&tracee), PtraceStop::Ended);
        assert!(tracee.resume(0).is_err());
        let _ = child.wait();
    }
}
