//! How a face (a terminal, a test) watches a run.

use windtunnel_model::Span;
use windtunnel_trace::event::Event;

/// Something to show. Everything here is also in the run folder.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// So many of all nodes are up.
    Setup {
        /// Nodes that are up.
        done: usize,
        /// Nodes of the plan.
        total: usize,
    },
    /// Windtunnel measures the paths that expectations name.
    Measuring {
        /// How many paths.
        paths: usize,
    },
    /// A line that a program wrote, without its end.
    Output {
        /// Node, with the program's number where a node has several.
        source: &'a str,
        /// Position of the node in the plan: for colours.
        node: usize,
        /// Whether it came on standard error.
        error: bool,
        /// The line; what is no UTF-8 has been replaced.
        line: &'a str,
    },
    /// An event of the run.
    Event(&'a Event),
    /// Time passes.
    Tick {
        /// Since the run began.
        elapsed: Span,
        /// Programs that run and are no daemons.
        running: usize,
    },
    /// Programs are being told to end.
    Stopping {
        /// Why.
        reason: &'a str,
    },
}

/// Receives notices; called from several threads, must not block for long.
pub trait Observer: Send + Sync {
    /// Shows (or ignores) a notice.
    fn notice(&self, notice: &Notice<'_>);
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn notice(&self, _notice: &Notice<'_>) {}
}
