//! Clocks, in nanoseconds. Source: clock_gettime(2), clock_nanosleep(2), PR_SET_TIMERSLACK(2const).

use std::io;
use std::num::NonZeroU64;

use rustix::thread::ClockId as SleepClock;
use rustix::time::{ClockId, clock_gettime};

use crate::ffi::{nanoseconds, timespec};

/// Nanoseconds of `CLOCK_MONOTONIC`: since some moment in the past, never backwards.
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Nanoseconds of `CLOCK_REALTIME`: since 1970, as far as the machine knows.
pub fn realtime_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// Nanoseconds for which the calling thread has been running on a processor.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Nanoseconds for which all threads of the process have been running on processors.
pub fn process_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// Sleeps until [`monotonic_ns`] reaches `at_ns`; returns at once when it has.
///
/// # Errors
/// `EINTR` when a signal handler ran before.
pub fn sleep_until(at_ns: u64) -> io::Result<()> {
    let moment = timespec(at_ns);
    Ok(rustix::thread::clock_nanosleep_absolute(SleepClock::Monotonic, &moment)?)
}

/// Lets the kernel wake the calling thread late by at most `slack_ns` so as to save energy (50 µs
/// unless said otherwise); 1 for as soon as possible.
///
/// # Errors
/// What prctl(2) says.
pub fn set_timer_slack(slack_ns: NonZeroU64) -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(Some(slack_ns))?)
}
