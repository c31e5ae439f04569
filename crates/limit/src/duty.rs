//! A duty cycle: threads in a node's init, or above a tree, that stop and continue all processes of
//! it, so that together they have their share of a processor.
//!
//! SIGSTOP reaches every process of a PID namespace at once, also those that are just being made,
//! and none of them can continue another while all are stopped; for those of a tree see
//! [`tree`](crate::tree). What is stopped by others, an event
//! or an emulation that is behind, stays stopped ([`DutyCycleController::hold`]).
//!
//! One thread looks and stops, another one continues. Programs that are continued compete for the
//! processor of the thread that does it, with all the time that they are owed for their stop: it
//! waits 2 to 7 ms for its next turn. A thread that sleeps meanwhile is served when it wakes.

use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use windtunnel_budget::processor::{CpuUsageMeter, CpuUsageReading, CpuUsageWindow, DutyCycle};
use windtunnel_sys::poll::{self, EventFd, PollFd, PollFlags};
use windtunnel_sys::{clock, schedule};

use crate::births::NewProcessTracker;
use crate::scope::ProcessScope;
use crate::usage::ProcessCpuTimeMeter;
use crate::worker::PausableThread;

/// A duty cycle.
#[derive(Debug)]
pub struct DutyCycleController {
    shared: Arc<SharedDutyCycle>,
    /// What looks and stops, and what continues.
    threads: [JoinHandle<()>; 2],
}

#[derive(Debug)]
struct SharedDutyCycle {
    scope: ProcessScope,
    state: Mutex<DutyCycleState>,
    /// Raised when `state` was changed from outside.
    changed: EventFd,
    /// Raised when there are windows.
    news: EventFd,
    /// Raised when programs may go on.
    resumed: EventFd,
}

#[derive(Debug, Default)]
struct DutyCycleState {
    /// Thousandths of a processor.
    share: u32,
    /// Whether others want all to be stopped.
    held: bool,
    /// Whether it is over.
    ended: bool,
    /// What the last look has read.
    last: CpuUsageReading,
    /// Whether the controller wants it.
    stopped: bool,
    windows: Vec<CpuUsageWindow>,
    failure: Option<String>,
    /// Processes that may be born stopped when all run.
    births: NewProcessTracker,
    /// What is stopped with the programs, and the processor time that it had used before.
    worker: Option<(Arc<PausableThread>, u64)>,
}

impl DutyCycleController {
    /// Begins with a share of so many thousandths of a processor for all processes of a scope.
    ///
    /// # Errors
    /// If no thread can be made.
    pub fn begin(scope: ProcessScope, share: u32) -> io::Result<DutyCycleController> {
        let state = Mutex::new(DutyCycleState { share, ..DutyCycleState::default() });
        let (changed, news, resumed) = (EventFd::open()?, EventFd::open()?, EventFd::open()?);
        let shared = Arc::new(SharedDutyCycle { scope, state, changed, news, resumed });
        let look = start("limit", &shared, SharedDutyCycle::run)?;
        Ok(DutyCycleController {
            threads: [look, start("resume", &shared, SharedDutyCycle::resume)?],
            shared,
        })
    }

    /// From now on another share holds.
    ///
    /// # Errors
    /// If the thread cannot be notified.
    pub fn set(&self, share: u32) -> io::Result<()> {
        if std::mem::replace(&mut self.shared.state().share, share) == share {
            return Ok(());
        }
        self.shared.changed.raise()
    }

    /// Others want all processes to be stopped, or to go on as far as the share allows.
    ///
    /// # Errors
    /// If a signal cannot be sent.
    pub fn hold(&self, held: bool) -> io::Result<()> {
        let mut state = self.shared.state();
        state.held = held;
        self.shared.signal(&state)
    }

    /// What the processes have had until the last look.
    #[must_use]
    pub fn last(&self) -> CpuUsageReading {
        self.shared.state().last
    }

    /// Ends, and continues all. Returns what the processes have had, and the windows that were not
    /// taken.
    ///
    /// # Errors
    /// If the threads cannot be notified: then all stays as it is.
    pub fn end(self) -> io::Result<(CpuUsageReading, Vec<CpuUsageWindow>)> {
        let DutyCycleController { shared, threads: [look, resume] } = self;
        shared.state().ended = true;
        shared.changed.raise()?;
        // A panic there has been printed.
        let _ = look.join();
        shared.state().let_go();
        shared.resumed.raise()?;
        let _ = resume.join();
        // What the last look stopped when the other thread had gone.
        shared.scope.resume(|| false)?;
        let mut state = shared.state();
        Ok((state.last, std::mem::take(&mut state.windows)))
    }

    /// From now on the processor time of this thread counts as that of the programs, and it pauses
    /// while the share is used up.
    pub fn include(&self, worker: Arc<PausableThread>) {
        let mut state = self.shared.state();
        worker.pause(state.stopped);
        let used_ns = worker.used_ns();
        state.worker = Some((worker, used_ns));
    }

    /// Whether a process that has just begun is to be stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.shared.state().is_stopped()
    }

    /// What becomes readable when there are windows to take.
    #[must_use]
    pub fn news(&self) -> &EventFd {
        &self.shared.news
    }

    /// The windows since the last call, each with the share that was asked, and why the limit cannot
    /// be held if it cannot.
    pub fn take(&self) -> (Vec<CpuUsageWindow>, Option<String>) {
        // It cannot be read if it was not raised.
        let _ = self.shared.news.clear();
        let mut state = self.shared.state();
        (std::mem::take(&mut state.windows), state.failure.take())
    }
}

