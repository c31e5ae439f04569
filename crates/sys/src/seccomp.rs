//! Calls of a program, shown to a supervisor before the kernel does them. Source: seccomp(2),
//! seccomp_unotify(2).
//!
//! A process installs [`filter`] for itself and for all that it will start, and hands the
//! [`SeccompListener`] to the supervisor. Each of its calls that the filter shows waits until the
//! supervisor lets it go on, or has it fail; the supervisor here can do nothing else, so that it
//! cannot change what a call does. When the last copy of a listener is closed, the kernel refuses the calls that it
//! would have shown with `ENOSYS`: a supervisor has to live as long as the programs.

pub mod filter;
pub mod running;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use crate::ffi::check;

/// A call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// For [`SeccompListener::resume`].
    pub id: u64,
    /// The thread, as the caller's PID namespace numbers it; 0 if it is not in there.
    pub thread: i32,
    /// A number of [`filter::number`].
    pub call: u32,
    pub arguments: [u64; 6],
}

/// Where the calls of the processes under one filter are shown. Readable when one waits.
#[derive(Debug)]
pub struct SeccompListener(OwnedFd);

impl SeccompListener {
    /// Takes a listener that came from another process. Has the kernel wake the two sides in turn
    /// on one processor where it can (Linux 6.6): a call is then shown and resumed in a tenth of
    /// the time.
    #[must_use]
    pub fn new(descriptor: OwnedFd) -> SeccompListener {
        let flags: libc::c_ulong = SYNC_WAKE_UP;
        // SAFETY: this request takes a number instead of a pointer. Older kernels refuse it, and
        // all is slower.
        unsafe { libc::ioctl(descriptor.as_raw_fd(), SET_FLAGS as _, flags) };
        SeccompListener(descriptor)
    }

