//! Whether processes are in the control group that limits them.
//!
//! A process that may write to a group of the machine, as root's may, can leave its own: what it
//! does then is limited by nothing, and counted by nothing. So it is looked for. Each hierarchy of
//! version 1 is left by itself, and there by a thread alone. Source: cgroups(7), `/proc/PID/cgroup`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use windtunnel_model::Resource;
use windtunnel_sys::process::Pid;

use crate::hierarchy::{Hierarchy, groups_of};
use crate::place::{CgroupParentFolders, controller};
use crate::tree::ProcessState;

/// A process that is not in its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscapedProcess {
    pub pid: Pid,
    /// As it calls itself.
    pub name: String,
    /// What does not limit it.
    pub resources: Vec<Resource>,
}

/// The places of a group, as `/proc/PID/cgroup` has them.
#[derive(Debug, Default)]
pub(crate) struct CgroupMembership {
    homes: Vec<CgroupHierarchyPath>,
    /// What was outside at the last look and may not have been a program yet, with when it began.
    put_off: Vec<(Pid, u64)>,
}

/// The place in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CgroupHierarchyPath {
    /// The controllers of a hierarchy of version 1; none: version 2.
    controllers: String,
    path: PathBuf,
    resources: Vec<Resource>,
}

impl CgroupMembership {
    /// Of a group at a place that has these folders and limits these resources.
    pub(crate) fn of(
        place: &CgroupParentFolders,
        folders: &[PathBuf],
        limited: &[Resource],
    ) -> CgroupMembership {
        static AT_START: OnceLock<Option<Hierarchy>> = OnceLock::new();
        // What is mounted where does not change for this process until it has made its groups.
        let hierarchy = AT_START.get_or_init(|| Hierarchy::of_process().ok()).as_ref();
        hierarchy
            .map(|it| CgroupMembership::within(it, folders, &place.given, limited))
            .unwrap_or_default()
    }

    /// `given` is what version 2 limits of these.
    fn within(
        hierarchy: &Hierarchy,
        folders: &[PathBuf],
        given: &[Resource],
        limited: &[Resource],
    ) -> CgroupMembership {
        let home = |folder: &PathBuf| {
            let (controllers, path) = hierarchy.path_of(folder)?;
            let limits = |it: &&Resource| match controllers.is_empty() {
                true => given.contains(it),
                false => is_of(**it, &controllers),
            };
            let resources = limited.iter().filter(limits).copied().collect::<Vec<_>>();
            (!resources.is_empty()).then_some(CgroupHierarchyPath { controllers, path, resources })
        };
        CgroupMembership { homes: folders.iter().filter_map(home).collect(), put_off: Vec::new() }
    }

    /// What is in a group is in that around it, too.
    pub(crate) fn add(&mut self, around: &CgroupMembership) {
        let more = around.homes.iter().filter(|home| !self.homes.contains(home)).cloned();
        let more: Vec<CgroupHierarchyPath> = more.collect();
        self.homes.extend(more);
    }

    /// What is limited where processes are.
    pub(crate) fn resources(&self) -> Vec<Resource> {
        once_each(self.homes.iter().flat_map(|home| &home.resources))
    }

    /// What does not limit a process any more.
    pub(crate) fn left_by(&self, process: Pid) -> Vec<Resource> {
        self.left(&PathBuf::from(format!("/proc/{}", process.as_raw_nonzero())))
    }

    /// Those of some processes that have left, of those that run. Our own program is not looked at:
    /// what is about to become another one enters its group before it does. An ordinary user cannot see
    /// the program of each process; where it cannot be seen of one that has not called execve(2), or
    /// that is about to end, that one counts if it is outside at the next look as well.
    pub(crate) fn outsiders(&mut self, processes: &[Pid]) -> Vec<EscapedProcess> {
        if self.homes.is_empty() {
            return Vec::new();
        }
        let own = program(Path::new("/proc/self/exe"));
        let before = std::mem::take(&mut self.put_off);
        let mut found = Vec::new();
        for pid in processes {
            let Some((outsider, is_program)) = self.outsider(*pid, own) else { continue };
            let state = ProcessState::of(*pid).filter(|state| !state.has_ended());
            let Some(state) = state else { continue };
            let (id, is_passing) = ((*pid, state.began), state.is_beginning_or_ending());
            if is_passing && !is_program && !before.contains(&id) {
                self.put_off.push(id);
            } else {
                found.push(outsider);
            }
        }
        found
    }

