//! What nodes left becomes the user's own: the agent, which has none of the run's rights, sends it to the
//! machine that leads and removes it here. One file that it cannot read would cost the run its results.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::Path;

use windtunnel_sys::process;

/// Makes all below a folder readable. No node may be left.
pub(super) fn take(folder: &Path) -> io::Result<()> {
    let user = process::current_user();
    if user.uid == 0 {
        // Its agent can read all.
        return Ok(());
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (path, meta) = (entry.path(), entry.metadata()?);
            if (meta.uid(), meta.gid()) != (user.uid, user.gid) {
                lchown(&path, Some(user.uid), Some(user.gid))?;
            }
            let needed = match meta.file_type() {
                kind if kind.is_dir() => 0o700,
                kind if kind.is_file() => 0o400,
                _ => continue,
            };
            if meta.mode() & needed != needed {
                fs::set_permissions(&path, Permissions::from_mode(meta.mode() & 0o777 | needed))?;
            }
            if meta.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_closed_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let closed = folder.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::write(closed.join("file"), "x").unwrap();
        std::os::unix::fs::symlink("nowhere", closed.join("link")).unwrap();
        let close = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
        close(&closed.join("file"));
        close(&closed);
        take(folder.path()).unwrap();
        assert_eq!(fs::read_to_string(closed.join("file")).unwrap(), "x");
    }
}