    /// The next call that waits; `None` if it has gone with its thread. Waits for one where none
    /// does.
    ///
    /// # Errors
    /// `EINTR` when a signal handler ran, `ENOTCONN` when all processes have ended.
    pub fn receive(&self) -> io::Result<Option<Notification>> {
        // SAFETY: the structure is made of numbers; the kernel wants it zeroed.
        let mut shown: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a live structure of the size that the request's number says.
        let returned = unsafe { libc::ioctl(self.0.as_raw_fd(), RECEIVE as _, &raw mut shown) };
        match check(returned) {
            Ok(_) => Ok(Some(Notification {
                id: shown.id,
                thread: shown.pid.cast_signed(),
                call: shown.data.nr.cast_unsigned(),
                arguments: shown.data.args,
            })),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets a call go on, as if it had never been shown. That it has gone is not a failure.
    ///
    /// # Errors
    /// What ioctl(2) says.
    pub fn resume(&self, id: u64) -> io::Result<()> {
        self.answer(id, 0, USER_NOTIF_CONTINUE)
    }

    /// Has a call fail with an errno. That it has gone is not a failure.
    ///
    /// # Errors
    /// What ioctl(2) says.
    pub fn fail(&self, id: u64, errno: i32) -> io::Result<()> {
        self.answer(id, -errno, 0)
    }

    fn answer(&self, id: u64, error: i32, flags: u32) -> io::Result<()> {
        let answer = libc::seccomp_notif_resp { id, val: 0, error, flags };
        // SAFETY: as in `receive`; the kernel only reads it.
        let returned = unsafe { libc::ioctl(self.0.as_raw_fd(), SEND as _, &raw const answer) };
        match check(returned) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Whether a call still waits: what was read of its process since [`SeccompListener::receive`] was
    /// that process's.
    #[must_use]
    pub fn is_waiting(&self, id: u64) -> bool {
        // SAFETY: as in `receive`; the kernel only reads the number.
        let returned = unsafe { libc::ioctl(self.0.as_raw_fd(), ID_VALID as _, &raw const id) };
        returned == 0
    }
}

impl AsFd for SeccompListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Has the kernel refuse io_uring_setup(2), and sockets of MPTCP, as one that knows neither, to the
/// calling thread and to all that it starts: so they use calls that can be looked at, and streams
/// whose position shows. A process without rights renounces those of programs for that
/// (`PR_SET_NO_NEW_PRIVS`).
///
/// # Errors
/// What seccomp(2) says.
pub fn refuse_hidden_ways() -> io::Result<()> {
    refuse(&filter::refusals())
}

/// Has the kernel refuse the ways to send that [`SeccompFilterKind::Destinations`] does not show, with
/// `EACCES`, to the calling thread and to all that it starts.
///
/// # Errors
/// What seccomp(2) says.
pub fn refuse_other_ways() -> io::Result<()> {
    refuse(&filter::other_ways())
}

/// A process without rights renounces those of programs for that (`PR_SET_NO_NEW_PRIVS`).
fn refuse(instructions: &[filter::Instruction]) -> io::Result<()> {
    let program = filter::SeccompProgram::of(instructions);
    // SAFETY: the program and its instructions live, and the kernel copies them.
    let install = || unsafe {
        libc::syscall(libc::SYS_seccomp, filter::SET_MODE_FILTER, 0, &raw const program)
    };
    if install() == 0 {
        return Ok(());
    }
    rustix::thread::set_no_new_privs(true)?;
    if install() == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Which calls of a program a supervisor is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeccompFilterKind {
    /// All through which bytes can move ([`filter::program`]).
    #[default]
    Bytes,
    /// Those that can name the other end of what is sent ([`filter::destinations`]).
    Destinations,
}

/// The flags with which a process installs a filter that runs already: those of [`filter::FLAGS`], for
/// all of its threads, with an errno where one cannot (`SECCOMP_FILTER_FLAG_TSYNC` and `_TSYNC_ESRCH`).
pub const FLAGS_RUNNING: u32 = filter::FLAGS | 1 | 1 << 4;

/// Whether this kernel has all that a process needs to install a filter that runs already: Linux 5.19.
#[must_use]
pub fn has_filters_for_running() -> bool {
    let nowhere = std::ptr::null::<filter::SeccompProgram>();
    // SAFETY: there is no program, so that nothing is installed; flags are looked at before that.
    let returned = unsafe {
        libc::syscall(libc::SYS_seccomp, filter::SET_MODE_FILTER, FLAGS_RUNNING, nowhere)
    };
    returned < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}

/// Bytes of the message with which a listener is handed over: see `install`.
pub const HANDOVER_BYTES: usize = 72;

/// What a process says as it hands over its listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeccompListenerHandover {
    /// Why there is no listener, an errno; 0 if there is one.
    pub errno: i32,
    /// The program that is about to run, as it was called; cut to 64 bytes.
    pub program: String,
}

impl SeccompListenerHandover {
    /// The message.
    #[must_use]
    pub fn write(&self) -> [u8; HANDOVER_BYTES] {
        let mut message = begun(self.program.as_bytes());
        message[4..8].copy_from_slice(&self.errno.to_le_bytes());
        message
    }

    /// Reads a message; `None` if it is none.
    #[must_use]
    pub fn read(message: &[u8]) -> Option<SeccompListenerHandover> {
        let message: &[u8; HANDOVER_BYTES] = message.try_into().ok()?;
        let (magic, rest) = message.split_first_chunk()?;
        let (errno, name) = rest.split_first_chunk()?;
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let program = String::from_utf8_lossy(&name[..length]).into_owned();
        (*magic == HANDOVER_MAGIC)
            .then(|| SeccompListenerHandover { errno: i32::from_le_bytes(*errno), program })
    }
}

/// In a process that is about to run another program: installs a filter and hands the listener to
/// the other end of `socket`, in a message of eight known bytes, the errno with which installing
/// failed, and the name of the program. Where the other end is closed, nothing is installed. Returns why
/// nothing was, if so. System calls only, no allocation.
///
/// # Errors
/// What sendmsg(2) says; the calls of the process then fail with `ENOSYS`.
pub(crate) fn install(
    socket: BorrowedFd<'_>,
    program: &[u8],
    filter: SeccompFilterKind,
) -> Result<Option<Errno>, Errno> {
    let mut message = begun(program);
    if is_closed(socket) {
        return Ok(Some(Errno::PIPE));
    }
    let (bytes, destinations) = (filter::program(), filter::destinations());
    let program = match filter {
        SeccompFilterKind::Bytes => filter::SeccompProgram::of(&bytes),
        SeccompFilterKind::Destinations => filter::SeccompProgram::of(&destinations),
    };
    // SAFETY: the program and its instructions live, and the kernel copies them.
    let listener = unsafe {
        libc::syscall(libc::SYS_seccomp, filter::SET_MODE_FILTER, filter::FLAGS, &raw const program)
    };
    if listener < 0 {
        let errno = Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO);
        message[4..8].copy_from_slice(&errno.raw_os_error().to_le_bytes());
        return hand_over(socket, &message, None).map(|()| Some(errno));
    }
    #[expect(clippy::cast_possible_truncation, reason = "descriptors are below 2^31")]
    // SAFETY: the kernel has just made the descriptor for the caller.
    let listener = unsafe { OwnedFd::from_raw_fd(listener as libc::c_int) };
    hand_over(socket, &message, Some(listener.as_fd())).map(|()| None)
}

/// A message without an errno.
fn begun(program: &[u8]) -> [u8; HANDOVER_BYTES] {
    let mut message = [0; HANDOVER_BYTES];
    message[..4].copy_from_slice(&HANDOVER_MAGIC);
    let cut = &program[..program.len().min(HANDOVER_BYTES - 8)];
    message[8..8 + cut.len()].copy_from_slice(cut);
    message
}

/// Whether the other end is closed: the supervisor has gone before the program came.
fn is_closed(socket: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut look = [PollFd::from_borrowed_fd(socket, PollFlags::OUT)];
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut look, Some(&now)).is_err()
        || look[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

fn hand_over(
    socket: BorrowedFd<'_>,
    message: &[u8; HANDOVER_BYTES],
    listener: Option<BorrowedFd<'_>>,
) -> Result<(), Errno> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(listener) = &listener {
        control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(listener)));
    }
    let pieces = [io::IoSlice::new(message)];
    let flags = SendFlags::from_bits_retain(filter::HANDOVER_FLAGS);
    sendmsg(socket, &pieces, &mut control, flags).map(drop)
}

