//! The disciplines behind one face.

use alloc::boxed::Box;

use windtunnel_model::profile::Discipline as Setting;
use windtunnel_model::{LinkProfile, Span, Time};

use super::Sink;
use super::codel::Codel;
use super::drop_head::DropHead;
use super::drop_tail::DropTail;
use super::flows::Flows;
use super::pi2::Pi2;
use super::pie::Pie;
use super::red::Red;
use super::wf2q::Wf2q;
use crate::element::Draws;
use crate::packet::{Packet, Shape};

/// A discipline; each has a file.
#[derive(Debug)]
pub(super) enum Discipline {
    DropTail(DropTail),
    DropHead(DropHead),
    Codel(Codel),
    Red(Red),
    Pie(Pie),
    Pi2(Pi2),
    /// These keep what waits themselves.
    Flows(Box<Flows>),
    Wf2q(Box<Wf2q>),
}

impl Discipline {
    pub(super) fn new(profile: &LinkProfile, draws: Draws) -> Self {
        match &profile.discipline {
            Setting::DropTail => Discipline::DropTail(DropTail),
            Setting::DropHead => Discipline::DropHead(DropHead),
            Setting::Codel(setting) => Discipline::Codel(Codel::new(*setting)),
            Setting::Red(setting) => Discipline::Red(Red::new(*setting, profile)),
            Setting::Pie(setting) => Discipline::Pie(Pie::new(*setting, profile)),
            Setting::Pi2(setting) => Discipline::Pi2(Pi2::new(*setting, profile)),
            Setting::FqCodel(setting) => {
                Discipline::Flows(Box::new(Flows::new(*setting, draws.original)))
            }
            Setting::Fair(setting) => {
                Discipline::Flows(Box::new(Flows::fair(*setting, draws.original)))
            }
            Setting::Wf2q(setting) => {
                Discipline::Wf2q(Box::new(Wf2q::new(setting, draws.original, profile)))
            }
        }
    }

    /// Other properties of the link have changed.
    pub(super) fn set(&mut self, profile: &LinkProfile) {
        match self {
            Discipline::Red(red) => red.set(profile),
            Discipline::Pie(pie) => pie.set(profile),
            Discipline::Pi2(pi2) => pi2.set(profile),
            Discipline::Wf2q(wf2q) => wf2q.set(profile),
            _ => {}
        }
    }

    pub(super) fn overflow(&self) -> Overflow {
        match self {
            Discipline::DropTail(tail) => tail.overflow(),
            Discipline::DropHead(head) => head.overflow(),
            Discipline::Codel(codel) => codel.overflow(),
            Discipline::Red(_) | Discipline::Pie(_) | Discipline::Pi2(_) => Overflow::Newcomer,
            Discipline::Flows(_) | Discipline::Wf2q(_) => Overflow::Fattest,
        }
    }

    /// Whether it uses, at the head of the queue, the ECN field of a packet: reading it costs a
    /// look into the packet.
    pub(super) fn asks_ecn(&self) -> bool {
        matches!(self, Discipline::Codel(_) | Discipline::Flows(_))
    }

    /// Lets time pass, where `queue` returns the bytes that waited at a time.
    pub(super) fn advance(&mut self, now: Time, queue: impl Fn(Time) -> u64) {
        match self {
            Discipline::Red(red) => red.advance(now),
            Discipline::Pie(pie) => pie.advance(now, queue),
            Discipline::Pi2(pi2) => pi2.advance(now, queue),
            _ => {}
        }
    }

    /// Whether it decides about packets that come.
    pub(super) fn judges(&self) -> bool {
        matches!(self, Discipline::Red(_) | Discipline::Pie(_) | Discipline::Pi2(_))
    }

    /// Decides about a packet that comes.
    pub(super) fn admit(&mut self, comer: &Newcomer) -> Admission {
        match self {
            Discipline::Red(red) => red.admit(comer),
            Discipline::Pie(pie) => pie.admit(comer),
            Discipline::Pi2(pi2) => pi2.admit(comer),
            _ => Admission::Pass,
        }
    }

