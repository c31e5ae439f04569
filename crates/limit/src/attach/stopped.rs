//! A process with all of its threads stopped, without a signal that it or its parent would see.
//!
//! A stop interrupts a call that waits. Most are made again by the kernel; some are not, and return
//! `EINTR` (signal(7), "Interruption of system calls and library functions by stop signals"). Those
//! that have done nothing yet are made again from here, unless a signal is there that the program
//! handles.

use std::fs;
use std::io;
use std::time::Duration;

use windtunnel_sys::clock;
use windtunnel_sys::process::Pid;
use windtunnel_sys::ptrace::{PtraceStop, ThreadRegisters, Tracee};
use windtunnel_sys::signal;

use super::AttachRefusal;
use super::candidate::{self, has_ended};

/// A process that is stopped.
#[derive(Debug)]
pub(super) struct PtraceStoppedProcess {
    pub(super) pid: Pid,
    pub(super) threads: Vec<Tracee>,
    /// Threads that had not stopped in time.
    restless: Vec<Tracee>,
}

impl PtraceStoppedProcess {
    /// Stops a process, as far as it can be; `None`: it has ended. What is not stopped at `late_ns` is a
    /// reason to refuse.
    pub(super) fn of(
        pid: Pid,
        late_ns: u64,
    ) -> (Option<PtraceStoppedProcess>, Result<(), AttachRefusal>) {
        let mut stopped = PtraceStoppedProcess { pid, threads: Vec::new(), restless: Vec::new() };
        let outcome = stopped.stop(late_ns);
        let has_ended = stopped.threads.is_empty() && stopped.restless.is_empty();
        ((!has_ended).then_some(stopped), outcome)
    }

    /// A thread that makes more threads is stopped by then.
    fn stop(&mut self, late_ns: u64) -> Result<(), AttachRefusal> {
        loop {
            let new = self.new_threads();
            if new.is_empty() {
                return Ok(());
            }
            let (mut interrupted, mut refusal) = (Vec::new(), None);
            for thread in new {
                match Tracee::seize(thread).and_then(|it| it.interrupt().map(|()| it)) {
                    Ok(tracee) => interrupted.push(tracee),
                    Err(error) if is_gone(&error) || has_ended(thread) => {}
                    Err(error) => refusal = Some(candidate::denied(self.pid, &error)),
                }
            }
            // Also where it is refused: calls that were interrupted are to be made again.
            for tracee in interrupted {
                match settle(&tracee, late_ns) {
                    Ok(true) => self.threads.push(tracee),
                    Ok(false) => {}
                    Err(error) => {
                        refusal = Some(self.refuse(&tracee, &error));
                        self.restless.push(tracee);
                    }
                }
            }
            if let Some(refusal) = refusal {
                return Err(refusal);
            }
        }
    }

    fn refuse(&self, tracee: &Tracee, error: &io::Error) -> AttachRefusal {
        let thread = tracee.thread().as_raw_nonzero();
        let why = format!("its thread {thread} does not stop: {error}");
        AttachRefusal::of(
            self.pid,
            why,
            "it may wait for a disk or a server of files: try again later",
        )
    }

    fn new_threads(&self) -> Vec<Pid> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid.as_raw_nonzero()));
        let tasks = tasks.into_iter().flatten().flatten();
        let numbers = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
        let is_known = |thread: &Pid| self.threads.iter().any(|it| it.thread() == *thread);
        let new = numbers.filter_map(Pid::from_raw).filter(|thread| !is_known(thread));
        new.filter(|thread| !has_ended(*thread)).collect()
    }

    /// Lets all go on, and calls that were interrupted be made again.
    pub(super) fn release(&self) {
        self.threads.iter().for_each(let_go);
    }

    /// The same of threads that stop only now, which are waited for. To be called when nothing else is
    /// stopped any more.
    pub(super) fn release_restless(&self) {
        let late_ns = clock::monotonic_ns().saturating_add(PATIENCE_NS);
        self.restless.iter().filter(|it| matches!(settle(it, late_ns), Ok(true))).for_each(let_go);
    }
}

fn let_go(tracee: &Tracee) {
    if let Ok(Some(registers)) = tracee.registers()
        && let Some(mended) = mended(&registers, tracee.thread(), false)
    {
        // One that has been killed needs nothing.
        let _ = tracee.set_registers(&mended);
    }
    let _ = tracee.detach(0);
}

