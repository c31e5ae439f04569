//! How far streams of TCP are, and what they were let do: the difference is charged, or given back.
//!
//! Positions are absolute, so that whatever a call has done shows in one of the later ones: in the
//! end as many bytes are charged as have moved. What calls have done that a killed process made last
//! is not known, and stays as it was claimed.

use std::collections::BTreeMap;

use windtunnel_budget::pacing::{Controller, Direction, Region};
use windtunnel_record::notification::Position;
use windtunnel_record::tcp_info::state::{CLOSED, FIN_WAIT_1};

/// Streams, by the kernel's number of the socket.
#[derive(Debug, Default)]
pub(super) struct Sockets(BTreeMap<u64, Socket>);

#[derive(Debug)]
struct Socket {
    /// The last state of the connection before it was closed.
    state: u8,
    ways: [Way; 2],
}

/// One direction of a stream.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    /// Bytes of the stream when it was looked at last.
    at: u64,
    /// Bytes that calls were let move since.
    let_go: u64,
    /// The thread of the last such call where that may block: it may go on still.
    blocked: Option<i32>,
}

/// Whose call it is, and what it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) cookie: u64,
    /// Whose budget.
    pub(super) key: u64,
    pub(super) direction: Direction,
    pub(super) thread: i32,
    pub(super) is_tcp: bool,
    pub(super) may_block: bool,
}

impl Sockets {
    /// A stream is at a position now: what has moved that was not claimed is charged, and returned;
    /// what was claimed and has not moved is given back. `is_last`: the socket is closed.
    pub(super) fn settle(
        &mut self,
        region: &Region,
        now_ns: u64,
        used: Used,
        position: Position,
        is_last: bool,
    ) -> u64 {
        let known = self.0.entry(used.cookie).or_insert_with(|| Socket {
            state: position.state,
            ways: position.at.map(|at| Way { at, ..Way::default() }),
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
        *way = Way { at, ..Way::default() };
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
    pub(super) fn let_go(&mut self, used: Used, bytes: u64) {
        if let Some(socket) = self.0.get_mut(&used.cookie) {
            let way = &mut socket.ways[used.direction as usize];
            way.let_go = way.let_go.saturating_add(bytes);
            way.blocked = used.may_block.then_some(used.thread);
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

    /// A socket has gone.
    pub(super) fn forget(&mut self, cookie: u64) {
        self.0.remove(&cookie);
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_budget::pacing::Per;
    use windtunnel_sys::limited::Limited;

    use super::*;

    /// A limit of its own.
    fn region(rates: [u64; 2]) -> Limited {
        let region = Limited::create_in(&tempfile::tempfile().unwrap()).unwrap();
        region.begin(0, 0, Per::Tree, rates);
        region
    }

    const USED: Used = Used {
        cookie: 7,
        key: 0,
        direction: Direction::Send,
        thread: 1,
        is_tcp: true,
        may_block: false,
    };

    fn at(sent: u64) -> Position {
        Position { at: [sent, 0], fin_came: false, state: 1, is_nonblocking: true }
    }

    #[test]
    fn what_has_not_moved_is_given_back_and_what_has_moved_besides_is_charged() {
        let region = region([8_000, 0]);
        let budget = region.slot(0, 0).budget(Direction::Send);
        let mut sockets = Sockets::default();
        assert_eq!(sockets.settle(&region, 0, USED, at(50), false), 0);
        let _ = budget.claim(0, 8_000, 1000);
        region.count(Direction::Send, 1000, 0);
        sockets.let_go(USED, 1000);
        assert_eq!(sockets.settle(&region, 0, USED, at(450), false), 0);
        assert_eq!(budget.free_at_ns(), 400_000_000);
        assert_eq!(region.sum(Direction::Send).bytes, 400);
        assert_eq!(sockets.settle(&region, 0, USED, at(650), false), 200);
        assert_eq!(budget.free_at_ns(), 600_000_000);
        assert_eq!(region.sum(Direction::Send).bytes, 600);
    }

    #[test]
    fn nothing_is_given_back_while_the_call_of_another_thread_may_go_on() {
        let region = region([8_000, 0]);
        let budget = region.slot(0, 0).budget(Direction::Send);
        let mut sockets = Sockets::default();
        let blocks = Used { may_block: true, ..USED };
        sockets.settle(&region, 0, blocks, at(0), false);
        let _ = budget.claim(0, 8_000, 1000);
        sockets.let_go(blocks, 1000);
        let other = Used { thread: 2, ..blocks };
        sockets.settle(&region, 0, other, at(100), false);
        assert_eq!(budget.free_at_ns(), 1_000_000_000);
        sockets.settle(&region, 0, blocks, at(100), false);
        assert_eq!(budget.free_at_ns(), 100_000_000);
    }
}
