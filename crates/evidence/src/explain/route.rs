//! The way of a direction's packets over lanes, and a byte's journey on it.

use super::part::LatencyComponent;
use super::passage::{PacketPassage, PacketPassageIndex};
use super::walk::LatencyAttribution;
use crate::history::{DirectedLinkEnds, EndpointRole, FlowHistory, PacketEvent, PacketKind};

/// One direction's packets, by lane.
#[derive(Debug, Default)]
pub(crate) struct FlowDirectionRoute {
    lanes: Vec<DirectedLinkPassages>,
    sender: Option<u32>,
    receiver: Option<u32>,
}

/// The packets on one lane.
#[derive(Debug)]
pub(crate) struct DirectedLinkPassages {
    pub(crate) lane: u32,
    ends: DirectedLinkEnds,
    pub(crate) offered: PacketPassageIndex,
    pub(crate) sent: PacketPassageIndex,
    pub(crate) delivered: PacketPassageIndex,
    pub(crate) dropped: PacketPassageIndex,
}

/// The places of both sides, as far as packets show them: the flow's first lanes start there, and
/// its last ones end there.
pub(crate) fn places(history: &FlowHistory, lanes: &[DirectedLinkEnds]) -> [Option<u32>; 2] {
    let start = |packets: &[PacketEvent]| {
        let first = packets.iter().find(|packet| packet.kind == PacketKind::Offered)?;
        Some(lanes.get(first.lane as usize)?.from)
    };
    let end = |packets: &[PacketEvent]| {
        let used = packets.iter().filter_map(|packet| lanes.get(packet.lane as usize));
        let last = used.clone().find(|lane| !used.clone().any(|other| other.from == lane.to));
        last.map(|lane| lane.to)
    };
    let [forward, reverse] = &history.packets;
    [start(forward).or_else(|| end(reverse)), start(reverse).or_else(|| end(forward))]
}

impl FlowDirectionRoute {
    /// The way of those packets in the direction of `sender` of which `range` says what they
    /// carry: an offset and a length.
    pub(crate) fn new(
        history: &FlowHistory,
        sender: EndpointRole,
        lanes: &[DirectedLinkEnds],
        places: [Option<u32>; 2],
        range: impl Fn(&PacketEvent) -> Option<(u64, u64)>,
    ) -> FlowDirectionRoute {
        let mut route = FlowDirectionRoute {
            lanes: Vec::new(),
            sender: places[sender.index()],
            receiver: places[sender.peer().index()],
        };
        for packet in &history.packets[sender.index()] {
            let Some((offset, length)) = range(packet) else { continue };
            let Some(ends) = lanes.get(packet.lane as usize) else { continue };
            route.on_lane(packet.lane, *ends).point(packet.kind).push(packet, offset, length);
        }
        for lane in &mut route.lanes {
            for kind in PacketKind::ALL {
                lane.point(kind).sort();
            }
        }
        route
    }

    fn on_lane(&mut self, lane: u32, ends: DirectedLinkEnds) -> &mut DirectedLinkPassages {
        let at = self.lanes.iter().position(|known| known.lane == lane).unwrap_or_else(|| {
            self.lanes.push(DirectedLinkPassages::new(lane, ends));
            self.lanes.len() - 1
        });
        &mut self.lanes[at]
    }

    /// All lanes.
    pub(crate) fn lanes(&self) -> &[DirectedLinkPassages] {
        &self.lanes
    }

    /// Whether the lane starts at the sender.
    pub(crate) fn is_entry(&self, lane: &DirectedLinkEnds) -> bool {
        Some(lane.from) == self.sender
    }

    /// Whether the lane ends at the receiver.
    pub(crate) fn is_exit(&self, lane: &DirectedLinkEnds) -> bool {
        Some(lane.to) == self.receiver
    }

    /// When the byte was first sent.
    pub(crate) fn first_entered(&self, byte: u64) -> Option<u64> {
        let entries = self.lanes.iter().filter(|lane| self.is_entry(&lane.ends));
        entries.filter_map(|lane| Some(lane.offered.first(byte)?.time)).min()
    }

    /// When a packet with the byte was sent, the latest until then.
    pub(crate) fn last_entered(&self, byte: u64, until: u64) -> Option<u64> {
        let entries = self.lanes.iter().filter(|lane| self.is_entry(&lane.ends));
        entries.filter_map(|lane| Some(lane.offered.latest(byte, until)?.time)).max()
    }

