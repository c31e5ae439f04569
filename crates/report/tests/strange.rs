//! A folder that a stranger has sent: nothing outside of it is shown, nothing holds the reader up, and
//! no file takes the memory of the machine.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use windtunnel_report::{RenderedReport, ReportSizeLimits, groups};
use windtunnel_scenario::ScenarioSource;

const NET: &str = "nodes:\n  a: {run: 'true'}\n  b: {}\nlinks: [{between: [a, b]}]\n";

/// The folder of a run beside a secret.
fn folder(parent: &Path) -> PathBuf {
    let folder = parent.join("run");
    fs::create_dir_all(folder.join("nodes/a")).unwrap();
    let text = NET.as_bytes();
    let source = ScenarioSource { name: "net.yaml", text, default_name: "net", base_dir: "/" };
    let plan = windtunnel_scenario::load(&source).unwrap().plan;
    fs::write(folder.join("plan.json"), serde_json::to_vec(&plan).unwrap()).unwrap();
    fs::write(parent.join("secret"), "of the reader\n").unwrap();
    folder
}

fn report(folder: &Path) -> Result<RenderedReport, String> {
    let groups = groups(&[folder.to_owned()]).unwrap();
    RenderedReport::of(&groups, &ReportSizeLimits::default()).map_err(|error| error.to_string())
}

fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

const FILES: [&str; 7] = [
    "plan.json",
    "run.json",
    "events.jsonl",
    "links.csv",
    "lateness.csv",
    "echoes.csv",
    "limits.csv",
];

#[test]
fn links_are_not_followed_and_pipes_are_not_waited_for() {
    for file in FILES {
        let parent = tempfile::tempdir().unwrap();
        let run = folder(parent.path());
        let path = run.join(file);
        let _ = fs::remove_file(&path);
        symlink("../secret", &path).unwrap();
        let error = report(&run).unwrap_err();
        assert!(error.contains(file) && error.contains("symbolic link"), "{error}");
        pipe(&path);
        let error = report(&run).unwrap_err();
        assert!(error.contains(file) && error.contains("no regular file"), "{error}");
    }
}

#[test]
fn what_programs_have_left_in_place_of_their_output_is_left_out_with_a_note() {
    let parent = tempfile::tempdir().unwrap();
    let run = folder(parent.path());
    symlink("../../../secret", run.join("nodes/a/stdout")).unwrap();
    pipe(&run.join("nodes/a/stderr"));
    symlink("../..", run.join("nodes/b")).unwrap();
    let report = report(&run).unwrap();
    let shown = &report.document.runs[0];
    assert_eq!(shown.outputs, []);
    let notes = shown.notes.join("\n");
    assert!(notes.contains("nodes/a/stdout is left out: there is a symbolic link"), "{notes}");
    assert!(notes.contains("nodes/a/stderr is left out: it is no regular file"), "{notes}");
    assert!(notes.contains("nodes/b/stdout is left out"), "{notes}");
    assert!(!report.page.html().contains("of the reader"));
}

#[test]
fn records_are_read_below_the_folder_only() {
    let parent = tempfile::tempdir().unwrap();
    let run = folder(parent.path());
    symlink("..", run.join("records")).unwrap();
    assert!(report(&run).unwrap_err().contains("records"));
    fs::remove_file(run.join("records")).unwrap();
    fs::create_dir(run.join("records")).unwrap();
    pipe(&run.join("records/0001.wtr"));
    symlink("../../secret", run.join("records/0002.wtr")).unwrap();
    assert_eq!(report(&run).unwrap().document.runs[0].flows, []);
}

#[test]
fn a_file_of_a_terabyte_is_refused_by_its_bound() {
    for file in FILES {
        let parent = tempfile::tempdir().unwrap();
        let run = folder(parent.path());
        let large = File::create(run.join(file)).unwrap();
        large.set_len(1 << 40).unwrap();
        let error = report(&run).unwrap_err();
        let is_bounded = error.contains("a line has more than 1048576 bytes")
            || error.contains("it has more than 268435456 bytes");
        assert!(error.contains(file) && is_bounded, "{error}");
    }
}
