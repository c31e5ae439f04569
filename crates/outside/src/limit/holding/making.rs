//! Making the control group of a command, or entering the one that others share.

use std::io;

use windtunnel_limit::{CgroupLimits, ControlGroup, LimitGroups, LimitMechanismChoice};
use windtunnel_model::{LimitMechanism, Resource, ResourceAmounts};

use crate::error::system;
use crate::limit::error::LimitError;
use crate::limit::note::LimitGroupRecordFile;
use crate::limit::resources::shared;

/// The control groups of a command.
#[derive(Debug)]
pub(super) struct CommandGroups {
    /// Its part of a group that others share, by which its time is known from theirs: gone before that.
    pub(super) own: Option<ControlGroup>,
    /// What limits it.
    pub(super) group: ControlGroup,
}

impl LimitGroups for CommandGroups {
    fn of(&mut self, _program: Option<usize>, resource: Resource) -> Option<&mut ControlGroup> {
        Some(&mut self.group).filter(|group| group.limits(resource))
    }
}

impl CommandGroups {
    /// That in which its processes are.
    pub(super) fn innermost(&mut self) -> &mut ControlGroup {
        self.own.as_mut().unwrap_or(&mut self.group)
    }
}

pub(super) fn make(
    wanted: &ResourceAmounts,
    is_shared: bool,
) -> Result<Option<CommandGroups>, LimitError> {
    let asked = shared(wanted);
    let mut resources = asked.iter().map(|(resource, _)| resource).peekable();
    if resources.peek().is_none() {
        return Ok(None);
    }
    let mut choice = LimitMechanismChoice::of_machine();
    let (mut without, mut is_grouped) = (None, false);
    for resource in resources {
        match choice.group_of(resource) {
            Some(_) => is_grouped = true,
            None => without = without.or(Some(resource)),
        }
    }
    if let Some(resource) = without.filter(|_| is_shared) {
        let why = choice.refusals_of(resource).join("; ");
        return Err(LimitError::GroupOfKernel { what: resource.key(), why });
    }
    let group = is_grouped.then(|| choice.group(None, &CgroupLimits::of(asked))).transpose();
    let group = group.map_err(system("make a control group"))?;
    Ok(group.map(|group| {
        let own = if is_shared { part_of(&mut choice, &group) } else { None };
        CommandGroups { own, group }
    }))
}

/// Enters the group of other commands, whose limits are changed to what is wanted. Returns what is
/// asked of it then.
pub(super) fn join(
    wanted: &ResourceAmounts,
    shelf: &LimitGroupRecordFile,
) -> Result<(Option<CommandGroups>, ResourceAmounts), LimitError> {
    let note = shelf.read().map_err(system("enter the control group"))?;
    let mut missing = shared(wanted).iter().filter(|(it, _)| note.resources.of(*it).is_none());
    if let Some((resource, _)) = missing.next() {
        return Err(LimitError::NotOfGroup(resource.key()));
    }
    let limited: Vec<Resource> = note.resources.iter().map(|(resource, _)| resource).collect();
    let mut choice = LimitMechanismChoice::of_machine();
    let group = choice.join(&note.address, &limited);
    let mut group = group.map_err(system("enter the control group"))?;
    if let Err(error) = set(&mut group, wanted, Some(shelf)) {
        group.leave();
        return Err(system("change the limits of the group")(error).into());
    }
    let own = part_of(&mut choice, &group);
    // Each process has that for itself.
    let asked = wanted.or(note.resources).with(Resource::OpenFiles, wanted.open_files);
    Ok((Some(CommandGroups { own, group }), asked))
}

/// Without one, all have the same time.
fn part_of(choice: &mut LimitMechanismChoice, group: &ControlGroup) -> Option<ControlGroup> {
    choice.group(Some(group), &CgroupLimits::default()).ok()
}

/// Limits a group to what is said; the shelf, of one that others share, says so first: they would take
/// it for a change that no command has asked for.
pub(super) fn set(
    group: &mut ControlGroup,
    newer: &ResourceAmounts,
    shelf: Option<&LimitGroupRecordFile>,
) -> io::Result<()> {
    let newer = shared(newer);
    let Some(shelf) = shelf.filter(|shelf| shelf.has_note()) else {
        return group.set(&CgroupLimits::of(newer));
    };
    shelf.change(|note| {
        let before = note.resources;
        note.resources = newer.or(before);
        shelf.write(note)?;
        group.set(&CgroupLimits::of(newer)).inspect_err(|_| note.resources = before)
    })
}

/// What limits a resource of a tree: it has no user namespace of its own that would count.
pub(super) fn in_tree(resource: Resource) -> LimitMechanism {
    match resource {
        Resource::Cpu => LimitMechanism::DutyCycle,
        Resource::Memory | Resource::Pids => LimitMechanism::Watch,
        // No command asks for that.
        Resource::Disk => LimitMechanism::Nothing,
        Resource::OpenFiles => LimitMechanism::PerProcess,
    }
}

pub(super) fn not_limited(resource: Resource) -> String {
    format!("it was started without --{resource}, which cannot be added while it runs")
}
