//! The stages of a live run, from the first measurement to its end.

use windtunnel_control::part::FromPart;
use windtunnel_model::{NodeId, Span, Time};
use windtunnel_trace::event::EventLogEntryKind;
use windtunnel_verdict::evidence::{BEGIN_LATE, RunEndReason};

use super::farewell::{DaemonGracePeriod, LOOK_EVERY, clients_are_leaving};
use super::membership::{AgentMembership, MembershipStage, RunMemberTable};
use super::reactor::RunReactor;
use super::state::{RunLoop, RunLoopResult};
use crate::observer::ObserverNotice;
use crate::options::Foreground;
use crate::part::news::MemberAnnouncement;
use windtunnel_dataplane::PacketLoopCommand;
use windtunnel_dataplane::now;

impl RunLoop {
    /// Has a program stand for this process.
    pub(crate) fn put_in_foreground(&mut self, foreground: Foreground) {
        self.reactor.programs.put_in_foreground(foreground);
    }

    /// Measures every path that is to be measured before the run, all at once, and waits for the
    /// results.
    pub(crate) fn measure_paths(&mut self) {
        let paths = self.reactor.measurements.start_before_run(&self.reactor.cx);
        if paths == 0 {
            return;
        }
        self.reactor.cx.journal.notice(&ObserverNotice::Measuring { paths });
        while self.reactor.measurements.done() < paths && self.reactor.end.reason().is_none() {
            self.reactor.wait(Some(LOOK_AGAIN));
        }
    }

    /// Waits until something has been received from every other machine, and then until the agent
    /// wants paths measured. False if the run is to end instead.
    pub(crate) fn until_measure(&mut self) -> bool {
        self.until(|membership| membership.reached);
        self.reactor.send_to_agent(&FromPart::Reached);
        self.until(|membership| membership.stage != MembershipStage::Waiting)
    }

    /// Waits for the beginning of the run; `None` if it is to end instead.
    pub(crate) fn until_begin(&mut self) -> Option<Time> {
        self.reactor.send_to_agent(&FromPart::Measured);
        self.until(|membership| matches!(membership.stage, MembershipStage::Begun(_)));
        let MembershipStage::Begun(origin) = self.reactor.membership.as_ref()?.stage else {
            return None;
        };
        self.reactor.send_to_agent(&FromPart::Begun);
        while self.reactor.end.reason().is_none() && now() < origin {
            self.reactor.wait(Some(origin.since(now())));
        }
        self.reactor.end.reason().is_none().then_some(origin)
    }

    fn until(&mut self, wanted: impl Fn(&AgentMembership) -> bool) -> bool {
        while self.reactor.end.reason().is_none()
            && !self.reactor.membership.as_ref().is_none_or(&wanted)
        {
            self.reactor.wait(Some(LOOK_AGAIN));
        }
        self.reactor.end.reason().is_none()
    }

    /// Why the run ends before it has begun.
    pub(crate) fn ending(&self) -> Option<&RunEndReason> {
        self.reactor.end.reason()
    }

    /// Starts the clock of the run, which shows zero at `origin`.
    pub(crate) fn begin(&mut self, origin: Time) {
        self.reactor.cx.journal.begin(origin);
        self.load.begin(now());
        self.began_late = now().since(origin);
        self.reactor.network.order(PacketLoopCommand::Begin(origin));
        self.reactor.records.begin(origin);
        self.reactor.limits.begin(now());
        self.reactor.services.begin();
        self.reactor.network.record(self.reactor.records.packets());
        self.reactor.cx.journal.log(None, EventLogEntryKind::RunBegan);
        // Programs and events of a member that begins late are late.
        if let Some(members) = self.reactor.members().filter(|_| self.began_late > BEGIN_LATE) {
            let (host, late_ns) = (members.own_name(), self.began_late.as_nanos());
            self.reactor.cx.journal.log(None, EventLogEntryKind::BeganLate { host, late_ns });
        }
    }

    /// Captures each place to a file in the run folder, from now on.
    pub(crate) fn capture_to_files(&mut self, places: &[String]) {
        let (captures, source) = self.reactor.captures_of();
        captures.start_files(source, places);
    }

    /// Runs until the run is to end, and says why.
    pub(crate) fn until_end(&mut self) -> RunEndReason {
        loop {
            let elapsed = self.elapsed();
            self.reactor.do_due(elapsed);
            self.tick(elapsed);
            self.load.sample(self.reactor.cx.journal.now());
            if let Some(ending) = self.reason_to_end(elapsed) {
                self.reactor.end.ask(ending.clone());
                return ending;
            }
            self.reactor.wait(self.next_wake(elapsed));
        }
    }

    /// From now on nothing that is late or lost counts.
    pub(crate) fn count_no_more(&mut self) {
        self.reactor.network.order(PacketLoopCommand::End);
        let now = self.reactor.cx.journal.now();
        self.load.end(now);
        let RunReactor { cx, limits, .. } = &mut self.reactor;
        limits.end(now, |node| cx.nodes.inits().pid(NodeId::from_index(node)));
    }

    /// Notifies the other members that the run is over.
    pub(crate) fn announce_end(&self, ending: &RunEndReason) {
        if let Some(membership) = &self.reactor.membership {
            membership.send_to_members(&MemberAnnouncement::End { ending: ending.clone() });
            membership.send_to_agent(&FromPart::Ending);
        }
    }

