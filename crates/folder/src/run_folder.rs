//! The run folder: where everything about a run is kept.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windtunnel_model::Plan;
use windtunnel_model::name::{LABEL_LETTERS_MAX, check_label};
use windtunnel_model::valid::shown;
use windtunnel_sys::below::FolderHandle;

use crate::reserve::{self, PreallocatedFile};

/// The run folder could not be made or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} {path}")]
pub struct FolderError {
    pub verb: &'static str,
    pub path: PathBuf,
    #[source]
    pub source: io::Error,
}

impl FolderError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let hint = match self.source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "make room there, or name a folder on another file system with --out DIR"
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "name a folder that you may write in with --out DIR"
            }
            _ => "name a new folder with --out DIR",
        };
        hint.to_owned()
    }
}

/// A run folder that exists. Programs of the run may write in it: what is written here goes to the
/// folder that was opened when it was made, through no link.
#[derive(Debug, Clone)]
pub struct RunOutputFolder {
    root: PathBuf,
    below: Arc<FolderHandle>,
}

impl RunOutputFolder {
    /// Makes `root` with a folder for each node. An existing folder must be empty: results of
    /// another run are never mixed or overwritten.
    ///
    /// # Errors
    /// If it cannot be made or is not empty.
    pub fn create(root: &Path, plan: &Plan) -> Result<Self, FolderError> {
        let folder = RunOutputFolder::create_bare(root)?;
        for node in &plan.nodes {
            let path = folder.node(&node.name);
            // A plan may come from another machine: whatever else has looked at it, nothing leaves
            // this folder.
            if let Err(error) = check_label(&node.name, LABEL_LETTERS_MAX) {
                let strange = format!("`{}` cannot name a node: {error}", shown(&node.name));
                let source = io::Error::new(io::ErrorKind::InvalidInput, strange);
                return Err(failed("make the folder", &path)(source));
            }
            make(&path)?;
        }
        Ok(folder)
    }

    /// Makes `root`, or takes it if it is empty.
    ///
    /// # Errors
    /// As [`RunOutputFolder::create`].
    pub fn create_bare(root: &Path) -> Result<Self, FolderError> {
        make(root)?;
        let root = fs::canonicalize(root).map_err(failed("find", root))?;
        let mut entries = fs::read_dir(&root).map_err(failed("read", &root))?;
        if entries.next().is_some() {
            let not_empty = io::Error::new(io::ErrorKind::AlreadyExists, "it is not empty");
            return Err(failed("use", &root)(not_empty));
        }
        let below = Arc::new(FolderHandle::open(&root).map_err(failed("open", &root))?);
        Ok(RunOutputFolder { root, below })
    }

    /// Points `latest` beside the folder to it. Only called for folders that windtunnel itself has
    /// named.
    ///
    /// # Errors
    /// If the link cannot be made.
    pub fn link_latest(&self) -> Result<(), FolderError> {
        let (Some(parent), Some(name)) = (self.root.parent(), self.root.file_name()) else {
            return Ok(());
        };
        let latest = parent.join("latest");
        // Made aside and renamed, so that there is always a whole link.
        let aside = parent.join(format!(".latest-{}", std::process::id()));
        let _ = fs::remove_file(&aside);
        symlink(name, &aside).map_err(failed("link", &aside))?;
        fs::rename(&aside, &latest).map_err(failed("link", &latest))
    }

    /// The folder that `latest` beside this one points to.
    #[must_use]
    pub fn latest(&self) -> Option<PathBuf> {
        fs::read_link(self.root.parent()?.join("latest")).ok()
    }

    /// Lets `latest` point to what it pointed to before [`RunOutputFolder::link_latest`], if it points to
    /// this folder: what is in it is not the run.
    pub fn unlink_latest(&self, former: Option<&Path>) {
        let (Some(parent), Some(name)) = (self.root.parent(), self.root.file_name()) else {
            return;
        };
        if self.latest().as_deref() != Some(Path::new(name)) {
            return;
        }
        // That it points to a part of a run is said in there, too.
        let _ = fs::remove_file(parent.join("latest"));
        if let Some(former) = former {
            let _ = symlink(former, parent.join("latest"));
        }
    }

    /// Removes the folder: nothing worth keeping has happened.
    pub fn discard(&self) {
        // What cannot be removed is harmless.
        let _ = fs::remove_dir_all(&self.root);
    }

    /// The folder itself, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The same, open.
    #[must_use]
    pub fn below(&self) -> &Arc<FolderHandle> {
        &self.below
    }

    /// The folder of a node.
    #[must_use]
    pub fn node(&self, name: &str) -> PathBuf {
        self.root.join("nodes").join(name)
    }

    /// A file of the run.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Keeps room for the report of a run of `plan`, whose programs may fill the disk.
    ///
    /// # Errors
    /// If there is none.
    pub fn reserve_report(&self, plan: &Plan) -> Result<(), FolderError> {
        self.reserve("run.json", reserve::report_bytes(plan))?;
        self.reserve("junit.xml", reserve::junit_bytes(plan))
    }

