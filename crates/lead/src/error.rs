//! Why a run over machines could not be led.

use windtunnel_cluster::{AgentClientError, KeyError};
use windtunnel_folder::FolderError;
use windtunnel_placement::PlacementRefusal;
use windtunnel_verdict::GatherError;

/// Why machines were not found, or a run over them did not begin or has no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeadError {
    /// The machines cannot carry the plan.
    #[error(transparent)]
    Refused(#[from] Box<PlacementRefusal>),
    /// An agent does not do what it was asked.
    #[error(transparent)]
    Client(#[from] AgentClientError),
    /// No machine was named, and no agent answers on this one.
    #[error(transparent)]
    NoAgentHere(AgentClientError),
    /// There is no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The run folder cannot be made.
    #[error(transparent)]
    Folder(FolderError),
    /// The parts are over, and there is no verdict.
    #[error(transparent)]
    Gather(#[from] GatherError),
    /// A machine cannot do its part of the run.
    #[error("host {host}: {why}")]
    Part {
        host: String,
        why: String,
        hint: Option<String>,
        /// The exit code that says this: the part's own, or 128+n for a signal.
        code: u8,
    },
    /// Something else, in words.
    #[error("{text}")]
    Other { kind: LeadErrorKind, text: String, hint: Option<String> },
}

/// On which side the cause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeadErrorKind {
    /// The command line of the user.
    Usage,
    /// The machines of their owner.
    Machine,
    /// Windtunnel itself.
    Internal,
}

impl LeadError {
    pub(crate) fn new(kind: LeadErrorKind, text: impl Into<String>) -> Self {
        LeadError::Other { kind, text: text.into(), hint: None }
    }

    /// The same with a hint, where it is in words.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        match self {
            LeadError::Other { kind, text, .. } => {
                LeadError::Other { kind, text, hint: Some(hint.into()) }
            }
            other => other,
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            // Each of its reasons has one of its own.
            LeadError::Refused(_) | LeadError::Gather(_) => None,
            LeadError::Client(error) => error.hint(),
            LeadError::NoAgentHere(_) => Some(NO_AGENT_HINT.to_owned()),
            LeadError::Key(error) => error.hint(),
            LeadError::Folder(error) => Some(error.hint()),
            LeadError::Part { hint, .. } | LeadError::Other { hint, .. } => hint.clone(),
        }
    }

    /// The exit code that says this: 2, it was asked for wrongly; 3, the machines cannot carry the
    /// scenario; 4, a machine does not do it; 5, a fault of windtunnel; or a part's own.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            LeadError::Client(_) | LeadError::NoAgentHere(_) => LeadErrorKind::Usage.exit_code(),
            LeadError::Refused(_) => 3,
            // What the system does not allow is the machine's.
            LeadError::Key(KeyError::Make(_)) => LeadErrorKind::Machine.exit_code(),
            LeadError::Key(_) => LeadErrorKind::Usage.exit_code(),
            LeadError::Folder(_) | LeadError::Gather(_) => LeadErrorKind::Machine.exit_code(),
            LeadError::Part { code, .. } => *code,
            LeadError::Other { kind, .. } => kind.exit_code(),
        }
    }
}

impl LeadErrorKind {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            LeadErrorKind::Usage => 2,
            LeadErrorKind::Machine => 4,
            LeadErrorKind::Internal => 5,
        }
    }
}

const NO_AGENT_HINT: &str =
    "start one here with `windtunnel agent`, or name one that knows all: --hosts HOST,all";

/// An error as people see it, for tests of texts.
#[cfg(test)]
pub(crate) fn text(error: &LeadError) -> String {
    let hint = error.hint().map(|hint| format!("\nhint: {hint}"));
    format!("error: {error}{}", hint.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_show_on_which_side_the_cause_is() {
        let no_agent =
            || AgentClientError::NoAgent { host: "localhost".into(), why: String::new() };
        assert_eq!(LeadError::from(no_agent()).exit_code(), 2);
        assert_eq!(LeadError::from(KeyError::Make("no memory".into())).exit_code(), 4);
        assert_eq!(LeadError::new(LeadErrorKind::Internal, "").exit_code(), 5);
        let part = LeadError::Part { host: "a".into(), why: "b".into(), hint: None, code: 130 };
        assert_eq!((part.exit_code(), part.to_string()), (130, "host a: b".to_owned()));
    }

    #[test]
    fn without_a_named_machine_the_hint_says_which_to_name() {
        let error = AgentClientError::NoAgent { host: "localhost".into(), why: String::new() };
        assert_eq!(
            text(&LeadError::NoAgentHere(error)),
            format!("error: no agent answers at localhost\nhint: {NO_AGENT_HINT}")
        );
    }

    #[test]
    fn a_hint_goes_with_an_error_in_words_and_no_other() {
        let error = LeadError::new(LeadErrorKind::Machine, "it is tired").with_hint("let it rest");
        assert_eq!(text(&error), "error: it is tired\nhint: let it rest");
        let key = LeadError::from(KeyError::Make("no memory".into())).with_hint("x");
        assert_eq!(text(&key), "error: cannot make a key: no memory");
        let open = KeyError::Open { path: "k".into(), mode: 0o644 };
        let key = LeadError::from(open);
        assert_eq!(key.exit_code(), 2);
        assert!(text(&key).contains("\nhint: `chmod 600 k`"), "{}", text(&key));
        let (host, why, hint) = ("a".into(), "b".into(), Some("c".into()));
        let part = LeadError::Part { host, why, hint, code: 3 };
        assert_eq!(text(&part.with_hint("x")), "error: host a: b\nhint: c");
    }
}
