//! All that is asked of a flow's history, prepared once.

use windtunnel_model::record::flag;

use super::acks::AckTimeline;
use super::arrivals::InOrderDeliverySeries;
use super::datagrams::{self, DatagramLengthMismatch};
use super::hold::{BottleneckOccupancy, SenderHistory, progress};
use super::losses::RetransmissionHistory;
use super::program::SocketCallHistory;
use super::route::{FlowDirectionRoute, places};
use crate::history::{DirectedLinkEnds, EndpointRole, FlowHistory, FlowSocketType};

/// A flow, ready to be explained. Arrays are by side; those of directions by their sender.
#[derive(Debug)]
pub(crate) struct FlowIndex<'a> {
    pub(crate) history: &'a FlowHistory,
    pub(crate) routes: [FlowDirectionRoute; 2],
    /// SYN packets, and the resets that refuse them: each has the one "byte" zero.
    pub(crate) handshakes: [FlowDirectionRoute; 2],
    pub(crate) senders: [SenderHistory<'a>; 2],
    pub(crate) programs: [SocketCallHistory; 2],
    arrivals: [InOrderDeliverySeries; 2],
}

impl<'a> FlowIndex<'a> {
    /// # Errors
    /// If calls and packets of datagrams do not join.
    pub(crate) fn new(
        history: &'a FlowHistory,
        lanes: &[DirectedLinkEnds],
    ) -> Result<FlowIndex<'a>, DatagramLengthMismatch> {
        let places = places(history, lanes);
        let routes = EndpointRole::BOTH.map(|side| {
            FlowDirectionRoute::new(history, side, lanes, places, |packet| {
                match history.transport {
                    FlowSocketType::Datagrams => Some((packet.offset, 1)),
                    FlowSocketType::Stream if packet.length == 0 => None,
                    FlowSocketType::Stream => Some((packet.offset, u64::from(packet.length))),
                }
            })
        });
        let handshakes = EndpointRole::BOTH.map(|side| {
            let wanted = match side {
                EndpointRole::Client => flag::SYN,
                EndpointRole::Server => flag::SYN | flag::RST,
            };
            FlowDirectionRoute::new(history, side, lanes, places, |packet| {
                (packet.flags & wanted != 0).then_some((0, 1))
            })
        });
        let arrivals = EndpointRole::BOTH.map(|side| match history.transport {
            FlowSocketType::Stream => {
                InOrderDeliverySeries::new(history, side, &routes[side.index()], lanes)
            }
            FlowSocketType::Datagrams => InOrderDeliverySeries::default(),
        });
        let senders = EndpointRole::BOTH.map(|side| sender(history, side, &routes, lanes));
        let program =
            |side: EndpointRole| match (history.transport, history.calls_recorded[side.index()]) {
                (FlowSocketType::Datagrams, _) => datagrams::program(history, side, &routes, lanes),
                (FlowSocketType::Stream, true) => Ok(SocketCallHistory::recorded(history, side)),
                (FlowSocketType::Stream, false) => {
                    let sent = &senders[side.index()].progress;
                    Ok(SocketCallHistory::seen_by_packets(sent, &arrivals[side.peer().index()]))
                }
            };
        let programs = [program(EndpointRole::Client)?, program(EndpointRole::Server)?];
        Ok(FlowIndex { history, routes, handshakes, senders, programs, arrivals })
    }

    /// When a byte that `sender` sent could be read, and the byte whose arrival made that so.
    pub(crate) fn readable(&self, sender: EndpointRole, byte: u64) -> Option<(u64, u64)> {
        match self.history.transport {
            FlowSocketType::Stream => self.arrivals[sender.index()].readable(byte),
            FlowSocketType::Datagrams => {
                Some((self.routes[sender.index()].first_arrived(byte)?, byte))
            }
        }
    }

    /// The last datagram of `sender` that was dropped in a stretch of time: its number, and lane,
    /// time and reason.
    pub(crate) fn dropped_between(
        &self,
        sender: EndpointRole,
        from: u64,
        to: u64,
    ) -> Option<(EndpointRole, u64, (u32, u64, u32))> {
        let lanes = self.routes[sender.index()].lanes().iter();
        let drops = lanes.flat_map(|lane| lane.dropped.all().iter().map(|it| (lane.lane, it)));
        let within = drops.filter(|(_, drop)| (from..=to).contains(&drop.time));
        let (lane, drop) = within.max_by_key(|(_, drop)| drop.time)?;
        let reason = u32::try_from(drop.value).unwrap_or(u32::MAX);
        Some((sender, drop.offset, (lane, drop.time, reason)))
    }
}

fn sender<'a>(
    history: &'a FlowHistory,
    side: EndpointRole,
    routes: &[FlowDirectionRoute; 2],
    lanes: &[DirectedLinkEnds],
) -> SenderHistory<'a> {
    let route = &routes[side.index()];
    let is_stream = history.transport == FlowSocketType::Stream;
    let acks = match is_stream {
        true => AckTimeline::new(history, side, &routes[side.peer().index()], lanes),
        false => AckTimeline::default(),
    };
    let losses = match is_stream {
        true => RetransmissionHistory::new(history, side, route, &acks, lanes),
        false => RetransmissionHistory::default(),
    };
    let progress = if is_stream { progress(history, side, route, lanes) } else { Vec::new() };
    let samples = &history.samples[side.index()];
    SenderHistory { side, line: BottleneckOccupancy::new(route), acks, losses, progress, samples }
}
