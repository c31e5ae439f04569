//! Calls on datagrams, by the numbers of their packets.
//!
//! A sender's n-th datagram is the n-th packet of its direction. What a receiver reads as its n-th
//! is the n-th that came to it: lost ones are not counted there. Both joins are checked by lengths.

use std::fmt;

use super::program::{DataCall, SocketCallHistory};
use super::route::FlowDirectionRoute;
use crate::history::{
    CallSpan, DirectedLinkEnds, EndpointRole, FlowHistory, PacketEvent, PacketKind, is_read,
    is_write,
};

/// A call and a packet that should be of one datagram have different lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramLengthMismatch {
    /// Who sent it.
    pub sender: EndpointRole,
    pub number: u64,
    /// Whether it was written, or read.
    pub is_write: bool,
    pub call_bytes: u32,
    pub packet_bytes: u32,
}

impl fmt::Display for DatagramLengthMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DatagramLengthMismatch { sender, number, call_bytes, packet_bytes, .. } = self;
        let verb = if self.is_write { "written" } else { "read" };
        let sender = sender.name();
        write!(f, "datagram {number} of the {sender} was {verb} with {call_bytes} bytes, ")?;
        write!(f, "but its packet has {packet_bytes}: calls and packets do not join")
    }
}

/// A side's calls, with the numbers of the packets.
///
/// # Errors
/// Where the lengths say that a call and its packet are not of one datagram.
pub(super) fn program(
    history: &FlowHistory,
    side: EndpointRole,
    routes: &[FlowDirectionRoute; 2],
    lanes: &[DirectedLinkEnds],
) -> Result<SocketCallHistory, DatagramLengthMismatch> {
    let on_way = |sender: EndpointRole,
                  kind: PacketKind,
                  at_end: fn(&FlowDirectionRoute, &DirectedLinkEnds) -> bool| {
        let route = &routes[sender.index()];
        let packets = history.packets[sender.index()].iter();
        packets.filter(move |packet| {
            let lane = lanes.get(packet.lane as usize);
            packet.kind == kind && lane.is_some_and(|lane| at_end(route, lane))
        })
    };
    let mut sent: Vec<&PacketEvent> =
        on_way(side, PacketKind::Offered, FlowDirectionRoute::is_entry).collect();
    sent.sort_by_key(|packet| packet.offset);
    let came: Vec<&PacketEvent> =
        on_way(side.peer(), PacketKind::Delivered, FlowDirectionRoute::is_exit).collect();
    if !history.calls_recorded[side.index()] {
        return Ok(seen_by_packets(&sent, &came));
    }
    let mut calls = Vec::new();
    let mut reads = 0;
    for call in history.calls[side.index()].iter().filter(|call| call.result >= 0) {
        if is_write(call.call) {
            let at = sent.binary_search_by_key(&call.offset, |packet| packet.offset);
            let packet = at.ok().map(|at| sent[at]);
            calls.push(checked(call, side, packet)?);
        } else if is_read(call.call) {
            calls.push(checked(call, side.peer(), came.get(reads).copied())?);
            reads += 1;
        }
    }
    Ok(SocketCallHistory::new(true, calls))
}

/// What packets show of a side's calls.
fn seen_by_packets(sent: &[&PacketEvent], came: &[&PacketEvent]) -> SocketCallHistory {
    let sent = sent.iter().map(|packet| (packet, true));
    let calls = sent.chain(came.iter().map(|packet| (packet, false)));
    let calls = calls.map(|(packet, is_write)| DataCall {
        begin: packet.time,
        end: packet.time,
        from: packet.offset,
        to: packet.offset + 1,
        is_write,
        is_short: false,
    });
    SocketCallHistory::new(false, calls.collect())
}

fn checked(
    call: &CallSpan,
    sender: EndpointRole,
    packet: Option<&PacketEvent>,
) -> Result<DataCall, DatagramLengthMismatch> {
    let (bytes, is_write) = (call.result.unsigned_abs(), is_write(call.call));
    let number = packet.map_or(call.offset, |packet| packet.offset);
    if let Some(packet) = packet {
        let is_cut = !is_write && bytes == call.asked && packet.length > bytes;
        if packet.length != bytes && !is_cut {
            let (call_bytes, packet_bytes) = (bytes, packet.length);
            return Err(DatagramLengthMismatch {
                sender,
                number,
                is_write,
                call_bytes,
                packet_bytes,
            });
        }
    }
    let (begin, end) = (call.begin, call.end.max(call.begin));
    Ok(DataCall { begin, end, from: number, to: number + 1, is_write, is_short: false })
}
