//! Forms of single values: numbers, texts and quantities.

use std::marker::PhantomData;

use serde_json::{Value as Json, json};
use windtunnel_model::{Bytes, Probability, Span};

use super::{Decoder, SchemaAlternative, SchemaDefinitions, ValueForm, YamlMapEntry, form};
use crate::position::LocatedValue;
use crate::text::shorten;

impl ValueForm for bool {
    type Value = bool;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<bool> {
        from.flag(field)
    }

    fn schema(_: &mut SchemaDefinitions) -> Json {
        json!({"type": "boolean"})
    }
}

/// A whole number from `LEAST` to `MOST`.
pub(crate) struct BoundedInteger<const LEAST: u64, const MOST: u64>;

impl<const LEAST: u64, const MOST: u64> ValueForm for BoundedInteger<LEAST, MOST> {
    type Value = u64;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<u64> {
        let needed = match (LEAST, MOST) {
            (0, u64::MAX) => "a whole number".to_owned(),
            (_, u64::MAX) => format!("a whole number from {LEAST}"),
            _ => format!("a whole number from {LEAST} to {MOST}"),
        };
        from.integer(field, LEAST..=MOST, &needed)
    }

    fn schema(_: &mut SchemaDefinitions) -> Json {
        match MOST {
            u64::MAX => json!({"type": "integer", "minimum": LEAST}),
            most => json!({"type": "integer", "minimum": LEAST, "maximum": most}),
        }
    }
}

/// Declares a quantity: the form, what it means, its name in the schema with its description, the
/// pattern that editors check, an example, and what a wrong one is said not to be.
macro_rules! quantity {
    (
        $form:ty, $name:literal, $description:literal, $pattern:literal, $example:literal,
        $needed:literal
    ) => {
        impl ValueForm for $form {
            type Value = $form;

            fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<$form> {
                from.quantity(field, $needed)
            }

            fn schema(definitions: &mut SchemaDefinitions) -> Json {
                definitions.text($name, $description, $pattern, $example)
            }
        }
    };
}

quantity!(
    Span,
    "Time",
    "A time with a unit: ns, us, ms, s, min or h.",
    r"^[0-9]+(\.[0-9]+)? ?(ns|us|µs|ms|s|min|h)$",
    "10ms",
    "a time such as 10ms"
);
quantity!(
    Bytes,
    "Size",
    "A size in bytes: B, KB, MB, GB, TB, KiB, MiB or GiB.",
    r"^[0-9]+(\.[0-9]+)? ?([kKMGT]?B|[KMG]iB)$",
    "1400B",
    "a size such as 1400B"
);

impl ValueForm for Probability {
    type Value = Probability;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Probability> {
        match field.scalar() {
            Some("none") => Some(Probability::NEVER),
            _ => from.quantity(field, "a probability such as 0.1%"),
        }
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let description = "A probability in percent (also ppm, ppb), or `none`.";
        let pattern = r"^(none|[0-9]+(\.[0-9]+)? ?(%|ppm|ppb))$";
        definitions.text("Probability", description, pattern, "0.1%")
    }
}

/// One name or a list of names.
pub(crate) struct NameListForm;

impl ValueForm for NameListForm {
    type Value = Vec<LocatedValue<String>>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Self::Value> {
        from.names(field, "a name or a list of names")
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Names",
            "One name or a list of names.",
            &[SchemaAlternative("One.", text), SchemaAlternative("Several.", texts)],
        )
    }
}

/// The schema of one text, or one for IPv4 and one for IPv6.
pub(crate) fn one_or_two(definitions: &mut SchemaDefinitions) -> Json {
    let two = |definitions: &mut SchemaDefinitions| {
        let mut schema = texts(definitions);
        (schema["minItems"], schema["maxItems"]) = (json!(1), json!(2));
        schema
    };
    let description = "One text, or one for IPv4 and one for IPv6.";
    definitions.any_of(
        "OneOrTwo",
        description,
        &[SchemaAlternative("One.", text), SchemaAlternative("Both.", two)],
    )
}

/// A text.
pub(crate) fn text(_: &mut SchemaDefinitions) -> Json {
    json!({"type": "string"})
}

/// A list of texts.
pub(crate) fn texts(_: &mut SchemaDefinitions) -> Json {
    json!({"type": "array", "items": {"type": "string"}})
}

impl ValueForm for String {
    type Value = LocatedValue<String>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<LocatedValue<String>> {
        from.text_at(field, "a text")
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        text(definitions)
    }
}

form! {
    /// A name.
    pub(crate) Name: LocatedValue<String>, by read_name, like text
}

fn read_name(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<LocatedValue<String>> {
    from.text_at(field, "a name")
}

/// A list that is read although some of its items are wrong.
pub(crate) struct ListForm<F>(PhantomData<F>);

/// What may stand in a [`ListForm`].
pub(crate) trait ListElement: ValueForm {
    /// What messages call the list.
    const LIST: &'static str;
}

impl ListElement for Name {
    const LIST: &'static str = "a list of names";
}

impl<F: ListElement> ValueForm for ListForm<F> {
    type Value = Vec<F::Value>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<F::Value>> {
        let items = from.list(field, F::LIST)?;
        Some(items.filter_map(|item| F::read(from, item)).collect())
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        json!({"type": "array", "items": F::schema(definitions)})
    }
}

/// Whether a pattern is a regular expression; what is wrong with it is reported.
pub(crate) fn check_regex(from: &mut Decoder<'_>, field: YamlMapEntry<'_>, pattern: &str) -> bool {
    let built = regex::RegexBuilder::new(pattern).size_limit(1 << 20).build();
    if let Err(error) = &built {
        // The library draws the pattern over several lines; its last line is the reason.
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or("").trim_start_matches("error: ");
        let (key, shown) = (field.key, shorten(pattern));
        let message = format!("{key}: `{shown}` is not a regular expression: {reason}");
        from.mistake(field.wrong(), message);
    }
    built.is_ok()
}
