//! Capabilities of the calling thread. Source: capabilities(7).

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets};

/// The effective capabilities that matter to an emulated network and its evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectiveCapabilities {
    /// `CAP_SYS_ADMIN`: namespaces and mounts.
    pub sys_admin: bool,
    /// `CAP_SYS_RESOURCE`: raising limits of processes.
    pub sys_resource: bool,
    /// `CAP_NET_ADMIN`: devices, addresses, routes.
    pub net_admin: bool,
    /// `CAP_NET_RAW`: packet sockets.
    pub net_raw: bool,
    /// `CAP_BPF` or `CAP_SYS_ADMIN`: loading BPF programs.
    pub bpf: bool,
    /// `CAP_PERFMON` or `CAP_SYS_ADMIN`: BPF programs that trace the kernel.
    pub perfmon: bool,
}

/// What the calling thread may do at this moment, in its own user namespace.
///
/// # Errors
/// What capget(2) says, which is nothing on a working kernel.
pub fn effective() -> io::Result<EffectiveCapabilities> {
    let set = rustix::thread::capabilities(None)?.effective;
    let sys_admin = set.contains(CapabilitySet::SYS_ADMIN);
    Ok(EffectiveCapabilities {
        sys_admin,
        sys_resource: set.contains(CapabilitySet::SYS_RESOURCE),
        net_admin: set.contains(CapabilitySet::NET_ADMIN),
        net_raw: set.contains(CapabilitySet::NET_RAW),
        bpf: sys_admin || set.contains(CapabilitySet::BPF),
        perfmon: sys_admin || set.contains(CapabilitySet::PERFMON),
    })
}

/// Gives up every capability: ambient, bounding, effective, permitted and inheritable. The
/// bounding set (which limits what running a program can bring back) can only be emptied with
/// `CAP_SETPCAP`; without it that step is left out. Async-signal-safe.
///
/// # Errors
/// What prctl(2) and capset(2) say.
pub fn drop_all() -> io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    empty_bounding_set()?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// Removes one capability after the other until the kernel knows no more.
fn empty_bounding_set() -> io::Result<()> {
    for number in 0..CAPABILITIES_MAX {
        // SAFETY: this prctl takes a number and touches no memory.
        let returned = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0) };
        if let Err(error) = crate::ffi::check(returned) {
            return match error.raw_os_error() {
                Some(libc::EINVAL | libc::EPERM) => Ok(()),
                _ => Err(error),
            };
        }
    }
    Ok(())
}

/// The sets are 64 bits wide; Linux 6.18 uses 41 of them.
const CAPABILITIES_MAX: libc::c_ulong = 64;
