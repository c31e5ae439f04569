//! A file system of the node's own, in place of the machine's.
//!
//! 1. what the node shows of its folders as one tree, by overlayfs: what it writes goes to a folder of
//!    its own; where the kernel denies that, a copy;
//! 2. in it the node's `/proc`, the `/sys` that nodes have, a `/dev` with the usual devices, its volumes
//!    and its files of names;
//! 3. the tree becomes the root, and the machine's is taken away ([`enter`]).
//!
//! Paths in the tree are resolved as if it was the root already: its links are of an image, and lead
//! nowhere else.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use windtunnel_image::{ConfinedRootFolder, FilesystemEntryKind, MergedLayerTree};
use windtunnel_sys::mount::{self, BindMountAccess};

use crate::message::{NodeSetupFailure, NodeSetupStage};
use crate::node_set::files::NodeFiles;
use crate::node_set::own_root::OwnRoot;

/// Makes the tree, beside the one in which the process is.
pub(super) fn build(
    own: &OwnRoot,
    files: &NodeFiles,
    notes: &mut Vec<String>,
) -> Result<(), NodeSetupFailure> {
    show(own, notes)?;
    let root = own.root();
    let inside = ConfinedRootFolder::open(&root).map_err(|error| failure("open", &root, &error))?;
    let tree = RootFilesystemTree { inside, own };
    tree.mount("/proc", |place| mount::proc(place).or_else(|_| bind("/proc", place)))?;
    tree.mount("/sys", |place| bind("/sys", place))?;
    tree.devices()?;
    volumes_and_folders(own, &tree)?;
    let ours = [
        ("/etc/hosts", &files.hosts),
        ("/etc/resolv.conf", &files.resolv_conf),
        ("/etc/hostname", &files.hostname),
    ];
    for (path, file) in ours {
        tree.place(path, FilesystemEntryKind::File, |place| bind(file, place))?;
        tree.make_read_only(path)?;
    }
    tree.temporary()
}

fn volumes_and_folders(own: &OwnRoot, tree: &RootFilesystemTree) -> Result<(), NodeSetupFailure> {
    for volume in &own.volumes {
        let is_folder = volume.source.is_dir();
        let kind = if is_folder { FilesystemEntryKind::Folder } else { FilesystemEntryKind::File };
        tree.place(&volume.target, kind, |place| bind(&volume.source, place))?;
        if volume.read_only {
            tree.make_read_only(&volume.target)?;
        }
    }
    for folder in own.folders.iter().filter(|folder| folder.as_str() != "/") {
        let made = tree.inside.find_or_make(folder, FilesystemEntryKind::Folder);
        made.map_err(|error| failure("make the working folder", Path::new(folder), &error))?;
    }
    Ok(())
}

/// Leaves the machine's file system for the tree.
pub(super) fn enter(own: &OwnRoot) -> Result<(), NodeSetupFailure> {
    let root = own.root();
    mount::pivot(&root).map_err(|error| failure("make a root of", &root, &error))
}

/// Mounts the tree.
fn show(own: &OwnRoot, notes: &mut Vec<String>) -> Result<(), NodeSetupFailure> {
    let root = own.root();
    let (upper, work) = (own.upper(), own.work());
    let Err(denied) = mount::overlay(&root, &own.base, &own.lower, &upper, &work) else {
        return Ok(());
    };
    notes.push(format!(
        "its files are a copy, which takes time and room, because an overlay of them is denied ({denied})"
    ));
    let lower = own.lower.iter().map(|folder| own.base.join(folder)).collect();
    let copied = MergedLayerTree::new(lower).copy(Path::new(""), &upper);
    copied.map_err(|(path, error)| failure("copy", &path, &error))?;
    mount::bind(&upper, &root, BindMountAccess::Same)
        .map_err(|error| failure("show", &root, &error))
}

/// The tree, whose paths begin at its root.
struct RootFilesystemTree<'o> {
    inside: ConfinedRootFolder,
    own: &'o OwnRoot,
}

