//! Early discard: datagrams that a socket would have no room for are dropped where that costs
//! nearly nothing, before the kernel has worked for them.
//!
//! A program that reads datagrams more slowly than they come loses some in any case. If the kernel
//! first carries each to the socket, that work takes processor time from the program, which then
//! reads even more slowly: receive livelock (Mogul and Ramakrishnan, USENIX ATC 1996). So where
//! sockets overflow, only the share of datagrams that is read is let through: [`DiscardController`] finds
//! it for each destination port, and [`DatagramShareGate`] lets that share through. Shares and no rates, because
//! the reader may be stopped at times, and those who hand over with it.
//!
//! The share is found by the queue of the socket: from one review to the next, a reader took what
//! was handed over, less what overflowed and what the queue grew by. The next share hands over so
//! much again and, until the next review, half of what the queue lacks to be half full; less what
//! waits to be handed over, which was let through by earlier shares. So a reader always has something to read, nothing
//! overflows, and what it reads depends on its speed alone.
//!
//! ```
//! use windtunnel_budget::discard::{ALL, DiscardController, DatagramShareGate, UdpSocketBacklog};
//!
//! let mut controller = DiscardController::default();
//! (0..1000).for_each(|_| controller.handed(53, 1, 100));
//! // 400 of them found no room, 50 wait.
//! let socket = UdpSocketBacklog { port: 53, overflowed: 400, queued_bytes: 50 * 768 };
//! controller.review([socket].into_iter(), 0);
//! let (port, share) = controller.shares().next().unwrap();
//! assert_eq!((port, share * 100 / ALL), (53, 58));
//! let mut gate = DatagramShareGate::default();
//! let passed = (0..1000).filter(|_| gate.passes(53, share)).count();
//! assert!(passed.abs_diff(585) <= 1);
//! ```

use alloc::collections::BTreeMap;

/// The share that stands for all datagrams.
pub const ALL: u32 = 1 << 16;

/// What the kernel says of a UDP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpSocketBacklog {
    /// The port that it is bound to.
    pub port: u16,
    /// How many datagrams it had no room for so far.
    pub overflowed: u64,
    /// Memory of what waits to be read.
    pub queued_bytes: u64,
}

/// Finds the share of datagrams to each port that sockets have room for.
#[derive(Debug, Clone, Default)]
pub struct DiscardController {
    ports: BTreeMap<u16, PortDiscardState>,
    /// How many datagrams each port's sockets had no room for, when that was last known.
    overflowed: BTreeMap<u16, u64>,
    since_review: u32,
}

/// What was handed over to a port, and waits to be; in bytes of the socket's memory.
#[derive(Debug, Clone, Copy)]
struct PortDiscardState {
    /// Datagrams since the last review.
    handed: u32,
    handed_bytes: u64,
    /// Of [`ALL`].
    share: u32,
    /// What was in the queue of the socket at the last review.
    queued_bytes: u64,
    /// What waited to be handed over.
    waiting_bytes: u64,
    /// What sockets have room for: the most that was seen to wait; less with each overflow.
    room_bytes: u64,
}

impl DiscardController {
    /// Datagrams to this port were handed to the kernel in a frame of so many bytes.
    pub fn handed(&mut self, port: u16, datagrams: u32, frame_bytes: usize) {
        let port = self.ports.entry(port).or_insert(PortDiscardState {
            handed: 0,
            handed_bytes: 0,
            share: ALL,
            queued_bytes: 0,
            waiting_bytes: 0,
            room_bytes: ROOM_BYTES,
        });
        let each = memory_of(frame_bytes / datagrams.max(1) as usize);
        port.handed = port.handed.saturating_add(datagrams);
        port.handed_bytes = port.handed_bytes.saturating_add(each * u64::from(datagrams));
        self.since_review = self.since_review.saturating_add(datagrams);
    }

    /// How many datagrams were handed over since the last review.
    #[must_use]
    pub fn since_review(&self) -> u32 {
        self.since_review
    }

    /// Whether enough was handed over since the last review for the next one: where sockets were
    /// full, what half fills one again.
    #[must_use]
    pub fn is_due(&self) -> bool {
        let every =
            self.ports.values().filter(|port| port.share < ALL).map(PortDiscardState::review_every);
        self.since_review >= every.min().unwrap_or(REVIEW_EVERY)
    }

    /// Takes what the kernel says of sockets, those of a port added up, and how many datagrams wait
    /// to be handed over, and finds new shares. A count that is less than before begins anew.
    pub fn review(&mut self, sockets: impl Iterator<Item = UdpSocketBacklog>, waiting: u64) {
        let mut now = BTreeMap::new();
        let mut queued: BTreeMap<u16, u64> = BTreeMap::new();
        for socket in sockets {
            let sum: &mut u64 = now.entry(socket.port).or_default();
            *sum = sum.saturating_add(socket.overflowed);
            let sum = queued.entry(socket.port).or_default();
            *sum = sum.saturating_add(socket.queued_bytes);
        }
        for (number, port) in &mut self.ports {
            let count = now.get(number).copied().unwrap_or(0);
            let before = self.overflowed.get(number).copied().unwrap_or(0);
            let overflowed = count.checked_sub(before).unwrap_or(count);
            // Of what waits, each port has the part that it had of what was handed over.
            let waiting = waiting * u64::from(port.handed) / u64::from(self.since_review.max(1));
            port.adapt(overflowed, queued.get(number).copied().unwrap_or(0), waiting);
        }
        // Those that have room for all are forgotten, so that unused ports are, too.
        self.ports.retain(|_, port| port.share < ALL);
        (self.overflowed, self.since_review) = (now, 0);
    }

