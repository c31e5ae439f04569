//! The state of TCP connections in the nodes' network namespaces, by INET_DIAG.
//!
//! Each node has a netlink socket that its init has opened
//! (`windtunnel_node::NodeSet::diagnosis`). At the start, every interval and at the end the kernel
//! is asked for the connections of each node; what has changed since the last look becomes records.
//! When a socket is destroyed the kernel sends its last state by itself, so that also a connection
//! that came and went between two looks has its sums.
//!
//! A look at a node costs 4 µs and 2 µs for each connection, where the node has a table of
//! connections of its own (`windtunnel_node::Options::diagnosed`), and 200 µs where it has none, on
//! a machine of 16 GiB. Nodes without connections are looked at in turn, an eighth of them each
//! time; and where all looks together would take more than 5 % of a processor, the interval becomes
//! longer, which [`Stats`] states.

mod message;
mod sample;
mod thread;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use windtunnel_model::NodeId;
use windtunnel_model::record::kind::NO_FLOW;
use windtunnel_model::record::{EventRecord, Kind, halves};
use windtunnel_sys::clock;
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::sock_diag::{self, SockDiagReceiveOutcome};

pub use thread::{TcpDiagnosisReport, TcpDiagnosisThread};

use crate::owners::{SocketAttribution, SocketOwnership, UnattributedSocketQueue};
use message::{InetDiagSocket, TcpDiagnosisReply};
use sample::TcpConnectionSampler;

/// The usual interval.
pub const INTERVAL: Duration = Duration::from_millis(10);

/// The state of connections of many nodes.
#[derive(Debug)]
pub struct TcpDiagnosis {
    nodes: Vec<TcpDiagnosisNode>,
    interval_ns: u64,
    due_ns: u64,
    /// Counts looks, to take nodes without connections in turn.
    turn: usize,
    buffer: Vec<u8>,
    stats: Stats,
}

/// What looking has cost, and what it has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Looks at a node.
    pub looks: u64,
    /// Connections found by all looks together.
    pub found: u64,
    pub destroyed: u64,
    /// Destroyed connections whose last state the kernel had no room for.
    pub lost: u64,
    /// Time spent, in nanoseconds.
    pub spent_ns: u64,
    /// The longest time between looks at all nodes that have connections, in nanoseconds.
    pub interval_longest_ns: u64,
}

/// A node, as far as it was seen.
#[derive(Debug)]
struct TcpDiagnosisNode {
    node: NodeId,
    socket: OwnedFd,
    /// By cookie.
    connections: BTreeMap<u64, TcpConnectionSampler>,
    flow_next: u32,
    /// The number of the last request.
    sequence: u32,
    /// What the socket has dropped until now, if it ever had no room.
    drops: u32,
    has_overrun: bool,
    drained_ns: u64,
    owned: Option<OwnedOnly>,
}

/// Has only the sockets of some processes recorded.
#[derive(Debug)]
struct OwnedOnly {
    owners: SocketAttribution,
    /// Connections of the present look of which it is not known whose they are, with their times.
    unknown: Vec<(u64, InetDiagSocket)>,
    destroyed: UnattributedSocketQueue<InetDiagSocket>,
}

/// Takes records with the node that they are of.
type Sink<'a> = &'a mut dyn FnMut(NodeId, &EventRecord);

