//! The limits of a node, of a reservation or of a command: what holds each, what came of it, and how
//! it changes.
//!
//! A control group holds a limit where there is one ([`LimitGroups`]), else a
//! [`ProcessLimiter`](crate::ProcessLimiter): that of the calling process, or of a node's init.

mod disk;
mod supervised;

use std::fmt::Debug;

use windtunnel_budget::processor::CpuUsageWindow;
use windtunnel_model::{LimitMechanism, Resource, ResourceAmounts, ResourceUsage};

use crate::group::{CgroupLimits, ControlGroup};
use crate::watch::ResourceWatchUsage;

pub use supervised::{LimitHit, LimitSample, SupervisedLimit};

/// The control groups of what is limited together.
pub trait LimitGroups: Debug {
    /// The group that limits a resource of all programs, or of one.
    fn of(&mut self, program: Option<usize>, resource: Resource) -> Option<&mut ControlGroup>;
}

/// The limits of what is limited together, and of programs among it.
#[derive(Debug)]
pub struct LimitSupervisor<G> {
    groups: Option<G>,
    limits: Vec<SupervisedLimit>,
    /// Since when it counts.
    origin_ns: Option<u64>,
}

impl<G: LimitGroups> LimitSupervisor<G> {
    /// Nothing is limited yet.
    #[must_use]
    pub fn new(groups: Option<G>) -> Self {
        LimitSupervisor { groups, limits: Vec::new(), origin_ns: None }
    }

    /// Limits all programs, or one. What holds that is said by
    /// [`name_mechanisms`](LimitSupervisor::name_mechanisms).
    pub fn add(&mut self, program: Option<usize>, asked: ResourceAmounts) {
        let limits = asked.iter().map(|(resource, asked)| {
            SupervisedLimit::new(program, resource, LimitMechanism::Nothing, asked)
        });
        self.limits.extend(limits);
    }

    /// Says what holds each limit: a group, or `without` one something else. A limit of one program,
    /// or of disks, has no other mechanism than a group.
    pub fn name_mechanisms(&mut self, without: fn(Resource) -> LimitMechanism) {
        for limit in &mut self.limits {
            let (program, resource) = (limit.program, limit.resource);
            let group = self.groups.as_mut().and_then(|groups| groups.of(program, resource));
            let by_group = group.and_then(|group| group.mechanism(resource));
            limit.held.mechanism = by_group.unwrap_or_else(|| without(resource));
            let needs_group = program.is_some() && resource != Resource::OpenFiles;
            if (needs_group || resource == Resource::Disk) && by_group.is_none() {
                limit.fail("no control group could be made for it".to_owned());
            }
        }
    }

    /// The groups, where there are any.
    pub fn groups(&self) -> Option<&G> {
        self.groups.as_ref()
    }

    /// The same, to be changed.
    pub fn groups_mut(&mut self) -> Option<&mut G> {
        self.groups.as_mut()
    }

    /// The group that limits a resource of all programs.
    pub fn group(&mut self, resource: Resource) -> Option<&mut ControlGroup> {
        self.groups.as_mut()?.of(None, resource)
    }

    /// There are none of its groups any more.
    pub fn lose_groups(&mut self, without: fn(Resource) -> LimitMechanism) {
        self.groups = None;
        self.name_mechanisms(without);
    }

    /// Its groups, which it has no more.
    pub fn take_groups(&mut self) -> Option<G> {
        self.groups.take()
    }

    /// Its groups go away.
    #[must_use]
    pub fn into_limits(self) -> Vec<SupervisedLimit> {
        self.limits
    }

    /// All limits.
    #[must_use]
    pub fn limits(&self) -> &[SupervisedLimit] {
        &self.limits
    }

    /// All limits, to be changed.
    pub fn limits_mut(&mut self) -> &mut [SupervisedLimit] {
        &mut self.limits
    }

    /// The limit of a resource of all programs together.
    #[must_use]
    pub fn limit(&self, resource: Resource) -> Option<&SupervisedLimit> {
        self.limits.iter().find(|it| it.program.is_none() && it.resource == resource)
    }

    /// The same, to be changed.
    pub fn limit_mut(&mut self, resource: Resource) -> Option<&mut SupervisedLimit> {
        self.limits.iter_mut().find(|it| it.program.is_none() && it.resource == resource)
    }

