//! Flow queues: each flow waits in a queue of its own, with CoDel in each, and they take turns.
//!
//! - **Parameters**: `flows`, the number of queues that flows are hashed to (default 1024);
//!   `quantum`, bytes with overhead that a flow sends in its turn (default 1514); `target`,
//!   `interval` and `ecn` of [`codel`](super::codel). For `fair` also `by`, the address that
//!   distinguishes hosts (default the destination). The queue's limit holds for all flows together;
//!   its default is 10 240 packets.
//! - **Time**: a flow that has just come is served before those that have had a turn. **Order**:
//!   kept within a flow. **Bytes**: the ECN field of marked ones. Trains are cut where a turn ends;
//!   a flow that is alone keeps them whole, as CoDel does, while there is room for 1000 packets
//!   more.
//! - **Drop reasons**: `aqm`, from CoDel; `queue_full` at the limit: half of the packets of the
//!   flow with the most bytes, at most 64, the oldest first.
//! - **Model**: FQ-CoDel is RFC 8290. The hash is of the five-tuple (of the addresses where there
//!   are no ports, and one queue for all that is not IP), and depends on seed, link and direction.
//!   As the RFC has it and unlike Linux, CoDel looks at its flow's backlog and overflow does not
//!   advance its state. `fair` is deficit round robin over hosts above that over each host's flows;
//!   CAKE (Høiland-Jørgensen, Täht and Morton 2018) divides a quantum by the number of flows
//!   instead, costs more the more there are, and has another hash, a shaper, priorities and an ACK
//!   filter, which are not here.

mod round_robin;
mod store;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::profile::{FairBy, FlowQueues as Setting, HostFairParameters};
use windtunnel_model::random::RandomStream;
use windtunnel_model::{DropReason, Time};
use windtunnel_wire::flow::FiveTuple;

use super::codel::CodelDiscipline;
use super::decision::{DequeueVerdict, Head};
use super::drop_sink::QueueDropSink;
use super::multi_queue::MultiQueueDiscipline;
use crate::packet::{EmulatedPacket, PacketTrainShape};
pub(super) use round_robin::{NONE, index};
use round_robin::{RoundRobin, RoundRobinEntry};
use store::{PacketSlab, PacketSlabQueue};

/// The most that one overflow drops.
const BATCH_MOST: u64 = 64;

#[derive(Debug)]
pub(super) struct FlowQueueDiscipline {
    setting: Setting,
    quantum: i64,
    stream: RandomStream,
    /// By hash: the flow.
    buckets: Box<[u32]>,
    flows: Vec<CodelFlowQueue>,
    turns: Vec<RoundRobinEntry>,
    /// Of the flows, or of the hosts where there are.
    schedule: RoundRobin,
    hosts: Option<HostRoundRobin>,
    /// The flow in turn.
    current: u32,
    store: PacketSlab,
}

#[derive(Debug)]
struct CodelFlowQueue {
    waiting: PacketSlabQueue,
    packets: u64,
    bytes: u64,
    host: u32,
    codel: CodelDiscipline,
}

/// The hosts that share first.
#[derive(Debug)]
struct HostRoundRobin {
    by: FairBy,
    buckets: Box<[u32]>,
    turns: Vec<RoundRobinEntry>,
    /// Of the flows of each.
    schedules: Vec<RoundRobin>,
}

impl FlowQueueDiscipline {
    pub(super) fn new(setting: Setting, stream: RandomStream) -> Self {
        FlowQueueDiscipline {
            setting,
            quantum: i64::from(setting.quantum.max(1)),
            stream,
            buckets: vec![NONE; index(setting.flows.max(1))].into_boxed_slice(),
            flows: Vec::new(),
            turns: Vec::new(),
            schedule: RoundRobin::EMPTY,
            hosts: None,
            current: NONE,
            store: PacketSlab::new(),
        }
    }

    pub(super) fn fair(setting: HostFairParameters, stream: RandomStream) -> Self {
        let mut flows = FlowQueueDiscipline::new(setting.queues, stream);
        flows.hosts = Some(HostRoundRobin {
            by: setting.by,
            buckets: flows.buckets.clone(),
            turns: Vec::new(),
            schedules: Vec::new(),
        });
        flows
    }

