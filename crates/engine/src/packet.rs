//! A packet on its way: bytes, how many segments it stands for, and when each of them passes.

mod entering_frame;
pub(crate) mod shape;

use alloc::boxed::Box;
use core::ops::{Deref, DerefMut, Range};

use windtunnel_model::record::flag;
use windtunnel_model::{Lane, PortId, Time};
use windtunnel_wire::segment::{self, PacketTrain};
use windtunnel_wire::{ecn, vnet};

use crate::buffer::{PacketBuf, PacketBufferPool};
use crate::records::tag::{PacketRecordTag, TaggedShape};
use crate::tunnel::PacketTunnel;
pub(crate) use entering_frame::EnteringFrame;
pub(crate) use shape::PacketTrainShape;

/// When the segments of a train pass a point: evenly from the first to the last but one, then the
/// last, which may be shorter and so closer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketTrainTimes {
    /// The first.
    pub(crate) first: Time,
    /// The last but one (of two, the first).
    pub(crate) body: Time,
    /// The last.
    pub(crate) last: Time,
}

impl PacketTrainTimes {
    /// All at once.
    pub(crate) fn at_once(at: Time) -> Self {
        PacketTrainTimes { first: at, body: at, last: at }
    }

    /// The time of segment `index` of `count`.
    pub(crate) fn of(&self, index: u32, count: u32) -> Time {
        if index + 1 >= count {
            return self.last;
        }
        if index == 0 || self.first == self.body {
            return self.first;
        }
        let spread = u128::from(self.body.since(self.first).as_nanos());
        let step = spread * u128::from(index) / u128::from(count - 2);
        let step = u64::try_from(step).unwrap_or(u64::MAX);
        Time::from_nanos(self.first.as_nanos().saturating_add(step))
    }

    /// Each time changed alike.
    pub(crate) fn map(&self, change: impl Fn(Time) -> Time) -> Self {
        PacketTrainTimes {
            first: change(self.first),
            body: change(self.body),
            last: change(self.last),
        }
    }

    fn part(&self, range: &Range<u32>, count: u32) -> Self {
        PacketTrainTimes {
            first: self.of(range.start, count),
            body: self.of(range.end.saturating_sub(2).max(range.start), count),
            last: self.of(range.end - 1, count),
        }
    }
}

/// Which of the classes that share its node's link a packet is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SenderClass {
    /// That of its flow.
    #[default]
    Flow,
    /// This one: several classes send on the flow's socket.
    Class(u32),
    /// That of its flow, though several classes send on the flow's socket: which of them has sent
    /// this packet is not known.
    Unknown,
}

/// Where a frame that is handed in comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameOrigin {
    /// The port that it was sent through.
    pub port: PortId,
    /// When: at the time of the call or before. Its times on lanes begin here, so that what kept it
    /// from the engine adds nothing to its delay while that is longer. Those of one port do not
    /// decrease.
    pub sent: Time,
    /// What is known of its class beside its flow.
    pub sender: SenderClass,
}

/// What the lane decided about a packet when it was offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ImpairmentDecision {
    pub(crate) lost: bool,
    pub(crate) duplicate: bool,
    pub(crate) corrupt: bool,
}

impl ImpairmentDecision {
    /// It passes as it is.
    pub(crate) const NONE: ImpairmentDecision =
        ImpairmentDecision { lost: false, duplicate: false, corrupt: false };
}

/// A packet, or a train of segments, or a part of a train whose bytes have not been cut out yet.
///
/// It goes through a dozen functions and queues, so it is moved as one pointer; what it points to
/// comes from the [`PacketBufferPool`] and goes back there.
#[derive(Debug)]
pub(crate) struct EmulatedPacket(Box<PacketDescriptor>);

/// What a packet consists of.
#[derive(Debug)]
pub(crate) struct PacketDescriptor {
    buf: PacketBuf,
    vnet: vnet::VirtioNetHeader,
    /// Segments of the buffer's train that lie before this part.
    start: u32,
    /// Segments of the buffer's train.
    total: u32,
    /// Of this part.
    pub(crate) shape: PacketTrainShape,
    /// Of this part: arrivals at the element where it is.
    pub(crate) times: PacketTrainTimes,
    /// When its last segment came to the delay of the lane where it is.
    pub(crate) delayed_from: Time,
    /// Of its first segment on the lane where it is.
    pub(crate) number: u64,
    /// Whether it is a duplicate: it has random draws of its own.
    pub(crate) copy: bool,
    pub(crate) impairments: ImpairmentDecision,
    /// Whether the lane where it is has marked it: congestion experienced.
    pub(crate) marked: bool,
    /// The lane by which it came to where its present lane starts.
    pub(crate) came_by: Option<Lane>,
    /// The port through which its source sent it; with the model of paths also whether it may
    /// overtake others from there.
    pub(crate) origin: Option<PortId>,
    pub(crate) unordered: bool,
    pub(crate) sender: SenderClass,
    /// When its transmission began, on the lane where it is.
    pub(crate) sent: Time,
    /// What is recorded of it.
    pub(crate) tag: PacketRecordTag,
    /// The tunnel that it is in: `shape` and `tag` have its header, the bytes do not.
    pub(crate) tunnel: Option<PacketTunnel>,
    /// The replica that it is for, as is known before a redirector sees it: chosen at its source
    /// with the model of paths; of an error, the sender of what it quotes.
    pub(crate) aim: Option<PortId>,
}

