//! The JSON Schema of the file.

use serde_json::{Value, json};

use crate::decode::File;
use crate::grammar::SchemaDefinitions;

/// The JSON Schema (draft 7, which editors know best) of a scenario, with a description of every
/// key.
#[must_use]
pub fn schema() -> Value {
    let mut definitions = SchemaDefinitions::default();
    let mut schema = definitions.map_inline::<File>(File::DESCRIPTION);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("Windtunnel scenario");
    schema["definitions"] = Value::Object(definitions.0);
    schema
}

#[cfg(test)]
mod tests {
    use super::schema;

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
