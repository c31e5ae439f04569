//! The process that attaches to others, and that lets their calls pass once the process that limits
//! them has gone: then the other end of a socket closes, which even SIGKILL cannot hide.
//!
//! It is a fork of that process, made before this has threads, with a session of its own and no
//! descriptors of it but the few that it needs. It ends with the last process under its filters, or
//! with the first one where nothing was attached.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use windtunnel_notification::watcher::{CallAnswer, CallWatcher, WaitingCall};
use windtunnel_sys::namespace::{self, NamespaceFlags, NamespaceFork};
use windtunnel_sys::process::{self, Pid};
use windtunnel_sys::seccomp::running::filter_for;
use windtunnel_sys::seccomp::{SeccompFilterKind, SeccompListener, SeccompListenerHandover};
use windtunnel_sys::{clock, descriptor, limits, poll, socket, unix};

use super::install::{Installed, SeccompInstallation};
use super::ledger::{LISTENERS_MAX, SeccompCallLedger};
use super::stopped::PtraceStoppedProcess;
use super::{AttachRefusal, candidate};
use crate::outliving;
use crate::tree::ProcessTree;

/// The keeper of the calling process. Dropping it leaves the programs to it.
#[derive(Debug)]
pub struct SeccompKeeper {
    socket: OwnedFd,
    ledger: SeccompCallLedger,
    pid: Pid,
}

/// What was attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachOutcome {
    pub processes: u64,
    /// How long they were stopped for it.
    pub stopped_ns: u64,
}

/// What processes are to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachRequest {
    /// The first process of the tree.
    pub root: Pid,
    pub filter: SeccompFilterKind,
    /// Whether they may name certain networks only.
    pub confines: bool,
}

impl SeccompKeeper {
    /// Starts it. To be called before the process has threads. Listeners are handed over at the
    /// socket that is returned, as [`SeccompListenerHandover`] says, in the order of the ledger.
    ///
    /// # Errors
    /// `EDEADLK` if it has; what fork(2) says.
    pub fn start() -> io::Result<(SeccompKeeper, OwnedFd)> {
        let ledger = SeccompCallLedger::new()?;
        let (socket, theirs) = unix::seqpacket_pair()?;
        let (door, handover) = unix::seqpacket_pair()?;
        match namespace::fork_into(NamespaceFlags::NONE)? {
            NamespaceFork::Child => {
                drop((socket, door));
                let work = SeccompKeeperWorker {
                    socket: theirs,
                    handover,
                    ledger,
                    listeners: BTreeMap::new(),
                };
                work.run();
                process::exit_now(0)
            }
            NamespaceFork::Parent { pid, .. } => Ok((SeccompKeeper { socket, ledger, pid }, door)),
        }
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// What it will know of calls that are not answered.
    #[must_use]
    pub fn ledger(&self) -> &SeccompCallLedger {
        &self.ledger
    }

    /// Attaches to a process and all below it, or to none.
    ///
    /// # Errors
    /// The first process that cannot be attached, and why.
    pub fn attach(&self, order: AttachRequest) -> Result<AttachOutcome, AttachRefusal> {
        let gone = |error: io::Error| {
            AttachRefusal::of(order.root, format!("the keeper does not answer: {error}"), "")
        };
        unix::send(&self.socket, &order.write(), &[]).map_err(gone)?;
        let mut buffer = vec![0; ANSWER_BYTES_MAX];
        let received = unix::receive(&self.socket, &mut buffer).map_err(gone)?;
        read_answer(&buffer[..received.bytes])
            .unwrap_or_else(|| Err(gone(io::ErrorKind::UnexpectedEof.into())))
    }
}

/// The keeper's life.
struct SeccompKeeperWorker {
    socket: OwnedFd,
    handover: OwnedFd,
    ledger: SeccompCallLedger,
    /// By the order in which they were handed over.
    listeners: BTreeMap<usize, SeccompListener>,
}

impl SeccompKeeperWorker {
    fn run(mut self) {
        outliving::begin("limit-keeper");
        // It works without either of these.
        let _ = std::env::set_current_dir("/");
        let _ = limits::raise_open_files();
        // Who waits for the end of the caller's output must not wait for this process.
        let _ = descriptor::close_all_but(&[self.socket.as_fd(), self.handover.as_fd()]);
        let Some((root, attached)) = self.take_order() else { return };
        let answer = match &attached {
            Ok(attached) => write_attached(*attached),
            Err(refusal) => write_refusal(refusal),
        };
        let _ = unix::send(&self.socket, &answer, &[]);
        self.wait_for_end();
        self.take_over(root);
        self.pass();
    }

    /// Attaches, as the other end asks; `None`: it has gone.
    fn take_order(&mut self) -> Option<(Pid, Result<AttachOutcome, AttachRefusal>)> {
        let mut buffer = [0; ORDER_BYTES];
        let received = unix::receive(&self.socket, &mut buffer).ok()?;
        let order = AttachRequest::read(&buffer[..received.bytes])?;
        Some((order.root, self.attach(order)))
    }