    /// One like this, to see what it would decide; `None` for those that do not decide about
    /// arrivals.
    pub(super) fn trial(&self) -> Option<Self> {
        match self {
            Discipline::Red(red) => Some(Discipline::Red(red.clone())),
            Discipline::Pie(pie) => Some(Discipline::Pie(pie.clone())),
            Discipline::Pi2(pi2) => Some(Discipline::Pi2(pi2.clone())),
            _ => None,
        }
    }

    /// Decides about the packet at the head.
    pub(super) fn inspect(&mut self, head: &Head, shape: &Shape, overhead: u32) -> Verdict {
        match self {
            Discipline::DropTail(tail) => tail.inspect(head),
            Discipline::DropHead(oldest) => oldest.inspect(head),
            Discipline::Codel(codel) => codel.inspect(head),
            Discipline::Red(_) | Discipline::Pie(_) | Discipline::Pi2(_) => {
                Verdict::Pass(head.part)
            }
            Discipline::Flows(flows) => flows.inspect(head, shape, overhead),
            Discipline::Wf2q(wf2q) => wf2q.inspect(head),
        }
    }

    /// The queue became empty while the discipline was being asked.
    pub(super) fn emptied(&mut self, now: Time) {
        match self {
            Discipline::Codel(codel) => codel.emptied(now),
            Discipline::Red(red) => red.emptied(now),
            Discipline::Wf2q(wf2q) => wf2q.emptied(),
            _ => {}
        }
    }

    /// The discipline as what keeps the packets, where it does so itself.
    #[inline]
    pub(super) fn keeper(&mut self) -> Option<&mut dyn Keeper> {
        match self {
            Discipline::Flows(flows) => Some(&mut **flows),
            Discipline::Wf2q(wf2q) => Some(&mut **wf2q),
            _ => None,
        }
    }
}

/// A discipline that keeps what waits itself, in more than one queue.
pub(super) trait Keeper {
    /// Puts a packet of so many bytes with overhead behind others.
    fn push(&mut self, packet: Packet, bytes: u64);
    /// Finds the packet that is next, and the bytes that wait in its queue.
    fn front(&mut self, now: Time) -> Option<(&Packet, u64)>;
    /// Takes the packet that `front` returned.
    fn pop(&mut self, overhead: u32) -> Option<Packet>;
    /// Puts back what is left of it.
    fn unpop(&mut self, packet: Packet, overhead: u32);
    /// Segments of it are transmitted.
    fn charge(&mut self, shape: &Shape, overhead: u32);
    /// Makes room: (segments, their bytes).
    fn drop_some(&mut self, overhead: u32, sink: &mut Sink<'_>) -> (u64, u64);
    /// Charges what waits with another overhead; all bytes.
    fn recount(&mut self, overhead: u32) -> u64;
}

/// Which packet is dropped when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// What comes.
    Newcomer,
    /// What has waited longest.
    Oldest,
    /// Some of the flow that has most.
    Fattest,
}

/// What becomes of the oldest packet when the line is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// So many of its segments are transmitted together.
    Pass(u32),
    /// Its first segment is dropped; ask again about the next.
    Drop,
    /// Its first segment is marked and transmitted.
    Mark,
}

/// The oldest packet, as a discipline sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) now: Time,
    /// How long its first segment has waited.
    pub(super) waited: Span,
    /// How long the last of `part` will have waited when its turn comes.
    pub(super) waited_last: Span,
    /// Segments that may be transmitted together.
    pub(super) part: u32,
    /// Bytes behind its first segment.
    pub(super) behind: u64,
    /// Bytes of one full packet with overhead.
    pub(super) packet_max: u64,
    /// Whether its sender takes part in ECN.
    pub(super) ecn: bool,
}

/// A packet that comes, as a discipline sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Newcomer {
    pub(super) now: Time,
    /// Bytes that wait before it.
    pub(super) queue: u64,
    /// Its random draw.
    pub(super) draw: u64,
    /// Whether its sender takes part in ECN.
    pub(super) ecn: bool,
}

/// What becomes of a packet that comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It may wait, if there is room.
    Pass,
    /// It is marked, and may wait.
    Mark,
    /// It is dropped.
    Drop,
}