const HANDOVER_MAGIC: [u8; 4] = *b"WTsc";

/// `SECCOMP_IOCTL_NOTIF_RECV`, `_SEND`, `_ID_VALID` and `_SET_FLAGS` of linux/seccomp.h.
const RECEIVE: u32 = 0xc050_2100;
const SEND: u32 = 0xc018_2101;
const ID_VALID: u32 = 0x4008_2102;
const SET_FLAGS: u32 = 0x4008_2104;
/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`.
const SYNC_WAKE_UP: libc::c_ulong = 1;
/// `SECCOMP_USER_NOTIF_FLAG_CONTINUE`.
const USER_NOTIF_CONTINUE: u32 = 1;

const _: () = assert!(size_of::<libc::seccomp_notif>() == 80);
const _: () = assert!(size_of::<libc::seccomp_notif_resp>() == 24);

#[cfg(test)]
mod tests {
    use super::filter::{
        HANDOVER_FLAGS, Instruction, LENGTH, PROBE, PROBE_ERRNO, destinations, number, other_ways,
        program, refusals,
    };

    /// What the program returns for a call: an interpreter of the instructions it is made of.
    fn verdict(architecture: u32, call: u32, argument: u32) -> u32 {
        let whole: [Instruction; LENGTH] = program();
        answer(&whole, architecture, call, argument)
    }

    pub(super) fn answer(
        program: &[Instruction],
        architecture: u32,
        call: u32,
        argument: u32,
    ) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let Instruction { code, then, or_else, value } = program[at];
            let holds = match code {
                0x20 => {
                    loaded = match value {
                        0 => call,
                        4 => architecture,
                        16 | 24 | 32 | 48 => argument,
                        52 => 0,
                        other => panic!("loads from {other}"),
                    };
                    true
                }
                0x15 => loaded == value,
                0x35 => loaded >= value,
                0x05 => {
                    at += value as usize;
                    false
                }
                0x06 => return value,
                other => panic!("instruction {other:#x}"),
            };
            at += 1 + usize::from(if holds { then } else { or_else });
        }
    }

    const ALLOW: u32 = 0x7fff_0000;
    const NOTIFY: u32 = 0x7fc0_0000;
    const HERE: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };

    #[test]
    fn calls_on_descriptors_are_shown_and_all_others_pass() {
        let shown = [number::READ, number::CLOSE, number::IO_URING_SETUP, number::SENDMSG];
        for call in shown {
            assert_eq!(verdict(HERE, call, 0), NOTIFY, "{call}");
        }
        let libc_says: Vec<u32> = [libc::SYS_futex, libc::SYS_getpid, libc::SYS_ppoll]
            .into_iter()
            .map(|number| u32::try_from(number).unwrap())
            .collect();
        for call in libc_says {
            assert_eq!(verdict(HERE, call, 0), ALLOW, "{call}");
        }
    }

    #[test]
    fn rings_and_sockets_of_mptcp_are_answered_as_by_a_kernel_without_them() {
        let answer = |call, argument| answer(&refusals(), HERE, call, argument);
        assert_eq!(answer(number::IO_URING_SETUP, 0), 0x0005_0000 | 38);
        assert_eq!(answer(number::SOCKET, 262), 0x0005_0000 | 93);
        assert_eq!(answer(number::SOCKET, 6), ALLOW);
        assert_eq!(answer(number::READ, 262), ALLOW);
    }

    #[test]
    fn calls_that_name_another_end_are_shown_and_other_ways_to_send_are_refused() {
        let shown = |call, argument| answer(&destinations(), HERE, call, argument);
        for call in [number::CONNECT, number::SENDMSG, number::SENDMMSG] {
            assert_eq!(shown(call, 7), NOTIFY, "{call}");
        }
        assert_eq!((shown(number::SENDTO, 0), shown(number::SENDTO, 64)), (ALLOW, NOTIFY));
        assert_eq!(shown(number::SENDMSG, HANDOVER_FLAGS), ALLOW);
        assert_eq!((shown(number::WRITE, 7), shown(number::SOCKET, 7)), (ALLOW, ALLOW));
        assert_eq!(answer(&destinations(), 0x4000_0003, number::CONNECT, 7), ALLOW);
        let other =
            |architecture, call, argument| answer(&other_ways(), architecture, call, argument);
        let refused = 0x0005_0000 | 13;
        assert_eq!(other(HERE, number::SOCKET, 17), refused);
        assert_eq!(other(HERE, number::SETSOCKOPT, 132), refused);
        assert_eq!(other(HERE, 0x4000_0000 | number::SOCKET, 2), refused);
        assert_eq!(other(0x4000_0003, 102, 3), refused);
        for (architecture, call, argument) in [
            (HERE, number::SOCKET, 2),
            (HERE, number::SETSOCKOPT, 6),
            (HERE, number::READ, 17),
            (0x4000_0003, 4, 17),
        ] {
            assert_eq!(other(architecture, call, argument), ALLOW, "{call}");
        }
    }

    #[test]
    fn the_calls_of_other_architectures_pass() {
        assert_eq!(verdict(0x4000_0003, number::READ, 0), ALLOW);
        assert_eq!(verdict(HERE, 0x4000_0000 | number::READ, 0), ALLOW);
    }

    #[test]
    fn the_message_that_hands_over_the_listener_passes() {
        assert_eq!(verdict(HERE, number::SENDMSG, HANDOVER_FLAGS), ALLOW);
        assert_eq!(verdict(HERE, number::SENDMSG, 0x4000), NOTIFY);
        assert_eq!(verdict(HERE, number::RECVMSG, HANDOVER_FLAGS), NOTIFY);
    }

    #[test]
    fn a_process_finds_out_whether_its_calls_are_shown() {
        assert_eq!(verdict(HERE, number::CLOSE, PROBE), 0x0005_0000 | PROBE_ERRNO);
        assert_eq!(verdict(HERE, number::CLOSE, 3), NOTIFY);
        assert_eq!(verdict(HERE, number::READ, PROBE), NOTIFY);
    }

    #[test]
    fn the_numbers_are_those_of_this_architecture() {
        let pairs = [
            (number::READ, libc::SYS_read),
            (number::WRITE, libc::SYS_write),
            (number::CLOSE, libc::SYS_close),
            (number::READV, libc::SYS_readv),
            (number::WRITEV, libc::SYS_writev),
            (number::SENDFILE, libc::SYS_sendfile),
            (number::CONNECT, libc::SYS_connect),
            (number::ACCEPT, libc::SYS_accept),
            (number::ACCEPT4, libc::SYS_accept4),
            (number::SENDTO, libc::SYS_sendto),
            (number::RECVFROM, libc::SYS_recvfrom),
            (number::SENDMSG, libc::SYS_sendmsg),
            (number::RECVMSG, libc::SYS_recvmsg),
            (number::SENDMMSG, libc::SYS_sendmmsg),
            (number::RECVMMSG, libc::SYS_recvmmsg),
            (number::SHUTDOWN, libc::SYS_shutdown),
            (number::SETSOCKOPT, libc::SYS_setsockopt),
            (number::EXECVE, libc::SYS_execve),
            (number::EXECVEAT, libc::SYS_execveat),
            (number::EXIT_GROUP, libc::SYS_exit_group),
            (number::SPLICE, libc::SYS_splice),
            (number::DUP3, libc::SYS_dup3),
            (number::IO_URING_SETUP, libc::SYS_io_uring_setup),
            (number::SOCKET, libc::SYS_socket),
            (number::CLOSE_RANGE, libc::SYS_close_range),
        ];
        for (ours, theirs) in pairs {
            assert_eq!(i64::from(ours), theirs);
        }
    }
}