    fn attach(&mut self, order: AttachRequest) -> Result<AttachOutcome, AttachRefusal> {
        let tree = ProcessTree::of(order.root);
        for pid in tree.walk() {
            candidate::check(pid)?;
        }
        let began_ns = clock::monotonic_ns();
        let mut stopped = Vec::new();
        let attached = stop_all(&tree, &mut stopped).and_then(|()| self.install(order, &stopped));
        stopped.iter().for_each(PtraceStoppedProcess::release);
        stopped.iter().for_each(PtraceStoppedProcess::release_restless);
        let stopped_ns = clock::monotonic_ns().saturating_sub(began_ns);
        attached.map(|processes| AttachOutcome { processes, stopped_ns })
    }

    fn install(
        &mut self,
        order: AttachRequest,
        stopped: &[PtraceStoppedProcess],
    ) -> Result<u64, AttachRefusal> {
        if stopped.len() > LISTENERS_MAX {
            let why =
                format!("it has {} processes below, more than {LISTENERS_MAX}", stopped.len());
            return Err(AttachRefusal::of(order.root, why, ""));
        }
        let filter = filter_for(order.filter, order.confines);
        let mut prepared = Vec::new();
        for process in stopped {
            match SeccompInstallation::of(process, &filter) {
                Ok(one) => prepared.push((process.pid, one)),
                Err(refusal) => {
                    prepared.into_iter().for_each(|(_, one)| one.undo());
                    return Err(refusal);
                }
            }
        }
        let mut prepared = prepared.into_iter();
        while let Some((pid, one)) = prepared.next() {
            if let Err(error) = one.install().and_then(|it| self.keep(it)) {
                prepared.for_each(|(_, one)| one.undo());
                return Err(self.half(pid, &error));
            }
        }
        Ok(stopped.len() as u64)
    }

    /// Hands a listener over, and keeps a copy.
    fn keep(&mut self, installed: Installed) -> io::Result<()> {
        let Installed { listener, first_id } = installed;
        let number = self.listeners.len();
        self.ledger.set_last(number, first_id);
        let kept = self.listeners.entry(number).or_insert(listener);
        let message = SeccompListenerHandover { errno: 0, program: String::new() }.write();
        unix::send(&self.handover, &message, &[kept.as_fd()]).map(drop)
    }

    /// What should not happen: some processes have a filter, and one has none.
    fn half(&self, pid: Pid, error: &io::Error) -> AttachRefusal {
        let mut why = format!("it cannot install a filter: {error}");
        if !self.listeners.is_empty() {
            why.push_str(&format!(
                "; {} processes have one already, by which nothing is limited now",
                self.listeners.len()
            ));
        }
        let since = "kernels before Linux 5.19 cannot do this";
        AttachRefusal::of(pid, why, if error.raw_os_error() == Some(EINVAL) { since } else { "" })
    }

    /// Until the process that limits the programs has gone, or they have.
    fn wait_for_end(&mut self) {
        loop {
            let mut all = vec![poll::PollFd::new(&self.socket, poll::PollFlags::IN)];
            // Without a flag the end of all processes under a filter is reported, and nothing else.
            let listeners = self.listeners.values();
            all.extend(listeners.map(|it| poll::PollFd::new(it, poll::PollFlags::empty())));
            // Interrupted: it looks again.
            let _ = poll::wait(&mut all, None);
            let ready: Vec<bool> = all.iter().map(|it| !it.revents().is_empty()).collect();
            if ready[0] {
                return;
            }
            let mut ended = ready[1..].iter().copied();
            self.listeners.retain(|_, _| !ended.next().unwrap_or(false));
        }
    }

    /// Lets calls go on that the other process has taken, and streams have the rate of the network.
    fn take_over(&self, root: Pid) {
        for (number, id) in self.ledger.calls() {
            if let Some(listener) = self.listeners.get(&number) {
                let _ = listener.resume(id);
            }
        }
        for (number, listener) in &self.listeners {
            let last = self.ledger.last(*number);
            // One that has not been taken yet is refused, and shown in a moment.
            (1..=UNNOTED_MAX).for_each(|next| drop(listener.resume(last.wrapping_add(next))));
        }
        let paced = self.ledger.paced();
        if !paced.is_empty() {
            let all = ProcessTree::of(root).walk();
            all.into_iter().for_each(|pid| unpace(pid, &paced));
        }
    }

