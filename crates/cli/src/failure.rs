//! Failures of verbs, and how they are printed.

mod record;

use std::error::Error;
use std::fmt::Write as _;
use std::io;

use windtunnel_control::{ClientError, Reply};
use windtunnel_host::RunError;
use windtunnel_lead::LeadError;
use windtunnel_placement::Refused;
use windtunnel_scenario::{Errors, Mistake, PatchError};

use crate::exit::Exit;
use crate::output;
use crate::render::quantity::count;

pub(crate) use record::Record;

/// Why a verb could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The scenario has mistakes; they render themselves.
    Scenario(Errors),
    /// An event on the command line has mistakes; they render themselves.
    Event(Errors),
    /// A file of another kind has a mistake; it renders itself.
    Mistake(Box<Mistake>),
    /// Machines cannot carry the plan.
    Refused(Box<Refused>),
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

impl Failure {
    /// A failure from a text.
    pub(crate) fn new(exit: Exit, text: impl Into<String>) -> Self {
        Failure::Error { error: text.into().into(), hint: None, code: exit.code() }
    }

    /// A failure with its causes.
    pub(crate) fn caused(exit: Exit, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Failure::Error { error: error.into(), hint: None, code: exit.code() }
    }

    /// The same with a hint.
    pub(crate) fn hint(self, text: impl Into<String>) -> Self {
        match self {
            Failure::Error { error, code, .. } => {
                Failure::Error { error, hint: Some(text.into()), code }
            }
            other => other,
        }
    }

    /// A reply that does not fit the request.
    pub(crate) fn unexpected(reply: Reply) -> Self {
        match reply {
            Reply::Error { message, hint } => {
                Failure::Error { error: message.into(), hint, code: Exit::Usage.code() }
            }
            Reply::NotRun { message, exit } => {
                let code = exit.unwrap_or(Exit::Usage.code());
                Failure::Error { error: message.into(), hint: None, code }
            }
            other => Failure::new(Exit::Internal, format!("unexpected answer {other:?}")),
        }
    }

    /// Prints it on standard error and returns the exit code.
    pub(crate) fn print(&self) -> u8 {
        if !matches!(self, Failure::ReaderGone) {
            output::talk(&self.text());
        }
        self.code()
    }

    /// Prints it as JSON and returns the exit code.
    pub(crate) fn print_json(&self, to_standard_error: bool) -> u8 {
        if !matches!(self, Failure::ReaderGone) {
            Record::of(self).print(to_standard_error);
        }
        self.code()
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::ReaderGone => Exit::Fine.code(),
            Failure::Scenario(_) | Failure::Mistake(_) | Failure::Refused(_) => {
                Exit::Scenario.code()
            }
            Failure::Event(_) => Exit::Usage.code(),
            Failure::Error { code, .. } => *code,
        }
    }

    /// The error and its causes, without the hint.
    pub(crate) fn causes(&self) -> String {
        match self {
            Failure::Error { error, .. } => chain(&**error),
            other => other.text(),
        }
    }

    /// The text that is printed.
    pub(crate) fn text(&self) -> String {
        match self {
            Failure::ReaderGone => String::new(),
            Failure::Scenario(errors) | Failure::Event(errors) => errors.to_string(),
            Failure::Mistake(mistake) => mistake.to_string(),
            Failure::Refused(refused) => reasons(refused),
            Failure::Error { error, hint, .. } => text(&**error, hint.as_deref()),
        }
    }
}

impl From<Errors> for Failure {
    fn from(errors: Errors) -> Self {
        Failure::Scenario(errors)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let hint = error.hint();
        Failure::Error { error: error.into(), hint, code: Exit::Usage.code() }
    }
}

impl From<windtunnel_cluster::ClientError> for Failure {
    fn from(error: windtunnel_cluster::ClientError) -> Self {
        LeadError::from(error).into()
    }
}

impl From<LeadError> for Failure {
    fn from(error: LeadError) -> Self {
        match error {
            LeadError::Refused(refused) => Failure::Refused(refused),
            other => {
                let (hint, code) = (other.hint(), other.exit_code());
                Failure::Error { error: other.into(), hint, code }
            }
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let (hint, code) = (error.hint(), error.exit_code());
        Failure::Error { error: error.into(), hint, code }
    }
}

impl From<PatchError> for Failure {
    fn from(error: PatchError) -> Self {
        let hint = error.hint.clone();
        Failure::Error { error: error.into(), hint, code: Exit::Usage.code() }
    }
}

impl Failure {
    /// A failure to write to standard output.
    pub(crate) fn writing(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::ReaderGone;
        }
        let text = format!("cannot write to standard output: {error}");
        Failure::new(Exit::Machine, text)
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
fn reasons(refused: &Refused) -> String {
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

    use windtunnel_placement::{Refusal, Resource};

    use super::*;

    #[test]
    fn causes_follow_the_error_and_the_hint_comes_last() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let error = ClientError::NoRun { folder: PathBuf::from("runs/x"), source: refused };
        assert_eq!(
            text(&error, error.hint().as_deref()),
            "error: no live run in runs/x: connection refused\n\
             hint: start one with `windtunnel run FILE`, name its folder with --run DIR, or `windtunnel attach` to one over machines"
        );
    }

    #[test]
    fn a_failure_of_a_led_run_keeps_its_causes_its_hint_and_its_code() {
        let host = "m1".to_owned();
        let broken = windtunnel_cluster::ClientError::Broken {
            host: host.clone(),
            source: io::ErrorKind::TimedOut.into(),
        };
        let failure = Failure::from(LeadError::from(broken));
        let causes = "the agent at m1 broke off: timed out";
        assert_eq!((failure.causes().as_str(), failure.code()), (causes, 2));
        let hint = Some("free it".to_owned());
        let part = LeadError::Part { host, why: "it is full".to_owned(), hint, code: 130 };
        let failure = Failure::from(part);
        assert_eq!(failure.text(), "error: host m1: it is full\nhint: free it");
        assert_eq!(failure.code(), 130);
        let refused = Refused { reasons: Vec::new(), attempt: None };
        let failure = Failure::from(LeadError::from(Box::new(refused)));
        assert!(matches!(failure, Failure::Refused(_)));
    }

    #[test]
    fn a_closed_standard_output_is_not_a_failure() {
        let failure = Failure::writing(&io::ErrorKind::BrokenPipe.into());
        assert_eq!(failure.print(), 0);
    }

    #[test]
    fn each_reason_is_an_error_with_its_hint_and_the_many_are_counted() {
        let reason = |host: usize| Refusal::TooLittle {
            resource: Resource::Nodes,
            asked: 3,
            free: 2,
            host: Some(format!("m{host}")),
        };
        let refused = |count| Refused { reasons: (0..count).map(reason).collect(), attempt: None };
        assert_eq!(
            Failure::Refused(Box::new(refused(2))).text(),
            "error: host m0: 3 nodes are put there, it has room for 2\n\
             hint: add machines, or ask for less (`cpu`, `memory`, `count`)\n\
             error: host m1: 3 nodes are put there, it has room for 2\n\
             hint: add machines, or ask for less (`cpu`, `memory`, `count`)"
        );
        let many = Failure::Refused(Box::new(refused(25))).text();
        assert!(many.ends_with("\n… and 5 more reasons: --json has them all"), "{many}");
        assert_eq!(many.lines().count(), 41);
    }
}
