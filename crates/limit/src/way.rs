//! The way into groups below one of version 2: a group whose groups limit something can have no
//! processes of its own. Source: cgroups(7), the kernel's Documentation/admin-guide/cgroup-v2.rst,
//! "No Internal Process Constraint" and "Threads".

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

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
    let kind = match fs::read_to_string(folder.join("cgroup.type")) {
        Ok(kind) => kind,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if kind.trim() != "domain" {
        let why = format!("it is `{}`, and groups below cannot be entered", kind.trim());
        return Err(io::Error::new(ErrorKind::ResourceBusy, why));
    }
    let inside = fs::read_to_string(folder.join("cgroup.procs"))?;
    let mut inside = inside.split_ascii_whitespace();
    match (inside.next(), inside.next()) {
        (None, _) => Ok(()),
        (Some(only), None) if only == std::process::id().to_string() => move_into(folder, leaf),
        _ => Err(io::Error::new(ErrorKind::ResourceBusy, "other processes are in it")),
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
