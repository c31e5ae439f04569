//! The properties of one direction of a link: their keys, their forms, and what they set.

use serde_json::{Value as Json, json};
use windtunnel_model::profile::{
    Jitter, LossModel, Overhead, PacketReordering, PropertySetting, QueueDiscipline, QueueLimit,
};
use windtunnel_model::{Bytes, LinkPatch, Probability, Rate, Span};

use super::trace::{TableTrace, TraceRate};
use crate::grammar::{
    Decoder, Fields, SchemaAlternative, SchemaDefinitions, SchemaKey, ValueForm, YamlMapEntry, map,
};
use crate::position::SourceLocation;
use crate::text::{hint_for_unit, shorten};
use crate::tree::{YamlValue, YamlValueKind};

/// Declares the properties: a table of keys, and where each value goes in a patch.
macro_rules! properties {
    ($(
        $(#[doc = $doc:literal])*
        $key:literal $constant:ident: $form:ty => $put:expr,
    )*) => {
        map! {
            /// Properties of one direction.
            Direction {
                $($(#[doc = $doc])* $key $constant: $form,)*
            }
        }

        /// The keys of all properties.
        pub(crate) const PROPERTIES: &[&str] = &[$($key),*];

        /// Reads the property of `field` into `patch`.
        fn read_property(from: &mut Decoder<'_>, field: YamlMapEntry<'_>, patch: &mut LinkPatch) {
            $(put(Direction::$constant, from, field, patch, $put);)*
        }
    };
}

properties! {
    /// Propagation delay, the least that a packet takes; default 0ms.
    "latency" LATENCY: Span => |patch, latency| patch.latency = Some(latency),
    /// Random delay on top of the latency, never negative: a time J (uniform from 0 to J), or
    /// a distribution; default `none`.
    "jitter" JITTER: Jitter => |patch, jitter| patch.jitter = Some(jitter),
    /// Packets that vanish: a probability (each independently), bursts, a list of packet
    /// numbers, or `none` (default).
    "loss" LOSS: LossModel => |patch, loss| patch.loss = Some(loss),
    /// Probability that a packet arrives twice; default 0%.
    "duplicate" DUPLICATE: Probability => |patch, share| patch.duplicate = Some(share),
    /// Probability that one bit of a packet is flipped; default 0%.
    "corrupt" CORRUPT: Probability => |patch, share| patch.corrupt = Some(share),
    /// Packets that overtake others: `none` (default: jitter keeps the order), `jitter` (it
    /// may reorder), or a probability of being held back by 1ms.
    "reorder" REORDER: PacketReordering => |patch, reorder| patch.reorder = Some(reorder),
    /// Bandwidth; `none` (default) for no limit, no queue and no overhead; or a file of delivery
    /// opportunities (mahimahi's format).
    "rate" RATE: RateForm => |patch, rate| rate.put(patch),
    /// Framing bytes that each packet costs on top of the IP packet: `ethernet` (38B, the
    /// default where there is a rate; with delivery opportunities it is 4B, as in mahimahi),
    /// `none`, or a size.
    "overhead" OVERHEAD: Overhead => |patch, overhead| patch.overhead = Some(overhead),
    /// The largest IP packet in bytes; default 1500. At least 1280, without IPv6 68.
    "mtu" MTU: MtuForm => |patch, mtu| patch.mtu = Some(mtu),
    /// Room in front of the rate, in packets, bytes or time; default: the larger of 100
    /// packets and what the rate carries in 50ms; with `pie` and `pi2` 1000 packets, with
    /// `fq-codel` and `fair` 10240. With a trace, times count at its mean rate.
    "queue" QUEUE: QueueLimitForm => |patch, queue| patch.queue = Some(queue),
    /// Which packets are dropped when packets wait: `drop-tail` (default), `drop-head`, `codel`,
    /// `red`, `pie`, `pi2`, `fq-codel`, `fair` or `wf2q`.
    "discipline" DISCIPLINE: QueueDiscipline => |patch, it| patch.discipline = Some(it),
    /// A table (CSV) of `time` with `rate`, `latency` or `loss`, which these then follow: its file,
    /// or a map with more.
    "trace" TRACE: TableTrace => |patch, table| table.put(patch),
}

/// Reads the property `key` of `value` into `patch`, as a link in a file would.
pub(crate) fn decode_property(
    from: &mut Decoder<'_>,
    key: &str,
    value: &YamlValue,
    patch: &mut LinkPatch,
) {
    read_property(from, YamlMapEntry { key, place: value.place, value }, patch);
}

/// Reads all properties of a map; `places` becomes where they are written.
pub(super) fn read_properties(
    from: &mut Decoder<'_>,
    fields: &Fields<'_>,
    patch: &mut LinkPatch,
    places: &mut Vec<(&'static str, SourceLocation)>,
) {
    for key in PROPERTIES {
        let Some(field) = fields.find(key) else { continue };
        let before = (*key == Direction::TRACE.name).then(|| patch.clone());
        read_property(from, field, patch);
        if let Some(before) = before {
            super::trace::check_alone(from, fields, &before, patch);
        }
        places.push((key, field.wrong()));
    }
}

fn put<F: ValueForm>(
    key: SchemaKey<F>,
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    patch: &mut LinkPatch,
    put: impl FnOnce(&mut LinkPatch, F::Value),
) {
    if field.key == key.name
        && let Some(value) = F::read(from, field)
    {
        put(patch, value);
    }
}

/// A bandwidth that is always the same, or `none`; or delivery opportunities.
pub(crate) enum RateForm {
    Steady(PropertySetting<Rate>),
    Trace(TraceRate),
}

impl RateForm {
    fn put(self, patch: &mut LinkPatch) {
        match self {
            RateForm::Steady(rate) => (patch.rate, patch.traces.rate) = (Some(rate), None),
            RateForm::Trace(TraceRate { mean, following }) => {
                (patch.rate, patch.traces.rate) =
                    (Some(PropertySetting::To(mean)), Some(following));
            }
        }
    }

    fn steady(definitions: &mut SchemaDefinitions) -> Json {
        definitions.text(
            "Rate",
            "Bits a second (bit, kbit, mbit, gbit, tbit), bytes a second (B/s, KB/s, MB/s, GB/s), \
             or `none`.",
            r"^(none|[0-9]+(\.[0-9]+)? ?([KkMmGgt]?bit(/s)?|[KMG]?B/s))$",
            "10mbit",
        )
    }
}

impl ValueForm for RateForm {
    type Value = RateForm;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<RateForm> {
        match (field.scalar(), &field.value.kind) {
            (Some("none"), _) => Some(RateForm::Steady(PropertySetting::Default)),
            (None, YamlValueKind::Map(_)) => TraceRate::read(from, field).map(RateForm::Trace),
            (None, _) => from.wrong_type(field, "a rate such as 10mbit, `none`, or {trace: FILE}"),
            (Some(_), _) => {
                let rate = from.quantity(field, "a rate such as 10mbit, or `none`")?;
                Some(RateForm::Steady(PropertySetting::To(rate)))
            }
        }
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "RateOrTrace",
            "A bandwidth.",
            &[
                SchemaAlternative("Always the same, or `none`.", Self::steady),
                SchemaAlternative("Delivery opportunities.", TraceRate::schema),
            ],
        )
    }
}

impl ValueForm for Overhead {
    type Value = PropertySetting<Overhead>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<PropertySetting<Overhead>> {
        const MOST: u64 = 1000;
        match field.scalar() {
            Some("ethernet") => return Some(PropertySetting::To(Overhead::ETHERNET)),
            Some("none") => return Some(PropertySetting::To(Overhead::NONE)),
            Some("default") => return Some(PropertySetting::Default),
            _ => {}
        }
        let bytes: Bytes = from.quantity(field, "`ethernet`, `none` or a size such as 42B")?;
        match u32::try_from(bytes.0) {
            Ok(small) if bytes.0 <= MOST => Some(PropertySetting::To(Overhead(small))),
            _ => {
                let message = format!("overhead: `{bytes}` a packet is more than {MOST}B");
                from.mistake(field.wrong(), message);
                None
            }
        }
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.text(
            "Overhead",
            "`ethernet`, `none`, `default`, or a size.",
            r"^(ethernet|none|default|[0-9]+(\.[0-9]+)? ?([kKMGT]?B|[KMG]iB))$",
            "ethernet",
        )
    }
}

/// The largest packet, as a number of bytes or a size.
pub(crate) struct MtuForm;

impl MtuForm {
    /// What every IPv4 link carries (RFC 791), and what the length field can say. IPv6 is judged
    /// with the whole file.
    const LEAST: u32 = 68;
    const MOST: u32 = 65_535;
}

impl ValueForm for MtuForm {
    type Value = u32;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<u32> {
        let text = from.text(field, "a number of bytes such as 1500")?;
        let bytes = if text.bytes().all(|b| b.is_ascii_digit()) {
            from.integer(field, 0..=u64::MAX, "a number of bytes such as 1500")?
        } else {
            from.quantity::<Bytes>(field, "a number of bytes such as 1500")?.0
        };
        match u32::try_from(bytes) {
            Ok(mtu) if (Self::LEAST..=Self::MOST).contains(&mtu) => Some(mtu),
            _ => {
                let (least, most) = (Self::LEAST, Self::MOST);
                let message = format!("mtu: `{}` is not between {least} and {most}", shorten(text));
                from.mistake(field.wrong(), message);
                None
            }
        }
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let number = |_: &mut SchemaDefinitions| {
            let (least, most) = (Self::LEAST, Self::MOST);
            json!({"type": "integer", "minimum": least, "maximum": most})
        };
        definitions.any_of(
            "Mtu",
            "Bytes as a number, or a size.",
            &[
                SchemaAlternative("A number of bytes.", number),
                SchemaAlternative("A size with its unit.", Bytes::schema),
            ],
        )
    }
}

/// The room of a queue, or `default`.
pub(crate) struct QueueLimitForm;

impl ValueForm for QueueLimitForm {
    type Value = PropertySetting<QueueLimit>;

    fn read(
        from: &mut Decoder<'_>,
        field: YamlMapEntry<'_>,
    ) -> Option<PropertySetting<QueueLimit>> {
        if field.scalar() == Some("default") {
            return Some(PropertySetting::Default);
        }
        let needed = "packets, bytes or a time, such as 100p, 256KB or 50ms, or `default`";
        read_length(from, field, needed).map(PropertySetting::To)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.text(
            "Queue",
            "Packets (`100p`), bytes (`256KB`), a time (`50ms`), or `default`.",
            r"^(default|[0-9]+(\.[0-9]+)? ?(p|[kKMGT]?B|[KMG]iB|ns|us|µs|ms|s|min|h))$",
            "100p",
        )
    }
}

/// A length of a queue.
pub(super) fn read_length(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    needed: &str,
) -> Option<QueueLimit> {
    let text = from.text(field, needed)?;
    let unit = text.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim();
    match unit {
        "p" => from.quantity(field, needed).map(QueueLimit::Packets),
        "ns" | "us" | "µs" | "ms" | "s" | "min" | "h" => {
            from.quantity(field, needed).map(QueueLimit::Time)
        }
        unit if unit.ends_with('B') => from.quantity(field, needed).map(QueueLimit::Bytes),
        _ => {
            let message = format!("{}: `{}` is not {needed}", field.key, shorten(text));
            match hint_for_unit(text) {
                Some(hint) => from.mistake_with_hint(field.wrong(), message, hint),
                None => from.mistake(field.wrong(), message),
            }
            None
        }
    }
}
