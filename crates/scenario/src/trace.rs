//! Trace files: found in the tree, read once each, parsed when a link names them.

mod csv;
mod mahimahi;
mod syntax_error;

use std::collections::BTreeMap;

use windtunnel_model::trace::{LinkTrace, TraceContent};

use crate::error::Diagnostics;
use crate::position::SourceLocation;
use crate::source::{LARGEST_FILE, ReadFile};
use crate::text::shorten;
use crate::tree::{YamlValue, YamlValueKind, is_extension};
use syntax_error::TraceSyntaxError;

/// The trace files that a scenario names.
#[derive(Debug, Default)]
pub(crate) struct TraceFiles {
    /// `None`: files cannot be read here.
    texts: Option<BTreeMap<String, Result<Vec<u8>, String>>>,
    /// By file and form: the position among the traces; `None` if it has a mistake, reported
    /// already.
    known: BTreeMap<(String, TraceFormat), Option<u32>>,
    traces: Vec<LinkTrace>,
}

/// What a trace file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TraceFormat {
    /// A millisecond a line.
    Mahimahi,
    /// A table with a header.
    Csv,
}

impl TraceFiles {
    /// The most bytes of all traces of a scenario together.
    const MOST_BYTES: usize = 4 * LARGEST_FILE;

    /// Reads what the links, defaults and events of a file name.
    pub(crate) fn read(root: &YamlValue, files: &ReadFile<'_>) -> Self {
        let mut texts = BTreeMap::new();
        let mut total = 0_usize;
        for name in named(root) {
            if texts.contains_key(name) {
                continue;
            }
            let text = if total > Self::MOST_BYTES {
                Err(format!("the traces are more than {} MiB together", Self::MOST_BYTES >> 20))
            } else {
                files(name)
            };
            total = total.saturating_add(text.as_ref().map_or(0, Vec::len));
            texts.insert(name.to_owned(), text);
        }
        TraceFiles { texts: Some(texts), ..TraceFiles::default() }
    }

    /// The traces that links named, in the order of their ids.
    pub(crate) fn into_traces(self) -> Vec<LinkTrace> {
        self.traces
    }

    /// The trace in `file`, which is named at `place`: its id and content.
    pub(crate) fn trace(
        &mut self,
        found: &mut Diagnostics,
        file: &str,
        form: TraceFormat,
        place: SourceLocation,
    ) -> Option<(u32, &TraceContent)> {
        let key = (file.to_owned(), form);
        let id = match self.known.get(&key) {
            Some(known) => *known,
            None => {
                let content = self.parse(found, file, form, place);
                let id = content.map(|content| {
                    self.traces.push(LinkTrace { file: file.to_owned(), content });
                    u32::try_from(self.traces.len() - 1).unwrap_or(u32::MAX)
                });
                self.known.insert(key, id);
                id
            }
        };
        let index = usize::try_from(id?).ok()?;
        Some((id?, &self.traces.get(index)?.content))
    }

    fn parse(
        &mut self,
        found: &mut Diagnostics,
        file: &str,
        form: TraceFormat,
        place: SourceLocation,
    ) -> Option<TraceContent> {
        let shown = shorten(file);
        let Some(texts) = &mut self.texts else {
            let message = "a trace is read with the scenario, not while the run lives";
            let hint = "put it into the file: on the link, or in an event's `set`";
            found.mistake_with_hint(place, message, hint);
            return None;
        };
        let bytes = match texts.remove(file) {
            Some(Ok(bytes)) if bytes.len() > LARGEST_FILE => {
                let megabytes = LARGEST_FILE >> 20;
                found.mistake(place, format!("the trace `{shown}` is larger than {megabytes} MiB"));
                return None;
            }
            Some(Ok(bytes)) => bytes,
            Some(Err(reason)) => {
                let message = format!("cannot read the trace `{shown}`: {reason}");
                let hint = "paths are relative to the scenario's folder";
                found.mistake_with_hint(place, message, hint);
                return None;
            }
            None => {
                found.mistake(
                    place,
                    format!("`{shown}` is milliseconds in one place and a table in another"),
                );
                return None;
            }
        };
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => {
                found.mistake(place, format!("the trace `{shown}` is not a text in UTF-8"));
                return None;
            }
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let parsed = match form {
            TraceFormat::Mahimahi => mahimahi::parse(text).map(TraceContent::Opportunities),
            TraceFormat::Csv => csv::parse(text).map(TraceContent::Series),
        };
        match parsed {
            Ok(content) => Some(content),
            Err(TraceSyntaxError { place, message, hint }) => {
                found.mistake_in(file, text, place, message, hint);
                None
            }
        }
    }
}

/// The files that a scenario names where link properties stand.
fn named(root: &YamlValue) -> Vec<&str> {
    let mut names = Vec::new();
    if let YamlValueKind::Map(entries) = &root.kind {
        for (key, value) in entries {
            // Programs of nodes have environments with keys of their own.
            if key.text != "nodes" && !is_extension(&key.text) {
                collect(value, &mut names);
            }
        }
    }
    names
}

fn collect<'t>(value: &'t YamlValue, names: &mut Vec<&'t str>) {
    match &value.kind {
        YamlValueKind::List(items) => items.iter().for_each(|item| collect(item, names)),
        YamlValueKind::Map(entries) => {
            for (key, value) in entries {
                match (key.text.as_str(), &value.kind) {
                    // Its traces are of nodes, not of links.
                    ("churn", _) => {}
                    (key, _) if is_extension(key) => {}
                    ("trace", YamlValueKind::Text(file)) => names.push(file),
                    ("trace", YamlValueKind::Map(entries)) => {
                        let file = entries.iter().find(|(key, _)| key.text == "file");
                        if let Some((_, YamlValue { kind: YamlValueKind::Text(file), .. })) = file {
                            names.push(file);
                        }
                    }
                    _ => collect(value, names),
                }
            }
        }
        YamlValueKind::Null | YamlValueKind::Text(_) => {}
    }
}
