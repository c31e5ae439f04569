//! How far streams of TCP are, and what they were let do: the difference is charged, or given back.
//!
//! Positions are absolute, so that whatever a call has done shows in one of the later ones: in the
//! end as many bytes are charged as have moved. What calls have done that a killed process made last
//! is not known, and stays as it was claimed.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use windtunnel_budget::pacing::{PacingController, PacingRegion, TransferDirection, piece};
use windtunnel_notification::position::SocketStreamPosition;
use windtunnel_notification::tcp_info::state::{CLOSED, FIN_WAIT_1};
use windtunnel_sys::socket;

/// Streams, by the kernel's number of the socket.
#[derive(Debug, Default)]
pub(super) struct SocketLedger(BTreeMap<u64, SocketLedgerEntry>);

#[derive(Debug)]
struct SocketLedgerEntry {
    /// The last state of the connection before it was closed.
    state: u8,
    /// The rate at which the kernel has been set to send, in bytes a second; 0: it has not.
    paced: u64,
    ways: [StreamPosition; 2],
}

/// One direction of a stream.
#[derive(Debug, Clone, Copy, Default)]
struct StreamPosition {
    /// Bytes of the stream when it was looked at last.
    at: u64,
    /// Bytes that calls were let move since.
    let_go: u64,
    /// The thread of the last such call where that may block: it may go on still.
    blocked: Option<i32>,
    /// Whose budget the call had.
    key: u64,
}

/// Whose call it is, and what it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallAttribution {
    pub(super) cookie: u64,
    /// Whose budget.
    pub(super) key: u64,
    pub(super) direction: TransferDirection,
    pub(super) thread: i32,
    pub(super) is_tcp: bool,
    pub(super) may_block: bool,
}

impl SocketLedger {
    /// A stream is at a position now: what has moved that was not claimed is charged, and returned;
    /// what was claimed and has not moved is given back. `is_last`: the socket is closed.
    pub(super) fn settle(
        &mut self,
        region: &PacingRegion,
        now_ns: u64,
        used: CallAttribution,
        position: SocketStreamPosition,
        is_last: bool,
    ) -> u64 {
        let known = self.0.entry(used.cookie).or_insert_with(|| SocketLedgerEntry {
            state: position.state,
            paced: 0,
            ways: position.at.map(|at| StreamPosition { at, ..StreamPosition::default() }),
        });
        let position = position.after(&mut known.state);
        let way = &mut known.ways[used.direction as usize];
        if !is_last && way.blocked.is_some_and(|thread| thread != used.thread) {
            return 0;
        }
        let at = position.at[used.direction as usize];
        let (moved, let_go) = (at.saturating_sub(way.at), way.let_go);
        // A connection that was reset has forgotten what it had not sent.
        if position.state == CLOSED && moved < let_go {
            return 0;
        }
        *way = StreamPosition { at, key: used.key, ..StreamPosition::default() };
        let rate_bps = region.rate_bps(used.direction);
        let budget = region.slot(used.key, now_ns).budget(used.direction);
        if moved < let_go {
            region.discount(used.direction, let_go - moved);
            if rate_bps != 0 {
                budget.refund(rate_bps, let_go - moved);
            }
            return 0;
        }
        let extra = moved - let_go;
        if extra > 0 {
            region.count(used.direction, extra, now_ns);
            if rate_bps != 0 {
                budget.charge(now_ns, rate_bps, extra);
            }
        }
        extra
    }

    /// A call goes on that was let move so many bytes.
    pub(super) fn let_go(&mut self, used: CallAttribution, bytes: u64) {
        if let Some(socket) = self.0.get_mut(&used.cookie) {
            let way = &mut socket.ways[used.direction as usize];
            way.let_go = way.let_go.saturating_add(bytes);
            way.blocked = used.may_block.then_some(used.thread);
            way.key = used.key;
        }
    }

    /// A call sends more than a piece, which nothing cuts: the kernel sends the stream at the rate
    /// of the limit (tcp(7) does so without any queue's help), unless the program has set a lower
    /// one. The rate stays, and follows that of the limit at the next such call. Returns the rate in
    /// bytes a second if it is another one now; 0: it has none.
    pub(super) fn pace(
        &mut self,
        used: CallAttribution,
        copy: &OwnedFd,
        rate_bps: u64,
        bytes: u64,
    ) -> Option<u64> {
        let known = self.0.get_mut(&used.cookie)?;
        let is_long = rate_bps != 0 && bytes > piece(rate_bps, false);
        if !is_long && known.paced == 0 {
            return None;
        }
        let now = socket::most_paced(copy).ok()?;
        let is_ours = known.paced != 0 && now == known.paced;
        let wanted = if rate_bps == 0 { u64::MAX } else { (rate_bps / 8).max(PACED_LEAST) };
        // A socket that the kernel does not pace sends as before, and the next call waits for it.
        if now == wanted || !(is_ours || wanted < now) {
            return None;
        }
        socket::set_most_paced(copy, wanted).ok()?;
        known.paced = if rate_bps == 0 { 0 } else { wanted };
        Some(known.paced)
    }

