//! The mechanisms that hold a command, and all that it starts, to its part of the machine.
//!
//! Of each resource a control group comes first, which several commands can share. Where none can be
//! made, this process stops and continues the processes of the tree below it, or looks at them often
//! and ends what is too much.

mod amount;
mod around;
mod meter;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use windtunnel_limit::watch::Allowed;
use windtunnel_limit::{
    Bounds, Choice, Duty, Group, Guard, Mechanism, Resource, Scope, Tree, Watch,
};
use windtunnel_sys::clock;
use windtunnel_sys::process::{Pid, ProcessLimits};

use super::resources::{AmountUse, Resources, Second, Used};
use super::{LimitError, system};
use crate::node_limits::data_of;
use amount::Amounts;
use around::Foreign;
use meter::ProcessorMeter;

/// The mechanisms of one command.
#[derive(Debug)]
pub(super) struct Holding {
    asked: Resources,
    group: Option<Group>,
    /// Of each resource that is limited for all processes together.
    mechanisms: Vec<(Resource, Mechanism)>,
    guard_pid: Option<Pid>,
    tree: Option<Arc<Tree>>,
    /// A tree that was not started from here.
    foreign: Option<Foreign>,
    duty: Option<Duty>,
    watch: Option<Watch>,
    meter: ProcessorMeter,
    amounts: Amounts,
    /// Whether other commands change the limits of the group, too.
    is_shared: bool,
    /// Why the group did not hold a limit.
    unheld: Vec<(Resource, String)>,
    /// Processor time of children that had ended before.
    children_before_ns: u64,
}

impl Holding {
    /// Makes what can only be made before this process has threads. `shared` is the address of the
    /// control group that other commands are in already, with what it limits: newer values hold for
    /// these, too.
    pub(super) fn prepare(
        wanted: &Resources,
        is_shared: bool,
        shared: Option<(&str, Resources)>,
    ) -> Result<Holding, LimitError> {
        let (group, mechanisms, asked) = match shared {
            Some((address, had)) => join(wanted, address, had)?,
            None => make(wanted, is_shared)?,
        };
        let by = |mechanism| mechanisms.iter().any(|(_, by)| *by == mechanism);
        let (stops, watches) = (by(Mechanism::DutyCycle), by(Mechanism::Watch));
        let guard = stops.then(Guard::start).transpose().map_err(system("start a guard"))?;
        let guard_pid = guard.as_ref().map(Guard::pid);
        let is_looked_at = stops || watches || group.is_some();
        let tree = is_looked_at.then(|| Arc::new(Tree::new(guard)));
        Ok(Holding { guard_pid, tree, is_shared, ..Holding::of(asked, group, mechanisms) })
    }

    fn of(
        asked: Resources,
        group: Option<Group>,
        mechanisms: Vec<(Resource, Mechanism)>,
    ) -> Holding {
        Holding {
            asked,
            group,
            mechanisms,
            guard_pid: None,
            tree: None,
            foreign: None,
            duty: None,
            watch: None,
            meter: ProcessorMeter::default(),
            amounts: Amounts::default(),
            is_shared: false,
            unheld: Vec::new(),
            children_before_ns: 0,
        }
    }

    /// Starts the threads that it needs.
    pub(super) fn begin(&mut self) -> Result<(), LimitError> {
        if let (Some(tree), true) = (&self.tree, self.is_by(Mechanism::DutyCycle)) {
            let scope = Scope::Tree(Arc::clone(tree));
            let duty = Duty::begin(scope, self.asked.cpu_millis.unwrap_or(u32::MAX));
            self.duty = Some(duty.map_err(system("start a duty cycle"))?);
        }
        if let Some(foreign) = &mut self.foreign {
            foreign.look();
        }
        self.amounts.allow(self.asked.memory, self.asked.pids);
        let allowed = self.allowed();
        if let (Some(tree), true) = (&self.tree, allowed != Allowed::default()) {
            let watch = Watch::begin(Scope::Tree(Arc::clone(tree)), allowed);
            self.watch = Some(watch.map_err(system("start a watch"))?);
        }
        self.meter.begin(self.group.as_mut());
        self.children_before_ns = clock::ended_children_cpu_ns();
        Ok(())
    }

    /// By what other commands find the control group.
    pub(super) fn address(&self) -> Option<String> {
        self.group.as_ref().map(Group::address)
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
        self.group.iter().flat_map(Group::entrances).map(AsFd::as_fd).collect()
    }

