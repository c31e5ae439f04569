//! Queue: what waits for the rate.
//!
//! - **Parameters**: a limit in packets (MTU segments), bytes (IP packets with overhead) or time (what the
//!   rate of the moment carries in it); default: the larger of 100 packets and 50 ms of the rate. The
//!   discipline: [`drop_tail`] (default), [`drop_head`], [`codel`].
//! - **Time**: packets wait until the line is free. **Order**: first in, first out.
//! - **Bytes**: unchanged, apart from CoDel's marks.
//! - **Drop reasons**: `queue_full` at the limit, `aqm` where the discipline decides before.
//! - **Change**: a lower limit drops nothing that waits already; without a rate all leave at once.
//! - **Model**: `pfifo` and `bfifo` of tc(8). The packet in transmission does not count, as in a router and
//!   unlike the limit of tc-netem(8). Trains wait as one object that counts its segments; of a train whose
//!   segments are still arriving, all count from the first one on.

mod codel;
mod drop_head;
mod drop_tail;

use std::collections::VecDeque;

use windtunnel_model::profile::{Discipline as Setting, QueueLimit};
use windtunnel_model::{LinkProfile, Span, Time};
use windtunnel_wire::ecn::{self, Codepoint};

use crate::buffer::Pool;
use crate::counters::{DropReason, LaneCounters};
use crate::element::rate::Server;
use crate::packet::Packet;

use codel::Codel;
use drop_head::DropHead;
use drop_tail::DropTail;

/// Who has to go when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// What comes.
    Newcomer,
    /// What has waited longest.
    Oldest,
}

/// What becomes of the oldest packet when the line is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// So many of its segments are transmitted together.
    Pass(u32),
    /// Its first segment is dropped; ask again about the next.
    Drop,
    /// Its first segment is marked and transmitted.
    Mark,
}

/// The oldest packet, as a discipline sees it.
#[derive(Debug, Clone, Copy)]
struct Head {
    now: Time,
    /// How long its first segment has waited.
    waited: Span,
    /// How long the last of `part` will have waited when its turn comes.
    waited_last: Span,
    /// Segments that may be transmitted together.
    part: u32,
    /// Bytes behind its first segment.
    behind: u64,
    /// Bytes of one full packet with overhead.
    packet_max: u64,
    /// Whether its sender takes part in ECN.
    ecn: bool,
}

/// A discipline; each has a file with `overflow`, `inspect` and `emptied`.
#[derive(Debug)]
enum Discipline {
    DropTail(DropTail),
    DropHead(DropHead),
    Codel(Codel),
}

impl Discipline {
    fn new(setting: &Setting) -> Self {
        match setting {
            Setting::DropTail => Discipline::DropTail(DropTail),
            Setting::DropHead => Discipline::DropHead(DropHead),
            Setting::Codel(setting) => Discipline::Codel(Codel::new(*setting)),
        }
    }

    fn overflow(&self) -> Overflow {
        match self {
            Discipline::DropTail(tail) => tail.overflow(),
            Discipline::DropHead(head) => head.overflow(),
            Discipline::Codel(codel) => codel.overflow(),
        }
    }

    fn inspect(&mut self, head: &Head) -> Verdict {
        match self {
            Discipline::DropTail(tail) => tail.inspect(head),
            Discipline::DropHead(oldest) => oldest.inspect(head),
            Discipline::Codel(codel) => codel.inspect(head),
        }
    }

    /// The queue became empty while the discipline was being asked.
    fn emptied(&mut self, now: Time) {
        match self {
            Discipline::DropTail(_) | Discipline::DropHead(_) => {}
            Discipline::Codel(codel) => codel.emptied(now),
        }
    }
}

/// The most that may wait; what is not limited is `u64::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit {
    packets: u64,
    bytes: u64,
}