    /// When the byte first came to the receiver.
    pub(crate) fn first_arrived(&self, byte: u64) -> Option<u64> {
        let exits = self.lanes.iter().filter(|lane| self.is_exit(&lane.ends));
        exits.filter_map(|lane| Some(lane.delivered.first(byte)?.time)).min()
    }

    /// When a packet with the byte came to the receiver, the latest until then.
    pub(crate) fn last_arrived(&self, byte: u64, until: u64) -> Option<u64> {
        let exits = self.lanes.iter().filter(|lane| self.is_exit(&lane.ends));
        exits.filter_map(|lane| Some(lane.delivered.latest(byte, until)?.time)).max()
    }

    /// Where, when and why a packet with the byte was dropped, the latest until then.
    pub(crate) fn dropped(&self, byte: u64, until: u64) -> Option<(u32, &PacketPassage)> {
        let drops = self.lanes.iter();
        let drops = drops.filter_map(|lane| Some((lane.lane, lane.dropped.latest(byte, until)?)));
        drops.max_by_key(|(_, passage)| passage.time)
    }

    /// Walks back over the lanes that the byte came by, from its arrival at the receiver to where
    /// it was sent; returns when that was.
    pub(crate) fn journey(
        &self,
        byte: u64,
        arrival: u64,
        walk: &mut LatencyAttribution,
    ) -> Option<u64> {
        let (mut place, mut time) = (self.receiver, arrival);
        let mut entered = None;
        for _ in 0..LANES_MAX {
            let Some((lane, delivered)) = self.last_delivered(place, byte, time) else { break };
            walk.back_to(delivered.time, LatencyComponent::Propagation(lane.lane));
            time = lane.back_over(byte, delivered, walk);
            place = Some(lane.ends.from);
            entered = Some(time);
            if place == self.sender {
                break;
            }
        }
        entered
    }

    fn last_delivered(
        &self,
        place: Option<u32>,
        byte: u64,
        until: u64,
    ) -> Option<(&DirectedLinkPassages, &PacketPassage)> {
        let lanes = self.lanes.iter().filter(|lane| Some(lane.ends.to) == place);
        let found = lanes.filter_map(|lane| Some((lane, lane.delivered.latest(byte, until)?)));
        found.max_by_key(|(_, passage)| passage.time)
    }
}

impl DirectedLinkPassages {
    fn new(lane: u32, ends: DirectedLinkEnds) -> DirectedLinkPassages {
        DirectedLinkPassages {
            lane,
            ends,
            offered: PacketPassageIndex::default(),
            sent: PacketPassageIndex::default(),
            delivered: PacketPassageIndex::default(),
            dropped: PacketPassageIndex::default(),
        }
    }

    fn point(&mut self, kind: PacketKind) -> &mut PacketPassageIndex {
        match kind {
            PacketKind::Offered => &mut self.offered,
            PacketKind::Sent => &mut self.sent,
            PacketKind::Delivered => &mut self.delivered,
            PacketKind::Dropped => &mut self.dropped,
        }
    }

    /// From the delivery of a byte to when it was offered, which it returns.
    fn back_over(
        &self,
        byte: u64,
        delivered: &PacketPassage,
        walk: &mut LatencyAttribution,
    ) -> u64 {
        let mut time = delivered.time.saturating_sub(delivered.value);
        walk.back_to(time, LatencyComponent::Propagation(self.lane));
        if let Some(sent) = self.sent.latest(byte, time) {
            // What passes between the end of the transmission and the delay is the lane's, too.
            walk.back_to(sent.time + sent.value, LatencyComponent::Propagation(self.lane));
            walk.back_to(sent.time, LatencyComponent::Transmission(self.lane));
            time = sent.time;
        }
        if let Some(offered) = self.offered.latest(byte, time) {
            walk.back_to(offered.time, LatencyComponent::Queue(self.lane));
            time = offered.time;
        }
        time
    }
}

impl PacketKind {
    const ALL: [PacketKind; 4] =
        [PacketKind::Offered, PacketKind::Sent, PacketKind::Delivered, PacketKind::Dropped];
}

/// No way is longer; a ring of routes ends there.
const LANES_MAX: usize = 256;
