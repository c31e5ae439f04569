//! The way into groups below one of version 2: a group whose groups limit something can have no
//! processes of its own. Source: cgroups(7), the kernel's Documentation/admin-guide/cgroup-v2.rst,
//! "No Internal Process Constraint" and "Threads".

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::place::has_word;

/// Makes it so that groups in this folder can limit what it gives them. A process that is alone in
/// it, as one that systemd has given a scope, moves into a group below with this name. The group at the
/// top may have processes.
///
/// Without this the kernel gives on processor time and pids all the same: the group becomes threaded,
/// for good, and no process can enter those below.
///
/// # Errors
/// If other processes are in it, or it is threaded already.
pub(crate) fn clear(folder: &Path, leaf: &str) -> io::Result<()> {
    if !is_below_the_top(folder)? {
        return Ok(());
    }
    match processes(folder)?.as_slice() {
        [] => Ok(()),
        [only] if *only == std::process::id() => move_into(folder, leaf),
        _ => Err(has_others()),
    }
}

/// Whether it is not the group at the top, which may have processes beside groups that limit something.
///
/// # Errors
/// If no process can enter groups below.
fn is_below_the_top(folder: &Path) -> io::Result<bool> {
    match fs::read_to_string(folder.join("cgroup.type")) {
        Ok(kind) if kind.trim() == "domain" => Ok(true),
        Ok(kind) => {
            let why = format!("it is `{}`, and groups below cannot be entered", kind.trim());
            Err(io::Error::new(ErrorKind::ResourceBusy, why))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn has_others() -> io::Error {
    io::Error::new(ErrorKind::ResourceBusy, "other processes are in it")
}

/// A group of version 2 whose processes are in one below of it meanwhile. Dropping it puts them back.
#[derive(Debug)]
pub(crate) struct EvacuatedCgroup {
    folder: PathBuf,
    leaf: PathBuf,
    /// What groups in it could limit before.
    given: String,
}

impl EvacuatedCgroup {
    /// Moves all processes of a group into one below with this name; `None`: that is not needed.
    ///
    /// # Errors
    /// If it has processes that are not inside, or is threaded.
    pub(crate) fn make(
        folder: &Path,
        leaf: &str,
        is_inside: &dyn Fn(u32) -> bool,
    ) -> io::Result<Option<EvacuatedCgroup>> {
        if !is_below_the_top(folder)? {
            return Ok(None);
        }
        if !processes(folder)?.into_iter().all(is_inside) {
            return Err(has_others());
        }
        let leaf = folder.join(leaf);
        let given = fs::read_to_string(folder.join("cgroup.subtree_control"))?;
        fs::create_dir(&leaf)?;
        let emptied = EvacuatedCgroup { folder: folder.to_owned(), leaf, given };
        let is_empty = move_all(&emptied.folder, &emptied.leaf, is_inside)?;
        if is_empty { Ok(Some(emptied)) } else { Err(has_others()) }
    }

    /// Where the processes of the group are.
    pub(crate) fn leaf(&self) -> &Path {
        &self.leaf
    }
}

impl Drop for EvacuatedCgroup {
    fn drop(&mut self) {
        let control = self.folder.join("cgroup.subtree_control");
        for controller in fs::read_to_string(&control).unwrap_or_default().split_ascii_whitespace()
        {
            if !has_word(&self.given, controller) {
                // A group that somebody else has made there may need it.
                let _ = fs::write(&control, format!("-{controller}"));
            }
        }
        // What cannot be moved back stays in a group without limits.
        let _ = move_all(&self.leaf, &self.folder, &|_| true);
        let _ = fs::remove_dir(&self.leaf);
    }
}

/// The processes of a group.
pub(crate) fn processes(folder: &Path) -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(folder.join("cgroup.procs"))?;
    Ok(text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect())
}

/// Moves processes from a group into another one, and those that they make meanwhile; whether all are
/// there.
///
/// # Errors
/// What the kernel says: `EACCES` without the right to.
pub(crate) fn move_all(
    from: &Path,
    to: &Path,
    is_inside: &dyn Fn(u32) -> bool,
) -> io::Result<bool> {
    for _ in 0..ROUNDS_MAX {
        let all = processes(from)?;
        if all.is_empty() {
            return Ok(true);
        }
        for process in all {
            if !is_inside(process) {
                return Ok(false);
            }
            put(to, process)?;
        }
    }
    Ok(false)
}

/// Moves a process into a group, unless it has ended.
pub(crate) fn put(to: &Path, process: u32) -> io::Result<()> {
    match fs::write(to.join("cgroup.procs"), process.to_string()) {
        Err(error) if error.raw_os_error() == Some(ESRCH) => Ok(()),
        other => other,
    }
}

/// The group stays when the process has ended: what systemd has given it removes, and otherwise the
/// next run of the same user.
fn move_into(folder: &Path, leaf: &str) -> io::Result<()> {
    let leaf = folder.join(leaf);
    fs::create_dir(&leaf)?;
    let moved = fs::write(leaf.join("cgroup.procs"), std::process::id().to_string());
    if moved.is_err() {
        // It is empty.
        let _ = fs::remove_dir(&leaf);
    }
    moved
}

/// How often processes that are made meanwhile are moved as well.
pub(crate) const ROUNDS_MAX: u32 = 1000;
/// "No such process", of errno(3).
const ESRCH: i32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(kind: Option<&str>, processes: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("cgroup.procs"), processes).unwrap();
        if let Some(kind) = kind {
            fs::write(folder.path().join("cgroup.type"), kind).unwrap();
        }
        folder
    }

    #[test]
    fn a_group_without_processes_and_the_one_at_the_top_stay_as_they_are() {
        for folder in [folder(Some("domain\n"), ""), folder(None, "1\n2\n")] {
            clear(folder.path(), "leaf").unwrap();
            assert!(!folder.path().join("leaf").exists());
        }
    }

    #[test]
    fn a_process_that_is_alone_moves_into_a_group_below() {
        let own = std::process::id().to_string();
        let folder = folder(Some("domain\n"), &format!("{own}\n"));
        clear(folder.path(), "leaf").unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("leaf/cgroup.procs")).unwrap(), own);
    }

    #[test]
    fn a_group_with_others_and_one_that_is_threaded_are_left_alone() {
        let own = std::process::id();
        for folder in [
            folder(Some("domain\n"), &format!("1\n{own}\n")),
            folder(Some("domain threaded\n"), ""),
        ] {
            let error = clear(folder.path(), "leaf").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ResourceBusy, "{error}");
            assert!(!folder.path().join("leaf").exists());
        }
    }
}