    /// What each process has for itself.
    pub(super) fn process_limits(&self) -> ProcessLimits {
        let is_watched = self.mechanism(Resource::Memory) == Some(Mechanism::Watch);
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
                return Err(not_limited(resource));
            }
        }
        self.look();
        if let Some(group) = &mut self.group {
            group.set(&bounds(newer)).map_err(|error| error.to_string())?;
        }
        self.asked.replace(newer);
        self.amounts.allow(self.asked.memory, self.asked.pids);
        self.meter.cut(self.group.as_mut());
        let duty = self.duty.as_ref().zip(newer.cpu_millis);
        let done = duty.map_or(Ok(()), |(duty, share)| duty.set(share));
        let allowed = self.allowed();
        let watch = self.watch.as_ref().map_or(Ok(()), |watch| watch.set(allowed));
        done.and(watch).map_err(|error| error.to_string())
    }

    /// Looks whether the group limits what it was asked to, and whether all processes are in it. What has
    /// left is put back; until then nothing held it.
    fn check(&mut self) {
        let (Some(group), Some(tree)) = (&mut self.group, &self.tree) else { return };
        if !self.is_shared {
            self.unheld.extend(group.correct());
        }
        for (resources, why) in group.bring_back(&tree.walk()) {
            self.unheld.extend(resources.into_iter().map(|resource| (resource, why.clone())));
        }
        self.unheld.truncate(UNHELD_MAX);
    }

    /// Looks whether what has ended used more processor time than its group had: one that has left it and
    /// ended between two looks.
    fn account(&mut self) {
        let is_grouped = self.group.is_some() && !self.is_by(Mechanism::DutyCycle);
        if !is_grouped || self.is_shared || self.foreign.is_some() {
            return;
        }
        let all_ns = clock::ended_children_cpu_ns().saturating_sub(self.children_before_ns);
        if let Some(outside_ns) = outside(all_ns, self.meter.used_ns()) {
            let why = format!(
                "{} ms of processor time were used outside its control group",
                outside_ns / 1_000_000
            );
            self.unheld.push((Resource::Processor, why));
        }
    }

    /// Why a limit was not held by its group: the first reason, and how many there were.
    fn unheld(&self, resource: Resource) -> Option<String> {
        let mut all = self.unheld.iter().filter(|(other, _)| *other == resource);
        let (_, first) = all.next()?;
        let others = all.count();
        let more = if others == 0 { String::new() } else { format!("; and {others} more like it") };
        Some(format!("{first}{more}"))
    }

    /// Takes what is new of what is used.
    pub(super) fn look(&mut self) {
        self.check();
        if let Some(foreign) = &mut self.foreign {
            foreign.look();
        }
        let asked = self.asked.cpu_millis.unwrap_or(0);
        self.meter.look(self.group.as_mut(), asked);
        if let Some(duty) = &self.duty {
            let (windows, failure) = duty.take();
            self.meter.take(windows, duty.last(), failure);
        }
        self.amounts.look(self.group.as_mut());
        if let Some(watch) = &self.watch {
            let is_beside = self.foreign.is_some()
                && self.mechanism(Resource::Memory).is_some_and(|by| by != Mechanism::Watch);
            self.amounts.take(watch, self.allowed(), is_beside);
        }
    }

    /// What it has had so far.
    pub(super) fn used(&mut self) -> Used {
        self.look();
        let foreign = self.tree.as_ref().map_or(0, |tree| tree.foreign());
        let mut cpu = self.asked.cpu_millis.zip(self.mechanism(Resource::Processor));
        let cpu = cpu.take().map(|(share, by)| {
            let mut cpu = self.meter.used(share, by);
            if foreign > 0 {
                let why = format!("{foreign} processes of other users cannot be stopped");
                cpu.failure.get_or_insert(why);
            }
            cpu.failure = cpu.failure.or(self.unheld(Resource::Processor));
            let around = self.group.as_ref().and_then(Group::processors_around);
            cpu.around_cpus = around.map(|millis| f64::from(millis) / 1000.0);
            cpu
        });
        let memory = self.mechanism(Resource::Memory).zip(self.asked.memory);
        let pids = self.mechanism(Resource::Processes).zip(self.asked.pids.map(u64::from));
        Used {
            cpu,
            memory: memory.map(|(by, asked)| AmountUse {
                failure: self.amounts.failure_of_memory(by).or(self.unheld(Resource::Memory)),
                ..self.amounts.memory(asked, by)
            }),
            pids: pids.map(|(by, asked)| AmountUse {
                failure: self.amounts.failure_of_processes(by).or(self.unheld(Resource::Processes)),
                ..self.amounts.processes(asked, by)
            }),
            open_files: self.asked.open_files.map(|asked| self.descriptors(asked)),
        }
    }

    fn descriptors(&self, asked: u64) -> AmountUse {
        let failure = self.foreign.as_ref().and_then(|foreign| foreign.per_process.failure());
        AmountUse { failure, ..Amounts::descriptors(asked) }
    }

    /// Ends: all that is left goes on, and has no limits where it was not started from here. Returns what it has had, in all and for each second.
    /// `is_last` is whether no other command is in the same group.
    pub(super) fn end(mut self, is_last: bool, began_ns: u64) -> (Used, Vec<Second>) {
        let mut goes_on = true;
        match self.duty.take().map(Duty::end) {
            Some(Ok((last, windows))) => self.meter.take(windows, last, None),
            Some(Err(error)) => {
                // The guard does it.
                goes_on = false;
                self.meter.fail(format!("programs cannot be continued: {error}"));
            }
            None => self.meter.finish(self.group.as_mut(), self.asked.cpu_millis.unwrap_or(0)),
        }
        self.account();
        let used = self.used();
        if let Some(watch) = &self.watch {
            // Its thread lives as long as this process.
            let _ = watch.set(Allowed::default());
        }
        if let Some(foreign) = &mut self.foreign {
            foreign.undo();
        }
        if let Some(tree) = self.tree.take().filter(|_| goes_on) {
            tree.dismiss_guard();
        }
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

    fn allowed(&self) -> Allowed {
        // What a process had before it entered a group is in the account of another one.
        let is_before = |resource| resource == Resource::Memory && self.foreign.is_some();
        let is_watched =
            |resource| self.mechanism(resource) == Some(Mechanism::Watch) || is_before(resource);
        Allowed {
            memory: self.asked.memory.filter(|_| is_watched(Resource::Memory)),
            processes: self.asked.pids.filter(|_| is_watched(Resource::Processes)),
        }
    }

    fn is_by(&self, mechanism: Mechanism) -> bool {
        self.mechanisms.iter().any(|(_, by)| *by == mechanism)
    }

    fn mechanism(&self, resource: Resource) -> Option<Mechanism> {
        self.mechanisms.iter().find(|(other, _)| *other == resource).map(|(_, by)| *by)
    }
}

