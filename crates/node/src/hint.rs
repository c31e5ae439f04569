//! What a user can do about what the machine refuses.

use std::fs;
use std::io;

/// For a user namespace that could not be made.
pub(crate) fn user_namespace(error: &io::Error) -> String {
    if setting("/proc/sys/user/max_user_namespaces") == Some(0) {
        return "sudo sysctl -w user.max_user_namespaces=15000".into();
    }
    if setting("/proc/sys/kernel/unprivileged_userns_clone") == Some(0) {
        return "sudo sysctl -w kernel.unprivileged_userns_clone=1".into();
    }
    if setting(APPARMOR_RESTRICTS) == Some(1) {
        return APPARMOR.into();
    }
    match error.raw_os_error() {
        Some(ERRNO_ENOSPC) => "the limit of user namespaces is reached: \
            sudo sysctl -w user.max_user_namespaces=15000"
            .into(),
        Some(ERRNO_EPERM) => CONTAINER.into(),
        Some(ERRNO_EINVAL) => "the kernel was built without user namespaces (CONFIG_USER_NS), or \
            the process has threads: run windtunnel as root"
            .into(),
        _ => "run `windtunnel doctor` for all that this machine allows".into(),
    }
}

/// For a user namespace that exists but gives no rights.
pub(crate) fn user_namespace_powerless() -> String {
    if setting(APPARMOR_RESTRICTS) == Some(1) { APPARMOR.into() } else { CONTAINER.into() }
}

/// For a network namespace that could not be made.
pub(crate) fn network_namespace(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(ERRNO_ENOSPC) => "the limit of network namespaces is reached: \
            sudo sysctl -w user.max_net_namespaces=15000"
            .into(),
        _ => user_namespace_powerless(),
    }
}

/// For a limit of processes or namespaces when a node is made.
pub(crate) fn too_many(error: &io::Error) -> Option<String> {
    match error.raw_os_error() {
        Some(ERRNO_ENOSPC) => Some(
            "a limit of namespaces is reached: look at the max_* settings below /proc/sys/user"
                .into(),
        ),
        Some(ERRNO_EAGAIN) => {
            Some("the limit of processes is reached: raise it with `ulimit -u`".into())
        }
        Some(ERRNO_EMFILE) => {
            Some("the limit of open descriptors is reached: raise it with `ulimit -n`".into())
        }
        Some(ERRNO_EPERM) => Some(user_namespace_powerless()),
        _ => None,
    }
}

/// A whole number in a file of /proc, if it is there.
pub(crate) fn setting(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

pub(crate) const APPARMOR_RESTRICTS: &str =
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/// Ubuntu since 23.10.
pub(crate) const APPARMOR: &str = "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";

pub(crate) const CONTAINER: &str = "a seccomp filter or security module forbids it: in a container, \
    start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
    --security-opt systempaths=unconfined, or --privileged (a root without CAP_SETFCAP may not map \
    itself either: run as an ordinary user)";

/// For overlayfs in a user namespace.
pub(crate) const OVERLAY: &str = "it needs Linux 5.11 and the module overlay";

pub(crate) const PROC_SYS: &str = "/proc/sys is read-only here: in a container, start it with \
    --security-opt systempaths=unconfined or --privileged";

/// The numbers of errno(3), the same on every architecture that Rust's Linux targets share.
pub(crate) const ERRNO_EPERM: i32 = 1;
pub(crate) const ERRNO_ENOENT: i32 = 2;
pub(crate) const ERRNO_EAGAIN: i32 = 11;
pub(crate) const ERRNO_EACCES: i32 = 13;
pub(crate) const ERRNO_EINVAL: i32 = 22;
pub(crate) const ERRNO_EMFILE: i32 = 24;
pub(crate) const ERRNO_ENOSPC: i32 = 28;
pub(crate) const ERRNO_EROFS: i32 = 30;
