//! What the engine records: laws of records over random networks, and flows with their offsets.

mod cases;
mod flows;
pub(crate) mod laws;

use windtunnel_model::record::{EventRecord, Kind};

use crate::support::Net;

/// The records of one kind.
pub(crate) fn of(records: &[EventRecord], kind: Kind) -> Vec<EventRecord> {
    records.iter().filter(|record| record.kind == kind as u8).copied().collect()
}

/// Records that are events.
pub(crate) fn events(records: &[EventRecord]) -> Vec<EventRecord> {
    let is_event = |record: &&EventRecord| {
        Kind::from_number(record.kind).is_some_and(|kind| !kind.is_definition())
    };
    records.iter().filter(is_event).copied().collect()
}

/// The records of a lane.
pub(crate) fn on_lane(net: &Net, link: u32) -> Vec<EventRecord> {
    events(&net.records).into_iter().filter(|record| record.args[2] == link * 2).collect()
}