impl Limit {
    fn new(profile: &LinkProfile) -> Self {
        let none = Limit { packets: u64::MAX, bytes: u64::MAX };
        match (profile.effective_queue(), profile.rate) {
            (Some(QueueLimit::Packets(packets)), _) => Limit { packets: packets.0, ..none },
            (Some(QueueLimit::Bytes(bytes)), _) => Limit { bytes: bytes.0, ..none },
            (Some(QueueLimit::Time(span)), Some(rate)) => {
                Limit { bytes: rate.bytes_in(span), ..none }
            }
            (Some(QueueLimit::Time(_)), None) | (None, _) => none,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Queue {
    waiting: VecDeque<Packet>,
    packets: u64,
    bytes: u64,
    overhead: u32,
    packet_max: u64,
    limit: Limit,
    setting: Setting,
    discipline: Discipline,
}

impl Queue {
    pub(crate) fn new(profile: &LinkProfile) -> Self {
        let overhead = profile.effective_overhead().0;
        Queue {
            waiting: VecDeque::new(),
            packets: 0,
            bytes: 0,
            overhead,
            packet_max: u64::from(profile.mtu) + u64::from(overhead),
            limit: Limit::new(profile),
            setting: profile.discipline.clone(),
            discipline: Discipline::new(&profile.discipline),
        }
    }

    pub(crate) fn set(&mut self, profile: &LinkProfile) {
        self.overhead = profile.effective_overhead().0;
        self.packet_max = u64::from(profile.mtu) + u64::from(self.overhead);
        self.limit = Limit::new(profile);
        if self.setting != profile.discipline {
            self.setting.clone_from(&profile.discipline);
            self.discipline = Discipline::new(&profile.discipline);
        }
        let overhead = self.overhead;
        self.bytes = self.waiting.iter().map(|packet| packet.shape.charge(overhead)).sum();
    }

    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn overflow(&self) -> Overflow {
        self.discipline.overflow()
    }

    /// How many segments of `packet` there is room for, `busy` (packets, bytes) waiting elsewhere. If the
    /// line is free, the first segment needs no room.
    pub(crate) fn room(&self, packet: &Packet, busy: (u64, u64), line_is_free: bool) -> u32 {
        let shape = packet.shape;
        let direct = u32::from(line_is_free && self.packets == 0);
        let full = (u64::from(shape.each) + u64::from(self.overhead)).max(1);
        let packets = self.limit.packets.saturating_sub(self.packets + busy.0);
        let bytes = self.limit.bytes.saturating_sub(self.bytes + busy.1);
        let needed = shape.charge(self.overhead).saturating_sub(u64::from(direct) * full);
        let in_bytes = if needed <= bytes { u64::from(shape.count) } else { bytes / full };
        let room = u32::try_from(packets.min(in_bytes)).unwrap_or(u32::MAX);
        room.saturating_add(direct).min(shape.count)
    }

    /// Whether more waits than may, `busy` waiting elsewhere, and more than `before`.
    pub(crate) fn is_over(&self, busy: (u64, u64), before: (u64, u64)) -> bool {
        let packets = self.limit.packets.saturating_sub(busy.0).max(before.0);
        let bytes = self.limit.bytes.saturating_sub(busy.1).max(before.1);
        self.packets > packets || self.bytes > bytes
    }

    pub(crate) fn push(&mut self, packet: Packet) {
        self.packets += u64::from(packet.shape.count);
        self.bytes += packet.shape.charge(self.overhead);
        self.waiting.push_back(packet);
    }

    /// Takes the oldest, whatever the discipline.
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.packets -= u64::from(packet.shape.count);
        self.bytes -= packet.shape.charge(self.overhead);
        Some(packet)
    }

    /// Drops the oldest segment; whether there was one.
    pub(crate) fn drop_oldest(&mut self, pool: &mut Pool) -> bool {
        let Some(packet) = self.pop() else { return false };
        if let Some(rest) = packet.skip(1, pool) {
            self.unpop(rest);
        }
        true
    }

    /// What is transmitted next, where `run` says how many segments may stay together.
    pub(crate) fn next(
        &mut self,
        now: Time,
        server: &Server,
        run: impl Fn(&Packet) -> u32,
        pool: &mut Pool,
        counters: &mut LaneCounters,
    ) -> Option<Packet> {
        loop {
            let Some(packet) = self.waiting.front() else {
                self.discipline.emptied(now);
                return None;
            };
            let part = run(packet).min(server.part(&packet.shape));
            let head = self.head(now, server, packet, part);
            let verdict = self.discipline.inspect(&head);
            let count = match verdict {
                Verdict::Pass(count) => count,
                Verdict::Mark => 1,
                Verdict::Drop => {
                    self.drop_oldest(pool);
                    counters.dropped[DropReason::Aqm] += 1;
                    continue;
                }
            };
            let Some(mut packet) = self.take(count, pool, counters) else { continue };
            if verdict == Verdict::Mark && ecn::mark_ce(packet.settled(pool).0) {
                counters.marked += 1;
            }
            return Some(packet);
        }
    }

    fn head(&self, now: Time, server: &Server, packet: &Packet, part: u32) -> Head {
        let (shape, times) = (packet.shape, packet.times);
        let start_last = now + server.time_for(&shape, part - 1);
        let first = if shape.count == 1 { shape.last } else { shape.each };
        let codepoint = ecn::codepoint(packet.frame()).unwrap_or_default();
        Head {
            now,
            waited: now.since(times.first),
            waited_last: start_last.since(times.of(part - 1, shape.count)),
            part,
            behind: self.bytes.saturating_sub(u64::from(first) + u64::from(self.overhead)),
            packet_max: self.packet_max,
            ecn: codepoint != Codepoint::NotEct,
        }
    }

    /// Cuts `count` segments off the oldest packet; `None` where there is no memory for that.
    fn take(&mut self, count: u32, pool: &mut Pool, counters: &mut LaneCounters) -> Option<Packet> {
        match self.pop()?.split(count, pool) {
            Ok((front, rest)) => {
                rest.into_iter().for_each(|rest| self.unpop(rest));
                Some(front)
            }
            Err(rest) => {
                counters.dropped[DropReason::Memory] += u64::from(count);
                rest.into_iter().for_each(|rest| self.unpop(rest));
                None
            }
        }
    }

    fn unpop(&mut self, packet: Packet) {
        self.packets += u64::from(packet.shape.count);
        self.bytes += packet.shape.charge(self.overhead);
        self.waiting.push_front(packet);
    }
}
