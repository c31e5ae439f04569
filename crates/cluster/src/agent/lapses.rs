//! What the limits of a machine did not hold.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sentences of what finds out that a limit of all runs did not hold, for the agent, which reports them,
/// also to its runs.
#[derive(Debug, Clone, Default)]
pub struct LimitLapseLog(Arc<Mutex<Vec<String>>>);

impl LimitLapseLog {
    /// A limit did not hold, and why.
    pub fn add(&self, why: String) {
        let mut all = self.all();
        if all.len() < LAPSES_MAX {
            all.push(why);
        }
    }

    /// What is new.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.all())
    }

    fn all(&self) -> MutexGuard<'_, Vec<String>> {
        // Each change is complete in itself.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An agent takes them each second.
const LAPSES_MAX: usize = 100;
