//! The supervised programs of a node: each call that is shown becomes what it says of sockets.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use windtunnel_model::NodeId;
use windtunnel_model::record::kind::{Call, Kind};
use windtunnel_model::record::{EventRecord, flag, words};
use windtunnel_notification::call::InterceptedSystemCall;
use windtunnel_notification::position::SocketStreamPosition;
use windtunnel_notification::process::{SupervisedProcess, SupervisedProcessTable, read_address};
use windtunnel_notification::watcher::WaitingCall;
use windtunnel_sys::socket::{self, SocketProtocol};

use super::FLOW_FIRST;
use super::socket::{PendingSocketCall, SupervisedSocket, definitions, saturate};
use crate::shelf::SourceRecordBuffer;

/// A node.
#[derive(Debug)]
pub(super) struct SupervisedNode {
    id: NodeId,
    shelf: SourceRecordBuffer,
    processes: SupervisedProcessTable,
    /// By cookie.
    sockets: BTreeMap<u64, SupervisedSocket>,
    /// Calls of accept(2) that find a connection, by the port: their times. The process that uses
    /// the connection may be another.
    accepts: Vec<(u16, u64)>,
    flow_next: u32,
}

/// A thread whose call waits.
#[derive(Clone, Copy)]
struct CallingThread {
    thread: i32,
    pid: i32,
    time: u64,
    filter: u64,
}

/// A call on a socket.
struct SupervisedSocketCall {
    cookie: u64,
    /// The process's own, until the call goes on.
    copy: OwnedFd,
    position: SocketStreamPosition,
}

impl SupervisedNode {
    pub(super) fn new(id: NodeId, shelf: SourceRecordBuffer) -> SupervisedNode {
        let (processes, sockets) = (SupervisedProcessTable::default(), BTreeMap::new());
        SupervisedNode { id, shelf, processes, sockets, accepts: Vec::new(), flow_next: FLOW_FIRST }
    }

    pub(super) fn id(&self) -> NodeId {
        self.id
    }

    /// Looks at a call that waits. A program of which calls will not be seen is returned, with why.
    pub(super) fn look(&mut self, waiting: &WaitingCall) -> io::Result<Option<(String, String)>> {
        let WaitingCall { listener: filter, shown, since_ns: time, .. } = *waiting;
        let (pid, is_new, process) = self.processes.of_thread(shown.thread, time)?;
        if is_new {
            let (kind, flow, args) = (Kind::Process as u8, process.number, words(process.name));
            self.shelf.put(&EventRecord { time, kind, flags: 0, extra: 0, flow, args });
        }
        let caller = CallingThread { thread: shown.thread, pid, time, filter };
        match InterceptedSystemCall::of(&shown) {
            InterceptedSystemCall::Transfer { call, descriptor, sends, asked } => {
                self.transfer(caller, descriptor, call, sends, asked)?;
            }
            InterceptedSystemCall::Between { from, to: (to_call, to), asked } => {
                if let Some((from_call, from)) = from {
                    self.transfer(caller, from, from_call, false, asked)?;
                }
                self.transfer(caller, to, to_call, true, asked)?;
            }
            InterceptedSystemCall::Connect { descriptor, address, length } => {
                let target = read_address(caller.thread, address, length);
                self.connect(caller, descriptor, target)?;
            }
            InterceptedSystemCall::Accept { descriptor } => self.accept(caller, descriptor)?,
            InterceptedSystemCall::Shutdown { descriptor, how } => {
                self.mark(caller, descriptor, Call::Shutdown, how)?;
            }
            InterceptedSystemCall::Close { first, last } => self.close(caller, first, last)?,
            // It will have another name.
            InterceptedSystemCall::Exec => self.processes.forget(pid),
            InterceptedSystemCall::Exit => {
                self.close(caller, 0, i32::MAX)?;
                self.processes.forget(pid);
            }
            InterceptedSystemCall::Ring => {
                let program = self.name(pid);
                return Ok(Some((program, "it uses io_uring".into())));
            }
            InterceptedSystemCall::Other => {}
        }
        Ok(None)
    }

    /// All processes under a filter have ended. What the last calls of those that were killed have
    /// done is not known. Calls of processes under the node's other filters go on.
    pub(super) fn end(&mut self, filter: u64) {
        for socket in self.sockets.values_mut() {
            let ended =
                |call: &mut Option<PendingSocketCall>| call.take_if(|it| it.filter == filter);
            for pending in socket.pending.iter_mut().filter_map(ended) {
                self.shelf.put(&pending.with_result(socket.flow, 0));
            }
        }
    }

