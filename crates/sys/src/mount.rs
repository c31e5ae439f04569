//! The mounts of the calling thread's mount namespace. Source: mount(2),
//! mount_namespaces(7).

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
};

/// Whether events of the rest of the system still come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Neither in nor out.
    Private,
    /// In, never out.
    Slave,
}

/// Whether a bound file can be written through its new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindMountAccess {
    /// As the file itself allows.
    Same,
    /// Not at all.
    ReadOnly,
}

/// Sets how mounts below `tree` (itself included) propagate.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, `EINVAL` when `tree` is not a mount point.
pub fn set_propagation(tree: impl AsRef<Path>, propagation: Propagation) -> io::Result<()> {
    let kind = match propagation {
        Propagation::Private => MountPropagationFlags::PRIVATE,
        Propagation::Slave => MountPropagationFlags::DOWNSTREAM,
    };
    let flags = kind | MountPropagationFlags::REC;
    Ok(rustix::mount::mount_change(tree.as_ref(), flags)?)
}

/// Makes the file or folder `source` appear at `target` as well, which must exist. A folder brings
/// along what is mounted below it, which [`BindMountAccess::ReadOnly`] does not reach.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, `ENOENT`, `ENOTDIR` for a file over a folder or the reverse.
pub fn bind(
    source: impl AsRef<Path>,
    target: impl AsRef<Path>,
    access: BindMountAccess,
) -> io::Result<()> {
    // With what is mounted below: a user namespace may not uncover what mounts hide.
    rustix::mount::mount_bind_recursive(source.as_ref(), target.as_ref())?;
    if access == BindMountAccess::ReadOnly {
        make_read_only(target)?;
    }
    Ok(())
}

/// Has a mount of [`bind`] only be read.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, `EINVAL` when `target` is not a mount point.
pub fn make_read_only(target: impl AsRef<Path>) -> io::Result<()> {
    // A user namespace may not clear the flags that the mount has from outside, so they have to be
    // said again.
    let kept = flags_of(target.as_ref())?;
    let flags = MountFlags::BIND | MountFlags::RDONLY | kept;
    Ok(rustix::mount::mount_remount(target.as_ref(), flags, c"")?)
}

/// Mounts the process file system of the caller's PID namespace.
///
/// # Errors
/// `EPERM` also in a user namespace where the outer /proc is partly hidden.
pub fn proc(target: impl AsRef<Path>) -> io::Result<()> {
    file_system(c"proc", target.as_ref(), MountFlags::NOEXEC, c"")
}

/// Mounts sysfs, which shows the devices of the caller's network namespace.
///
/// # Errors
/// `EPERM` when the caller's user namespace does not own the network namespace.
pub fn sysfs(target: impl AsRef<Path>) -> io::Result<()> {
    file_system(c"sysfs", target.as_ref(), MountFlags::NOEXEC, c"")
}

/// Mounts an empty file system in memory with options such as `mode=755,size=1m`.
///
/// # Errors
/// `EINVAL` for unknown options, `EPERM` without `CAP_SYS_ADMIN`.
pub fn tmpfs(target: impl AsRef<Path>, options: &str) -> io::Result<()> {
    file_system(c"tmpfs", target.as_ref(), MountFlags::empty(), &CString::new(options)?)
}

/// Mounts files that the caller serves through the descriptor that is returned; the kernel checks their permissions.
/// Source: fuse(4), and the kernel's Documentation/filesystems/fuse.rst.
///
/// # Errors
/// `ENOENT` without `/dev/fuse`, `EACCES` and `EPERM` where the caller may not open it or mount.
pub fn fuse(source: &str, target: impl AsRef<Path>) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let device = rustix::fs::open(c"/dev/fuse", flags, Mode::empty())?;
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let options = format!(
        "fd={},rootmode=40000,user_id={user},group_id={group},default_permissions",
        device.as_raw_fd()
    );
    let options = CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::NODEV;
    rustix::mount::mount(source, target.as_ref(), c"fuse", flags, options.as_c_str())?;
    Ok(device)
}

/// A copy of the files at `tree` with what is mounted below, for [`attach`]: it stays when `tree`
/// is covered.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, `ENOENT`, `EINVAL` outside of the caller's mount namespace.
pub fn copy(tree: impl AsRef<Path>) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(rustix::mount::open_tree(CWD, tree.as_ref(), flags)?)
}

