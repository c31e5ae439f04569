//! Where the control socket is. Socket addresses hold 107 bytes of path (unix(7)), run folders may
//! be deeper; so the folder is opened and the socket is named through `/proc/self/fd`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use windtunnel_sys::unix;

/// Name of the socket in the run folder.
pub const NAME: &str = "control.sock";

/// Listens in `folder`, replacing a socket that a dead run has left. Only the owner can connect,
/// and the machine's root: the kernel looks at the permissions of the file with the identities of
/// the machine, whereas the credentials of a connection are numbers of the user namespace in which
/// they are read.
///
/// # Errors
/// What the system says about the folder or the socket; `PermissionDenied` where the file system
/// keeps no permissions.
pub(crate) fn listen(folder: &Path) -> io::Result<UnixListener> {
    let (_open, short) = shortened(folder)?;
    match std::fs::remove_file(&short) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = unix::listen(&short, OWNER_ONLY)?;
    let mode = std::fs::symlink_metadata(&short)?.mode();
    if mode & FOR_OTHERS != 0 {
        let text = "its file system keeps no permissions, so that every user could control the run";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(UnixListener::from(socket))
}

/// Connects to the run whose folder is `folder`.
///
/// # Errors
/// `NotFound` or `ConnectionRefused` if no run lives there.
pub fn connect(folder: &Path) -> io::Result<UnixStream> {
    let (_open, short) = shortened(folder)?;
    UnixStream::connect(short)
}

/// Reading and writing.
const OWNER_ONLY: u32 = 0o600;
const FOR_OTHERS: u32 = 0o077;

fn shortened(folder: &Path) -> io::Result<(File, PathBuf)> {
    let open = File::open(folder)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{NAME}", open.as_raw_fd()));
    Ok((open, path))
}
