//! The notices of a run over several machines, as if it were on one.

use std::sync::Arc;

use windtunnel_cluster::protocol::run::RunSetup;
use windtunnel_host::gather::EventFilter;
use windtunnel_host::observer::OwnedNotice;
use windtunnel_host::{Notice, Observer};
use windtunnel_model::{Plan, Span};
use windtunnel_trace::event::{Event, EventKind};

/// Puts the parts' notices together.
pub(crate) struct Notices {
    observer: Arc<dyn Observer>,
    plan: Plan,
    once: EventFilter,
    stopping: bool,
    /// By member: nodes that are up.
    done: Vec<usize>,
    total: usize,
    /// By member: programs that run and are not daemons.
    running: Vec<usize>,
    elapsed: Span,
}

impl Notices {
    pub(crate) fn new(setup: &RunSetup, observer: Arc<dyn Observer>) -> Self {
        Notices {
            observer,
            plan: setup.plan.clone(),
            once: EventFilter::default(),
            stopping: false,
            done: vec![0; setup.members.len()],
            total: setup.plan.nodes.len(),
            running: vec![0; setup.members.len()],
            elapsed: Span::ZERO,
        }
    }

    /// A part's notice, in its own words. Those of another version are left out. Returns which
    /// machine is lost, if it says that.
    pub(crate) fn notice(&mut self, member: u16, text: &str) -> Option<String> {
        let seen = OwnedNotice::read(text, &self.plan)?;
        let member = usize::from(member);
        match &seen {
            OwnedNotice::Setup { done, .. } => {
                self.done[member] = *done;
                let done = self.done.iter().sum();
                self.observer.notice(&Notice::Setup { done, total: self.total });
            }
            OwnedNotice::Tick { elapsed, running } => {
                self.running[member] = *running;
                self.elapsed = self.elapsed.max(*elapsed);
                let running = self.running.iter().sum();
                self.observer.notice(&Notice::Tick { elapsed: self.elapsed, running });
            }
            OwnedNotice::Stopping { .. } if std::mem::replace(&mut self.stopping, true) => {}
            OwnedNotice::Event(event) if !self.once.is_new(event) => {}
            seen => self.observer.notice(&seen.notice()),
        }
        match seen {
            OwnedNotice::Event(Event { what: EventKind::HostLost { host, .. }, .. }) => Some(host),
            _ => None,
        }
    }
}
