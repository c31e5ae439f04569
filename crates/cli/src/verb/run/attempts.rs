//! `run --attempts`: a disturbed run is repeated, and the results of each attempt are kept.

use std::fs;
use std::path::{Path, PathBuf};

use windtunnel_trace::report::{RunAttempt, RunReport};

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;
use crate::output;

/// The folders of a run's attempts: the last one has the run folder itself, and the others have
/// folders beside it.
#[derive(Debug)]
pub(super) struct RunAttemptFolders {
    most: u32,
    folder: PathBuf,
    former: Vec<RunAttempt>,
}

impl RunAttemptFolders {
    /// At most `most` attempts at a run into `folder`.
    pub(super) fn new(most: u32, folder: &Path) -> Result<Self, VerbFailure> {
        let attempts = RunAttemptFolders { most, folder: folder.to_owned(), former: Vec::new() };
        for number in 1..most {
            let kept = attempts.kept(number)?;
            if kept.exists() {
                let text = format!("{} is there already", kept.display());
                return Err(VerbFailure::new(ExitCategory::Machine, text)
                    .hint("name another folder: --out"));
            }
        }
        Ok(attempts)
    }

    /// Repeats `attempt`, which gets the records of former attempts, until the run is not
    /// disturbed or no attempt is left; `None` if the run is detached.
    pub(super) fn carry_out(
        mut self,
        mut attempt: impl FnMut(&[RunAttempt]) -> Result<Option<RunReport>, VerbFailure>,
    ) -> Result<Option<RunReport>, VerbFailure> {
        for number in 1.. {
            let report = attempt(&self.former)?;
            match &report {
                Some(report) if number < self.most && is_repeated(report) => {
                    self.keep(number, report)?;
                }
                _ => return Ok(report),
            }
        }
        Err(VerbFailure::new(ExitCategory::Internal, "four thousand million attempts"))
    }

    /// Moves the results of an attempt aside.
    fn keep(&mut self, number: u32, report: &RunReport) -> Result<(), VerbFailure> {
        let kept = self.kept(number)?;
        fs::rename(&self.folder, &kept).map_err(|error| {
            let from = self.folder.display();
            let text = format!("cannot repeat the run: {from} cannot become {}", kept.display());
            VerbFailure::new(ExitCategory::Machine, format!("{text}: {error}"))
        })?;
        let verdict = &report.verdict.text;
        output::talk(&format!(
            "attempt {number} of {}: {verdict} ({})\nthe machine did not keep up: the run is repeated",
            self.most,
            kept.display()
        ));
        let folder = kept.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.former.push(RunAttempt { folder, verdict: verdict.clone() });
        Ok(())
    }

    /// The folder to which an attempt is moved: `runs/web-20261121-034800-attempt-1`.
    fn kept(&self, number: u32) -> Result<PathBuf, VerbFailure> {
        // `.` and `..` have another name, which the folder's parent knows.
        let whole = fs::canonicalize(&self.folder);
        let named = match self.folder.file_name() {
            Some(_) => Some(self.folder.clone()),
            None => whole.ok().filter(|whole| whole.file_name().is_some()),
        };
        let named = named.ok_or_else(|| {
            let text = format!("--attempts: {} cannot be moved aside", self.folder.display());
            VerbFailure::new(ExitCategory::Machine, text).hint("name another folder: --out")
        })?;
        let mut name = named.file_name().unwrap_or_default().to_owned();
        name.push(format!("-attempt-{number}"));
        Ok(named.with_file_name(name))
    }
}

/// Whether a machine alone is at fault, and the run was not ended by a signal or a user.
fn is_repeated(report: &RunReport) -> bool {
    report.verdict.disturbed
        && !report.partial
        && report.verdict.exit_code <= ExitCategory::Check.code()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report with a verdict alone.
    fn report(disturbed: bool, faithful: bool, exit_code: u8) -> RunReport {
        let text = if faithful { "FAITHFUL" } else { "NOT FAITHFUL" };
        let value = serde_json::json!({
            "windtunnel": "0", "name": "x", "seed": 0, "plan_hash": "", "began_unix_s": 0,
            "kernel": "", "elapsed_ns": 0, "setup_ns": 0, "ended": "",
            "verdict": {
                "faithful": faithful, "disturbed": disturbed, "passed": true,
                "exit_code": exit_code, "text": text,
                "unfaithful": [], "failures": [], "warnings": [],
            },
            "lateness": windtunnel_trace::lateness::LatenessHistogram::default().summary(),
            "machine": windtunnel_trace::report::MachineReport::default(),
            "programs": [], "expectations": [], "links": [], "routers": [],
        });
        serde_json::from_value(value).unwrap()
    }

    /// Does attempts with these reports; returns how many were done, and the last report's text.
    fn attempt(most: u32, reports: &[RunReport]) -> (usize, Vec<String>) {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("out");
        let attempts = RunAttemptFolders::new(most, &folder).unwrap();
        let mut done = 0;
        let mut seen = Vec::new();
        let last = attempts.carry_out(|former| {
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("number"), done.to_string()).unwrap();
            seen = former.iter().map(|it| format!("{}: {}", it.folder, it.verdict)).collect();
            done += 1;
            Ok(Some(reports[done - 1].clone()))
        });
        assert_eq!(last.unwrap().unwrap(), reports[done - 1]);
        for number in 0..done {
            let name = match number + 1 {
                last if last == done => "out".to_owned(),
                former => format!("out-attempt-{former}"),
            };
            let kept = fs::read_to_string(parent.path().join(name).join("number")).unwrap();
            assert_eq!(kept, number.to_string());
        }
        (done, seen)
    }

    #[test]
    fn a_disturbed_run_is_repeated_until_it_is_faithful_and_each_attempt_is_kept() {
        let (disturbed, faithful) = (report(true, false, 1), report(false, true, 0));
        let (done, seen) = attempt(5, &[disturbed.clone(), disturbed, faithful]);
        assert_eq!(done, 3);
        assert_eq!(seen, ["out-attempt-1: NOT FAITHFUL", "out-attempt-2: NOT FAITHFUL"]);
    }

    #[test]
    fn the_last_attempt_counts_whatever_it_was() {
        let disturbed = report(true, false, 1);
        assert_eq!(attempt(2, &[disturbed.clone(), disturbed.clone()]).0, 2);
        assert_eq!(attempt(1, &[disturbed]).0, 1);
    }

    #[test]
    fn a_run_that_another_attempt_would_not_mend_is_not_repeated() {
        assert_eq!(attempt(3, &[report(false, true, 1)]).0, 1, "an expectation was not met");
        assert_eq!(attempt(3, &[report(false, false, 1)]).0, 1, "packets found no memory");
        assert_eq!(attempt(3, &[report(true, false, 130)]).0, 1, "Ctrl-C");
    }

    #[test]
    fn a_folder_of_former_attempts_is_not_overwritten() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("out");
        fs::create_dir(parent.path().join("out-attempt-2")).unwrap();
        assert!(RunAttemptFolders::new(2, &folder).is_ok());
        let failure = RunAttemptFolders::new(3, &folder).unwrap_err();
        assert!(failure.text().contains("out-attempt-2 is there already"), "{}", failure.text());
    }
}
