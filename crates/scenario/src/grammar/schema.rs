//! The JSON Schema (draft 7) of the grammar.

use serde_json::{Map as Object, Value as Json, json};

use super::{MapSchema, ValueForm};

/// The named parts of a schema.
#[derive(Debug, Default)]
pub(crate) struct SchemaDefinitions(pub(crate) Object<String, Json>);

/// The keys of a map of the schema.
pub(crate) struct SchemaProperties<'d> {
    definitions: &'d mut SchemaDefinitions,
    keys: Object<String, Json>,
    required: Vec<Json>,
}

/// One of several forms of a value: what it is, and its schema.
pub(crate) struct SchemaAlternative(
    pub(crate) &'static str,
    pub(crate) fn(&mut SchemaDefinitions) -> Json,
);

impl SchemaDefinitions {
    /// A reference to the definition called `name`, which is made the first time.
    fn refer(&mut self, name: &str, make: impl FnOnce(&mut Self) -> Json) -> Json {
        if !self.0.contains_key(name) {
            // A definition that refers to itself finds this.
            self.0.insert(name.to_owned(), Json::Null);
            let schema = make(self);
            self.0.insert(name.to_owned(), schema);
        }
        json!({"$ref": format!("#/definitions/{name}")})
    }

    /// A map with fixed keys.
    pub(crate) fn map<M: MapSchema>(&mut self, name: &str, description: &str) -> Json {
        self.refer(name, |definitions| definitions.map_inline::<M>(description))
    }

    /// A map with fixed keys, without a name.
    pub(crate) fn map_inline<M: MapSchema>(&mut self, description: &str) -> Json {
        let mut properties =
            SchemaProperties { definitions: self, keys: Object::new(), required: Vec::new() };
        M::properties(&mut properties);
        let SchemaProperties { keys, required, .. } = properties;
        let mut schema = json!({
            "type": "object",
            "description": description.trim_start(),
            "properties": keys,
            "additionalProperties": false,
            "patternProperties": {EXTENSION: true},
        });
        if !required.is_empty() {
            schema["required"] = Json::Array(required);
        }
        schema
    }

    /// Adds keys that a pattern names to the map called `name`.
    pub(crate) fn add_pattern(&mut self, name: &str, pattern: &str, value: Json) {
        if let Some(map) = self.0.get_mut(name) {
            map["patternProperties"][pattern] = value;
        }
    }

    /// One of several forms, each with its description.
    pub(crate) fn any_of(
        &mut self,
        name: &str,
        description: &str,
        alternatives: &[SchemaAlternative],
    ) -> Json {
        self.refer(name, |definitions| {
            let forms = alternatives.iter();
            let forms =
                forms.map(|SchemaAlternative(text, form)| described(form(definitions), text));
            json!({"description": description, "anyOf": forms.collect::<Vec<_>>()})
        })
    }

    /// One of a few words.
    pub(crate) fn words(&mut self, name: &str, description: &str, words: &[(&str, &str)]) -> Json {
        let word = |(word, text): &(&str, &str)| {
            let text = text.trim_start();
            json!({"type": "string", "const": word, "description": text})
        };
        let words: Vec<Json> = words.iter().map(word).collect();
        self.refer(name, |_| json!({"description": description.trim_start(), "oneOf": words}))
    }

    /// A text that a pattern describes.
    pub(crate) fn text(
        &mut self,
        name: &str,
        description: &str,
        pattern: &str,
        example: &str,
    ) -> Json {
        self.refer(name, |_| {
            json!({
                "type": "string",
                "description": description,
                "pattern": pattern,
                "examples": [example],
            })
        })
    }

    /// Whatever else has a name.
    pub(crate) fn named(&mut self, name: &str, description: &str, schema: Json) -> Json {
        self.refer(name, |_| described(schema, description))
    }
}

impl SchemaProperties<'_> {
    /// Adds a key.
    pub(crate) fn add<F: ValueForm>(&mut self, key: &str, description: &str) {
        let schema = described(F::schema(self.definitions), description);
        self.keys.insert(key.to_owned(), schema);
        if F::REQUIRED {
            self.required.push(Json::from(key));
        }
    }
}

/// A schema with a description; beside a reference draft 7 ignores what else is there.
pub(crate) fn described(schema: Json, description: &str) -> Json {
    let description = Json::from(description.trim_start());
    match schema {
        Json::Object(mut object) if !object.contains_key("$ref") => {
            object.insert("description".to_owned(), description);
            Json::Object(object)
        }
        reference => json!({"allOf": [reference], "description": description}),
    }
}

/// The keys that mean nothing here: see [`crate::tree::is_extension`].
const EXTENSION: &str = "^x-";
