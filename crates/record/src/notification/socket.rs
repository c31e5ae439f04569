//! A socket whose calls are shown: from how far its streams are at each call follows what the calls
//! before have done.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use windtunnel_model::record::kind::{Call, Kind};
use windtunnel_model::record::{EventRecord, flag};
use windtunnel_notification::position::SocketStreamPosition;
use windtunnel_sys::socket::{self, SocketProtocol};

use crate::flow;

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

#[expect(clippy::cast_possible_truncation, reason = "records hold the low half of offsets")]
fn low(number: u64) -> u32 {
    number as u32
}

/// No result is larger: the kernel moves at most 2 GiB by one call.
pub(super) fn saturate(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX).min(i32::MAX.cast_unsigned())
}

/// "Try again", of errno(3).
const EAGAIN: u32 = 11;
