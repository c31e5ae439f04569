//! Making the control group of a command, or entering the one that others share.

use std::io;

use windtunnel_limit::{
    CgroupLimits, CgroupResource, ControlGroup, LimitMechanismChoice, Mechanism,
};

use crate::limit::note::LimitGroupRecordFile;
use crate::limit::resources::Resources;
use crate::limit::{LimitError, system};

pub(super) struct CommandControlGroup {
    /// Its part of a group that others share, by which its time is known from theirs.
    pub(super) own: Option<ControlGroup>,
    pub(super) group: Option<ControlGroup>,
    pub(super) mechanisms: Vec<(CgroupResource, Mechanism)>,
    pub(super) asked: Resources,
}

pub(super) fn make(wanted: &Resources, is_shared: bool) -> Result<CommandControlGroup, LimitError> {
    let asked = wanted.shared();
    if asked.is_empty() {
        return Ok(CommandControlGroup {
            own: None,
            group: None,
            mechanisms: Vec::new(),
            asked: *wanted,
        });
    }
    let mut choice = LimitMechanismChoice::of_machine();
    let without = asked.iter().find(|resource| choice.group_of(**resource).is_none());
    if let Some(resource) = without.filter(|_| is_shared) {
        let why = choice.refusals_of(*resource).join("; ");
        return Err(LimitError::GroupOfKernel { what: name_of(*resource), why });
    }
    let is_grouped = asked.iter().any(|resource| choice.group_of(*resource).is_some());
    let group = is_grouped.then(|| choice.group(None, &bounds(wanted))).transpose();
    let group = group.map_err(system("make a control group"))?;
    let own = group.as_ref().filter(|_| is_shared).and_then(|group| part_of(&mut choice, group));
    let by = |resource| choice.group_of(resource).unwrap_or_else(|| in_tree(resource));
    let mechanisms = asked.into_iter().map(|it| (it, by(it))).collect();
    Ok(CommandControlGroup { own, group, mechanisms, asked: *wanted })
}

/// Enters the group of other commands, whose limits are changed to what is wanted.
pub(super) fn join(
    wanted: &Resources,
    shelf: &LimitGroupRecordFile,
) -> Result<CommandControlGroup, LimitError> {
    let note = shelf.read().map_err(system("enter the control group"))?;
    let limited = note.resources.shared();
    if let Some(resource) = wanted.shared().into_iter().find(|it| !limited.contains(it)) {
        return Err(LimitError::NotOfGroup(name_of(resource)));
    }
    let mut choice = LimitMechanismChoice::of_machine();
    let group = choice.join(&note.address, &limited);
    let mut group = group.map_err(system("enter the control group"))?;
    if let Err(error) = set(&mut group, wanted, Some(shelf)) {
        group.leave();
        return Err(system("change the limits of the group")(error));
    }
    let own = part_of(&mut choice, &group);
    let by = |resource| choice.group_of(resource).unwrap_or_else(|| in_tree(resource));
    let mechanisms = limited.into_iter().map(|it| (it, by(it))).collect();
    let mut asked = note.resources;
    asked.replace(wanted);
    // Each process has that for itself.
    asked.open_files = wanted.open_files;
    Ok(CommandControlGroup { own, group: Some(group), mechanisms, asked })
}

/// Without one, all have the same time.
fn part_of(choice: &mut LimitMechanismChoice, group: &ControlGroup) -> Option<ControlGroup> {
    choice.group(Some(group), &CgroupLimits::default()).ok()
}

/// Limits a group to what is said; the shelf, of one that others share, says so first: they would take
/// it for a change that no command has asked for.
pub(super) fn set(
    group: &mut ControlGroup,
    newer: &Resources,
    shelf: Option<&LimitGroupRecordFile>,
) -> io::Result<()> {
    let newer = Resources { open_files: None, ..*newer };
    let Some(shelf) = shelf.filter(|shelf| shelf.has_note()) else {
        return group.set(&bounds(&newer));
    };
    shelf.change(|note| {
        let before = note.resources;
        note.resources.replace(&newer);
        shelf.write(note)?;
        group.set(&bounds(&newer)).inspect_err(|_| note.resources = before)
    })
}

/// What limits a resource of a tree: it has no user namespace of its own that would count.
pub(super) fn in_tree(resource: CgroupResource) -> Mechanism {
    match resource {
        CgroupResource::Processor => Mechanism::DutyCycle,
        CgroupResource::Memory | CgroupResource::Processes => Mechanism::Watch,
        // No command asks for that.
        CgroupResource::Disk => Mechanism::Nothing,
    }
}

pub(super) fn bounds(asked: &Resources) -> CgroupLimits {
    CgroupLimits {
        processor: asked.cpu_millis,
        guarantee: None,
        memory: asked.memory,
        processes: asked.pids,
        disk: None,
    }
}

/// As an option and a key are named.
pub(super) fn name_of(resource: CgroupResource) -> &'static str {
    match resource {
        CgroupResource::Processor => "cpu",
        CgroupResource::Memory => "memory",
        CgroupResource::Processes => "pids",
        CgroupResource::Disk => "disk",
    }
}

pub(super) fn not_limited(resource: CgroupResource) -> String {
    let name = name_of(resource);
    format!("it was started without --{name}, which cannot be added while it runs")
}
