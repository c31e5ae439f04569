//! The mechanisms that hold a command, and all that it starts, to its part of the machine.
//!
//! Of each resource a control group comes first, which several commands can share. Where none can be
//! made, this process stops and continues the processes of the tree below it, or looks at them often
//! and ends what is too much.

mod amount;
mod around;
mod check;
mod making;
mod meter;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use windtunnel_limit::watch::ResourceWatchLimits;
use windtunnel_limit::{
    CgroupResource, ControlGroup, DutyCycleController, Mechanism, ProcessScope, ProcessTree,
    ResourceWatch, ResumeGuardProcess,
};
use windtunnel_sys::process::{Pid, ProcessLimits};

use super::note::LimitGroupRecordFile;
use super::resources::{AmountUse, CommandCpuSample, CommandResourceUsage, Resources};
use super::{LimitError, system};
use crate::node_limits::data_of;
use amount::ResourceReadings;
use around::ForeignProcessTree;
use check::CommandLimitLapses;
use meter::ProcessorMeter;

/// The mechanisms of one command.
#[derive(Debug)]
pub(super) struct CommandLimitEnforcer {
    asked: Resources,
    /// This command's part of a group that others share: gone before that.
    own: Option<ControlGroup>,
    group: Option<ControlGroup>,
    /// Of each resource that is limited for all processes together.
    mechanisms: Vec<(CgroupResource, Mechanism)>,
    guard_pid: Option<Pid>,
    tree: Option<Arc<ProcessTree>>,
    /// A tree that was not started from here.
    foreign: Option<ForeignProcessTree>,
    duty: Option<DutyCycleController>,
    watch: Option<ResourceWatch>,
    meter: ProcessorMeter,
    amounts: ResourceReadings,
    /// Where commands that share the group say what it limits.
    shelf: Option<LimitGroupRecordFile>,
    lapses: CommandLimitLapses,
}

impl CommandLimitEnforcer {
    /// Makes what can only be made before this process has threads. `shelf` is where commands of a group
    /// say what that limits; newer values hold for all of them.
    pub(super) fn prepare(
        wanted: &Resources,
        shelf: Option<LimitGroupRecordFile>,
    ) -> Result<CommandLimitEnforcer, LimitError> {
        let made = match &shelf {
            Some(shelf) if shelf.has_note() => making::join(wanted, shelf)?,
            _ => making::make(wanted, shelf.is_some())?,
        };
        let making::CommandControlGroup { own, group, mechanisms, asked } = made;
        let by = |mechanism| mechanisms.iter().any(|(_, by)| *by == mechanism);
        let (stops, watches) = (by(Mechanism::DutyCycle), by(Mechanism::Watch));
        let guard =
            stops.then(ResumeGuardProcess::start).transpose().map_err(system("start a guard"))?;
        let guard_pid = guard.as_ref().map(ResumeGuardProcess::pid);
        let is_looked_at = stops || watches || group.is_some() || wanted.open_files.is_some();
        let tree = is_looked_at.then(|| Arc::new(ProcessTree::new(guard)));
        Ok(CommandLimitEnforcer {
            own,
            guard_pid,
            tree,
            shelf,
            ..CommandLimitEnforcer::of(asked, group, mechanisms)
        })
    }

    fn of(
        asked: Resources,
        group: Option<ControlGroup>,
        mechanisms: Vec<(CgroupResource, Mechanism)>,
    ) -> CommandLimitEnforcer {
        CommandLimitEnforcer {
            asked,
            own: None,
            group,
            mechanisms,
            guard_pid: None,
            tree: None,
            foreign: None,
            duty: None,
            watch: None,
            meter: ProcessorMeter::default(),
            amounts: ResourceReadings::default(),
            shelf: None,
            lapses: CommandLimitLapses::default(),
        }
    }