    /// Bytes go through a descriptor, if that is a socket.
    fn transfer(
        &mut self,
        caller: CallingThread,
        descriptor: i32,
        call: Call,
        sends: bool,
        asked: u64,
    ) -> io::Result<()> {
        let Some(used) = self.used(caller, descriptor)? else { return Ok(()) };
        let Some(socket) = self.sockets.get_mut(&used.cookie) else { return Ok(()) };
        if !socket.is_defined {
            // It is not connected: the call fails.
            return Ok(());
        }
        let direction = usize::from(!sends);
        let mut flags = if sends { 0 } else { flag::REVERSE };
        if used.position.is_nonblocking {
            flags |= flag::NONBLOCKING;
        }
        let offset = used.position.at[direction];
        let CallingThread { thread, time, filter, .. } = caller;
        let mut pending = PendingSocketCall { call, time, thread, filter, asked, offset, flags };
        if socket.protocol == SocketProtocol::Udp {
            let record = datagram(socket, &mut pending, &used);
            self.shelf.put(&record);
            return Ok(());
        }
        // Another thread's call in this direction may go on still, unless it cannot wait.
        if let Some(before) = socket.pending[direction].take() {
            let shared = before.thread != caller.thread && !used.position.is_nonblocking;
            let shared = if shared { flag::SHARED } else { 0 };
            pending.flags |= shared;
            let before = PendingSocketCall { flags: before.flags | shared, ..before };
            self.shelf.put(&before.record(socket.flow, &used.position));
        }
        socket.pending[direction] = Some(pending);
        Ok(())
    }

    fn connect(
        &mut self,
        caller: CallingThread,
        descriptor: i32,
        target: Option<SocketAddr>,
    ) -> io::Result<()> {
        let Some(used) = self.used(caller, descriptor)? else { return Ok(()) };
        let Some(socket) = self.sockets.get_mut(&used.cookie) else { return Ok(()) };
        // Asked again while it goes on, by a program that looks how far it is.
        if socket.connecting.is_none() && !socket.is_defined {
            let flags = if used.position.is_nonblocking { flag::NONBLOCKING } else { 0 };
            let CallingThread { thread, time, filter, .. } = caller;
            let call = Call::Connect;
            let pending =
                PendingSocketCall { call, time, thread, filter, asked: 0, offset: 0, flags };
            socket.connecting = Some((pending, target));
        }
        Ok(())
    }

    /// A socket that listens: a connection that waits there will be taken.
    fn accept(&mut self, caller: CallingThread, descriptor: i32) -> io::Result<()> {
        let Some(copy) = self.copy(caller, descriptor)? else { return Ok(()) };
        let waits = socket::accept_queue(&copy)? > 0 || !socket::is_nonblocking(&copy)?;
        let port = socket::local(&copy).map_or(0, |own| own.port());
        let time = caller.time;
        if waits && self.accepts.len() < ACCEPTS_MAX {
            self.accepts.push((port, time));
        }
        Ok(())
    }

    /// A call that moves no bytes.
    fn mark(
        &mut self,
        caller: CallingThread,
        descriptor: i32,
        call: Call,
        asked: u32,
    ) -> io::Result<()> {
        let Some(used) = self.used(caller, descriptor)? else { return Ok(()) };
        let Some(socket) = self.sockets.get_mut(&used.cookie) else { return Ok(()) };
        if !socket.is_defined {
            return Ok(());
        }
        for pending in socket.pending.iter_mut().filter_map(Option::take) {
            self.shelf.put(&pending.record(socket.flow, &used.position));
        }
        let CallingThread { thread, time, filter, .. } = caller;
        let (asked, offset) = (asked.into(), used.position.at[0]);
        let pending = PendingSocketCall { call, time, thread, filter, asked, offset, flags: 0 };
        self.shelf.put(&pending.with_result(socket.flow, 0));
        Ok(())
    }

    /// Descriptors from one to another are closed.
    fn close(&mut self, caller: CallingThread, first: i32, last: i32) -> io::Result<()> {
        let mut sockets = Vec::new();
        self.process(caller.pid, |process| {
            sockets = process.sockets(first, last);
        });
        for (descriptor, cookie) in sockets {
            self.mark(caller, descriptor, Call::Close, 0)?;
            self.process(caller.pid, |process| {
                process.descriptors.remove(&descriptor);
            });
            if !self.processes.refer_to(cookie) {
                self.sockets.remove(&cookie);
            }
        }
        self.process(caller.pid, |process| process.forget_descriptors(first, last));
        Ok(())
    }

    /// The socket of a descriptor, with its flow defined as soon as its ends are known; `None`: not
    /// a socket of TCP or UDP, or one that listens.
    fn used(
        &mut self,
        caller: CallingThread,
        descriptor: i32,
    ) -> io::Result<Option<SupervisedSocketCall>> {
        let Some(copy) = self.copy(caller, descriptor)? else { return Ok(None) };
        let cookie = socket::cookie(&copy)?;
        self.process(caller.pid, |process| {
            process.descriptors.insert(descriptor, Some(cookie));
        });
        if !self.sockets.contains_key(&cookie) {
            let Some(protocol) = socket::protocol(&copy)? else { return Ok(None) };
            let flow = self.flow_next;
            self.flow_next = self.flow_next.checked_add(1).unwrap_or(FLOW_FIRST);
            let (connecting, pending, datagrams) = (None, [None; 2], [0; 2]);
            let (is_defined, state) = (false, 0);
            let made = SupervisedSocket {
                protocol,
                flow,
                is_defined,
                connecting,
                pending,
                datagrams,
                state,
            };
            self.sockets.insert(cookie, made);
        }
        let socket = self.sockets.get_mut(&cookie).ok_or(io::ErrorKind::NotFound)?;
        let position = match socket.protocol {
            SocketProtocol::Tcp => SocketStreamPosition::of(&copy)?.after(&mut socket.state),
            SocketProtocol::Udp => SocketStreamPosition {
                at: socket.datagrams,
                fin_came: false,
                state: 0,
                is_nonblocking: socket::is_nonblocking(&copy)?,
            },
        };
        let used = SupervisedSocketCall { cookie, copy, position };
        self.define(caller, descriptor, &used);
        // What the same thread did before is done.
        if let Some(socket) = self.sockets.get_mut(&cookie) {
            for before in &mut socket.pending {
                if let Some(done) = before.take_if(|before| before.thread == caller.thread) {
                    self.shelf.put(&done.record(socket.flow, &used.position));
                }
            }
        }
        Ok(Some(used))
    }

