//! Memory and processes where there are no groups: a thread that looks at all processes of a scope,
//! and ends what is too much.
//!
//! It looks the sooner the less is left: what remains is divided by how fast a program can use it
//! (`FILL_BYTES_PER_MS`, `FORKS_PER_MS`). In between, programs can have more than their limit.
//! Of memory, the largest process is ended, as the kernel would do; of processes, the newest.

use std::collections::BTreeSet;
use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windtunnel_model::ResourceAmounts;
use windtunnel_sys::poll::{self, EventFd, PollFd, PollFlags};
use windtunnel_sys::process::{self, Signal};
use windtunnel_sys::{clock, limits, schedule};

use crate::census::{ProcessCensus, ProcessResourceUsage};
use crate::scope::ProcessScope;

/// What is used, and was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceWatchUsage {
    /// Bytes now.
    pub memory: u64,
    pub memory_peak: u64,
    /// Processes and threads now.
    pub pids: u64,
    pub pids_peak: u64,
    /// Faults of processes that live, for which a page had to be read from a disk.
    pub faults: u64,
    /// Processes that were ended because of memory.
    pub ended_for_memory: u64,
    /// Processes that were ended because they were too many.
    pub ended_for_pids: u64,
    /// The names of the first that were ended since the last call, with what they had of memory.
    pub ended: Vec<(String, u64)>,
    /// Why a limit cannot be held.
    pub failure: Option<String>,
}

/// A watch.
#[derive(Debug)]
pub struct ResourceWatch {
    shared: Arc<SharedResourceWatch>,
}

#[derive(Debug)]
struct SharedResourceWatch {
    scope: ProcessScope,
    state: Mutex<ResourceWatchState>,
    /// Raised when what is allowed was changed.
    changed: EventFd,
    /// Raised when there is something to take.
    news: EventFd,
    page_bytes: u64,
}

#[derive(Debug, Default)]
struct ResourceWatchState {
    allowed: ResourceAmounts,
    use_: ResourceWatchUsage,
    /// Since when more is used than is allowed.
    over_since_ns: Option<u64>,
    reported_ns: u64,
    /// What was ended and is not gone yet.
    victims: BTreeSet<(i32, u64)>,
}

impl ResourceWatch {
    /// Begins, over all processes of a scope; memory and processes are watched.
    ///
    /// # Errors
    /// If no thread can be made.
    pub fn begin(scope: ProcessScope, allowed: ResourceAmounts) -> io::Result<ResourceWatch> {
        let state = Mutex::new(ResourceWatchState { allowed, ..ResourceWatchState::default() });
        let (changed, news) = (EventFd::open()?, EventFd::open()?);
        let page_bytes = limits::page_bytes();
        let shared = Arc::new(SharedResourceWatch { scope, state, changed, news, page_bytes });
        let of_thread = Arc::clone(&shared);
        std::thread::Builder::new().name("watch".into()).spawn(move || of_thread.run())?;
        Ok(ResourceWatch { shared })
    }

    /// From now on something else is allowed.
    ///
    /// # Errors
    /// If the thread cannot be notified.
    pub fn set(&self, allowed: ResourceAmounts) -> io::Result<()> {
        self.shared.state().allowed = allowed;
        self.shared.changed.raise()
    }

    /// What becomes readable when there is something to take.
    #[must_use]
    pub fn news(&self) -> &EventFd {
        &self.shared.news
    }

    /// What is used, as far as the last look knows.
    #[must_use]
    pub fn now(&self) -> ResourceWatchUsage {
        self.shared.state().use_.clone()
    }

    /// What is used, if that has not been taken.
    pub fn take(&self) -> Option<ResourceWatchUsage> {
        // It cannot be read if it was not raised.
        if !matches!(self.shared.news.clear(), Ok(1..)) {
            return None;
        }
        let mut state = self.shared.state();
        let taken = state.use_.clone();
        state.use_.ended.clear();
        Some(taken)
    }
}

