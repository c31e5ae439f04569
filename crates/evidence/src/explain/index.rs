//! All that is asked of a flow's history, prepared once.

use windtunnel_model::record::flag;

use super::acks::Acks;
use super::arrivals::Arrivals;
use super::datagrams::{self, Contradiction};
use super::hold::{Line, Sender, progress};
use super::losses::Losses;
use super::program::Program;
use super::route::{Route, places};
use crate::history::{FlowHistory, Lane, Side, Transport};

/// A flow, ready to be explained. Arrays are by side; those of directions by their sender.
#[derive(Debug)]
pub(crate) struct FlowIndex<'a> {
    pub(crate) history: &'a FlowHistory,
    pub(crate) routes: [Route; 2],
    /// SYN packets, and the resets that refuse them: each has the one "byte" zero.
    pub(crate) handshakes: [Route; 2],
    pub(crate) senders: [Sender<'a>; 2],
    pub(crate) programs: [Program; 2],
    arrivals: [Arrivals; 2],
}

impl<'a> FlowIndex<'a> {
    /// # Errors
    /// If calls and packets of datagrams do not join.
    pub(crate) fn new(
        history: &'a FlowHistory,
        lanes: &[Lane],
    ) -> Result<FlowIndex<'a>, Contradiction> {
        let places = places(history, lanes);
        let routes = Side::BOTH.map(|side| {
            Route::new(history, side, lanes, places, |packet| match history.transport {
                Transport::Datagrams => Some((packet.offset, 1)),
                Transport::Stream if packet.length == 0 => None,
                Transport::Stream => Some((packet.offset, u64::from(packet.length))),
            })
        });
        let handshakes = Side::BOTH.map(|side| {
            let wanted = match side {
                Side::Client => flag::SYN,
                Side::Server => flag::SYN | flag::RST,
            };
            Route::new(history, side, lanes, places, |packet| {
                (packet.flags & wanted != 0).then_some((0, 1))
            })
        });
        let arrivals = Side::BOTH.map(|side| match history.transport {
            Transport::Stream => Arrivals::new(history, side, &routes[side.index()], lanes),
            Transport::Datagrams => Arrivals::default(),
        });
        let senders = Side::BOTH.map(|side| sender(history, side, &routes, lanes));
        let program = |side: Side| match (history.transport, history.calls_recorded[side.index()]) {
            (Transport::Datagrams, _) => datagrams::program(history, side, &routes, lanes),
            (Transport::Stream, true) => Ok(Program::recorded(history, side)),
            (Transport::Stream, false) => {
                let sent = &senders[side.index()].progress;
                Ok(Program::seen_by_packets(sent, &arrivals[side.peer().index()]))
            }
        };
        let programs = [program(Side::Client)?, program(Side::Server)?];
        Ok(FlowIndex { history, routes, handshakes, senders, programs, arrivals })
    }

    /// When a byte that `sender` sent could be read, and the byte whose arrival made that so.
    pub(crate) fn readable(&self, sender: Side, byte: u64) -> Option<(u64, u64)> {
        match self.history.transport {
            Transport::Stream => self.arrivals[sender.index()].readable(byte),
            Transport::Datagrams => Some((self.routes[sender.index()].first_arrived(byte)?, byte)),
        }
    }

    /// The last datagram of `sender` that was dropped in a stretch of time: its number, and lane,
    /// time and reason.
    pub(crate) fn dropped_between(
        &self,
        sender: Side,
        from: u64,
        to: u64,
    ) -> Option<(Side, u64, (u32, u64, u32))> {
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
    side: Side,
    routes: &[Route; 2],
    lanes: &[Lane],
) -> Sender<'a> {
    let route = &routes[side.index()];
    let is_stream = history.transport == Transport::Stream;
    let acks = match is_stream {
        true => Acks::new(history, side, &routes[side.peer().index()], lanes),
        false => Acks::default(),
    };
    let losses = match is_stream {
        true => Losses::new(history, side, route, &acks, lanes),
        false => Losses::default(),
    };
    let progress = if is_stream { progress(history, side, route, lanes) } else { Vec::new() };
    let samples = &history.samples[side.index()];
    Sender { side, line: Line::new(route), acks, losses, progress, samples }
}
