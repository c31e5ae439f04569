//! A run that is over.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use serde_json::Value;

use super::live::{beside, events, has};

/// The results of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The exit code, 128+n for a signal n.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The run folder.
    pub(crate) folder: PathBuf,
}

impl Outcome {
    pub(super) fn new(status: ExitStatus, folder: &Path) -> Outcome {
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        let (stdout, stderr) = (read(&beside(folder, "stdout")), read(&beside(folder, "stderr")));
        Outcome { code, stdout, stderr, folder: folder.to_owned() }
    }

    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.code, code, "{}", self.describe());
    }

    /// Output and results that may explain a failure.
    pub(crate) fn describe(&self) -> String {
        let ends = |text: &str| {
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(40)..].join("\n")
        };
        let Outcome { code, stdout, stderr, .. } = self;
        format!("exit code {code}\nstdout: {}\nstderr: {}", ends(stdout), ends(stderr))
    }

    /// The path of a file in the run folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A file of the run folder; empty if there is none.
    pub(crate) fn file(&self, name: &str) -> String {
        read(&self.folder.join(name))
    }

    /// The standard output of a node's only program.
    pub(crate) fn output(&self, node: &str) -> String {
        self.file(&format!("nodes/{node}/stdout"))
    }

    /// `run.json`.
    #[track_caller]
    pub(crate) fn report(&self) -> Value {
        let text = self.file("run.json");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {}", self.describe()))
    }

    /// Whether the run finds itself faithful: one on a machine that stalls does not.
    #[track_caller]
    pub(crate) fn is_faithful(&self) -> bool {
        self.report()["verdict"]["faithful"].as_bool().expect("a verdict")
    }

    /// A link direction of `run.json`.
    #[track_caller]
    pub(crate) fn link(&self, direction: &str) -> Value {
        let report = self.report();
        let links = report["links"].as_array().unwrap();
        links.iter().find(|link| link["direction"] == direction).expect(direction).clone()
    }

    /// A program of `run.json`.
    #[track_caller]
    pub(crate) fn program(&self, node: &str) -> Value {
        let report = self.report();
        let programs = report["programs"].as_array().unwrap();
        programs.iter().find(|program| program["node"] == node).expect(node).clone()
    }

    /// Every event that has these fields.
    pub(crate) fn events(&self, fields: &[(&str, &str)]) -> Vec<Value> {
        let mut events = events(&self.folder);
        events.retain(|event| has(event, fields));
        events
    }

    /// The only event that has these fields.
    #[track_caller]
    pub(crate) fn event(&self, fields: &[(&str, &str)]) -> Value {
        let events = self.events(fields);
        assert_eq!(events.len(), 1, "{fields:?} in {}", self.file("events.jsonl"));
        events[0].clone()
    }

    /// Every packet that was offered to a link is accounted for.
    #[track_caller]
    pub(crate) fn assert_conserved(&self) {
        for link in self.report()["links"].as_array().unwrap() {
            let count = |key: &str| link[key].as_u64().unwrap();
            let dropped: u64 = link["dropped_packets"]
                .as_object()
                .unwrap()
                .values()
                .filter_map(Value::as_u64)
                .sum();
            let cut = count("fragments_packets") - count("fragmented_packets");
            let came = count("offered_packets") + count("duplicated_packets") + cut;
            let went = count("delivered_packets") + dropped + count("in_flight_packets");
            assert_eq!(came, went, "{link}");
        }
    }
}

/// A file's text; invalid UTF-8 is replaced.
fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
