//! The programs of this machine: what the supervisor wants is done, and what nodes report of them
//! reaches it and the log.

mod ahead;
mod checking;
mod checks;
mod churn;
mod overload;
#[cfg(test)]
mod tests;

use std::io;

use windtunnel_control::{NodeStatus, ProgramStatus};
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::{EventAction, NodeInterface, ReadinessCondition};
use windtunnel_model::{NodeId, Plan, ResourceUsage, Span, Time};
use windtunnel_node::{ExitStatus, ListeningEndpoint, NodeInitRequest};
use windtunnel_sys::process::Signal;
use windtunnel_trace::event::EventLogEntryKind;
use windtunnel_verdict::evidence::{ProgramExit, ProgramKey, ProgramLifecycle, SupervisedProgram};

use super::context::RunContext;
use super::foreground::ForegroundProgram;
use super::freeze::FreezeState;
use super::launcher::Launcher;
use super::punctuality::ScheduledOccurrence;
use crate::options::Foreground;
use crate::supervisor::{Supervisor, SupervisorCommand};
use ahead::ProgramEventQueue;
use checking::ReadinessChecker;
pub(super) use checks::CHECK_FIRST;
use checks::ReadinessCheckTable;
use windtunnel_dataplane::owners::ProgramRootProcesses;

/// The programs, and what is still to be done to them.
pub(super) struct ProgramExecution {
    pub(super) supervisor: Supervisor,
    pub(super) launcher: Launcher,
    /// Commands that say whether programs are ready.
    pub(super) checks: ReadinessCheckTable,
    events: ProgramEventQueue,
    freeze: FreezeState,
    /// Limits that events have set and that are yet to hold.
    new_limits: Vec<ScheduledLimitChange>,
    /// Where the processes of programs are noted.
    roots: ProgramRootProcesses,
}

/// Limits that an event sets.
#[derive(Debug)]
pub(super) struct ScheduledLimitChange {
    pub(super) intended: Span,
    pub(super) nodes: Vec<NodeId>,
    pub(super) limits: Demand,
}

impl ProgramExecution {
    /// The file's events about programs are on the agenda.
    pub(super) fn new(plan: &Plan, supervisor: Supervisor, launcher: Launcher) -> Self {
        let mut programs = ProgramExecution {
            supervisor,
            launcher,
            checks: ReadinessCheckTable::default(),
            events: ProgramEventQueue::default(),
            freeze: FreezeState::default(),
            new_limits: Vec::new(),
            roots: ProgramRootProcesses::default(),
        };
        for event in plan.events.iter().filter(|event| event.action.is_about_programs()) {
            programs.add_event(event.at, event.action.clone());
        }
        programs
    }

    /// What events have set since the last call, in their order.
    pub(super) fn take_new_limits(&mut self) -> Vec<ScheduledLimitChange> {
        std::mem::take(&mut self.new_limits)
    }

    /// Has a program stand for this process.
    pub(super) fn put_in_foreground(&mut self, foreground: Foreground) {
        self.launcher.put_in_foreground(ForegroundProgram::new(foreground));
    }

    /// Does what is due.
    pub(super) fn tick(&mut self, cx: &RunContext, elapsed: Span) {
        self.do_events(cx, elapsed);
        self.supervisor.tick(elapsed);
        self.do_commands(cx);
        self.checker(cx).tick(elapsed);
        self.events.look_ahead(cx, elapsed);
    }

    /// When the next event or start is due. A program that could start already waits for news, not
    /// for time.
    pub(super) fn next_wake(&self, elapsed: Span) -> Option<Span> {
        let (event, program) = (self.events.next_wake(elapsed), self.supervisor.next_wake(elapsed));
        [event, program, self.checks.next()].into_iter().flatten().min()
    }

    /// What events are about to do to programs.
    pub(super) fn due(&self, elapsed: Span) -> Vec<EventAction> {
        self.events.agenda.all_due(elapsed).cloned().collect()
    }

    fn do_commands(&mut self, cx: &RunContext) {
        while let Some(command) = self.supervisor.poll_command() {
            match command {
                SupervisorCommand::Spawn { key, spawn } => {
                    if let Err(message) = self.launch(cx, key, spawn) {
                        self.spawn_failed(cx, spawn, message);
                    }
                }
                SupervisorCommand::Watch { key, what } => self.watch(cx, key, what),
                SupervisorCommand::Awaited { key } => self.log_awaited(cx, key),
            }
        }
    }

