//! What repeated events, flaps and churn have in common, and flaps.

use serde_json::{Value as Json, json};
use windtunnel_model::{Probability, Span};

use super::names::{DirectionName, LinkNames};
use crate::grammar::{
    BoundedInteger, Decoder, Fields, RequiredKeyForm, SchemaAlternative, SchemaDefinitions,
    SchemaKey, ValueForm, YamlMapEntry, form, map,
};
use crate::position::LocatedValue;

/// When something that goes on ends; all `None`: with the run.
#[derive(Debug, Clone, Default)]
pub(crate) struct EndDraft {
    /// After its beginning.
    pub(crate) after: Option<LocatedValue<Span>>,
    /// After the beginning of the run.
    pub(crate) until: Option<LocatedValue<Span>>,
    pub(crate) times: Option<u64>,
}

/// An event that happens again.
#[derive(Debug, Clone)]
pub(crate) struct RepeatDraft {
    pub(crate) every: LocatedValue<Span>,
    pub(crate) end: EndDraft,
}

/// A number of nodes, or a share of them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NodeAmount {
    Count(u64),
    Share(Probability),
}

/// A flap.
#[derive(Debug)]
pub(crate) struct FlapDraft {
    pub(crate) links: Vec<LocatedValue<String>>,
    pub(crate) direction: Option<LocatedValue<String>>,
    pub(crate) every: LocatedValue<Span>,
    pub(crate) down: Span,
    pub(crate) random: bool,
    pub(crate) end: EndDraft,
}

map! {
    /// What ends what is repeated.
    Ending {
        /// How many times at the most: an event, cuts of a flap, periods of churn.
        "times" TIMES: BoundedInteger<1, { u64::MAX }>,
        /// For so long after `at`.
        "for" FOR: Span,
        /// Until this time of the run.
        "until" UNTIL: Span,
    }
}

map! {
    /// A link that comes and goes: every `every` it is cut for `down`.
    Flap, FlapDraft, by read_flap {
        /// The link or links; they flap together.
        "link" LINK: RequiredKeyForm<LinkNames>,
        /// Only this direction: `up`, `down` or `from-to`.
        "direction" DIRECTION: DirectionName,
        /// From one cut to the next.
        "every" EVERY: RequiredKeyForm<Period>,
        /// How long each cut lasts; less than `every`.
        "down" DOWN: RequiredKeyForm<Period>,
        /// Whether each phase lasts from nothing to twice as long, uniformly, by the seed; default
        /// false.
        "random" RANDOM: bool,
        ..Ending,
    }
}

/// Reads what ends a repetition.
pub(super) fn read_end(from: &mut Decoder<'_>, fields: &Fields<'_>) -> Option<EndDraft> {
    let after = read_optional_at(from, fields, Ending::FOR);
    let until = read_optional_at(from, fields, Ending::UNTIL);
    let times = from.read(fields, Ending::TIMES);
    let end = EndDraft { after: after?, until: until?, times: times? };
    if let (Some(_), Some(until)) = (&end.after, &end.until) {
        let message = "`for` and `until` both say when it ends";
        from.mistake_with_hint(until.place, message, "leave one of them out");
        return None;
    }
    Some(end)
}

fn read_flap(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<FlapDraft> {
    let fields = from.table::<Flap>(field, "a flap")?;
    let links = from.need(&fields, Flap::LINK, "this flap");
    let every = from.need(&fields, Flap::EVERY, "this flap");
    let down = from.need(&fields, Flap::DOWN, "this flap");
    let end = read_end(from, &fields);
    let direction = from.read(&fields, Flap::DIRECTION)?;
    let random = from.read_or(&fields, Flap::RANDOM, false)?;
    let (every, down) = (every?, down?);
    if down.value >= every.value {
        let message = format!("the link is `down` for {}, not less than `every`", down.value);
        from.mistake_with_hint(down.place, message, "for a link that stays down: `down: true`");
        return None;
    }
    let down = down.value;
    Some(FlapDraft { links: links?, direction, every, down, random, end: end? })
}

form! {
    /// A time that is not nothing.
    pub(super) Period: LocatedValue<Span>, by read_period, like Span::schema
}

fn read_period(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<LocatedValue<Span>> {
    let (value, place) = (Span::read(from, field)?, field.value.place);
    if value < SHORTEST {
        let message = format!("{}: `{value}` is shorter than {SHORTEST}", field.key);
        from.mistake(place, message);
        return None;
    }
    Some(LocatedValue { value, place })
}

/// A number of nodes, or a share of them.
pub(super) struct AmountForm;

const AMOUNT: &str = "a number of nodes such as 2, or a share such as 20%";

impl ValueForm for AmountForm {
    type Value = NodeAmount;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<NodeAmount> {
        let text = from.text(field, AMOUNT)?;
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match digits {
            true => from.integer(field, 1..=u64::MAX, AMOUNT).map(NodeAmount::Count),
            false => read_share(from, field, AMOUNT).map(NodeAmount::Share),
        }
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Amount",
            "A number of nodes or a share of them.",
            &[
                SchemaAlternative("So many.", |_| json!({"type": "integer", "minimum": 1})),
                SchemaAlternative("A share.", Probability::schema),
            ],
        )
    }
}

/// A share of nodes that is not nothing.
pub(super) fn read_share(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    needed: &str,
) -> Option<Probability> {
    let share: Probability = from.quantity(field, needed)?;
    if share.is_never() {
        from.mistake(field.wrong(), format!("{}: `{share}` is not even one node", field.key));
        return None;
    }
    Some(share)
}

/// A value with its place, if the file has it; `None` if it is wrong.
pub(super) fn read_optional_at<F: ValueForm>(
    from: &mut Decoder<'_>,
    fields: &Fields<'_>,
    key: SchemaKey<F>,
) -> Option<Option<LocatedValue<F::Value>>> {
    let Some(field) = fields.get(key) else { return Some(None) };
    let value = F::read(from, field)?;
    Some(Some(LocatedValue { value, place: field.value.place }))
}

/// Nothing is repeated faster: a million events are a second of this.
const SHORTEST: Span = Span::from_micros(1);
