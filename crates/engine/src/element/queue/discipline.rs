//! The disciplines behind one face.

use alloc::boxed::Box;

use windtunnel_model::profile::QueueDiscipline as Setting;
use windtunnel_model::{LinkProfile, Span, Time};

use super::QueueDropSink;
use super::codel::CodelDiscipline;
use super::drop_head::DropHead;
use super::drop_tail::DropTail;
use super::flows::FlowQueueDiscipline;
use super::pi2::Pi2Discipline;
use super::pie::PieDiscipline;
use super::red::RedDiscipline;
use super::wf2q::Wf2qDiscipline;
use crate::element::RandomDraws;
use crate::packet::{EmulatedPacket, PacketTrainShape};

/// A discipline; each has a file.
#[derive(Debug)]
pub(super) enum QueueingDiscipline {
    DropTail(DropTail),
    DropHead(DropHead),
    Codel(CodelDiscipline),
    Red(RedDiscipline),
    Pie(PieDiscipline),
    Pi2(Pi2Discipline),
    /// These keep what waits themselves.
    Flows(Box<FlowQueueDiscipline>),
    Wf2q(Box<Wf2qDiscipline>),
}

impl QueueingDiscipline {
    pub(super) fn new(profile: &LinkProfile, draws: RandomDraws) -> Self {
        match &profile.discipline {
            Setting::DropTail => QueueingDiscipline::DropTail(DropTail),
            Setting::DropHead => QueueingDiscipline::DropHead(DropHead),
            Setting::Codel(setting) => QueueingDiscipline::Codel(CodelDiscipline::new(*setting)),
            Setting::Red(setting) => QueueingDiscipline::Red(RedDiscipline::new(*setting, profile)),
            Setting::Pie(setting) => QueueingDiscipline::Pie(PieDiscipline::new(*setting, profile)),
            Setting::Pi2(setting) => QueueingDiscipline::Pi2(Pi2Discipline::new(*setting, profile)),
            Setting::FqCodel(setting) => QueueingDiscipline::Flows(Box::new(
                FlowQueueDiscipline::new(*setting, draws.original),
            )),
            Setting::Fair(setting) => QueueingDiscipline::Flows(Box::new(
                FlowQueueDiscipline::fair(*setting, draws.original),
            )),
            Setting::Wf2q(setting) => QueueingDiscipline::Wf2q(Box::new(Wf2qDiscipline::new(
                setting,
                draws.original,
                profile,
            ))),
        }
    }

    /// Other properties of the link have changed.
    pub(super) fn set(&mut self, profile: &LinkProfile) {
        match self {
            QueueingDiscipline::Red(red) => red.set(profile),
            QueueingDiscipline::Pie(pie) => pie.set(profile),
            QueueingDiscipline::Pi2(pi2) => pi2.set(profile),
            QueueingDiscipline::Wf2q(wf2q) => wf2q.set(profile),
            _ => {}
        }
    }

    pub(super) fn overflow(&self) -> Overflow {
        match self {
            QueueingDiscipline::DropTail(tail) => tail.overflow(),
            QueueingDiscipline::DropHead(head) => head.overflow(),
            QueueingDiscipline::Codel(codel) => codel.overflow(),
            QueueingDiscipline::Red(_)
            | QueueingDiscipline::Pie(_)
            | QueueingDiscipline::Pi2(_) => Overflow::Newcomer,
            QueueingDiscipline::Flows(_) | QueueingDiscipline::Wf2q(_) => Overflow::Fattest,
        }
    }

    /// Whether it uses, at the head of the queue, the ECN field of a packet: reading it costs a
    /// look into the packet.
    pub(super) fn asks_ecn(&self) -> bool {
        matches!(self, QueueingDiscipline::Codel(_) | QueueingDiscipline::Flows(_))
    }

    /// Lets time pass, where `queue` returns the bytes that waited at a time.
    pub(super) fn advance(&mut self, now: Time, queue: impl Fn(Time) -> u64) {
        match self {
            QueueingDiscipline::Red(red) => red.advance(now),
            QueueingDiscipline::Pie(pie) => pie.advance(now, queue),
            QueueingDiscipline::Pi2(pi2) => pi2.advance(now, queue),
            _ => {}
        }
    }

