//! The mechanism that holds the programs of a run to their limits.
//!
//! Control groups of the kernel come first: version 2, where a part of its tree has been given to
//! the user (systemd does that) or the user is root; then version 1. That is decided for each
//! resource. Where no group can be made, each node's init limits its programs itself, which needs no
//! rights at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use windtunnel_model::{LimitMechanism, Resource, ResourceAmounts};

use crate::disks::DiskInventory;
use crate::group::{CgroupLimits, ControlGroup};
use crate::hierarchy::Hierarchy;
use crate::membership::CgroupMembership;
use crate::owner::CgroupOwner;
use crate::place::{CgroupParentFolders, GROUPED, controller, give, has_word};
use crate::way::{self, EvacuatedCgroup};

/// What this machine allows.
#[derive(Debug)]
pub struct LimitMechanismChoice {
    /// Where groups are made.
    place: CgroupParentFolders,
    /// Where processes come from that enter them.
    outside: CgroupParentFolders,
    /// Where processes are in the group that another process has made for all.
    around: CgroupMembership,
    owner: Option<CgroupOwner>,
    refusals: Vec<(Resource, String)>,
    disks: DiskInventory,
    /// Why disks are not divided by weight.
    undivided: Option<String>,
    made: usize,
}

impl LimitMechanismChoice {
    /// Finds it by making a group for each resource and limiting it. Groups that earlier runs could
    /// not remove are removed.
    #[must_use]
    pub fn of_machine() -> LimitMechanismChoice {
        let mut choice = LimitMechanismChoice::nothing();
        match Hierarchy::of_process().and_then(|it| Ok((it, CgroupOwner::current()?))) {
            Ok((hierarchy, owner)) => {
                choice.owner = Some(owner);
                choice.look(&hierarchy);
            }
            Err(error) => {
                let why = format!("control groups: {error}");
                choice.refusals = GROUPED.map(|resource| (resource, why.clone())).to_vec();
            }
        }
        choice.outside = choice.place.clone();
        choice
    }

    /// The same for processes that run already, of which this is one: groups are made in the group that
    /// they are in, so that whatever limits it holds for them still. In version 2 no other process may
    /// be in it: what was done for that is returned.
    pub(crate) fn around(
        process: u32,
        is_inside: &dyn Fn(u32) -> bool,
    ) -> io::Result<(LimitMechanismChoice, Option<EvacuatedCgroup>)> {
        let mut choice = LimitMechanismChoice::nothing();
        let (hierarchy, owner) = (Hierarchy::of(process)?, CgroupOwner::current()?);
        choice.owner = Some(owner);
        let mut emptied = None;
        if let Some(folder) = hierarchy.second_version().first() {
            let leaf = owner.group(choice.made);
            choice.made += 1;
            match EvacuatedCgroup::make(folder, &leaf, is_inside) {
                Ok(made) => {
                    choice.try_unified(folder, &LimitMechanismChoice::offered(folder));
                    emptied = made;
                }
                Err(error) => {
                    let offered = LimitMechanismChoice::offered(folder).into_iter();
                    offered.for_each(|it| choice.refuse(it, "cgroup v2", folder, &error));
                }
            }
            if choice.place.given.is_empty() {
                // Dropping it undoes it.
                emptied = None;
            }
        }
        for resource in [Resource::Cpu, Resource::Memory, Resource::Pids] {
            if !choice.place.given.contains(&resource) {
                choice.try_first(&hierarchy, resource);
            }
        }
        choice.outside = choice.place.clone();
        Ok((choice, emptied))
    }

    fn nothing() -> LimitMechanismChoice {
        LimitMechanismChoice {
            place: CgroupParentFolders::default(),
            outside: CgroupParentFolders::default(),
            around: CgroupMembership::default(),
            owner: None,
            refusals: Vec::new(),
            disks: DiskInventory::default(),
            undivided: None,
            made: 0,
        }
    }