    pub(super) fn inspect(
        &mut self,
        head: &Head,
        shape: &PacketTrainShape,
        overhead: u32,
    ) -> DequeueVerdict {
        match self.flows[index(self.current)].codel.inspect(head) {
            DequeueVerdict::Pass(count) => {
                DequeueVerdict::Pass(count.min(self.allowed(shape, overhead)))
            }
            other => other,
        }
    }

    /// A flow that is alone has its next turn at once.
    fn renew(&mut self) {
        let (flow, quantum) = (index(self.current), self.quantum);
        let (turns, host) = (&mut self.turns, index(self.flows[flow].host));
        let spent = turns[flow].renew(quantum);
        match &mut self.hosts {
            None if spent => self.schedule.ripen(turns),
            None => {}
            Some(hosts) => {
                if spent {
                    hosts.schedules[host].ripen(turns);
                }
                if hosts.turns[host].renew(quantum) {
                    self.schedule.ripen(&mut hosts.turns);
                }
            }
        }
    }

    fn select(&mut self, now: Time) -> Option<u32> {
        let flows = &mut self.flows;
        let mut is_done = |number| {
            let flow: &mut CodelFlowQueue = &mut flows[index(number)];
            let done = flow.waiting.is_empty();
            if done {
                flow.codel.emptied(now);
            }
            done
        };
        let (turns, quantum) = (&mut self.turns, self.quantum);
        let Some(HostRoundRobin { turns: hosts, schedules, .. }) = &mut self.hosts else {
            return self.schedule.select(turns, quantum, is_done);
        };
        let mut flow = None;
        self.schedule.select(hosts, quantum, |host| {
            flow = schedules[index(host)].select(turns, quantum, &mut is_done);
            flow.is_none()
        })?;
        flow
    }

    /// How many segments may go before it is another's turn.
    fn allowed(&self, shape: &PacketTrainShape, overhead: u32) -> u32 {
        if self.is_alone() {
            return shape.count;
        }
        let full = u64::from(shape.each) + u64::from(overhead);
        let flow = self.turns[index(self.current)].covers(full);
        let host = self.flows[index(self.current)].host;
        self.hosts.as_ref().map_or(flow, |hosts| flow.min(hosts.turns[index(host)].covers(full)))
    }

    fn is_alone(&self) -> bool {
        let of_host = |hosts: &HostRoundRobin| {
            let host = self.flows.get(index(self.current)).map_or(NONE, |flow| flow.host);
            hosts.schedules.get(index(host)).is_none_or(|schedule| schedule.listed() <= 1)
        };
        self.schedule.listed() <= 1 && self.hosts.as_ref().is_none_or(of_host)
    }

    /// The flow with this key, made where its hash is met first.
    fn flow_of(&mut self, key: Option<&FiveTuple>) -> u32 {
        let hash = key.map_or(0, FiveTuple::hash64);
        let bucket = bucket(self.stream.at(hash), self.buckets.len());
        if self.buckets[bucket] == NONE {
            self.buckets[bucket] = u32::try_from(self.flows.len()).unwrap_or(NONE);
            self.turns.push(RoundRobinEntry::NEW);
            self.flows.push(CodelFlowQueue {
                waiting: PacketSlabQueue::EMPTY,
                packets: 0,
                bytes: 0,
                host: NONE,
                codel: CodelDiscipline::new(self.setting.codel),
            });
        }
        self.buckets[bucket]
    }

    /// Lets a flow take turns. Its host is the one of the packet with which it begins.
    fn list(&mut self, number: u32, key: Option<&FiveTuple>) {
        let Some(hosts) = &mut self.hosts else {
            return self.schedule.enter(&mut self.turns, number, self.quantum);
        };
        let flow = &mut self.flows[index(number)];
        if !self.turns[index(number)].is_listed() {
            flow.host = hosts.host_of(key, &self.stream);
        }
        hosts.schedules[index(flow.host)].enter(&mut self.turns, number, self.quantum);
        self.schedule.enter(&mut hosts.turns, flow.host, self.quantum);
    }
}

impl MultiQueueDiscipline for FlowQueueDiscipline {
    fn push(&mut self, packet: EmulatedPacket, bytes: u64) {
        let key = FiveTuple::parse(packet.frame()).ok();
        let number = self.flow_of(key.as_ref());
        self.list(number, key.as_ref());
        let flow = &mut self.flows[index(number)];
        flow.packets += u64::from(packet.shape.count);
        flow.bytes += bytes;
        self.store.push_back(&mut flow.waiting, packet);
    }