/// Waits until a thread has stopped where its call, if it is in one, has been ended: whether it lives.
pub(super) fn settle(tracee: &Tracee, late_ns: u64) -> io::Result<bool> {
    loop {
        let stop = match tracee.poll() {
            Ok(stop) => stop,
            Err(_) => return Ok(false),
        };
        // That it has gone shows at the next look.
        match stop {
            Some(PtraceStop::Interrupted) => return Ok(true),
            Some(PtraceStop::Ended) => return Ok(false),
            // It is delivered, and the thread stops after that.
            Some(PtraceStop::Signal(signal)) => drop(tracee.resume(signal)),
            Some(PtraceStop::Call | PtraceStop::Other) => drop(tracee.resume(0)),
            None if clock::monotonic_ns() > late_ns => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it waits in the kernel"));
            }
            None => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// The registers by which a thread makes a call again that was interrupted; `None`: it is in none, or
/// the kernel sees to it. `waits_with_mask`: the call blocked signals for its own time, and does so
/// again.
pub(super) fn mended(
    registers: &ThreadRegisters,
    thread: Pid,
    waits_with_mask: bool,
) -> Option<ThreadRegisters> {
    let call = registers.call()?;
    let is_interrupted = registers.result() == -EINTR && REPEATABLE.contains(&call);
    let is_mine = is_interrupted && (waits_with_mask || !has_signal(thread));
    is_mine.then(|| registers.again())
}

/// Whether a signal is there that the program handles: it ended the call.
fn has_signal(thread: Pid) -> bool {
    signal::ThreadSignalSets::of(thread).is_ok_and(|sets| sets.due() != 0)
}

fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ESRCH)
}

const LOOK_EVERY: Duration = Duration::from_micros(20);
/// How long a thread that has not stopped in time is waited for, so that its call is made again. One
/// that stops later returns `EINTR`.
const PATIENCE_NS: u64 = 10_000_000_000;
/// "Interrupted system call", of errno(3).
const EINTR: i64 = 4;
/// "No such process".
const ESRCH: i32 = 3;
/// Numbers of the calls of x86-64 that return `EINTR` without having done anything, although no
/// handler of a signal ran: read, write, readv and writev (on sockets with a timeout), accept,
/// connect, sendto, recvfrom, sendmsg, recvmsg, semop, msgsnd, msgrcv, rt_sigtimedwait, io_getevents,
/// semtimedop, epoll_wait, epoll_pwait, accept4, recvmmsg, sendmmsg, io_pgetevents, epoll_pwait2. One
/// with a timeout begins it anew.
const REPEATABLE: [u64; 23] = [
    0, 1, 19, 20, 42, 43, 44, 45, 46, 47, 65, 69, 70, 128, 208, 220, 232, 281, 288, 299, 307, 333,
    441,
];

#[cfg(target_arch = "x86_64")]
#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::PoisonError;

    use super::*;
    use crate::tree::tests::ALONE;

    #[test]
    fn a_process_is_stopped_with_all_of_its_threads_and_goes_on() {
        // Others end all that this process has started.
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let script = "import threading, time\n\
                      for _ in range(3): threading.Thread(target=time.sleep, args=(60,)).start()\n\
                      print(flush=True)\n";
        let mut command = Command::new("python3");
        let command = command.args(["-c", script]).stdout(Stdio::piped());
        let Ok(mut child) = command.spawn() else { return };
        io::Read::read(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let (stopped, outcome) =
            PtraceStoppedProcess::of(pid, clock::monotonic_ns() + 10_000_000_000);
        outcome.unwrap();
        let stopped = stopped.unwrap();
        assert_eq!(stopped.threads.len(), 4);
        for tracee in &stopped.threads {
            assert!(tracee.registers().unwrap().unwrap().call().is_some());
        }
        stopped.release();
        assert!(stopped.threads.iter().all(|tracee| tracee.registers().is_err()));
        child.kill().unwrap();
        child.wait().unwrap();
        let (stopped, outcome) = PtraceStoppedProcess::of(pid, u64::MAX);
        outcome.unwrap();
        assert!(stopped.is_none());
    }
}
