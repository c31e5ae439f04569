//! Whether a call goes on, and when.

mod again;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, SeekFrom};
use windtunnel_budget::pacing::region::{KEY, NO_PEER, peer_key};
use windtunnel_budget::pacing::{
    Escape, PacingBudgetScope, PacingController, PacingMechanism, TransferDirection,
};
use windtunnel_notification::call::InterceptedSystemCall;
use windtunnel_notification::position::SocketStreamPosition;
use windtunnel_notification::process::{SupervisedProcessTable, read_words};
use windtunnel_notification::tcp_info::state::LISTEN;
use windtunnel_notification::watcher::{CallAnswer, WaitingCall};
use windtunnel_sys::clock;
use windtunnel_sys::limited::MappedPacingRegion;
use windtunnel_sys::process::Pid;
use windtunnel_sys::signal;
use windtunnel_sys::socket::{self, InternetSocketKind, SocketProtocol};

use super::edges::EdgeTriggeredSockets;
use super::retries::{Retries, StreamDirection};
use super::sockets::{CallAttribution, SocketLedger};
use super::transfer::{Transfer, TransferSource};
use super::waits::{BandwidthClaim, EAGAIN, SuspendedCall};

/// What is known of the processes under filters, and of their sockets.
#[derive(Debug)]
pub(super) struct CallInspector {
    pub(super) region: MappedPacingRegion,
    processes: SupervisedProcessTable,
    sockets: SocketLedger,
    edges: EdgeTriggeredSockets,
    pub(super) retries: Retries,
    /// Calls that wait, by their listener and their number there.
    pub(super) held: BTreeMap<(u64, u64), SuspendedCall>,
    /// Processes that were counted, each as long as its program runs.
    counted: BTreeSet<i32>,
    /// The processes that were seen at each listener.
    seen: BTreeMap<u64, BTreeSet<i32>>,
    /// Processes whose descriptors may not be looked at.
    hidden: BTreeSet<i32>,
    /// Sockets whose streams the kernel paces since the last call of `take_paced`, with the rate.
    paced: Vec<(u64, u64)>,
}

/// A call that is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallInspection<'a> {
    pub(super) call: &'a WaitingCall,
    pub(super) now_ns: u64,
    /// The socket became readable: it does not wait for a message any more.
    pub(super) is_ready: bool,
    /// Until when it may wait, where it has waited for a message before.
    pub(super) late_ns: Option<u64>,
}

impl CallInspection<'_> {
    /// One that has come.
    pub(super) fn first(call: &WaitingCall) -> CallInspection<'_> {
        CallInspection { call, now_ns: call.since_ns, is_ready: false, late_ns: None }
    }
}

/// A socket of which a call moves bytes.
struct CallSocket {
    copy: OwnedFd,
    kind: InternetSocketKind,
    used: CallAttribution,
    /// What has come and can be received.
    unread: u64,
}

impl CallInspector {
    pub(super) fn new(region: MappedPacingRegion) -> CallInspector {
        CallInspector {
            region,
            edges: EdgeTriggeredSockets::default(),
            retries: Retries::default(),
            held: BTreeMap::new(),
            processes: SupervisedProcessTable::default(),
            sockets: SocketLedger::default(),
            counted: BTreeSet::new(),
            seen: BTreeMap::new(),
            hidden: BTreeSet::new(),
            paced: Vec::new(),
        }
    }

    /// Looks at a call that waits.
    pub(super) fn look(&mut self, look: CallInspection<'_>) -> io::Result<CallAnswer> {
        let shown = &look.call.shown;
        let what = InterceptedSystemCall::of(shown);
        let (pid, ..) = self.processes.of_thread(shown.thread, look.now_ns)?;
        self.seen.entry(look.call.listener).or_default().insert(pid);
        // One that is about to become a program closes descriptors first.
        if !matches!(what, InterceptedSystemCall::Exec | InterceptedSystemCall::Close { .. })
            && self.counted.insert(pid)
        {
            self.region.count_held(PacingMechanism::Notification);
        }
        match what {
            // It will be another program.
            InterceptedSystemCall::Exec => self.forget(pid),
            InterceptedSystemCall::Close { first, last } => self.close(look, pid, first, last),
            InterceptedSystemCall::Exit => {
                self.close(look, pid, 0, i32::MAX);
                self.forget(pid);
            }
            InterceptedSystemCall::Shutdown { descriptor, how } if how != SHUT_RD => {
                self.end_way(pid, descriptor);
            }
            _ => {
                for transfer in Transfer::all_of(shown, what) {
                    if let Some(verdict) = self.transfer(look, pid, transfer)? {
                        return Ok(verdict);
                    }
                }
            }
        }
        Ok(CallAnswer::Continue)
    }

