//! Hierarchical weighted fair queueing: link, class, flow.
//!
//! - **Parameters**: the classes with minimum and weight; `flows`, the number of queues that the
//!   flows of each class are hashed to (default 1024). The queue's limit holds for all together.
//! - **Time**: a class that always has something to send gets its share of the rate, and never more
//!   than a packet less; what others leave goes to those that want it, in proportion to their shares.
//!   The same holds of the flows of a class, whose shares are alike. **Order**: kept within a flow of a class.
//!   **Bytes**: unchanged. Trains are cut where others wait; one that is alone keeps together, for as
//!   long as 100 µs, while there is room for 1000 packets more.
//! - **Drop reasons**: `queue_full` at the limit: the newest packet of the longest flow of the
//!   longest class, both by bytes.
//! - **Change**: another rate, or other shares, begin a new account: what was sent before counts for
//!   nothing.
//! - **Model**: H-WF²Q+ (Bennett and Zhang, SIGCOMM 1996; WF²Q+ in ToN 5(5), 1997), as Eclipse/BSD
//!   used it for a network link. A class's minimum and its part of the rest are one share, as
//!   processors' are. Virtual time is measured in bytes sent and not in seconds, so that it follows
//!   every rate; within a class it passes as fast as the flows that wait allow. A flow is a
//!   five-tuple; where there are classes it is a socket, so all that a UDP socket sends is one, but for
//!   packets that are attributed to a class each. What has no ports (fragments, ICMP) belongs to no class.

mod class;
mod level;
mod owners;

use alloc::vec::Vec;

use windtunnel_model::profile::Wf2qParameters as Setting;
use windtunnel_model::random::RandomStream;
use windtunnel_model::{LinkProfile, Rate, Time};
use windtunnel_wire::flow::FiveTuple;

use super::decision::{DequeueVerdict, Head};
use super::drop_sink::QueueDropSink;
use super::flows::{NONE, bucket, index};
use super::multi_queue::MultiQueueDiscipline;
use crate::counters::LaneClassCounters;
use crate::packet::{EmulatedPacket, PacketTrainShape, SenderClass};
use class::Class;
use level::Wf2qServerNode;
use owners::{Attribution, FlowOwnerStatus, FlowOwnerTable};

#[derive(Debug)]
pub(super) struct Wf2qDiscipline {
    setting: Setting,
    stream: RandomStream,
    overhead: u32,
    /// Of the link when all want more, and last the rest's.
    shares: Vec<u64>,
    classes: Vec<Class>,
    level: Wf2qServerNode,
    owners: FlowOwnerTable,
    /// Which flow `front` found.
    current: ClassFlowIndex,
    /// A flow whose first packet has been taken, and is not in transmission yet.
    taken: Option<ClassFlowIndex>,
    /// Of the packet that was taken.
    attribution: Attribution,
    serving: Option<PacketTransmission>,
    /// Classes that have had something to send in this busy period.
    met: Vec<u32>,
}

/// A flow of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ClassFlowIndex {
    class: u32,
    flow: u32,
}

/// A packet in transmission.
#[derive(Debug)]
struct PacketTransmission {
    class: u32,
    bytes: u64,
    /// Those that have been sent already.
    passed: u64,
}

impl Wf2qDiscipline {
    pub(super) fn new(setting: &Setting, stream: RandomStream, profile: &LinkProfile) -> Self {
        let shares = shares(setting, profile.rate);
        Wf2qDiscipline {
            setting: setting.clone(),
            stream,
            overhead: profile.effective_overhead().0,
            classes: shares.iter().map(|_| Class::new()).collect(),
            level: Wf2qServerNode::of(&shares),
            shares,
            owners: FlowOwnerTable::new(),
            current: ClassFlowIndex { class: NONE, flow: NONE },
            taken: None,
            attribution: Attribution {
                owner: FlowOwnerStatus::NoSocket,
                sender: SenderClass::Flow,
            },
            serving: None,
            met: Vec::new(),
        }
    }