    /// The ports of which less than all is wanted.
    pub fn shares(&self) -> impl Iterator<Item = (u16, u32)> {
        self.ports.iter().map(|(number, port)| (*number, port.share))
    }
}

impl PortDiscardState {
    fn adapt(&mut self, overflowed: u64, queued_bytes: u64, waiting: u64) {
        let handed = core::mem::take(&mut self.handed);
        let handed_bytes = core::mem::take(&mut self.handed_bytes);
        let each = (handed_bytes / u64::from(handed.max(1))).max(1);
        let waiting_bytes = waiting.saturating_mul(each);
        let queue_grew = grew(&mut self.queued_bytes, queued_bytes);
        let waiting_grew = grew(&mut self.waiting_bytes, waiting_bytes);
        if overflowed > 0 {
            self.room_bytes -= self.room_bytes / ROOM_FORGETS;
        }
        self.room_bytes = self.room_bytes.max(queued_bytes);
        if overflowed == 0 && self.share == ALL {
            return;
        }
        // What came by the present share, and what should come by the next one.
        let came = (i128::from(handed_bytes) + waiting_grew).max(1);
        let lost = i128::from(overflowed) * i128::from(each);
        let read = (i128::from(handed_bytes) - lost - queue_grew).max(0);
        let lacks = i128::from(self.room_bytes / 2) - i128::from(queued_bytes);
        // What is to be made up for is so within the time until the next review, which may be longer
        // than that since the last one: a share that is for a short time holds for a long one, too.
        let until = i128::from(self.review_every()) * i128::from(each);
        let spread = |bytes: i128| if came < until { bytes * came / until } else { bytes };
        let wanted = read + spread(lacks / 2) - spread(i128::from(waiting_bytes)).min(read / 2);
        let share = i128::from(self.share);
        let mut next = share * wanted / came;
        if overflowed == 0 && lacks >= 0 && waiting == 0 {
            let is_idle = queued_bytes <= self.room_bytes / ROOM_IDLE;
            next = next.max(if is_idle { share * 2 } else { share + 1 });
        }
        // A reader that was only late, and then finds a burst, must not be taken for a slow one.
        let next = next.clamp(share / 2, share * 4);
        let most = if overflowed > 0 { ALL - 1 } else { ALL };
        self.share = u32::try_from(next).unwrap_or(ALL).clamp(1, most);
    }

    /// After how many datagrams there is a review: what half fills the room, if they are short.
    fn review_every(&self) -> u32 {
        let half = u32::try_from(self.room_bytes / 2 / memory_of(0)).unwrap_or(u32::MAX);
        half.clamp(REVIEW_LEAST, REVIEW_EVERY)
    }
}

/// By how much a figure is more than it was.
fn grew(figure: &mut u64, now: u64) -> i128 {
    i128::from(now) - i128::from(core::mem::replace(figure, now))
}

/// About the memory that the kernel takes for a frame: a power of two for it with its headers and
/// what describes its parts, and what describes the whole (SKB_TRUESIZE of the kernel's skbuff.h).
fn memory_of(frame_bytes: usize) -> u64 {
    const AROUND: usize = 384;
    const DESCRIPTION: u64 = 256;
    (frame_bytes + AROUND).next_power_of_two() as u64 + DESCRIPTION
}

/// Lets shares of datagrams through, evenly spread.
#[derive(Debug, Clone, Default)]
pub struct DatagramShareGate {
    /// By port, what is left of shares, of [`ALL`].
    carried: BTreeMap<u16, u32>,
}

impl DatagramShareGate {
    /// Whether the next datagram to this port goes through, if so much of [`ALL`] should.
    pub fn passes(&mut self, port: u16, share: u32) -> bool {
        let carried = self.carried.entry(port).or_insert(0);
        *carried += share.min(ALL);
        let passes = *carried >= ALL;
        if passes {
            *carried -= ALL;
        }
        passes
    }
}

/// After so many datagrams the sockets are worth a look.
const REVIEW_EVERY: u32 = 512;
/// A look takes as long as some ten datagrams.
const REVIEW_LEAST: u32 = 64;
/// What a socket has room for unless its program asks for more or less (`net.core.rmem_default`).
const ROOM_BYTES: u64 = 212_992;
/// A reader with less than one of so many parts of the room to read is as good as idle.
const ROOM_IDLE: u64 = 16;
/// By one of so many parts the room becomes less at an overflow.
const ROOM_FORGETS: u64 = 8;

#[cfg(test)]
mod tests;
