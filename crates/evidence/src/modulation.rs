//! What the stack made of a program's writes: sizes and spacing at the program and on the wire
//! (modulation, as MAGNeT called it), and the time between both.

mod named;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::evidence::RecordedRun;
use crate::explain::DatagramLengthMismatch;
use crate::explain::index::FlowIndex;
use crate::history::{self, DirectedLinkEnds, EndpointRole, FlowHistory, PacketEvent, PacketKind};
pub use named::ModulationReport;

/// One direction of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowModulation {
    pub flow: u32,
    /// Who sends.
    #[serde(serialize_with = "side_name")]
    pub sender: EndpointRole,
    /// What its program wrote; `None`: its calls are not recorded.
    pub writes: Option<SizeSpacingStatistics>,
    /// What the wire carried: packets at their first lane, trains as their segments, with those
    /// that were sent again.
    pub packets: Option<SizeSpacingStatistics>,
    /// From the begin of a write to its first byte on the wire, ns.
    pub to_wire_ns: Option<QuantileSummary>,
    /// From the arrival of the last byte of a read to the end of the read, ns.
    pub to_program_ns: Option<QuantileSummary>,
    /// What the other program read.
    pub reads: Option<SizeSpacingStatistics>,
}

/// Things of a size, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SizeSpacingStatistics {
    pub count: usize,
    pub bytes: u64,
    pub size: QuantileSummary,
    /// From the begin of one to that of the next; `None`: there is one only.
    pub spacing_ns: Option<QuantileSummary>,
}

/// A distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QuantileSummary {
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub max: u64,
    pub mean: u64,
}

impl QuantileSummary {
    /// Of these values; `None`: there are none.
    #[must_use]
    pub fn of(mut values: Vec<u64>) -> Option<QuantileSummary> {
        values.sort_unstable();
        let (min, max) = (*values.first()?, *values.last()?);
        let at = |percent: usize| values[(values.len() - 1) * percent / 100];
        let sum: u128 = values.iter().copied().map(u128::from).sum();
        let mean = u64::try_from(sum / values.len() as u128).unwrap_or(u64::MAX);
        Some(QuantileSummary { min, p50: at(50), p90: at(90), p99: at(99), max, mean })
    }
}

impl SizeSpacingStatistics {
    /// Of (time, size), sorted by time.
    fn of(things: &[(u64, u64)]) -> Option<SizeSpacingStatistics> {
        let size = QuantileSummary::of(things.iter().map(|(_, size)| *size).collect())?;
        let spacing = things.windows(2).map(|pair| pair[1].0 - pair[0].0);
        Some(SizeSpacingStatistics {
            count: things.len(),
            bytes: things.iter().map(|(_, size)| size).sum(),
            size,
            spacing_ns: QuantileSummary::of(spacing.collect()),
        })
    }
}

/// Of all flows of a run, both directions, where bytes were carried.
#[must_use]
pub fn modulation(evidence: &RecordedRun) -> Vec<FlowModulation> {
    let (_, lanes) = history::lanes(evidence);
    let histories = history::histories(evidence);
    // A flow whose calls and packets do not join is named by `explain`.
    let of_flow = histories.iter().filter_map(|history| of(history, &lanes).ok());
    of_flow.flatten().filter(|it| it.writes.is_some() || it.packets.is_some()).collect()
}

/// Of both directions of a flow.
///
/// # Errors
/// If calls and packets of datagrams do not join.
pub fn of(
    history: &FlowHistory,
    lanes: &[DirectedLinkEnds],
) -> Result<[FlowModulation; 2], DatagramLengthMismatch> {
    let index = FlowIndex::new(history, lanes)?;
    Ok(EndpointRole::BOTH.map(|sender| direction(&index, sender, lanes)))
}

fn direction(
    index: &FlowIndex<'_>,
    sender: EndpointRole,
    lanes: &[DirectedLinkEnds],
) -> FlowModulation {
    let (history, route) = (index.history, &index.routes[sender.index()]);
    let calls = |side: EndpointRole, is_write: bool| {
        let program = &index.programs[side.index()];
        let calls = program.calls.iter().filter(move |call| call.is_write == is_write);
        calls.filter(|_| program.is_recorded)
    };
    let sized = |side: EndpointRole, is_write: bool| {
        let spans = history.calls[side.index()].iter().filter(|call| call.result > 0);
        let wanted = spans.filter(|call| match is_write {
            true => history::is_write(call.call),
            false => history::is_read(call.call),
        });
        let all: Vec<_> =
            wanted.map(|call| (call.begin, u64::from(call.result.unsigned_abs()))).collect();
        SizeSpacingStatistics::of(&all)
    };
    let to_wire = calls(sender, true)
        .filter_map(|write| Some(route.first_entered(write.from)?.saturating_sub(write.begin)));
    let to_program = calls(sender.peer(), false).filter_map(|read| {
        let (came, _) = index.readable(sender, read.to - 1)?;
        Some(read.end.saturating_sub(came))
    });
    let entered = history.packets[sender.index()].iter().filter(|packet| {
        let lane = lanes.get(packet.lane as usize);
        packet.kind == PacketKind::Offered
            && packet.length > 0
            && lane.is_some_and(|lane| route.is_entry(lane))
    });
    let full = full_segment(entered.clone());
    let packets: Vec<_> =
        entered.flat_map(|packet| segments(packet.time, packet.length, full)).collect();
    FlowModulation {
        flow: history.flow,
        sender,
        writes: sized(sender, true),
        packets: SizeSpacingStatistics::of(&packets),
        to_wire_ns: QuantileSummary::of(to_wire.collect()),
        to_program_ns: QuantileSummary::of(to_program.collect()),
        reads: sized(sender.peer(), false),
    }
}

/// The segments of a train: all of one size, but the last.
fn segments(time: u64, length: u32, full: u64) -> impl Iterator<Item = (u64, u64)> {
    let (length, full) = (u64::from(length), full.max(1));
    (0..length.div_ceil(full)).map(move |at| (time, (length - at * full).min(full)))
}

/// The size of a full segment: no train has larger ones.
fn full_segment<'a>(packets: impl Iterator<Item = &'a PacketEvent>) -> u64 {
    let sizes = packets.map(|packet| packet.length.div_ceil(u32::from(packet.segments.max(1))));
    sizes.max().map_or(0, u64::from)
}

fn side_name<S: serde::Serializer>(side: &EndpointRole, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(side.name())
}
