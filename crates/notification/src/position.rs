//! How far the streams of a socket are.

use std::io;
use std::os::fd::OwnedFd;

use windtunnel_sys::socket::{self, TCP_INFO_BYTES};

use crate::tcp_info::{TcpInfo, state};

/// How far a socket is, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketStreamPosition {
    /// Bytes written and read by programs.
    pub at: [u64; 2],
    /// Whether the other side has ended its direction.
    pub fin_came: bool,
    /// Of TCP: [`state`].
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
        let position = |info: &TcpInfo, unread: u64| SocketStreamPosition {
            at: [info.written(), info.received().saturating_sub(unread)],
            fin_came: info.fin_came(),
            state: info.state,
            is_nonblocking,
        };
        let mut info = tcp_info(socket)?;
        for _ in 0..TRIES {
            let unread = socket::unread(socket).unwrap_or(0);
            let after = tcp_info(socket)?;
            let settled = after.bytes_received == info.bytes_received && after.state == info.state;
            info = after;
            if settled {
                return Ok(position(&info, unread));
            }
        }
        // Much comes in: read a moment later than the rest, and never more than came.
        Ok(position(&info, socket::unread(socket).unwrap_or(0)))
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

fn tcp_info(socket: &OwnedFd) -> io::Result<TcpInfo> {
    let mut buffer = [0; TCP_INFO_BYTES];
    let bytes = socket::tcp_info(socket, &mut buffer)?;
    TcpInfo::read(&buffer[..bytes]).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

const TRIES: u32 = 4;
