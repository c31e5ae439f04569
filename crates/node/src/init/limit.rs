//! The limit of processor time that a node's init holds its programs to.

use std::io;
use std::sync::Arc;

use windtunnel_limit::{DutyCycleController, PausableThread, ProcessScope};
use windtunnel_sys::poll::EventFd;

use crate::message::{NodeInitReply, ProcessorWindow};

/// The duty cycle, from the first request for one, and what works for the programs.
#[derive(Debug, Default)]
pub(super) struct ProcessorLimit {
    duty: Option<DutyCycleController>,
    worker: Option<Arc<PausableThread>>,
}

impl ProcessorLimit {
    /// Another limit holds from now on. What goes wrong is reported.
    pub(super) fn set(&mut self, share: u32) -> Option<NodeInitReply> {
        let done = match &self.duty {
            Some(duty) => duty.set(share),
            None => DutyCycleController::begin(ProcessScope::Namespace, share).map(|duty| {
                self.worker.iter().for_each(|worker| duty.include(Arc::clone(worker)));
                self.duty = Some(duty);
            }),
        };
        let failed = |error: io::Error| NodeInitReply::Processor {
            windows: Vec::new(),
            failure: Some(format!("programs cannot be limited: {error}")),
        };
        done.err().map(failed)
    }

    /// What this thread does is done for the programs, and within their limit.
    pub(super) fn include(&mut self, worker: Arc<PausableThread>) {
        self.duty.iter().for_each(|duty| duty.include(Arc::clone(&worker)));
        self.worker = Some(worker);
    }

    /// Whether it signals all programs itself; then it has stopped them or let them go on as
    /// others want it, as far as the limit allows.
    pub(super) fn hold(&self, held: bool) -> Option<io::Result<()>> {
        self.duty.as_ref().map(|duty| duty.hold(held))
    }

    /// Whether a program that has just been started is to be stopped.
    pub(super) fn is_stopped(&self) -> bool {
        self.duty.as_ref().is_some_and(DutyCycleController::is_stopped)
    }

    /// What becomes readable when there is something to report.
    pub(super) fn news(&self) -> Option<&EventFd> {
        self.duty.as_ref().map(DutyCycleController::news)
    }

    /// What programs have had since the last call, if that is known.
    pub(super) fn report(&self) -> Option<NodeInitReply> {
        let (windows, failure) = self.duty.as_ref()?.take();
        if windows.is_empty() && failure.is_none() {
            return None;
        }
        let windows = windows.into_iter().map(|(window, share)| ProcessorWindow {
            share,
            end_ns: window.end_ns,
            length_ns: window.length_ns,
            used_ns: window.used_ns,
            held_ns: window.held_ns,
        });
        Some(NodeInitReply::Processor { windows: windows.collect(), failure })
    }
}
