//! The disciplines behind one face.

use alloc::boxed::Box;

use windtunnel_model::profile::QueueDiscipline as Setting;
use windtunnel_model::{LinkProfile, Time};

use super::codel::CodelDiscipline;
use super::decision::{ArrivingPacket, DequeueVerdict, EnqueueVerdict, Head, Overflow};
use super::drop_head::DropHead;
use super::drop_tail::DropTail;
use super::flows::FlowQueueDiscipline;
use super::multi_queue::MultiQueueDiscipline;
use super::pi2::Pi2Discipline;
use super::pie::PieDiscipline;
use super::red::RedDiscipline;
use super::wf2q::Wf2qDiscipline;
use crate::element::RandomDraws;
use crate::packet::PacketTrainShape;

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
