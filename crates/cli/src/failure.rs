//! Failures of verbs, and how they are printed.

mod record;

use std::error::Error;
use std::fmt::Write as _;
use std::io;

use windtunnel_control::ControlClientError;
use windtunnel_host::RunError;
use windtunnel_lead::LeadError;
use windtunnel_placement::PlacementRefusal;
use windtunnel_scenario::{PatchError, ScenarioErrors, ScenarioMistake};

use crate::exit::ExitCategory;
use crate::output;
use crate::render::quantity::count;

pub(crate) use record::FailureOutput;

/// The exit code, or why there is none of the verb's own.
pub(crate) type Outcome<T = u8> = Result<T, VerbFailure>;

/// Why a verb could not do its work.
#[derive(Debug)]
pub(crate) enum VerbFailure {
    /// The scenario has mistakes; they render themselves.
    Scenario(ScenarioErrors),
    /// An event on the command line has mistakes; they render themselves.
    Event(ScenarioErrors),
    /// A file of another kind has a mistake; it renders itself.
    Mistake(Box<ScenarioMistake>),
    /// Machines cannot carry the plan.
    Refused(Box<PlacementRefusal>),
    /// Any other failure, with its causes.
    Error {
        /// The error; its sources are the causes.
        error: Box<dyn Error + Send + Sync>,
        /// Advice to the user.
        hint: Option<String>,
        /// The exit code.
        code: u8,
    },
    /// The reader of standard output has closed it (`| head`): nothing is printed, and nothing is
    /// wrong.
    ReaderGone,
}

impl VerbFailure {
    /// A failure from a text.
    pub(crate) fn new(exit: ExitCategory, text: impl Into<String>) -> Self {
        VerbFailure::Error { error: text.into().into(), hint: None, code: exit.code() }
    }

    /// A failure with its causes.
    pub(crate) fn caused(
        exit: ExitCategory,
        error: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        VerbFailure::Error { error: error.into(), hint: None, code: exit.code() }
    }

    /// The same with a hint.
    pub(crate) fn hint(self, text: impl Into<String>) -> Self {
        match self {
            VerbFailure::Error { error, code, .. } => {
                VerbFailure::Error { error, hint: Some(text.into()), code }
            }
            other => other,
        }
    }

    /// Prints it on standard error and returns the exit code.
    pub(crate) fn print(&self) -> u8 {
        if !matches!(self, VerbFailure::ReaderGone) {
            output::talk(&self.text());
        }
        self.code()
    }

    /// Prints it as JSON and returns the exit code.
    pub(crate) fn print_json(&self, to_standard_error: bool) -> u8 {
        if !matches!(self, VerbFailure::ReaderGone) {
            FailureOutput::of(self).print(to_standard_error);
        }
        self.code()
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            VerbFailure::ReaderGone => ExitCategory::Fine.code(),
            VerbFailure::Scenario(_) | VerbFailure::Mistake(_) | VerbFailure::Refused(_) => {
                ExitCategory::Scenario.code()
            }
            VerbFailure::Event(_) => ExitCategory::Usage.code(),
            VerbFailure::Error { code, .. } => *code,
        }
    }

    /// The error and its causes, without the hint.
    pub(crate) fn causes(&self) -> String {
        match self {
            VerbFailure::Error { error, .. } => chain(&**error),
            other => other.text(),
        }
    }

    /// The text that is printed.
    pub(crate) fn text(&self) -> String {
        match self {
            VerbFailure::ReaderGone => String::new(),
            VerbFailure::Scenario(errors) | VerbFailure::Event(errors) => errors.to_string(),
            VerbFailure::Mistake(mistake) => mistake.to_string(),
            VerbFailure::Refused(refused) => reasons(refused),
            VerbFailure::Error { error, hint, .. } => text(&**error, hint.as_deref()),
        }
    }
}

impl From<ScenarioErrors> for VerbFailure {
    fn from(errors: ScenarioErrors) -> Self {
        VerbFailure::Scenario(errors)
    }
}

impl From<ControlClientError> for VerbFailure {
    fn from(error: ControlClientError) -> Self {
        let exit = match &error {
            ControlClientError::Unexpected(_) => ExitCategory::Internal,
            _ => ExitCategory::Usage,
        };
        let hint = error.hint();
        VerbFailure::Error { error: error.into(), hint, code: exit.code() }
    }
}

impl From<windtunnel_cluster::AgentClientError> for VerbFailure {
    fn from(error: windtunnel_cluster::AgentClientError) -> Self {
        LeadError::from(error).into()
    }
}

impl From<LeadError> for VerbFailure {
    fn from(error: LeadError) -> Self {
        match error {
            LeadError::Refused(refused) => VerbFailure::Refused(refused),
            other => {
                let (hint, code) = (other.hint(), other.exit_code());
                VerbFailure::Error { error: other.into(), hint, code }
            }
        }
    }
}