    /// Defines the flow of a socket whose ends are known now, and records how it came to be.
    fn define(&mut self, caller: CallingThread, descriptor: i32, used: &SupervisedSocketCall) {
        let Some(socket) = self.sockets.get_mut(&used.cookie) else { return };
        let is_tcp = socket.protocol == SocketProtocol::Tcp;
        let mut accepted = None;
        let own = socket::local(&used.copy).map_or(0, |own| own.port());
        if socket.is_defined {
            return;
        }
        let connecting = socket.connecting.is_some();
        if is_tcp && !used.position.is_connected() && !connecting {
            return;
        }
        let (_, _, process) = match self.processes.of_thread(caller.thread, caller.time) {
            Ok(found) => found,
            Err(_) => return,
        };
        let number = process.number;
        if is_tcp && !connecting {
            let at = self.accepts.iter().position(|(port, _)| *port == own);
            accepted = at.map(|at| self.accepts.remove(at).1);
        }
        let records = definitions(socket, &used.copy, caller.time, used.cookie, number, descriptor);
        let Some(records) = records else { return };
        socket.is_defined = true;
        records.iter().for_each(|record| self.shelf.put(record));
        if let Some((pending, _)) = socket.connecting.take() {
            let connected = !is_tcp || used.position.is_connected();
            let result = if connected { 0 } else { EINPROGRESS.wrapping_neg() };
            self.shelf.put(&pending.with_result(socket.flow, result));
        }
        if let Some(time) = accepted {
            let CallingThread { thread, filter, .. } = caller;
            let call = Call::Accept;
            let pending =
                PendingSocketCall { call, time, thread, filter, asked: 0, offset: 0, flags: 0 };
            self.shelf.put(&pending.with_result(socket.flow, 0));
        }
    }

    /// A copy of a descriptor that may be a socket of TCP or UDP.
    fn copy(&mut self, caller: CallingThread, descriptor: i32) -> io::Result<Option<OwnedFd>> {
        let (_, _, process) = self.processes.of_thread(caller.thread, caller.time)?;
        if process.descriptors.get(&descriptor) == Some(&None) {
            return Ok(None);
        }
        let Some(copy) = process.copy(descriptor)? else { return Ok(None) };
        if process.descriptors.contains_key(&descriptor) {
            return Ok(Some(copy));
        }
        if socket::protocol(&copy)?.is_none() {
            process.descriptors.insert(descriptor, None);
            return Ok(None);
        }
        Ok(Some(copy))
    }

    fn process(&mut self, pid: i32, change: impl FnOnce(&mut SupervisedProcess)) {
        if let Some(process) = self.processes.known(pid) {
            change(process);
        }
    }

    fn name(&mut self, pid: i32) -> String {
        let name = self.processes.known(pid).map_or([0; 16], |process| process.name);
        String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
    }
}

/// The record of a call on a UDP socket. The kernel counts no datagrams: those that a call can move
/// are taken to be moved, and the flag says that.
fn datagram(
    socket: &mut SupervisedSocket,
    pending: &mut PendingSocketCall,
    used: &SupervisedSocketCall,
) -> EventRecord {
    let direction = usize::from(pending.flags & flag::REVERSE != 0);
    pending.offset = socket.datagrams[direction];
    pending.flags |= flag::OFFSET_UNKNOWN;
    let unread = if direction == 1 { socket::unread(&used.copy).unwrap_or(0) } else { 0 };
    let (moves, result) = match direction {
        0 => (true, saturate(pending.asked)),
        _ if unread > 0 => (true, saturate(unread.min(pending.asked))),
        _ if used.position.is_nonblocking => (false, EAGAIN.wrapping_neg()),
        // It waits, for as many bytes as will come.
        _ => (true, 0),
    };
    socket.datagrams[direction] += u64::from(moves);
    pending.with_result(socket.flow, result)
}

/// Connections of a node that were taken and not used yet; of more the begin is not recorded.
const ACCEPTS_MAX: usize = 10_000;
/// "Try again", of errno(3).
const EAGAIN: u32 = 11;
/// "Operation in progress": what is recorded of an attempt that had not succeeded when the socket
/// was seen last.
const EINPROGRESS: u32 = 115;
