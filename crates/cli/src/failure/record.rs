//! A failure as JSON: the same fields whatever has failed.

use serde::Serialize;
use windtunnel_scenario::ScenarioMistake;

use super::{VerbFailure, chain};
use crate::exit::ExitCategory;
use crate::output;

/// A failure as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct FailureOutput {
    /// The error, with its causes.
    error: String,
    /// Advice to the user.
    hint: Option<String>,
    /// The exit code.
    code: u8,
    /// The name of the exit code.
    kind: &'static str,
    /// Mistakes in a file, with their places.
    mistakes: Vec<ScenarioMistake>,
    /// How many more mistakes there are.
    more: usize,
    /// Why machines cannot carry the scenario.
    reasons: Vec<FailureReason>,
}

/// One reason of several.
#[derive(Debug, Serialize)]
struct FailureReason {
    message: String,
    hint: String,
}

impl FailureOutput {
    /// Words without a place or reasons.
    pub(crate) fn new(code: u8, error: impl Into<String>, hint: Option<String>) -> Self {
        let (mistakes, reasons) = (Vec::new(), Vec::new());
        FailureOutput {
            error: error.into(),
            hint,
            code,
            kind: kind(code),
            mistakes,
            more: 0,
            reasons,
        }
    }

    /// All that is known of a failure.
    pub(crate) fn of(failure: &VerbFailure) -> Self {
        let code = failure.code();
        match failure {
            VerbFailure::ReaderGone => FailureOutput::new(code, "", None),
            VerbFailure::Scenario(errors) | VerbFailure::Event(errors) => FailureOutput {
                mistakes: errors.mistakes().to_vec(),
                more: errors.more(),
                ..FailureOutput::new(code, errors.to_string(), None)
            },
            VerbFailure::Mistake(mistake) => FailureOutput {
                mistakes: vec![ScenarioMistake::clone(mistake)],
                ..FailureOutput::new(code, mistake.to_string(), None)
            },
            VerbFailure::Refused(refused) => FailureOutput {
                reasons: refused
                    .reasons
                    .iter()
                    .map(|reason| FailureReason {
                        message: reason.to_string(),
                        hint: reason.hint(),
                    })
                    .collect(),
                ..FailureOutput::new(code, failure.text(), None)
            },
            VerbFailure::Error { error, hint, .. } => {
                FailureOutput::new(code, chain(&**error), hint.clone())
            }
        }
    }

    /// Prints it on standard output, or on standard error where the former is a command's own.
    /// Errors of writing are ignored.
    pub(crate) fn print(&self, to_standard_error: bool) {
        if !to_standard_error {
            let _ = output::json(self);
        } else if let Ok(text) = serde_json::to_string_pretty(self) {
            output::talk(&text);
        }
    }
}

fn kind(code: u8) -> &'static str {
    let exit = ExitCategory::ALL.into_iter().find(|exit| exit.code() == code);
    exit.map_or(if code < 128 { "command" } else { "signal" }, ExitCategory::name)
}
