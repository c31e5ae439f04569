//! Clocks, in nanoseconds. Source: clock_gettime(2), clock_nanosleep(2),
//! PR_SET_TIMERSLACK(2const), adjtimex(2), clock_getcpuclockid(3), getrusage(2).

use std::io;
use std::num::NonZeroU64;

use rustix::process::Pid;
use rustix::thread::ClockId as SleepClock;
use rustix::time::{ClockId, clock_gettime};

use crate::ffi::{check, nanoseconds, timespec};

/// Nanoseconds of `CLOCK_MONOTONIC`: since some moment in the past, never backwards.
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Nanoseconds of `CLOCK_REALTIME`: since 1970, as far as the machine knows.
pub fn realtime_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// How the real-time clock stands to the monotonic one, and how well it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallClock {
    /// Nanoseconds by which it shows more.
    pub ahead_ns: i64,
    /// It differs from the true time by no more than this, in nanoseconds, as the kernel was informed by
    /// the program that keeps it (NTP, PTP), with what it may have drifted since; `None`: nothing
    /// keeps it.
    pub error_ns: Option<u64>,
}

/// The real-time clock: adjtimex(2).
#[must_use]
pub fn wall_clock() -> WallClock {
    let before = monotonic_ns();
    let real = realtime_ns();
    let after = monotonic_ns();
    // It was read at some time between the two.
    let monotonic = before.midpoint(after);
    let read_ns = (after - before).div_ceil(2);
    let ahead = i128::from(real) - i128::from(monotonic);
    let ahead_ns = i64::try_from(ahead).unwrap_or(i64::MAX);
    WallClock { ahead_ns, error_ns: kept_within_ns().map(|error| error.saturating_add(read_ns)) }
}

/// The kernel's bound of the error of the real-time clock.
fn kept_within_ns() -> Option<u64> {
    // SAFETY: the structure consists of numbers; no mode is set, so nothing is changed.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live value.
    let returned = unsafe { libc::adjtimex(&raw mut state) };
    let is_kept =
        returned >= 0 && returned != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0;
    let error_us = u64::try_from(state.maxerror).ok()?;
    is_kept.then(|| error_us.saturating_mul(1_000))
}

/// A moment in the calendar of the machine's time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime {
    /// Of our era.
    pub year: i32,
    /// From 1.
    pub month: i32,
    /// From 1.
    pub day: i32,
    /// From 0.
    pub hour: i32,
    /// From 0.
    pub minute: i32,
    /// From 0; 60 in a leap second.
    pub second: i32,
}

/// What the calendar says now, in the time zone that `TZ` or /etc/localtime names: localtime_r(3).
pub fn local_time() -> LocalTime {
    local_time_at(realtime_ns() / 1_000_000_000)
}

/// The same so many seconds after 1970.
fn local_time_at(unix_s: u64) -> LocalTime {
    // `time_t`, on all machines of 64 bits.
    let seconds = i64::try_from(unix_s).unwrap_or(i64::MAX);
    // SAFETY: the structure consists of numbers and a pointer that may be null.
    let mut fields: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid for the call, and nothing here changes the environment. A
    // year beyond an int leaves the fields zero.
    unsafe { libc::localtime_r(&raw const seconds, &raw mut fields) };
    LocalTime {
        year: fields.tm_year + 1900,
        month: fields.tm_mon + 1,
        day: fields.tm_mday,
        hour: fields.tm_hour,
        minute: fields.tm_min,
        second: fields.tm_sec,
    }
}

/// Nanoseconds for which the calling thread has been running on a processor.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Nanoseconds for which all threads of the process have been running on processors.
pub fn process_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// Nanoseconds for which all threads of another process have been running on processors, also
/// those that have ended; of a process that has ended, until it is waited for.
///
/// # Errors
/// `ESRCH` for a process that is gone.
pub fn cpu_ns_of(process: Pid) -> io::Result<u64> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the pointer is to a live value.
    let error =
        unsafe { libc::clock_getcpuclockid(process.as_raw_nonzero().get(), &raw mut clock) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live value. A clock that is gone is an error.
    check(unsafe { libc::clock_gettime(clock, &raw mut time) })?;
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Ok(part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_nsec)))
}

/// Nanoseconds for which those children of the calling process have been running that it has waited
/// for, with those that these have waited for; to the microsecond.
pub fn ended_children_cpu_ns() -> u64 {
    // SAFETY: the structure consists of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live value, and the first argument is one of the known.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    let of = |time: libc::timeval| part(time.tv_sec) * 1_000_000_000 + part(time.tv_usec) * 1000;
    of(usage.ru_utime).saturating_add(of(usage.ru_stime))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_is_ahead_by_the_difference_of_both_clocks() {
        let wall = wall_clock();
        let ahead = i128::from(realtime_ns()) - i128::from(monotonic_ns());
        // Both were read within a second, also on a busy machine.
        assert!((ahead - i128::from(wall.ahead_ns)).abs() < 1_000_000_000, "{wall:?} {ahead}");
    }

    #[test]
    fn a_moment_has_the_date_and_time_of_the_machines_time_zone() {
        // 2026-11-22 13:15:58 UTC; no time zone is further away than 14 hours.
        let LocalTime { year, month, day, minute: _, second, .. } = local_time_at(1_795_353_358);
        assert_eq!((year, month, second), (2026, 11, 58));
        assert!((21..=23).contains(&day), "{day}");
    }
}