    /// Lets all calls pass until the last process has ended.
    fn pass(self) {
        drop(self.socket);
        drop(self.handover);
        // Where nothing can be waited for, they fail.
        let _ = windtunnel_notification::serve(UnlimitedCalls, self.listeners.into_values());
    }
}

/// Lets all calls go on.
struct UnlimitedCalls;

impl CallWatcher for UnlimitedCalls {
    fn look(&mut self, _call: &WaitingCall) -> io::Result<CallAnswer> {
        Ok(CallAnswer::Continue)
    }
}

/// Stops a tree: what is made meanwhile, too.
fn stop_all(
    tree: &ProcessTree,
    stopped: &mut Vec<PtraceStoppedProcess>,
) -> Result<(), AttachRefusal> {
    let late_ns = clock::monotonic_ns().saturating_add(STOP_NS);
    loop {
        let is_known = |pid: &Pid| stopped.iter().any(|it: &PtraceStoppedProcess| it.pid == *pid);
        let all = tree.walk();
        let new: Vec<Pid> = all.into_iter().filter(|pid| !is_known(pid)).collect();
        let before = stopped.len();
        for pid in new {
            let (process, outcome) = PtraceStoppedProcess::of(pid, late_ns);
            stopped.extend(process);
            outcome?;
        }
        if stopped.len() == before {
            return Ok(());
        }
    }
}

/// Streams of a process that are paced at a rate that is noted have none any more.
fn unpace(pid: Pid, paced: &[(u64, u64)]) {
    let Ok(pidfd) = process::open_pidfd(pid) else { return };
    let folder = std::fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()));
    let names = folder.into_iter().flatten().flatten();
    for number in names.filter_map(|it| it.file_name().to_str()?.parse().ok()) {
        let Ok(copy) = process::pidfd_getfd(&pidfd, number) else { continue };
        let (cookie, now) = (socket::cookie(&copy), socket::most_paced(&copy));
        if let (Ok(cookie), Ok(now)) = (cookie, now)
            && paced.contains(&(cookie, now))
        {
            // A socket that has been closed needs none.
            let _ = socket::set_most_paced(&copy, u64::MAX);
        }
    }
}

impl AttachRequest {
    fn write(&self) -> [u8; ORDER_BYTES] {
        let mut bytes = [0; ORDER_BYTES];
        bytes[..4].copy_from_slice(&self.root.as_raw_nonzero().get().to_le_bytes());
        bytes[4] = u8::from(self.filter == SeccompFilterKind::Bytes);
        bytes[5] = u8::from(self.confines);
        bytes
    }

    fn read(bytes: &[u8]) -> Option<AttachRequest> {
        let [a, b, c, d, all, confines] = bytes else { return None };
        let root = Pid::from_raw(i32::from_le_bytes([*a, *b, *c, *d]))?;
        let filter =
            if *all == 0 { SeccompFilterKind::Destinations } else { SeccompFilterKind::Bytes };
        Some(AttachRequest { root, filter, confines: *confines != 0 })
    }
}

fn write_attached(attached: AttachOutcome) -> Vec<u8> {
    let [processes, stopped] = [attached.processes, attached.stopped_ns].map(u64::to_le_bytes);
    [&[GOOD], &processes[..], &stopped[..]].concat()
}

/// The number of the process, and its name, the cause and the hint with a zero between.
fn write_refusal(refusal: &AttachRefusal) -> Vec<u8> {
    let AttachRefusal { process, name, why, hint } = refusal;
    let text = [name, why, hint].map(|text| text.replace('\0', "")).join("\0");
    let mut bytes = [&[REFUSED], &process.to_le_bytes()[..], text.as_bytes()].concat();
    bytes.truncate(ANSWER_BYTES_MAX);
    bytes
}

fn read_answer(bytes: &[u8]) -> Option<Result<AttachOutcome, AttachRefusal>> {
    let (kind, rest) = bytes.split_first()?;
    if *kind == GOOD {
        let (processes, stopped) = rest.split_first_chunk()?;
        let stopped_ns = u64::from_le_bytes(stopped.try_into().ok()?);
        return Some(Ok(AttachOutcome { processes: u64::from_le_bytes(*processes), stopped_ns }));
    }
    let (process, text) = rest.split_first_chunk()?;
    let text = String::from_utf8_lossy(text).into_owned();
    let mut parts = text.splitn(3, '\0').map(str::to_owned);
    let process = i32::from_le_bytes(*process);
    let mut part = || parts.next().unwrap_or_default();
    Some(Err(AttachRefusal { process, name: part(), why: part(), hint: part() }))
}

const ORDER_BYTES: usize = 6;
const ANSWER_BYTES_MAX: usize = 4096;
const GOOD: u8 = 1;
const REFUSED: u8 = 0;
/// How long all threads of a tree may take to stop.
const STOP_NS: u64 = 3_000_000_000;
/// How many calls after the last that is noted may have been taken: one, among those whose threads
/// have ended before.
const UNNOTED_MAX: u64 = 256;
/// "Invalid argument", of errno(3).
const EINVAL: i32 = 22;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_answers_are_read_as_they_were_written() {
        let root = Pid::from_raw(4711).unwrap();
        let order = AttachRequest { root, filter: SeccompFilterKind::Destinations, confines: true };
        assert_eq!(AttachRequest::read(&order.write()), Some(order));
        assert_eq!(AttachRequest::read(&[1; 5]), None);
        let attached = AttachOutcome { processes: 3, stopped_ns: 1_000 };
        assert_eq!(read_answer(&write_attached(attached)), Some(Ok(attached)));
        let refusal = AttachRefusal {
            process: 7,
            name: "a b".to_owned(),
            why: "it is another user's".to_owned(),
            hint: String::new(),
        };
        assert_eq!(read_answer(&write_refusal(&refusal)), Some(Err(refusal)));
        assert_eq!(read_answer(&[]), None);
    }
}
