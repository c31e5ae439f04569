//! How many packages of others there may be: each is compiled with Windtunnel, and has to be trusted.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Command;

/// Packages of others in Cargo.lock, those of tests included. To be lowered when there are fewer; raised with a decision record.
const LOCKED_MAX: usize = 320;
/// Those of the program itself on Linux.
const OF_THE_PROGRAM_MAX: usize = 175;

/// Why there are too many.
///
/// # Errors
/// If cargo does not print the tree of the program.
pub(super) fn faults(root: &Path, locked: usize) -> io::Result<Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "--package", "windtunnel-cli", "--edges", "normal,build"])
        .args(["--prefix", "none", "--target", "x86_64-unknown-linux-gnu"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("cargo tree: {text}")));
    }
    let of_the_program = count(&String::from_utf8_lossy(&output.stdout));
    let locked = fault("Cargo.lock", locked, LOCKED_MAX);
    Ok(locked.into_iter().chain(fault("the program", of_the_program, OF_THE_PROGRAM_MAX)).collect())
}

/// Packages of others by name and version, with which a line begins.
fn count(tree: &str) -> usize {
    let name_and_version = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    };
    let of_others = tree.lines().filter(|line| !line.starts_with("windtunnel-"));
    of_others.filter_map(name_and_version).collect::<BTreeSet<_>>().len()
}

fn fault(what: &str, count: usize, most: usize) -> Option<String> {
    (count > most).then(|| {
        format!("{what}: {count} packages, and {most} are allowed (xtask/src/supply/budget.rs)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_counts_once_for_each_version() {
        let tree = "windtunnel-a v1.0.0 (/somewhere)\na v1.0.0\nb v2.0.0\n\nb v2.0.0 (*)\nb v3.0.0 (proc-macro)\n";
        assert_eq!(count(tree), 3);
    }

    #[test]
    fn more_than_allowed_is_a_fault() {
        assert_eq!(fault("a", 3, 3), None);
        assert!(fault("a", 4, 3).unwrap().starts_with("a: 4 packages, and 3 are allowed"));
    }
}