    /// The same, but groups are made in one that another process has made, by its
    /// [`ControlGroup::address`].
    ///
    /// # Errors
    /// If there is no such group.
    pub fn within(address: &str) -> io::Result<LimitMechanismChoice> {
        let mut choice = LimitMechanismChoice::of_machine();
        let place = CgroupParentFolders::of_address(address)?;
        let owner = choice.owner.as_ref().ok_or_else(denied)?;
        place.folders().for_each(|folder| owner.sweep(folder));
        let (own, limited) = (place.own_folders(&choice.outside), place.limited(&choice.outside));
        choice.around = CgroupMembership::of(&place, &own, &limited);
        choice.place = place;
        Ok(choice)
    }

    /// The mechanism for processor time.
    #[must_use]
    pub fn mechanism(&self) -> LimitMechanism {
        self.group_of(Resource::Cpu).unwrap_or(LimitMechanism::DutyCycle)
    }

    /// The mechanism for any resource.
    #[must_use]
    pub fn mechanism_of(&self, resource: Resource) -> LimitMechanism {
        self.group_of(resource).unwrap_or_else(|| without_group(resource))
    }

    /// The version of groups that limits a resource, if one can.
    #[must_use]
    pub fn group_of(&self, resource: Resource) -> Option<LimitMechanism> {
        self.place.mechanism(resource)
    }

    /// Why disks cannot be divided by weight; `None`: they can.
    #[must_use]
    pub fn undivided(&self) -> Option<String> {
        match self.group_of(Resource::Disk) {
            Some(_) => self.undivided.clone(),
            None => Some(self.refusals_of(Resource::Disk).join("; ")),
        }
    }

    /// Why processor time is not limited by one of the better ones.
    #[must_use]
    pub fn refusals(&self) -> Vec<&str> {
        self.refusals_of(Resource::Cpu)
    }

    /// Why a resource is not limited by one of the better ones.
    #[must_use]
    pub fn refusals_of(&self, resource: Resource) -> Vec<&str> {
        let own = self.refusals.iter().filter(|(other, _)| *other == resource);
        own.map(|(_, why)| why.as_str()).collect()
    }

