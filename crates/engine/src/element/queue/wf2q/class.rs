//! One class: the queues of its flows, and which of them is first.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::DropReason;

use super::level::Wf2qServerNode;
use super::{NONE, index};
use crate::counters::ClassCounters;
use crate::element::queue::drop_sink::QueueDropSink;
use crate::packet::{EmulatedPacket, PacketTrainShape};

#[derive(Debug)]
pub(super) struct Class {
    /// By hash: the flow.
    buckets: Vec<u32>,
    flows: Vec<ClassFlowQueue>,
    level: Wf2qServerNode,
    /// The flow whose packet is first.
    first: Option<u32>,
    /// The flow whose packet is in transmission.
    serving: Option<u32>,
    /// What waits.
    pub(super) bytes: u64,
    /// Whether it had something to send in this busy period.
    pub(super) is_met: bool,
    pub(super) counters: ClassCounters,
}

#[derive(Debug, Default)]
struct ClassFlowQueue {
    waiting: VecDeque<EmulatedPacket>,
    bytes: u64,
}

impl Class {
    pub(super) fn new() -> Self {
        Class {
            buckets: Vec::new(),
            flows: Vec::new(),
            level: Wf2qServerNode::new(),
            first: None,
            serving: None,
            bytes: 0,
            is_met: false,
            counters: ClassCounters::default(),
        }
    }

    /// The flow in this one of `buckets`, made where it is met first.
    pub(super) fn flow(&mut self, bucket: usize, buckets: u32) -> u32 {
        if self.buckets.is_empty() {
            self.buckets = vec![NONE; index(buckets)];
        }
        if self.buckets[bucket] == NONE {
            self.buckets[bucket] = u32::try_from(self.flows.len()).unwrap_or(NONE);
            self.flows.push(ClassFlowQueue::default());
            self.level.add(1);
        }
        self.buckets[bucket]
    }

    /// Puts a packet behind the others of its flow; whether that makes it the class's first.
    pub(super) fn push(&mut self, flow: u32, packet: EmulatedPacket, overhead: u32) -> bool {
        let waiting = &mut self.flows[index(flow)];
        let bytes = packet.shape.charge(overhead);
        let has_more = !waiting.waiting.is_empty();
        waiting.waiting.push_back(packet);
        waiting.bytes += bytes;
        self.bytes += bytes;
        if has_more || self.serving == Some(flow) {
            return false;
        }
        self.level.enter(flow, self.head_bytes(flow, overhead).unwrap_or(0));
        if self.serving.is_some() || self.first.is_some() {
            return false;
        }
        self.first = self.level.next();
        true
    }

    /// The flow whose packet is first.
    pub(super) fn first(&self) -> Option<u32> {
        self.first
    }

    pub(super) fn front(&self, flow: u32) -> Option<(&EmulatedPacket, u64)> {
        let flow = self.flows.get(index(flow))?;
        Some((flow.waiting.front()?, flow.bytes))
    }

    /// Bytes of the first segment.
    pub(super) fn first_bytes(&self, overhead: u32) -> Option<u64> {
        self.head_bytes(self.first?, overhead)
    }

    /// Whether its first flow is the only one that waits.
    pub(super) fn is_alone(&self) -> bool {
        self.level.is_alone()
    }

    pub(super) fn pop(&mut self, flow: u32, overhead: u32) -> Option<EmulatedPacket> {
        let flow = self.flows.get_mut(index(flow))?;
        let packet = flow.waiting.pop_front()?;
        let bytes = packet.shape.charge(overhead);
        flow.bytes -= bytes;
        self.bytes -= bytes;
        Some(packet)
    }

    pub(super) fn unpop(&mut self, flow: u32, packet: EmulatedPacket, overhead: u32) {
        let Some(flow) = self.flows.get_mut(index(flow)) else { return };
        let bytes = packet.shape.charge(overhead);
        flow.bytes += bytes;
        self.bytes += bytes;
        flow.waiting.push_front(packet);
    }

    /// What is first in a flow has changed without having been transmitted.
    pub(super) fn amend(&mut self, flow: u32, overhead: u32) {
        if self.serving == Some(flow) {
            return;
        }
        let bytes = self.head_bytes(flow, overhead);
        self.level.amend(flow, bytes);
        if bytes.is_none() && self.first == Some(flow) {
            self.first = self.level.next();
        }
    }

    /// The transmission of a flow's first packet begins.
    pub(super) fn serve(&mut self, flow: u32, shape: &PacketTrainShape, overhead: u32) {
        self.level.serve(flow, shape, overhead);
        self.serving = Some(flow);
        self.first = None;
    }

    pub(super) fn pass(&mut self, bytes: u64) {
        self.level.pass(bytes);
    }

    /// The transmission has ended.
    pub(super) fn go_on(&mut self, overhead: u32) {
        if let Some(flow) = self.serving.take() {
            self.level.go_on(flow, self.head_bytes(flow, overhead));
            self.first = self.level.next();
        }
    }

    pub(super) fn end_period(&mut self) {
        self.level.end_period();
        self.is_met = false;
    }

    /// Drops the newest segment of the longest flow: (the flow, bytes).
    pub(super) fn drop_newest(
        &mut self,
        overhead: u32,
        sink: &mut QueueDropSink<'_>,
    ) -> Option<(u32, u64)> {
        let flows = self.flows.iter_mut().zip(0..);
        let (flow, number) = flows.max_by_key(|(flow, _)| flow.bytes)?;
        let mut packet = flow.waiting.pop_back()?;
        let before = packet.shape.charge(overhead);
        let count = packet.shape.count;
        let (reason, now) = (DropReason::QueueFull, sink.now);
        sink.recorder.note_drop(reason, now, sink.lane, &packet, count - 1..count);
        let mut left = 0;
        if count == 1 {
            packet.discard(sink.pool);
        } else {
            packet.truncate(count - 1);
            left = packet.shape.charge(overhead);
            flow.waiting.push_back(packet);
        }
        flow.bytes -= before - left;
        self.bytes -= before - left;
        self.counters.dropped_packets += 1;
        Some((number, before - left))
    }

    /// Takes those packets of a flow that are `wanted`.
    pub(super) fn extract(
        &mut self,
        flow: u32,
        overhead: u32,
        wanted: impl Fn(&EmulatedPacket) -> bool,
    ) -> Vec<EmulatedPacket> {
        let flow = &mut self.flows[index(flow)];
        let mut taken = Vec::new();
        for packet in core::mem::take(&mut flow.waiting) {
            if wanted(&packet) {
                taken.push(packet);
            } else {
                flow.waiting.push_back(packet);
            }
        }
        let bytes: u64 = taken.iter().map(|packet| packet.shape.charge(overhead)).sum();
        flow.bytes -= bytes;
        self.bytes -= bytes;
        taken
    }

    /// Charges what waits with another overhead; all bytes.
    pub(super) fn recount(&mut self, overhead: u32) -> u64 {
        for flow in &mut self.flows {
            flow.bytes = flow.waiting.iter().map(|packet| packet.shape.charge(overhead)).sum();
        }
        self.bytes = self.flows.iter().map(|flow| flow.bytes).sum();
        self.bytes
    }

    fn head_bytes(&self, flow: u32, overhead: u32) -> Option<u64> {
        let shape = self.flows.get(index(flow))?.waiting.front()?.shape;
        let first = if shape.count == 1 { shape.last } else { shape.each };
        Some(u64::from(first) + u64::from(overhead))
    }
}