    /// Other properties of the link have changed.
    pub(super) fn set(&mut self, profile: &LinkProfile) {
        let shares = shares(&self.setting, profile.rate);
        if shares == self.shares {
            return;
        }
        self.settle();
        self.level = Wf2qServerNode::of(&shares);
        self.shares = shares;
        for (class, number) in self.classes.iter().zip(0..) {
            if let Some(bytes) = class.first_bytes(self.overhead) {
                self.level.enter(number, bytes);
            }
        }
    }

    /// Of the packet in transmission, so many bytes have been sent.
    pub(super) fn pass(&mut self, sent: u64) {
        let Some(service) = &mut self.serving else { return };
        let more = sent.min(service.bytes).saturating_sub(service.passed);
        service.passed += more;
        self.level.pass(more);
        self.classes[index(service.class)].pass(more);
    }

    /// Nothing waits, and nothing is in transmission.
    pub(super) fn emptied(&mut self) {
        self.settle();
        self.level.end_period();
        for number in self.met.drain(..) {
            self.classes[index(number)].end_period();
        }
    }

    /// How many segments are transmitted before others are asked.
    pub(super) fn inspect(&self, head: &Head) -> DequeueVerdict {
        let is_alone = self.level.is_alone() && self.classes[index(self.current.class)].is_alone();
        DequeueVerdict::Pass(if is_alone { head.part } else { 1 })
    }

    /// The next flow whose class is to be found.
    pub(super) fn question(&mut self) -> Option<FiveTuple> {
        self.owners.question()
    }

    /// A flow is of a class, or has no owner. What of it waits elsewhere goes there, but for packets
    /// that are attributed to a class each.
    pub(super) fn answer(&mut self, now: Time, key: &FiveTuple, class: Option<u32>) {
        let rest = self.rest();
        let class = class.map(|class| class.min(rest));
        let Some(before) = self.owners.answer(now, key, class) else { return };
        let (from, to) = (before.unwrap_or(rest), class.unwrap_or(rest));
        if from == to {
            return;
        }
        self.forget_taken();
        let from = self.place(from, Some(key));
        let is_of_flow = |packet: &EmulatedPacket| {
            let is_attributed = matches!(packet.sender, SenderClass::Class(_));
            !is_attributed && owners::socket(packet).as_ref() == Some(key)
        };
        let class = &mut self.classes[index(from.class)];
        let moved = class.extract(from.flow, self.overhead, is_of_flow);
        self.amend(from);
        let to = self.place(to, Some(key));
        moved.into_iter().for_each(|packet| self.line_up(to, packet));
    }

    /// What the classes have sent and lost.
    pub(super) fn report(&self) -> LaneClassCounters {
        let counters = self.classes.iter().map(|class| class.counters).collect();
        LaneClassCounters { counters, ownership: self.owners.counters }
    }

    fn rest(&self) -> u32 {
        u32::try_from(self.setting.rest()).unwrap_or(NONE)
    }

    /// The flow of a class that packets with this key wait in.
    fn place(&mut self, class: u32, key: Option<&FiveTuple>) -> ClassFlowIndex {
        let hash = key.map_or(0, FiveTuple::hash64);
        let buckets = self.setting.flows.max(1);
        let bucket = bucket(self.stream.at(hash), index(buckets));
        ClassFlowIndex { class, flow: self.classes[index(class)].flow(bucket, buckets) }
    }

    fn line_up(&mut self, at: ClassFlowIndex, packet: EmulatedPacket) {
        let class = &mut self.classes[index(at.class)];
        if !class.is_met {
            class.is_met = true;
            self.met.push(at.class);
        }
        if class.push(at.flow, packet, self.overhead)
            && let Some(bytes) = class.first_bytes(self.overhead)
        {
            self.level.enter(at.class, bytes);
        }
    }

    /// What is first in a flow has changed without having been transmitted.
    fn amend(&mut self, at: ClassFlowIndex) {
        let class = &mut self.classes[index(at.class)];
        class.amend(at.flow, self.overhead);
        self.level.amend(at.class, class.first_bytes(self.overhead));
    }

