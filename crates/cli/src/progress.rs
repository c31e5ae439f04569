//! Bars that show how far something is that takes long, on standard error.
//!
//! A bar appears when its work has taken two seconds, so that what is quick shows nothing; where
//! standard error is not a terminal, none does. One that the work itself draws starts no thread, so
//! that it can be used before a run's nodes are made. Where steps can take long by themselves, a thread
//! shows it, with the time that has gone by.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How far some work is.
#[derive(Debug)]
pub(crate) struct ProgressIndicator {
    bar: ProgressBar,
    began: Instant,
    shown: Arc<AtomicBool>,
    manner: ProgressTrigger,
}

/// What makes it appear.
#[derive(Debug)]
enum ProgressTrigger {
    Never,
    /// The work, when it says how far it is.
    Work,
    /// A thread, which ends when the other end of the channel is gone.
    Thread {
        end: Option<Sender<()>>,
        thread: Option<JoinHandle<()>>,
    },
}

/// What the numbers of a bar count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressUnit {
    Things,
    Bytes,
}

impl ProgressIndicator {
    /// For work that is described by a few words, `setting up nodes`, and often says how far it is.
    pub(crate) fn new(what: &'static str, unit: ProgressUnit, quiet: bool) -> ProgressIndicator {
        let manner = if quiet { ProgressTrigger::Never } else { ProgressTrigger::Work };
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        set_style(&bar, unit, "");
        bar.set_message(what);
        ProgressIndicator { bar, began: Instant::now(), shown: Arc::default(), manner }
    }

    /// For work of which one step can take long.
    pub(crate) fn timed(what: &'static str, unit: ProgressUnit, quiet: bool) -> ProgressIndicator {
        let progress = ProgressIndicator::new(what, unit, quiet);
        if quiet { progress } else { progress.with_thread(unit, APPEARS_AFTER) }
    }

    fn with_thread(mut self, unit: ProgressUnit, after: Duration) -> ProgressIndicator {
        set_style(&self.bar, unit, ", {elapsed}");
        let (bar, shown) = (self.bar.clone(), Arc::clone(&self.shown));
        let (end, ended) = channel();
        let thread = thread::Builder::new().name("progress".into()).spawn(move || {
            if ended.recv_timeout(after) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            appear(&bar, &shown);
            while ended.recv_timeout(REDRAWN_AFTER) == Err(RecvTimeoutError::Timeout) {
                bar.tick();
            }
        });
        // Without a thread the work shows it.
        if let Ok(thread) = thread {
            self.manner = ProgressTrigger::Thread { end: Some(end), thread: Some(thread) };
        }
        self
    }

    /// So much is done, of so much.
    pub(crate) fn set(&mut self, done: u64, total: u64) {
        let waits =
            matches!(self.manner, ProgressTrigger::Work) && !self.shown.load(Ordering::Relaxed);
        if waits && self.began.elapsed() >= APPEARS_AFTER {
            appear(&self.bar, &self.shown);
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
    }

    /// What the bar says now; `None` if it has not appeared.
    #[cfg(test)]
    fn shown(&self) -> Option<(String, u64, u64)> {
        let numbers = (self.bar.message(), self.bar.position(), self.bar.length().unwrap_or(0));
        self.shown.load(Ordering::Relaxed).then_some(numbers)
    }
}

impl Drop for ProgressIndicator {
    /// Takes the bar away.
    fn drop(&mut self) {
        if let ProgressTrigger::Thread { end, thread } = &mut self.manner {
            drop(end.take());
            // It has nothing to say, and if it panicked the work is none the worse.
            let _ = thread.take().map(JoinHandle::join);
        }
        self.bar.finish_and_clear();
    }
}

/// Message, bar and numbers, with `more` behind them.
fn set_style(bar: &ProgressBar, unit: ProgressUnit, more: &str) {
    let numbers = match unit {
        ProgressUnit::Things => "{pos} of {len}",
        ProgressUnit::Bytes => "{bytes} of {total_bytes}",
    };
    let template = format!("{{msg}} [{{bar:30}}] {numbers}{more}");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.progress_chars("=> "));
    }
}

/// Hidden by itself when standard error is not a terminal.
fn appear(bar: &ProgressBar, shown: &AtomicBool) {
    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
    shown.store(true, Ordering::Relaxed);
}

/// What is done sooner needs no bar.
const APPEARS_AFTER: Duration = Duration::from_secs(2);
const REDRAWN_AFTER: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_appears_when_its_work_has_taken_two_seconds() {
        let mut progress = ProgressIndicator::new("unpacking", ProgressUnit::Bytes, false);
        progress.set(1, 10);
        assert_eq!(progress.shown(), None);
        progress.began = progress.began.checked_sub(APPEARS_AFTER).unwrap();
        progress.set(5, 10);
        assert_eq!(progress.shown(), Some(("unpacking".to_owned(), 5, 10)));
    }

    #[test]
    fn a_bar_with_a_thread_appears_while_a_step_goes_on() {
        let progress = ProgressIndicator::new("importing", ProgressUnit::Things, false);
        let mut progress = progress.with_thread(ProgressUnit::Things, Duration::ZERO);
        progress.set(1, 3);
        while progress.shown().is_none() {
            thread::yield_now();
        }
        assert_eq!(progress.shown(), Some(("importing".to_owned(), 1, 3)));
    }

    #[test]
    fn a_bar_with_a_thread_does_not_hold_up_work_that_is_done_soon() {
        let progress = ProgressIndicator::timed("importing", ProgressUnit::Things, false);
        let shown = Arc::clone(&progress.shown);
        drop(progress);
        assert!(!shown.load(Ordering::Relaxed));
    }

    #[test]
    fn a_quiet_command_has_no_bar() {
        let mut progress = ProgressIndicator::new("unpacking", ProgressUnit::Things, true);
        progress.began = progress.began.checked_sub(APPEARS_AFTER).unwrap();
        progress.set(5, 10);
        assert_eq!(progress.shown(), None);
    }
}