    /// Starts the threads that it needs.
    pub(super) fn begin(&mut self) -> Result<(), LimitError> {
        if let (Some(tree), true) = (&self.tree, self.is_by(Mechanism::DutyCycle)) {
            let scope = ProcessScope::Tree(Arc::clone(tree));
            let duty = DutyCycleController::begin(scope, self.asked.cpu_millis.unwrap_or(u32::MAX));
            self.duty = Some(duty.map_err(system("start a duty cycle"))?);
        }
        if let Some(foreign) = &mut self.foreign {
            foreign.look();
        }
        self.amounts.allow(self.asked.memory, self.asked.pids);
        let allowed = self.allowed();
        if let (Some(tree), true) = (&self.tree, allowed != ResourceWatchLimits::default()) {
            let watch = ResourceWatch::begin(ProcessScope::Tree(Arc::clone(tree)), allowed);
            self.watch = Some(watch.map_err(system("start a watch"))?);
        }
        self.meter.begin(self.group.as_mut());
        self.begin_checks();
        Ok(())
    }

    /// By what other commands find the control group.
    pub(super) fn address(&self) -> Option<String> {
        self.group.as_ref().map(ControlGroup::address)
    }

    pub(super) fn asked(&self) -> &Resources {
        &self.asked
    }

    /// The process that continues what was stopped, which is a child of this one.
    pub(super) fn guard_pid(&self) -> Option<Pid> {
        self.guard_pid
    }