type Made = (Option<Group>, Vec<(Resource, Mechanism)>, Resources);

fn make(wanted: &Resources, is_shared: bool) -> Result<Made, LimitError> {
    let asked = wanted.shared();
    if asked.is_empty() {
        return Ok((None, Vec::new(), *wanted));
    }
    let mut choice = Choice::of_machine();
    let without = asked.iter().find(|resource| choice.group_of(**resource).is_none());
    if let Some(resource) = without.filter(|_| is_shared) {
        let why = choice.refusals_of(*resource).join("; ");
        return Err(LimitError::GroupOfKernel { what: name_of(*resource), why });
    }
    let is_grouped = asked.iter().any(|resource| choice.group_of(*resource).is_some());
    let group = is_grouped.then(|| choice.group(None, &bounds(wanted))).transpose();
    let group = group.map_err(system("make a control group"))?;
    let by = |resource| choice.group_of(resource).unwrap_or_else(|| in_tree(resource));
    Ok((group, asked.into_iter().map(|it| (it, by(it))).collect(), *wanted))
}

fn join(wanted: &Resources, address: &str, had: Resources) -> Result<Made, LimitError> {
    let limited = had.shared();
    if let Some(resource) = wanted.shared().into_iter().find(|it| !limited.contains(it)) {
        return Err(LimitError::NotOfGroup(name_of(resource)));
    }
    let choice = Choice::of_machine();
    let mut group = choice.join(address, &limited).map_err(system("enter the control group"))?;
    if let Err(error) = group.set(&bounds(wanted)) {
        group.leave();
        return Err(system("change the limits of the group")(error));
    }
    let by = |resource| choice.group_of(resource).unwrap_or_else(|| in_tree(resource));
    let mechanisms = limited.into_iter().map(|it| (it, by(it))).collect();
    let mut asked = had;
    asked.replace(wanted);
    // Each process has that for itself.
    asked.open_files = wanted.open_files;
    Ok((Some(group), mechanisms, asked))
}

/// What limits a resource of a tree: it has no user namespace of its own that would count.
fn in_tree(resource: Resource) -> Mechanism {
    match resource {
        Resource::Processor => Mechanism::DutyCycle,
        Resource::Memory | Resource::Processes => Mechanism::Watch,
        // No command asks for that.
        Resource::Disk => Mechanism::Nothing,
    }
}

fn bounds(asked: &Resources) -> Bounds {
    Bounds {
        processor: asked.cpu_millis,
        guarantee: None,
        memory: asked.memory,
        processes: asked.pids,
        disk: None,
    }
}

/// As an option and a key are named.
fn name_of(resource: Resource) -> &'static str {
    match resource {
        Resource::Processor => "cpu",
        Resource::Memory => "memory",
        Resource::Processes => "pids",
        Resource::Disk => "disk",
    }
}

/// Processor time of ended processes that their group does not have, if that is more than what each
/// has before it enters, and accounts differ by.
fn outside(ended_ns: u64, of_group_ns: u64) -> Option<u64> {
    let outside_ns = ended_ns.saturating_sub(of_group_ns);
    (outside_ns > OUTSIDE_NS + of_group_ns / 20).then_some(outside_ns)
}

/// Three ticks of the slowest clock of the kernel.
const OUTSIDE_NS: u64 = 30_000_000;
/// Of what was not held, so much is known.
const UNHELD_MAX: usize = 1000;

fn not_limited(resource: Resource) -> String {
    let name = name_of(resource);
    format!("it was started without --{name}, which cannot be added while it runs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_no_group_has_was_used_outside() {
        assert_eq!(outside(100_000_000, 95_000_000), None);
        assert_eq!(outside(1_000_000_000, 960_000_000), None);
        assert_eq!(outside(100_000_000, 20_000_000), Some(80_000_000));
        assert_eq!(outside(0, 20_000_000), None);
    }
}