    /// What holds a resource of all programs together.
    #[must_use]
    pub fn mechanism(&self, resource: Resource) -> Option<LimitMechanism> {
        self.limit(resource).map(|limit| limit.held.mechanism)
    }

    /// What all programs together may use now, and what they do.
    #[must_use]
    pub fn usage(&self) -> ResourceUsage {
        let own = self.limits.iter().filter(|it| it.program.is_none());
        own.fold(ResourceUsage::default(), |all, limit| ResourceUsage {
            asked: all.asked.with(limit.resource, Some(limit.held.asked)),
            used: all.used.with(limit.resource, limit.used_now()),
        })
    }

    /// What a [`ProcessLimiter`](crate::ProcessLimiter) is to hold.
    #[must_use]
    pub fn by_limiter(&self) -> ResourceAmounts {
        let is_one = |resource| self.mechanism(resource).is_some_and(LimitMechanism::needs_limiter);
        self.usage().asked.of_those(is_one)
    }

    /// What was used before does not count: the time begins by which windows are judged.
    pub fn begin(&mut self, origin_ns: u64) {
        self.origin_ns = Some(origin_ns);
        for limit in &mut self.limits {
            let group = self.groups.as_mut().and_then(|it| it.of(limit.program, limit.resource));
            limit.begin(group, origin_ns);
        }
        self.look_at_disks();
    }

    /// From now on nothing counts. What a short run did between two looks counts, too.
    pub fn end(&mut self, now_ns: u64) {
        drop(self.look());
        self.limits.iter_mut().for_each(|limit| limit.end(now_ns));
    }

    /// When the next window of processor time of one of its groups is complete.
    #[must_use]
    pub fn due_ns(&self) -> Option<u64> {
        self.limits.iter().filter_map(SupervisedLimit::due_ns).min()
    }