    /// Notes the processes of programs there.
    pub(super) fn noted(mut self, roots: ProgramRootProcesses) -> Self {
        self.roots = roots;
        self
    }

    fn launch(&mut self, cx: &RunContext, key: ProgramKey, spawn: u64) -> Result<(), String> {
        let program = self.supervisor.program(key).ok_or("no such program")?;
        self.launcher.launch(cx, key, spawn, &program.spec)
    }

    fn watch(&mut self, cx: &RunContext, key: ProgramKey, what: ReadinessCondition) {
        let what = match what {
            ReadinessCondition::Tcp(port) => ListeningEndpoint::Tcp(port),
            ReadinessCondition::Listen => ListeningEndpoint::Any,
            ReadinessCondition::Unix(path) => ListeningEndpoint::Unix(path),
            ReadinessCondition::Command(check) => {
                return self.checks.add(key, check, cx.journal.elapsed());
            }
            ReadinessCondition::Log(_)
            | ReadinessCondition::Exit
            | ReadinessCondition::OfImage(_) => return,
        };
        let request = NodeInitRequest::Watch { token: token_of(key), what };
        if let Err(error) = cx.nodes.send(key.node, &request, &[]) {
            let program = self.supervisor.describe(key);
            cx.journal.warn(format!("cannot watch {program}: {error}"));
        }
    }

    /// A node has started a program.
    pub(super) fn spawned(&mut self, cx: &RunContext, spawn: u64, pid: u32, at: Time) {
        let pid = i32::try_from(pid).unwrap_or(0);
        let ready = self.supervisor.on_spawned(spawn, pid, cx.journal.elapsed());
        if let Some(key) = self.supervisor.key_of(spawn) {
            self.roots.insert(key.node, pid, key.program);
            self.freeze_newcomer(cx, key);
            let argv = self.supervisor.program(key).map(|program| program.spec.argv.clone());
            let (node, program) = (cx.node_of(key), key.program);
            let argv = argv.unwrap_or_default();
            let at = cx.journal.happened_at(at);
            let planned = self.supervisor.planned_start(key);
            if let Some((intended, of)) = planned {
                let name = self.supervisor.describe(key);
                cx.happened(ScheduledOccurrence::start(&name, of), intended, at);
            }
            let intended = planned.map(|(intended, _)| intended);
            cx.journal.log_at(
                at,
                intended,
                EventLogEntryKind::ProgramStarted { node, program, argv },
            );
        }
        if let Some(key) = ready.filter(|key| self.names_a_condition(*key)) {
            log_ready(cx, key);
        }
        self.do_commands(cx);
    }

    /// A program could not be started.
    pub(super) fn spawn_failed(&mut self, cx: &RunContext, spawn: u64, reason: String) {
        if let Some(key) = self.supervisor.on_spawn_failed(spawn, &reason) {
            let (node, program) = (cx.node_of(key), key.program);
            cx.journal
                .log(None, EventLogEntryKind::ProgramFailed { node, program, message: reason });
        }
    }

    /// A program has exited.
    pub(super) fn exited(&mut self, cx: &RunContext, spawn: u64, status: ExitStatus) {
        let (code, signal) = code_and_signal(status);
        let exit = ProgramExit { code, signal };
        let Some((key, ready)) = self.supervisor.on_exited(spawn, exit, cx.journal.elapsed())
        else {
            return;
        };
        let (node, program) = (cx.node_of(key), key.program);
        cx.journal.log(None, EventLogEntryKind::ProgramExited { node, program, code, signal });
        if ready {
            log_ready(cx, key);
        }
        let checked = self.checks.remove(key);
        self.checker(cx).do_steps(checked);
    }

    /// What finds out whether programs are ready.
    pub(super) fn checker<'a>(&'a mut self, cx: &'a RunContext) -> ReadinessChecker<'a> {
        ReadinessChecker {
            cx,
            supervisor: &mut self.supervisor,
            launcher: &mut self.launcher,
            checks: &mut self.checks,
        }
    }

    /// A node's init has ended, and with it everything in the node: the kernel sees to that.
    pub(super) fn node_died(&mut self, cx: &RunContext, node: usize) {
        self.checks.forget(node);
        for key in self.supervisor.on_node_died(node, cx.journal.elapsed()) {
            let (node, program) = (cx.node_of(key), key.program);
            let what =
                EventLogEntryKind::ProgramExited { node, program, code: 137, signal: Some(9) };
            cx.journal.log(None, what);
        }
    }

