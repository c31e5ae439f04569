//! What is done while the packet loop is behind.

use windtunnel_model::plan::OnOverload;
use windtunnel_model::{Span, Time};
use windtunnel_sys::process::Signal;
use windtunnel_trace::event::What;

use super::Live;
use crate::clock::now;
use crate::ending::Ending;
use crate::output::ProgramKey;
use crate::text::rounded;

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