impl PacketDescriptor {
    /// What records say of it.
    #[inline]
    pub(crate) fn tagged(&self) -> TaggedShape<'_> {
        TaggedShape { tag: &self.tag, shape: &self.shape }
    }
}

impl Deref for EmulatedPacket {
    type Target = PacketDescriptor;
    fn deref(&self) -> &PacketDescriptor {
        &self.0
    }
}

impl DerefMut for EmulatedPacket {
    fn deref_mut(&mut self) -> &mut PacketDescriptor {
        &mut self.0
    }
}

impl EmulatedPacket {
    /// A packet that comes from nowhere, all of it there at `at`.
    #[inline]
    pub(crate) fn new(
        buf: PacketBuf,
        vnet: vnet::VirtioNetHeader,
        shape: PacketTrainShape,
        at: Time,
        pool: &mut PacketBufferPool,
    ) -> Self {
        let body = PacketDescriptor {
            buf,
            vnet,
            start: 0,
            total: shape.count,
            shape,
            times: PacketTrainTimes::at_once(at),
            delayed_from: at,
            number: 0,
            copy: false,
            impairments: ImpairmentDecision::NONE,
            marked: false,
            came_by: None,
            origin: None,
            unordered: false,
            sender: SenderClass::Flow,
            sent: at,
            tag: PacketRecordTag::NONE,
            tunnel: None,
            aim: None,
        };
        EmulatedPacket(pool.house(body))
    }

    /// The frame of the whole train that it is a part of.
    pub(crate) fn frame(&self) -> &[u8] {
        &self.buf
    }

    /// The frame of exactly this part, and its header, to be changed.
    pub(crate) fn settled(
        &mut self,
        pool: &mut PacketBufferPool,
    ) -> (&mut [u8], &mut vnet::VirtioNetHeader) {
        self.settle(pool);
        let body = &mut *self.0;
        (&mut body.buf, &mut body.vnet)
    }

    /// Marks it as having met congestion, if its sender takes part in that; whether it is marked
    /// now and was not before.
    pub(crate) fn mark_ce(&mut self, pool: &mut PacketBufferPool) -> bool {
        let (frame, _) = self.settled(pool);
        let came_so = ecn::codepoint(frame) == Some(ecn::EcnCodepoint::Ce);
        let marks = ecn::mark_ce(frame) && !came_so;
        self.marked |= marks;
        self.tag.flags |= if marks { flag::MARKED } else { 0 };
        marks
    }

    /// The buffer and header of exactly this part.
    #[inline]
    pub(crate) fn into_parts(
        mut self,
        pool: &mut PacketBufferPool,
    ) -> (PacketBuf, vnet::VirtioNetHeader) {
        self.settle(pool);
        let buf = self.buf.take();
        let vnet = self.vnet;
        pool.vacate(self.0);
        (buf, vnet)
    }

    /// Gives the buffer back.
    pub(crate) fn discard(mut self, pool: &mut PacketBufferPool) {
        pool.give(self.buf.take());
        pool.vacate(self.0);
    }

    /// Cuts the first `count` segments off: (those, the rest). `Err` with the rest where there is
    /// no memory for the cut; those segments are gone then.
    pub(crate) fn split(
        self,
        count: u32,
        pool: &mut PacketBufferPool,
    ) -> Result<(EmulatedPacket, Option<EmulatedPacket>), Option<EmulatedPacket>> {
        if count >= self.shape.count {
            return Ok((self, None));
        }
        let range = self.start..self.start + count;
        let front = self.cut(range, |len| pool.take(len));
        let front = front.map(|(buf, vnet)| PacketDescriptor {
            buf,
            vnet,
            start: 0,
            total: count,
            shape: self.shape.part(&(0..count)),
            times: self.times.part(&(0..count), self.shape.count),
            ..*self.0
        });
        let front = front.map(|body| EmulatedPacket(pool.house(body)));
        let back = self.skip(count, pool);
        match front {
            Some(front) => Ok((front, back)),
            None => Err(back),
        }
    }

