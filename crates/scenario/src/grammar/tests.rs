//! A small grammar of its own: what is read, what is reported, and what the schema shows.

use serde_json::json;
use windtunnel_model::Span;

use super::*;
use crate::error::Diagnostics;
use crate::trace::TraceFiles;
use crate::tree;

map! {
    /// A lamp
    /// of two lines.
    Lamp {
        /// How bright.
        "level" LEVEL: RequiredKeyForm<BoundedInteger<1, 9>>,
        ..Timing,
        /// Its colour.
        "colour" COLOUR: Colour,
    }
}

map! {
    /// When.
    Timing {
        /// How long.
        "on-for" ON_FOR: Span,
    }
}

words! {
    /// A colour.
    Colour: u8 {
        /// Like a rose.
        "red" => 1,
        /// Like the sky.
        "blue" => 2,
    }
}

/// What `read` makes of the map in `text`, and the mistakes.
fn with<T>(text: &str, read: impl FnOnce(&mut Decoder<'_>, &Fields<'_>) -> T) -> (T, Vec<String>) {
    let root = tree::parse(text).unwrap().unwrap();
    let (mut diagnostics, mut traces) = (Diagnostics::default(), TraceFiles::default());
    let mut decoder = Decoder { diagnostics: &mut diagnostics, traces: &mut traces };
    let field = YamlMapEntry { key: "lamp", place: root.place, value: &root };
    let fields = decoder.table::<Lamp>(field, "a lamp").unwrap();
    let value = read(&mut decoder, &fields);
    if diagnostics.is_clean() {
        return (value, Vec::new());
    }
    let errors = diagnostics.into_errors("lamp.yaml", text);
    let shown = |mistake: &crate::ScenarioMistake| {
        let hint = mistake.hint.as_deref().unwrap_or("-");
        format!("{}:{} {} | {hint}", mistake.line, mistake.column, mistake.message)
    };
    (value, errors.mistakes().iter().map(shown).collect())
}

#[test]
fn a_key_is_read_in_the_form_of_its_table() {
    let read = |from: &mut Decoder<'_>, fields: &Fields<'_>| {
        let level = from.need(fields, Lamp::LEVEL, "this lamp");
        let time = from.read(fields, Timing::ON_FOR);
        (level, time, from.read_or(fields, Lamp::COLOUR, 7))
    };
    let (value, mistakes) = with("{level: 3, on-for: 5ms, colour: blue}", read);
    assert_eq!(value, (Some(3), Some(Some(Span::from_millis(5))), Some(2)));
    assert_eq!(mistakes, [""; 0]);
    let (value, mistakes) = with("{level: 3, x-note: [anything]}", read);
    assert_eq!(value, (Some(3), Some(None), Some(7)));
    assert_eq!(mistakes, [""; 0]);
}

#[test]
fn a_wrong_value_is_reported_once_with_its_place_and_a_hint() {
    let (value, mistakes) =
        with("{level: 3, colour: rde}", |from, fields| from.read_or(fields, Lamp::COLOUR, 7));
    assert_eq!(value, None);
    assert_eq!(mistakes, ["1:20 colour: `rde` is not `red` or `blue` | did you mean `red`?"]);
    let (_, mistakes) = with("{level: 12}", |from, fields| from.need(fields, Lamp::LEVEL, "it"));
    assert_eq!(mistakes, ["1:9 level: `12` is not between 1 and 9 | -"]);
}

#[test]
fn an_unknown_key_gets_the_nearest_and_hides_that_one_is_missing() {
    let need = |from: &mut Decoder<'_>, fields: &Fields<'_>| {
        from.need(fields, Lamp::LEVEL, "this lamp");
    };
    let (_, mistakes) = with("{levle: 3}", need);
    assert_eq!(mistakes, ["1:2 unknown key `levle` of a lamp | did you mean `level`?"]);
    let (_, mistakes) = with("{zzzz: 3}", need);
    assert_eq!(mistakes, ["1:2 unknown key `zzzz` of a lamp | it has level, on-for, colour"]);
    let (_, mistakes) = with("{colour: red}", need);
    assert_eq!(mistakes, ["1:1 this lamp lacks `level` | -"]);
}

#[test]
fn the_schema_comes_from_the_same_table() {
    let mut definitions = SchemaDefinitions::default();
    assert_eq!(Lamp::definition(&mut definitions), json!({"$ref": "#/definitions/Lamp"}));
    let lamp = &definitions.0["Lamp"];
    assert_eq!(lamp["description"], "A lamp of two lines.");
    assert_eq!(lamp["required"], json!(["level"]));
    assert_eq!(lamp["additionalProperties"], false);
    let level = json!({
        "type": "integer", "minimum": 1, "maximum": 9, "description": "How bright."
    });
    assert_eq!(lamp["properties"]["level"], level);
    let time = json!({"allOf": [{"$ref": "#/definitions/Time"}], "description": "How long."});
    assert_eq!(lamp["properties"]["on-for"], time);
    assert_eq!(definitions.0["Colour"]["oneOf"][1]["const"], "blue");
    assert_eq!(Lamp::list(), ["level", "on-for", "colour"]);
}