    /// Reads the processor time of groups whose windows are complete.
    pub fn meter(&mut self, now_ns: u64) {
        for limit in &mut self.limits {
            if limit.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
                let group = self.groups.as_mut().and_then(|it| it.of(limit.program, Resource::Cpu));
                limit.meter(group);
            }
        }
    }

    /// Ends the windows of processor time under way that are long enough to judge.
    pub fn finish(&mut self) {
        for limit in &mut self.limits {
            let group = self.groups.as_mut().and_then(|it| it.of(limit.program, limit.resource));
            limit.finish(group);
        }
    }

    /// Looks at what groups say of everything else. What was refused or ended since the last look is
    /// returned.
    pub fn look(&mut self) -> Vec<LimitHit> {
        let Some(groups) = &mut self.groups else { return Vec::new() };
        let look = |limit: &mut SupervisedLimit| {
            let group = groups.of(limit.program, limit.resource)?;
            limit.read(group)
        };
        self.limits.iter_mut().filter_map(look).collect()
    }

    fn look_at_disks(&mut self) {
        let Some(groups) = &mut self.groups else { return };
        for limit in self.limits.iter_mut().filter(|it| it.resource == Resource::Disk) {
            let group = groups.of(limit.program, Resource::Disk);
            // There is no news of disks.
            let _ = group.and_then(|group| limit.read(group));
        }
    }

    /// Has all limits write down what is known of them.
    pub fn write_down(&mut self, at_ns: u64) {
        self.limits.iter_mut().for_each(|limit| limit.write_down(at_ns));
    }

    /// A limiter has seen these windows of processor time; or it cannot hold its limit.
    pub fn take_windows(&mut self, windows: Vec<CpuUsageWindow>, failure: Option<String>) {
        let own = self.limit_mut(Resource::Cpu).filter(|it| it.held.mechanism.needs_limiter());
        let Some(limit) = own else { return };
        windows.into_iter().for_each(|window| limit.add_window(window));
        failure.into_iter().for_each(|why| limit.fail(why));
    }

    /// A limiter has seen what all programs use. With `notes_full`, it is news that there is no room
    /// for another process: one that could not be made is not counted.
    pub fn take_used(&mut self, seen: &ResourceWatchUsage, notes_full: bool) -> Vec<LimitHit> {
        let mut hits = Vec::new();
        for limit in &mut self.limits {
            if limit.program.is_none() && limit.held.mechanism.needs_limiter() {
                hits.extend(limit.take_used(seen, notes_full));
            }
        }
        hits
    }

    /// Nothing held a limit of all programs, or of one, for some time; that of all holds each.
    pub fn not_held(&mut self, program: Option<usize>, resource: Resource, why: &str) {
        let of_resource = self.limits.iter_mut().filter(|it| it.resource == resource);
        let unheld = of_resource.filter(|it| program.is_none() || it.program == program);
        unheld.for_each(|it| it.fail(why.to_owned()));
    }

    /// No limit is held.
    pub fn fail_all(&mut self, why: &str) {
        self.limits.iter_mut().for_each(|limit| limit.fail(why.to_owned()));
    }

    /// A limit of all programs could not be set: what held before still does.
    pub fn fail_to_set(&mut self, resource: Resource, asked: u64, why: String) {
        self.limit_or(resource, LimitMechanism::Nothing, asked).fail(why);
    }

    /// Changes a limit of all programs together, or begins it. What no group holds, `hold` has a limiter
    /// hold: it gets all of that.
    ///
    /// # Errors
    /// Why it cannot be so much: then it is as before.
    pub fn set(
        &mut self,
        resource: Resource,
        asked: u64,
        hold: impl FnOnce(&ResourceAmounts) -> Result<(), String>,
    ) -> Result<(), String> {
        self.look_at_disks();
        let known = self.limit(resource).map(|limit| (limit.held.mechanism, limit.held.asked));
        if known.is_some_and(|(by, before)| by == LimitMechanism::Namespace && asked > before) {
            return Err("without control groups, `pids` can only become less".to_owned());
        }
        let others = self.by_limiter();
        let mechanism = match self.group(resource) {
            Some(group) => {
                set_group(group, resource, asked)?;
                group.mechanism(resource).unwrap_or(LimitMechanism::Nothing)
            }
            None if resource == Resource::Disk => {
                return Err("no control group limits its disks: nothing in the file asks for that"
                    .to_owned());
            }
            None => {
                hold(&others.with(resource, Some(asked)))?;
                begun_late(resource)
            }
        };
        let limit = self.limit_or(resource, mechanism, asked);
        if limit.held.mechanism == LimitMechanism::Nothing {
            limit.held.mechanism = mechanism;
        }
        self.take_asked(ResourceAmounts::only(resource, asked));
        // The first look at a limit that is new.
        self.look_at_disks();
        Ok(())
    }

    /// From now on so much is asked of all programs, and held.
    pub fn take_asked(&mut self, newer: ResourceAmounts) {
        for limit in self.limits.iter_mut().filter(|it| it.program.is_none()) {
            let Some(asked) = newer.of(limit.resource) else { continue };
            let group = self.groups.as_mut().and_then(|it| it.of(None, limit.resource));
            limit.take_asked(asked, group);
        }
    }

    /// The limit of a resource of all programs, begun if there was none.
    fn limit_or(
        &mut self,
        resource: Resource,
        mechanism: LimitMechanism,
        asked: u64,
    ) -> &mut SupervisedLimit {
        let is_own = |it: &SupervisedLimit| it.program.is_none() && it.resource == resource;
        let position = self.limits.iter().position(is_own).unwrap_or_else(|| {
            let mut limit = SupervisedLimit::new(None, resource, mechanism, asked);
            self.origin_ns.into_iter().for_each(|origin_ns| limit.begin(None, origin_ns));
            self.limits.push(limit);
            self.limits.len() - 1
        });
        &mut self.limits[position]
    }
}

/// What holds a limit that begins when programs run already: these are in no user namespace of their
/// own.
fn begun_late(resource: Resource) -> LimitMechanism {
    if resource == Resource::Cpu { LimitMechanism::DutyCycle } else { LimitMechanism::Watch }
}

fn set_group(group: &mut ControlGroup, resource: Resource, asked: u64) -> Result<(), String> {
    let limits = CgroupLimits::of(ResourceAmounts::only(resource, asked));
    let hint = |error: &std::io::Error| match error.kind() {
        std::io::ErrorKind::ResourceBusy => " (more than that is in use)",
        _ => "",
    };
    group.set(&limits).map_err(|error| format!("its control group: {error}{}", hint(&error)))
}
