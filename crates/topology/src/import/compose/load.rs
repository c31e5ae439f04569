//! One tree of all files: the first, those over it, what they include, and what services extend.

use std::collections::BTreeSet;

use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{YamlKey, YamlValue, YamlValueKind};

use super::merge::{merged, take};
use super::source::ComposeSourceFiles;
use super::variable::replaced;
use crate::import::document::ImportContext;
use crate::import::input::{ImportSourceText, shorten};
use crate::import::mapping::find;
use crate::import::options::ImportOptions;
use crate::topology::ConversionReport;

/// Files may include and services extend others so deep.
const DEEPEST: usize = 16;
/// The most files that are read.
const MOST_FILES: usize = 200;

/// What reads the files.
pub(super) struct ComposeFileLoader<'a> {
    pub(super) sources: ComposeSourceFiles,
    pub(super) notes: ConversionReport,
    surroundings: &'a ImportContext<'a>,
    options: &'a ImportOptions,
    files: usize,
}

impl<'a> ComposeFileLoader<'a> {
    pub(super) fn new(surroundings: &'a ImportContext<'a>, options: &'a ImportOptions) -> Self {
        let (sources, notes) = (ComposeSourceFiles::default(), ConversionReport::default());
        ComposeFileLoader { sources, notes, surroundings, options, files: 0 }
    }

    /// The tree of the file and all that belongs to it.
    pub(super) fn load(
        &mut self,
        input: &ImportSourceText<'_>,
    ) -> Result<YamlValue, ScenarioMistake> {
        let mut root = self.sources.parse(input.name, &input.text)?;
        for over in self.surroundings.over {
            let input = ImportSourceText::new(over)?;
            let over = self.sources.parse(input.name, &input.text)?;
            root = merged(root, over, "");
        }
        self.whole(root, "", 0)
    }

    /// A tree with what it includes, and services with what they extend; `folder` is where its file
    /// is, from the first one's.
    fn whole(
        &mut self,
        mut root: YamlValue,
        folder: &str,
        depth: usize,
    ) -> Result<YamlValue, ScenarioMistake> {
        self.extend_services(&mut root, folder, depth)?;
        let Some(include) = take(&mut root, "include") else { return Ok(root) };
        let items = match include.kind {
            YamlValueKind::List(items) => items,
            _ => vec![include],
        };
        for item in items {
            for (path, place) in self.paths(&item)? {
                let below = self.file(&join(folder, &path), &place, depth)?;
                root = merged(below, root, "");
            }
        }
        Ok(root)
    }

    /// The paths of one entry of `include`.
    fn paths(&mut self, item: &YamlValue) -> Result<Vec<(String, YamlValue)>, ScenarioMistake> {
        let listed = match &item.kind {
            YamlValueKind::Map(entries) => {
                for (key, _) in entries.iter().filter(|(key, _)| key.text != "path") {
                    self.notes.lose("Keys of included files", shorten(&key.text));
                }
                find(entries, "path").cloned()
            }
            _ => Some(item.clone()),
        };
        let listed = match listed {
            Some(YamlValue { kind: YamlValueKind::List(items), .. }) => items,
            other => other.into_iter().collect(),
        };
        let mut paths = Vec::new();
        for path in listed {
            paths.push((self.text(&path, "include")?, path));
        }
        Ok(paths)
    }