    /// What the command enters when it starts.
    pub(super) fn entrances(&self) -> Vec<BorrowedFd<'_>> {
        let group = self.own.as_ref().or(self.group.as_ref());
        group.into_iter().flat_map(ControlGroup::entrances).map(AsFd::as_fd).collect()
    }

    /// What each process has for itself.
    pub(super) fn process_limits(&self) -> ProcessLimits {
        let is_watched = self.mechanism(CgroupResource::Memory) == Some(Mechanism::Watch);
        let data = self.asked.memory.filter(|_| is_watched).map(data_of);
        ProcessLimits { open_files: self.asked.open_files, processes: None, data }
    }

    /// From now on other limits hold.
    ///
    /// # Errors
    /// What it does not limit, or the kernel's refusal.
    pub(super) fn set(&mut self, newer: &Resources) -> Result<(), String> {
        for resource in newer.shared() {
            if self.mechanism(resource).is_none() {
                return Err(making::not_limited(resource));
            }
        }
        self.look();
        let group = self.group.as_mut();
        let set = group.map_or(Ok(()), |group| making::set(group, newer, self.shelf.as_ref()));
        set.map_err(|error| error.to_string())?;
        self.take_asked(newer);
        let duty = self.duty.as_ref().zip(newer.cpu_millis);
        let done = duty.map_or(Ok(()), |(duty, share)| duty.set(share));
        let allowed = self.allowed();
        let watch = self.watch.as_ref().map_or(Ok(()), |watch| watch.set(allowed));
        done.and(watch).map_err(|error| error.to_string())
    }

    /// From now on this is asked.
    fn take_asked(&mut self, newer: &Resources) {
        self.asked.replace(newer);
        self.amounts.allow(self.asked.memory, self.asked.pids);
        self.meter.cut(self.group.as_mut());
    }

    /// Takes what is new of what is used.
    pub(super) fn look(&mut self) {
        self.check();
        let asked = self.asked.cpu_millis.unwrap_or(0);
        self.meter.look(self.group.as_mut(), asked);
        if let Some(duty) = &self.duty {
            let (windows, failure) = duty.take();
            self.meter.take(windows, duty.last(), failure);
        }
        self.amounts.look(self.group.as_mut());
        if let Some(watch) = &self.watch {
            let is_beside = self.foreign.is_some()
                && self.mechanism(CgroupResource::Memory).is_some_and(|by| by != Mechanism::Watch);
            self.amounts.take(watch, self.allowed(), is_beside);
        }
    }

    /// What it has had so far.
    pub(super) fn used(&mut self) -> CommandResourceUsage {
        self.look();
        let foreign = self.tree.as_ref().map_or(0, |tree| tree.foreign());
        let mut cpu = self.asked.cpu_millis.zip(self.mechanism(CgroupResource::Processor));
        let cpu = cpu.take().map(|(share, by)| {
            let mut cpu = self.meter.used(share, by);
            if foreign > 0 {
                let why = format!("{foreign} processes of other users cannot be stopped");
                cpu.failure.get_or_insert(why);
            }
            cpu.failure = cpu.failure.or(self.unheld(CgroupResource::Processor));
            let around = self.group.as_ref().and_then(ControlGroup::processors_around);
            cpu.around_cpus = around.map(|millis| f64::from(millis) / 1000.0);
            cpu
        });
        let memory = self.mechanism(CgroupResource::Memory).zip(self.asked.memory);
        let pids = self.mechanism(CgroupResource::Processes).zip(self.asked.pids.map(u64::from));
        CommandResourceUsage {
            cpu,
            memory: memory.map(|(by, asked)| AmountUse {
                failure: self.amounts.failure_of_memory(by).or(self.unheld(CgroupResource::Memory)),
                ..self.amounts.memory(asked, by)
            }),
            pids: pids.map(|(by, asked)| AmountUse {
                failure: self
                    .amounts
                    .failure_of_processes(by)
                    .or(self.unheld(CgroupResource::Processes)),
                ..self.amounts.processes(asked, by)
            }),
            open_files: self.asked.open_files.map(|asked| self.descriptors(asked)),
        }
    }

    fn descriptors(&self, asked: u64) -> AmountUse {
        let failure = self.foreign.as_ref().and_then(|foreign| foreign.per_process.failure());
        let failure = failure.or_else(|| self.lapses.raised());
        AmountUse { failure, ..ResourceReadings::descriptors(asked) }
    }

    /// Ends: all that is left goes on, and has no limits where it was not started from here. Returns what it has had, in all and for each second.
    /// `is_last` is whether no other command is in the same group.
    pub(super) fn end(
        mut self,
        is_last: bool,
        began_ns: u64,
    ) -> (CommandResourceUsage, Vec<CommandCpuSample>) {
        let mut goes_on = true;
        match self.duty.take().map(DutyCycleController::end) {
            Some(Ok((last, windows))) => self.meter.take(windows, last, None),
            Some(Err(error)) => {
                // The guard does it.
                goes_on = false;
                self.meter.fail(format!("programs cannot be continued: {error}"));
            }
            None => self.meter.finish(self.group.as_mut(), self.asked.cpu_millis.unwrap_or(0)),
        }
        let used = self.used();
        if let Some(watch) = &self.watch {
            // Its thread lives as long as this process.
            let _ = watch.set(ResourceWatchLimits::default());
        }
        if let Some(foreign) = &mut self.foreign {
            foreign.undo();
        }
        if let Some(tree) = self.tree.take().filter(|_| goes_on) {
            tree.dismiss_guard();
        }
        drop(self.own.take());
        if let Some(group) = self.group.take().filter(|_| !is_last) {
            group.leave();
        }
        (used, self.meter.seconds(began_ns))
    }

    /// Undoes what was done to programs that ran already.
    pub(super) fn give_up(mut self) {
        if let Some(foreign) = self.foreign.take() {
            foreign.lift();
        }
    }

    fn allowed(&self) -> ResourceWatchLimits {
        // What a process had before it entered a group is in the account of another one.
        let is_before = |resource| resource == CgroupResource::Memory && self.foreign.is_some();
        let is_watched =
            |resource| self.mechanism(resource) == Some(Mechanism::Watch) || is_before(resource);
        ResourceWatchLimits {
            memory: self.asked.memory.filter(|_| is_watched(CgroupResource::Memory)),
            processes: self.asked.pids.filter(|_| is_watched(CgroupResource::Processes)),
        }
    }

    fn is_by(&self, mechanism: Mechanism) -> bool {
        self.mechanisms.iter().any(|(_, by)| *by == mechanism)
    }

    fn mechanism(&self, resource: CgroupResource) -> Option<Mechanism> {
        self.mechanisms.iter().find(|(other, _)| *other == resource).map(|(_, by)| *by)
    }
}
