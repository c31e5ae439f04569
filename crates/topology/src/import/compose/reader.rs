//! Values of a compose file.

use std::collections::BTreeMap;

use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{SourceLocation, YamlKey, YamlValue, YamlValueKind};

use super::source::ComposeSourceFiles;
use super::variable;
use crate::import::input::shorten;
use crate::topology::ConversionReport;

pub(super) struct ComposeReader<'a> {
    pub(super) sources: &'a ComposeSourceFiles,
    /// Variables of the shell and of `.env`.
    pub(super) variables: &'a BTreeMap<String, String>,
}

impl ComposeReader<'_> {
    /// A mistake at a place.
    pub(super) fn at(&self, place: SourceLocation, message: impl Into<String>) -> ScenarioMistake {
        self.sources.at(place, message)
    }

    pub(super) fn map<'v>(
        &self,
        value: &'v YamlValue,
        what: &str,
    ) -> Result<&'v [(YamlKey, YamlValue)], ScenarioMistake> {
        match &value.kind {
            YamlValueKind::Map(keys) => Ok(keys),
            YamlValueKind::Null => Ok(&[]),
            _ => Err(self.at(value.place, format!("`{what}` must be a map of keys"))),
        }
    }

    /// A scalar with its variables replaced.
    pub(super) fn text(
        &self,
        value: &YamlValue,
        what: &str,
        notes: &mut ConversionReport,
    ) -> Result<String, ScenarioMistake> {
        match &value.kind {
            YamlValueKind::Text(text) => {
                let replaced = variable::replaced(text, self.variables);
                let (text, unknown) = replaced.map_err(|message| self.at(value.place, message))?;
                for name in unknown {
                    let text = "Variables that are set neither here nor in `.env`: they are empty";
                    notes.assume_once(text, shorten(&name));
                }
                Ok(text)
            }
            YamlValueKind::Null => Ok(String::new()),
            _ => Err(self.at(value.place, format!("`{what}` must be a text"))),
        }
    }

    /// A list of texts, or one text.
    pub(super) fn texts(
        &self,
        value: &YamlValue,
        what: &str,
        notes: &mut ConversionReport,
    ) -> Result<Vec<String>, ScenarioMistake> {
        match &value.kind {
            YamlValueKind::List(items) => {
                items.iter().map(|item| self.text(item, what, notes)).collect()
            }
            YamlValueKind::Null => Ok(Vec::new()),
            _ => Ok(vec![self.text(value, what, notes)?]),
        }
    }

    /// A map of texts, or a list of `name=value`. A name without a value has the shell's.
    pub(super) fn pairs(
        &self,
        value: &YamlValue,
        what: &str,
        notes: &mut ConversionReport,
    ) -> Result<Vec<(String, Option<String>)>, ScenarioMistake> {
        if let YamlValueKind::Map(keys) = &value.kind {
            let pair = |(key, value): &(YamlKey, YamlValue)| match value.kind {
                YamlValueKind::Null => Ok((key.text.clone(), None)),
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
