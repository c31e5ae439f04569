//! Machines, agents and runs for the tests.

#[path = "support/agent.rs"]
mod agent;
#[path = "support/machine.rs"]
mod machine;
#[path = "support/machines.rs"]
mod machines;
#[path = "support/run.rs"]
mod run;

use std::time::{Duration, Instant};

pub(crate) use machine::is_missing;
pub(crate) use machines::{Machines, address};
pub(crate) use run::{Outcome, Run};

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
