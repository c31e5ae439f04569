//! To which process a control group belongs: its name says so, so that what a process has left that
//! was killed can be found, and nothing else is ever touched.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A process of this machine, which no other ever equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CgroupOwner {
    /// The PID namespace in which the number holds.
    namespace: u64,
    pid: u32,
    /// When it began, in ticks since the machine did.
    began: u64,
}

impl CgroupOwner {
    /// The calling process.
    pub(crate) fn current() -> io::Result<CgroupOwner> {
        let malformed = || io::Error::from(io::ErrorKind::InvalidData);
        let pid = std::process::id();
        let began = began(pid).ok_or_else(malformed)?;
        Ok(CgroupOwner { namespace: fs::metadata(NAMESPACE)?.ino(), pid, began })
    }

    /// The name of its group with this number.
    pub(crate) fn group(&self, number: usize) -> String {
        let CgroupOwner { namespace, pid, began } = self;
        format!("{PREFIX}{namespace}-{pid}-{began}-{number}")
    }

    /// Whose group has this name; `None`: none of ours.
    fn of_group(name: &str) -> Option<CgroupOwner> {
        let mut parts = name.strip_prefix(PREFIX)?.split('-');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (namespace, pid, began) = (number()?, number()?, number()?);
        let _ = number()?;
        let owner = CgroupOwner { namespace, pid: u32::try_from(pid).ok()?, began };
        parts.next().is_none().then_some(owner)
    }

    fn lives(&self) -> bool {
        began(self.pid) == Some(self.began)
    }

    /// Removes from a folder the groups of processes that are gone. One that is not empty stays:
    /// the kernel does not remove it.
    pub(crate) fn sweep(&self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(CgroupOwner::of_group);
            let is_left = |other: CgroupOwner| other.namespace == self.namespace && !other.lives();
            if owner.is_some_and(is_left) {
                self.remove_tree(&entry.path());
            }
        }
    }

    /// Removes a group of ours, those inside of it first, but for those of processes that live: several
    /// commands share one. Another run may have been faster.
    fn remove_tree(&self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let owner = entry.file_name().to_str().and_then(CgroupOwner::of_group);
            let lives = owner.is_some_and(|it| it.namespace != self.namespace || it.lives());
            if !lives && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.remove_tree(&entry.path());
            }
        }
        let _ = fs::remove_dir(folder);
    }
}

/// When a process began that has not ended: the 22nd field of proc_pid_stat(5), behind a name that
/// may hold anything. One that is yet to be waited for has ended, too.
fn began(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    if rest.starts_with(['Z', 'X']) {
        return None;
    }
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

const PREFIX: &str = "windtunnel-";
const NAMESPACE: &str = "/proc/self/ns/pid";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_groups_name_says_whose_it_is() {
        let owner = CgroupOwner::current().unwrap();
        assert_eq!(CgroupOwner::of_group(&owner.group(7)), Some(owner));
        assert!(owner.lives());
        for name in ["windtunnel", "windtunnel-1-2-3", "windtunnel-1-2-3-4-5", "x-1-2-3-4"] {
            assert_eq!(CgroupOwner::of_group(name), None, "{name}");
        }
    }

    #[test]
    fn only_groups_of_processes_of_ours_that_are_gone_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let own = CgroupOwner::current().unwrap();
        let gone = CgroupOwner { began: own.began + 1, ..own };
        let elsewhere = CgroupOwner { namespace: own.namespace + 1, ..gone };
        let names = [own.group(0), elsewhere.group(0), "system.slice".to_owned(), gone.group(3)];
        for name in &names {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::create_dir(folder.path().join(&names[3]).join(gone.group(4))).unwrap();
        let shared = folder.path().join(gone.group(5)).join(own.group(6));
        fs::create_dir_all(&shared).unwrap();
        own.sweep(folder.path());
        let left: Vec<bool> = names.iter().map(|name| folder.path().join(name).exists()).collect();
        assert_eq!(left, [true, true, true, false]);
        assert!(shared.exists(), "a command lives that shares it");
    }
}