    /// Passes a signal on to the program in the foreground. False if none runs, or the run is
    /// ending: then the signal is for the run.
    pub(super) fn pass_on(&self, cx: &RunContext, signal: i32) -> bool {
        let Some((key, spawn)) = self.launcher.foreground() else { return false };
        let runs = self.supervisor.program(key).is_some_and(|program| program.life.is_running());
        runs && !self.supervisor.is_stopping()
            && cx.nodes.signal_one(key.node, spawn, signal).is_ok()
    }

    /// The run ends: nothing is started or judged from now on, and nothing stays paused.
    pub(super) fn stop(&mut self, cx: &RunContext) {
        self.supervisor.stop();
        self.thaw(cx);
        let checked = self.checks.clear();
        self.checker(cx).do_steps(checked);
    }

    /// The state of every program.
    pub(super) fn statuses(&self, cx: &RunContext) -> Vec<NodeStatus> {
        let nodes = cx.plan.nodes.iter().enumerate();
        let pid = |index| cx.nodes.inits().pid(NodeId::from_index(index));
        let of = |index| self.supervisor.programs().filter(move |(key, _)| key.node == index);
        nodes
            .map(|(index, spec)| NodeStatus {
                node: spec.name.clone(),
                addresses: spec
                    .interfaces
                    .iter()
                    .flat_map(NodeInterface::addresses)
                    .map(|address| address.to_string())
                    .collect(),
                init_pid: pid(index).and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0),
                absent: of(index).any(|(_, program)| program.absent),
                limits: ResourceUsage::default(),
                programs: of(index).map(|(_, program)| program_status(program)).collect(),
            })
            .collect()
    }

    fn log_awaited(&self, cx: &RunContext, key: ProgramKey) {
        let Some(program) = self.supervisor.program(key) else { return };
        let condition = program.spec.ready.as_ref().map(ToString::to_string).unwrap_or_default();
        let (node, program) = (cx.node_of(key), key.program);
        cx.journal.log(None, EventLogEntryKind::ProgramAwaited { node, program, condition });
    }

    /// Readiness is news only where the file asks for it.
    fn names_a_condition(&self, key: ProgramKey) -> bool {
        self.supervisor.program(key).is_some_and(|program| program.spec.ready.is_some())
    }

    /// Sends a signal to the programs of all nodes for which `chosen` holds.
    fn signal_all(&self, cx: &RunContext, signal: Signal, chosen: impl Fn(usize) -> bool) {
        for (node, spec) in cx.plan.nodes.iter().enumerate() {
            if !spec.programs.is_empty() && chosen(node) {
                cx.nodes.signal(node, &[signal], &cx.journal);
            }
        }
    }
}

fn log_ready(cx: &RunContext, key: ProgramKey) {
    let (node, program) = (cx.node_of(key), key.program);
    cx.journal.log(None, EventLogEntryKind::ProgramReady { node, program });
}

fn program_status(program: &SupervisedProgram) -> ProgramStatus {
    let pid = match program.life {
        ProgramLifecycle::Running { pid, .. } => Some(pid),
        _ => None,
    };
    ProgramStatus {
        argv: program.spec.argv.clone(),
        state: program.state().into(),
        pid,
        exit: program.last_exit.map(|exit| exit.code),
    }
}

/// An exit as shells number it, and the signal that caused it.
pub(super) fn code_and_signal(status: ExitStatus) -> (u8, Option<i32>) {
    let code = u8::try_from(status.shell_code() & 0xff).unwrap_or(u8::MAX);
    match status {
        ExitStatus::Signal(signal) => (code, Some(signal)),
        ExitStatus::Code(_) => (code, None),
    }
}

/// Why a start failed, the kernel's reason included.
pub(super) fn reason(message: &str, errno: i32) -> String {
    match errno {
        0 => message.to_owned(),
        errno => format!("{message}: {}", io::Error::from_raw_os_error(errno)),
    }
}

fn token_of(key: ProgramKey) -> u64 {
    (key.node as u64) << 32 | key.program as u64
}

/// The program that a watch was for.
pub(super) fn key_of(token: u64) -> ProgramKey {
    let part = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    ProgramKey { node: part(token >> 32), program: part(token & 0xffff_ffff) }
}