impl SharedResourceWatch {
    fn state(&self) -> MutexGuard<'_, ResourceWatchState> {
        // Each change is complete in itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        // Both make looks punctual, and it works without.
        let _ = clock::set_timer_slack(NonZeroU64::MIN);
        let _ = schedule::set_slice(schedule::SHORTEST_SLICE_NS);
        loop {
            let wait = self.look();
            let mut changed = [PollFd::new(&self.changed, PollFlags::IN)];
            // Interrupted: it looks earlier.
            if matches!(poll::wait(&mut changed, Some(wait)), Ok(1..)) {
                let _ = self.changed.clear();
            }
        }
    }

    /// One look; how long the next one can wait.
    fn look(&self) -> Duration {
        let mut census = ProcessCensus::take(&self.scope);
        let now_ns = clock::monotonic_ns();
        let mut state = self.state();
        state.leave_out_victims(&mut census);
        let (memory_left, freed) = self.look_at_memory(&census, &mut state);
        let (threads_left, ended) = look_at_number(&census, &mut state);
        let is_over = freed || ended;
        state.note_over(is_over, now_ns);
        state.use_.faults = census.faults();
        let is_due = now_ns.saturating_sub(state.reported_ns) >= REPORT_EVERY_NS;
        if is_due || !state.use_.ended.is_empty() || state.use_.failure.is_some() {
            state.reported_ns = now_ns;
            // A reader that is behind finds all.
            let _ = self.news.raise();
        }
        let wait_ms = (memory_left / FILL_BYTES_PER_MS).min(threads_left / FORKS_PER_MS);
        Duration::from_millis(wait_ms.clamp(LOOK_MS_LEAST, LOOK_MS_MOST))
    }

    /// What is left, and whether something was ended.
    fn look_at_memory(
        &self,
        census: &ProcessCensus,
        state: &mut ResourceWatchState,
    ) -> (u64, bool) {
        let mut used = census.resident(self.page_bytes);
        let mut ended = false;
        let allowed = state.allowed.memory.unwrap_or(u64::MAX);
        if used > allowed {
            // What is shared was counted several times.
            let parts = census.proportional(self.page_bytes);
            used = parts.iter().map(|(_, bytes)| bytes).sum();
            // What was ended before is still giving back its memory: it may be enough.
            let waits = !state.victims.is_empty();
            if let Some((largest, bytes)) = parts.first().filter(|_| used > allowed && !waits) {
                state.end(largest, *bytes);
                state.use_.ended_for_memory += 1;
            }
            ended = used > allowed;
        }
        state.use_.memory = used;
        state.use_.memory_peak = state.use_.memory_peak.max(used);
        (allowed.saturating_sub(used), ended)
    }
}

/// How many more may be made, and whether some were ended.
fn look_at_number(census: &ProcessCensus, state: &mut ResourceWatchState) -> (u64, bool) {
    let threads = census.threads();
    let allowed = state.allowed.pids.unwrap_or(u64::MAX);
    let surplus = census.newest(threads.saturating_sub(allowed));
    for process in &surplus {
        state.end(process, 0);
        state.use_.ended_for_pids += 1;
    }
    // Those that have ended have numbers, too, until their parent waits for them or ends.
    if let Some((parent, _)) = census.most_forgetful().filter(|(_, count)| *count > allowed) {
        state.end(parent, 0);
        state.use_.ended_for_pids += 1;
    }
    state.use_.pids = threads;
    state.use_.pids_peak = state.use_.pids_peak.max(threads);
    (allowed.saturating_sub(threads), !surplus.is_empty())
}

impl ResourceWatchUsage {
    fn note(&mut self, name: &str, bytes: u64) {
        if self.ended.len() < ENDED_NAMED {
            self.ended.push((name.to_owned(), bytes));
        }
    }
}

impl ResourceWatchState {
    fn end(&mut self, process: &ProcessResourceUsage, bytes: u64) {
        // One that is gone needs no signal.
        let _ = process::kill(process.pid, Signal::KILL);
        self.victims.insert(process.identity());
        self.use_.note(&process.name, bytes);
    }

    /// They use nothing that they would not give back.
    fn leave_out_victims(&mut self, census: &mut ProcessCensus) {
        let living: BTreeSet<_> = census.living().map(ProcessResourceUsage::identity).collect();
        self.victims.retain(|victim| living.contains(victim));
        census.processes.retain(|process| !self.victims.contains(&process.identity()));
    }

    /// A process that was ended is there for a moment; what does not go away is not held.
    fn note_over(&mut self, is_over: bool, now_ns: u64) {
        if !is_over {
            self.over_since_ns = None;
            return;
        }
        let since_ns = *self.over_since_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(since_ns) > OVER_NS_MOST {
            let why = "more is used for longer than 2s, although processes are ended";
            self.use_.failure.get_or_insert_with(|| why.to_owned());
        }
    }
}

/// What a process may have of memory for itself where memory is only watched, in use or not: so much
/// that programs do not meet it that use less than their limit, and no more, as it bounds what one
/// can take between two looks.
#[must_use]
pub fn data_of(memory: u64) -> u64 {
    memory.saturating_mul(4).max(memory.saturating_add(DATA_LEAST))
}

/// Stacks of 32 threads.
const DATA_LEAST: u64 = 256 << 20;
/// How fast a program takes memory: what a processor can clear.
const FILL_BYTES_PER_MS: u64 = 4_000_000;
/// How fast processes are made on a few processors.
const FORKS_PER_MS: u64 = 10;
const LOOK_MS_LEAST: u64 = 1;
const LOOK_MS_MOST: u64 = 20;
const REPORT_EVERY_NS: u64 = 1_000_000_000;
const OVER_NS_MOST: u64 = 2_000_000_000;
const ENDED_NAMED: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_over_its_limit_is_not_held_and_says_so_once() {
        let mut state = ResourceWatchState::default();
        state.note_over(true, 1_000);
        state.note_over(false, 5_000_000_000);
        state.note_over(true, 6_000_000_000);
        state.note_over(true, 8_000_000_000);
        assert_eq!(state.use_.failure, None);
        state.note_over(true, 8_000_000_001);
        assert!(state.use_.failure.is_some());
    }

    #[test]
    fn only_the_first_that_are_ended_are_named() {
        let mut seen = ResourceWatchUsage::default();
        (0..100).for_each(|number| seen.note(&number.to_string(), number));
        assert_eq!(seen.ended.len(), ENDED_NAMED);
        assert_eq!(seen.ended[0], ("0".to_owned(), 0));
    }
}
