//! The examples for CI systems and the packages' scripts against the program: what they call exists.
//! The packages themselves are made and installed by `./ci packages`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Command lines of windtunnel in a file of a CI system.
fn commands(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("- "));
    let lines = lines.map(|line| line.strip_prefix("run: ").unwrap_or(line));
    let called = lines.filter(|line| line.starts_with("windtunnel "));
    called.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn the_commands_of_the_examples_for_ci_systems_are_commands_of_the_program() {
    for entry in fs::read_dir(top().join("deploy/ci")).unwrap() {
        let path = entry.unwrap().path();
        let found = commands(&fs::read_to_string(&path).unwrap());
        let verbs: Vec<&str> = found.iter().map(|words| words[1].as_str()).collect();
        assert_eq!(verbs, ["doctor", "run"], "{}", path.display());
        for words in found {
            let parsed = windtunnel_cli::command().try_get_matches_from(&words);
            assert!(parsed.is_ok(), "{}: {}", path.display(), parsed.unwrap_err());
        }
    }
}

#[test]
fn the_profile_of_the_debian_package_is_for_the_path_where_it_puts_the_program() {
    let profile = fs::read_to_string(top().join("deploy/debian/apparmor")).unwrap();
    assert!(profile.contains("profile windtunnel /usr/bin/windtunnel flags=(unconfined) {"));
    let documented = fs::read_to_string(top().join("docs/troubleshooting.md")).unwrap();
    for line in ["abi <abi/4.0>,", "  userns,"] {
        assert!(profile.contains(line) && documented.contains(line), "{line}");
    }
    let script = fs::read_to_string(top().join("deploy/package")).unwrap();
    assert!(
        script.contains("install_tree \"$root/usr\"")
            && script.contains("\"$root/bin/windtunnel\"")
    );
}
