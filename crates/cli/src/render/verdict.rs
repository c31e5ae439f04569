//! The last line of a run.

use std::path::Path;

use anstyle::AnsiColor;
use windtunnel_trace::report::RunVerdict;

use crate::render::paint;

/// The verdict as it is in `run.json`, and where that is:
/// `FAITHFUL, PASSED: 3 of 3 expectations met, … (runs/x)`.
pub(crate) fn line(verdict: &RunVerdict, folder: &Path, colours: bool) -> String {
    let good = verdict.faithful && verdict.passed && verdict.exit_code == 0;
    let colour = if good { AnsiColor::Green } else { AnsiColor::Red };
    let (word, rest) = verdict.text.split_at(verdict.text.find(':').unwrap_or(0));
    // One line, also with line ends in a program's name or an error.
    let rest: String = rest.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{}{rest} ({})", paint(word, colour, colours), folder.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(faithful: bool, passed: bool, exit_code: u8, text: &str) -> RunVerdict {
        RunVerdict {
            faithful,
            disturbed: false,
            passed,
            exit_code,
            text: text.into(),
            unfaithful: Vec::new(),
            failures: Vec::new(),
            incomplete: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn the_verdict_is_shown_as_recorded_and_names_the_folder() {
        let text = "FAITHFUL, PASSED: 3 of 3 expectations met, lateness p99 84us";
        assert_eq!(
            line(&verdict(true, true, 0, text), Path::new("runs/x"), false),
            "FAITHFUL, PASSED: 3 of 3 expectations met, lateness p99 84us (runs/x)"
        );
    }

    #[test]
    fn only_the_words_are_coloured_and_green_means_that_all_is_well() {
        let folder = Path::new("runs/x");
        let good = line(&verdict(true, true, 0, "FAITHFUL, PASSED: x"), folder, true);
        assert_eq!(good, "\u{1b}[32mFAITHFUL, PASSED\u{1b}[0m: x (runs/x)");
        let interrupted = verdict(true, true, 130, "INTERRUPTED, FAITHFUL, PASSED: x");
        assert!(line(&interrupted, folder, true).starts_with("\u{1b}[31mINTERRUPTED"));
        let late = verdict(false, true, 1, "NOT FAITHFUL, PASSED: x");
        assert!(line(&late, folder, true).starts_with("\u{1b}[31mNOT FAITHFUL, PASSED\u{1b}[0m:"));
    }

    #[test]
    fn the_verdict_stays_one_line() {
        let failed = verdict(true, false, 1, "FAITHFUL, FAILED: a (x\ny) exited with 1");
        assert_eq!(
            line(&failed, Path::new("runs/x"), false),
            "FAITHFUL, FAILED: a (x y) exited with 1 (runs/x)"
        );
    }
}
