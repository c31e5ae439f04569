//! The end of a run: the verdict, and all files that say what is known.

use std::io::Write;
use std::path::Path;

use windtunnel_folder::{FolderError, RunOutputFolder};
use windtunnel_trace::report::{RunReport, RunVerdict};

use crate::evidence::RunEvidence;
use crate::{tables, verdict};

/// Judges a run and writes what is known of it to its folder. What cannot be written is added to the
/// verdict of the report that the caller gets: a run of which that cannot be written has failed.
#[must_use]
pub fn conclude(evidence: &RunEvidence<'_>, folder: &RunOutputFolder) -> RunReport {
    let plan = evidence.plan;
    let mut report = verdict::judge(evidence);
    for (name, table) in tables::tables(evidence) {
        let written = folder.write(name, table.as_bytes());
        note_failure(written, &mut report.verdict);
    }
    for node in &plan.nodes {
        let programs = report.programs.iter().filter(|program| program.node == node.name);
        let lines: Vec<String> = programs.map(|program| format!("{}\n", program.ended)).collect();
        let path = Path::new("nodes").join(&node.name).join("exit");
        let file = folder.below().create(path);
        let written = file.and_then(|mut file| file.write_all(lines.concat().as_bytes()));
        if let Err(error) = written {
            // `run.json` says the same.
            let warning = format!("cannot write the exit of {}: {error}", node.name);
            report.verdict.warnings.push(warning);
        }
    }
    let written = folder.write("junit.xml", windtunnel_trace::junit::text(&report).as_bytes());
    note_failure(written, &mut report.verdict);
    let json = serde_json::to_vec_pretty(&report).map_err(|error| FolderError {
        verb: "write",
        path: folder.file("run.json"),
        source: error.into(),
    });
    note_failure(json.and_then(|json| folder.write("run.json", &json)), &mut report.verdict);
    report
}

/// A verdict that cannot be kept is not one that can be relied on.
fn note_failure(written: Result<(), FolderError>, verdict: &mut RunVerdict) {
    if let Err(error) = written {
        verdict.add_failure(format!("{error}: {}", error.source));
    }
}
