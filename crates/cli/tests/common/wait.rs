//! Waiting, for the tests that run programs.

use std::time::{Duration, Instant};

/// Waits for a fact, at most half a minute, which no machine needs however loaded it is.
#[track_caller]
pub(crate) fn until<T>(what: &str, fact: impl FnMut() -> Option<T>) -> T {
    until_within(PATIENCE, what, fact)
}

/// Waits for a fact that must come so soon.
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
