//! Values of a compose file.

use windtunnel_scenario::Mistake;
use windtunnel_scenario::yaml::{Key, Kind, Value};

use super::variable;
use crate::import::input::{Input, shorten};
use crate::topology::Notes;

pub(super) type Map = [(Key, Value)];

pub(super) struct Reader<'a> {
    pub(super) input: &'a Input<'a>,
}

impl Reader<'_> {
    pub(super) fn map<'v>(&self, value: &'v Value, what: &str) -> Result<&'v Map, Mistake> {
        match &value.kind {
            Kind::Map(keys) => Ok(keys),
            Kind::Null => Ok(&[]),
            _ => Err(self.input.at(value.place, format!("`{what}` must be a map of keys"), None)),
        }
    }

    /// A scalar with its variables replaced.
    pub(super) fn text(
        &self,
        value: &Value,
        what: &str,
        notes: &mut Notes,
    ) -> Result<String, Mistake> {
        match &value.kind {
            Kind::Text(text) => {
                let (text, unknown) = variable::replaced(text);
                for name in unknown {
                    let lost = "Variables of the shell that composes: they are empty here";
                    notes.lose(lost, shorten(&name));
                }
                Ok(text)
            }
            Kind::Null => Ok(String::new()),
            _ => Err(self.input.at(value.place, format!("`{what}` must be a text"), None)),
        }
    }

    /// A list of texts, or one text.
    pub(super) fn texts(
        &self,
        value: &Value,
        what: &str,
        notes: &mut Notes,
    ) -> Result<Vec<String>, Mistake> {
        match &value.kind {
            Kind::List(items) => items.iter().map(|item| self.text(item, what, notes)).collect(),
            Kind::Null => Ok(Vec::new()),
            _ => Ok(vec![self.text(value, what, notes)?]),
        }
    }

    /// A map of texts, or a list of `name=value`. A name without a value has the shell's.
    pub(super) fn pairs(
        &self,
        value: &Value,
        what: &str,
        notes: &mut Notes,
    ) -> Result<Vec<(String, Option<String>)>, Mistake> {
        if let Kind::Map(keys) = &value.kind {
            let pair = |(key, value): &(Key, Value)| match value.kind {
                Kind::Null => Ok((key.text.clone(), None)),
                _ => Ok((key.text.clone(), Some(self.text(value, what, notes)?))),
            };
            return keys.iter().map(pair).collect();
        }
        let texts = self.texts(value, what, notes)?.into_iter();
        let pair = |text: String| match text.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (text, None),
        };
        Ok(texts.map(pair).collect())
    }
}