impl SharedDutyCycle {
    fn state(&self) -> MutexGuard<'_, DutyCycleState> {
        // Each change is complete in itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        // Both make looks punctual, and it works without.
        let _ = clock::set_timer_slack(NonZeroU64::MIN);
        let _ = schedule::set_slice(schedule::SHORTEST_SLICE_NS);
        let mut usage = ProcessCpuTimeMeter::of(self.scope.clone());
        let (now_ns, used_ns) = (clock::monotonic_ns(), self.used_ns(&mut usage));
        let share = self.state().share;
        let mut cycle = DutyCycle::new(share, now_ns, used_ns);
        let mut meter = CpuUsageMeter::new(CpuUsageReading { now_ns, used_ns, held_ns: 0 });
        loop {
            let at_ns = self.look(&mut cycle, &mut meter, &mut usage);
            let wait_ns = at_ns.saturating_sub(clock::monotonic_ns());
            let mut changed = [PollFd::new(&self.changed, PollFlags::IN)];
            // Interrupted: it looks earlier.
            if matches!(poll::wait(&mut changed, Some(Duration::from_nanos(wait_ns))), Ok(1..)) {
                let _ = self.changed.clear();
                let (now_ns, used_ns) = (clock::monotonic_ns(), self.used_ns(&mut usage));
                let share = self.state().share;
                if self.state().ended {
                    self.look(&mut cycle, &mut meter, &mut usage);
                    return;
                }
                cycle.set_share(share, now_ns, used_ns);
                // A window has one share: the one under way is left out.
                let held_ns = cycle.stopped_ns();
                meter.cut(CpuUsageReading { now_ns, used_ns, held_ns }, share);
            }
        }
    }

    /// Processor time of the programs and of what works for them.
    fn used_ns(&self, usage: &mut ProcessCpuTimeMeter) -> u64 {
        let used_ns = usage.read();
        let mut state = self.state();
        if self.scope.is_signalled_at_once() {
            state.births.add(usage.new_processes());
        }
        let of_worker = |(worker, before_ns): &(Arc<PausableThread>, u64)| {
            worker.used_ns().saturating_sub(*before_ns)
        };
        used_ns.saturating_add(state.worker.as_ref().map_or(0, of_worker))
    }

    /// One look; when the next is due.
    fn look(
        &self,
        cycle: &mut DutyCycle,
        meter: &mut CpuUsageMeter,
        usage: &mut ProcessCpuTimeMeter,
    ) -> u64 {
        let (now_ns, used_ns) = (clock::monotonic_ns(), self.used_ns(usage));
        let ran = !self.state().stopped;
        let mut look = cycle.look(now_ns, used_ns, || usage.waited());
        if ran && !look.run {
            look = cycle.defer(|| usage.sleeps()).unwrap_or(look);
        }
        let reading = CpuUsageReading { now_ns, used_ns, held_ns: cycle.stopped_ns() };
        let mut state = self.state();
        let window = meter.read(reading, state.share);
        state.last = reading;
        let mut at_ns = look.at_ns;
        if state.stopped == look.run {
            state.stopped = !look.run;
            if let Some(worker) = &state.worker {
                worker.0.pause(state.stopped);
            }
            if let Err(error) = self.signal(&state) {
                state.failure = Some(format!("programs cannot be stopped: {error}"));
            }
        } else if state.is_stopped() {
            self.check(&state);
        }
        if state.is_stopped() {
            at_ns = at_ns.min(now_ns.saturating_add(self.scope.stays_stopped_ns()));
        } else {
            state.births.resume();
        }
        if window.is_some() || state.failure.is_some() {
            state.windows.extend(window);
            // A reader that is behind finds them all.
            let _ = self.news.raise();
        }
        at_ns.min(meter.due_ns())
    }

    /// Stops what runs although all are to be stopped, where that can be.
    fn check(&self, state: &DutyCycleState) {
        if matches!(self.scope, ProcessScope::Tree(_)) {
            // What goes wrong was said at the first stop.
            let _ = self.signal(state);
        }
    }

    /// Stops the programs, or has them continued, as the state says.
    fn signal(&self, state: &DutyCycleState) -> io::Result<()> {
        if state.is_stopped() { self.scope.stop() } else { self.resumed.raise() }
    }

    /// Continues the programs, again and again.
    fn resume(&self) {
        loop {
            // Interrupted: it looks earlier.
            let _ = poll::wait(&mut [PollFd::new(&self.resumed, PollFlags::IN)], None);
            let _ = self.resumed.clear();
            if self.state().is_stopped() {
                continue;
            }
            if let Err(error) = self.scope.resume(|| self.state().is_stopped()) {
                self.state().failure = Some(format!("programs cannot be continued: {error}"));
            }
            let state = self.state();
            // They may have been stopped at the same time, and then continued by this.
            if state.is_stopped() {
                let _ = self.scope.stop();
            } else if state.ended {
                return;
            }
        }
    }
}

impl DutyCycleState {
    fn is_stopped(&self) -> bool {
        self.held || self.stopped
    }

    fn let_go(&mut self) {
        (self.held, self.stopped) = (false, false);
    }
}

fn start(
    name: &str,
    shared: &Arc<SharedDutyCycle>,
    run: fn(&SharedDutyCycle),
) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name(name.into()).spawn(move || run(&shared))
}