    /// A call moves bytes through a descriptor; `None`: that is not limited.
    fn transfer(
        &mut self,
        look: CallInspection<'_>,
        pid: i32,
        transfer: Transfer,
    ) -> io::Result<Option<CallAnswer>> {
        let Some(touched) = self.touched(look, pid, transfer)? else { return Ok(None) };
        if !look.is_ready {
            self.region.count_shown();
        }
        let CallSocket { copy, kind, used, unread } = &touched;
        let used = *used;
        let mut extra = 0;
        if used.is_tcp {
            let position = SocketStreamPosition::of(copy)?;
            if position.state == LISTEN {
                // The call fails.
                return Ok(Some(CallAnswer::Continue));
            }
            extra = self.sockets.settle(&self.region, look.now_ns, used, position, false);
            if !transfer.only_looks
                && let Some(verdict) = self.try_again(used, position.state, look.now_ns)
            {
                return Ok(Some(verdict));
            }
        }
        let most_ns = |sends| late_ns(copy, used, sends, look.now_ns);
        let is_message = transfer.direction == TransferDirection::Receive && !used.is_tcp;
        let may_wait = used.may_block && !look.is_ready && !transfer.only_looks;
        if is_message && may_wait && *unread == 0 && !has_signal(look.call.shown.thread, ALL) {
            let late_ns = look.late_ns.or_else(|| most_ns(false));
            let suspended = SuspendedCall { since_ns: look.now_ns, late_ns, claim: None };
            return Ok(Some(self.hold(look.call, suspended, Some(touched.copy), look.now_ns)));
        }
        if again::finds_nothing(&touched, transfer)? {
            return Ok(Some(CallAnswer::Fail(EAGAIN)));
        }
        let bytes = self.expected(look, pid, transfer, &touched, *kind);
        let sends = transfer.direction == TransferDirection::Send;
        if sends && used.is_tcp {
            let rate_bps = self.region.rate_bps(TransferDirection::Send);
            let paced = self.sockets.pace(used, copy, rate_bps, bytes);
            self.paced.extend(paced.map(|rate| (used.cookie, rate)));
        }
        let late_ns = if sends { most_ns(true) } else { None };
        let now_ns = look.now_ns;
        Ok(Some(match self.claim(used, bytes, extra, now_ns) {
            None => CallAnswer::Continue,
            Some(claim) if self.put_off(&claim, pid, transfer.descriptor, now_ns) => {
                CallAnswer::Fail(EAGAIN)
            }
            Some(claim) => {
                let suspended = SuspendedCall { since_ns: now_ns, late_ns, claim: Some(claim) };
                self.hold(look.call, suspended, None, now_ns)
            }
        }))
    }

    /// A socket has gone.
    fn forget_socket(&mut self, cookie: u64) {
        self.edges.forget(cookie);
        for direction in TransferDirection::ALL {
            self.give_up(StreamDirection { cookie, direction }, clock::monotonic_ns());
        }
        if self.sockets.forget(cookie) {
            self.paced.push((cookie, 0));
        }
    }

