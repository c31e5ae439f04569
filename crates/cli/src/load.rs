//! Reading a scenario from a file or from standard input.

mod usual;

use std::fs::File;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

use windtunnel_scenario::{LARGEST_FILE, LoadedScenario, ScenarioOverrides, ScenarioSource};

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;
use crate::{images, presence};

pub(crate) use usual::{ScenarioFile, USUAL_NAME, usual};

/// Reads and resolves the scenario in `file` (`-`: standard input), with what holds instead of what
/// it says, or beside it. Images in registries are fetched, with a bar unless it is to be `quiet`.
pub(crate) fn scenario(
    file: &Path,
    instead: ScenarioOverrides<'_>,
    quiet: bool,
) -> Result<LoadedScenario, VerbFailure> {
    let name = match is_standard_input(file) {
        true => "<stdin>".to_owned(),
        false => file.display().to_string(),
    };
    let text = read(file).map_err(|error| {
        let text = format!("cannot read the scenario {name}: {error}");
        let hint = "name a scenario file; the tutorial in docs/ shows how to write one";
        VerbFailure::new(ExitCategory::Scenario, text).hint(hint)
    })?;
    let stem = file.file_stem().filter(|_| !is_standard_input(file));
    let stem = stem.map(|stem| stem.to_string_lossy().into_owned());
    let default_name = stem.as_deref().unwrap_or("scenario");
    let base = folder_of(file);
    let mut loaded = resolve(&name, &text, default_name, &base, instead)?;
    images::look_at(&mut loaded, &name, &text, quiet)?;
    if !instead.several_machines {
        // Over several machines, each looks at the programs of its own nodes.
        images::check_platforms(&loaded, &name, &text)?;
        presence::check(&mut loaded, &name, &text, &base)?;
    }
    Ok(loaded)
}

/// Resolves a scenario's text; `name` is what mistakes are found in, `base` where files that it
/// names are.
pub(crate) fn resolve(
    name: &str,
    text: &[u8],
    default_name: &str,
    base: &Path,
    instead: ScenarioOverrides<'_>,
) -> Result<LoadedScenario, VerbFailure> {
    let source = ScenarioSource { name, text, default_name, base_dir: &base.to_string_lossy() };
    Ok(windtunnel_scenario::load_instead(&source, &|name: &str| read_named(base, name), instead)?)
}

/// Reads a file that a scenario names; relative paths start at `folder`.
pub(crate) fn read_named(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    let path = folder.join(name);
    File::open(path).and_then(read_most).map_err(|error| error.to_string())
}

/// Whether the file is standard input.
pub(crate) fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    match is_standard_input(file) {
        true => read_most(stdin().lock()),
        false => read_most(File::open(file)?),
    }
}

/// At most one byte more than is allowed: enough for the decoder to refuse it.
fn read_most(source: impl Read) -> std::io::Result<Vec<u8>> {
    let most = u64::try_from(LARGEST_FILE).unwrap_or(u64::MAX).saturating_add(1);
    let mut text = Vec::new();
    source.take(most).read_to_end(&mut text)?;
    Ok(text)
}

/// The absolute path of the file's folder; of standard input it is the current one.
pub(crate) fn folder_of(file: &Path) -> PathBuf {
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    absolute.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned)
}
