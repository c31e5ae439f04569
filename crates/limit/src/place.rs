//! Where groups of the kernel are made: for each resource a folder in the hierarchy that limits it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use windtunnel_model::{LimitMechanism, Resource};

/// What a group can limit; disks need memory to have been tried before.
pub const GROUPED: [Resource; 4] =
    [Resource::Cpu, Resource::Memory, Resource::Pids, Resource::Disk];

/// The controller's name, in both versions. None counts descriptors.
pub(crate) const fn controller(resource: Resource) -> &'static str {
    match resource {
        Resource::Disk => "io",
        other => other.key(),
    }
}

/// Folders below which groups can be made: none, where nothing is allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CgroupParentFolders {
    /// Of version 2, in which a process is in one group for all resources.
    pub(crate) unified: Option<PathBuf>,
    /// The resources that groups in it can limit.
    pub(crate) given: Vec<Resource>,
    /// Of version 1, a hierarchy for each controller; `cpuacct` goes with `cpu`.
    pub(crate) first: Vec<(Resource, PathBuf)>,
    pub(crate) account: Option<PathBuf>,
}

impl CgroupParentFolders {
    /// The version that limits a resource, if any does.
    pub(crate) fn mechanism(&self, resource: Resource) -> Option<LimitMechanism> {
        if self.given.contains(&resource) {
            return Some(LimitMechanism::GroupV2);
        }
        self.first_folder(resource).map(|_| LimitMechanism::GroupV1)
    }

    pub(crate) fn first_folder(&self, resource: Resource) -> Option<&Path> {
        let mut found = self.first.iter().filter(|(other, _)| *other == resource);
        found.next().map(|(_, folder)| folder.as_path())
    }