impl From<RunError> for VerbFailure {
    fn from(error: RunError) -> Self {
        let (hint, code) = (error.hint(), error.exit_code());
        VerbFailure::Error { error: error.into(), hint, code }
    }
}

impl From<PatchError> for VerbFailure {
    fn from(error: PatchError) -> Self {
        let hint = error.hint.clone();
        VerbFailure::Error { error: error.into(), hint, code: ExitCategory::Usage.code() }
    }
}

impl VerbFailure {
    /// A failure to write to standard output.
    pub(crate) fn writing(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return VerbFailure::ReaderGone;
        }
        let text = format!("cannot write to standard output: {error}");
        VerbFailure::new(ExitCategory::Machine, text)
    }
}

/// `error: what: cause: cause`, then the hint on a line of its own.
fn text(error: &(dyn Error + 'static), hint: Option<&str>) -> String {
    let mut text = format!("error: {}", chain(error));
    if let Some(hint) = hint {
        // Writing to a string cannot fail.
        let _ = write!(text, "\nhint: {hint}");
    }
    text
}

/// `what: cause: cause`.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let part = source.to_string();
        // Some libraries repeat their source's text in their own.
        if !text.ends_with(&part) {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {part}");
        }
        cause = source.source();
    }
    text
}

/// `error: reason`, then its hint, for each of the first reasons; the rest are counted.
fn reasons(refused: &PlacementRefusal) -> String {
    let shown = refused.reasons.iter().take(REASONS_SHOWN);
    let shown = shown.map(|reason| format!("error: {reason}\nhint: {}", reason.hint()));
    let more = refused.reasons.len().saturating_sub(REASONS_SHOWN);
    let more =
        (more > 0).then(|| format!("… and {}: --json has them all", count(more, "more reason")));
    shown.chain(more).collect::<Vec<_>>().join("\n")
}

/// Among many distant machines, each pair has a reason of its own.
const REASONS_SHOWN: usize = 20;

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use windtunnel_placement::PlacementRefusalReason;

    use super::*;

    #[test]
    fn causes_follow_the_error_and_the_hint_comes_last() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let error = ControlClientError::NoRun { folder: PathBuf::from("runs/x"), source: refused };
        assert_eq!(
            text(&error, error.hint().as_deref()),
            "error: no live run in runs/x: connection refused\n\
             hint: start one with `windtunnel run FILE`, name its folder with --run DIR, or `windtunnel attach` to one over machines"
        );
    }

    #[test]
    fn a_failure_of_a_led_run_keeps_its_causes_its_hint_and_its_code() {
        let host = "m1".to_owned();
        let broken = windtunnel_cluster::AgentClientError::Broken {
            host: host.clone(),
            source: io::ErrorKind::TimedOut.into(),
        };
        let failure = VerbFailure::from(LeadError::from(broken));
        let causes = "the agent at m1 broke off: timed out";
        assert_eq!((failure.causes().as_str(), failure.code()), (causes, 2));
        let hint = Some("free it".to_owned());
        let part = LeadError::Part { host, why: "it is full".to_owned(), hint, code: 130 };
        let failure = VerbFailure::from(part);
        assert_eq!(failure.text(), "error: host m1: it is full\nhint: free it");
        assert_eq!(failure.code(), 130);
        let refused = PlacementRefusal { reasons: Vec::new(), attempt: None };
        let failure = VerbFailure::from(LeadError::from(Box::new(refused)));
        assert!(matches!(failure, VerbFailure::Refused(_)));
    }

    #[test]
    fn a_closed_standard_output_is_not_a_failure() {
        let failure = VerbFailure::writing(&io::ErrorKind::BrokenPipe.into());
        assert_eq!(failure.print(), 0);
    }

    #[test]
    fn each_reason_is_an_error_with_its_hint_and_the_many_are_counted() {
        let reason = |host: usize| PlacementRefusalReason::TooMany {
            asked: 3,
            free: 2,
            host: Some(format!("m{host}")),
        };
        let refused =
            |count| PlacementRefusal { reasons: (0..count).map(reason).collect(), attempt: None };
        assert_eq!(
            VerbFailure::Refused(Box::new(refused(2))).text(),
            "error: host m0: 3 nodes are put there, it has room for 2\n\
             hint: add machines, or ask for less (`cpu`, `memory`, `count`)\n\
             error: host m1: 3 nodes are put there, it has room for 2\n\
             hint: add machines, or ask for less (`cpu`, `memory`, `count`)"
        );
        let many = VerbFailure::Refused(Box::new(refused(25))).text();
        assert!(many.ends_with("\n… and 5 more reasons: --json has them all"), "{many}");
        assert_eq!(many.lines().count(), 41);
    }
}