    /// Sockets whose streams the kernel paces by another rate since the last call; 0: it does not.
    pub(super) fn take_paced(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.paced)
    }

    /// Claims bytes. Those that have moved unclaimed before are waited for as well: returned is what
    /// the call has to wait for.
    fn claim(
        &mut self,
        used: CallAttribution,
        bytes: u64,
        extra: u64,
        now_ns: u64,
    ) -> Option<BandwidthClaim> {
        let rate_bps = self.region.rate_bps(used.direction);
        let mut claim = BandwidthClaim { used, bytes, rate_bps, at_ns: now_ns };
        if rate_bps != 0 && (bytes > 0 || extra > 0) {
            let slot = self.region.slot(used.key, now_ns);
            claim.at_ns = slot.budget(used.direction).claim(now_ns, rate_bps, bytes);
        }
        if claim.at_ns > now_ns {
            return Some(claim);
        }
        self.let_go(&claim, now_ns);
        None
    }

    /// The call of a claim goes on.
    pub(super) fn let_go(&mut self, claim: &BandwidthClaim, now_ns: u64) {
        if claim.bytes > 0 {
            self.region.count(claim.used.direction, claim.bytes, now_ns);
        }
        if claim.used.is_tcp {
            self.sockets.let_go(claim.used, claim.bytes);
        }
    }

    /// The call of a claim moves nothing.
    pub(super) fn give_back(&self, claim: &BandwidthClaim, now_ns: u64) {
        let direction = claim.used.direction;
        let rate_bps = self.region.rate_bps(direction);
        if rate_bps != 0 {
            self.region
                .slot(claim.used.key, now_ns)
                .budget(direction)
                .refund(rate_bps, claim.bytes);
        }
    }

    /// The socket of a transfer; `None`: it has none of the Internet's protocols.
    fn touched(
        &mut self,
        look: CallInspection<'_>,
        pid: i32,
        transfer: Transfer,
    ) -> io::Result<Option<CallSocket>> {
        let Some(copy) = self.copy(pid, transfer.descriptor)? else { return Ok(None) };
        let Some(kind) = socket::kind(&copy)? else { return Ok(None) };
        let cookie = socket::cookie(&copy)?;
        let unread = match transfer.direction {
            TransferDirection::Send => 0,
            // It fails on one that listens.
            TransferDirection::Receive => socket::unread(&copy).unwrap_or(0),
        };
        let Some(process) = self.processes.known(pid) else { return Ok(None) };
        process.descriptors.insert(transfer.descriptor, Some(cookie));
        let key = match self.region.per() {
            PacingBudgetScope::Tree => 0,
            PacingBudgetScope::Process => u64::from(process.number),
            PacingBudgetScope::Socket => cookie & KEY,
            PacingBudgetScope::Peer => {
                peer(&copy, transfer, unread).map_or(NO_PEER, |peer| key_of(&peer))
            }
        };
        let may_block = !transfer.returns_at_once && !socket::is_nonblocking(&copy)?;
        let is_tcp = kind.protocol == Some(SocketProtocol::Tcp);
        let (direction, thread) = (transfer.direction, look.call.shown.thread);
        let used = CallAttribution { cookie, key, direction, thread, is_tcp, may_block };
        Ok(Some(CallSocket { copy, kind, used, unread }))
    }

    /// Bytes that a call can move now, as far as it shows.
    fn expected(
        &mut self,
        look: CallInspection<'_>,
        pid: i32,
        transfer: Transfer,
        touched: &CallSocket,
        kind: InternetSocketKind,
    ) -> u64 {
        let memory = || socket::memory(&touched.copy).unwrap_or_default();
        match transfer.direction {
            TransferDirection::Receive if transfer.only_looks => 0,
            // The kernel says how long the first message is, and what memory all of them take.
            TransferDirection::Receive
                if transfer.is_many && !kind.is_stream && touched.unread > 0 =>
            {
                transfer.asked.min(u64::from(memory().received).max(touched.unread))
            }
            TransferDirection::Receive => transfer.asked.min(touched.unread),
            TransferDirection::Send => {
                let left = transfer.source.and_then(|source| self.left(look, pid, source));
                let asked = left.map_or(transfer.asked, |left| transfer.asked.min(left));
                if !kind.is_stream || touched.used.may_block {
                    return asked;
                }
                let memory = memory();
                asked.min(u64::from(memory.send_limit.saturating_sub(memory.send_queued)))
            }
        }
    }

    /// Bytes that a descriptor still has; `None`: it does not say.
    fn left(&mut self, look: CallInspection<'_>, pid: i32, source: TransferSource) -> Option<u64> {
        let copy = self.copy(pid, source.descriptor).ok()??;
        let about = rustix::fs::fstat(&copy).ok()?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return socket::unread(&copy).ok();
        }
        let place = match source.place {
            0 => rustix::fs::seek(&copy, SeekFrom::Current(0)).ok()?,
            place => *read_words(look.call.shown.thread, place, 1).first()?,
        };
        Some(u64::try_from(about.st_size).ok()?.saturating_sub(place))
    }

    /// Descriptors from one to another are closed: what their streams have moved is settled.
    fn close(&mut self, look: CallInspection<'_>, pid: i32, first: i32, last: i32) {
        let Some(process) = self.processes.known(pid) else { return };
        let sockets = process.sockets(first, last);
        process.forget_descriptors(first, last);
        for (descriptor, cookie) in sockets {
            if let Ok(Some(copy)) = self.copy(pid, descriptor)
                && socket::cookie(&copy).ok() == Some(cookie)
                && self.sockets.knows(cookie)
                && let Ok(position) = SocketStreamPosition::of(&copy)
            {
                let (thread, now_ns) = (look.call.shown.thread, look.now_ns);
                self.sockets.settle_last(&self.region, now_ns, cookie, thread, position);
            }
            if !self.processes.refer_to(cookie) {
                self.forget_socket(cookie);
            }
        }
    }

    /// The program ends what it sends on a connection.
    fn end_way(&mut self, pid: i32, descriptor: i32) {
        let process = self.processes.known(pid);
        if let Some(Some(cookie)) = process.and_then(|it| it.descriptors.get(&descriptor)) {
            self.sockets.ends(*cookie);
        }
    }

    /// A copy of a descriptor; `None`: there is none of that number.
    fn copy(&mut self, pid: i32, descriptor: i32) -> io::Result<Option<OwnedFd>> {
        self.processes.known(pid).map_or(Ok(None), |process| process.copy(descriptor))
    }

    /// A call could not be looked at: its process is counted, once.
    pub(super) fn cannot_look(&mut self, thread: i32, now_ns: u64) {
        let pid = self.processes.of_thread(thread, now_ns).map_or(thread, |(pid, ..)| pid);
        if self.hidden.insert(pid) {
            self.region.count_escape(Escape::Hidden);
        }
        // If the number has come to be another process's.
        self.processes.forget(pid);
    }

    /// All processes at a listener have ended.
    pub(super) fn end(&mut self, listener: u64) {
        for pid in self.seen.remove(&listener).unwrap_or_default() {
            self.forget(pid);
        }
    }

    fn forget(&mut self, pid: i32) {
        self.hidden.remove(&pid);
        self.counted.remove(&pid);
        let Some(process) = self.processes.known(pid) else { return };
        let sockets: Vec<u64> = process.descriptors.values().copied().flatten().collect();
        self.processes.forget(pid);
        for cookie in sockets {
            if !self.processes.refer_to(cookie) {
                self.forget_socket(cookie);
            }
        }
    }
}

