//! Which sockets are of the processes that are recorded, where others are in the same network.
//!
//! The kernel says of a socket neither its process nor, once the socket is closed, its file. Two
//! sources know: records of calls name the cookies of the sockets that they are on, and `/proc`
//! lists the files that each process has open. The second is looked at when a socket shows up that
//! neither has named yet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windtunnel_evidence::file::EventSource;
use windtunnel_model::record::{EventRecord, Kind};

use crate::drain::RecordFeed;

/// Cookies of sockets that calls were recorded on; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct SocketCookieSet(Arc<Mutex<BTreeSet<u64>>>);

impl SocketCookieSet {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A source of calls, whose sockets are noted.
#[derive(Debug)]
pub struct SocketNotingFeed<F> {
    feed: F,
    cookies: SocketCookieSet,
}

impl<F: RecordFeed> SocketNotingFeed<F> {
    /// Notes the sockets of `feed`.
    #[must_use]
    pub fn new(feed: F, cookies: SocketCookieSet) -> SocketNotingFeed<F> {
        SocketNotingFeed { feed, cookies }
    }
}

impl<F: RecordFeed> RecordFeed for SocketNotingFeed<F> {
    fn source(&self) -> EventSource {
        self.feed.source()
    }

    fn take(&mut self, most: usize, records: &mut Vec<EventRecord>) {
        let before = records.len();
        self.feed.take(most, records);
        let sockets = records.iter().skip(before).filter(|it| it.kind == Kind::FlowSocket as u8);
        let mut cookies = self.cookies.lock();
        cookies.extend(sockets.map(|record| record.wide(0)));
    }

    fn fill(&self) -> (u64, u64) {
        self.feed.fill()
    }
}

/// What is known of the sockets of some processes, and of those that these have started.
#[derive(Debug)]
pub struct SocketAttribution {
    processes: Vec<u32>,
    cookies: SocketCookieSet,
    /// Sockets of others: their files, by cookie.
    foreign: BTreeMap<u64, u32>,
}

/// What a socket is, before anything is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketOwnership {
    Ours,
    Foreign,
    Unknown,
}

/// Things of sockets that were destroyed before it was known whose they were.
#[derive(Debug)]
pub(crate) struct UnattributedSocketQueue<T>(VecDeque<(u64, u64, T)>);

impl SocketAttribution {
    /// Of these processes and all that they start; and of the sockets that `cookies` name.
    #[must_use]
    pub fn new(processes: Vec<u32>, cookies: SocketCookieSet) -> SocketAttribution {
        SocketAttribution { processes, cookies, foreign: BTreeMap::new() }
    }

    /// Whose a socket is. `file` is the number of its inode, 0 while no process has it open.
    pub(crate) fn owned(&self, cookie: u64, file: u32) -> SocketOwnership {
        if self.cookies.lock().contains(&cookie) {
            SocketOwnership::Ours
        } else if self.foreign.get(&cookie) == Some(&file) {
            SocketOwnership::Foreign
        } else {
            SocketOwnership::Unknown
        }
    }

    /// Looks whose files these sockets are, which are all that are unknown.
    pub(crate) fn find(&mut self, unknown: &[(u64, u32)]) {
        if unknown.iter().all(|(_, file)| *file == 0) {
            return;
        }
        let own: BTreeSet<u32> = tree(&self.processes).into_iter().flat_map(sockets).collect();
        self.sort(unknown, &own);
    }

    fn sort(&mut self, unknown: &[(u64, u32)], own: &BTreeSet<u32>) {
        if self.foreign.len() > FOREIGN_MAX {
            self.foreign.clear();
        }
        let mut cookies = self.cookies.lock();
        for (cookie, file) in unknown.iter().filter(|(_, file)| *file != 0) {
            if own.contains(file) {
                cookies.insert(*cookie);
            } else {
                self.foreign.insert(*cookie, *file);
            }
        }
    }
}

impl<T> Default for UnattributedSocketQueue<T> {
    fn default() -> Self {
        UnattributedSocketQueue(VecDeque::new())
    }
}

impl<T> UnattributedSocketQueue<T> {
    /// Keeps what there is to say of a socket, at the cost of the oldest.
    pub(crate) fn put(&mut self, now_ns: u64, cookie: u64, what: T) {
        if self.0.len() == WAITING_MAX {
            self.0.pop_front();
        }
        self.0.push_back((now_ns, cookie, what));
    }

    /// What has turned out to be of sockets that `is_ours` knows; what is too old is dropped.
    pub(crate) fn take(&mut self, now_ns: u64, is_ours: impl Fn(u64) -> bool) -> Vec<(u64, T)> {
        let mut ours = Vec::new();
        for (time, cookie, what) in std::mem::take(&mut self.0) {
            if is_ours(cookie) {
                ours.push((time, what));
            } else if now_ns.saturating_sub(time) < PATIENCE_NS {
                self.0.push_back((time, cookie, what));
            }
        }
        ours
    }
}

