//! Which program starts when, and what its end means: a state machine fed with what happened and
//! the time.
//!
//! It owns no process. The run loop reports events to it (`on_*`), asks when it wants to be called
//! again ([`Supervisor::next_wake`]) and does what [`Supervisor::poll_command`] says.

mod program;

use std::collections::{BTreeMap, VecDeque};

use windtunnel_model::plan::{NodeVerb, Ready};
use windtunnel_model::{NodeId, Plan, Span};

use crate::output::ProgramKey;
pub(crate) use program::{Exit, Life, Supervised};

/// What the run loop must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// Start the program; report with the same `spawn` number.
    Spawn {
        key: ProgramKey,
        /// Number of this start, unique in the run.
        spawn: u64,
    },
    /// Notify observers that the run waits for this program to be ready.
    Awaited { key: ProgramKey },
    /// Report when this holds in the program's node ([`Ready::Tcp`], [`Ready::Listen`] or
    /// [`Ready::Unix`]).
    Watch {
        key: ProgramKey,
        /// What to watch for.
        what: Ready,
    },
}

/// All programs of a run.
#[derive(Debug)]
pub(crate) struct Supervisor {
    programs: BTreeMap<ProgramKey, Supervised>,
    names: Vec<String>,
    commands: VecDeque<Command>,
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
        let nodes = plan.nodes.iter().enumerate();
        let programs = nodes.flat_map(|(node, spec)| {
            let numbered = spec.programs.iter().enumerate();
            numbered.map(move |(program, spec)| {
                (ProgramKey { node, program }, Supervised::new(spec.clone()))
            })
        });
        Supervisor {
            programs: programs.collect(),
            names: plan.nodes.iter().map(|node| node.name.clone()).collect(),
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
    pub(crate) fn on_news(&mut self, key: ProgramKey, mut state: Supervised) {
        if !self.is_here(key)
            && let Some(program) = self.programs.get_mut(&key)
        {
            // What the program is, the plan says.
            state.spec.clone_from(&program.spec);
            *program = state;
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
            let waits = |other: &Supervised| {
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

    /// Nodes will join later: the run does not end before they have.
    pub(crate) fn expect_joins(&mut self, nodes: &[NodeId]) {
        for node in nodes {
            *self.joins_to_come.entry(node.index()).or_default() += 1;
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
    pub(crate) fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// A start has succeeded. Returns the program if it is now ready.
    pub(crate) fn on_spawned(&mut self, spawn: u64, pid: i32, now: Span) -> Option<ProgramKey> {
        let key = *self.spawns.get(&spawn)?;
        let program = self.programs.get_mut(&key)?;
        program.life = Life::Running { pid, since: now };
        program.awaited = false;
        program.started_at = Some(now);
        match program.spec.ready.clone() {
            None => self.on_ready(key, now),
            Some(what @ (Ready::Tcp(_) | Ready::Listen | Ready::Unix(_))) => {
                self.commands.push_back(Command::Watch { key, what });
                None
            }
            Some(Ready::Log(_) | Ready::Exit) => None,
        }
    }

    /// A start has failed: the experiment cannot be what the file says, so the run ends.
    pub(crate) fn on_spawn_failed(&mut self, spawn: u64, message: &str) -> Option<ProgramKey> {
        let key = self.spawns.remove(&spawn)?;
        let text = format!("{}: {message}", self.describe(key));
        self.programs.get_mut(&key)?.life = Life::Failed { message: message.to_owned() };
        self.fatal.get_or_insert(text);
        Some(key)
    }

    /// A program is ready. Returns it if that is news.
    pub(crate) fn on_ready(&mut self, key: ProgramKey, now: Span) -> Option<ProgramKey> {
        let program = self.programs.get_mut(&key)?;
        program.ready_at.get_or_insert(now);
        (!std::mem::replace(&mut program.ready, true)).then_some(key)
    }

    /// A program has exited. Returns it, and whether that made it ready.
    pub(crate) fn on_exited(
        &mut self,
        spawn: u64,
        exit: Exit,
        now: Span,
    ) -> Option<(ProgramKey, bool)> {
        let key = self.spawns.remove(&spawn)?;
        let stopping = self.stopping;
        let program = self.programs.get_mut(&key)?;
        program.paused = false;
        program.last_exit = Some(exit);
        program.exited_at = Some(now);
        let ready = exit.code == 0 && program.spec.ready == Some(Ready::Exit);
        program.life = match program.restart_delay(exit) {
            Some(delay) if !stopping => Life::Waiting { not_before: now + delay },
            _ => Life::Exited { exit },
        };
        let became_ready = ready && self.on_ready(key, now).is_some();
        self.fail_those_that_waited_for(key);
        Some((key, became_ready))
    }

    /// A node has died and everything in it with it, by SIGKILL. Returns the programs that it ran;
    /// they are not started again.
    pub(crate) fn on_node_died(&mut self, node: usize, now: Span) -> Vec<ProgramKey> {
        self.spawns.retain(|_, key| key.node != node);
        let exit = Exit { code: 137, signal: Some(9) };
        let programs = self.programs.iter_mut().filter(|(key, _)| key.node == node);
        let running = programs.filter(|(_, program)| program.life.is_running());
        let ended = running.map(|(key, program)| {
            program.last_exit = Some(exit);
            program.exited_at = Some(now);
            program.life = Life::Exited { exit };
            *key
        });
        ended.collect()
    }

    /// An event does something to a node. The signals themselves are sent by the run loop.
    pub(crate) fn on_verb(&mut self, node: NodeId, verb: NodeVerb, now: Span) {
        let programs = self.programs.iter_mut().filter(|(key, _)| key.node == node.index());
        for (_, program) in programs {
            program.on_verb(verb, now);
        }
    }

    /// Whether an event has paused a program of this node.
    pub(crate) fn is_paused(&self, node: usize) -> bool {
        self.programs.iter().any(|(key, program)| key.node == node && program.paused)
    }

    /// Whether the run is ending.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// A node leaves, or is absent from the beginning. The signals themselves are sent by the run
    /// loop.
    pub(crate) fn on_leave(&mut self, node: NodeId, now: Span) {
        let programs = self.programs.iter_mut().filter(|(key, _)| key.node == node.index());
        programs.for_each(|(_, program)| program.leave(now));
    }

    /// Whether a node is outside the population that churn makes.
    #[must_use]
    pub(crate) fn is_absent(&self, node: NodeId) -> bool {
        let mut programs = self.programs.iter();
        programs.any(|(key, program)| key.node == node.index() && program.absent)
    }

    /// A node joins: the next [`Supervisor::tick`] starts what may start.
    pub(crate) fn on_join(&mut self, node: NodeId, now: Span) {
        if let Some(left) = self.joins_to_come.get_mut(&node.index()) {
            *left = left.saturating_sub(1);
        }
        let programs = self.programs.iter_mut().filter(|(key, _)| key.node == node.index());
        programs.for_each(|(_, program)| program.join(now));
    }

    /// The run is ending: nothing is started or judged from now on.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
        for program in self.programs.values_mut() {
            program.ended_by_run |= matches!(program.life, Life::Running { .. } | Life::Starting);
        }
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

    fn running(&self) -> impl Iterator<Item = &Supervised> {
        let here = self.programs.iter().filter(|(key, _)| self.is_here(**key));
        here.map(|(_, program)| program).filter(|program| program.life.is_running())
    }

    /// Every program with its state.
    pub(crate) fn programs(&self) -> impl Iterator<Item = (ProgramKey, &Supervised)> {
        self.programs.iter().map(|(key, program)| (*key, program))
    }

    /// One program.
    #[must_use]
    pub(crate) fn program(&self, key: ProgramKey) -> Option<&Supervised> {
        self.programs.get(&key)
    }

    /// A program by itself, for tests of what is said of it.
    #[cfg(test)]
    pub(crate) fn single(spec: windtunnel_model::plan::Program) -> Supervised {
        Supervised::new(spec)
    }

    /// The program in words: `web`, or `web (program 2: redis-server)` where a node has several.
    #[must_use]
    pub(crate) fn describe(&self, key: ProgramKey) -> String {
        let node = &self.names[key.node];
        let command = self.programs.get(&key).and_then(|program| program.spec.argv.first());
        let several = self.programs.contains_key(&ProgramKey { program: 1, ..key });
        match command {
            Some(command) if several => format!("{node} (program {}: {command})", key.program + 1),
            Some(command) => format!("{node} ({command})"),
            None => node.clone(),
        }
    }

    fn start_if_due(&mut self, key: ProgramKey, now: Span) {
        let Some(program) = self.programs.get(&key) else { return };
        let Life::Waiting { not_before } = program.life else { return };
        if now < not_before.max(program.spec.start) || program.held || !self.dependencies_met(key) {
            return;
        }
        let spawn = self.next_spawn;
        self.next_spawn += 1;
        self.spawns.insert(spawn, key);
        if let Some(program) = self.programs.get_mut(&key) {
            program.life = Life::Starting;
            program.starts += 1;
        }
        self.commands.push_back(Command::Spawn { key, spawn });
    }

    fn dependencies_met(&self, key: ProgramKey) -> bool {
        let Some(program) = self.programs.get(&key) else { return false };
        program.spec.after.iter().all(|node| {
            let programs = self.programs.iter().filter(|(k, _)| k.node == node.index());
            // An absent node is not waited for.
            programs.map(|(_, program)| program).all(|p| p.ready || p.absent)
        })
    }

    fn report_if_awaited(&mut self, key: ProgramKey, now: Span) {
        let Some(program) = self.programs.get_mut(&key) else { return };
        let Life::Running { since, .. } = program.life else { return };
        let is_due = now >= since + program::AWAITED_AFTER && program.awaited_condition().is_some();
        if is_due && !std::mem::replace(&mut program.awaited, true) {
            self.commands.push_back(Command::Awaited { key });
        }
    }

    fn fail_if_never_ready(&mut self, key: ProgramKey, now: Span) {
        let Some(program) = self.programs.get(&key) else { return };
        let Some(condition) = program.awaited_condition() else { return };
        let (Some(before), Some(within)) = (program.ready_before(), program.ready_within()) else {
            return;
        };
        if now >= before {
            let (program, missing) = (self.describe(key), program::missing(condition));
            self.fatal.get_or_insert(format!("{program} is not ready after {within}: {missing}"));
        }
    }

    /// A program that ended without having been ready never will be; one that waits for it
    /// waits in vain.
    fn fail_those_that_waited_for(&mut self, key: ProgramKey) {
        let Some(ended) = self.programs.get(&key) else { return };
        let Life::Exited { exit } = ended.life else { return };
        if ended.ready || ended.absent || self.stopping {
            return;
        }
        let waits = |program: &Supervised| {
            program.starts == 0 && program.spec.after.iter().any(|n| n.index() == key.node)
        };
        if self.programs.values().any(waits) {
            let text = format!(
                "{} {exit} before it was ready, and others wait for it",
                self.describe(key)
            );
            self.fatal.get_or_insert(text);
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::example;