    /// Whether it decides about packets that come.
    pub(super) fn judges(&self) -> bool {
        matches!(
            self,
            QueueingDiscipline::Red(_) | QueueingDiscipline::Pie(_) | QueueingDiscipline::Pi2(_)
        )
    }

    /// Decides about a packet that comes.
    pub(super) fn admit(&mut self, comer: &ArrivingPacket) -> EnqueueVerdict {
        match self {
            QueueingDiscipline::Red(red) => red.admit(comer),
            QueueingDiscipline::Pie(pie) => pie.admit(comer),
            QueueingDiscipline::Pi2(pi2) => pi2.admit(comer),
            _ => EnqueueVerdict::Pass,
        }
    }

    /// One like this, to see what it would decide; `None` for those that do not decide about
    /// arrivals.
    pub(super) fn trial(&self) -> Option<Self> {
        match self {
            QueueingDiscipline::Red(red) => Some(QueueingDiscipline::Red(red.clone())),
            QueueingDiscipline::Pie(pie) => Some(QueueingDiscipline::Pie(pie.clone())),
            QueueingDiscipline::Pi2(pi2) => Some(QueueingDiscipline::Pi2(pi2.clone())),
            _ => None,
        }
    }

    /// Decides about the packet at the head.
    pub(super) fn inspect(
        &mut self,
        head: &Head,
        shape: &PacketTrainShape,
        overhead: u32,
    ) -> DequeueVerdict {
        match self {
            QueueingDiscipline::DropTail(tail) => tail.inspect(head),
            QueueingDiscipline::DropHead(oldest) => oldest.inspect(head),
            QueueingDiscipline::Codel(codel) => codel.inspect(head),
            QueueingDiscipline::Red(_)
            | QueueingDiscipline::Pie(_)
            | QueueingDiscipline::Pi2(_) => DequeueVerdict::Pass(head.part),
            QueueingDiscipline::Flows(flows) => flows.inspect(head, shape, overhead),
            QueueingDiscipline::Wf2q(wf2q) => wf2q.inspect(head),
        }
    }

    /// The queue became empty while the discipline was being asked.
    pub(super) fn emptied(&mut self, now: Time) {
        match self {
            QueueingDiscipline::Codel(codel) => codel.emptied(now),
            QueueingDiscipline::Red(red) => red.emptied(now),
            QueueingDiscipline::Wf2q(wf2q) => wf2q.emptied(),
            _ => {}
        }
    }

    /// The discipline as what keeps the packets, where it does so itself.
    #[inline]
    pub(super) fn keeper(&mut self) -> Option<&mut dyn MultiQueueDiscipline> {
        match self {
            QueueingDiscipline::Flows(flows) => Some(&mut **flows),
            QueueingDiscipline::Wf2q(wf2q) => Some(&mut **wf2q),
            _ => None,
        }
    }
}

/// A discipline that keeps what waits itself, in more than one queue.
pub(super) trait MultiQueueDiscipline {
    /// Puts a packet of so many bytes with overhead behind others.
    fn push(&mut self, packet: EmulatedPacket, bytes: u64);
    /// Finds the packet that is next, and the bytes that wait in its queue.
    fn front(&mut self, now: Time) -> Option<(&EmulatedPacket, u64)>;
    /// Takes the packet that `front` returned.
    fn pop(&mut self, overhead: u32) -> Option<EmulatedPacket>;
    /// Puts back what is left of it.
    fn unpop(&mut self, packet: EmulatedPacket, overhead: u32);
    /// Segments of it are transmitted.
    fn charge(&mut self, shape: &PacketTrainShape, overhead: u32);
    /// Makes room: (segments, their bytes).
    fn drop_some(&mut self, overhead: u32, sink: &mut QueueDropSink<'_>) -> (u64, u64);
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
pub(super) enum DequeueVerdict {
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
pub(super) struct ArrivingPacket {
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
pub(crate) enum EnqueueVerdict {
    /// It may wait, if there is room.
    Pass,
    /// It is marked, and may wait.
    Mark,
    /// It is dropped.
    Drop,
}