/// Processes with all that they have started and that have not lost their parents.
#[must_use]
pub fn tree(roots: &[u32]) -> Vec<u32> {
    let mut known: BTreeSet<u32> = BTreeSet::new();
    let mut next = roots.to_vec();
    while let Some(process) = next.pop() {
        if known.insert(process) {
            next.extend(children(process));
        }
    }
    known.into_iter().collect()
}

/// Whether the kernel lets the caller see which sockets a process has.
///
/// # Errors
/// `EACCES` for a process of another user, `ENOENT` where there is none.
pub fn may_see(process: u32) -> io::Result<()> {
    fs::read_dir(files(process)).map(drop)
}

/// The processes that a process has started and that live.
#[must_use]
pub fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| numbers(&list)).collect()
}

fn numbers(list: &str) -> Vec<u32> {
    list.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The sockets among the open files of a process, by the numbers of their inodes.
#[must_use]
pub fn sockets(process: u32) -> Vec<u32> {
    let files = fs::read_dir(files(process)).into_iter().flatten().flatten();
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    links.filter_map(|link| socket_of(link.to_str()?)).collect()
}

fn files(process: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{process}/fd"))
}

/// `socket:[4711]`, of proc_pid_fd(5).
fn socket_of(link: &str) -> Option<u32> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Sockets of others that are remembered.
const FOREIGN_MAX: usize = 1 << 16;
/// Destroyed sockets that wait to be known.
const WAITING_MAX: usize = 1 << 12;
/// Records of calls come sooner than that.
const PATIENCE_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    use windtunnel_model::record::kind::RecordSource;
    use windtunnel_sys::socket;

    use super::*;
    use crate::shelf::SourceRecordBuffer;

    #[test]
    fn a_socket_of_the_process_is_found_by_its_file() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let cookie = socket::cookie(listener.as_fd()).unwrap();
        let own = std::process::id();
        assert!(tree(&[own]).contains(&own));
        let number = std::os::fd::AsRawFd::as_raw_fd(&listener);
        let link = fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
        let file = socket_of(link.to_str().unwrap()).unwrap();
        let mut owners = SocketAttribution::new(vec![own], SocketCookieSet::default());
        assert_eq!(owners.owned(cookie, file), SocketOwnership::Unknown);
        owners.find(&[(cookie, file), (77, 1)]);
        assert_eq!(owners.owned(cookie, file), SocketOwnership::Ours);
        assert_eq!(owners.owned(cookie, 0), SocketOwnership::Ours, "also when it is closed");
        assert_eq!(owners.owned(77, 1), SocketOwnership::Foreign);
        assert_eq!(owners.owned(77, 2), SocketOwnership::Unknown, "another process has it now");
    }

    #[test]
    fn a_socket_that_no_process_has_open_yet_stays_unknown() {
        let mut owners = SocketAttribution::new(Vec::new(), SocketCookieSet::default());
        owners.find(&[(5, 0)]);
        assert_eq!(owners.owned(5, 0), SocketOwnership::Unknown);
    }

    #[test]
    fn sockets_of_recorded_calls_are_known() {
        let (shelf, feed) =
            SourceRecordBuffer::new(EventSource::of_node(RecordSource::Calls, 0, 0), 8);
        let cookies = SocketCookieSet::default();
        let mut feed = SocketNotingFeed::new(feed, cookies.clone());
        let args = [9, 1, 0, 0];
        shelf.put(&EventRecord {
            time: 1,
            kind: Kind::FlowSocket as u8,
            args,
            ..EventRecord::default()
        });
        feed.take(8, &mut Vec::new());
        let owners = SocketAttribution::new(Vec::new(), cookies);
        assert_eq!(owners.owned(1 << 32 | 9, 0), SocketOwnership::Ours);
        assert_eq!(owners.owned(9, 0), SocketOwnership::Unknown);
    }

    #[test]
    fn what_was_destroyed_waits_until_it_is_known_and_no_longer_than_a_second() {
        let mut waiting = UnattributedSocketQueue::default();
        waiting.put(10, 1, "one");
        waiting.put(20, 2, "two");
        assert_eq!(waiting.take(30, |cookie| cookie == 2), [(20, "two")]);
        assert_eq!(waiting.take(10 + PATIENCE_NS, |_| false), []);
        assert_eq!(waiting.take(10 + PATIENCE_NS, |_| true), []);
    }

    #[test]
    fn lists_of_processes_and_names_of_files_are_read() {
        assert_eq!(numbers("12 7 \n"), [12, 7]);
        assert_eq!(socket_of("socket:[4711]"), Some(4711));
        assert_eq!(socket_of("pipe:[4711]"), None);
    }
}
