//! The flows that a machine's nodes send, as their packets show them.
//!
//! A TCP flow begins with its first byte of data (what only acknowledges has no share of its own)
//! and ends when it has said so (FIN, RST) and its queue is empty, or has been silent for a second.
//! All others are counted by periods of 50 ms, and have a share from the end of the first until one
//! without a packet.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use windtunnel_model::{Rate, Span, Time};
use windtunnel_sharing::{DemandEstimator, FlowId};
use windtunnel_wire::flow::FiveTuple;
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::tcp;

/// How often use is measured.
pub(crate) const PERIOD: Span = Span::from_millis(50);

/// Periods of silence after which a TCP flow has ended.
const SILENCE: u32 = 20;

/// FIN or RST.
const ENDS: u8 = 0x01 | 0x04;

/// All flows that have sent something lately.
#[derive(Debug, Default)]
pub(crate) struct SourceFlowTable {
    flows: BTreeMap<FiveTuple, SourceFlow>,
    keys: BTreeMap<FlowId, FiveTuple>,
    /// The number of the next flow.
    next: u64,
    /// The end of the present period; `None`: there are no flows.
    tick: Option<Time>,
}

/// One flow.
#[derive(Debug)]
pub(crate) struct SourceFlow {
    pub(crate) id: FlowId,
    /// Which shaper it passes.
    pub(crate) path: usize,
    is_tcp: bool,
    /// Whether it has a share.
    pub(crate) runs: bool,
    pub(crate) estimator: DemandEstimator,
    /// Bytes of the wire in this period.
    pub(crate) bytes: u64,
    /// The number that its last segment got at the shaper.
    pub(crate) last: u64,
    silent: u32,
    ending: bool,
}

/// What a packet means to its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowSignal {
    is_tcp: bool,
    has_data: bool,
    ends: bool,
}

impl FlowSignal {
    pub(crate) fn of(packet: &ParsedPacket<'_>) -> Self {
        let info = &packet.info;
        let is_tcp = info.protocol == tcp::PROTOCOL && !info.is_fragment;
        let segment = is_tcp.then(|| tcp::TcpSegment::parse(packet.payload()).ok()).flatten();
        FlowSignal {
            is_tcp,
            has_data: segment.is_none_or(|segment| !segment.payload().is_empty()),
            ends: segment.is_some_and(|segment| segment.flags() & ENDS != 0),
        }
    }

    /// Whether a packet of no known flow begins one.
    pub(crate) fn begins(self) -> bool {
        self.has_data
    }
}

impl SourceFlowTable {
    /// The flow of a packet, if it is known.
    pub(crate) fn meet(&mut self, key: &FiveTuple, signal: FlowSignal) -> Option<&mut SourceFlow> {
        let flow = self.flows.get_mut(key)?;
        flow.ending |= signal.ends;
        Some(flow)
    }

    /// Adds a flow that `path` carries; a TCP flow runs at once.
    pub(crate) fn add(
        &mut self,
        now: Time,
        key: FiveTuple,
        signal: FlowSignal,
        path: usize,
    ) -> &mut SourceFlow {
        let id = FlowId(self.next);
        self.next += 1;
        self.keys.insert(id, key);
        self.tick.get_or_insert(now + PERIOD);
        self.flows.entry(key).or_insert(SourceFlow {
            id,
            path,
            is_tcp: signal.is_tcp,
            runs: signal.is_tcp,
            estimator: DemandEstimator::new(),
            bytes: 0,
            last: 0,
            silent: 0,
            ending: signal.ends,
        })
    }

    pub(crate) fn flow(&self, id: FlowId) -> Option<&SourceFlow> {
        self.flows.get(self.keys.get(&id)?)
    }

    pub(crate) fn keys(&self) -> Vec<FiveTuple> {
        self.flows.keys().copied().collect()
    }

    /// Those that have a share.
    pub(crate) fn running(&self) -> Vec<(FiveTuple, FlowId, usize)> {
        let running = self.flows.iter().filter(|(_, flow)| flow.runs);
        running.map(|(key, flow)| (*key, flow.id, flow.path)).collect()
    }

    pub(crate) fn get_mut(&mut self, key: &FiveTuple) -> Option<&mut SourceFlow> {
        self.flows.get_mut(key)
    }

    pub(crate) fn remove(&mut self, key: &FiveTuple) {
        if let Some(flow) = self.flows.remove(key) {
            self.keys.remove(&flow.id);
        }
        if self.flows.is_empty() {
            self.tick = None;
        }
    }

    /// When the present period ends.
    pub(crate) fn next(&self) -> Option<Time> {
        self.tick
    }

    /// The end of a period, if it has come; the next one has begun then.
    pub(crate) fn take(&mut self, now: Time) -> Option<Time> {
        let at = self.tick.filter(|at| *at <= now)?;
        self.tick = Some(at + PERIOD);
        Some(at)
    }
}

impl SourceFlow {
    /// A packet has come, whose last segment has this number at the shaper.
    pub(crate) fn bring(&mut self, bytes: u64, last: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.last = last;
    }

    /// Whether it has brought more in this period than its share carries in one.
    pub(crate) fn exceeds(&self, share: Option<Rate>) -> bool {
        share.is_some_and(|share| self.bytes > share.bytes_in(PERIOD))
    }

    /// Whether it has brought less than half of that.
    pub(crate) fn idles(&self, share: Option<Rate>) -> bool {
        share.is_some_and(|share| self.bytes < share.bytes_in(PERIOD) / 2)
    }

    /// A period is over; whether the flow has ended. `waits`: packets of it are still in the queue.
    pub(crate) fn has_ended(&mut self, waits: bool) -> bool {
        self.silent = if self.bytes == 0 { self.silent + 1 } else { 0 };
        let patience = if self.is_tcp && !self.ending { SILENCE } else { 1 };
        self.silent >= patience && !waits
    }
}