    /// The tree of another file; `asked` is where it is named.
    fn file(
        &mut self,
        path: &str,
        asked: &YamlValue,
        depth: usize,
    ) -> Result<YamlValue, ScenarioMistake> {
        self.files += 1;
        if depth >= DEEPEST || self.files > MOST_FILES {
            let message = format!("`{}` is too deep: files include each other", shorten(path));
            return Err(self.sources.at(asked.place, message));
        }
        let text = (self.surroundings.read)(path).and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| "it is not a text in UTF-8".to_owned())
        });
        let text = text.map_err(|why| {
            let message = format!("cannot read `{}`: {why}", shorten(path));
            self.sources.at(asked.place, message)
        })?;
        let mut root = self.sources.parse(path, &text)?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        rebase(&mut root, &folder);
        // Paths below are from the first file's folder from now on.
        self.whole(root, &folder, depth + 1)
    }

    fn extend_services(
        &mut self,
        root: &mut YamlValue,
        folder: &str,
        depth: usize,
    ) -> Result<(), ScenarioMistake> {
        let Some(YamlValue { kind: YamlValueKind::Map(services), .. }) = entry(root, "services")
        else {
            return Ok(());
        };
        let known = services.clone();
        let mut changed = Vec::new();
        for (key, value) in &known {
            let mut seen = BTreeSet::from([key.text.clone()]);
            changed.push((
                key.clone(),
                self.extended(value.clone(), &known, &mut seen, folder, depth)?,
            ));
        }
        if let Some(services) = services_of(root) {
            *services = changed;
        }
        Ok(())
    }

    fn extended(
        &mut self,
        mut service: YamlValue,
        known: &[(YamlKey, YamlValue)],
        seen: &mut BTreeSet<String>,
        folder: &str,
        depth: usize,
    ) -> Result<YamlValue, ScenarioMistake> {
        let Some(extends) = take(&mut service, "extends") else { return Ok(service) };
        let (name, file) = match &extends.kind {
            YamlValueKind::Map(_) => {
                let mut extends = extends.clone();
                (take(&mut extends, "service"), take(&mut extends, "file"))
            }
            _ => (Some(extends.clone()), None),
        };
        let Some(name) = name else {
            return Err(self.sources.at(extends.place, "`extends` has no `service`"));
        };
        let text = self.text(&name, "extends")?;
        let missing = |sources: &ComposeSourceFiles| {
            let message = format!("no service is called `{}`", shorten(&text));
            sources.at(name.place, message)
        };
        let base = match file {
            None => {
                if !seen.insert(text.clone()) {
                    let message = format!("`{}` extends itself", shorten(&text));
                    return Err(self.sources.at(name.place, message));
                }
                let base = find(known, &text).cloned().ok_or_else(|| missing(&self.sources))?;
                self.extended(base, known, seen, folder, depth)?
            }
            Some(file) => {
                let path = join(folder, &self.text(&file, "extends")?);
                let mut other = self.file(&path, &file, depth)?;
                let services = services_of(&mut other).map_or(&[][..], |services| services);
                find(services, &text).cloned().ok_or_else(|| missing(&self.sources))?
            }
        };
        Ok(merged(base, service, ""))
    }

    /// A text with its variables.
    fn text(&mut self, value: &YamlValue, what: &str) -> Result<String, ScenarioMistake> {
        let YamlValueKind::Text(text) = &value.kind else {
            return Err(self.sources.at(value.place, format!("`{what}` must be a text")));
        };
        match replaced(text, &self.options.variables) {
            Ok((text, _)) => Ok(text),
            Err(message) => Err(self.sources.at(value.place, message)),
        }
    }
}

fn entry<'v>(value: &'v mut YamlValue, name: &str) -> Option<&'v mut YamlValue> {
    let YamlValueKind::Map(entries) = &mut value.kind else { return None };
    entries.iter_mut().find(|(key, _)| key.text == name).map(|(_, value)| value)
}

/// The services of a tree.
fn services_of(root: &mut YamlValue) -> Option<&mut Vec<(YamlKey, YamlValue)>> {
    match &mut entry(root, "services")?.kind {
        YamlValueKind::Map(services) => Some(services),
        _ => None,
    }
}

/// A path from the first file's folder.
fn join(folder: &str, path: &str) -> String {
    match folder.is_empty() || path.starts_with('/') {
        true => path.to_owned(),
        false => format!("{folder}/{path}"),
    }
}

/// Makes paths of a file in another folder start at the first file's.
fn rebase(root: &mut YamlValue, folder: &str) {
    if folder.is_empty() {
        return;
    }
    let move_text = |value: &mut YamlValue, always: bool| {
        if let YamlValueKind::Text(text) = &mut value.kind
            && (always || text.starts_with('.'))
            && !text.starts_with(['/', '~', '$'])
        {
            *text = format!("./{}", join(folder, text));
        }
    };
    for section in ["secrets", "configs"] {
        let Some(YamlValue { kind: YamlValueKind::Map(entries), .. }) = entry(root, section) else {
            continue;
        };
        for (_, value) in entries {
            if let Some(file) = entry(value, "file") {
                move_text(file, true);
            }
        }
    }
    for (_, service) in services_of(root).into_iter().flatten() {
        if let Some(YamlValue { kind: YamlValueKind::List(volumes), .. }) =
            entry(service, "volumes")
        {
            for volume in volumes {
                match entry(volume, "source") {
                    Some(source) => move_text(source, false),
                    None => move_text(volume, false),
                }
            }
        }
        match entry(service, "env_file") {
            Some(YamlValue { kind: YamlValueKind::List(files), .. }) => {
                for file in files {
                    match entry(file, "path") {
                        Some(path) => move_text(path, true),
                        None => move_text(file, true),
                    }
                }
            }
            Some(file) => move_text(file, true),
            None => {}
        }
    }
}
