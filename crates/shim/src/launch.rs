//! Programs that this library cannot enter, before they take the place of the process: their calls
//! are shown by a filter, which is installed here, to the supervisor of a recorder or of a limit.
//!
//! All is done in the process that is about to become the program; in a child of vfork(2) nothing of
//! the parent's memory is changed. If the program cannot be executed after all, the process stays
//! under the filter, and this library leaves its calls to that.

use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use crate::elf::{self, BEGINNING_BYTES, SCRIPTS_DEEP, SystemCallOrigin};
use crate::pacing::Escape;
use crate::pacing::TransferDirection;
use crate::record::kind::CallBlindSpot;
use crate::variables::text;
use crate::{c, environment, filter, limit, process, region, variables};

/// The recorder's address: `struct sockaddr_un`.
static DOOR: [AtomicU8; DOOR_BYTES] = [const { AtomicU8::new(0) }; DOOR_BYTES];
static DOOR_LENGTH: AtomicUsize = AtomicUsize::new(0);

/// What was done for a program.
#[derive(Debug)]
#[must_use]
pub struct LaunchDescriptors {
    /// The socket, and where calls are shown; below zero: nothing was done.
    descriptors: [c_int; 2],
}

/// Keeps the path of the recorder's socket; without one, it has the usual abstract name.
///
/// # Safety
/// The path ends with a zero.
pub unsafe fn start(path: Option<*const u8>) {
    let mut length = 2;
    let mut put = |byte: u8| {
        if let Some(place) = DOOR.get(length) {
            place.store(byte, Ordering::Relaxed);
        }
        length += 1;
    };
    match path {
        // SAFETY: the caller's.
        Some(path) => unsafe { text(path) }.iter().for_each(|byte| put(*byte)),
        None => b"\0windtunnel/handover".iter().for_each(|byte| put(*byte)),
    }
    let family = c::AF_UNIX.to_ne_bytes();
    DOOR[0].store(family[0], Ordering::Relaxed);
    DOOR[1].store(family[1], Ordering::Relaxed);
    // An address that is too long is none.
    DOOR_LENGTH.store(if length > DOOR_BYTES { 0 } else { length }, Ordering::Release);
}

/// Before a program is executed: `searches` for it in `PATH`, as execvp(3).
///
/// # Safety
/// The name ends with a zero, or is null; the variables are texts that a null ends, or null.
pub unsafe fn before(
    name: *const u8,
    searches: bool,
    variables: *const *const c_char,
) -> LaunchDescriptors {
    // SAFETY: the caller's.
    match unsafe { open(name, searches) } {
        Some(fd) => {
            // SAFETY: the caller's.
            let launched = unsafe { before_open(fd, variables) };
            c::close(fd);
            launched
        }
        None => LaunchDescriptors::NOTHING,
    }
}

/// The same of a file that execveat(2) names.
///
/// # Safety
/// As [`before`].
pub unsafe fn before_at(
    folder: c_int,
    path: *const u8,
    variables: *const *const c_char,
    flags: c_int,
) -> LaunchDescriptors {
    if !is_watched() || process::is_confined() || path.is_null() {
        return LaunchDescriptors::NOTHING;
    }
    // SAFETY: the caller's.
    if flags & c::AT_EMPTY_PATH != 0 && unsafe { text(path) }.is_empty() {
        // SAFETY: the caller's.
        return unsafe { before_open(folder, variables) };
    }
    // SAFETY: the caller's.
    match executable(unsafe { c::open_at(folder, path, c::O_CLOEXEC) }) {
        Some(fd) => {
            // SAFETY: the caller's.
            let launched = unsafe { before_open(fd, variables) };
            c::close(fd);
            launched
        }
        None => LaunchDescriptors::NOTHING,
    }
}

/// The same of an open file.
///
/// # Safety
/// The variables are texts that a null ends, or null.
pub unsafe fn before_open(fd: c_int, variables: *const *const c_char) -> LaunchDescriptors {
    if !is_watched() || process::is_confined() {
        return LaunchDescriptors::NOTHING;
    }
    if is_foreign(fd) {
        limit::note_escape(Escape::Foreign);
        return LaunchDescriptors::NOTHING;
    }
    // SAFETY: the caller's.
    if !is_direct(fd) && unsafe { environment::is_complete(variables) } {
        return LaunchDescriptors::NOTHING;
    }
    install(fd).unwrap_or_else(|| {
        process::note(CallBlindSpot::Static);
        limit::note_escape(Escape::NoFilter);
        LaunchDescriptors::NOTHING
    })
}

