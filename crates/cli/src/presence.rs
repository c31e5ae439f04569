//! Whether this machine has the programs and folders of a scenario; errors name the place.

use std::collections::BTreeSet;
use std::path::Path;

use windtunnel_host::presence::{
    MissingPrerequisite, NotRunnable, ProgramPrerequisite, folders_of, missing,
};
use windtunnel_scenario::{
    LoadedScenario, ScenarioErrors, ScenarioMistake, ScenarioNotice, SourceLocation, nearest,
};

use crate::failure::VerbFailure;

/// Refuses a scenario with programs or working folders that are not there. One that another program
/// may make before it is needed becomes a notice.
pub(crate) fn check(
    loaded: &mut LoadedScenario,
    name: &str,
    text: &[u8],
    base: &Path,
) -> Result<(), VerbFailure> {
    let text = String::from_utf8_lossy(text);
    let mut reported = BTreeSet::new();
    let mut mistakes = Vec::new();
    for missing in missing(&loaded.plan, base, None) {
        let group = loaded.plan.nodes[missing.node.index()].group.clone();
        let place = place_of(loaded, &group, &missing);
        // Members of a group are written once.
        let is_check = matches!(missing.what, ProgramPrerequisite::Check(_));
        if !reported.insert((group, missing.program, is_check)) {
            continue;
        }
        let message = missing.message();
        if missing.may_come {
            let message = format!("{message}: something must make it before it is needed");
            loaded.notices.push(ScenarioNotice::at(place, message));
        } else {
            let hint = missing.hint().or_else(|| near(&missing));
            mistakes.push(ScenarioMistake::at(name, &text, place, message, hint));
        }
    }
    if mistakes.is_empty() {
        Ok(())
    } else {
        Err(VerbFailure::Scenario(ScenarioErrors::of(mistakes)))
    }
}

fn place_of(loaded: &LoadedScenario, group: &str, missing: &MissingPrerequisite) -> SourceLocation {
    let written = loaded.programs.get(group).and_then(|programs| programs.get(missing.program));
    let place = written.map(|written| match missing.what {
        ProgramPrerequisite::Folder(..) => written.cwd.unwrap_or(written.run),
        ProgramPrerequisite::Program(_) => written.run,
        ProgramPrerequisite::Check(_) => written.ready.unwrap_or(written.run),
    });
    place.unwrap_or(SourceLocation::START)
}

/// A program with a similar name.
fn near(missing: &MissingPrerequisite) -> Option<String> {
    match &missing.what {
        ProgramPrerequisite::Program(NotRunnable::NotInPath(name))
        | ProgramPrerequisite::Check(NotRunnable::NotInPath(name)) => similar(name),
        _ => None,
    }
}

/// `did you mean`, for a name that no program of `PATH` has.
pub(crate) fn similar(name: &str) -> Option<String> {
    let folders = folders_of(None).into_iter().filter_map(|folder| std::fs::read_dir(folder).ok());
    let names =
        folders.flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let names: BTreeSet<String> = names.collect();
    let near = nearest(name, names.iter().map(String::as_str))?;
    Some(format!("did you mean `{near}`?"))
}