    /// All of its folders.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        let first = self.first.iter().map(|(_, folder)| folder);
        first.chain(&self.account).chain(&self.unified).map(PathBuf::as_path)
    }

    /// As a text: `key=folder` with commas.
    pub(crate) fn address(&self) -> String {
        let given = self.given.iter().map(|resource| format!("given={}", controller(*resource)));
        let first = self
            .first
            .iter()
            .map(|(resource, folder)| format!("{}={}", controller(*resource), folder.display()));
        let account = self.account.iter().map(|folder| format!("cpuacct={}", folder.display()));
        let unified = self.unified.iter().map(|folder| format!("unified={}", folder.display()));
        unified.chain(given).chain(first).chain(account).collect::<Vec<_>>().join(",")
    }

    /// What [`CgroupParentFolders::address`] has written. All of its folders must be there.
    pub(crate) fn of_address(address: &str) -> io::Result<CgroupParentFolders> {
        let unknown = || io::Error::new(io::ErrorKind::InvalidInput, "no address of a group");
        let resource =
            |name: &str| GROUPED.into_iter().find(|it| controller(*it) == name).ok_or_else(unknown);
        let mut place = CgroupParentFolders::default();
        for part in address.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(unknown)?;
            match key {
                "unified" => place.unified = Some(value.into()),
                "given" => place.given.push(resource(value)?),
                "cpuacct" => place.account = Some(value.into()),
                other => place.first.push((resource(other)?, value.into())),
            }
        }
        if place.folders().all(Path::is_dir) { Ok(place) } else { Err(unknown()) }
    }

    /// Makes a group that limits these resources. Groups inside of it are made at the place that is
    /// returned. What cannot be completed is removed.
    pub(crate) fn make(
        &self,
        name: &str,
        resources: &[Resource],
    ) -> io::Result<(CgroupParentFolders, CgroupFolders)> {
        let mut made = CgroupFolders::default();
        let mut inside = self.clone();
        if let Some(unified) = &mut inside.unified {
            *unified = made.make(unified, name)?;
        }
        for (resource, folder) in &mut inside.first {
            if resources.contains(resource) {
                *folder = made.make(folder, name)?;
            }
        }
        let first = self.first_folder(Resource::Cpu);
        // Where accounts have a hierarchy of their own, one divides nothing: each group has one.
        let is_apart = self.account.as_deref() != first;
        let has_account = is_apart || resources.contains(&Resource::Cpu);
        if let Some(account) = inside.account.as_mut().filter(|_| has_account && first.is_some()) {
            *account = made.make(account, name)?;
        }
        Ok((inside, made))
    }

    /// What a group at this place, of which nothing else is known, may limit: that for which it has
    /// folders that `outside` does not have.
    pub(crate) fn limited(&self, outside: &CgroupParentFolders) -> Vec<Resource> {
        let given = self.given.iter().filter(|_| self.unified != outside.unified);
        let first = self.first.iter().filter(|it| !outside.first.contains(it));
        given.chain(first.map(|(resource, _)| resource)).copied().collect()
    }

    /// The folders of a group at this place, where `outside` has others. Dropping them removes them.
    pub(crate) fn folders_in(&self, outside: &CgroupParentFolders) -> CgroupFolders {
        CgroupFolders(self.own_folders(outside))
    }

    /// This place of one resource, and `outside` of all that have hierarchies of their own.
    pub(crate) fn only(
        &self,
        resource: Resource,
        outside: &CgroupParentFolders,
    ) -> CgroupParentFolders {
        let own = self.first.iter().filter(|(other, _)| *other == resource);
        let others = outside.first.iter().filter(|(other, _)| *other != resource);
        let mut first: Vec<(Resource, PathBuf)> = own.chain(others).cloned().collect();
        // In the order of all other places, by which they are compared.
        first.sort_by_key(|(resource, _)| outside.first.iter().position(|(it, _)| it == resource));
        CgroupParentFolders { first, ..self.clone() }
    }

    /// The folders of a group at this place, where `outside` has others.
    pub(crate) fn own_folders(&self, outside: &CgroupParentFolders) -> Vec<PathBuf> {
        let others: Vec<&Path> = outside.folders().collect();
        let mut own: Vec<PathBuf> =
            self.folders().filter(|it| !others.contains(it)).map(Path::to_owned).collect();
        own.sort_unstable();
        own.dedup();
        own
    }

    /// Has groups inside of this one limit what it may: of version 2 it can have no processes of
    /// its own then.
    pub(crate) fn divide(&self) -> io::Result<()> {
        let Some(unified) = &self.unified else { return Ok(()) };
        self.given.iter().try_for_each(|resource| give(unified, *resource))
    }

    /// What a process writes itself to, to be in the groups of this place that are not those of
    /// `outside`.
    pub(crate) fn entrances(&self, outside: &CgroupParentFolders) -> io::Result<Vec<File>> {
        let unified =
            (self.unified != outside.unified).then_some(self.unified.as_deref()).flatten();
        let account =
            (self.account != outside.account).then_some(self.account.as_deref()).flatten();
        let pairs = self.first.iter().zip(&outside.first);
        let first = pairs.filter(|(own, other)| own != other).map(|(own, _)| own.1.as_path());
        let mut folders: Vec<&Path> = unified.into_iter().chain(account).chain(first).collect();
        folders.sort_unstable();
        folders.dedup();
        folders.into_iter().map(|folder| write_only(&folder.join("cgroup.procs"))).collect()
    }
}

/// Folders of groups, the outermost last, which are removed when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct CgroupFolders(Vec<PathBuf>);

impl CgroupFolders {
    /// Makes one, unless it is there already for another controller of the same hierarchy.
    fn make(&mut self, parent: &Path, name: &str) -> io::Result<PathBuf> {
        let folder = parent.join(name);
        if !self.0.contains(&folder) {
            fs::create_dir(&folder)?;
            self.0.push(folder.clone());
        }
        Ok(folder)
    }
}

impl CgroupFolders {
    /// They stay.
    pub(crate) fn leave(&mut self) {
        self.0.clear();
    }
}

impl Drop for CgroupFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            remove(folder);
        }
    }
}

/// A process that was killed leaves its group a moment later.
fn remove(folder: &Path) {
    for _ in 0..REMOVALS {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            // What cannot be removed is found by a later run.
            _ => break,
        }
    }
}

