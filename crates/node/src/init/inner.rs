//! The user namespace in which a node's programs are root, while its init stays outside.
//!
//! Root of the user namespace that owns a tree of mounts can unmount each of them, and can trace
//! each process of that namespace. So the mounts are made in a tree that belongs to the
//! init's own user namespace, and the programs get a copy of it that belongs to theirs: the kernel
//! locks what a less privileged tree has got from a more privileged one (mount_namespaces(7)). What
//! is below `/proc` or a masked file stays unseen, and the init has rights that no program can
//! match.
//!
//! A *holder* makes the inner namespaces, because the init itself must not be in the user
//! namespace:
//!
//! 1. the init forks it into a new user namespace with the network, host name and IPC that belong
//!    to it;
//! 2. the init writes the maps, and joins all but the user namespace;
//! 3. once the init has made all mounts, the holder copies them;
//! 4. the init joins the copy, and the holder ends.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use windtunnel_sys::namespace::{self, IdMap, NamespaceFlags, NamespaceFork, UserNamespaceTarget};
use windtunnel_sys::process::{self, Pid};
use windtunnel_sys::unix;

/// What programs may change as root, beside the mounts.
pub(crate) const PROGRAMS_OWN: NamespaceFlags =
    NamespaceFlags::NET.with(NamespaceFlags::UTS).with(NamespaceFlags::IPC);

/// The inner namespaces, with their holder.
pub(super) struct InnerNamespaces {
    holder: Pid,
    pidfd: OwnedFd,
    channel: OwnedFd,
    user_namespace: OwnedFd,
}

impl InnerNamespaces {
    /// Makes them and joins all but the user namespace.
    pub(super) fn make(maps: &IdMap) -> io::Result<InnerNamespaces> {
        let (channel, theirs) = unix::seqpacket_pair()?;
        let (holder, pidfd) = match namespace::fork_into(PROGRAMS_OWN.with(NamespaceFlags::USER))? {
            NamespaceFork::Child => {
                drop(channel);
                process::exit_now(i32::from(hold(&theirs).is_err()))
            }
            NamespaceFork::Parent { pid, pidfd } => (pid, pidfd),
        };
        drop(theirs);
        let (number, user_namespace) = introduction(&channel)?;
        // A user that may not change its groups outside may not do so inside either, whatever is
        // written here.
        namespace::write_id_maps(UserNamespaceTarget::Process(number), maps, false)?;
        namespace::setns(&pidfd, PROGRAMS_OWN)?;
        Ok(InnerNamespaces { holder, pidfd, channel, user_namespace })
    }

    /// Joins a copy of the mounts in which none can be taken away by the programs; their user
    /// namespace.
    pub(super) fn lock_mounts(self) -> io::Result<OwnedFd> {
        unix::send(&self.channel, GO, &[])?;
        if unix::receive(&self.channel, &mut [0; 16])?.bytes == 0 {
            return Err(io::Error::other("its mounts cannot be copied"));
        }
        namespace::setns(&self.pidfd, NamespaceFlags::MOUNT)?;
        drop(self.channel);
        process::wait_pid(self.holder, false)?;
        Ok(self.user_namespace)
    }
}

/// The holder's life.
fn hold(channel: &OwnedFd) -> io::Result<()> {
    // The /proc of this moment is the machine's, and knows this process by another number than the
    // init does.
    let number = fs::read_link("/proc/self")?;
    let user_namespace = File::open("/proc/self/ns/user")?;
    unix::send(channel, number.as_os_str().as_encoded_bytes(), &[user_namespace.as_fd()])?;
    if unix::receive(channel, &mut [0; 16])?.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    namespace::unshare(NamespaceFlags::MOUNT)?;
    unix::send(channel, GO, &[])?;
    // Until the init has joined.
    unix::receive(channel, &mut [0; 16]).map(drop)
}

/// The holder's number in /proc, and its user namespace.
fn introduction(channel: &OwnedFd) -> io::Result<(Pid, OwnedFd)> {
    let lost = || io::Error::other("its inner namespaces cannot be made");
    let mut bytes = [0; 16];
    let mut received = unix::receive(channel, &mut bytes)?;
    let number = std::str::from_utf8(&bytes[..received.bytes]).ok().and_then(|it| it.parse().ok());
    let user_namespace = received.descriptors.pop().ok_or_else(lost)?;
    Ok((number.and_then(Pid::from_raw).ok_or_else(lost)?, user_namespace))
}

const GO: &[u8] = b"go";
