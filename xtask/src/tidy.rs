//! Mechanical checks of the tree. Counts are by lines, of code that rustfmt has laid out.

mod aliases;
mod circles;
mod docs;
mod methods;
mod parameters;
mod paths;
mod rings;
mod rust;
#[cfg(test)]
mod testing;
mod types;
mod words;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Violations in the tree, as `path:line: what`.
///
/// # Errors
/// If the tree cannot be read.
pub fn faults(root: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    walk(root, &mut files)?;
    files.sort();
    let name = |path: &PathBuf| path.strip_prefix(root).unwrap_or(path).display().to_string();
    let names: Vec<String> = files.iter().map(name).collect();
    let (mut faults, mut types) = (Vec::new(), types::DeclaredTypes::default());
    let mut modules = circles::ModuleGraph::default();
    let mut methods = methods::MethodCounts::default();
    for (path, name) in files.iter().zip(&names) {
        let Ok(text) = fs::read_to_string(path) else { continue };
        texts(name, &text, &mut faults);
        words::check(name, &text, &mut faults);
        paths::check(name, &text, paths::SourceTree { root, names: &names }, &mut faults);
        if name.ends_with(".rs") {
            rust::check(name, &text, &mut faults);
            parameters::check(name, &text, &mut faults);
            docs::check(name, &text, &mut faults);
            types.add(name, &text);
            modules.add(name, &text);
            methods.add(name, &text);
            aliases::check(name, &text, &mut faults);
            rings::check_std(name, &text, &mut faults);
        }
        if name.ends_with("Cargo.toml") {
            rings::check(name, &text, &mut faults);
        }
    }
    types.check(&mut faults);
    modules.check(&mut faults);
    methods.check(&mut faults);
    Ok(faults)
}

/// Every file but those of tools, in no order.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
            walk(&entry.path(), files)?;
        } else if kind.is_file() && KINDS.iter().any(|kind| name.ends_with(kind)) {
            files.push(entry.path());
        }
    }
    Ok(())
}

const SKIPPED: [&str; 8] =
    ["target", "node_modules", ".git", "runs", "corpus", "cases", "snapshots", "golden"];
const KINDS: [&str; 9] = [".rs", ".toml", ".md", ".yaml", ".yml", ".sh", ".py", "ci", ".1"];

/// Checks of any text.
fn texts(name: &str, text: &str, faults: &mut Vec<String>) {
    for (index, line) in text.lines().enumerate() {
        let mut fault = |what: &str| faults.push(format!("{name}:{}: {what}", index + 1));
        if line.ends_with([' ', '\t']) {
            fault("blanks at the end of the line");
        }
        for mark in marks() {
            if line.contains(&mark) {
                fault(&format!("`{mark}`: do it or write it down in docs/limitations.md"));
            }
        }
        for banned in banned() {
            if line.contains(&banned) {
                fault(&format!("`{banned}` does not belong into the tree"));
            }
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        faults.push(format!("{name}: the last line has no end"));
    }
}

/// Put together here, so that this file does not hold them.
fn marks() -> [String; 2] {
    [["TO", "DO"].concat(), ["FIX", "ME"].concat()]
}

/// Hosts of package registries, and paths of one machine.
fn banned() -> [String; 7] {
    [
        ["crates", ".io"].concat(),
        ["py", "pi", ".org"].concat(),
        ["npm", "js", ".com"].concat(),
        ["proxy.", "golang", ".org"].concat(),
        ["/work/", "shared"].concat(),
        ["/work/", "main"].concat(),
        ["/home/", "user"].concat(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_marks_and_blanks_are_found_with_their_line() {
        let mut faults = Vec::new();
        texts("a.md", &format!("fine\nbad \n{} later\n", marks()[0]), &mut faults);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].starts_with("a.md:2: blanks"));
        assert!(faults[1].starts_with("a.md:3: "));
    }
}
