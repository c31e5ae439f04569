//! Where control groups can be made: below the group that the process is in, so that whatever
//! limits it holds for nodes, too. Source: cgroups(7), proc_pid_mountinfo(5).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The control groups of a process, as the kernel describes them.
#[derive(Debug)]
pub(crate) struct Hierarchy {
    /// `/proc/self/mountinfo`.
    mounts: String,
    /// `cgroup` of the process.
    own: String,
}

impl Hierarchy {
    /// Of the calling process.
    pub(crate) fn of_process() -> io::Result<Hierarchy> {
        Hierarchy::of(std::process::id())
    }

    /// Of any process, where the calling one sees it.
    pub(crate) fn of(process: u32) -> io::Result<Hierarchy> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        Ok(Hierarchy { mounts, own: fs::read_to_string(format!("/proc/{process}/cgroup"))? })
    }

    /// The folder of the own group of a controller of version 1.
    pub(crate) fn first_version(&self, controller: &str) -> Option<PathBuf> {
        let is_named = |list: &str| has_option(list, controller);
        let own = self.own_path(is_named)?;
        let mut mounts = self.mounts("cgroup").filter(|mount| is_named(mount.options));
        mounts.find_map(|mount| mount.folder_of(own))
    }

    /// The own group of version 2 and those around it, the innermost first.
    pub(crate) fn second_version(&self) -> Vec<PathBuf> {
        let own = self.own_path(str::is_empty);
        let found = self.mounts("cgroup2").find_map(|mount| Some((mount.folder_of(own?)?, mount)));
        let Some((own, mount)) = found else { return Vec::new() };
        let inside = own.ancestors().take_while(|folder| folder.starts_with(mount.point));
        inside.map(Path::to_owned).collect()
    }

    /// Of a folder of groups, the controllers of its hierarchy (none: version 2) and its path there,
    /// as `/proc/PID/cgroup` has them.
    pub(crate) fn path_of(&self, folder: &Path) -> Option<(String, PathBuf)> {
        let mounts = self.mounts("cgroup").chain(self.mounts("cgroup2"));
        let around = mounts.filter(|mount| folder.starts_with(mount.point));
        let mount = around.max_by_key(|mount| mount.point.len())?;
        let inside = folder.strip_prefix(mount.point).ok()?;
        let path = Path::new(mount.root).join(inside).components().collect();
        if mount.kind == "cgroup2" {
            return Some((String::new(), path));
        }
        let mut lines = groups_of(&self.own).map(|(controllers, _)| controllers);
        let is_own = |list: &&str| list.split(',').all(|name| has_option(mount.options, name));
        let controllers = lines.find(|list| !list.is_empty() && is_own(list))?;
        Some((controllers.to_owned(), path))
    }

    #[cfg(test)]
    pub(crate) fn parsed(mounts: &str, own: &str) -> Hierarchy {
        Hierarchy { mounts: mounts.to_owned(), own: own.to_owned() }
    }

    fn own_path(&self, is_wanted: impl Fn(&str) -> bool) -> Option<&str> {
        groups_of(&self.own).find(|own| is_wanted(own.0)).map(|(_, path)| path)
    }

    fn mounts(&self, kind: &str) -> impl Iterator<Item = CgroupMount<'_>> {
        let lines = self.mounts.lines().filter_map(CgroupMount::of_line);
        lines.filter(move |mount| mount.kind == kind)
    }
}

/// The controllers and the path of each line `number:controllers:path` of `/proc/PID/cgroup`.
pub(crate) fn groups_of(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'))
}

fn has_option(options: &str, name: &str) -> bool {
    options.split(',').any(|option| option == name)
}

/// A mounted hierarchy.
#[derive(Debug)]
struct CgroupMount<'a> {
    /// What of the hierarchy is mounted.
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    /// The controllers are among them.
    options: &'a str,
}

impl<'a> CgroupMount<'a> {
    fn of_line(line: &'a str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let mut after = after.split(' ');
        let (root, point) = (before.next()?, before.next()?);
        Some(CgroupMount { root, point, kind: after.next()?, options: after.nth(1)? })
    }

    /// The folder of a group, if it is below what is mounted.
    fn folder_of(&self, group: &str) -> Option<PathBuf> {
        let inside = Path::new(group).strip_prefix(self.root).ok()?;
        // As a path without `/` at its end, also for the group that is mounted.
        let folder: PathBuf = Path::new(self.point).join(inside).components().collect();
        folder.is_dir().then_some(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_below_what_is_mounted_of_each_version() {
        let root = tempfile::tempdir().unwrap();
        let folder = |name: &str| root.path().join(name);
        for name in ["cpu,cpuacct/user", "unified/a.slice/b.scope"] {
            fs::create_dir_all(folder(name)).unwrap();
        }
        let at = root.path().display();
        let hierarchy = Hierarchy {
            mounts: format!(
                "30 25 0:26 /box {at}/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                 31 25 0:27 / {at}/unified rw - cgroup2 cgroup2 rw,nsdelegate\n\
                 32 25 0:28 / / rw - ext4 /dev/vda rw\n"
            ),
            own: "4:cpu,cpuacct:/box/user\n2:pids:/\n0::/a.slice/b.scope\n".to_owned(),
        };
        assert_eq!(hierarchy.first_version("cpu"), Some(folder("cpu,cpuacct/user")));
        assert_eq!(hierarchy.first_version("cpuacct"), Some(folder("cpu,cpuacct/user")));
        assert_eq!(hierarchy.first_version("pids"), None);
        let around = ["unified/a.slice/b.scope", "unified/a.slice", "unified"].map(folder);
        assert_eq!(hierarchy.second_version(), around);
    }

    #[test]
    fn a_group_outside_of_what_is_mounted_has_no_folder() {
        let mounts = "30 25 0:26 /box /tmp rw - cgroup cgroup rw,cpu\n".to_owned();
        let hierarchy = Hierarchy { mounts, own: "4:cpu:/other\n".to_owned() };
        assert_eq!(hierarchy.first_version("cpu"), None);
        assert!(hierarchy.second_version().is_empty());
    }
}
