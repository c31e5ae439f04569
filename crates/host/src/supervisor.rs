//! Which program starts when, and what its end means: a state machine fed with what happened and
//! the time.
//!
//! It owns no process. The run loop reports events to it (`on_*`), asks when it wants to be called
//! again ([`Supervisor::next_wake`]) and does what [`Supervisor::poll_command`] says.

mod nodes;
mod starting;

use std::collections::{BTreeMap, VecDeque};

use windtunnel_model::plan::ReadinessCondition;
use windtunnel_model::{Plan, Span};
use windtunnel_verdict::evidence::{ProgramExit, ProgramKey, SupervisedProgram, programs_of};

/// What the run loop must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SupervisorCommand {
    /// Start the program; report with the same `spawn` number.
    Spawn {
        key: ProgramKey,
        /// Number of this start, unique in the run.
        spawn: u64,
    },
    /// Notify observers that the run waits for this program to be ready.
    Awaited { key: ProgramKey },
    /// Report when this holds in the program's node ([`ReadinessCondition::Tcp`], [`ReadinessCondition::Listen`],
    /// [`ReadinessCondition::Unix`] or [`ReadinessCondition::Command`]).
    Watch {
        key: ProgramKey,
        /// What to watch for.
        what: ReadinessCondition,
    },
}

/// All programs of a run.
#[derive(Debug)]
pub(crate) struct Supervisor {
    programs: BTreeMap<ProgramKey, SupervisedProgram>,
    /// Each program in words.
    names: BTreeMap<ProgramKey, String>,
    commands: VecDeque<SupervisorCommand>,
    spawns: BTreeMap<u64, ProgramKey>,
    next_spawn: u64,
    fatal: Option<String>,
    stopping: bool,
    /// How often each node is still to join.
    joins_to_come: BTreeMap<usize, u32>,
    /// By node: whether it is on this machine. Programs elsewhere are only known from news.
    here: Vec<bool>,
}

impl Supervisor {
    /// Nothing has started yet; the first [`Supervisor::tick`] starts what may start.
    #[must_use]
    pub(crate) fn new(plan: &Plan) -> Self {
        Self::of_part(plan, vec![true; plan.nodes.len()])
    }

    /// The same for the nodes that are `here`.
    #[must_use]
    pub(crate) fn of_part(plan: &Plan, here: Vec<bool>) -> Self {
        Supervisor {
            programs: programs_of(plan),
            names: names(plan),
            commands: VecDeque::new(),
            spawns: BTreeMap::new(),
            next_spawn: 1,
            fatal: None,
            stopping: false,
            joins_to_come: BTreeMap::new(),
            here,
        }
    }

    /// Whether a program is on this machine.
    pub(crate) fn is_here(&self, key: ProgramKey) -> bool {
        self.here.get(key.node).copied().unwrap_or(false)
    }

    /// Where a program on another machine is in its life.
    pub(crate) fn on_news(&mut self, key: ProgramKey, state: SupervisedProgram) {
        if !self.is_here(key)
            && let Some(program) = self.programs.get_mut(&key)
        {
            program.follow(state);
        }
    }

    /// These nodes were on a machine that is lost. A program that waits for one of theirs
    /// waits in vain.
    pub(crate) fn on_lost(&mut self, nodes: &[usize], host: &str) {
        let keys = self.programs.keys().filter(|key| nodes.contains(&key.node));
        for key in keys.copied().collect::<Vec<_>>() {
            if let Some(program) = self.programs.get_mut(&key) {
                program.lose();
            }
            let waits = |other: &SupervisedProgram| {
                other.starts == 0 && other.spec.after.iter().any(|node| node.index() == key.node)
            };
            let ready = self.programs.get(&key).is_some_and(|program| program.ready);
            if !ready && self.programs.iter().any(|(k, p)| self.is_here(*k) && waits(p)) {
                let text = format!(
                    "{} was lost with host {host} before it was ready, and others wait for it",
                    self.describe(key)
                );
                self.fatal.get_or_insert(text);
            }
        }
    }

    /// Starts what may start `now` (after the run began) and fails what waited too long.
    pub(crate) fn tick(&mut self, now: Span) {
        if self.stopping {
            return;
        }
        let keys = self.programs.keys().filter(|key| self.is_here(**key));
        let keys: Vec<ProgramKey> = keys.copied().collect();
        for key in keys {
            self.start_if_due(key, now);
            self.report_if_awaited(key, now);
            self.fail_if_never_ready(key, now);
        }
    }

    /// When [`Supervisor::tick`] wants to be called next, if nothing else happens before.
    #[must_use]
    pub(crate) fn next_wake(&self, now: Span) -> Option<Span> {
        let here = self.programs.iter().filter(|(key, _)| self.is_here(**key));
        let wakes = here.filter_map(|(_, program)| program.next_wake());
        // A program that could have started already waits for others, whose news will call for a
        // tick.
        wakes.filter(|wake| *wake > now).min()
    }

    /// The next thing to do.
    pub(crate) fn poll_command(&mut self) -> Option<SupervisorCommand> {
        self.commands.pop_front()
    }