    /// A copy of the last segment; `None` where there is no memory.
    pub(crate) fn cut_last(&self, pool: &mut PacketBufferPool) -> Option<EmulatedPacket> {
        let end = self.start + self.shape.count;
        let (buf, vnet) = self.cut(end - 1..end, |len| pool.take(len))?;
        let body = PacketDescriptor {
            buf,
            vnet,
            start: 0,
            total: 1,
            shape: PacketTrainShape::single(self.shape.last),
            times: PacketTrainTimes::at_once(self.times.last),
            number: self.number + u64::from(self.shape.count - 1),
            tag: self.tag.skip(&self.shape, self.shape.count - 1),
            ..*self.0
        };
        Some(EmulatedPacket(pool.house(body)))
    }

    /// A copy of the first segment's frame, where this is more than one and there is memory.
    pub(crate) fn first_segment(&self, pool: &mut PacketBufferPool) -> Option<PacketBuf> {
        if self.total == 1 {
            return None;
        }
        let cut = self.cut(self.start..self.start + 1, |len| pool.take(len));
        cut.map(|(buf, _)| buf)
    }

    /// Leaves the first `count` segments away.
    pub(crate) fn skip(
        mut self,
        count: u32,
        pool: &mut PacketBufferPool,
    ) -> Option<EmulatedPacket> {
        if count >= self.shape.count {
            self.discard(pool);
            return None;
        }
        let rest = count..self.shape.count;
        self.times = self.times.part(&rest, self.shape.count);
        self.tag = self.tag.skip(&self.shape, count);
        self.shape = self.shape.part(&rest);
        self.start += count;
        self.number += u64::from(count);
        Some(self)
    }

    /// Leaves all but the first `count` (at least 1) segments away.
    pub(crate) fn truncate(&mut self, count: u32) {
        let kept = 0..count.clamp(1, self.shape.count);
        self.times = self.times.part(&kept, self.shape.count);
        self.shape = self.shape.part(&kept);
    }

    /// Puts it into a tunnel.
    pub(crate) fn enter(&mut self, tunnel: PacketTunnel) {
        self.shape = self.shape.longer(tunnel.overhead);
        self.tag = self.tag.longer(tunnel.overhead);
        self.tunnel = Some(tunnel);
    }

    /// Takes it out of its tunnel.
    pub(crate) fn leave_tunnel(&mut self) {
        if let Some(tunnel) = self.tunnel.take() {
            self.shape = self.shape.shorter(tunnel.overhead);
            self.tag = self.tag.shorter(tunnel.overhead);
        }
    }

    /// Gives a single packet other bytes, and puts what it had back.
    pub(crate) fn rewrite(
        &mut self,
        buf: PacketBuf,
        vnet: vnet::VirtioNetHeader,
        pool: &mut PacketBufferPool,
    ) {
        pool.give(core::mem::replace(&mut self.buf, buf));
        (self.vnet, self.start, self.total) = (vnet, 0, 1);
    }

    /// A second packet of the same bytes.
    pub(crate) fn duplicate(&mut self, pool: &mut PacketBufferPool) -> Option<EmulatedPacket> {
        self.settle(pool);
        let buf = pool.copy(&self.buf)?;
        let body =
            PacketDescriptor { buf, copy: true, impairments: ImpairmentDecision::NONE, ..*self.0 };
        Some(EmulatedPacket(pool.house(body)))
    }

    fn settle(&mut self, pool: &mut PacketBufferPool) {
        if self.start == 0 && self.total == self.shape.count {
            return;
        }
        let range = self.start..self.start + self.shape.count;
        if let Some((buf, vnet)) = self.cut(range, |len| pool.take_instead(len)) {
            self.vnet = vnet;
            pool.give(core::mem::replace(&mut self.buf, buf));
        }
        self.start = 0;
        self.total = self.shape.count;
    }

    /// The frame of some segments, in a buffer from `take`. `None` only where there is no buffer:
    /// the range lies in the train, and the buffer is as long as the cut needs.
    fn cut(
        &self,
        range: Range<u32>,
        take: impl FnOnce(usize) -> Option<PacketBuf>,
    ) -> Option<(PacketBuf, vnet::VirtioNetHeader)> {
        let train = PacketTrain::new(&self.buf, &self.vnet);
        let payload = train.payload_range(range.clone());
        let len = train.header_len + (payload.end - payload.start);
        let mut buf = take(usize::try_from(len).ok()?)?;
        let (len, vnet) = segment::write_range(&self.buf, &self.vnet, range, &mut buf)?;
        buf.truncate(len);
        Some((buf, vnet))
    }
}
