//! A stopped thread that makes calls which are not its own, and is as before after that.
//!
//! It goes on at an instruction `syscall` that its process has anyway, stops as it enters and as it
//! leaves the call, and has run no other instruction. In the end it is interrupted once more: only
//! where a thread stops for that, and not where it leaves a call, does the kernel look at the registers
//! again and repeat the call of the program that was interrupted (`arch_do_signal_or_restart`).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use windtunnel_sys::clock;
use windtunnel_sys::process::{self, Pid, Signal};
use windtunnel_sys::ptrace::{PtraceStop, ThreadRegisters, Tracee};
use windtunnel_sys::signal;

use super::stopped::{self, PtraceStoppedProcess, mended};

/// A thread that makes calls.
#[derive(Debug)]
pub(super) struct Injection {
    tracee: Tracee,
    before: ThreadRegisters,
    mask: u64,
    /// The program's call blocks signals for its own time.
    waits_with_mask: bool,
    /// Where an instruction `syscall` is.
    instruction: u64,
    /// Signals that stop a process, which have come meanwhile.
    deferred: Vec<i32>,
    pid: Pid,
}

impl Injection {
    /// Begins in a thread of a process: in one that is in a call, if there is one.
    pub(super) fn begin(process: &PtraceStoppedProcess) -> io::Result<Injection> {
        let instruction = find_instruction(process.pid)?;
        let of_thread = |tracee: &Tracee| Some((tracee.clone(), tracee.registers().ok()??));
        let all: Vec<_> = process.threads.iter().filter_map(of_thread).collect();
        let in_call = all.iter().find(|(_, registers)| registers.call().is_some());
        let ended = || io::Error::new(io::ErrorKind::NotFound, "it has ended");
        let (tracee, registers) = in_call.or(all.first()).cloned().ok_or_else(ended)?;
        let mask = tracee.signal_mask()?;
        let waits_with_mask =
            signal::ThreadSignalSets::of(tracee.thread()).is_ok_and(|sets| sets.blocked != mask);
        let before = out_of_sequence(&tracee, registers);
        let (deferred, pid) = (Vec::new(), process.pid);
        tracee.set_signal_mask(u64::MAX)?;
        Ok(Injection { tracee, before, mask, waits_with_mask, instruction, deferred, pid })
    }

    /// Makes a call, and calls `meanwhile` again and again until it returns.
    ///
    /// # Errors
    /// What the call says; `NotFound` when the thread has ended.
    pub(super) fn call(
        &mut self,
        number: u64,
        arguments: [u64; 6],
        mut meanwhile: impl FnMut(),
    ) -> io::Result<u64> {
        let registers = self.before.about_to(number, arguments, self.instruction);
        self.tracee.set_registers(&registers)?;
        self.run_to_call(&mut || {})?;
        self.run_to_call(&mut meanwhile)?;
        let after = self.tracee.registers()?.ok_or(io::ErrorKind::InvalidData)?;
        let result = after.result();
        let errno = i32::try_from(-result).ok().filter(|errno| (1..=ERRNO_MAX).contains(errno));
        errno.map_or(Ok(result.cast_unsigned()), |errno| Err(io::Error::from_raw_os_error(errno)))
    }

    /// Ends: the thread is as it was.
    pub(super) fn end(self) -> io::Result<()> {
        // One that has not made a call stops as well.
        self.tracee.interrupt()?;
        self.tracee.resume(0)?;
        stopped::settle(&self.tracee, clock::monotonic_ns().saturating_add(WAIT_NS))?;
        self.tracee.set_signal_mask(self.mask)?;
        let mended = mended(&self.before, self.tracee.thread(), self.waits_with_mask);
        self.tracee.set_registers(&mended.unwrap_or(self.before))?;
        if !self.deferred.is_empty() {
            process::kill(self.pid, Signal::STOP)?;
        }
        Ok(())
    }

