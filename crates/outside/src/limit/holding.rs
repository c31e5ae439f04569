//! The limits of a command, and of all that it starts, to its part of the machine.
//!
//! Of each resource a control group comes first, which several commands can share. Where none can be
//! made, this process stops and continues the processes of the tree below it, or looks at them often
//! and ends what is too much.

mod around;
mod check;
mod making;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use windtunnel_limit::supervisor::SupervisedLimit;
use windtunnel_limit::watch::data_of;
use windtunnel_limit::{
    ControlGroup, LimitSupervisor, ProcessLimiter, ProcessScope, ProcessTree, ResumeGuardProcess,
};
use windtunnel_model::{HeldLimit, LimitMechanism, Resource, ResourceAmounts};
use windtunnel_sys::process::{Pid, ProcessLimits};

use super::error::LimitError;
use super::note::LimitGroupRecordFile;
use super::resources::{CommandCpuSample, CommandCpuUsage, CommandResourceUsage, shared};
use crate::error::system;
use around::ForeignProcessTree;
use check::CommandLimitLapses;
use making::{CommandGroups, in_tree};

/// The mechanisms of one command.
#[derive(Debug)]
pub(super) struct CommandLimitEnforcer {
    limits: LimitSupervisor<CommandGroups>,
    /// What this process does itself.
    limiter: Option<ProcessLimiter>,
    guard_pid: Option<Pid>,
    tree: Option<Arc<ProcessTree>>,
    /// A tree that was not started from here.
    foreign: Option<ForeignProcessTree>,
    /// Where commands that share the group say what it limits.
    shelf: Option<LimitGroupRecordFile>,
    lapses: CommandLimitLapses,
}

impl CommandLimitEnforcer {
    /// Makes what can only be made before this process has threads. `shelf` is where commands of a group
    /// say what that limits; newer values hold for all of them.
    pub(super) fn prepare(
        wanted: &ResourceAmounts,
        shelf: Option<LimitGroupRecordFile>,
    ) -> Result<CommandLimitEnforcer, LimitError> {
        let (groups, asked) = match &shelf {
            Some(shelf) if shelf.has_note() => making::join(wanted, shelf)?,
            _ => (making::make(wanted, shelf.is_some())?, *wanted),
        };
        let is_looked_at = groups.is_some() || wanted.open_files.is_some();
        let limits = supervised(groups, asked);
        let has_limiter = !limits.by_limiter().is_none();
        let stops = limits.mechanism(Resource::Cpu) == Some(LimitMechanism::DutyCycle);
        let guard = stops.then(ResumeGuardProcess::start).transpose();
        let guard = guard.map_err(system("start a guard"))?;
        let guard_pid = guard.as_ref().map(ResumeGuardProcess::pid);
        let is_looked_at = is_looked_at || has_limiter;
        let tree = is_looked_at.then(|| Arc::new(ProcessTree::new(guard)));
        Ok(CommandLimitEnforcer { guard_pid, shelf, ..CommandLimitEnforcer::of(limits, tree) })
    }

    fn of(limits: LimitSupervisor<CommandGroups>, tree: Option<Arc<ProcessTree>>) -> Self {
        let limiter = tree.clone().map(|tree| ProcessLimiter::new(ProcessScope::Tree(tree)));
        CommandLimitEnforcer {
            limits,
            limiter,
            guard_pid: None,
            tree,
            foreign: None,
            shelf: None,
            lapses: CommandLimitLapses::default(),
        }
    }

    /// Starts the threads that it needs.
    pub(super) fn begin(&mut self) -> Result<(), LimitError> {
        if let Some(foreign) = &mut self.foreign {
            foreign.look();
        }
        self.limits.begin(0);
        let held = self.limits.by_limiter();
        if let Some(limiter) = &mut self.limiter {
            limiter.set_cpu(&held).map_err(system("start a duty cycle"))?;
            limiter.set_watch(&held).map_err(system("start a watch"))?;
        }
        self.begin_checks();
        Ok(())
    }

    /// By what other commands find the control group.
    pub(super) fn address(&self) -> Option<String> {
        self.limits.groups().map(|groups| groups.group.address())
    }

    pub(super) fn asked(&self) -> ResourceAmounts {
        self.limits.usage().asked
    }

    /// The process that continues what was stopped, which is a child of this one.
    pub(super) fn guard_pid(&self) -> Option<Pid> {
        self.guard_pid
    }

