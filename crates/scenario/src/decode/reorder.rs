//! `reorder`: packets that overtake others.

use serde_json::Value as Json;
use windtunnel_model::profile::PacketReordering;
use windtunnel_model::{Probability, Span};

use crate::grammar::{
    Decoder, SchemaAlternative, SchemaDefinitions, ValueForm, YamlMapEntry, form, map,
};
use crate::tree::YamlValueKind;

map! {
    /// Packets that are held back so that others overtake them.
    ReorderForm {
        /// Probability that a packet is held back; default 0%.
        "probability" PROBABILITY: Probability,
        /// How long; default 1ms.
        "extra" EXTRA: Span,
        /// How much the decision about a packet depends on the one before, as in netem: for each
        /// packet x = c·(x of the packet before) + (1−c)·u is drawn, u uniform from 0 to 1, and the
        /// packet is held back where x is less than `probability`. So packets are held back in
        /// groups, and below 50% fewer of them than `probability` says: with 50%, 25% hold back
        /// 6.9%. Less than 100%; default 0%.
        "correlation" CORRELATION: Correlation,
        /// Whether jitter may reorder as well; default false.
        "by-jitter" BY_JITTER: bool,
    }
}

/// How long a packet is held back where the file does not say.
const DEFAULT_EXTRA: Span = Span::from_millis(1);

impl ValueForm for PacketReordering {
    type Value = PacketReordering;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<PacketReordering> {
        match (field.scalar(), &field.value.kind) {
            (Some("none"), _) => Some(PacketReordering::default()),
            (Some("jitter"), _) => {
                Some(PacketReordering { by_jitter: true, ..PacketReordering::default() })
            }
            (Some(_), _) => {
                let needed = "`none`, `jitter` or a probability such as 1%";
                let probability = from.quantity(field, needed)?;
                Some(PacketReordering {
                    probability,
                    extra: DEFAULT_EXTRA,
                    ..PacketReordering::default()
                })
            }
            (None, YamlValueKind::Map(_)) => read_map(from, field),
            _ => {
                let needed = "`none`, `jitter`, a probability, or {probability: 1%, extra: 5ms}";
                from.wrong_type(field, needed)
            }
        }
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Reorder",
            "Packets that overtake others.",
            &[
                SchemaAlternative(
                    "`none`, `jitter`, or the probability of being held back by 1ms.",
                    short,
                ),
                SchemaAlternative("All of it.", ReorderForm::definition),
            ],
        )
    }
}

fn short(definitions: &mut SchemaDefinitions) -> Json {
    definitions.text(
        "ReorderText",
        "`none`, `jitter`, or a probability.",
        r"^(none|jitter|[0-9]+(\.[0-9]+)? ?(%|ppm|ppb))$",
        "1%",
    )
}

form! {
    /// A share that is less than all.
    Correlation: Probability, by read_correlation, like Probability::schema
}

fn read_correlation(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Probability> {
    let correlation = Probability::read(from, field)?;
    if correlation == Probability::ALWAYS {
        let message = "correlation: must be less than 100%, which decides about one packet only";
        from.mistake(field.wrong(), message);
        return None;
    }
    Some(correlation)
}

fn read_map(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<PacketReordering> {
    let fields = from.table::<ReorderForm>(field, "reorder")?;
    let probability = from.read_or(&fields, ReorderForm::PROBABILITY, Probability::NEVER)?;
    let extra = from.read_or(&fields, ReorderForm::EXTRA, DEFAULT_EXTRA)?;
    let by_jitter = from.read_or(&fields, ReorderForm::BY_JITTER, false)?;
    let correlation = from.read_or(&fields, ReorderForm::CORRELATION, Probability::NEVER)?;
    if let (Some(field), true) = (fields.get(ReorderForm::CORRELATION), probability.is_never()) {
        let message = "`correlation` needs a `probability` that is more than 0%";
        from.mistake(field.place, message);
        return None;
    }
    let extra = if probability.is_never() { Span::ZERO } else { extra };
    Some(PacketReordering { by_jitter, probability, extra, correlation })
}
