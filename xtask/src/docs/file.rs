//! `file.md`, from the JSON Schema of the scenario file.

use serde_json::{Map, Value};

use super::{GENERATED, cell};

/// The page: a section for the file and for each definition of the schema.
pub(super) fn page(schema: &Value) -> String {
    let mut text = format!("{GENERATED}# The scenario file\n\n");
    text.push_str(
        "The same as JSON Schema, for editors: `windtunnel schema`. Mistakes in a file are reported with line and \
         column by `windtunnel check`.\n\n",
    );
    text.push_str(&body(schema));
    if let Some(definitions) = schema.get("definitions").and_then(Value::as_object) {
        for (name, definition) in definitions {
            text.push_str(&format!("\n## {name}\n\n{}", body(definition)));
        }
    }
    text
}

fn body(schema: &Value) -> String {
    let mut text = match description(schema) {
        Some(description) => format!("{description}\n\n"),
        None => String::new(),
    };
    match schema.get("properties").and_then(Value::as_object) {
        Some(properties) => text.push_str(&keys(schema, properties)),
        None => text.push_str(&format!("Written as: {}.\n", kind(schema))),
    }
    // Other ways to write the same thing may have keys of their own.
    for choice in choices(schema) {
        if let Some(properties) = choice.get("properties").and_then(Value::as_object) {
            let what = description(choice).unwrap_or("As a map");
            text.push_str(&format!("\n{what}:\n\n{}", keys(choice, properties)));
        }
    }
    text
}

fn keys(schema: &Value, properties: &Map<String, Value>) -> String {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut text = String::from("| key | written as | meaning |\n| --- | --- | --- |\n");
    for (key, value) in properties {
        let needed = if required.contains(&key.as_str()) { " (required)" } else { "" };
        let meaning = description(value).unwrap_or_default();
        let default = match value.get("default") {
            Some(default) => format!(" Default: `{}`.", plain(default)),
            None => String::new(),
        };
        let kind = cell(&kind(value));
        text.push_str(&format!("| `{key}`{needed} | {kind} | {}{default} |\n", cell(meaning)));
    }
    text
}

/// How a value is written, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(value) = schema.get("const") {
        return format!("`{}`", plain(value));
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(|v| format!("`{}`", plain(v))).collect::<Vec<_>>().join(" or ");
    }
    let choices = choices(schema);
    if !choices.is_empty() {
        let mut kinds: Vec<String> = Vec::new();
        for choice in choices.into_iter().map(kind) {
            if !kinds.contains(&choice) {
                kinds.push(choice);
            }
        }
        return kinds.join(" or ");
    }
    match schema.get("type") {
        Some(Value::Array(types)) => {
            types.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        Some(Value::String(name)) if name == "array" => match schema.get("items") {
            Some(items) if items.is_object() => format!("list of {}", kind(items)),
            _ => "list".to_owned(),
        },
        Some(Value::String(name)) if name == "object" => match schema.get("additionalProperties") {
            Some(values) if values.is_object() => format!("map of {}", kind(values)),
            _ => "map".to_owned(),
        },
        Some(Value::String(name)) => match name.as_str() {
            "string" => "text".to_owned(),
            "integer" => "whole number".to_owned(),
            "boolean" => "`true` or `false`".to_owned(),
            other => other.to_owned(),
        },
        _ => "any value".to_owned(),
    }
}

fn choices(schema: &Value) -> Vec<&Value> {
    let list = ["anyOf", "oneOf", "allOf"].into_iter().find_map(|key| schema.get(key)?.as_array());
    list.map(|choices| choices.iter().collect()).unwrap_or_default()
}

fn description(schema: &Value) -> Option<&str> {
    schema.get("description").and_then(Value::as_str)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