    /// A start has succeeded. Returns the program if it is now ready.
    pub(crate) fn on_spawned(&mut self, spawn: u64, pid: i32, now: Span) -> Option<ProgramKey> {
        let key = *self.spawns.get(&spawn)?;
        let program = self.programs.get_mut(&key)?;
        program.begin(pid, now);
        match program.spec.ready.clone() {
            None => self.on_ready(key, now),
            Some(
                what @ (ReadinessCondition::Tcp(_)
                | ReadinessCondition::Listen
                | ReadinessCondition::Unix(_)),
            ) => {
                self.commands.push_back(SupervisorCommand::Watch { key, what });
                None
            }
            Some(what @ ReadinessCondition::Command(_)) => {
                // One that was ready before it was started again stays so.
                if !program.ready {
                    self.commands.push_back(SupervisorCommand::Watch { key, what });
                }
                None
            }
            Some(
                ReadinessCondition::Log(_)
                | ReadinessCondition::Exit
                | ReadinessCondition::OfImage(_),
            ) => None,
        }
    }

    /// A check of a program has failed, and will not be made again if it was the `last`: the program
    /// is not ready then.
    pub(crate) fn on_check_failed(&mut self, key: ProgramKey, failure: &str, last: Option<u32>) {
        let name = self.describe(key);
        let Some(program) = self.programs.get_mut(&key) else { return };
        program.check_failure = Some(failure.to_owned());
        if let Some(fall) = last {
            let failed = match fall {
                1 => "a check failed".to_owned(),
                _ => format!("{fall} checks failed one after the other"),
            };
            let text = format!("{name} is not ready: {failed}: {failure}");
            self.fatal.get_or_insert(text);
        }
    }

    /// A start has failed: the experiment cannot be what the file says, so the run ends.
    pub(crate) fn on_spawn_failed(&mut self, spawn: u64, message: &str) -> Option<ProgramKey> {
        let key = self.spawns.remove(&spawn)?;
        let text = format!("{}: {message}", self.describe(key));
        self.programs.get_mut(&key)?.fail(message.to_owned());
        self.fatal.get_or_insert(text);
        Some(key)
    }

    /// A program is ready. Returns it if that is news.
    pub(crate) fn on_ready(&mut self, key: ProgramKey, now: Span) -> Option<ProgramKey> {
        self.programs.get_mut(&key)?.note_ready(now).then_some(key)
    }

    /// A program has exited. Returns it, and whether that made it ready.
    pub(crate) fn on_exited(
        &mut self,
        spawn: u64,
        exit: ProgramExit,
        now: Span,
    ) -> Option<(ProgramKey, bool)> {
        let key = self.spawns.remove(&spawn)?;
        let stopping = self.stopping;
        let program = self.programs.get_mut(&key)?;
        program.exit(exit, now, stopping);
        let ready = exit.code == 0 && program.spec.ready == Some(ReadinessCondition::Exit);
        let became_ready = ready && self.on_ready(key, now).is_some();
        self.fail_those_that_waited_for(key);
        Some((key, became_ready))
    }

    /// Whether the run is ending.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// The run is ending: nothing is started or judged from now on.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
        self.programs.values_mut().for_each(SupervisedProgram::end_with_run);
    }

    /// Whether every program that is not a daemon has had its life. False if there is none: such a
    /// run ends by its duration or by command.
    #[must_use]
    pub(crate) fn finished(&self) -> bool {
        self.programs.values().any(|program| !program.spec.daemon) && self.idle()
    }

    /// Whether every program of this machine that is not a daemon has had its life, or there is
    /// none.
    #[must_use]
    pub(crate) fn idle(&self) -> bool {
        let comes = |node| self.joins_to_come.get(&node).is_some_and(|joins| *joins > 0);
        let here = self.programs.iter().filter(|(key, _)| self.is_here(**key));
        let mut workers = here.filter(|(_, program)| !program.spec.daemon);
        workers.all(|(key, program)| program.is_over() && !comes(key.node))
    }

    /// The program of a start that is alive.
    #[must_use]
    pub(crate) fn key_of(&self, spawn: u64) -> Option<ProgramKey> {
        self.spawns.get(&spawn).copied()
    }

    /// Why the run cannot go on, if so.
    #[must_use]
    pub(crate) fn fatal(&self) -> Option<&str> {
        self.fatal.as_deref()
    }

    /// Whether some program of this machine is running now.
    #[must_use]
    pub(crate) fn any_running(&self) -> bool {
        self.running().next().is_some()
    }

    /// Programs of this machine running now, without daemons.
    #[must_use]
    pub(crate) fn workers_running(&self) -> usize {
        self.running().filter(|program| !program.spec.daemon).count()
    }

    fn running(&self) -> impl Iterator<Item = &SupervisedProgram> {
        let here = self.programs.iter().filter(|(key, _)| self.is_here(**key));
        here.map(|(_, program)| program).filter(|program| program.life.is_running())
    }

    /// What became of the programs of this machine.
    pub(crate) fn into_own(self) -> BTreeMap<ProgramKey, SupervisedProgram> {
        let Supervisor { mut programs, here, .. } = self;
        programs.retain(|key, _| here.get(key.node).copied().unwrap_or(false));
        programs
    }

    /// Every program with its state.
    pub(crate) fn programs(&self) -> impl Iterator<Item = (ProgramKey, &SupervisedProgram)> {
        self.programs.iter().map(|(key, program)| (*key, program))
    }

    /// One program.
    #[must_use]
    pub(crate) fn program(&self, key: ProgramKey) -> Option<&SupervisedProgram> {
        self.programs.get(&key)
    }

    /// The program in words, as [`ProgramKey::describe`] has it.
    #[must_use]
    pub(crate) fn describe(&self, key: ProgramKey) -> String {
        self.names.get(&key).cloned().unwrap_or_default()
    }
}

fn names(plan: &Plan) -> BTreeMap<ProgramKey, String> {
    programs_of(plan).into_keys().map(|key| (key, key.describe(plan))).collect()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::example;