    fn front(&mut self, now: Time) -> Option<(&EmulatedPacket, u64)> {
        self.current = self.select(now)?;
        let flow = &self.flows[index(self.current)];
        Some((self.store.front(&flow.waiting)?, flow.bytes))
    }

    fn pop(&mut self, overhead: u32) -> Option<EmulatedPacket> {
        let flow = self.flows.get_mut(index(self.current))?;
        take(&mut self.store, flow, overhead)
    }

    fn unpop(&mut self, packet: EmulatedPacket, overhead: u32) {
        let Some(flow) = self.flows.get_mut(index(self.current)) else { return };
        flow.packets += u64::from(packet.shape.count);
        flow.bytes += packet.shape.charge(overhead);
        self.store.push_front(&mut flow.waiting, packet);
    }

    fn charge(&mut self, shape: &PacketTrainShape, overhead: u32) {
        let alone = self.is_alone();
        let full = u64::from(shape.each) + u64::from(overhead);
        for rest in (0..shape.count).rev() {
            if alone {
                self.renew();
            }
            let bytes = if rest == 0 { u64::from(shape.last) + u64::from(overhead) } else { full };
            let flow = index(self.current);
            self.turns[flow].charge(bytes);
            if let Some(hosts) = &mut self.hosts {
                hosts.turns[index(self.flows[flow].host)].charge(bytes);
            }
        }
    }

    /// From the flow with the most bytes.
    fn drop_some(&mut self, overhead: u32, sink: &mut QueueDropSink<'_>) -> (u64, u64) {
        let fattest = self.flows.iter_mut().max_by_key(|flow| flow.bytes);
        let Some(flow) = fattest.filter(|flow| flow.packets > 0) else { return (0, 0) };
        let (packets, bytes) = (flow.packets, flow.bytes);
        let mut left = (packets / 2).clamp(1, BATCH_MOST);
        while left > 0 {
            let Some(packet) = take(&mut self.store, flow, overhead) else { break };
            let gone = packet.shape.count.min(u32::try_from(left).unwrap_or(u32::MAX));
            left -= u64::from(gone);
            if let Some(rest) = sink.drop_front(DropReason::QueueFull, packet, gone) {
                flow.packets += u64::from(rest.shape.count);
                flow.bytes += rest.shape.charge(overhead);
                self.store.push_front(&mut flow.waiting, rest);
            }
        }
        (packets - flow.packets, bytes - flow.bytes)
    }

    fn recount(&mut self, overhead: u32) -> u64 {
        for flow in &mut self.flows {
            let packets = self.store.packets(&flow.waiting);
            flow.bytes = packets.map(|packet| packet.shape.charge(overhead)).sum();
        }
        self.flows.iter().map(|flow| flow.bytes).sum()
    }
}

impl HostRoundRobin {
    fn host_of(&mut self, key: Option<&FiveTuple>, stream: &RandomStream) -> u32 {
        let address = key.map(|key| match self.by {
            FairBy::Source => key.source,
            FairBy::Destination => key.destination,
        });
        let hash = address.map_or(0, |address| {
            let none = FiveTuple {
                source: address,
                destination: address,
                protocol: 0,
                source_port: 0,
                destination_port: 0,
            };
            none.hash64()
        });
        let bucket = bucket(stream.at(hash), self.buckets.len());
        if self.buckets[bucket] == NONE {
            self.buckets[bucket] = u32::try_from(self.schedules.len()).unwrap_or(NONE);
            self.turns.push(RoundRobinEntry::NEW);
            self.schedules.push(RoundRobin::EMPTY);
        }
        self.buckets[bucket]
    }
}

fn take(
    store: &mut PacketSlab,
    flow: &mut CodelFlowQueue,
    overhead: u32,
) -> Option<EmulatedPacket> {
    let packet = store.pop(&mut flow.waiting)?;
    flow.packets -= u64::from(packet.shape.count);
    flow.bytes -= packet.shape.charge(overhead);
    Some(packet)
}

/// One of `count` by an even draw.
pub(super) fn bucket(draw: u64, count: usize) -> usize {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    let bucket = (u128::from(draw) * u128::from(count)) >> 64;
    usize::try_from(bucket).unwrap_or(0)
}
