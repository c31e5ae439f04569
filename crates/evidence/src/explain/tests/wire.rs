//! A network of two links and a hand-written TCP over it, whose every delay is known.

use windtunnel_model::record::flag;
use windtunnel_model::record::kind::Call;

use crate::history::{
    CallSpan, DirectedLinkEnds, EndpointRole, FlowHistory, PacketEvent, PacketKind,
};

/// client → router → server, and back: lanes 0 and 1, 2 and 3.
pub(crate) const LANES: [DirectedLinkEnds; 4] = [
    DirectedLinkEnds { from: 0, to: 1 },
    DirectedLinkEnds { from: 1, to: 2 },
    DirectedLinkEnds { from: 2, to: 1 },
    DirectedLinkEnds { from: 1, to: 0 },
];

pub(crate) struct Wire {
    pub(crate) history: FlowHistory,
    /// By lane: nanoseconds a byte, latency, and when it is free again.
    lanes: [(u64, u64, u64); 4],
}

/// A packet: its begin, length and what it acknowledges.
#[derive(Clone, Copy)]
pub(crate) struct Packet {
    pub(crate) offset: u64,
    pub(crate) length: u32,
    pub(crate) ack: u64,
    pub(crate) flags: u8,
    /// The lane that drops it.
    pub(crate) drop: Option<u32>,
}

pub(crate) fn data(offset: u64, length: u32) -> Packet {
    Packet { offset, length, ack: 0, flags: 0, drop: None }
}

pub(crate) fn ack(upto: u64) -> Packet {
    Packet { offset: 0, length: 0, ack: upto, flags: flag::ACK, drop: None }
}

impl Packet {
    pub(crate) fn dropped_on(self, lane: u32) -> Packet {
        Packet { drop: Some(lane), ..self }
    }

    pub(crate) fn with(self, flags: u8) -> Packet {
        Packet { flags: self.flags | flags, ..self }
    }
}

impl Wire {
    /// Lanes by nanoseconds a byte and latency.
    pub(crate) fn new(lanes: [(u64, u64); 4]) -> Wire {
        let history = FlowHistory { calls_recorded: [true; 2], ..FlowHistory::default() };
        Wire { history, lanes: lanes.map(|(byte, latency)| (byte, latency, 0)) }
    }

    /// Sends a packet at a time; when it arrives, unless it is dropped.
    pub(crate) fn send(&mut self, from: EndpointRole, time: u64, packet: Packet) -> Option<u64> {
        let first = 2 * u32::try_from(from.index()).unwrap();
        let mut time = time;
        for lane in [first, first + 1] {
            let mut put = |time, kind, value| {
                let Packet { offset, length, flags, .. } = packet;
                let event =
                    PacketEvent { time, offset, value, length, segments: 1, lane, kind, flags };
                self.history.packets[from.index()].push(event);
            };
            put(time, PacketKind::Offered, packet.ack);
            if packet.drop == Some(lane) {
                put(time, PacketKind::Dropped, 3);
                return None;
            }
            let (byte, latency, free) = &mut self.lanes[lane as usize];
            let sent = time.max(*free);
            *free = sent + *byte * u64::from(packet.length);
            put(sent, PacketKind::Sent, *byte * u64::from(packet.length));
            time = *free + *latency;
            put(time, PacketKind::Delivered, *latency);
        }
        Some(time)
    }

    /// A call that ended as wanted.
    pub(crate) fn call(
        &mut self,
        side: EndpointRole,
        call: Call,
        span: (u64, u64),
        bytes: (u64, u64),
    ) {
        let length = u32::try_from(bytes.1 - bytes.0).unwrap();
        self.history.calls[side.index()].push(CallSpan {
            begin: span.0,
            end: span.1,
            call,
            offset: bytes.0,
            asked: length,
            result: i32::try_from(length).unwrap(),
        });
    }

    pub(crate) fn write(&mut self, side: EndpointRole, span: (u64, u64), bytes: (u64, u64)) {
        self.call(side, Call::Write, span, bytes);
    }

    pub(crate) fn read(&mut self, side: EndpointRole, span: (u64, u64), bytes: (u64, u64)) {
        self.call(side, Call::Read, span, bytes);
    }

    /// The history, sorted.
    pub(crate) fn history(mut self) -> FlowHistory {
        for side in EndpointRole::BOTH {
            self.history.packets[side.index()].sort_by_key(|packet| packet.time);
            self.history.calls[side.index()].sort_by_key(|call| call.begin);
            self.history.samples[side.index()].sort_by_key(|sample| sample.time);
        }
        self.history
    }
}

impl Wire {
    /// Other traffic has the lane until then.
    pub(crate) fn lane_is_free_at(&mut self, lane: usize, time: u64) {
        self.lanes[lane].2 = time;
    }
}

impl Wire {
    /// A call with a datagram: its number and length.
    fn datagram(
        &mut self,
        side: EndpointRole,
        call: Call,
        span: (u64, u64),
        number: u64,
        length: i32,
    ) {
        self.history.calls[side.index()].push(CallSpan {
            begin: span.0,
            end: span.1,
            call,
            offset: number,
            asked: 1500,
            result: length,
        });
    }

    pub(crate) fn write_datagram(
        &mut self,
        side: EndpointRole,
        span: (u64, u64),
        number: u64,
        length: i32,
    ) {
        self.datagram(side, Call::Sendto, span, number, length);
    }

    pub(crate) fn read_datagram(
        &mut self,
        side: EndpointRole,
        span: (u64, u64),
        number: u64,
        length: i32,
    ) {
        self.datagram(side, Call::Recvfrom, span, number, length);
    }
}
