//! Local sockets that carry descriptors. Source: unix(7).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use rustix::process::Pid;

/// The most descriptors that one message carries.
pub const DESCRIPTORS_MAX: usize = 8;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// A message that came in.
#[derive(Debug)]
pub struct UnixSocketMessage {
    /// How many bytes of the buffer it filled; zero also when the other side is closed.
    pub bytes: usize,
    /// The descriptors that came with it, close-on-exec.
    pub descriptors: Vec<OwnedFd>,
    /// Whether bytes or descriptors were lost because they were too many.
    pub truncated: bool,
}

/// The process that made the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixPeerCredentials {
    /// Its process; none when that is outside of the caller's PID namespace.
    pub pid: Option<Pid>,
    /// Its user, as the caller's user namespace calls it.
    pub uid: u32,
    pub gid: u32,
}

/// Two connected sockets that preserve message boundaries (`SOCK_SEQPACKET`).
///
/// # Errors
/// `EMFILE`, `ENFILE`.
pub fn seqpacket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// Listens at `path`, where nothing may be yet. The file has at most the permissions of `mode`,
/// whatever the umask: it gets them before it appears, and no process can connect before that.
///
/// # Errors
/// `EADDRINUSE` for an existing file; what socket(2), bind(2) and listen(2) say.
pub fn listen(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // On Linux the file takes over the mode of the socket's own inode (unix_bind_bsd of the
    // kernel's af_unix.c).
    rustix::fs::fchmod(&socket, rustix::fs::Mode::from_raw_mode(mode))?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// A socket that receives messages (`SOCK_DGRAM`) under a name that no file has: all processes of
/// the network namespace can send to it.
///
/// # Errors
/// `EADDRINUSE` for a name that is taken; what socket(2) and bind(2) say.
pub fn bind_abstract(name: &[u8]) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new_abstract_name(name)?)?;
    Ok(socket)
}

/// A socket that receives messages (`SOCK_DGRAM`) at `path`, where nothing may be yet. The file has
/// at most the permissions of `mode`, as in [`listen`].
///
/// # Errors
/// `EADDRINUSE` for an existing file; what socket(2) and bind(2) say.
pub fn bind_path(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    rustix::fs::fchmod(&socket, rustix::fs::Mode::from_raw_mode(mode))?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Sends bytes, and up to [`DESCRIPTORS_MAX`] descriptors with them, and returns how many bytes
/// went. A stream socket needs at least one byte for descriptors to travel with.
///
/// # Errors
/// `EINVAL` for too many descriptors, `EPIPE` when the other side is closed (no signal comes),
/// `EAGAIN` on a full nonblocking socket, `EMSGSIZE` for a message that is too long.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fits = descriptors.len() <= DESCRIPTORS_MAX;
    let rights = SendAncillaryMessage::ScmRights(descriptors);
    if !fits || (!descriptors.is_empty() && !control.push(rights)) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let pieces = [IoSlice::new(bytes)];
    Ok(rustix::net::sendmsg(socket, &pieces, &mut control, SendFlags::NOSIGNAL)?)
}

/// Receives a message (on a stream: what is there) and its descriptors.
///
/// # Errors
/// `EAGAIN` on an empty nonblocking socket, `ECONNRESET`, `EINTR`.
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<UnixSocketMessage> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut pieces = [IoSliceMut::new(buffer)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let message = rustix::net::recvmsg(socket, &mut pieces, &mut control, flags)?;
    let rights = control.drain().filter_map(|part| match part {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    Ok(UnixSocketMessage {
        bytes: message.bytes,
        descriptors: rights.flatten().collect(),
        truncated: message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC),
    })
}

/// The process at the other end when the connection (or pair) was made.
///
/// # Errors
/// What getsockopt(2) says.
pub fn peer_credentials(socket: impl AsFd) -> io::Result<UnixPeerCredentials> {
    // Not the safe wrapper of rustix: it declares the process number never to be zero, which it
    // is for a peer outside of our PID namespace.
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = crate::ffi::socklen::<libc::ucred>();
    let raw = std::os::fd::AsRawFd::as_raw_fd(&socket.as_fd());
    // SAFETY: both pointers are to live values, and `length` is the size of the first.
    let returned = unsafe {
        libc::getsockopt(
            raw,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    crate::ffi::check(returned)?;
    Ok(UnixPeerCredentials { pid: Pid::from_raw(peer.pid), uid: peer.uid, gid: peer.gid })
}