impl TcpDiagnosis {
    /// Of these nodes, by sockets of [`sock_diag::open`] that were opened inside of them.
    #[must_use]
    pub fn new(nodes: Vec<(NodeId, OwnedFd)>, interval: Duration) -> TcpDiagnosis {
        let watched = |(node, socket)| TcpDiagnosisNode {
            node,
            socket,
            connections: BTreeMap::new(),
            flow_next: 0,
            sequence: 0,
            drops: 0,
            has_overrun: false,
            drained_ns: 0,
            owned: None,
        };
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1);
        TcpDiagnosis {
            nodes: nodes.into_iter().map(watched).collect(),
            interval_ns,
            due_ns: 0,
            turn: 0,
            buffer: vec![0; BUFFER_BYTES],
            stats: Stats::default(),
        }
    }

    /// Of the connections that `owners` own, among those of the network that `socket` is of.
    #[must_use]
    pub fn of_processes(
        node: NodeId,
        socket: OwnedFd,
        owners: SocketAttribution,
        interval: Duration,
    ) -> TcpDiagnosis {
        let mut diagnosis = TcpDiagnosis::new(vec![(node, socket)], interval);
        let (unknown, destroyed) = (Vec::new(), UnattributedSocketQueue::default());
        diagnosis.nodes[0].owned = Some(OwnedOnly { owners, unknown, destroyed });
        diagnosis
    }

    /// When [`TcpDiagnosis::poll`] has something to do next, in nanoseconds of the monotonic clock.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Looks at the nodes, if it is time to. `sink` gets the records, in the order of their times for
    /// each node.
    ///
    /// # Errors
    /// What the kernel says at one of the nodes; the others have been looked at.
    pub fn poll(&mut self, sink: &mut dyn FnMut(NodeId, &EventRecord)) -> io::Result<()> {
        let began_ns = clock::monotonic_ns();
        if began_ns < self.due_ns {
            return Ok(());
        }
        let late_ns = began_ns.saturating_sub(self.due_ns);
        let turn = self.turn % IDLE_SHARE;
        self.turn += 1;
        let first = self.due_ns == 0;
        let looked = self.look(|position| first || position % IDLE_SHARE == turn, sink);
        let spent_ns = clock::monotonic_ns().saturating_sub(began_ns);
        self.stats.spent_ns += spent_ns;
        let affordable_ns = spent_ns.saturating_mul(BUDGET_INVERSE);
        let pause_ns = self.interval_ns.max(affordable_ns);
        if !first {
            let since_ns = self.interval_ns.max(late_ns);
            self.stats.interval_longest_ns = self.stats.interval_longest_ns.max(since_ns);
        }
        self.stats.interval_longest_ns = self.stats.interval_longest_ns.max(pause_ns);
        self.due_ns = began_ns + pause_ns;
        looked
    }

    /// Looks at all nodes at once, as at the end.
    ///
    /// # Errors
    /// As [`TcpDiagnosis::poll`].
    pub fn look_at_all(&mut self, sink: &mut dyn FnMut(NodeId, &EventRecord)) -> io::Result<()> {
        let began_ns = clock::monotonic_ns();
        let looked = self.look(|_| true, sink);
        self.stats.spent_ns += clock::monotonic_ns().saturating_sub(began_ns);
        looked
    }

    /// Has the next looks define all flows anew, and give the whole state of each connection.
    pub fn begin_anew(&mut self) {
        let connections =
            self.nodes.iter_mut().flat_map(|watched| watched.connections.values_mut());
        connections.for_each(TcpConnectionSampler::begin_anew);
    }

    /// What looking has cost until now.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Looks at nodes with connections, and at those without whose position is wanted.
    fn look(&mut self, idle_too: impl Fn(usize) -> bool, sink: Sink<'_>) -> io::Result<()> {
        let destroyed = self.with_messages()?;
        let mut outcome = Ok(());
        let nodes = self.nodes.iter_mut().zip(destroyed).enumerate();
        for (position, (watched, has_messages)) in nodes {
            if !has_messages && watched.connections.is_empty() && !idle_too(position) {
                continue;
            }
            let looked = watched.look(&mut self.buffer, &mut self.stats, sink);
            outcome = outcome.and(looked);
        }
        outcome
    }

    /// To which nodes the kernel has sent something by itself.
    fn with_messages(&self) -> io::Result<Vec<bool>> {
        let descriptor = |watched| PollFd::new(watched, PollFlags::IN);
        let sockets = self.nodes.iter().map(|watched| &watched.socket);
        let mut descriptors: Vec<PollFd<'_>> = sockets.map(descriptor).collect();
        match poll::wait(&mut descriptors, Some(Duration::ZERO)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        Ok(descriptors.iter().map(|descriptor| !descriptor.revents().is_empty()).collect())
    }
}

impl TcpDiagnosisNode {
    fn look(&mut self, buffer: &mut [u8], stats: &mut Stats, sink: Sink<'_>) -> io::Result<()> {
        // What the kernel has sent by itself could fill the room for the answers.
        self.drain(buffer, stats, sink)?;
        self.sequence = self.sequence.wrapping_add(1);
        match sock_diag::send(&self.socket, &message::request(self.sequence)) {
            // The answers to the last request are still coming.
            Err(error) if error.raw_os_error() == Some(ERRNO_EBUSY) => {}
            sent => sent?,
        }
        stats.looks += 1;
        self.drain(buffer, stats, sink)?;
        self.find_owners(stats, sink);
        Ok(())
    }

    /// Takes what is of sockets that have turned out to be of the processes that are asked for.
    fn find_owners(&mut self, stats: &mut Stats, sink: Sink<'_>) {
        let Some(owned) = &mut self.owned else { return };
        let unknown = std::mem::take(&mut owned.unknown);
        let sockets: Vec<_> = unknown.iter().map(|(_, it)| (it.cookie, it.file)).collect();
        owned.owners.find(&sockets);
        let owners = &owned.owners;
        let is_ours = |cookie| owners.owned(cookie, 0) == SocketOwnership::Ours;
        let destroyed = owned.destroyed.take(clock::monotonic_ns(), is_ours);
        let ours: Vec<_> = unknown.into_iter().filter(|(_, it)| is_ours(it.cookie)).collect();
        for (time, described) in ours {
            self.take(TcpDiagnosisReply::Connection(described), time, stats, sink);
        }
        for (time, described) in destroyed {
            self.take(TcpDiagnosisReply::Destroyed(described), time, stats, sink);
        }
    }