    /// One that is outside, and whether its program can be seen now. One that ends loses its program
    /// before its groups, so that what only seems to have left has none.
    fn outsider(&self, pid: Pid, own: Option<(u64, u64)>) -> Option<(EscapedProcess, bool)> {
        let folder = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
        let exe = folder.join("exe");
        // In this order: what is another program now has entered its group.
        if own.is_some() && program(&exe) == own {
            return None;
        }
        let resources = self.left(&folder);
        if resources.is_empty() {
            return None;
        }
        let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
        let outsider = EscapedProcess { pid, name: name.trim_end().to_owned(), resources };
        Some((outsider, program(&exe).is_some()))
    }

    /// What does not limit a process, or one of its threads, any more.
    fn left(&self, folder: &Path) -> Vec<Resource> {
        let is_by_thread = self.homes.iter().any(|home| !home.controllers.is_empty());
        let places: Vec<PathBuf> = if is_by_thread {
            // The first thread, whose groups are those of the process, is among them.
            let threads = fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
            threads.map(|it| it.path()).collect()
        } else {
            vec![folder.to_owned()]
        };
        let texts = places.iter().map(|place| fs::read_to_string(place.join("cgroup")));
        let left: Vec<Resource> =
            texts.flat_map(|text| self.missing(&text.unwrap_or_default())).collect();
        once_each(left.iter())
    }

    /// What the groups of a text do not limit.
    fn missing(&self, text: &str) -> Vec<Resource> {
        let is_at_home = |home: &CgroupHierarchyPath| {
            let own = groups_of(text).find(|(controllers, _)| *controllers == home.controllers);
            own.is_none_or(|(_, path)| Path::new(path).starts_with(&home.path))
        };
        let left = self.homes.iter().filter(|home| !is_at_home(home));
        once_each(left.flat_map(|home| &home.resources))
    }
}

fn once_each<'a>(resources: impl Iterator<Item = &'a Resource>) -> Vec<Resource> {
    let mut all: Vec<Resource> = Vec::new();
    for resource in resources {
        if !all.contains(resource) {
            all.push(*resource);
        }
    }
    all
}

/// Whether groups with these controllers limit a resource, or account for it.
fn is_of(resource: Resource, controllers: &str) -> bool {
    controllers
        .split(',')
        .any(|name| name == controller(resource) || name == "cpuacct" && resource == Resource::Cpu)
}

/// By what a program is known again.
pub(crate) fn program(link: &Path) -> Option<(u64, u64)> {
    fs::metadata(link).ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn membership() -> CgroupMembership {
        let root = tempfile::tempdir().unwrap();
        let folders = ["cpu/box/g", "acct/box/g", "mem/box/g", "two/box/g"];
        let folders = folders.map(|name| root.path().join(name));
        folders.iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
        let at = root.path().display();
        let hierarchy = Hierarchy::parsed(
            &format!(
                "1 2 0:26 / {at}/cpu rw - cgroup cgroup rw,cpu\n\
                 2 2 0:27 / {at}/acct rw - cgroup cgroup rw,cpuacct\n\
                 3 2 0:28 /outer {at}/mem rw - cgroup cgroup rw,memory\n\
                 4 2 0:29 / {at}/two rw - cgroup2 cgroup2 rw\n"
            ),
            "4:cpu:/\n3:cpuacct:/\n2:memory:/outer\n0::/\n",
        );
        let limited = [Resource::Cpu, Resource::Memory];
        CgroupMembership::within(&hierarchy, &folders, &[], &limited)
    }

    #[test]
    fn a_process_in_its_group_or_in_one_below_is_no_outsider() {
        let inside = "9:pids:/\n4:cpu:/box/g\n3:cpuacct:/box/g/own\n2:memory:/outer/box/g\n0::/\n";
        assert_eq!(membership().missing(inside), []);
    }

    #[test]
    fn what_a_group_around_limits_is_left_with_it_and_not_before() {
        let mut inner = CgroupMembership::default();
        inner.add(&membership());
        inner.homes.push(CgroupHierarchyPath {
            controllers: "pids".to_owned(),
            path: "/box/g/inner".into(),
            resources: vec![Resource::Pids],
        });
        let around = "4:cpu:/box/g\n3:cpuacct:/box/g\n2:memory:/outer/box/g\n";
        let sibling = format!("9:pids:/box/g/other\n{around}");
        assert_eq!(inner.missing(&sibling), [Resource::Pids]);
        assert_eq!(inner.missing("9:pids:/\n4:cpu:/\n2:memory:/outer\n").len(), 3);
    }

    #[test]
    fn each_hierarchy_is_left_by_itself() {
        let text = "4:cpu:/\n3:cpuacct:/box/g\n2:memory:/outer/box/g\n0::/\n";
        assert_eq!(membership().missing(text), [Resource::Cpu]);
        let text = "4:cpu:/box/g\n3:cpuacct:/box/go\n2:memory:/outer/box\n0::/\n";
        assert_eq!(membership().missing(text), [Resource::Cpu, Resource::Memory]);
    }
}
