//! The grammar of the file, written once: each map is a table of keys with a description and the
//! [`ValueForm`] of the value. The decoder, the lists of keys in hints and the JSON Schema come from it.
//!
//! A table is made by [`map!`], a set of words by [`words!`]; a value that has several forms
//! implements [`ValueForm`] by hand. Every key is a typed constant, so that the decoder cannot read a
//! key in another form than the schema shows, and the compiler reports one that is never read.

mod decoder;
mod scalar;
mod schema;

use std::marker::PhantomData;

use serde_json::Value as Json;

pub(crate) use decoder::{Decoder, Fields, YamlMapEntry};
pub(crate) use scalar::{
    BoundedInteger, ListElement, ListForm, Name, NameListForm, check_regex, one_or_two, text, texts,
};
pub(crate) use schema::{SchemaAlternative, SchemaDefinitions, SchemaProperties};

/// What may stand as a value.
pub(crate) trait ValueForm {
    /// What it means.
    type Value;
    /// Whether the key of such a value must be there.
    const REQUIRED: bool = false;

    /// Reads a value; what is wrong with it goes to the decoder.
    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Self::Value>;

    /// Its JSON Schema: inline, or a reference to a definition.
    fn schema(definitions: &mut SchemaDefinitions) -> Json;
}

/// A map with fixed keys, or a group of keys that several maps have.
pub(crate) trait MapSchema {
    /// The keys, in the order in which hints name them.
    fn keys(keys: &mut Vec<&'static str>);

    /// Adds the keys to the schema of a map.
    fn properties(properties: &mut SchemaProperties<'_>);

    /// The keys as a list.
    fn list() -> Vec<&'static str> {
        let mut keys = Vec::new();
        Self::keys(&mut keys);
        keys
    }
}

/// A key of a map, with the form of its value.
pub(crate) struct SchemaKey<F> {
    pub(crate) name: &'static str,
    form: PhantomData<F>,
}

impl<F> SchemaKey<F> {
    pub(crate) const fn new(name: &'static str) -> Self {
        SchemaKey { name, form: PhantomData }
    }
}

impl<F> From<SchemaKey<F>> for &'static str {
    fn from(key: SchemaKey<F>) -> Self {
        key.name
    }
}

impl<F> Clone for SchemaKey<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for SchemaKey<F> {}

/// A form whose key must be there.
pub(crate) struct RequiredKeyForm<F>(PhantomData<F>);

impl<F: ValueForm> ValueForm for RequiredKeyForm<F> {
    type Value = F::Value;
    const REQUIRED: bool = true;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<F::Value> {
        F::read(from, field)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        F::schema(definitions)
    }
}

