//! What is done to programs while the packet loop is behind.

use windtunnel_model::plan::OnOverload;
use windtunnel_model::{Span, Time};
use windtunnel_sys::process::Signal;
use windtunnel_trace::event::EventLogEntryKind;
use windtunnel_verdict::evidence::{FreezeTotals, ProgramKey, RunEndReason};
use windtunnel_verdict::rounded;

use super::super::context::RunContext;
use super::ProgramExecution;

impl ProgramExecution {
    /// The packet loop fell behind. Returns why the run is to end, where the file wants that. Once
    /// the run is ending, programs must not be paused: they are asked to end.
    pub(in crate::live) fn overloaded(
        &mut self,
        cx: &RunContext,
        at: Time,
        behind: Span,
    ) -> Option<RunEndReason> {
        let policy = cx.plan.on_overload;
        let frozen = policy == OnOverload::Freeze && !self.supervisor.is_stopping();
        let what = EventLogEntryKind::Overloaded { behind_ns: behind.as_nanos(), frozen };
        cx.journal.log_at(at.since(cx.journal.origin()), None, what);
        if frozen && !self.freeze.is_on() {
            self.freeze.begin(cx.journal.now());
            self.checks.freeze(true, cx.journal.elapsed());
            self.signal_all(cx, Signal::STOP, |_| true);
        }
        let why = || format!("overloaded: the emulation was {} behind", rounded(behind));
        (policy == OnOverload::Abort).then(|| RunEndReason::Overloaded(why()))
    }

    /// The packet loop has caught up.
    pub(in crate::live) fn caught_up(&mut self, cx: &RunContext, at: Time, lasted: Span) {
        self.thaw(cx);
        let what = EventLogEntryKind::CaughtUp { lasted_ns: lasted.as_nanos() };
        cx.journal.log_at(at.since(cx.journal.origin()), None, what);
    }

    /// Whether all programs are paused now.
    pub(in crate::live) fn is_frozen(&self) -> bool {
        self.freeze.is_on()
    }

    /// How programs were paused.
    pub(in crate::live) fn freezes(&self) -> FreezeTotals {
        self.freeze.total()
    }

    /// Lets go on what the freeze paused, but not what an event has paused.
    pub(super) fn thaw(&mut self, cx: &RunContext) {
        if self.freeze.end(cx.journal.now()) {
            self.checks.freeze(false, cx.journal.elapsed());
            self.signal_all(cx, Signal::CONT, |node| !self.supervisor.is_paused(node));
        }
    }

    /// A program that was already on its way when the freeze began.
    pub(super) fn freeze_newcomer(&self, cx: &RunContext, key: ProgramKey) {
        if self.freeze.is_on() {
            cx.nodes.signal(key.node, &[Signal::STOP], &cx.journal);
        }
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_model::NodeId;
    use windtunnel_model::plan::{EventAction, NodeVerb};

    use super::*;
    use crate::live::testing::{context, plan, programs, set_clock};

    fn file(policy: &str) -> String {
        format!(
            "on-overload: {policy}\nnodes: {{a: {{run: x}}, b: {{run: x}}, c: {{}}}}\n\
             links: [{{between: [a, b]}}, {{between: [b, c]}}]"
        )
    }

    const BEHIND: Span = Span::from_millis(30);
    const STOP: i32 = 19;
    const CONT: i32 = 18;

    #[test]
    fn a_freeze_pauses_all_programs_once_and_lets_them_go_on_when_the_loop_has_caught_up() {
        let (context, sent, _) = context(plan(&file("freeze")), None);
        let mut programs = programs(&context);
        let at = Time::from_nanos;
        set_clock(at(1_000));
        assert_eq!(programs.overloaded(&context, at(900), BEHIND), None);
        assert_eq!(programs.overloaded(&context, at(950), BEHIND), None);
        assert_eq!(sent.signals(), [(0, STOP), (1, STOP)], "a node without programs is left alone");
        set_clock(at(5_000));
        programs.caught_up(&context, at(4_900), Span::from_nanos(4_000));
        assert_eq!(sent.signals()[2..], [(0, CONT), (1, CONT)]);
        let lasted = Span::from_nanos(4_000);
        assert_eq!(programs.freezes(), FreezeTotals { times: 1, lasted });
    }

    #[test]
    fn a_program_paused_by_an_event_stays_paused_when_the_freeze_ends() {
        let (context, sent, _) = context(plan(&file("freeze")), None);
        let mut programs = programs(&context);
        programs.tick(&context, Span::ZERO);
        programs.spawned(&context, 1, 7, Time::ZERO);
        programs.overloaded(&context, context.journal.now(), BEHIND);
        let on_a = |verb| EventAction::Node { nodes: vec![NodeId(0)], verb };
        programs.do_now(&context, &on_a(NodeVerb::Pause), Span::ZERO);
        programs.caught_up(&context, context.journal.now(), BEHIND);
        assert_eq!(sent.signals()[2..], [(0, STOP), (1, CONT)]);
    }

    #[test]
    fn a_program_resumed_in_a_freeze_continues_with_all_others() {
        let (context, sent, _) = context(plan(&file("freeze")), None);
        let mut programs = programs(&context);
        programs.tick(&context, Span::ZERO);
        programs.spawned(&context, 1, 7, Time::ZERO);
        let on_a = |verb| EventAction::Node { nodes: vec![NodeId(0)], verb };
        programs.do_now(&context, &on_a(NodeVerb::Pause), Span::ZERO);
        programs.overloaded(&context, context.journal.now(), BEHIND);
        programs.do_now(&context, &on_a(NodeVerb::Resume), Span::ZERO);
        let before = sent.signals().len();
        programs.caught_up(&context, context.journal.now(), BEHIND);
        assert_eq!(sent.signals()[before..], [(0, CONT), (1, CONT)]);
    }

    #[test]
    fn a_program_that_starts_in_a_freeze_is_paused() {
        let (context, sent, _) = context(plan(&file("freeze")), None);
        let mut programs = programs(&context);
        programs.tick(&context, Span::ZERO);
        programs.overloaded(&context, context.journal.now(), BEHIND);
        let before = sent.signals().len();
        programs.spawned(&context, 2, 8, Time::ZERO);
        assert_eq!(sent.signals()[before..], [(1, STOP)]);
    }

    #[test]
    fn a_run_that_ends_freezes_nothing() {
        let (context, sent, log) = context(plan(&file("freeze")), None);
        let mut programs = programs(&context);
        programs.stop(&context);
        programs.overloaded(&context, context.journal.now(), BEHIND);
        assert!(sent.signals().is_empty());
        let behind_ns = BEHIND.as_nanos();
        assert_eq!(log.whats(), [EventLogEntryKind::Overloaded { behind_ns, frozen: false }]);
        assert_eq!(programs.freezes(), FreezeTotals::default());
    }

    #[test]
    fn a_file_that_wants_it_ends_the_run_with_how_far_it_was_behind() {
        let (context, sent, _) = context(plan(&file("abort")), None);
        let ending = programs(&context).overloaded(&context, context.journal.now(), BEHIND);
        let why = "overloaded: the emulation was 30.0ms behind".to_owned();
        assert_eq!(ending, Some(RunEndReason::Overloaded(why)));
        assert!(sent.signals().is_empty());
    }
}
