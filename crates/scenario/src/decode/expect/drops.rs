//! Bounds of dropped packets, by cause.

use serde_json::Value as Json;
use windtunnel_model::DropReason;
use windtunnel_model::expect::LinkFact;

use super::bounds::{CountBounds, CountBoundsForm, ShareBounds, read_bounds};
use super::figure;
use crate::grammar::{
    BoundedInteger, Decoder, SchemaAlternative, SchemaDefinitions, ValueForm, YamlMapEntry, map,
};

map! {
    /// Bounds of dropped packets: `min` and `max` bound all together.
    DropBounds {
        ..CountBounds,
        /// Bounds of the share of all offered packets.
        "share" SHARE: ShareBounds,
        ..DropCauses,
    }
}

map! {
    /// Why packets are dropped.
    DropCauses {
        /// Dropped because the link was down.
        "down" DOWN: CountBoundsForm,
        /// Dropped by a partition.
        "partition" PARTITION: CountBoundsForm,
        /// Dropped because they were larger than the MTU.
        "mtu" MTU: CountBoundsForm,
        /// Dropped by the link's loss.
        "loss" LOSS: CountBoundsForm,
        /// Dropped because the queue was full.
        "queue-full" QUEUE_FULL: CountBoundsForm,
        /// Dropped by active queue management.
        "aqm" AQM: CountBoundsForm,
        /// Dropped because the packet pool was full.
        "memory" MEMORY: CountBoundsForm,
    }
}

/// `{max: 0}`, `{queue-full: {max: 3}}`, `{share: {max: 1%}}`, or a number.
pub(super) struct DropBoundsForm;

impl ValueForm for DropBoundsForm {
    type Value = Vec<LinkFact>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<LinkFact>> {
        if field.scalar().is_some() {
            return Some(vec![LinkFact::Drops(None, CountBoundsForm::read(from, field)?)]);
        }
        let fields = from.table::<DropBounds>(field, "bounds of dropped packets")?;
        let mut facts = Vec::new();
        if fields.has(CountBounds::MIN) || fields.has(CountBounds::MAX) {
            let bounds = read_bounds(from, field, &fields, CountBounds::MIN, CountBounds::MAX)?;
            facts.push(LinkFact::Drops(None, bounds));
        }
        facts.extend(from.read(&fields, DropBounds::SHARE)?.map(LinkFact::DropShare));
        let causes = [
            (DropCauses::DOWN, DropReason::Down),
            (DropCauses::PARTITION, DropReason::Partition),
            (DropCauses::MTU, DropReason::Mtu),
            (DropCauses::LOSS, DropReason::Loss),
            (DropCauses::QUEUE_FULL, DropReason::QueueFull),
            (DropCauses::AQM, DropReason::Aqm),
            (DropCauses::MEMORY, DropReason::Memory),
        ];
        for (cause, reason) in causes {
            let bounds = from.read(&fields, cause)?;
            facts.extend(bounds.map(|bounds| LinkFact::Drops(Some(reason), bounds)));
        }
        figure::some(from, field, &fields, facts)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Drops",
            "Bounds of dropped packets, or exactly so many.",
            &[
                SchemaAlternative("Exactly this.", <BoundedInteger<0, { u64::MAX }>>::schema),
                SchemaAlternative("Bounds.", DropBounds::definition),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_model::DropReason;

    use super::DropCauses;
    use crate::grammar::MapSchema;

    #[test]
    fn every_cause_of_a_drop_can_be_bounded() {
        assert_eq!(DropCauses::list(), DropReason::ALL.map(DropReason::key));
    }
}