    /// What the command enters when it starts.
    pub(super) fn entrances(&self) -> Vec<BorrowedFd<'_>> {
        let group = self.limits.groups().map(|groups| groups.own.as_ref().unwrap_or(&groups.group));
        group.into_iter().flat_map(ControlGroup::entrances).map(AsFd::as_fd).collect()
    }

    /// What each process has for itself.
    pub(super) fn process_limits(&self) -> ProcessLimits {
        let is_watched = self.limits.mechanism(Resource::Memory) == Some(LimitMechanism::Watch);
        let ResourceAmounts { memory, open_files, .. } = self.asked();
        let data = memory.filter(|_| is_watched).map(data_of);
        ProcessLimits { open_files, pids: None, data }
    }

    /// From now on other limits hold.
    ///
    /// # Errors
    /// What it does not limit, or the kernel's refusal.
    pub(super) fn set(&mut self, newer: &ResourceAmounts) -> Result<(), String> {
        let mut resources = shared(newer).iter().map(|(resource, _)| resource);
        if let Some(resource) = resources.find(|it| self.limits.limit(*it).is_none()) {
            return Err(making::not_limited(resource));
        }
        self.look();
        if let Some(groups) = self.limits.groups_mut() {
            let set = making::set(&mut groups.group, newer, self.shelf.as_ref());
            set.map_err(|error| error.to_string())?;
        }
        self.limits.take_asked(*newer);
        let held = self.limits.by_limiter();
        let Some(limiter) = &mut self.limiter else { return Ok(()) };
        let set = limiter.set_cpu(&held).and_then(|()| limiter.set_watch(&held));
        set.map_err(|error| error.to_string())
    }

    /// Takes what is new of what is used.
    pub(super) fn look(&mut self) {
        self.check();
        self.limits.meter(u64::MAX);
        // A command has no log in which the hits could be.
        drop(self.limits.look());
        let Some(limiter) = &self.limiter else { return };
        let report = limiter.take().unwrap_or_default();
        self.limits.take_windows(report.windows, report.cpu_failure);
        if let (Some(last), Some(cpu)) = (limiter.last(), self.limits.limit_mut(Resource::Cpu)) {
            cpu.note_last(last);
        }
        if let Some(used) = limiter.used() {
            self.limits.take_used(&used, false);
        }
        let ended = report.used.map(|used| used.ended).unwrap_or_default();
        let names = || ended.iter().map(|(name, _)| name.clone());
        for limit in self.limits.limits_mut() {
            if limit.resource != Resource::Cpu && limit.held.mechanism.needs_limiter() {
                limit.held.names.extend(names());
            }
        }
    }

    /// What it has had so far.
    pub(super) fn used(&mut self) -> CommandResourceUsage {
        self.look();
        let cpu = self.limits.limit(Resource::Cpu).map(|limit| self.used_of_cpu(limit));
        CommandResourceUsage {
            cpu,
            memory: self.used_of(Resource::Memory),
            pids: self.used_of(Resource::Pids),
            open_files: self.used_of(Resource::OpenFiles),
        }
    }

    fn used_of_cpu(&self, limit: &SupervisedLimit) -> CommandCpuUsage {
        let mut cpu = CommandCpuUsage::of(limit);
        let foreign = self.tree.as_ref().map_or(0, |tree| tree.foreign());
        if foreign > 0 {
            let why = format!("{foreign} processes of other users cannot be stopped");
            cpu.failure.get_or_insert(why);
        }
        cpu.failure = cpu.failure.or(self.lapses.of(Resource::Cpu));
        let around = self.limits.groups().and_then(|groups| groups.group.processors_around());
        cpu.around_cpus = around.map(|millis| f64::from(millis) / 1000.0);
        cpu
    }

    fn used_of(&self, resource: Resource) -> Option<HeldLimit> {
        let state = self.limits.limit(resource)?.state();
        let own = self.foreign.as_ref().filter(|_| resource == Resource::OpenFiles);
        let own = own.and_then(|foreign| foreign.per_process.failure());
        let failure = state.failure.or(own).or(self.lapses.of(resource));
        Some(HeldLimit { failure, faults: None, evicted: None, refaulted: None, ..state })
    }

    /// Ends: all that is left goes on, and has no limits where it was not started from here. Returns what it has had, in all and for each second.
    /// `is_last` is whether no other command is in the same group.
    pub(super) fn end(
        mut self,
        is_last: bool,
        began_ns: u64,
    ) -> (CommandResourceUsage, Vec<CommandCpuSample>) {
        self.limits.finish();
        let ended = self.limiter.as_mut().map_or(Ok(None), ProcessLimiter::end);
        let goes_on = ended.is_ok();
        if let Ok(Some((last, windows))) = ended {
            self.limits.take_windows(windows, None);
            self.limits.limit_mut(Resource::Cpu).into_iter().for_each(|cpu| cpu.note_last(last));
        } else if let Err(error) = ended {
            // The guard does it.
            let why = format!("programs cannot be continued: {error}");
            self.limits.take_windows(Vec::new(), Some(why));
        }
        let used = self.used();
        if let Some(foreign) = &mut self.foreign {
            foreign.undo();
        }
        if let Some(tree) = self.tree.take().filter(|_| goes_on) {
            tree.dismiss_guard();
        }
        if let Some(CommandGroups { own, group }) = self.limits.take_groups() {
            drop(own);
            if !is_last {
                group.leave();
            }
        }
        let windows = self.limits.limit(Resource::Cpu).map(|cpu| &cpu.windows);
        let seconds = windows.into_iter().flatten();
        (used, seconds.map(|window| CommandCpuSample::of(window, began_ns)).collect())
    }

    /// Undoes what was done to programs that ran already.
    pub(super) fn give_up(mut self) {
        if let Some(foreign) = self.foreign.take() {
            foreign.lift();
        }
    }
}

fn supervised(
    groups: Option<CommandGroups>,
    asked: ResourceAmounts,
) -> LimitSupervisor<CommandGroups> {
    let mut limits = LimitSupervisor::new(groups);
    limits.add(None, asked);
    limits.name_mechanisms(in_tree);
    limits
}