/// Declares a map: its description, then its keys, each with a description, the constant by which
/// the decoder reads it, and its form. `..Group` stands for the keys of another table. The map is
/// a form of its own if it says how it is read: `Name, Value, by function { … }`.
macro_rules! map {
    (
        $(#[doc = $doc:literal])*
        $name:ident $(as $schema_name:literal)? $(, $value:ty, by $read:path)? {
            $($rows:tt)*
        }
    ) => {
        $(#[doc = $doc])*
        pub(crate) struct $name;

        $crate::grammar::map!(@rows $name [] $($rows)*);

        impl $name {
            /// What it is.
            #[allow(dead_code, reason = "a group of keys is part of other maps only")]
            pub(crate) const DESCRIPTION: &'static str = concat!($($doc),*);

            /// The schema of the whole map, by reference.
            #[allow(dead_code, reason = "a group of keys is part of other maps only")]
            pub(crate) fn definition(
                definitions: &mut $crate::grammar::SchemaDefinitions,
            ) -> serde_json::Value {
                let name = $crate::grammar::map!(@name $name $($schema_name)?);
                definitions.map::<$name>(name, $name::DESCRIPTION)
            }
        }

        impl $name {
            /// The schema of the map with other keys, which a pattern names.
            #[allow(dead_code, reason = "few maps have such keys")]
            pub(crate) fn definition_with(
                definitions: &mut $crate::grammar::SchemaDefinitions,
                pattern: &str,
                value: serde_json::Value,
            ) -> serde_json::Value {
                let name = $crate::grammar::map!(@name $name $($schema_name)?);
                let reference = $name::definition(definitions);
                definitions.add_pattern(name, pattern, value);
                reference
            }
        }

        $(
            impl $crate::grammar::ValueForm for $name {
                type Value = $value;

                fn read(
                    from: &mut $crate::grammar::Decoder<'_>,
                    field: $crate::grammar::YamlMapEntry<'_>,
                ) -> Option<$value> {
                    $read(from, field)
                }

                fn schema(definitions: &mut $crate::grammar::SchemaDefinitions) -> serde_json::Value {
                    $name::definition(definitions)
                }
            }
        )?
    };
    (@name $name:ident) => {
        stringify!($name)
    };
    (@name $name:ident $schema_name:literal) => {
        $schema_name
    };
    // Every row becomes a call on the list of keys and one on the schema.
    (@rows $name:ident [$($done:tt)*]) => {
        impl $crate::grammar::MapSchema for $name {
            fn keys(keys: &mut Vec<&'static str>) {
                $crate::grammar::map!(@keys keys $($done)*);
            }

            fn properties(properties: &mut $crate::grammar::SchemaProperties<'_>) {
                $crate::grammar::map!(@properties properties $($done)*);
            }
        }
    };
    (@rows $name:ident [$($done:tt)*] ..$group:ident, $($rest:tt)*) => {
        $crate::grammar::map!(@rows $name [$($done)* (group $group)] $($rest)*);
    };
    (@rows $name:ident [$($done:tt)*]
        $(#[doc = $doc:literal])* $key:literal $constant:ident: $form:ty, $($rest:tt)*
    ) => {
        impl $name {
            #[allow(private_interfaces, reason = "a form is seen where its table is")]
            $(#[doc = $doc])*
            pub(crate) const $constant: $crate::grammar::SchemaKey<$form> =
                $crate::grammar::SchemaKey::new($key);
        }
        $crate::grammar::map!(
            @rows $name [$($done)* (key $name $key ($($doc)*) $form)] $($rest)*
        );
    };
    (@keys $keys:ident) => {};
    (@keys $keys:ident (group $group:ident) $($rest:tt)*) => {
        <$group as $crate::grammar::MapSchema>::keys($keys);
        $crate::grammar::map!(@keys $keys $($rest)*);
    };
    (@keys $keys:ident (key $name:ident $key:literal $doc:tt $form:ty) $($rest:tt)*) => {
        $keys.push($key);
        $crate::grammar::map!(@keys $keys $($rest)*);
    };
    (@properties $properties:ident) => {};
    (@properties $properties:ident (group $group:ident) $($rest:tt)*) => {
        <$group as $crate::grammar::MapSchema>::properties($properties);
        $crate::grammar::map!(@properties $properties $($rest)*);
    };
    (@properties $properties:ident
        (key $name:ident $key:literal ($($doc:literal)*) $form:ty) $($rest:tt)*
    ) => {
        $properties.add::<$form>($key, concat!($($doc),*));
        $crate::grammar::map!(@properties $properties $($rest)*);
    };
}

/// Declares a form of a value that another form describes in the schema: its description, what it
/// means, the function that reads it, and the schema.
macro_rules! form {
    (
        $(#[doc = $doc:literal])*
        $visibility:vis $name:ident: $value:ty, by $read:path, like $schema:path
    ) => {
        $(#[doc = $doc])*
        $visibility struct $name;

        impl $crate::grammar::ValueForm for $name {
            type Value = $value;

            fn read(
                from: &mut $crate::grammar::Decoder<'_>,
                field: $crate::grammar::YamlMapEntry<'_>,
            ) -> Option<$value> {
                $read(from, field)
            }

            fn schema(definitions: &mut $crate::grammar::SchemaDefinitions) -> serde_json::Value {
                $schema(definitions)
            }
        }
    };
}

/// Declares a set of words, each with a description and what it means. The type that they mean is
/// the form, unless a name for the form stands in front.
macro_rules! words {
    (
        $(#[doc = $doc:literal])*
        $name:ident: $value:ty {
            $($words:tt)*
        }
    ) => {
        $crate::grammar::words! {
            $(#[doc = $doc])*
            $name as stringify!($name); $value {
                $($words)*
            }
        }
    };
    (
        $(#[doc = $doc:literal])*
        $name:ident as $schema_name:expr; $value:ty {
            $($(#[doc = $word_doc:literal])* $word:literal => $meaning:expr,)*
        }
    ) => {
        $(#[doc = $doc])*
        pub(crate) struct $name;

        impl $name {
            /// The words and what they mean.
            pub(crate) const WORDS: &'static [(&'static str, $value)] =
                &[$(($word, $meaning)),*];
        }

        impl $crate::grammar::ValueForm for $name {
            type Value = $value;

            fn read(
                from: &mut $crate::grammar::Decoder<'_>,
                field: $crate::grammar::YamlMapEntry<'_>,
            ) -> Option<$value> {
                from.choice(field, $name::WORDS)
            }

            fn schema(definitions: &mut $crate::grammar::SchemaDefinitions) -> serde_json::Value {
                let words = [$(($word, concat!($($word_doc),*))),*];
                definitions.words($schema_name, concat!($($doc),*), &words)
            }
        }
    };
}

pub(crate) use {form, map, words};

#[cfg(test)]
mod tests;
