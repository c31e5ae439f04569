//! Waiting for descriptors and moments. Source: ppoll(2), eventfd(2), timerfd_create(2).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, epoll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::ffi::timespec;

pub use rustix::event::{PollFd, PollFlags};

/// Waits until one of `descriptors` has what was asked for, or `timeout` has passed (no limit
/// without one; zero just looks), and returns how many have something.
///
/// # Errors
/// `EINTR` when a signal handler ran.
pub fn wait(descriptors: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    let timeout =
        timeout.map(|timeout| timespec(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)));
    Ok(rustix::event::poll(descriptors, timeout.as_ref())?)
}

/// A counter that wakes the threads that poll it. Nonblocking.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// An event that has not been raised yet.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn open() -> io::Result<EventFd> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(EventFd(rustix::event::eventfd(0, flags)?))
    }

    /// Makes the event readable.
    ///
    /// # Errors
    /// `EAGAIN` after 2^64 - 2 calls without [`EventFd::clear`].
    pub fn raise(&self) -> io::Result<()> {
        rustix::io::write(&self.0, &1_u64.to_ne_bytes())?;
        Ok(())
    }

    /// How often the event was raised since the last call; zero when it was not.
    ///
    /// # Errors
    /// What read(2) says.
    pub fn clear(&self) -> io::Result<u64> {
        read_count(self.0.as_fd())
    }
}

impl From<OwnedFd> for EventFd {
    /// A copy of an event, perhaps that of another process.
    fn from(descriptor: OwnedFd) -> EventFd {
        EventFd(descriptor)
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Many descriptors that are waited for at the price of those that have something. Source:
/// epoll(7).
#[derive(Debug)]
pub struct EpollSet(OwnedFd);

impl EpollSet {
    /// An empty set.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn open() -> io::Result<EpollSet> {
        Ok(EpollSet(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Adds a descriptor, to be reported as `token` when it is readable or closed at its other end.
    /// It leaves the set when its last copy is closed, also those of other processes.
    ///
    /// # Errors
    /// `EPERM` for what cannot be waited for, such as a file; `ENOSPC`.
    pub fn add(&self, descriptor: impl AsFd, token: u64) -> io::Result<()> {
        Ok(epoll::add(
            &self.0,
            descriptor,
            epoll::EventData::new_u64(token),
            epoll::EventFlags::IN,
        )?)
    }

    /// Takes a descriptor out.
    ///
    /// # Errors
    /// `ENOENT` when it is not in the set.
    pub fn remove(&self, descriptor: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.0, descriptor)?)
    }

    /// Waits for some of the descriptors and calls `each` with the tokens of up to 64 of them, and
    /// whether the other end is closed.
    ///
    /// # Errors
    /// `EINTR` when a signal handler ran.
    pub fn wait(&self, mut each: impl FnMut(u64, bool)) -> io::Result<()> {
        let nothing =
            epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [nothing; 64];
        let count = epoll::wait(&self.0, &mut events, None)?;
        for event in &events[..count] {
            let flags = event.flags;
            each(event.data.u64(), flags.intersects(epoll::EventFlags::HUP));
        }
        Ok(())
    }
}

/// A descriptor that becomes readable at a moment of `CLOCK_MONOTONIC`. Nonblocking.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// A timer that is not armed.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn open() -> io::Result<Timer> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Timer(timerfd_create(TimerfdClockId::Monotonic, flags)?))
    }

    /// Arms the timer for the moment when [`monotonic_ns`](crate::clock::monotonic_ns) reaches
    /// `at_ns`: at once when it has. An earlier arming is forgotten.
    ///
    /// # Errors
    /// What timerfd_settime(2) says.
    pub fn arm_at(&self, at_ns: u64) -> io::Result<()> {
        // Zero would disarm, and has passed long ago: so has 1.
        self.set(timespec(at_ns.max(1)))
    }

    /// Forgets the arming.
    ///
    /// # Errors
    /// What timerfd_settime(2) says.
    pub fn disarm(&self) -> io::Result<()> {
        self.set(NEVER)
    }

    /// Makes the timer unreadable; true when it had gone off.
    ///
    /// # Errors
    /// What read(2) says.
    pub fn clear(&self) -> io::Result<bool> {
        Ok(read_count(self.0.as_fd())? > 0)
    }

    fn set(&self, moment: Timespec) -> io::Result<()> {
        let setting = Itimerspec { it_interval: NEVER, it_value: moment };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &setting)?;
        Ok(())
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The eight-byte counter that both kinds give, zero for "nothing yet".
fn read_count(descriptor: BorrowedFd<'_>) -> io::Result<u64> {
    let mut count = [0; 8];
    match rustix::io::read(descriptor, &mut count) {
        Ok(_) => Ok(u64::from_ne_bytes(count)),
        Err(rustix::io::Errno::AGAIN) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

const NEVER: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
