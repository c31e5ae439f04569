//! Calls that fail with `EAGAIN`, and that are tried again.

use std::io;
use std::time::Duration;

use windtunnel_budget::pacing::TransferDirection;
use windtunnel_notification::tcp_info::state::CLOSED;
use windtunnel_notification::watcher::CallAnswer;
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::socket;

use super::super::edges;
use super::super::retries::{Retry, RetryAction, RetryTiming, StreamDirection};
use super::super::sockets::CallAttribution;
use super::super::transfer::Transfer;
use super::super::waits::{BandwidthClaim, EAGAIN};
use super::{CallInspector, CallSocket};

impl CallInspector {
    /// Whether a call on a stream failed and is tried again: the claim of that is there. None is kept for
    /// one that may block now, nor where the connection has ended.
    pub(super) fn try_again(
        &mut self,
        used: CallAttribution,
        state: u8,
        now_ns: u64,
    ) -> Option<CallAnswer> {
        let of = StreamDirection { cookie: used.cookie, direction: used.direction };
        match self.retries.ask(of, now_ns) {
            RetryTiming::First => None,
            RetryTiming::Early if used.may_block || state == CLOSED => {
                self.give_up(of, now_ns);
                None
            }
            RetryTiming::Early => Some(CallAnswer::Fail(EAGAIN)),
            RetryTiming::InTime(retry) => {
                let waited_ns = now_ns.saturating_sub(retry.since_ns);
                self.region.count_wait(used.direction, waited_ns);
                self.let_go(&BandwidthClaim { used, ..retry.claim }, now_ns);
                Some(CallAnswer::Continue)
            }
        }
    }

    /// What a call claimed that is not tried again is given back.
    pub(super) fn give_up(&mut self, of: StreamDirection, now_ns: u64) {
        if let Some(retry) = self.retries.take(of) {
            self.give_back(&retry.claim, now_ns);
        }
    }

    /// Whether a call that would wait fails instead: one that must not block, where its program can be
    /// notified when it is time.
    pub(super) fn put_off(
        &mut self,
        claim: &BandwidthClaim,
        pid: i32,
        descriptor: i32,
        now_ns: u64,
    ) -> bool {
        let CallAttribution { cookie, direction, is_tcp, may_block, .. } = claim.used;
        let waits_long = claim.at_ns.saturating_sub(now_ns) > SHORT_NS;
        let is_put_off = is_tcp
            && !may_block
            && waits_long
            && self.edges.are_watched(pid, descriptor, cookie, direction, now_ns);
        if is_put_off {
            self.retries.add(Retry::new(*claim, pid, descriptor, now_ns));
        }
        is_put_off
    }

    /// Programs are notified for which calls it is time.
    pub(in crate::limit::supervision) fn announce(&mut self, now_ns: u64) {
        while let Some(due) = self.retries.take_due(now_ns) {
            match due {
                RetryAction::Announce(Retry { claim, pid, descriptor, .. }) => {
                    let CallAttribution { cookie, direction, .. } = claim.used;
                    let copy = self.copy(pid, descriptor).ok().flatten();
                    let copy = copy.filter(|it| socket::cookie(it).ok() == Some(cookie));
                    // Of one that is closed meanwhile the claim is given back a second later.
                    let _ = copy.map(|copy| edges::make(copy, direction));
                }
                RetryAction::GiveUp(retry) => self.give_back(&retry.claim, now_ns),
            }
        }
    }
}

/// Whether a call that must not block fails with `EAGAIN` in the kernel now, as there is nothing to
/// receive. If it went on, it could move what comes meanwhile, of which nothing is claimed.
pub(super) fn finds_nothing(touched: &CallSocket, transfer: Transfer) -> io::Result<bool> {
    let is_asked = transfer.direction == TransferDirection::Receive
        && !transfer.only_looks
        && !transfer.is_urgent
        && transfer.asked > 0;
    if !is_asked || touched.used.may_block || touched.unread > 0 {
        return Ok(false);
    }
    // An end or an error of the connection is readable.
    let looked = &mut [PollFd::new(&touched.copy, PollFlags::IN | PollFlags::PRI)];
    poll::wait(looked, Some(Duration::ZERO))?;
    Ok(looked[0].revents().is_empty())
}

/// A call that must not block waits for so long.
const SHORT_NS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::OwnedFd;

    use windtunnel_sys::seccomp::Notification;
    use windtunnel_sys::seccomp::filter::number;

    use super::*;

    /// A socket that a call asks for bytes, after it has waited for what is to come.
    fn asked(socket: impl Into<OwnedFd>, waits: bool) -> CallSocket {
        let copy = socket.into();
        if waits {
            poll::wait(&mut [PollFd::new(&copy, PollFlags::IN)], None).unwrap();
        }
        let kind = socket::kind(&copy).unwrap().unwrap();
        let used = CallAttribution {
            cookie: 1,
            key: 0,
            direction: TransferDirection::Receive,
            thread: 1,
            is_tcp: kind.is_stream,
            may_block: false,
        };
        let unread = socket::unread(&copy).unwrap();
        CallSocket { copy, kind, used, unread }
    }

    fn receive(asked: u64, flags: u64) -> Transfer {
        let arguments = [7, 0, asked, flags, 0, 0];
        let shown = Notification { id: 1, thread: 0, call: number::RECVFROM, arguments };
        let what = windtunnel_notification::call::InterceptedSystemCall::of(&shown);
        Transfer::all_of(&shown, what)[0]
    }

    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    fn finds_nothing_of(touched: &CallSocket) -> bool {
        finds_nothing(touched, receive(100, 0)).unwrap()
    }

    #[test]
    fn a_call_that_must_not_block_finds_nothing_until_bytes_or_an_end_come() {
        let (near, mut far) = connection();
        let empty = asked(near, false);
        assert!(finds_nothing_of(&empty));
        for (bytes, flags) in [(0, 0), (100, 0x1), (100, 0x2)] {
            assert!(!finds_nothing(&empty, receive(bytes, flags)).unwrap(), "{bytes} {flags}");
        }
        far.write_all(b"x").unwrap();
        assert!(!finds_nothing_of(&asked(empty.copy, true)));

        let (near, far) = connection();
        drop(far);
        assert!(!finds_nothing_of(&asked(near, true)));

        let [near, far] = ["127.0.0.1:0"; 2].map(|any| UdpSocket::bind(any).unwrap());
        near.connect(far.local_addr().unwrap()).unwrap();
        assert!(finds_nothing_of(&asked(near.try_clone().unwrap(), false)));
        // A datagram of no bytes is one.
        far.send_to(b"", near.local_addr().unwrap()).unwrap();
        assert!(!finds_nothing_of(&asked(near, true)));
    }
}
