//! What is done while the packet loop is behind.

use serde::{Deserialize, Serialize};
use windtunnel_model::plan::OnOverload;
use windtunnel_model::{Span, Time};
use windtunnel_sys::process::Signal;
use windtunnel_trace::event::What;

use super::Live;
use crate::dataplane::now;
use crate::output::ProgramKey;
use crate::verdict::{Ending, rounded};

/// How often and how long all programs were paused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Freezes {
    /// How often.
    pub(crate) times: u64,
    /// How long, together.
    pub(crate) lasted: Span,
}

/// Whether all programs are paused now, and the account of it.
#[derive(Debug, Default)]
pub(super) struct Frost {
    since: Option<Time>,
    total: Freezes,
}

impl Frost {
    pub(super) fn is_on(&self) -> bool {
        self.since.is_some()
    }

    pub(super) fn total(&self) -> Freezes {
        self.total
    }

    fn begin(&mut self, at: Time) {
        self.since = Some(at);
        self.total.times += 1;
    }

    /// Whether it was on.
    fn end(&mut self, at: Time) -> bool {
        let Some(since) = self.since.take() else { return false };
        self.total.lasted = self.total.lasted + at.since(since);
        true
    }
}

impl Live {
    /// Once the run is ending, programs must not be paused: they are asked to end.
    pub(super) fn overloaded(&mut self, at: Time, behind: Span) {
        let policy = self.plan.on_overload;
        let frozen = policy == OnOverload::Freeze && !self.supervisor.is_stopping();
        let event = What::Overloaded { behind_ns: behind.as_nanos(), frozen };
        self.tell_at(at.since(self.origin), None, event);
        if frozen && !self.frost.is_on() {
            self.frost.begin(now());
            self.signal_programs(Signal::STOP, |_, _| true);
        }
        if policy == OnOverload::Abort {
            let why = format!("overloaded: the emulation was {} behind", rounded(behind));
            self.end.ask(Ending::Overloaded(why));
        }
    }

    pub(super) fn caught_up(&mut self, at: Time, lasted: Span) {
        self.thaw();
        let event = What::CaughtUp { lasted_ns: lasted.as_nanos() };
        self.tell_at(at.since(self.origin), None, event);
    }

    /// Lets go on what the freeze paused, but not what an event has paused.
    pub(super) fn thaw(&mut self) {
        if self.frost.end(now()) {
            self.signal_programs(Signal::CONT, |live, node| !live.supervisor.is_paused(node));
        }
    }

    /// A program that was already on its way when the freeze began.
    pub(super) fn freeze_newcomer(&self, key: Option<ProgramKey>) {
        if let Some(key) = key.filter(|_| self.frost.is_on()) {
            self.signal_node(key.node, &[Signal::STOP]);
        }
    }

    fn signal_programs(&self, signal: Signal, chosen: fn(&Live, usize) -> bool) {
        for (node, spec) in self.plan.nodes.iter().enumerate() {
            if !spec.programs.is_empty() && chosen(self, node) {
                self.signal_node(node, &[signal]);
            }
        }
    }
}
