//! Looking whether a control group holds what it is to hold.

use std::sync::Arc;

use windtunnel_limit::usage::{self, CpuTimeExcess, ProcessCpuTimeMeter};
use windtunnel_limit::{CgroupLimits, ControlGroup, ProcessScope, ProcessTree, per_process};
use windtunnel_model::Resource;
use windtunnel_sys::clock;
use windtunnel_sys::limits::ProcessResourceLimitKind;
use windtunnel_sys::process::Pid;

use super::CommandLimitEnforcer;
use super::making::CommandGroups;
use crate::limit::note::LimitGroupLapse;
use crate::limit::resources::shared;

/// What a group did not hold.
#[derive(Debug, Default)]
pub(super) struct CommandLimitLapses {
    /// What, and why.
    unheld: Vec<(Resource, String)>,
    /// How many of the note that commands of a group share are known.
    known: usize,
    time: Option<CommandUnaccountedCpuTime>,
}

/// The processor time of the processes, beside what their group has counted.
#[derive(Debug)]
struct CommandUnaccountedCpuTime {
    /// What they were at the beginning.
    group_ns: u64,
    processes_ns: u64,
    /// Of a tree that was not started from here.
    usage: Option<ProcessCpuTimeMeter>,
    slack_ns: u64,
    excess: CpuTimeExcess,
}

impl CommandLimitLapses {
    fn add(&mut self, resource: Resource, why: String) {
        if self.unheld.len() < UNHELD_MAX {
            self.unheld.push((resource, why));
        }
    }

    /// Why a limit was not held: the first reason, and how many there were.
    pub(super) fn of(&self, resource: Resource) -> Option<String> {
        let mut all = self.unheld.iter().filter(|(other, _)| *other == resource);
        let (_, first) = all.next()?;
        let others = all.count();
        let more = if others == 0 { String::new() } else { format!("; and {others} more like it") };
        Some(format!("{first}{more}"))
    }
}

impl CommandUnaccountedCpuTime {
    /// From now on; of a tree that was not started from here, since it has entered its group.
    fn begin(
        group: &mut ControlGroup,
        foreign: Option<&Arc<ProcessTree>>,
    ) -> Option<CommandUnaccountedCpuTime> {
        let now_ns = group.time_ns()?;
        let usage = foreign
            .map(|tree| ProcessCpuTimeMeter::exactly_of(ProcessScope::Tree(Arc::clone(tree))));
        // What has entered a group is in its account since then, and one was made for it.
        let group_ns = if usage.is_some() { 0 } else { now_ns };
        let slack_ns = usage.as_ref().map_or(0, ProcessCpuTimeMeter::rounding_ns);
        let processes_ns = clock::ended_children_cpu_ns();
        Some(CommandUnaccountedCpuTime {
            group_ns,
            processes_ns,
            usage,
            slack_ns,
            excess: CpuTimeExcess::default(),
        })
    }

    /// What is new of the time outside, in a sentence.
    fn look(&mut self, processes: &[Pid], group: &mut ControlGroup) -> Option<String> {
        let processes_ns = match &mut self.usage {
            Some(usage) => usage.read(),
            None => usage::of_children(processes).saturating_sub(self.processes_ns),
        };
        // Read later, it has more rather than less.
        let group_ns = group.time_ns()?.saturating_sub(self.group_ns);
        self.excess.beyond(processes_ns, group_ns.saturating_add(self.slack_ns))
    }
}

impl CommandLimitEnforcer {
    pub(super) fn begin_checks(&mut self) {
        let foreign = self.foreign.as_ref().map(|foreign| &foreign.tree);
        let group = self.limits.groups_mut().map(CommandGroups::innermost);
        self.lapses.time = group.and_then(|group| CommandUnaccountedCpuTime::begin(group, foreign));
        let note = self.shelf.as_ref().and_then(|shelf| shelf.read().ok());
        self.lapses.known = note.map_or(0, |note| note.lapses.len());
    }

    /// Looks whether the group limits what it was asked to, and whether all processes are in it. What has
    /// left is put back; until then nothing held it. What has left and ended between two looks shows by
    /// the time that the group does not have.
    pub(super) fn check(&mut self) {
        self.correct();
        self.bring_back();
        if let Some(foreign) = &mut self.foreign {
            foreign.look();
        }
    }

    /// Of a group that others share, it is in their note.
    fn correct(&mut self) {
        let asked = shared(&self.asked());
        let Some(CommandGroups { group, .. }) = self.limits.groups_mut() else { return };
        let Some(shelf) = self.shelf.as_ref().filter(|shelf| shelf.has_note()) else {
            for (resource, why) in group.correct() {
                self.lapses.add(resource, why);
            }
            return;
        };
        let looked = shelf.change(|note| {
            if note.resources != asked {
                // Another command has changed it.
                group.set(&CgroupLimits::of(note.resources))?;
            }
            let changed = group.correct().into_iter();
            note.lapses.extend(changed.map(|(limit, why)| LimitGroupLapse { limit, why }));
            note.lapses.truncate(UNHELD_MAX);
            Ok(note.clone())
        });
        // Without the note, others have ended it.
        let Ok(note) = looked else { return };
        if note.resources != asked {
            self.limits.take_asked(note.resources);
        }
        for LimitGroupLapse { limit, why } in note.lapses.into_iter().skip(self.lapses.known) {
            self.lapses.add(limit, why);
            self.lapses.known += 1;
        }
    }

    fn bring_back(&mut self) {
        let Some(tree) = &self.tree else { return };
        let processes = tree.walk();
        let open_files = self.asked().open_files.filter(|_| self.foreign.is_none());
        if let Some(most) = open_files {
            let files = ProcessResourceLimitKind::OpenFiles;
            for why in per_process::lower_again(&processes, files, most) {
                self.lapses.add(Resource::OpenFiles, why);
            }
        }
        let Some(groups) = self.limits.groups_mut() else { return };
        let group = groups.innermost();
        for (resources, why) in group.bring_back(&processes) {
            resources.into_iter().for_each(|resource| self.lapses.add(resource, why.clone()));
        }
        let outside = self.lapses.time.as_mut().and_then(|time| time.look(&processes, group));
        let Some(why) = outside else { return };
        // Nothing held what groups limit.
        for limit in self.limits.limits().iter().filter(|it| it.held.mechanism.is_group()) {
            self.lapses.add(limit.resource, why.clone());
        }
    }
}

/// Of what was not held, so much is known.
const UNHELD_MAX: usize = 1000;
