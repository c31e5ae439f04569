//! Sockets that a program watches by edges (epoll(7), `EPOLLET`): those of Go's runtime and of most event
//! loops. A call on such a one may fail with `EAGAIN`, as the program waits for the next edge then,
//! which can be made. One that looks at levels would find its socket ready at once.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::AsFd;

use windtunnel_budget::pacing::TransferDirection;
use windtunnel_sys::socket;

/// What has been found out.
#[derive(Debug, Default)]
pub(super) struct EdgeTriggeredSockets {
    /// By the kernel's number of the socket.
    sockets: BTreeMap<u64, EpollRegistration>,
    /// The process whose registrations were read last, when, and the events of its descriptors.
    read: Option<(i32, u64, BTreeMap<i32, u32>)>,
}

#[derive(Debug, Clone, Copy)]
struct EpollRegistration {
    /// Of `struct epoll_event`; 0: it is not watched.
    events: u32,
    looked_ns: u64,
}

impl EdgeTriggeredSockets {
    /// Whether a process waits for the edges of its socket in a direction.
    pub(super) fn are_watched(
        &mut self,
        pid: i32,
        descriptor: i32,
        cookie: u64,
        direction: TransferDirection,
        now_ns: u64,
    ) -> bool {
        let known = self.sockets.get(&cookie).filter(|known| {
            known.events != 0 || now_ns.saturating_sub(known.looked_ns) < BELIEVED_NS
        });
        let events = known.map(|known| known.events).unwrap_or_else(|| {
            let events = self.registered(pid, descriptor, now_ns);
            self.sockets.insert(cookie, EpollRegistration { events, looked_ns: now_ns });
            events
        });
        let wanted = match direction {
            TransferDirection::Send => EPOLLOUT,
            TransferDirection::Receive => EPOLLIN,
        };
        // Where one edge is all that is asked for, each renewal reports at once that the socket is ready.
        events & (wanted | EPOLLET | EPOLLONESHOT) == wanted | EPOLLET
    }

    pub(super) fn forget(&mut self, cookie: u64) {
        self.sockets.remove(&cookie);
    }

    /// The events for which a descriptor is registered. Many calls of a process may come at once: what was
    /// read for one is good for others, if the descriptor was registered then.
    fn registered(&mut self, pid: i32, descriptor: i32, now_ns: u64) -> u32 {
        let kept = self.read.as_ref().filter(|(of, read_ns, _)| {
            *of == pid && now_ns.saturating_sub(*read_ns) < READ_AGAIN_NS
        });
        if let Some(events) = kept.and_then(|(.., events)| events.get(&descriptor)) {
            return *events;
        }
        let (_, _, events) = self.read.insert((pid, now_ns, registered(pid).unwrap_or_default()));
        events.get(&descriptor).copied().unwrap_or(0)
    }
}

/// Makes an edge. One for the other direction reports a connection's end, too.
pub(super) fn make(copy: impl AsFd, direction: TransferDirection) -> io::Result<()> {
    if direction == TransferDirection::Receive {
        socket::wake_readers(&copy)?;
    }
    socket::wake_writers(&copy)
}

/// What descriptors are registered for with epolls of their process (proc_pid_fdinfo(5)).
fn registered(pid: i32) -> io::Result<BTreeMap<i32, u32>> {
    let mut all: BTreeMap<i32, u32> = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        let entry = entry?;
        if fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str() == "anon_inode:[eventpoll]") {
            let number = entry.file_name();
            let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", number.display()))?;
            for (descriptor, events) in text.lines().filter_map(registration) {
                *all.entry(descriptor).or_default() |= events;
            }
        }
    }
    Ok(all)
}

/// A descriptor and its events, of a line such as `tfd:        5 events: 8000201d data: 7f00 …`.
fn registration(line: &str) -> Option<(i32, u32)> {
    let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
    let descriptor = words.next()?.parse().ok()?;
    let events = words.nth(1)?;
    Some((descriptor, u32::from_str_radix(events, 16).ok()?))
}