    /// A group for what of `bounds` groups can limit here, inside of another or below that of the
    /// process.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn group(
        &mut self,
        within: Option<&ControlGroup>,
        bounds: &CgroupLimits,
    ) -> io::Result<ControlGroup> {
        let name = self.owner.as_ref().map(|owner| owner.group(self.made)).ok_or_else(denied)?;
        self.made += 1;
        let place = within.map_or(&self.place, ControlGroup::place);
        let around = within.map_or(&self.around, ControlGroup::membership);
        if within.is_some() || self.place != self.outside {
            place.divide()?;
        }
        ControlGroup::make(place, &self.outside, around, &name, bounds, &self.disks)
    }

    /// The group that another process has made for these resources, by its [`ControlGroup::address`].
    /// Dropping it removes it, unless it is [left](ControlGroup::leave).
    ///
    /// # Errors
    /// If it is no more, or cannot be entered.
    pub fn join(&self, address: &str, resources: &[Resource]) -> io::Result<ControlGroup> {
        ControlGroup::join(CgroupParentFolders::of_address(address)?, &self.outside, resources)
    }

    /// A group inside of another one for a process that is not to count in what is used there of
    /// memory, and among its processes, where the kernel counts these apart (version 1).
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn group_of_processor(&mut self, within: &ControlGroup) -> io::Result<ControlGroup> {
        let name = self.owner.as_ref().map(|owner| owner.group(self.made)).ok_or_else(denied)?;
        self.made += 1;
        within.place().divide()?;
        let place = within.place().only(Resource::Cpu, &self.outside);
        let around = within.membership();
        ControlGroup::make(
            &place,
            &self.outside,
            around,
            &name,
            &CgroupLimits::default(),
            &self.disks,
        )
    }

    /// Where processes come from that enter groups.
    pub(crate) fn outside(&self) -> &CgroupParentFolders {
        &self.outside
    }

    fn look(&mut self, hierarchy: &Hierarchy) {
        let around = hierarchy.second_version();
        self.disks = DiskInventory::of_machine(around.last().map(PathBuf::as_path));
        for folder in around {
            let offered = LimitMechanismChoice::offered(&folder);
            if let Err(error) = self.clear(&folder, &offered) {
                offered.into_iter().for_each(|it| self.refuse(it, "cgroup v2", &folder, &error));
                continue;
            }
            self.try_unified(&folder, &offered);
            if !self.place.given.is_empty() {
                break;
            }
        }
        for resource in GROUPED {
            if !self.place.given.contains(&resource) {
                self.try_first(hierarchy, resource);
            }
        }
    }

    /// The resources that groups in a folder of version 2 could limit.
    fn offered(folder: &Path) -> Vec<Resource> {
        let controllers = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
        let offered = |it: &Resource| has_word(&controllers, controller(*it));
        GROUPED.into_iter().filter(offered).collect()
    }

    /// Finds what groups of version 2 below a folder can limit.
    fn try_unified(&mut self, folder: &Path, offered: &[Resource]) {
        let mut given = Vec::new();
        for resource in offered.iter().copied() {
            if let Some(why) = self.unfit(resource, &given) {
                self.refusals.push((resource, format!("cgroup v2: {}: {why}", folder.display())));
                continue;
            }
            let unified = Some(folder.to_owned());
            let place = CgroupParentFolders {
                unified,
                given: vec![resource],
                ..CgroupParentFolders::default()
            };
            match give(folder, resource).and_then(|()| self.try_place(&place, resource)) {
                Ok(()) => given.push(resource),
                Err(error) => self.refuse(resource, "cgroup v2", folder, &error),
            }
        }
        if !given.is_empty() {
            (self.place.unified, self.place.given) = (Some(folder.to_owned()), given);
        }
    }

    /// Makes it so that groups in a folder of version 2 can be entered.
    fn clear(&mut self, folder: &Path, offered: &[Resource]) -> io::Result<()> {
        let owner = self.owner.as_ref().ok_or_else(denied)?;
        if offered.is_empty() {
            return Ok(());
        }
        let leaf = owner.group(self.made);
        self.made += 1;
        way::clear(folder, &leaf)
    }

    /// Why groups would not limit a resource, beside those that they can.
    fn unfit(&self, resource: Resource, given: &[Resource]) -> Option<&'static str> {
        if resource != Resource::Disk {
            return None;
        }
        if !given.contains(&Resource::Memory) {
            return Some("without the memory controller, writes through the page cache escape");
        }
        self.disks.is_empty().then_some("the machine has no disk")
    }

    /// Finds whether groups of version 1 can limit a resource.
    fn try_first(&mut self, hierarchy: &Hierarchy, resource: Resource) {
        if self.refusals_of(resource).is_empty() {
            let name = controller(resource);
            let why = format!("cgroup v2: no group with the {name} controller around");
            self.refusals.push((resource, why));
        }
        if resource == Resource::Disk {
            let why = "cgroup v1: its groups do not see writes through the page cache";
            return self.refusals.push((resource, why.to_owned()));
        }
        let is_processor = resource == Resource::Cpu;
        let account = is_processor.then(|| hierarchy.first_version("cpuacct")).flatten();
        let folder: Option<PathBuf> = hierarchy.first_version(controller(resource));
        let Some(folder) = folder.filter(|_| !is_processor || account.is_some()) else {
            let name = controller(resource);
            let why = format!("cgroup v1: the {name} controller is not mounted");
            return self.refusals.push((resource, why));
        };
        let first = vec![(resource, folder.clone())];
        let place = CgroupParentFolders {
            first,
            account: account.clone(),
            ..CgroupParentFolders::default()
        };
        match self.try_place(&place, resource) {
            Ok(()) => {
                self.place.first.push((resource, folder));
                self.place.account = account.or(self.place.account.take());
            }
            Err(error) => self.refuse(resource, "cgroup v1", &folder, &error),
        }
    }

    fn refuse(&mut self, resource: Resource, version: &str, folder: &Path, error: &io::Error) {
        self.refusals.push((resource, format!("{version}: {}: {error}", folder.display())));
    }

    /// Makes a group that limits a resource, and removes it again.
    fn try_place(&mut self, place: &CgroupParentFolders, resource: Resource) -> io::Result<()> {
        let owner = self.owner.as_ref().ok_or_else(denied)?;
        place.folders().for_each(|folder| owner.sweep(folder));
        let name = owner.group(self.made);
        self.made += 1;
        let trial =
            if matches!(resource, Resource::Memory | Resource::Disk) { TRIAL_BYTES } else { TRIAL };
        let bounds = CgroupLimits::of(ResourceAmounts::only(resource, trial));
        let mut group = ControlGroup::make(
            place,
            place,
            &CgroupMembership::default(),
            &name,
            &bounds,
            &self.disks,
        )?;
        if resource == Resource::Disk {
            let weight = CgroupLimits { disk_weight: Some(1), ..CgroupLimits::default() };
            let weighed = group.set(&weight);
            self.undivided = weighed.err().map(|error| error.to_string());
        }
        if group.limits(resource) { Ok(()) } else { Err(denied()) }
    }
}

