//! What the gateway's loop waits for.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};

/// Whose descriptor it is; numbers are below 2^56.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PollerToken {
    /// The parent.
    Control,
    /// Frames of the node's link.
    Ring,
    /// A connection to the outside that is being made.
    Dial(u64),
    /// A listener inside.
    Listener(u64),
    /// A pair of joined connections.
    Pair(u64),
    /// The outside socket of a UDP endpoint.
    Session(u64),
    /// The outside socket of an echo flow.
    Echo(u64),
    /// Questions for names.
    Names(u64),
    /// Answers to them.
    Question(u64),
    /// A published port.
    Publish(u64),
}

/// A descriptor that has something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PollerEvent {
    pub(crate) token: PollerToken,
    /// Whether an error is to be fetched.
    pub(crate) error: bool,
}

/// A set of descriptors. One leaves it when it is closed.
#[derive(Debug)]
pub(crate) struct Poller(OwnedFd);

impl Poller {
    pub(crate) fn open() -> io::Result<Poller> {
        Ok(Poller(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Reports it as long as it can be read.
    pub(crate) fn add_readable(&self, descriptor: impl AsFd, token: PollerToken) -> io::Result<()> {
        self.add(descriptor, token, epoll::EventFlags::IN)
    }

    /// Reports it each time that more can be read or written than before.
    pub(crate) fn add_edges(&self, descriptor: impl AsFd, token: PollerToken) -> io::Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP;
        self.add(descriptor, token, flags | epoll::EventFlags::ET)
    }

    /// Reports it when it can be written, once.
    pub(crate) fn add_once_writable(
        &self,
        descriptor: impl AsFd,
        token: PollerToken,
    ) -> io::Result<()> {
        self.add(descriptor, token, epoll::EventFlags::OUT | epoll::EventFlags::ONESHOT)
    }

    pub(crate) fn remove(&self, descriptor: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.0, descriptor)?)
    }

    /// What has something, at the latest after `timeout`.
    pub(crate) fn wait(&self, timeout: Duration, ready: &mut Vec<PollerEvent>) -> io::Result<()> {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let none = epoll::EventFlags::empty();
        let nothing = epoll::Event { flags: none, data: epoll::EventData::new_u64(0) };
        let mut events = [nothing; EVENTS];
        let count = match epoll::wait(&self.0, &mut events, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => 0,
            count => count?,
        };
        ready.clear();
        ready.extend(events[..count].iter().filter_map(|event| {
            let data = event.data;
            let token = PollerToken::of(data.u64())?;
            // The kernel's structure is packed.
            let flags = event.flags;
            Some(PollerEvent { token, error: flags.intersects(epoll::EventFlags::ERR) })
        }));
        Ok(())
    }

    fn add(
        &self,
        descriptor: impl AsFd,
        token: PollerToken,
        flags: epoll::EventFlags,
    ) -> io::Result<()> {
        Ok(epoll::add(&self.0, descriptor, epoll::EventData::new_u64(token.number()), flags)?)
    }
}

impl PollerToken {
    fn number(self) -> u64 {
        let (kind, id) = match self {
            PollerToken::Control => (0, 0),
            PollerToken::Ring => (1, 0),
            PollerToken::Dial(id) => (2, id),
            PollerToken::Listener(id) => (3, id),
            PollerToken::Pair(id) => (4, id),
            PollerToken::Session(id) => (5, id),
            PollerToken::Echo(id) => (6, id),
            PollerToken::Names(id) => (7, id),
            PollerToken::Question(id) => (8, id),
            PollerToken::Publish(id) => (9, id),
        };
        kind << KIND_SHIFT | id
    }

    fn of(number: u64) -> Option<PollerToken> {
        let id = number & ((1 << KIND_SHIFT) - 1);
        Some(match number >> KIND_SHIFT {
            0 => PollerToken::Control,
            1 => PollerToken::Ring,
            2 => PollerToken::Dial(id),
            3 => PollerToken::Listener(id),
            4 => PollerToken::Pair(id),
            5 => PollerToken::Session(id),
            6 => PollerToken::Echo(id),
            7 => PollerToken::Names(id),
            8 => PollerToken::Question(id),
            9 => PollerToken::Publish(id),
            _ => return None,
        })
    }
}

const KIND_SHIFT: u32 = 56;
const EVENTS: usize = 256;
