//! Where the control socket is. Socket addresses hold 107 bytes of path (unix(7)), run folders may be
//! deeper; so the folder is opened and the socket is named through `/proc/self/fd`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Name of the socket in the run folder.
pub const NAME: &str = "control.sock";

/// Listens in `folder`, replacing a socket that a dead run has left.
///
/// # Errors
/// What the system says about the folder or the socket.
pub(crate) fn listen(folder: &Path) -> io::Result<UnixListener> {
    let (_open, short) = shortened(folder)?;
    match std::fs::remove_file(&short) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(short)
}

/// Connects to the run whose folder is `folder`.
///
/// # Errors
/// `NotFound` or `ConnectionRefused` if no run lives there.
pub fn connect(folder: &Path) -> io::Result<UnixStream> {
    let (_open, short) = shortened(folder)?;
    UnixStream::connect(short)
}

fn shortened(folder: &Path) -> io::Result<(File, PathBuf)> {
    let open = File::open(folder)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{NAME}", open.as_raw_fd()));
    Ok((open, path))
}
