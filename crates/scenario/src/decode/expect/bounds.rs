//! A least and a greatest value of a figure.

use std::fmt;

use serde_json::Value as Json;
use windtunnel_model::expect::{QueueOccupancyBounds, ValueBounds};
use windtunnel_model::profile::QueueLimit;
use windtunnel_model::{Probability, Rate, Span};

use crate::decode::property::read_length;
use crate::grammar::{
    BoundedInteger, Decoder, Fields, SchemaAlternative, SchemaDefinitions, SchemaKey, ValueForm,
    YamlMapEntry, map,
};
use crate::text::shorten;

/// Declares bounds of a figure of some form.
macro_rules! bounds {
    ($(#[doc = $doc:literal])* $name:ident of $form:ty) => {
        map! {
            $(#[doc = $doc])*
            $name {
                /// At least this.
                "min" MIN: $form,
                /// At most this.
                "max" MAX: $form,
            }
        }

        impl ValueForm for $name {
            type Value = ValueBounds<<$form as ValueForm>::Value>;

            fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Self::Value> {
                refuse_bare(from, field)?;
                let fields = from.table::<$name>(field, "bounds")?;
                read_bounds(from, field, &fields, $name::MIN, $name::MAX)
            }

            fn schema(definitions: &mut SchemaDefinitions) -> Json {
                $name::definition(definitions)
            }
        }
    };
}

bounds! {
    /// A least and a greatest time, one of them at the least.
    TimeBounds of Span
}

bounds! {
    /// A least and a greatest rate, one of them at the least.
    RateBounds of Rate
}

bounds! {
    /// A least and a greatest share, one of them at the least.
    ShareBounds of Probability
}

bounds! {
    /// A least and a greatest number, one of them at the least.
    CountBounds of BoundedInteger<0, { u64::MAX }>
}

impl ValueForm for Rate {
    type Value = Rate;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Rate> {
        from.quantity(field, "a rate such as 45mbit")
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.text(
            "PlainRate",
            "Bits a second (bit, kbit, mbit, gbit, tbit) or bytes a second (B/s, KB/s, MB/s, GB/s).",
            r"^[0-9]+(\.[0-9]+)? ?([KkMmGgt]?bit(/s)?|[KMG]?B/s)$",
            "45mbit",
        )
    }
}

/// Bounds of a number, or exactly this number.
pub(super) struct CountBoundsForm;

impl ValueForm for CountBoundsForm {
    type Value = ValueBounds<u64>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<ValueBounds<u64>> {
        if field.scalar().is_none() {
            return CountBounds::read(from, field);
        }
        let exactly = <BoundedInteger<0, { u64::MAX }>>::read(from, field)?;
        Some(ValueBounds { min: Some(exactly), max: Some(exactly) })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Count",
            "Bounds of a number, or exactly this number.",
            &[
                SchemaAlternative("Exactly this.", <BoundedInteger<0, { u64::MAX }>>::schema),
                SchemaAlternative("Bounds.", CountBounds::schema),
            ],
        )
    }
}

map! {
    /// A least and a greatest length of a queue, one of them at the least.
    OccupancyBounds, QueueOccupancyBounds, by read_occupancy_map {
        /// At least this.
        "min" MIN: QueueLengthForm,
        /// At most this.
        "max" MAX: QueueLengthForm,
    }
}

fn read_occupancy_map(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<QueueOccupancyBounds> {
    let fields = from.table::<OccupancyBounds>(field, "bounds")?;
    read_occupancy(from, field, &fields)
}

/// A length of a queue.
pub(super) struct QueueLengthForm;

impl ValueForm for QueueLengthForm {
    type Value = QueueLimit;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<QueueLimit> {
        read_length(from, field, "packets (100p), bytes (256KB) or a time (50ms)")
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.text(
            "Occupancy",
            "Packets (`100p`), bytes (`256KB`) or a time (`50ms`).",
            r"^[0-9]+(\.[0-9]+)? ?(p|[kKMGT]?B|[KMG]iB|ns|us|µs|ms|s|min|h)$",
            "100p",
        )
    }
}

/// `min` and `max` of a map that may have other keys, both in the same unit.
pub(super) fn read_occupancy(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    fields: &Fields<'_>,
) -> Option<QueueOccupancyBounds> {
    let min = from.read(fields, OccupancyBounds::MIN);
    let max = from.read(fields, OccupancyBounds::MAX);
    let (min, max) = (min?, max?);
    let packets = |limit| match limit {
        QueueLimit::Packets(packets) => Some(packets),
        _ => None,
    };
    let bytes = |limit| match limit {
        QueueLimit::Bytes(bytes) => Some(bytes),
        _ => None,
    };
    let time = |limit| match limit {
        QueueLimit::Time(span) => Some(span),
        _ => None,
    };
    let given = usize::from(min.is_some()) + usize::from(max.is_some());
    if let Some(bounds) = all_of(given, min.and_then(packets), max.and_then(packets)) {
        return checked(from, field, fields, bounds).map(QueueOccupancyBounds::Packets);
    }
    if let Some(bounds) = all_of(given, min.and_then(bytes), max.and_then(bytes)) {
        return checked(from, field, fields, bounds).map(QueueOccupancyBounds::Bytes);
    }
    if let Some(bounds) = all_of(given, min.and_then(time), max.and_then(time)) {
        return checked(from, field, fields, bounds).map(QueueOccupancyBounds::Time);
    }
    from.mistake(fields.place, "`min` and `max` of a queue are in different units");
    None
}

/// The bounds in one unit, if these are all that are given.
fn all_of<T>(given: usize, min: Option<T>, max: Option<T>) -> Option<ValueBounds<T>> {
    let here = usize::from(min.is_some()) + usize::from(max.is_some());
    (here == given).then_some(ValueBounds { min, max })
}

/// `min` and `max` of a map that may have other keys.
pub(super) fn read_bounds<F: ValueForm>(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    fields: &Fields<'_>,
    min: SchemaKey<F>,
    max: SchemaKey<F>,
) -> Option<ValueBounds<F::Value>>
where
    F::Value: PartialOrd + Copy + fmt::Display,
{
    let (min, max) = (from.read(fields, min), from.read(fields, max));
    checked(from, field, fields, ValueBounds { min: min?, max: max? })
}

/// Bounds of which there is at least one, and that are the right way round.
fn checked<T>(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    fields: &Fields<'_>,
    bounds: ValueBounds<T>,
) -> Option<ValueBounds<T>>
where
    T: PartialOrd + Copy + fmt::Display,
{
    match (bounds.min, bounds.max) {
        (None, None) if fields.unknown => None,
        (None, None) => {
            from.mistake(field.wrong(), format!("`{}` needs `min`, `max` or both", field.key));
            None
        }
        (Some(min), Some(max)) if min > max => {
            from.mistake(fields.place, format!("`min` ({min}) is more than `max` ({max})"));
            None
        }
        _ => Some(bounds),
    }
}

/// A value alone does not say whether it is the least or the most.
pub(super) fn refuse_bare(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<()> {
    let Some(text) = field.scalar() else { return Some(()) };
    let message = format!("`{}` needs `min`, `max` or both, not a value alone", field.key);
    let text = shorten(text);
    let hint = format!("write `{0}: {{max: {text}}}` or `{0}: {{min: {text}}}`", field.key);
    from.mistake_with_hint(field.wrong(), message, hint);
    None
}
