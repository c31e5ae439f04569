//! Looking whether a control group holds what it is to hold.

use std::sync::Arc;

use windtunnel_limit::usage::{self, ProcessCpuTimeMeter};
use windtunnel_limit::{
    CgroupResource, ControlGroup, Mechanism, ProcessScope, ProcessTree, per_process,
};
use windtunnel_sys::clock;
use windtunnel_sys::limits::ProcessResourceLimitKind;
use windtunnel_sys::process::Pid;

use super::CommandLimitEnforcer;
use super::making::{bounds, name_of};
use crate::limit::note::LimitGroupLapse;
use crate::limit::resources::Resources;
use crate::node_limits::CpuTimeExcess;

/// What a group did not hold.
#[derive(Debug, Default)]
pub(super) struct CommandLimitLapses {
    /// What, and why.
    unheld: Vec<(CgroupResource, String)>,
    /// Processes that have raised limits of their own.
    raised: Vec<String>,
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
    fn add(&mut self, resource: CgroupResource, why: String) {
        if self.unheld.len() < UNHELD_MAX {
            self.unheld.push((resource, why));
        }
    }

    /// Why a limit was not held by its group: the first reason, and how many there were.
    fn of(&self, resource: CgroupResource) -> Option<String> {
        let all = self.unheld.iter().filter(|(other, _)| *other == resource);
        first_of(all.map(|(_, why)| why))
    }

    /// Why a limit that each process has for itself was not held.
    pub(super) fn raised(&self) -> Option<String> {
        first_of(self.raised.iter())
    }
}

/// The first reason, and how many there are.
fn first_of<'a>(mut all: impl Iterator<Item = &'a String>) -> Option<String> {
    let first = all.next()?;
    let others = all.count();
    let more = if others == 0 { String::new() } else { format!("; and {others} more like it") };
    Some(format!("{first}{more}"))
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
        let group = self.own.as_mut().or(self.group.as_mut());
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
        let Some(group) = &mut self.group else { return };
        let Some(shelf) = self.shelf.as_ref().filter(|shelf| shelf.has_note()) else {
            for (resource, why) in group.correct() {
                self.lapses.add(resource, why);
            }
            return;
        };
        let asked = Resources { open_files: None, ..self.asked };
        let looked = shelf.change(|note| {
            if note.resources != asked {
                // Another command has changed it.
                group.set(&bounds(&note.resources))?;
            }
            let changed = group.correct().into_iter();
            let changed = changed.map(|(resource, why)| LimitGroupLapse {
                limit: name_of(resource).to_owned(),
                why,
            });
            note.lapses.extend(changed);
            note.lapses.truncate(UNHELD_MAX);
            Ok(note.clone())
        });
        // Without the note, others have ended it.
        let Ok(note) = looked else { return };
        if note.resources != asked {
            self.take_asked(&note.resources);
        }
        for LimitGroupLapse { limit, why } in note.lapses.into_iter().skip(self.lapses.known) {
            let resource = CgroupResource::ALL.into_iter().find(|it| name_of(*it) == limit);
            resource.into_iter().for_each(|it| self.lapses.add(it, why.clone()));
            self.lapses.known += 1;
        }
    }

    fn bring_back(&mut self) {
        let Some(tree) = &self.tree else { return };
        let processes = tree.walk();
        if let Some(most) = self.asked.open_files.filter(|_| self.foreign.is_none()) {
            let raised =
                per_process::lower_again(&processes, ProcessResourceLimitKind::OpenFiles, most);
            self.lapses.raised.extend(raised);
            self.lapses.raised.truncate(UNHELD_MAX);
        }
        let Some(group) = self.own.as_mut().or(self.group.as_mut()) else { return };
        for (resources, why) in group.bring_back(&processes) {
            resources.into_iter().for_each(|resource| self.lapses.add(resource, why.clone()));
        }
        let outside = self.lapses.time.as_mut().and_then(|time| time.look(&processes, group));
        if let Some(why) = outside {
            self.lapses.add_all(&self.mechanisms, &why);
        }
    }

    /// Why a limit was not held by its group.
    pub(super) fn unheld(&self, resource: CgroupResource) -> Option<String> {
        self.lapses.of(resource)
    }
}

impl CommandLimitLapses {
    /// Nothing held what groups limit.
    fn add_all(&mut self, mechanisms: &[(CgroupResource, Mechanism)], why: &str) {
        for (resource, by) in mechanisms {
            if matches!(by, Mechanism::GroupV1 | Mechanism::GroupV2) {
                self.add(*resource, why.to_owned());
            }
        }
    }
}

/// Of what was not held, so much is known.
const UNHELD_MAX: usize = 1000;
