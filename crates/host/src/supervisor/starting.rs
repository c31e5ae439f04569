//! Which programs start now, and which never will.

use windtunnel_model::Span;
use windtunnel_verdict::evidence::{
    AWAITED_AFTER, ProgramKey, ProgramLifecycle, SupervisedProgram,
};

use super::{Supervisor, SupervisorCommand};

impl Supervisor {
    pub(super) fn start_if_due(&mut self, key: ProgramKey, now: Span) {
        let Some(program) = self.programs.get(&key) else { return };
        let ProgramLifecycle::Waiting { not_before } = program.life else { return };
        if now < not_before.max(program.spec.start) || program.held {
            return;
        }
        if !self.dependencies_met(key) {
            self.programs.get_mut(&key).into_iter().for_each(SupervisedProgram::wait_for_others);
            return;
        }
        let spawn = self.next_spawn;
        self.next_spawn += 1;
        self.spawns.insert(spawn, key);
        self.programs.get_mut(&key).into_iter().for_each(SupervisedProgram::start);
        self.commands.push_back(SupervisorCommand::Spawn { key, spawn });
    }

    /// For when the last start of a program was planned, and how many on this machine were planned
    /// for that time.
    pub(crate) fn planned_start(&self, key: ProgramKey) -> Option<(Span, usize)> {
        let planned = self.programs.get(&key)?.planned?;
        let same = self.programs.iter().filter(|(other, program)| {
            self.is_here(**other) && program.planned.or(program.due) == Some(planned)
        });
        Some((planned, same.count()))
    }

    fn dependencies_met(&self, key: ProgramKey) -> bool {
        let Some(program) = self.programs.get(&key) else { return false };
        program.spec.after.iter().all(|node| {
            let programs = self.programs.iter().filter(|(k, _)| k.node == node.index());
            // An absent node is not waited for.
            programs.map(|(_, program)| program).all(|p| p.ready || p.absent)
        })
    }

    pub(super) fn report_if_awaited(&mut self, key: ProgramKey, now: Span) {
        let Some(program) = self.programs.get_mut(&key) else { return };
        let ProgramLifecycle::Running { since, .. } = program.life else { return };
        let is_due = now >= since + AWAITED_AFTER && program.awaited_condition().is_some();
        if is_due && !std::mem::replace(&mut program.awaited, true) {
            self.commands.push_back(SupervisorCommand::Awaited { key });
        }
    }

    pub(super) fn fail_if_never_ready(&mut self, key: ProgramKey, now: Span) {
        let Some(program) = self.programs.get(&key) else { return };
        let Some(condition) = program.awaited_condition() else { return };
        let (Some(before), Some(within)) = (program.ready_before(), program.ready_within()) else {
            return;
        };
        if now >= before {
            let missing = program.missing(condition);
            let program = self.describe(key);
            self.fatal.get_or_insert(format!("{program} is not ready after {within}: {missing}"));
        }
    }

    /// A program that ended without having been ready never will be; one that waits for it
    /// waits in vain.
    pub(super) fn fail_those_that_waited_for(&mut self, key: ProgramKey) {
        let Some(ended) = self.programs.get(&key) else { return };
        let ProgramLifecycle::Exited { exit } = ended.life else { return };
        if ended.ready || ended.absent || self.stopping {
            return;
        }
        let waits = |program: &SupervisedProgram| {
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