impl RootFilesystemTree<'_> {
    /// Mounts over a folder.
    fn mount(
        &self,
        path: &str,
        mount: impl Fn(&Path) -> io::Result<()>,
    ) -> Result<(), NodeSetupFailure> {
        self.place(path, FilesystemEntryKind::Folder, mount)
    }

    /// Mounts over what is at the path, or is made there.
    fn place(
        &self,
        path: &str,
        kind: FilesystemEntryKind,
        mount: impl Fn(&Path) -> io::Result<()>,
    ) -> Result<(), NodeSetupFailure> {
        let place = self.inside.find_or_make(path, kind);
        let mounted = place.and_then(|place| mount(&place_of(&place)));
        mounted.map_err(|error| {
            let own = failure("show", Path::new(path), &error);
            let is_unmapped = error.raw_os_error() == Some(EOVERFLOW);
            let stranger = is_unmapped.then(|| self.own.unmapped_above(path)).flatten();
            stranger.map_or(own, |folder| unmapped(path, &folder))
        })
    }

    /// What has been mounted there. It is looked up again: what was open is below the mount.
    fn make_read_only(&self, path: &str) -> Result<(), NodeSetupFailure> {
        let made = self.inside.find(path).and_then(|top| mount::make_read_only(place_of(&top)));
        made.map_err(|error| failure("protect", Path::new(path), &error))
    }

    /// `/dev`: the devices that programs expect, the machine's terminals, shared memory.
    fn devices(&self) -> Result<(), NodeSetupFailure> {
        self.mount("/dev", |place| mount::tmpfs(place, "mode=755,size=1m"))?;
        for device in DEVICES {
            let outside = Path::new("/dev").join(device);
            // By its real place: `ptmx` may be a link, and `net/tun` need not be there.
            let Ok(outside) = fs::canonicalize(outside) else { continue };
            let kind = if outside.is_dir() {
                FilesystemEntryKind::Folder
            } else {
                FilesystemEntryKind::File
            };
            self.place(&format!("/dev/{device}"), kind, |place| bind(&outside, place))?;
        }
        self.mount("/dev/shm", |place| mount::tmpfs(place, "mode=1777"))?;
        let made = self.inside.find("/dev").and_then(|dev| {
            let link = |(name, target)| symlink(target, place_of(&dev).join(name));
            LINKS.into_iter().try_for_each(link)
        });
        made.map_err(|error| failure("make links in", Path::new("/dev"), &error))
    }

    /// A `/tmp` where the image has none.
    fn temporary(&self) -> Result<(), NodeSetupFailure> {
        if self.inside.find("/tmp").is_ok() {
            return Ok(());
        }
        let made = self.inside.find_or_make("/tmp", FilesystemEntryKind::Folder);
        let made = made.and_then(|place| {
            fs::set_permissions(place_of(&place), Permissions::from_mode(0o1777))
        });
        made.map_err(|error| failure("make", Path::new("/tmp"), &error))
    }
}

fn bind(source: impl AsRef<Path>, place: &Path) -> io::Result<()> {
    mount::bind(source, place, BindMountAccess::Same)
}

/// A path to what is open.
fn place_of(open: &OwnedFd) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()))
}

fn failure(action: &str, path: &Path, error: &io::Error) -> NodeSetupFailure {
    NodeSetupFailure {
        stage: NodeSetupStage::Mounts,
        message: format!("cannot {action} {} for its own file system: {error}", path.display()),
        hint: None,
    }
}

/// overlayfs has to copy the folder before something can be made in it, with its owner and group, and
/// a number that the user namespace does not map cannot be given to the copy.
fn unmapped(path: &str, folder: &Path) -> NodeSetupFailure {
    // A layer has a short name that leads to its folder: the user knows the latter.
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let folder = folder.display();
    NodeSetupFailure {
        stage: NodeSetupStage::Mounts,
        message: format!(
            "cannot show {path} for its own file system: {folder} belongs to a user or group that is \
             not in the run's user namespace (`ls -ldn {folder}` shows which), and such a folder \
             cannot be changed there"
        ),
        hint: Some(format!(
            "make it yours (`chgrp -R \"$(id -g)\" {folder}`), or run as root, or be given \
             subordinate users and groups (subuid(5), subgid(5))"
        )),
    }
}

/// errno(3): what chown(2) says where a user namespace does not map a number.
const EOVERFLOW: i32 = 75;

/// Those of the machine that a node with files of its own has. Terminals are the machine's, as in other
/// nodes: a file system of terminals of its own needs a root that an ordinary user does not have.
const DEVICES: [&str; 9] =
    ["null", "zero", "full", "random", "urandom", "tty", "net/tun", "pts", "ptmx"];

const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];