    /// Ends programs: SIGTERM, some patience; the nodes' end is the end of what is left.
    pub(crate) fn end_programs(&mut self, ending: &RunEndReason) {
        let reason = ending.reason();
        self.reactor.cx.journal.notice(&ObserverNotice::Stopping { reason: &reason });
        self.reactor.cx.journal.log(None, EventLogEntryKind::RunEnded { reason });
        let RunReactor { cx, network, services, .. } = &mut self.reactor;
        services.conclude(network, cx.journal.now());
        self.ask_interference();
        self.reactor.programs.stop(&self.reactor.cx);
        self.end_measurements();
        if *ending == RunEndReason::Finished {
            self.let_daemons_end();
        }
        self.reactor.cx.nodes.terminate_all(&self.reactor.cx.journal);
        let deadline = now() + GRACE;
        while self.reactor.programs.supervisor.any_running() && now() < deadline {
            if self.reactor.end.is_hurried() {
                self.reactor.cx.journal.notice(&ObserverNotice::Hurried);
                return;
            }
            self.reactor.wait(Some(deadline.since(now())));
        }
    }

    /// Reads the counters, lets the nodes vanish and closes all files.
    pub(crate) fn close(mut self) -> RunLoopResult {
        let await_datagrams = self.settle();
        self.into_ended(await_datagrams)
    }

    fn reason_to_end(&self, elapsed: Span) -> Option<RunEndReason> {
        if let Some(ending) = self.reactor.end.reason() {
            return Some(ending.clone());
        }
        let supervisor = &self.reactor.programs.supervisor;
        if let Some(fatal) = supervisor.fatal() {
            return Some(RunEndReason::Fatal(fatal.to_owned()));
        }
        if self.reactor.cx.plan.duration.is_some_and(|duration| elapsed >= duration) {
            return Some(RunEndReason::Duration);
        }
        let others_are_idle = self.reactor.members().is_none_or(RunMemberTable::others_are_idle);
        (others_are_idle && supervisor.finished()).then_some(RunEndReason::Finished)
    }

    fn next_wake(&self, elapsed: Span) -> Option<Span> {
        let program = self.reactor.programs.next_wake(elapsed);
        let measurement = self.reactor.measurements.next(&self.reactor.cx.nodes);
        let origin = self.reactor.cx.journal.origin();
        let limits = self.reactor.limits.next_wake().map(|at| at.since(origin));
        let probe = self.reactor.services.next_wake().map(|at| at.since(origin));
        let duration = self.reactor.cx.plan.duration;
        let times = [program, measurement, limits, probe, duration, Some(elapsed + TICK)];
        let next = times.into_iter().flatten().min()?;
        Some(next.saturating_sub(elapsed))
    }

    fn tick(&mut self, elapsed: Span) {
        if now().since(self.last_tick) >= TICK {
            self.last_tick = now();
            let running = self.reactor.programs.supervisor.workers_running();
            self.reactor.cx.journal.notice(&ObserverNotice::Tick { elapsed, running });
        }
        self.reactor.connections.end_abandoned(&self.reactor.cx.nodes);
    }

    /// No more echo requests, but replies on their way are waited for.
    fn end_measurements(&mut self) {
        self.reactor.measurements.end(&self.reactor.cx);
        let deadline = now() + ECHO_GRACE;
        let is_open = |it: &RunReactor| !it.measurements.open(&it.cx.nodes).is_empty();
        while is_open(&self.reactor) && now() < deadline && !self.reactor.end.is_hurried() {
            self.reactor.wait(Some(deadline.since(now())));
        }
    }

    /// Gives daemons the time to see that their clients have gone.
    fn let_daemons_end(&mut self) {
        let mut farewell = DaemonGracePeriod::new(now());
        while self.reactor.programs.supervisor.any_running() && !self.reactor.end.is_hurried() {
            let leaving = clients_are_leaving(&self.reactor.cx, &self.reactor.programs.supervisor);
            if farewell.is_over(now(), leaving) {
                return;
            }
            self.reactor.wait(Some(LOOK_EVERY));
        }
    }

    /// The last stage of a run over several machines: what is under way between them arrives before
    /// anything is counted, so that what each has sent and the other received can be compared.
    ///
    /// Sends nothing more to other machines, reports to each how much has gone to it, and waits
    /// until they have done the same. Returns what is to come here: datagrams by member.
    fn settle(&mut self) -> Vec<(u16, u64)> {
        if self.reactor.membership.is_none() {
            return Vec::new();
        }
        self.reactor.network.order(PacketLoopCommand::Close);
        let began = now();
        let is_done = |it: &AgentMembership| it.members.is_settled() || it.agent_is_gone();
        while !self.reactor.membership.as_ref().is_none_or(is_done) {
            let patience = if self.reactor.end.is_hurried() { PATIENCE_HURRIED } else { PATIENCE };
            let until = began + patience;
            if now() >= until {
                break;
            }
            self.reactor.wait(Some(until.since(now())));
        }
        self.reactor.members().map(RunMemberTable::sent_here).unwrap_or_default()
    }
}

const TICK: Span = Span::from_millis(250);
/// Only so that an end without an event is noticed.
const LOOK_AGAIN: Span = Span::from_millis(100);
/// How long programs may take to end after SIGTERM.
const GRACE: Span = Span::from_secs(2);
/// A little more than nodes wait for echo replies themselves.
const ECHO_GRACE: Span = Span::from_millis(3500);
/// Longer than other machines give their programs to end.
const PATIENCE: Span = Span::from_secs(5);
/// All have been hurried then.
const PATIENCE_HURRIED: Span = Span::from_millis(500);
