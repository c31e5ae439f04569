//! How a face (a terminal, a test) watches a run.

use serde::{Deserialize, Serialize};
use windtunnel_model::{Plan, Span};
use windtunnel_trace::event::EventLogEntry;

/// Something to show. Everything here is also in the run folder.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ObserverNotice<'a> {
    /// So many of all nodes are up.
    Setup { done: usize, total: usize },
    /// So many bytes of an image are fetched from its registry.
    Fetching { done: u64, total: u64 },
    /// So many bytes of images are unpacked.
    Unpacking { done: u64, total: u64 },
    /// Windtunnel measures the paths that expectations name.
    Measuring { paths: usize },
    /// A line that a program wrote, without its end.
    Output {
        /// Node, with the program's number where a node has several.
        source: &'a str,
        /// Position of the node in the plan: for colours.
        node: usize,
        /// Whether it came on standard error.
        error: bool,
        /// The line; bytes that are not UTF-8 have been replaced.
        line: &'a str,
    },
    /// An event of the run.
    Event(&'a EventLogEntry),
    Tick {
        /// Since the run began.
        elapsed: Span,
        /// Programs that run, without daemons.
        running: usize,
    },
    /// Programs are asked to end.
    Stopping { reason: &'a str },
    /// Programs that have not ended yet get no more time: an end at once was asked for.
    Hurried,
}

/// An owned notice, for observers on another machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum OwnedNotice {
    Setup {
        done: usize,
        total: usize,
    },
    Fetching {
        done: u64,
        total: u64,
    },
    Unpacking {
        done: u64,
        total: u64,
    },
    Measuring {
        paths: usize,
    },
    Output {
        source: String,
        node: usize,
        error: bool,
        line: String,
    },
    Event(EventLogEntry),
    Tick {
        elapsed: Span,
        /// Programs on this machine that run, without daemons.
        running: usize,
    },
    Stopping {
        reason: String,
    },
    Hurried,
}

impl From<&ObserverNotice<'_>> for OwnedNotice {
    fn from(notice: &ObserverNotice<'_>) -> Self {
        match *notice {
            ObserverNotice::Setup { done, total } => OwnedNotice::Setup { done, total },
            ObserverNotice::Fetching { done, total } => OwnedNotice::Fetching { done, total },
            ObserverNotice::Unpacking { done, total } => OwnedNotice::Unpacking { done, total },
            ObserverNotice::Measuring { paths } => OwnedNotice::Measuring { paths },
            ObserverNotice::Output { source, node, error, line } => OwnedNotice::Output {
                source: source.to_owned(),
                node,
                error,
                line: line.to_owned(),
            },
            ObserverNotice::Event(event) => OwnedNotice::Event(event.clone()),
            ObserverNotice::Tick { elapsed, running } => OwnedNotice::Tick { elapsed, running },
            ObserverNotice::Stopping { reason } => {
                OwnedNotice::Stopping { reason: reason.to_owned() }
            }
            ObserverNotice::Hurried => OwnedNotice::Hurried,
        }
    }
}

impl OwnedNotice {
    /// A notice of a part of a run of `plan`, from its own format; `None` if that cannot be.
    #[must_use]
    pub fn read(text: &str, plan: &Plan) -> Option<Self> {
        let seen: OwnedNotice = serde_json::from_str(text).ok()?;
        let nodes = plan.nodes.len();
        let programs: usize = plan.nodes.iter().map(|node| node.programs.len()).sum();
        let can_be = match &seen {
            OwnedNotice::Setup { done, total } => *done <= nodes && *total <= nodes,
            OwnedNotice::Fetching { done, total } | OwnedNotice::Unpacking { done, total } => {
                done <= total
            }
            OwnedNotice::Measuring { paths } => *paths <= plan.expectations.len(),
            OwnedNotice::Output { source, node, .. } => {
                *node < nodes
                    && source.len() <= SOURCE_BYTES_MAX
                    && !source.contains(char::is_control)
            }
            OwnedNotice::Tick { running, .. } => *running <= programs,
            OwnedNotice::Event(_) | OwnedNotice::Stopping { .. } | OwnedNotice::Hurried => true,
        };
        can_be.then_some(seen)
    }

    /// The notice as an observer takes it.
    #[must_use]
    pub fn notice(&self) -> ObserverNotice<'_> {
        match self {
            OwnedNotice::Setup { done, total } => {
                ObserverNotice::Setup { done: *done, total: *total }
            }
            OwnedNotice::Fetching { done, total } => {
                ObserverNotice::Fetching { done: *done, total: *total }
            }
            OwnedNotice::Unpacking { done, total } => {
                ObserverNotice::Unpacking { done: *done, total: *total }
            }
            OwnedNotice::Measuring { paths } => ObserverNotice::Measuring { paths: *paths },
            OwnedNotice::Output { source, node, error, line } => {
                ObserverNotice::Output { source, node: *node, error: *error, line }
            }
            OwnedNotice::Event(event) => ObserverNotice::Event(event),
            OwnedNotice::Tick { elapsed, running } => {
                ObserverNotice::Tick { elapsed: *elapsed, running: *running }
            }
            OwnedNotice::Stopping { reason } => ObserverNotice::Stopping { reason },
            OwnedNotice::Hurried => ObserverNotice::Hurried,
        }
    }
}

/// The longest name of a node, with the number of one of its programs.
const SOURCE_BYTES_MAX: usize = 100;

/// Receives notices; called from several threads, must not block for long.
pub trait Observer: Send + Sync {
    /// Shows (or ignores) a notice.
    fn notice(&self, notice: &ObserverNotice<'_>);
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentObserver;

impl Observer for SilentObserver {
    fn notice(&self, _notice: &ObserverNotice<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<OwnedNotice> {
        let plan = windtunnel_dataplane::testing::plan(
            "nodes: {a: {run: x}, b: {}}\nlinks: [{between: [a, b]}]",
        );
        OwnedNotice::read(text, &plan)
    }

    #[test]
    fn a_notice_is_the_same_for_an_observer_on_another_machine() {
        let notices = [
            ObserverNotice::Setup { done: 1, total: 2 },
            ObserverNotice::Unpacking { done: 1 << 40, total: 1 << 41 },
            ObserverNotice::Output { source: "a", node: 0, error: true, line: "é" },
            ObserverNotice::Tick { elapsed: Span::from_secs(1), running: 1 },
            ObserverNotice::Stopping { reason: "by command" },
            ObserverNotice::Hurried,
        ];
        for notice in &notices {
            let sent = serde_json::to_string(&OwnedNotice::from(notice)).unwrap();
            let received = read(&sent).unwrap();
            assert_eq!(format!("{:?}", received.notice()), format!("{notice:?}"));
        }
    }

    #[test]
    fn a_notice_that_another_machine_cannot_have_is_not_shown() {
        for text in [
            r#"{"notice":"setup","done":3,"total":2}"#,
            r#"{"notice":"measuring","paths":1}"#,
            r#"{"notice":"tick","elapsed":"1s","running":2}"#,
            r#"{"notice":"output","source":"a","node":2,"error":false,"line":"x"}"#,
            r#"{"notice":"output","source":"\u001b[2J","node":0,"error":false,"line":"x"}"#,
            r#"{"notice":"unheard-of"}"#,
            "no json",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert!(
            read(r#"{"notice":"output","source":"a","node":1,"error":false,"line":"x"}"#).is_some()
        );
    }
}
