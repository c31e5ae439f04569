//! The files that a compose file is made of. Lines are counted through all of them, so that a value
//! keeps its place when values of several files have become one.

use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{self, SourceLocation, YamlValue, YamlValueKind};

/// One file.
#[derive(Debug)]
struct File {
    name: String,
    text: String,
    /// Lines of the files before it.
    before: u32,
}

/// All files that were read so far.
#[derive(Debug, Default)]
pub(super) struct ComposeSourceFiles {
    files: Vec<File>,
}

impl ComposeSourceFiles {
    /// The tree of a further file; of an empty one an empty map.
    pub(super) fn parse(&mut self, name: &str, text: &str) -> Result<YamlValue, ScenarioMistake> {
        let lines = |file: &File| u32::try_from(file.text.lines().count()).unwrap_or(u32::MAX);
        let last = self.files.last();
        let before =
            last.map_or(0, |file| file.before.saturating_add(lines(file)).saturating_add(2));
        let parsed = yaml::parse(text).map_err(|error| {
            ScenarioMistake::at(name, text, error.place, error.message, error.hint)
        })?;
        self.files.push(File { name: name.to_owned(), text: text.to_owned(), before });
        let empty =
            YamlValue { place: SourceLocation::START, kind: YamlValueKind::Map(Vec::new()) };
        let mut root = parsed.unwrap_or(empty);
        shift(&mut root, before);
        Ok(root)
    }

    /// A mistake at a place of one of the files.
    pub(super) fn at(&self, place: SourceLocation, message: impl Into<String>) -> ScenarioMistake {
        let of = self.files.iter().rev().find(|file| file.before < place.line);
        let (name, text, before) =
            of.map_or(("", "", 0), |file| (&*file.name, &*file.text, file.before));
        let place = SourceLocation { line: place.line - before, ..place };
        ScenarioMistake::at(name, text, place, message, None)
    }

    /// Where the first file begins.
    pub(super) const START: SourceLocation = SourceLocation::START;
}

/// Counts the lines of a tree from another one on.
fn shift(value: &mut YamlValue, lines: u32) {
    let move_by = |place: &mut SourceLocation| place.line = place.line.saturating_add(lines);
    move_by(&mut value.place);
    match &mut value.kind {
        YamlValueKind::Null | YamlValueKind::Text(_) => {}
        YamlValueKind::List(items) => items.iter_mut().for_each(|item| shift(item, lines)),
        YamlValueKind::Map(entries) => {
            for (key, value) in entries {
                move_by(&mut key.place);
                shift(value, lines);
            }
        }
    }
}
