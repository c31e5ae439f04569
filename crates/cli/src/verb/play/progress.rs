//! How far the clients are: others begin after them.

use std::sync::{Condvar, Mutex, PoisonError};

/// By connection: how many steps its client has done; `None`: it has not connected.
#[derive(Debug)]
pub(super) struct ReplayProgress {
    done: Mutex<Vec<Option<usize>>>,
    changed: Condvar,
}

impl ReplayProgress {
    pub(super) fn new(connections: usize) -> ReplayProgress {
        ReplayProgress { done: Mutex::new(vec![None; connections]), changed: Condvar::new() }
    }

    /// The client of a connection has done so many steps.
    pub(super) fn set(&self, number: u32, steps: usize) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = done.get_mut(number as usize - 1) {
            *place = Some(steps);
        }
        self.changed.notify_all();
    }

    /// Waits until the client of a connection has done so many steps.
    pub(super) fn wait(&self, number: u32, steps: usize) {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |done: &mut Vec<Option<usize>>| {
            let known = done.get(number as usize - 1).copied().unwrap_or(Some(steps));
            known.is_none_or(|known| known < steps)
        };
        drop(self.changed.wait_while(done, waits));
    }
}