/// What was not watched is looked at again after this time.
const BELIEVED_NS: u64 = 1_000_000_000;
/// What a process has registered is read again after this time.
const READ_AGAIN_NS: u64 = 20_000_000;
const EPOLLIN: u32 = 1;
const EPOLLOUT: u32 = 4;
const EPOLLONESHOT: u32 = 1 << 30;
const EPOLLET: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

    use super::*;

    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    fn watched(flags: EventFlags, direction: TransferDirection) -> bool {
        let (near, _far) = connection();
        let set = epoll::create(CreateFlags::CLOEXEC).unwrap();
        epoll::add(&set, &near, EventData::new_u64(1), flags).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let cookie = socket::cookie(&near).unwrap();
        EdgeTriggeredSockets::default().are_watched(own, near.as_raw_fd(), cookie, direction, 0)
    }

    #[test]
    fn what_is_watched_by_edges_is_distinguished_from_the_rest() {
        let edges = EventFlags::ET | EventFlags::IN;
        assert!(watched(edges, TransferDirection::Receive));
        assert!(!watched(edges, TransferDirection::Send));
        assert!(watched(edges | EventFlags::OUT | EventFlags::RDHUP, TransferDirection::Send));
        assert!(!watched(EventFlags::IN, TransferDirection::Receive));
        assert!(!watched(edges | EventFlags::ONESHOT, TransferDirection::Receive));
    }

    /// Flags of the events that wait now.
    fn events(set: impl AsFd) -> Vec<EventFlags> {
        let nothing = epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [nothing; 4];
        let at_once = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        let count = epoll::wait(set, &mut events, Some(&at_once)).unwrap();
        events[..count].iter().map(|event| event.flags).collect()
    }

    #[test]
    fn an_edge_is_seen_by_who_has_seen_the_one_before() {
        use std::io::Write;
        let (near, mut far) = connection();
        let set = epoll::create(CreateFlags::CLOEXEC).unwrap();
        let flags = EventFlags::ET | EventFlags::IN | EventFlags::OUT;
        epoll::add(&set, &near, EventData::new_u64(1), flags).unwrap();
        far.write_all(b"x").unwrap();
        while !events(&set).iter().any(|flags| flags.contains(EventFlags::IN)) {}
        assert!(events(&set).is_empty());
        for direction in TransferDirection::ALL {
            make(&near, direction).unwrap();
            let seen = events(&set);
            assert!(seen[0].contains(EventFlags::IN | EventFlags::OUT), "{direction:?}: {seen:?}");
            assert!(events(&set).is_empty());
        }
    }

    #[test]
    fn one_without_room_gets_an_edge_when_it_has_some() {
        use std::io::{Read, Write};
        let (mut near, mut far) = connection();
        near.set_nonblocking(true).unwrap();
        let chunk = vec![0; 1 << 16];
        let set = epoll::create(CreateFlags::CLOEXEC).unwrap();
        let flags = EventFlags::ET | EventFlags::OUT;
        epoll::add(&set, &near, EventData::new_u64(1), flags).unwrap();
        let mut sent = 0;
        while let Ok(bytes) = near.write(&chunk) {
            sent += bytes;
        }
        let _ = events(&set);
        make(&near, TransferDirection::Send).unwrap();
        let mut received = 0;
        let mut seen = Vec::new();
        while received < sent && seen.is_empty() {
            received += far.read(&mut vec![0; 1 << 20]).unwrap();
            seen = events(&set);
        }
        seen.extend(events(&set));
        assert!(seen.iter().any(|flags| flags.contains(EventFlags::OUT)), "{seen:?}");
    }

    #[test]
    fn a_line_of_another_kind_is_no_registration() {
        assert_eq!(
            registration("tfd:        5 events: 8000201d data: 7f00"),
            Some((5, 0x8000_201d))
        );
        assert_eq!(registration("pos:\t0"), None);
        assert_eq!(registration("tfd: x events: 1"), None);
    }
}