    /// What was taken has gone elsewhere, and not onto the line.
    fn forget_taken(&mut self) {
        if let Some(place) = self.taken.take() {
            self.amend(place);
        }
    }

    /// What was in transmission has been sent.
    fn settle(&mut self) {
        self.forget_taken();
        self.pass(u64::MAX);
        if let Some(service) = self.serving.take() {
            let class = &mut self.classes[index(service.class)];
            class.go_on(self.overhead);
            self.level.go_on(service.class, class.first_bytes(self.overhead));
        }
    }

    fn count(&mut self, class: u32, shape: &PacketTrainShape) {
        let counters = &mut self.classes[index(class)].counters;
        let packets = u64::from(shape.count);
        counters.packets += packets;
        counters.bytes += shape.bytes();
        counters.wire_bytes += shape.charge(self.overhead);
        self.owners.count(self.attribution, packets, shape.bytes());
    }
}

impl MultiQueueDiscipline for Wf2qDiscipline {
    fn push(&mut self, packet: EmulatedPacket, _bytes: u64) {
        self.forget_taken();
        let rest = self.rest();
        if rest == 0 {
            let key = FiveTuple::parse(packet.frame()).ok();
            let place = self.place(rest, key.as_ref());
            return self.line_up(place, packet);
        }
        let key = owners::socket(&packet);
        let class = match (packet.sender, self.owners.meet(packet.times.first, key.as_ref())) {
            (SenderClass::Class(class), _) => class.min(rest),
            (_, FlowOwnerStatus::Class(class)) => class,
            _ => rest,
        };
        let place = self.place(class, key.as_ref());
        self.line_up(place, packet);
    }

    fn front(&mut self, _now: Time) -> Option<(&EmulatedPacket, u64)> {
        self.settle();
        let class = self.level.next()?;
        let flow = self.classes[index(class)].first()?;
        self.current = ClassFlowIndex { class, flow };
        self.classes[index(class)].front(flow)
    }

    fn pop(&mut self, overhead: u32) -> Option<EmulatedPacket> {
        let ClassFlowIndex { class, flow } = self.current;
        let packet = self.classes.get_mut(index(class))?.pop(flow, overhead)?;
        self.taken = Some(self.current);
        if self.rest() > 0 {
            let owner = self.owners.look_up(owners::socket(&packet).as_ref());
            self.attribution = Attribution { owner, sender: packet.sender };
        }
        Some(packet)
    }

    fn unpop(&mut self, packet: EmulatedPacket, overhead: u32) {
        let ClassFlowIndex { class, flow } = self.current;
        if let Some(class) = self.classes.get_mut(index(class)) {
            class.unpop(flow, packet, overhead);
        }
    }

    fn charge(&mut self, shape: &PacketTrainShape, overhead: u32) {
        let ClassFlowIndex { class, flow } = self.current;
        self.taken = None;
        self.level.serve(class, shape, overhead);
        self.classes[index(class)].serve(flow, shape, overhead);
        self.serving = Some(PacketTransmission { class, bytes: shape.charge(overhead), passed: 0 });
        self.count(class, shape);
    }

    fn drop_some(&mut self, overhead: u32, sink: &mut QueueDropSink<'_>) -> (u64, u64) {
        self.forget_taken();
        let classes = self.classes.iter_mut().zip(0..);
        let longest = classes.max_by_key(|(class, _)| class.bytes);
        let Some((class, number)) = longest else { return (0, 0) };
        let Some((flow, bytes)) = class.drop_newest(overhead, sink) else { return (0, 0) };
        self.amend(ClassFlowIndex { class: number, flow });
        (1, bytes)
    }

    fn recount(&mut self, overhead: u32) -> u64 {
        self.overhead = overhead;
        self.classes.iter_mut().map(|class| class.recount(overhead)).sum()
    }
}

/// Without a rate nothing waits, and only the proportions are looked at.
fn shares(setting: &Setting, rate: Option<Rate>) -> Vec<u64> {
    let rate = rate.unwrap_or(const { Rate::from_bits_per_second(1 << 40).expect("not zero") });
    setting.shares(rate)
}