/// Has the groups inside of one limit a resource. The kernel refuses that where it has processes of
/// its own.
pub(crate) fn give(folder: &Path, resource: Resource) -> io::Result<()> {
    let control = folder.join("cgroup.subtree_control");
    let given = fs::read_to_string(&control)?;
    if has_word(&given, controller(resource)) {
        return Ok(());
    }
    let mut control = write_only(&control)?;
    io::Write::write_all(&mut control, format!("+{}", controller(resource)).as_bytes())
}

/// Whether a list of words has this one.
pub(crate) fn has_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|other| other == word)
}

/// For what is set and read back.
pub(crate) fn read_write(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(path)
}

pub(crate) fn write_only(path: &Path) -> io::Result<File> {
    File::options().write(true).open(path)
}

/// How often a removal is tried, a millisecond apart.
const REMOVALS: u32 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn is_empty(folder: &Path) -> bool {
        fs::read_dir(folder).unwrap().next().is_none()
    }

    #[test]
    fn a_group_of_version_1_is_in_the_hierarchies_of_what_it_limits() {
        let root = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = root.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder
        };
        let place = CgroupParentFolders {
            first: vec![
                (Resource::Cpu, folder("cpu")),
                (Resource::Memory, folder("memory")),
                (Resource::Pids, folder("pids")),
            ],
            account: Some(folder("cpuacct")),
            ..CgroupParentFolders::default()
        };
        let (inside, made) = place.make("a", &[Resource::Memory]).unwrap();
        assert_eq!(inside.first_folder(Resource::Memory), Some(&*root.path().join("memory/a")));
        assert_eq!(inside.first_folder(Resource::Cpu), place.first_folder(Resource::Cpu));
        assert!(is_empty(&root.path().join("cpu")));
        assert_eq!(inside.account, Some(root.path().join("cpuacct/a")), "it divides nothing");
        let (within, inner) = inside.make("b", &GROUPED).unwrap();
        assert_eq!(within.first_folder(Resource::Memory), Some(&*root.path().join("memory/a/b")));
        assert_eq!(within.first_folder(Resource::Pids), Some(&*root.path().join("pids/b")));
        assert_eq!(within.account, Some(root.path().join("cpuacct/a/b")));
        drop(inner);
        drop(made);
        for name in ["cpu", "memory", "pids", "cpuacct"] {
            assert!(is_empty(&root.path().join(name)), "{name}");
        }
    }

    #[test]
    fn a_place_is_found_by_its_address() {
        let root = tempfile::tempdir().unwrap();
        let place = CgroupParentFolders {
            unified: Some(root.path().to_owned()),
            given: vec![Resource::Memory],
            first: vec![(Resource::Cpu, root.path().to_owned())],
            account: Some(root.path().to_owned()),
        };
        assert_eq!(CgroupParentFolders::of_address(&place.address()).unwrap(), place);
        assert!(CgroupParentFolders::of_address("cpu=/no/such/folder").is_err());
        assert!(CgroupParentFolders::of_address("disk=/").is_err());
        assert!(CgroupParentFolders::of_address("").is_err());
    }

    #[test]
    fn a_group_of_version_2_is_one_folder_and_gives_on_what_it_has() {
        let root = tempfile::tempdir().unwrap();
        let given = vec![Resource::Cpu, Resource::Memory];
        let unified = Some(root.path().to_owned());
        let place = CgroupParentFolders { unified, given, ..CgroupParentFolders::default() };
        assert_eq!(place.mechanism(Resource::Memory), Some(LimitMechanism::GroupV2));
        assert_eq!(place.mechanism(Resource::Pids), None);
        let (inside, made) = place.make("a", &[Resource::Memory]).unwrap();
        let control = root.path().join("a/cgroup.subtree_control");
        fs::write(&control, "cpu\n").unwrap();
        inside.divide().unwrap();
        // The kernel reads words with a sign; this is an ordinary file.
        assert_eq!(fs::read_to_string(&control).unwrap(), "+memory");
        fs::write(root.path().join("a/cgroup.procs"), "").unwrap();
        assert_eq!(inside.entrances(&place).unwrap().len(), 1);
        assert!(place.entrances(&place).unwrap().is_empty());
        drop(made);
    }
}
