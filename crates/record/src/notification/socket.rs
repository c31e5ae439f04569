//! A socket whose calls are shown: from how far its streams are at each call follows what the calls
//! before have done.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use windtunnel_model::record::kind::{Call, Kind};
use windtunnel_model::record::{EventRecord, flag};
use windtunnel_sys::socket::{self, SocketProtocol, TCP_INFO_BYTES};

use crate::flow;
use crate::tcp_info::{TcpInfo, state};

/// What is known of a socket.
#[derive(Debug)]
pub(super) struct SupervisedSocket {
    pub(super) protocol: SocketProtocol,
    pub(super) flow: u32,
    pub(super) is_defined: bool,
    /// A call of connect(2) whose outcome was not seen: it, and where to.
    pub(super) connecting: Option<(PendingSocketCall, Option<SocketAddr>)>,
    /// The last call in each direction, of which the result is not known yet: sent, received.
    pub(super) pending: [Option<PendingSocketCall>; 2],
    /// Datagrams sent and received, as far as they were seen.
    pub(super) datagrams: [u64; 2],
    /// The last state of the connection before it was closed.
    pub(super) state: u8,
}

/// A call that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PendingSocketCall {
    pub(super) call: Call,
    pub(super) time: u64,
    pub(super) thread: i32,
    /// Of the process's filter.
    pub(super) filter: u64,
    pub(super) asked: u64,
    pub(super) offset: u64,
    pub(super) flags: u8,
}

/// How far a socket is, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketStreamPosition {
    /// Bytes written and read by programs.
    pub at: [u64; 2],
    /// Whether the other side has ended its direction.
    pub fin_came: bool,
    /// Of TCP: [`crate::tcp_info::state`].
    pub state: u8,
    /// Whether calls on it return at once.
    pub is_nonblocking: bool,
}

impl SocketStreamPosition {
    /// Of a TCP socket. What comes in meanwhile would spoil what was read: then once more.
    ///
    /// # Errors
    /// What getsockopt(2) says.
    pub fn of(socket: &OwnedFd) -> io::Result<SocketStreamPosition> {
        let is_nonblocking = socket::is_nonblocking(socket)?;
        let mut info = tcp_info(socket)?;
        for _ in 0..TRIES {
            let unread = socket::unread(socket).unwrap_or(0);
            let after = tcp_info(socket)?;
            let settled = after.bytes_received == info.bytes_received && after.state == info.state;
            info = after;
            let read = info.received().saturating_sub(unread);
            let at = [info.written(), read];
            if settled {
                return Ok(SocketStreamPosition {
                    at,
                    fin_came: info.fin_came(),
                    state: info.state,
                    is_nonblocking,
                });
            }
        }
        // Much comes in: read a moment later than the rest, and never more than came.
        let read = info.received().saturating_sub(socket::unread(socket).unwrap_or(0));
        let at = [info.written(), read];
        Ok(SocketStreamPosition {
            at,
            fin_came: info.fin_came(),
            state: info.state,
            is_nonblocking,
        })
    }

    /// The position, given the last state. Of a closed connection it does not show whether the
    /// kernel counts a FIN among what it received. It does if one side had ended: a connection that
    /// is open is closed at once only by a reset.
    #[must_use]
    pub fn after(mut self, last: &mut u8) -> SocketStreamPosition {
        use state::{CLOSE_WAIT, CLOSED, CLOSING, FIN_WAIT_1, FIN_WAIT_2, LAST_ACK};
        if self.state != CLOSED {
            *last = self.state;
        } else if matches!(*last, FIN_WAIT_1 | FIN_WAIT_2 | CLOSE_WAIT | CLOSING | LAST_ACK) {
            self.at[1] = self.at[1].saturating_sub(1);
            self.fin_came = true;
        }
        self
    }

    /// Whether it has been connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        !matches!(self.state, state::SYN_SENT | state::LISTEN | state::CLOSED)
    }
}

impl PendingSocketCall {
    /// The record of the call, once it is known where its direction is after it.
    pub(super) fn record(&self, flow: u32, after: &SocketStreamPosition) -> EventRecord {
        let reverse = self.flags & flag::REVERSE != 0;
        let moved = after.at[usize::from(reverse)].saturating_sub(self.offset);
        let nothing = moved == 0 && self.asked > 0 && after.is_nonblocking;
        let result = if nothing && !(reverse && after.fin_came) {
            EAGAIN.wrapping_neg()
        } else {
            saturate(moved)
        };
        self.with_result(flow, result)
    }

    pub(super) fn with_result(&self, flow: u32, result: u32) -> EventRecord {
        EventRecord {
            time: self.time,
            kind: Kind::Call as u8,
            flags: self.flags | flag::END_UNKNOWN,
            extra: self.call as u16,
            flow,
            args: [low(self.offset), saturate(self.asked), result, 0],
        }
    }
}

/// The definition of a socket's flow; `None` while its other end is not known.
pub(super) fn definitions(
    socket: &SupervisedSocket,
    descriptor: &OwnedFd,
    time: u64,
    cookie: u64,
    process: u32,
    number: i32,
) -> Option<[EventRecord; 3]> {
    let own = socket::local(descriptor).ok()?;
    let target = socket.connecting.as_ref().and_then(|(_, address)| *address);
    let (protocol, unconnected) = match socket.protocol {
        SocketProtocol::Tcp => (flow::TCP, None),
        SocketProtocol::Udp => (flow::UDP, Some(SocketAddr::new(own.ip(), 0))),
    };
    let peer = socket::peer(descriptor).ok().flatten().or(target).or(unconnected)?;
    let [from, to] = flow::definitions(time, socket.flow, protocol, own, peer);
    Some([from, to, flow::socket(time, socket.flow, cookie, process, number.cast_unsigned())])
}

fn tcp_info(socket: &OwnedFd) -> io::Result<TcpInfo> {
    let mut buffer = [0; TCP_INFO_BYTES];
    let bytes = socket::tcp_info(socket, &mut buffer)?;
    TcpInfo::read(&buffer[..bytes]).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

#[expect(clippy::cast_possible_truncation, reason = "records hold the low half of offsets")]
fn low(number: u64) -> u32 {
    number as u32
}

/// No result is larger: the kernel moves at most 2 GiB by one call.
pub(super) fn saturate(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX).min(i32::MAX.cast_unsigned())
}

const TRIES: u32 = 4;
/// "Try again", of errno(3).
const EAGAIN: u32 = 11;
