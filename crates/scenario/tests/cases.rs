//! Files with a mistake, and the exact error that each gets. A bug report becomes a file here.
//!
//! `BLESS=1 cargo test -p windtunnel-scenario --test cases` writes the errors of new cases; review
//! them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/load.rs"]
mod common;

use std::path::{Path, PathBuf};

use common::load_text;

/// All files of `tests/cases` with the ending, sorted.
fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "yaml"));
    files.sort();
    files
}

#[test]
fn every_mistake_gets_the_error_that_was_reviewed() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let name = case.file_stem().unwrap().to_str().unwrap();
        let error = match load_text(name, &std::fs::read(&case).unwrap()) {
            Ok(_) => panic!("{name} has no mistake"),
            Err(errors) => format!("{errors}\n"),
        };
        let golden = case.with_extension("err");
        if bless {
            std::fs::write(&golden, &error).unwrap();
        } else if std::fs::read_to_string(&golden).unwrap_or_default() != error {
            wrong.push(format!("{name} now says:\n{error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One mistake is one error, except where a case's name says that it has two.
#[test]
fn no_mistake_causes_a_second_error() {
    for case in cases() {
        let name = case.file_stem().unwrap().to_str().unwrap();
        let errors = load_text(name, &std::fs::read(&case).unwrap()).unwrap_err();
        let expected = if name.contains("two-mistakes") { 2 } else { 1 };
        assert_eq!(errors.mistakes().len(), expected, "{name}: {errors}");
    }
}
