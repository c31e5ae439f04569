//! What nodes and programs have of disks.

use serde_json::Value as Json;
use windtunnel_model::Rate;
use windtunnel_model::demand::Demand;

use super::number;
use crate::grammar::{
    BoundedInteger, Decoder, MapSchema, SchemaAlternative, SchemaDefinitions, ValueForm,
    YamlMapEntry, map,
};
use crate::text::list;
use crate::tree::YamlValueKind;

/// What is asked of disks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DiskDemandDraft {
    pub(super) limit: Option<Rate>,
    pub(super) weight: Option<u32>,
}

map! {
    /// Rates and weights of disks: at least one of these.
    DiskKeys as "Disk" {
        /// At most so much is read of each disk, and so much written.
        "limit" LIMIT: DiskRate,
        /// Its part of a disk that several want, in proportion to the weights of other nodes;
        /// default 1. Needs a disk with the scheduler BFQ, or io.cost.
        "weight" WEIGHT: BoundedInteger<1, { Demand::DISK_WEIGHT_MAX as u64 }>,
    }
}

impl ValueForm for DiskDemandDraft {
    type Value = DiskDemandDraft;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<DiskDemandDraft> {
        if !matches!(field.value.kind, YamlValueKind::Map(_)) {
            let limit = DiskRate::read(from, field)?;
            return Some(DiskDemandDraft { limit: Some(limit), weight: None });
        }
        let fields = from.table::<DiskKeys>(field, "disk")?;
        let limit = from.read(&fields, DiskKeys::LIMIT)?;
        let weight = number(from, &fields, DiskKeys::WEIGHT)?;
        if fields.all().next().is_none() && !fields.unknown {
            let message = format!("disk lacks one of {}", list(&DiskKeys::list()));
            from.mistake(fields.place, message);
            return None;
        }
        Some(DiskDemandDraft { limit, weight })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "DiskShares",
            "Rates and weights of disks.",
            &[
                SchemaAlternative("A limit.", DiskRate::schema),
                SchemaAlternative("By name.", DiskKeys::definition),
            ],
        )
    }
}

/// A rate at which a disk does anything at all.
pub(super) struct DiskRate;

impl ValueForm for DiskRate {
    type Value = Rate;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Rate> {
        let rate = Rate::read(from, field)?;
        if rate.bits_per_second() < Demand::DISK_MIN_BITS {
            let message = format!("disk: `{rate}` is less than 1KB/s");
            let hint = "a request has 4 KB at least, and waits until the rate allows all of it";
            from.mistake_with_hint(field.wrong(), message, hint);
            return None;
        }
        Some(rate)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        Rate::schema(definitions)
    }
}
