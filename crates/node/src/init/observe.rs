//! What the recorder gets from inside of the node: a socket that asks the kernel about the node's
//! sockets, and the calls of programs that a preload library cannot enter.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use windtunnel_sys::executable::{self, SystemCallOrigin};
use windtunnel_sys::{sock_diag, unix};

/// Where the calls of some programs are shown.
pub(super) struct ProgramSupervision {
    socket: OwnedFd,
    /// The preload library, which supervised programs and their children must not load: their calls
    /// would be recorded twice.
    library: Option<String>,
}

impl ProgramSupervision {
    /// The socket's other end belongs to the supervisor. It also gets a socket of the node, at
    /// which the preload library hands over listeners of programs that it starts.
    pub(super) fn begin(
        socket: OwnedFd,
        library: Option<String>,
    ) -> io::Result<ProgramSupervision> {
        let inside = unix::bind_abstract(HANDOVER_NAME)?;
        unix::send(&socket, b"inside", &[inside.as_fd()])?;
        Ok(ProgramSupervision { socket, library })
    }

    /// For the plan of a program that is to be supervised; `None` if the preload library sees its
    /// calls. The library is taken out of the environment otherwise.
    pub(super) fn of_program(
        &self,
        arguments: &[CString],
        environment: &mut [CString],
        folder: Option<&Path>,
    ) -> Option<BorrowedFd<'_>> {
        let value = |name: &[u8]| {
            environment
                .iter()
                .find_map(|entry| entry.as_bytes().strip_prefix(name))
                .map(OsStr::from_bytes)
        };
        let program = OsStr::from_bytes(arguments.first()?.as_bytes());
        let own = std::env::current_dir().ok();
        let folder = folder.or(own.as_deref()).unwrap_or(Path::new("/"));
        if executable::calls_of(program, value(b"PATH="), folder) == SystemCallOrigin::Library {
            return None;
        }
        if let Some(library) = &self.library {
            for entry in environment.iter_mut() {
                if let Some(list) = entry.as_bytes().strip_prefix(b"LD_PRELOAD=") {
                    *entry = without(list, library.as_bytes());
                }
            }
        }
        Some(self.socket.as_fd())
    }
}

/// The variable without one entry of its list, which colons or spaces separate (ld.so(8)).
fn without(list: &[u8], library: &[u8]) -> CString {
    let words = list.split(|byte| matches!(byte, b':' | b' '));
    let others: Vec<&[u8]> = words.filter(|word| !word.is_empty() && *word != library).collect();
    let entry = [b"LD_PRELOAD=", &others.join(&b':')[..]].concat();
    CString::new(entry).expect("parts of a C string hold no zero byte")
}

/// Sends a socket of [`sock_diag`] to the other end of `answer`; without one, the errno.
pub(super) fn diagnose(answer: impl AsFd) -> io::Result<()> {
    match sock_diag::open() {
        Ok(socket) => unix::send(answer, &0_i32.to_le_bytes(), &[socket.as_fd()]),
        Err(error) => unix::send(answer, &error.raw_os_error().unwrap_or(0).to_le_bytes(), &[]),
    }
    .map(drop)
}

/// The name, in the abstract namespace of the node's network, of the socket at which the preload
/// library hands over listeners (`windtunnel_sys::seccomp`).
const HANDOVER_NAME: &[u8] = b"windtunnel/handover";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_library_is_taken_out_of_the_list() {
        let cases = [
            ("/run/lib.so", "LD_PRELOAD="),
            ("/a.so:/run/lib.so /b.so", "LD_PRELOAD=/a.so:/b.so"),
            ("/run/lib.so.1", "LD_PRELOAD=/run/lib.so.1"),
        ];
        for (list, expected) in cases {
            assert_eq!(without(list.as_bytes(), b"/run/lib.so").as_bytes(), expected.as_bytes());
        }
    }
}
