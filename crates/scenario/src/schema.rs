//! The JSON Schema of the file.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// The JSON Schema (draft 7, which editors know best) of a scenario, with a description of every
/// key.
#[must_use]
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft07().into_generator();
    // What only percentiles refer to, whose keys are a pattern.
    generator.subschema_for::<crate::file::OccupancyBounds>();
    let mut schema = generator.into_root_schema_for::<crate::file::File>().to_value();
    tidy(&mut schema);
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), Value::from("Windtunnel scenario"));
    }
    schema
}

/// Types say that a key may be missing, by `Option`; that it may be `null` does not follow. Doc
/// comments are wrapped where editors would not. And each map with fixed keys takes extensions.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(map) => {
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
                choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
                if let [only] = choices.as_slice() {
                    let only = only.clone();
                    map.remove("anyOf");
                    map.insert("allOf".to_owned(), Value::Array(vec![only]));
                }
            }
            if let Some(Value::String(description)) = map.get_mut("description") {
                *description = description.replace('\n', " ");
            }
            if map.get("additionalProperties") == Some(&Value::Bool(false)) {
                let patterns = map.entry("patternProperties").or_insert_with(|| json!({}));
                if let Some(patterns) = patterns.as_object_mut() {
                    patterns.insert(EXTENSION.to_owned(), Value::Bool(true));
                }
            }
            // What stays as it is: a node with nothing after its name is a node without properties.
            map.iter_mut()
                .filter(|(key, _)| *key != "additionalProperties")
                .for_each(|(_, value)| tidy(value));
        }
        _ => {}
    }
}

/// The keys that mean nothing here: see [`crate::keys::is_extension`].
const EXTENSION: &str = "^x-";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::schema;
    use crate::keys;

    /// The decoder's keys and the schema's are written down twice; this is what keeps them one.
    #[test]
    fn the_schema_and_the_decoder_know_the_same_keys() {
        let schema = schema();
        let maps: [(&str, &[&str]); 40] = [
            ("", keys::FILE),
            ("Defaults", keys::DEFAULTS),
            ("NodeDefaults", keys::NODE_DEFAULTS),
            ("Node", keys::NODE),
            ("Program", keys::PROGRAM),
            ("ReadyForm", keys::READY),
            ("Direction", keys::DIRECTION),
            ("Both", keys::BOTH),
            ("Link", keys::LINK),
            ("Lan", keys::LAN),
            ("RateTrace", keys::RATE),
            ("TraceForm", keys::TRACE),
            ("JitterForm", keys::JITTER),
            ("LossForm", keys::LOSS),
            ("ReorderForm", keys::REORDER),
            ("DisciplineForm", keys::DISCIPLINE),
            ("Codel", keys::CODEL),
            ("Red", keys::RED),
            ("Pie", keys::PIE),
            ("FqCodel", keys::FQ_CODEL),
            ("Fair", keys::FAIR),
            ("RoutingForm", keys::ROUTING),
            ("Route", keys::ROUTE),
            ("Event", keys::EVENT),
            ("OneWay", keys::PARTITION),
            ("Flap", keys::FLAP),
            ("Churn", keys::CHURN),
            ("Elsewhere", keys::ELSEWHERE),
            ("Expect", keys::EXPECT),
            ("TimeBounds", keys::BOUNDS),
            ("RateBounds", keys::BOUNDS),
            ("ShareBounds", keys::BOUNDS),
            ("CountBounds", keys::BOUNDS),
            ("OccupancyBounds", keys::BOUNDS),
            ("RttBounds", keys::RTT),
            ("RateFigures", keys::RATE_FIGURES),
            ("QueueBounds", keys::LEVEL_FIGURES),
            ("LatenessBounds", keys::LEVEL_FIGURES),
            ("DropBounds", keys::DROPS),
            ("LogForm", keys::LOG),
        ];
        for (name, known) in maps {
            let map = if name.is_empty() { &schema } else { &schema["definitions"][name] };
            let offered: BTreeSet<&str> =
                map["properties"].as_object().expect(name).keys().map(String::as_str).collect();
            assert_eq!(offered, known.iter().copied().collect(), "keys of {name:?}");
            assert_eq!(map["additionalProperties"], Value::Bool(false), "{name:?}");
            assert_eq!(map["patternProperties"]["^x-"], Value::Bool(true), "{name:?}");
        }
        let with_keys = schema["definitions"].as_object().unwrap();
        let with_keys = with_keys.values().filter(|d| d.get("properties").is_some()).count();
        assert_eq!(with_keys, maps.len() - 1, "a map of the schema is not compared");
    }

    #[test]
    fn every_key_has_a_description() {
        let schema = schema();
        let maps = schema["definitions"].as_object().unwrap().values().chain([&schema]);
        for (key, property) in maps.filter_map(|map| map.get("properties")?.as_object()).flatten() {
            assert!(property["description"].is_string(), "{key}");
        }
    }

    #[test]
    fn the_schema_is_the_one_that_was_reviewed() {
        insta::assert_json_snapshot!(schema());
    }
}