    /// Keeps room for a file that [`RunOutputFolder::write`] will write.
    ///
    /// # Errors
    /// If there is none.
    pub fn reserve(&self, name: &str, bytes: u64) -> Result<(), FolderError> {
        let reserved =
            self.below.create(aside(name)).and_then(|file| PreallocatedFile::of(file, bytes));
        reserved.map(|_| ()).map_err(failed("reserve room for", &self.file(name)))
    }

    /// Writes a whole file of the run: after a failure there is none, rather than half of one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<(), FolderError> {
        let aside = aside(name);
        // With the room that was kept for it.
        let written = self.below.over(&aside).and_then(|file| PreallocatedFile::of(file, 0));
        let written = written.and_then(|reserve| reserve.write(contents));
        let written = written.and_then(|()| self.below.rename(aside.as_ref(), name.as_ref()));
        if written.is_err() {
            // It is of no use; that it cannot be removed needs no report.
            let _ = self.below.remove(aside.as_ref());
        }
        written.map_err(failed("write", &self.file(name)))
    }
}

/// Where a file is until it is whole.
fn aside(name: &str) -> String {
    format!(".{name}")
}

/// What could not be done with a file or folder of the run.
pub fn failed(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |source| FolderError { verb, path, source }
}

fn make(path: &Path) -> Result<(), FolderError> {
    fs::create_dir_all(path).map_err(failed("make the folder", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_no_reason_for_another_folder_on_it() {
        let hint = |code| {
            failed("reserve room for", Path::new("r"))(io::Error::from_raw_os_error(code)).hint()
        };
        // ENOSPC, EDQUOT, EACCES, EROFS, EEXIST.
        for (code, word) in
            [(28, "room"), (122, "room"), (13, "may write"), (30, "may write"), (17, "new")]
        {
            assert!(hint(code).contains(word), "{code}: {}", hint(code));
        }
    }

    #[test]
    fn a_folder_with_the_results_of_another_run_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("run.json"), "precious").unwrap();
        let error = RunOutputFolder::create(root.path(), &Plan::default()).unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(root.path().join("run.json")).unwrap(), b"precious");
    }

    #[test]
    fn latest_points_to_the_former_folder_again_if_the_newest_has_no_run() {
        let root = tempfile::tempdir().unwrap();
        let folder =
            |name| RunOutputFolder::create(&root.path().join(name), &Plan::default()).unwrap();
        let (one, two, three) = (folder("one"), folder("two"), folder("three"));
        assert_eq!(one.latest(), None);
        one.link_latest().unwrap();
        one.unlink_latest(None);
        assert_eq!(one.latest(), None);
        one.link_latest().unwrap();
        let former = two.latest();
        two.link_latest().unwrap();
        two.unlink_latest(former.as_deref());
        assert_eq!(two.latest().as_deref(), Some(Path::new("one")));
        // Somebody else's is left alone.
        three.link_latest().unwrap();
        two.unlink_latest(former.as_deref());
        assert_eq!(two.latest().as_deref(), Some(Path::new("three")));
    }

    #[test]
    fn a_plan_of_another_machine_makes_no_folder_outside_its_own() {
        let root = tempfile::tempdir().unwrap();
        for name in ["../../.ssh", "", "..", "/etc/x", "a\0b"] {
            let mut plan = windtunnel_dataplane::testing::plan("nodes: {a: {}}\n");
            plan.nodes[0].name = name.to_owned();
            let error = RunOutputFolder::create(&root.path().join("runs/x"), &plan).unwrap_err();
            assert_eq!(error.source.kind(), io::ErrorKind::InvalidInput, "{name:?}");
            fs::remove_dir_all(root.path().join("runs")).unwrap();
            assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0, "{name:?}");
        }
    }

    #[test]
    fn nothing_is_written_through_links_that_programs_have_made() {
        let root = tempfile::tempdir().unwrap();
        let (run, secret) = (root.path().join("run"), root.path().join("secret"));
        fs::write(&secret, "secret").unwrap();
        let plan = windtunnel_dataplane::testing::plan("nodes: {a: {}}\n");
        let folder = RunOutputFolder::create(&run, &plan).unwrap();
        symlink(&secret, run.join(".run.json")).unwrap();
        assert!(folder.write("run.json", b"{}").is_err());
        symlink(&secret, run.join("junit.xml")).unwrap();
        folder.write("junit.xml", b"<x/>").unwrap();
        assert_eq!(fs::read(run.join("junit.xml")).unwrap(), b"<x/>");
        // Also where the whole folder is replaced.
        fs::rename(&run, root.path().join("moved")).unwrap();
        fs::create_dir(root.path().join("elsewhere")).unwrap();
        symlink("elsewhere", &run).unwrap();
        folder.write("run.json", b"{}").unwrap();
        assert_eq!(fs::read(root.path().join("moved/run.json")).unwrap(), b"{}");
        assert_eq!(fs::read_dir(root.path().join("elsewhere")).unwrap().count(), 0);
        assert_eq!(fs::read(&secret).unwrap(), b"secret");
    }

    #[test]
    fn latest_points_to_the_newest_folder() {
        let root = tempfile::tempdir().unwrap();
        for name in ["one", "two"] {
            let folder =
                RunOutputFolder::create(&root.path().join(name), &Plan::default()).unwrap();
            folder.link_latest().unwrap();
        }
        assert_eq!(fs::read_link(root.path().join("latest")).unwrap(), Path::new("two"));
    }
}