/// Before a process is made for a program: that its calls will not be seen is recorded.
///
/// # Safety
/// As [`before`].
pub unsafe fn note(name: *const u8, searches: bool, variables: *const *const c_char) {
    // SAFETY: the caller's.
    let Some(fd) = (unsafe { open(name, searches) }) else { return };
    if is_direct(fd) {
        process::note(CallBlindSpot::Static);
        limit::note_escape(Escape::Spawned);
    } else if is_foreign(fd) {
        limit::note_escape(Escape::Foreign);
    // SAFETY: the caller's.
    } else if !unsafe { environment::is_complete(variables) } {
        limit::note_escape(Escape::NoFilter);
    }
    c::close(fd);
}

/// The C library may read and write a descriptor itself, as a stream: printf(3), or the program's
/// standard output. If it is a socket under the limit, all calls of this process are shown from now
/// on, as those of a static program; that is possible while it has one thread. Else it is counted.
#[cold]
pub fn hold_stream(fd: c_int) {
    if limit::LimitedTransfer::of(fd, TransferDirection::Send, false).is_none()
        || process::is_confined()
    {
        return;
    }
    let errno = crate::next::errno();
    let installed = if c::has_one_thread() && !c::is_shown() { install(-1) } else { None };
    match installed {
        Some(launched) if launched.descriptors[1] >= 0 => launched.has_failed(),
        // In a child of vfork(2) that is done already.
        _ if c::is_shown() => {}
        // Why there is none has been sent, and counted.
        Some(_) => {}
        None => limit::note_escape(Escape::Stdio),
    }
    crate::next::set_errno(errno);
}

impl LaunchDescriptors {
    const NOTHING: LaunchDescriptors = LaunchDescriptors { descriptors: [-1; 2] };

    /// The program was not executed.
    pub fn has_failed(self) {
        let [socket, _] = self.descriptors;
        if socket < 0 {
            return;
        }
        self.descriptors.into_iter().filter(|fd| *fd >= 0).for_each(c::close);
        // In a child of vfork(2) it is the parent's memory.
        if process::owner().is_some() {
            region::end();
            limit::end();
        }
    }
}

/// Has the calls of this process shown; `None`: the recorder cannot be reached.
fn install(fd: c_int) -> Option<LaunchDescriptors> {
    let mut door = [0; DOOR_BYTES];
    for (byte, place) in door.iter_mut().zip(&DOOR) {
        *byte = place.load(Ordering::Relaxed);
    }
    let name = door.get(..DOOR_LENGTH.load(Ordering::Acquire)).filter(|name| !name.is_empty())?;
    let socket = c::connect_local(name).ok()?;
    let listener = filtered(fd);
    let mut message = [0; MESSAGE_BYTES];
    message[..4].copy_from_slice(b"WTsc");
    message[8..24].copy_from_slice(&c::comm());
    if let Err(errno) = listener {
        message[4..8].copy_from_slice(&errno.to_le_bytes());
    }
    let sent = c::send(socket, &message, listener.ok(), filter::HANDOVER_FLAGS);
    match (listener, sent) {
        (Ok(listener), _) => Some(LaunchDescriptors { descriptors: [socket, listener] }),
        (Err(_), sent) => {
            c::close(socket);
            sent.ok().map(|()| LaunchDescriptors::NOTHING)
        }
    }
}

/// Installs the filter. A process without rights has to renounce those of programs first; not for a
/// program that has some.
fn filtered(fd: c_int) -> Result<c_int, c_int> {
    match c::install_filter() {
        Err(c::EACCES) => {
            if c::mode(fd) & SET_ID != 0 || c::has_capabilities(fd) {
                return Err(c::EPERM);
            }
            c::gain_no_rights();
            c::install_filter()
        }
        installed => installed,
    }
}

/// Whether calls are recorded or limited.
fn is_watched() -> bool {
    region::is_live() || limit::is_live()
}

