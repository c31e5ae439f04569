//! Bars that show how far something is that takes long, on standard error.
//!
//! A bar appears when its work has taken two seconds, so that what is quick shows nothing; where
//! standard error is not a terminal, none does. It starts no thread, so that it can be used before a
//! run's nodes are made, and is drawn as the work says how far it is.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The state of some work.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    began: Instant,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Hidden,
    Waiting,
    Shown,
}

/// What the numbers of a bar count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Things,
    Bytes,
}

impl Progress {
    /// For work that is described by a few words: `setting up nodes`.
    pub(crate) fn new(what: &'static str, unit: Unit, quiet: bool) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let numbers = match unit {
            Unit::Things => "{pos} of {len}",
            Unit::Bytes => "{bytes} of {total_bytes}",
        };
        let template = format!("{{msg}} [{{bar:30}}] {numbers}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what);
        let state = if quiet { State::Hidden } else { State::Waiting };
        Progress { bar, began: Instant::now(), state }
    }

    /// So much is done, of so much.
    pub(crate) fn set(&mut self, done: u64, total: u64) {
        if self.state == State::Waiting && self.began.elapsed() >= APPEARS_AFTER {
            // Hidden by itself when standard error is not a terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
            self.state = State::Shown;
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
    }

    /// What the bar says now; `None` if it has not appeared.
    #[cfg(test)]
    fn shown(&self) -> Option<(String, u64, u64)> {
        let numbers = (self.bar.message(), self.bar.position(), self.bar.length().unwrap_or(0));
        (self.state == State::Shown).then_some(numbers)
    }
}

impl Drop for Progress {
    /// Takes the bar away.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// What is done sooner needs no bar.
const APPEARS_AFTER: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_appears_when_its_work_has_taken_two_seconds() {
        let mut progress = Progress::new("unpacking", Unit::Bytes, false);
        progress.set(1, 10);
        assert_eq!(progress.shown(), None);
        progress.began = progress.began.checked_sub(APPEARS_AFTER).unwrap();
        progress.set(5, 10);
        assert_eq!(progress.shown(), Some(("unpacking".to_owned(), 5, 10)));
    }

    #[test]
    fn a_quiet_command_has_no_bar() {
        let mut progress = Progress::new("unpacking", Unit::Things, true);
        progress.began = progress.began.checked_sub(APPEARS_AFTER).unwrap();
        progress.set(5, 10);
        assert_eq!(progress.shown(), None);
    }
}
