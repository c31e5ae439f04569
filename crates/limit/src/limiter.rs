//! What a process does itself to hold others to limits where no control group can.

use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windtunnel_budget::processor::{CpuUsageReading, CpuUsageWindow};
use windtunnel_model::ResourceAmounts;
use windtunnel_sys::poll::EventFd;

use crate::duty::DutyCycleController;
use crate::scope::ProcessScope;
use crate::watch::{ResourceWatch, ResourceWatchUsage};
use crate::worker::PausableThread;

/// Holds all processes of a scope: a duty cycle from the first limit of processor time on, and a watch
/// from the first one of memory or processes.
#[derive(Debug)]
pub struct ProcessLimiter {
    scope: ProcessScope,
    duty: Option<DutyCycleController>,
    watch: Option<ResourceWatch>,
    /// What works for the processes, within their limit.
    worker: Option<Arc<PausableThread>>,
}

/// What a limiter has to report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimiterReport {
    /// Seconds of processor time, each with what was asked in it.
    pub windows: Vec<CpuUsageWindow>,
    /// Why the limit of processor time cannot be held, if it cannot.
    pub cpu_failure: Option<String>,
    /// What is used of memory and processes, if that is news.
    pub used: Option<ResourceWatchUsage>,
}

impl ProcessLimiter {
    /// Of all processes of a scope; nothing is limited yet.
    #[must_use]
    pub fn new(scope: ProcessScope) -> ProcessLimiter {
        ProcessLimiter { scope, duty: None, watch: None, worker: None }
    }

    /// From now on other limits hold; what is not named stays as it is.
    ///
    /// # Errors
    /// What cannot be done, as a report says it.
    pub fn set(&mut self, asked: &ResourceAmounts) -> Result<(), Box<LimiterReport>> {
        let failed = |what: &str, error: &io::Error| format!("programs cannot be {what}: {error}");
        let (cpu, watch) = (self.set_cpu(asked), self.set_watch(asked));
        if cpu.is_ok() && watch.is_ok() {
            return Ok(());
        }
        Err(Box::new(LimiterReport {
            windows: Vec::new(),
            cpu_failure: cpu.err().map(|error| failed("limited", &error)),
            used: watch.err().map(|error| ResourceWatchUsage {
                failure: Some(failed("watched", &error)),
                ..ResourceWatchUsage::default()
            }),
        }))
    }

    /// The same of processor time alone.
    ///
    /// # Errors
    /// If its threads cannot be made or notified.
    pub fn set_cpu(&mut self, asked: &ResourceAmounts) -> io::Result<()> {
        let Some(millis) = asked.cpu_millis else { return Ok(()) };
        let millis = u32::try_from(millis).unwrap_or(u32::MAX);
        if let Some(duty) = &self.duty {
            return duty.set(millis);
        }
        let duty = DutyCycleController::begin(self.scope.clone(), millis)?;
        self.worker.iter().for_each(|worker| duty.include(Arc::clone(worker)));
        self.duty = Some(duty);
        Ok(())
    }

    /// The same of memory and processes.
    ///
    /// # Errors
    /// If its thread cannot be made or notified.
    pub fn set_watch(&mut self, asked: &ResourceAmounts) -> io::Result<()> {
        if asked.memory.or(asked.pids).is_none() {
            return Ok(());
        }
        if let Some(watch) = &self.watch {
            return watch.set(*asked);
        }
        self.watch = Some(ResourceWatch::begin(self.scope.clone(), *asked)?);
        Ok(())
    }

    /// What this thread does is done for the processes, and within their limit.
    pub fn include(&mut self, worker: Arc<PausableThread>) {
        self.duty.iter().for_each(|duty| duty.include(Arc::clone(&worker)));
        self.worker = Some(worker);
    }

    /// Whether it signals all processes itself; then it has stopped them or let them go on as
    /// others want it, as far as the limit allows.
    pub fn hold(&self, held: bool) -> Option<io::Result<()>> {
        self.duty.as_ref().map(|duty| duty.hold(held))
    }

    /// Whether a process that has just been started is to be stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.duty.as_ref().is_some_and(DutyCycleController::is_stopped)
    }

    /// What becomes readable when there is something to report.
    pub fn news(&self) -> impl Iterator<Item = &EventFd> {
        let duty = self.duty.iter().map(DutyCycleController::news);
        duty.chain(self.watch.iter().map(ResourceWatch::news))
    }

    /// What is new since the last call, if something is.
    pub fn take(&self) -> Option<LimiterReport> {
        let (windows, cpu_failure) =
            self.duty.as_ref().map(DutyCycleController::take).unwrap_or_default();
        let used = self.watch.as_ref().and_then(ResourceWatch::take);
        let is_news = !windows.is_empty() || cpu_failure.is_some() || used.is_some();
        is_news.then_some(LimiterReport { windows, cpu_failure, used })
    }

    /// The processor time until the last look, where that is limited.
    #[must_use]
    pub fn last(&self) -> Option<CpuUsageReading> {
        self.duty.as_ref().map(DutyCycleController::last)
    }

    /// What is used of memory and processes, as far as the last look knows, where that is limited.
    #[must_use]
    pub fn used(&self) -> Option<ResourceWatchUsage> {
        self.watch.as_ref().map(ResourceWatch::now)
    }

    /// Ends: all go on, and nothing is looked at. Returns what they had of processors until then, with
    /// windows that were not taken, if that was limited.
    ///
    /// # Errors
    /// If its threads cannot be notified.
    pub fn end(&mut self) -> io::Result<Option<(CpuUsageReading, Vec<CpuUsageWindow>)>> {
        if let Some(watch) = &self.watch {
            // Its thread lives as long as this process.
            let _ = watch.set(ResourceAmounts::default());
        }
        self.duty.take().map(DutyCycleController::end).transpose()
    }
}
