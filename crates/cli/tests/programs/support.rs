//! Users, folders and runs for the tests.

#[path = "support/lab.rs"]
mod lab;
#[path = "support/live.rs"]
mod live;
#[path = "support/machine.rs"]
mod machine;
#[path = "support/outcome.rs"]
mod outcome;

use std::time::{Duration, Instant};

pub(crate) use lab::Lab;
pub(crate) use live::Live;
pub(crate) use machine::{User, find_program, is_missing, is_root, missing, unprivileged, users};
pub(crate) use outcome::Outcome;

use machine::processes_with;

/// Waits for a fact, at most half a minute, which no machine needs however loaded it is.
#[track_caller]
pub(crate) fn until<T>(what: &str, fact: impl FnMut() -> Option<T>) -> T {
    until_within(PATIENCE, what, fact)
}

#[track_caller]
pub(crate) fn until_within<T>(
    patience: Duration,
    what: &str,
    mut fact: impl FnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(seen) = fact() {
            return seen;
        }
        assert!(Instant::now() < deadline, "not within {patience:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

const PATIENCE: Duration = Duration::from_secs(30);