    /// Lets the thread run until it enters a call, or leaves it.
    fn run_to_call(&mut self, meanwhile: &mut impl FnMut()) -> io::Result<()> {
        self.tracee.resume_to_call(0)?;
        let late_ns = clock::monotonic_ns().saturating_add(WAIT_NS);
        loop {
            match self.tracee.poll()? {
                Some(PtraceStop::Call) => return Ok(()),
                Some(PtraceStop::Ended) => {
                    return Err(io::Error::new(io::ErrorKind::NotFound, "it has ended"));
                }
                // All signals wait but those that nothing blocks.
                Some(PtraceStop::Signal(signal)) if signal == Signal::STOP.as_raw() => {
                    self.deferred.push(signal);
                    self.tracee.resume_to_call(0)?;
                }
                Some(PtraceStop::Signal(signal)) => {
                    let why = format!("signal {signal} came instead of a system call");
                    return Err(io::Error::other(why));
                }
                Some(PtraceStop::Interrupted | PtraceStop::Other) => {
                    self.tracee.resume_to_call(0)?;
                }
                None if clock::monotonic_ns() > late_ns => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "it waits in the kernel"));
                }
                None => {
                    meanwhile();
                    std::thread::sleep(LOOK_EVERY);
                }
            }
        }
    }
}

/// The registers of a thread that is not in a restartable sequence of instructions (rseq(2)) any more:
/// where one is interrupted, as here, the kernel has it go on at the place that the sequence says.
fn out_of_sequence(tracee: &Tracee, registers: ThreadRegisters) -> ThreadRegisters {
    let area = tracee.restartable_sequences();
    if area == 0 || registers.call().is_some() {
        return registers;
    }
    let word = |at: u64| {
        let mut bytes = [0; 8];
        let read = process::read_memory(tracee.thread(), at, &mut bytes);
        (read.ok() == Some(8)).then_some(u64::from_ne_bytes(bytes))
    };
    // `struct rseq_cs`: version and flags, start, length, where to go on.
    let sequence = word(area + RSEQ_CS)
        .filter(|at| *at != 0)
        .and_then(|at| Some((word(at + 8)?, word(at + 16)?, word(at + 24)?)));
    match sequence {
        Some((start, length, elsewhere)) if registers.counter().wrapping_sub(start) < length => {
            registers.at(elsewhere)
        }
        _ => registers,
    }
}

/// Where the process has an instruction `syscall`: the kernel's page of code has one, and else
/// the program.
fn find_instruction(pid: Pid) -> io::Result<u64> {
    let number = pid.as_raw_nonzero();
    let maps = fs::read_to_string(format!("/proc/{number}/maps"))?;
    let memory = File::open(format!("/proc/{number}/mem"))?;
    let mut ranges: Vec<(bool, u64, u64)> = maps.lines().filter_map(executable).collect();
    ranges.sort_by_key(|(is_kernels, ..)| !is_kernels);
    for (_, from, to) in ranges {
        let mut at = from;
        while at < to {
            let length = usize::try_from((to - at).min(CHUNK_BYTES)).unwrap_or(0);
            let mut bytes = vec![0; length];
            let read = memory.read_at(&mut bytes, at).unwrap_or(0);
            if let Some(found) = bytes[..read].windows(2).position(|pair| pair == SYSCALL) {
                return Ok(at + found as u64);
            }
            // An instruction may lie across two pieces.
            at += CHUNK_BYTES - 1;
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "it has no instruction to make a call with"))
}

/// `from-to permissions offset device inode path`.
fn executable(line: &str) -> Option<(bool, u64, u64)> {
    let mut words = line.split_ascii_whitespace();
    let (range, permissions) = (words.next()?, words.next()?);
    let (from, to) = range.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let is_code = permissions.starts_with('r') && permissions.contains('x');
    let is_vsyscall = line.ends_with("[vsyscall]");
    (is_code && !is_vsyscall).then_some((line.ends_with("[vdso]"), address(from)?, address(to)?))
}

/// The instruction of x86-64.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
const CHUNK_BYTES: u64 = 1 << 16;
/// The greatest errno (`MAX_ERRNO`).
const ERRNO_MAX: i32 = 4095;
/// How long a call may take.
const WAIT_NS: u64 = 10_000_000_000;
const LOOK_EVERY: Duration = Duration::from_micros(10);
/// Where `struct rseq` says in which sequence the thread is.
const RSEQ_CS: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_among_what_is_mapped() {
        let line = "7f00-7f10 r-xp 00000000 00:00 0   [vdso]";
        assert_eq!(executable(line), Some((true, 0x7f00, 0x7f10)));
        assert_eq!(executable("7f00-7f10 rw-p 00000000 00:00 0 [heap]"), None);
        assert_eq!(executable("7f00-7f10 --xp 00000000 00:00 0 [vsyscall]"), None);
        assert!(!executable("7f00-7f10 r-xp 00000000 08:01 7 /usr/bin/x").unwrap().0);
    }
}