/// Mounts what [`copy`] has made at `target`, once.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, `ENOENT`, `ENOTDIR` for a file over a folder or the reverse.
pub fn attach(tree: impl AsFd, target: impl AsRef<Path>) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(rustix::mount::move_mount(tree.as_fd(), "", CWD, target.as_ref(), flags)?)
}

/// Shows the folders of `lower`, the topmost first, as one tree at `target`; what is changed goes to the
/// folder `upper`, with the empty folder `work` beside it on the same file system. Relative folders of
/// `lower` start at `base`. Source: the kernel's Documentation/filesystems/overlayfs.rst.
///
/// The calling process has `base` as its working folder afterwards.
///
/// # Errors
/// `EPERM` before Linux 5.11 in a user namespace, `EINVAL` where the file system of `upper` cannot be
/// one, `E2BIG` if the names are longer than a page together.
pub fn overlay(
    target: impl AsRef<Path>,
    base: &Path,
    lower: &[PathBuf],
    upper: &Path,
    work: &Path,
) -> io::Result<()> {
    let mut options = b"userxattr,lowerdir=".to_vec();
    for (position, folder) in lower.iter().enumerate() {
        if position > 0 {
            options.push(b':');
        }
        options.extend(escaped(folder));
    }
    for (key, folder) in [(&b",upperdir="[..], upper), (b",workdir=", work)] {
        options.extend(key);
        options.extend(escaped(folder));
    }
    if options.len() >= OPTIONS_BYTES_MAX {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    rustix::process::chdir(base)?;
    let options = CString::new(options)?;
    Ok(rustix::mount::mount(c"overlay", target.as_ref(), c"overlay", MountFlags::NODEV, &*options)?)
}

/// A path in the options of overlayfs.
fn escaped(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes().iter();
    let special = |byte: u8| matches!(byte, b'\\' | b',' | b':');
    bytes.flat_map(|byte| special(*byte).then_some(b'\\').into_iter().chain([*byte])).collect()
}

/// mount(2): the options have a page.
const OPTIONS_BYTES_MAX: usize = 4096;

/// Makes the mount at `root` the root of the calling process's mount namespace, and takes the old one
/// away. The working folder is the new root afterwards. Source: pivot_root(2), "pivot_root(".", ".")".
///
/// # Errors
/// `EINVAL` if `root` is not a mount point, or mounts propagate.
pub fn pivot(root: impl AsRef<Path>) -> io::Result<()> {
    rustix::process::chdir(root.as_ref())?;
    rustix::process::pivot_root(".", ".")?;
    // The old root is on top of the new one now.
    rustix::mount::unmount(".", UnmountFlags::DETACH)?;
    Ok(rustix::process::chdir("/")?)
}

/// Takes a mount away at once for new lookups; open files keep it alive.
///
/// # Errors
/// `EINVAL` when `target` is not a mount point.
pub fn detach(target: impl AsRef<Path>) -> io::Result<()> {
    Ok(rustix::mount::unmount(target.as_ref(), UnmountFlags::DETACH)?)
}

fn file_system(kind: &CStr, target: &Path, more: MountFlags, options: &CStr) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | more;
    Ok(rustix::mount::mount(kind, target, kind, flags, options)?)
}

/// Those flags of the mount at `path` that a remount would have to keep.
fn flags_of(path: &Path) -> io::Result<MountFlags> {
    use rustix::fs::StatVfsMountFlags as Seen;
    let seen = rustix::fs::statvfs(path)?.f_flag;
    let pairs = [
        (Seen::NOSUID, MountFlags::NOSUID),
        (Seen::NODEV, MountFlags::NODEV),
        (Seen::NOEXEC, MountFlags::NOEXEC),
        (Seen::NOATIME, MountFlags::NOATIME),
        (Seen::NODIRATIME, MountFlags::NODIRATIME),
        (Seen::RELATIME, MountFlags::RELATIME),
    ];
    let kept = pairs.iter().filter(|(was, _)| seen.contains(*was));
    Ok(kept.fold(MountFlags::empty(), |flags, (_, flag)| flags | *flag))
}