/// What limits a resource where no group does.
#[must_use]
pub fn without_group(resource: Resource) -> LimitMechanism {
    match resource {
        Resource::Cpu => LimitMechanism::DutyCycle,
        Resource::Pids if counts_in_namespaces() => LimitMechanism::Namespace,
        Resource::Pids | Resource::Memory => LimitMechanism::Watch,
        Resource::Disk => LimitMechanism::Nothing,
        Resource::OpenFiles => LimitMechanism::PerProcess,
    }
}

/// Whether the kernel counts a user's processes in each user namespace by itself, and whether that
/// limits the user: not the machine's root.
fn counts_in_namespaces() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    windtunnel_sys::process::current_user().uid != 0 && is_since_5_14(&release)
}

fn is_since_5_14(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let mut number = || numbers.next().and_then(Result::ok).unwrap_or(0);
    (number(), number()) >= (5, 14)
}

fn denied() -> io::Error {
    io::ErrorKind::PermissionDenied.into()
}

/// Any share and any count do.
const TRIAL: u64 = 100;
/// Any size does.
const TRIAL_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_as_numbers() {
        for (release, expected) in [
            ("5.14.0-1-amd64\n", true),
            ("6.1", true),
            ("5.9.16", false),
            ("4.19.0", false),
            ("", false),
        ] {
            assert_eq!(is_since_5_14(release), expected, "{release}");
        }
    }

    #[test]
    fn what_is_chosen_can_be_done_or_the_reasons_against_all_others_are_known() {
        let mut choice = LimitMechanismChoice::of_machine();
        for resource in GROUPED {
            if choice.group_of(resource).is_none() {
                assert!(choice.refusals_of(resource).len() >= 2, "{choice:?}");
            }
        }
        let most = ResourceAmounts {
            cpu_millis: Some(250),
            memory: Some(64 << 20),
            pids: Some(10),
            disk: Some(1 << 20),
            open_files: None,
        };
        let bounds = CgroupLimits { cpu_guarantee_millis: Some(100), ..CgroupLimits::of(most) };
        let Ok(mut group) = choice.group(None, &bounds) else {
            assert_eq!(choice.mechanism(), LimitMechanism::DutyCycle);
            return;
        };
        for resource in GROUPED {
            assert_eq!(group.limits(resource), choice.group_of(resource).is_some(), "{resource:?}");
        }
        let first = group.read().map(Result::unwrap);
        group.set(&CgroupLimits::of(ResourceAmounts::only(Resource::Cpu, 500))).unwrap();
        assert!(group.read().map(Result::unwrap).map(|it| it.now_ns) >= first.map(|it| it.now_ns));
        if let Some(memory) = group.memory() {
            assert_eq!(memory.unwrap().killed, 0);
        }
        if let Some(processes) = group.pids() {
            assert_eq!(processes.unwrap().count, 0);
        }
        let again = choice.join(&group.address(), &GROUPED).unwrap();
        for resource in GROUPED {
            assert_eq!(again.limits(resource), group.limits(resource), "{resource:?}");
        }
        assert_eq!(again.entrances().len(), group.entrances().len());
        again.leave();
        let inner = CgroupLimits::of(ResourceAmounts::only(Resource::Pids, 5));
        let inner = choice.group(Some(&group), &inner).unwrap();
        assert_eq!(inner.limits(Resource::Pids), choice.group_of(Resource::Pids).is_some());
    }
}