    /// Whether an answer is of a socket that is asked for; what is not known yet is kept.
    fn is_wanted(&mut self, answer: &TcpDiagnosisReply, time: u64) -> bool {
        let Some(owned) = &mut self.owned else { return true };
        let (TcpDiagnosisReply::Connection(described) | TcpDiagnosisReply::Destroyed(described)) =
            answer
        else {
            return true;
        };
        if self.connections.contains_key(&described.cookie) {
            return true;
        }
        match (owned.owners.owned(described.cookie, described.file), answer) {
            (SocketOwnership::Ours, _) => return true,
            (SocketOwnership::Foreign, TcpDiagnosisReply::Connection(_)) => {}
            (_, TcpDiagnosisReply::Connection(_)) => owned.unknown.push((time, *described)),
            (..) => owned.destroyed.put(time, described.cookie, *described),
        }
        false
    }

    /// Takes all messages that are there.
    fn drain(&mut self, buffer: &mut [u8], stats: &mut Stats, sink: Sink<'_>) -> io::Result<()> {
        loop {
            match sock_diag::receive(&self.socket, buffer)? {
                SockDiagReceiveOutcome::Nothing => break,
                // Until the socket has been emptied the kernel drops more, and says it only once.
                SockDiagReceiveOutcome::Overrun => self.has_overrun = true,
                SockDiagReceiveOutcome::Bytes(bytes) => {
                    let time = clock::monotonic_ns();
                    message::read(&buffer[..bytes], |answer| {
                        self.take(answer, time, stats, sink);
                    })?;
                }
            }
        }
        if self.has_overrun {
            self.count_lost(stats, sink)?;
        }
        self.drained_ns = clock::monotonic_ns();
        Ok(())
    }

    fn take(&mut self, answer: TcpDiagnosisReply, time: u64, stats: &mut Stats, sink: Sink<'_>) {
        if !self.is_wanted(&answer, time) {
            return;
        }
        let emit = &mut |record: &EventRecord| sink(self.node, record);
        match answer {
            TcpDiagnosisReply::Done => {}
            TcpDiagnosisReply::Connection(described) => {
                stats.found += 1;
                let next = &mut self.flow_next;
                let known = self.connections.entry(described.cookie);
                known.or_insert_with(|| begin(next, &described)).update(&described, time, emit);
            }
            TcpDiagnosisReply::Aborted(cookie) => {
                if let Some(last) = self.connections.remove(&cookie) {
                    stats.destroyed += 1;
                    last.end(time, emit);
                }
            }
            TcpDiagnosisReply::Destroyed(described) => {
                stats.destroyed += 1;
                let known = self.connections.remove(&described.cookie);
                let next = &mut self.flow_next;
                let mut last = known.unwrap_or_else(|| begin(next, &described));
                last.update(&described, time, emit);
                last.end(time, emit);
            }
        }
    }

    /// Records how many messages of destroyed sockets the kernel had no room for.
    fn count_lost(&mut self, stats: &mut Stats, sink: Sink<'_>) -> io::Result<()> {
        let drops = sock_diag::drops(&self.socket)?;
        let count = u64::from(drops.wrapping_sub(self.drops));
        if count == 0 {
            return Ok(());
        }
        self.drops = drops;
        stats.lost += count;
        let ([begin_low, begin_high], [low, high]) = (halves(self.drained_ns), halves(count));
        let args = [begin_low, begin_high, low, high];
        let (time, kind) = (clock::monotonic_ns(), Kind::Lost as u8);
        sink(self.node, &EventRecord { time, kind, flags: 0, extra: 0, flow: NO_FLOW, args });
        Ok(())
    }
}

/// A connection that was not seen before, with a flow of its own.
fn begin(next: &mut u32, described: &InetDiagSocket) -> TcpConnectionSampler {
    let flow = *next;
    *next += 1;
    TcpConnectionSampler::new(flow, described)
}

/// Answers come in datagrams of at most 32 KiB.
const BUFFER_BYTES: usize = 64 << 10;
/// Of nodes without connections, one of so many is looked at each time.
const IDLE_SHARE: usize = 8;
/// Looking may take one part in so many of a processor.
const BUDGET_INVERSE: u64 = 20;
/// "Device or resource busy", of errno(3).
const ERRNO_EBUSY: i32 = 16;