/// The other end of a message or of the socket.
fn peer(copy: &OwnedFd, transfer: Transfer, unread: u64) -> Option<SocketAddr> {
    let sender = || if unread > 0 { socket::sender_of_next(copy).ok().flatten() } else { None };
    transfer.to.or_else(|| socket::peer(copy).ok().flatten()).or_else(sender)
}

/// The key of an address, as the preload library has it.
fn key_of(peer: &SocketAddr) -> u64 {
    let ip = match peer.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    peer_key(&ip.octets())
}

/// Until when a call may wait.
fn late_ns(copy: &OwnedFd, used: CallAttribution, sends: bool, now_ns: u64) -> Option<u64> {
    let timeout = if used.may_block { socket::timeout(copy, sends).ok()? } else { None };
    let most_ns = timeout.and_then(|most| u64::try_from(most.as_nanos()).ok())?;
    Some(now_ns.saturating_add(most_ns))
}

/// Whether one of these signals waits that the program handles: only a call that has gone on, or
/// ended, is interrupted.
pub(super) fn has_signal(thread: i32, which: u64) -> bool {
    let sets = Pid::from_raw(thread).and_then(|thread| signal::ThreadSignalSets::of(thread).ok());
    sets.is_none_or(|sets| sets.due() & which != 0)
}

/// Signals by which a user ends a program: HUP, INT, QUIT and TERM, as a mask of the kernel's.
pub(super) const ENDING: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 14;
const ALL: u64 = u64::MAX;
const SHUT_RD: u32 = 0;