    /// The socket is closed: both directions are settled, each with the budget of its last call.
    pub(super) fn settle_last(
        &mut self,
        region: &PacingRegion,
        now_ns: u64,
        cookie: u64,
        thread: i32,
        position: SocketStreamPosition,
    ) {
        let Some(known) = self.0.get(&cookie) else { return };
        let keys = known.ways.map(|way| way.key);
        for (direction, key) in TransferDirection::ALL.into_iter().zip(keys) {
            let used =
                CallAttribution { cookie, key, direction, thread, is_tcp: true, may_block: false };
            self.settle(region, now_ns, used, position, true);
        }
    }

    /// The program ends what it sends: where the connection is closed after that, both sides have.
    pub(super) fn ends(&mut self, cookie: u64) {
        if let Some(socket) = self.0.get_mut(&cookie) {
            socket.state = FIN_WAIT_1;
        }
    }

    /// Whether something is known of a socket.
    pub(super) fn knows(&self, cookie: u64) -> bool {
        self.0.contains_key(&cookie)
    }

    /// A socket has gone: whether its stream was paced.
    pub(super) fn forget(&mut self, cookie: u64) -> bool {
        self.0.remove(&cookie).is_some_and(|socket| socket.paced != 0)
    }
}

/// Bytes a second by which the kernel paces at the least: when the next packet goes is fixed as one goes,
/// and not even another rate changes that. One of 64 KiB delays it by a second.
const PACED_LEAST: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use windtunnel_budget::pacing::PacingBudgetScope;
    use windtunnel_sys::limited::MappedPacingRegion;

    use super::*;

    /// A limit of its own.
    fn region(rates: [u64; 2]) -> MappedPacingRegion {
        let region = MappedPacingRegion::create_in(&tempfile::tempfile().unwrap()).unwrap();
        region.begin(0, 0, PacingBudgetScope::Tree, rates);
        region
    }

    const USED: CallAttribution = CallAttribution {
        cookie: 7,
        key: 0,
        direction: TransferDirection::Send,
        thread: 1,
        is_tcp: true,
        may_block: false,
    };

    fn at(sent: u64) -> SocketStreamPosition {
        SocketStreamPosition { at: [sent, 0], fin_came: false, state: 1, is_nonblocking: true }
    }

    #[test]
    fn what_has_not_moved_is_given_back_and_what_has_moved_besides_is_charged() {
        let region = region([8_000, 0]);
        let budget = region.slot(0, 0).budget(TransferDirection::Send);
        let mut sockets = SocketLedger::default();
        assert_eq!(sockets.settle(&region, 0, USED, at(50), false), 0);
        let _ = budget.claim(0, 8_000, 1000);
        region.count(TransferDirection::Send, 1000, 0);
        sockets.let_go(USED, 1000);
        assert_eq!(sockets.settle(&region, 0, USED, at(450), false), 0);
        assert_eq!(budget.free_at_ns(), 400_000_000);
        assert_eq!(region.sum(TransferDirection::Send).bytes, 400);
        assert_eq!(sockets.settle(&region, 0, USED, at(650), false), 200);
        assert_eq!(budget.free_at_ns(), 600_000_000);
        assert_eq!(region.sum(TransferDirection::Send).bytes, 600);
    }

    #[test]
    fn nothing_is_given_back_while_the_call_of_another_thread_may_go_on() {
        let region = region([8_000, 0]);
        let budget = region.slot(0, 0).budget(TransferDirection::Send);
        let mut sockets = SocketLedger::default();
        let blocks = CallAttribution { may_block: true, ..USED };
        sockets.settle(&region, 0, blocks, at(0), false);
        let _ = budget.claim(0, 8_000, 1000);
        sockets.let_go(blocks, 1000);
        let other = CallAttribution { thread: 2, ..blocks };
        sockets.settle(&region, 0, other, at(100), false);
        assert_eq!(budget.free_at_ns(), 1_000_000_000);
        sockets.settle(&region, 0, blocks, at(100), false);
        assert_eq!(budget.free_at_ns(), 100_000_000);
    }
}
