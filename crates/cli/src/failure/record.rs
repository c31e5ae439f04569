//! A failure as JSON: the same fields whatever has failed.

use serde::Serialize;
use windtunnel_scenario::Mistake;

use super::{Failure, chain};
use crate::exit::Exit;
use crate::output;

/// A failure as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    /// The error, with its causes.
    error: String,
    /// Advice to the user.
    hint: Option<String>,
    /// The exit code.
    code: u8,
    /// The name of the exit code.
    kind: &'static str,
    /// Mistakes in a file, with their places.
    mistakes: Vec<Mistake>,
    /// How many more mistakes there are.
    more: usize,
    /// Why machines cannot carry the scenario.
    reasons: Vec<Reason>,
}

/// One reason of several.
#[derive(Debug, Serialize)]
struct Reason {
    message: String,
    hint: String,
}

impl Record {
    /// Words without a place or reasons.
    pub(crate) fn new(code: u8, error: impl Into<String>, hint: Option<String>) -> Self {
        let (mistakes, reasons) = (Vec::new(), Vec::new());
        Record { error: error.into(), hint, code, kind: kind(code), mistakes, more: 0, reasons }
    }

    /// All that is known of a failure.
    pub(crate) fn of(failure: &Failure) -> Self {
        let code = failure.code();
        match failure {
            Failure::ReaderGone => Record::new(code, "", None),
            Failure::Scenario(errors) | Failure::Event(errors) => Record {
                mistakes: errors.mistakes().to_vec(),
                more: errors.more(),
                ..Record::new(code, errors.to_string(), None)
            },
            Failure::Mistake(mistake) => Record {
                mistakes: vec![Mistake::clone(mistake)],
                ..Record::new(code, mistake.to_string(), None)
            },
            Failure::Refused(refused) => Record {
                reasons: refused
                    .reasons
                    .iter()
                    .map(|reason| Reason { message: reason.to_string(), hint: reason.hint() })
                    .collect(),
                ..Record::new(code, failure.text(), None)
            },
            Failure::Error { error, hint, .. } => Record::new(code, chain(&**error), hint.clone()),
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
    let exit = Exit::ALL.into_iter().find(|exit| exit.code() == code);
    exit.map_or(if code < 128 { "command" } else { "signal" }, Exit::name)
}
