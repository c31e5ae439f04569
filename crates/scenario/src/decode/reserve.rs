//! Reservations: what several nodes have together of their machine.

use serde_json::{Value as Json, json};
use windtunnel_model::demand::Demand;

use super::limits::{CpuDemandDraft, DiskDemandDraft, LimitKeys, MemoryDemandDraft, number};
use crate::grammar::{
    BoundedInteger, Decoder, NameListForm, RequiredKeyForm, SchemaDefinitions, ValueForm,
    YamlMapEntry, map,
};
use crate::position::LocatedValue;

/// A reservation as the file has it.
#[derive(Debug)]
pub(crate) struct ReservationDraft {
    pub(crate) name: LocatedValue<String>,
    /// Nodes, groups of them, or other reservations.
    pub(crate) of: Vec<LocatedValue<String>>,
    pub(crate) limits: LimitKeys,
}

map! {
    /// What several nodes have together of their machine. Needs control groups.
    Reservation, ReservationDraft, by read_reservation {
        /// Nodes, groups of them (each counts as its members), or other reservations. Each is part of
        /// one reservation at the most.
        "of" OF: RequiredKeyForm<NameListForm>,
        /// Processor time of all together, as for a node: a limit of which so much must be free, or a
        /// map with `limit`, `min` and `weight`. With `min`, no more can be reserved within it.
        "cpu" CPU: CpuDemandDraft,
        /// Memory of all together, as for a node.
        "memory" MEMORY: MemoryDemandDraft,
        /// How many processes and threads all may have together.
        "pids" PIDS: BoundedInteger<1, { Demand::PIDS_MAX as u64 }>,
        /// What all may read of each disk together at most, and write; or a map with `limit` and
        /// `weight`.
        "disk" DISK: DiskDemandDraft,
    }
}

/// A map of reservations by name.
pub(super) struct ReservationMapForm;

impl ValueForm for ReservationMapForm {
    type Value = Vec<ReservationDraft>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<ReservationDraft>> {
        let entries = from.map(field, "a map of names and reservations")?;
        Some(entries.all().filter_map(|entry| read_reservation(from, entry)).collect())
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let reservation = Reservation::schema(definitions);
        json!({"type": "object", "additionalProperties": reservation})
    }
}

/// The reservation of a name.
pub(crate) fn read_reservation(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<ReservationDraft> {
    let name = LocatedValue { value: field.key.to_owned(), place: field.place };
    let fields = from.table::<Reservation>(field, "a reservation")?;
    let of = from.need(&fields, Reservation::OF, "this reservation")?;
    let limits = LimitKeys {
        cpu: from.read_at_key(&fields, Reservation::CPU),
        memory: from.read_at_key(&fields, Reservation::MEMORY),
        pids: number(from, &fields, Reservation::PIDS).flatten(),
        open_files: None,
        disk: from.read(&fields, Reservation::DISK).flatten(),
    };
    Some(ReservationDraft { name, of, limits })
}