/// Whether a limit does not reach a program whatever environment it gets: one of 32 bits, into which
/// the library cannot be loaded, or of a user who may not open the limit's file.
fn is_foreign(fd: c_int) -> bool {
    if !limit::is_live() {
        return false;
    }
    let mut beginning = [0; 5];
    if c::read_at(fd, 0, &mut beginning) == beginning.len() && beginning == *b"\x7fELF\x01" {
        return true;
    }
    let Some(path) = environment::region_path() else { return false };
    // SAFETY: a zero follows the path.
    match unsafe { c::open(path, c::O_RDWR_CLOEXEC) } {
        // What a process may by its capabilities, as after setuid(2), its program may not.
        Some(fd) => {
            let (owner, user) = (c::owner(fd), c::user());
            c::close(fd);
            user != 0 && user != owner
        }
        None => true,
    }
}

/// Whether a file is a program that makes its calls itself, or a script for one.
fn is_direct(fd: c_int) -> bool {
    let mut own = -1;
    let mut calls = None;
    for _ in 0..SCRIPTS_DEEP {
        let at = if own < 0 { fd } else { own };
        let mut beginning = [0; BEGINNING_BYTES];
        let count = c::read_at(at, 0, &mut beginning[..BEGINNING_BYTES - 1]);
        let Some(interpreter) = elf::interpreter(&beginning[..count.min(BEGINNING_BYTES)]) else {
            calls = elf::calls_of(&mut |place, bytes| c::read_at(at, place, bytes));
            break;
        };
        let mut path = [0; BEGINNING_BYTES];
        let length = interpreter.len().min(BEGINNING_BYTES - 1);
        path[..length].copy_from_slice(&interpreter[..length]);
        // SAFETY: zeros follow the path.
        let next = unsafe { c::open(path.as_ptr(), c::O_CLOEXEC) };
        if own >= 0 {
            c::close(own);
        }
        own = next.unwrap_or(-1);
        if own < 0 {
            break;
        }
    }
    if own >= 0 {
        c::close(own);
    }
    calls == Some(SystemCallOrigin::Direct)
}

/// Opens the file of a program, if it can be executed.
///
/// # Safety
/// As [`before`].
unsafe fn open(name: *const u8, searches: bool) -> Option<c_int> {
    if !is_watched() || process::is_confined() || name.is_null() {
        return None;
    }
    // SAFETY: the caller's.
    let file = unsafe { text(name) };
    if !searches || file.contains(&b'/') {
        // SAFETY: the caller's.
        return unsafe { open_executable(name) };
    }
    // SAFETY: the C library keeps the list, and null ends it.
    let variables = unsafe { variables::environ };
    if variables.is_null() {
        return None;
    }
    // SAFETY: as above; the value ends with a zero.
    let folders = match unsafe { variables::variable(variables, b"PATH=") } {
        // SAFETY: as above.
        Some(path) => unsafe { text(path) },
        None => b"/bin:/usr/bin",
    };
    folders.split(|byte| *byte == b':').find_map(|folder| {
        let mut path = [0; PATH_BYTES];
        let (end, whole) = (folder.len() + 1, folder.len() + 1 + file.len());
        path.get_mut(..folder.len())?.copy_from_slice(folder);
        *path.get_mut(folder.len())? = b'/';
        path.get_mut(end..whole)?.copy_from_slice(file);
        path.get(whole)?;
        let begin = usize::from(folder.is_empty());
        // SAFETY: zeros follow the path.
        unsafe { open_executable(path.as_ptr().add(begin)) }
    })
}

/// # Safety
/// The path ends with a zero.
unsafe fn open_executable(path: *const u8) -> Option<c_int> {
    // SAFETY: the caller's.
    executable(unsafe { c::open(path, c::O_CLOEXEC) })
}

/// The file, if it may be a program.
fn executable(fd: Option<c_int>) -> Option<c_int> {
    let fd = fd?;
    let mode = c::mode(fd);
    if mode & KIND == REGULAR && mode & EXECUTABLE != 0 {
        return Some(fd);
    }
    c::close(fd);
    None
}

/// `struct sockaddr_un`.
const DOOR_BYTES: usize = 110;
/// As `windtunnel_sys::seccomp::HANDOVER_BYTES`.
const MESSAGE_BYTES: usize = 72;
/// `PATH_MAX`.
const PATH_BYTES: usize = 4096;
/// Of inode(7).
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const EXECUTABLE: u32 = 0o111;
const SET_ID: u32 = 0o6000;
