//! C's types and constants, and system calls that leave errno alone. Source: the manual pages of the
//! calls, and Linux's headers for 64-bit machines.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::AtomicU32;

use crate::filter;

/// `struct iovec`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct IoVec {
    pub base: *mut c_void,
    pub length: usize,
}

/// `struct msghdr`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SocketMessageHeader {
    pub name: *mut c_void,
    pub name_length: u32,
    pub parts: *mut IoVec,
    pub parts_count: usize,
    pub control: *mut c_void,
    pub control_length: usize,
    pub flags: c_int,
}

/// `struct mmsghdr`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Messages {
    pub message: SocketMessageHeader,
    pub length: u32,
}

/// `struct pollfd`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PollFd {
    pub fd: c_int,
    pub events: i16,
    pub found: i16,
}

/// `struct cmsghdr`; its data follow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ControlMessageHeader {
    pub length: usize,
    pub level: c_int,
    pub kind: c_int,
}

pub(crate) const SOL_SOCKET: c_int = 1;
pub(crate) const SOL_UDP: c_int = 17;
pub(crate) const SO_TYPE: c_int = 3;
pub(crate) const SO_PROTOCOL: c_int = 38;
pub(crate) const SO_DOMAIN: c_int = 39;
pub(crate) const SO_COOKIE: c_int = 57;
pub(crate) const SCM_RIGHTS: c_int = 1;
pub(crate) const UDP_SEGMENT: c_int = 103;
pub(crate) const UDP_GRO: c_int = 104;
pub(crate) const AF_UNSPEC: u16 = 0;
pub(crate) const AF_UNIX: u16 = 1;
pub(crate) const AF_INET: u16 = 2;
pub(crate) const AF_INET6: u16 = 10;
pub(crate) const SOCK_STREAM: c_int = 1;
pub(crate) const SOCK_TYPE_MASK: c_int = 0xf;
pub(crate) const SOCK_NONBLOCK: c_int = O_NONBLOCK;
pub(crate) const O_NONBLOCK: c_int = 0o4000;
pub(crate) const O_RDWR_CLOEXEC: c_int = 0o2_000_002;
pub(crate) const AT_FDCWD: c_int = -100;
pub(crate) const AT_EMPTY_PATH: c_int = 0x1000;
pub(crate) const O_CLOEXEC: c_int = 0o2_000_000;
pub(crate) const F_DUPFD: c_int = 0;
pub(crate) const F_GETFL: c_int = 3;
pub(crate) const F_SETFL: c_int = 4;
pub(crate) const F_DUPFD_CLOEXEC: c_int = 1030;
pub(crate) const FIONBIO: usize = 0x5421;
pub(crate) const MSG_PEEK: c_int = 2;
pub(crate) const MSG_WAITALL: c_int = 0x100;
/// `MSG_OOB`, `MSG_ZEROCOPY` and `MSG_FASTOPEN`: what these do they do once for a call.
pub(crate) const MSG_WHOLE: c_int = 0x2400_0001;
pub(crate) const SO_SNDTIMEO: c_int = 21;
pub(crate) const EPOLLET: u32 = 1 << 31;
pub(crate) const EPOLLONESHOT: u32 = 1 << 30;
pub(crate) const EPOLLEXCLUSIVE: u32 = 1 << 28;
pub(crate) const O_ASYNC: c_int = 0o20_000;
pub(crate) const EINTR: c_int = 4;
pub(crate) const EAGAIN: c_int = 11;
pub(crate) const MSG_DONTWAIT: c_int = 0x40;
pub(crate) const MSG_ERRQUEUE: c_int = 0x2000;
pub(crate) const PR_GET_NAME: c_int = 16;
pub(crate) const PR_SET_NAME: c_int = 15;
pub(crate) const PR_SET_SECCOMP: c_int = 22;
pub(crate) const CLOSE_RANGE_CLOEXEC: u32 = 4;
pub(crate) const EBADF: c_int = 9;
pub(crate) const EACCES: c_int = 13;
pub(crate) const EPERM: c_int = 1;
pub(crate) const EFAULT: c_int = 14;
pub(crate) const EINVAL: c_int = 22;
pub(crate) const ENOSYS: c_int = 38;
pub(crate) const ENOTSOCK: c_int = 88;
pub(crate) const EISCONN: c_int = 106;
pub(crate) const EALREADY: c_int = 114;
pub(crate) const EINPROGRESS: c_int = 115;

/// Numbers of system calls.
#[cfg(target_arch = "x86_64")]
mod number {
    pub(super) const RT_SIGACTION: usize = 13;
    pub(super) const PREAD: usize = 17;
    pub(super) const FUTEX: usize = 202;
    pub(super) const EPOLL_CTL: usize = 233;
    pub(super) const SOCKET: usize = 41;
    pub(super) const CONNECT: usize = 42;
    pub(super) const SENDMSG: usize = 46;
    pub(super) const FGETXATTR: usize = 193;
    pub(super) const PROCESS_VM_READV: usize = 310;
    pub(super) const SECCOMP: usize = 317;
    pub(super) const READ: usize = 0;
    pub(super) const CLOSE: usize = 3;
    pub(super) const FSTAT: usize = 5;
    pub(super) const MMAP: usize = 9;
    pub(super) const MADVISE: usize = 28;
    pub(super) const IOCTL: usize = 16;
    pub(super) const GETPID: usize = 39;
    pub(super) const GETEUID: usize = 107;
    pub(super) const GETSOCKNAME: usize = 51;
    pub(super) const GETPEERNAME: usize = 52;
    pub(super) const GETSOCKOPT: usize = 55;
    pub(super) const FCNTL: usize = 72;
    pub(super) const PRCTL: usize = 157;
    pub(super) const GETTID: usize = 186;
    pub(super) const OPENAT: usize = 257;
}

#[cfg(target_arch = "aarch64")]
mod number {
    pub(super) const RT_SIGACTION: usize = 134;
    pub(super) const PREAD: usize = 67;
    pub(super) const FUTEX: usize = 98;
    pub(super) const EPOLL_CTL: usize = 21;
    pub(super) const SOCKET: usize = 198;
    pub(super) const CONNECT: usize = 203;
    pub(super) const SENDMSG: usize = 211;
    pub(super) const FGETXATTR: usize = 10;
    pub(super) const PROCESS_VM_READV: usize = 270;
    pub(super) const SECCOMP: usize = 277;
    pub(super) const READ: usize = 63;
    pub(super) const CLOSE: usize = 57;
    pub(super) const FSTAT: usize = 80;
    pub(super) const MMAP: usize = 222;
    pub(super) const MADVISE: usize = 233;
    pub(super) const IOCTL: usize = 29;
    pub(super) const GETPID: usize = 172;
    pub(super) const GETEUID: usize = 175;
    pub(super) const GETSOCKNAME: usize = 204;
    pub(super) const GETPEERNAME: usize = 205;
    pub(super) const GETSOCKOPT: usize = 209;
    pub(super) const FCNTL: usize = 25;
    pub(super) const PRCTL: usize = 167;
    pub(super) const GETTID: usize = 178;
    pub(super) const OPENAT: usize = 56;
}

/// A system call; below zero: errno.
///
/// # Safety
/// The arguments are as the call wants them.
#[cfg(target_arch = "x86_64")]
unsafe fn system(number: usize, arguments: [usize; 6]) -> isize {
    let result: isize;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller vouches for the arguments; the kernel changes rcx, r11 and the result.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            out("rcx") _, out("r11") _, options(nostack)
        );
    }
    result
}

/// A system call; below zero: errno.
///
/// # Safety
/// The arguments are as the call wants them.
#[cfg(target_arch = "aarch64")]
unsafe fn system(number: usize, arguments: [usize; 6]) -> isize {
    let result: isize;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller vouches for the arguments; the kernel changes the result only.
    unsafe {
        core::arch::asm!(
            "svc 0", in("x8") number, inlateout("x0") a as isize => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f, options(nostack)
        );
    }
    result
}

/// An option of a socket that is a number: its value, or errno below zero.
pub fn option<T: Copy + Default>(fd: c_int, name: c_int) -> Result<T, c_int> {
    let (mut value, mut length) = (T::default(), size_of::<T>() as u32);
    let at = [fd as usize, SOL_SOCKET as usize, name as usize];
    let arguments = [at[0], at[1], at[2], (&raw mut value) as usize, (&raw mut length) as usize, 0];
    // SAFETY: the kernel writes at most `length` bytes to the value, and the length.
    let result = unsafe { system(number::GETSOCKOPT, arguments) };
    if result < 0 { Err(-result as c_int) } else { Ok(value) }
}

/// An address of a socket.
#[repr(C, align(8))]
#[derive(Debug, Clone, Copy)]
pub struct SocketAddressStorage {
    pub bytes: [u8; 128],
    pub length: u32,
}

/// The socket's own address (getsockname(2)), or that of its peer.
pub fn name(fd: c_int, of_peer: bool) -> Option<SocketAddressStorage> {
    let mut name = SocketAddressStorage { bytes: [0; 128], length: 128 };
    let number = if of_peer { number::GETPEERNAME } else { number::GETSOCKNAME };
    let at = [(&raw mut name.bytes) as usize, (&raw mut name.length) as usize];
    // SAFETY: the kernel writes at most 128 bytes to the address, and the length.
    let result = unsafe { system(number, [fd as usize, at[0], at[1], 0, 0, 0]) };
    (result >= 0).then_some(name)
}

/// How long a call that sends may block, in nanoseconds; 0: for ever.
pub fn send_timeout_ns(fd: c_int) -> u64 {
    let [seconds, micros] = option::<[u64; 2]>(fd, SO_SNDTIMEO).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(micros.saturating_mul(1000))
}

/// Waits until a word is no longer this value and what changed it wakes its readers, or until a
/// time of CLOCK_MONOTONIC; whether the handler of a signal ended it (`FUTEX_WAIT_BITSET`).
pub fn wait_for_change(word: &AtomicU32, value: u32, until_ns: u64) -> bool {
    const WAIT_BITSET: usize = 9;
    const ANY: usize = 0xffff_ffff;
    let until = [until_ns / 1_000_000_000, until_ns % 1_000_000_000];
    let at = [word.as_ptr() as usize, (&raw const until) as usize];
    // SAFETY: the word and the time live, and the kernel only reads them.
    let result =
        unsafe { system(number::FUTEX, [at[0], WAIT_BITSET, value as usize, at[1], 0, ANY]) };
    result == -(EINTR as isize)
}

/// Whether the process has a handler of a signal after which calls that block fail (`EINTR`).
pub fn has_interrupting_handler() -> bool {
    /// `SA_RESTART` of sigaction(2).
    const RESTART: u64 = 0x1000_0000;
    const IGNORE: u64 = 1;
    // The C library's own, 32 and 33, are not the program's.
    (1..32).chain(34..=64).any(|signal: usize| {
        // `struct sigaction` of the kernel: handler, flags, and on some machines a third word; mask.
        let mut action = [0_u64; 5];
        let arguments = [signal, 0, (&raw mut action) as usize, 8, 0, 0];
        // SAFETY: the kernel writes at most four words.
        let result = unsafe { system(number::RT_SIGACTION, arguments) };
        result == 0 && action[0] > IGNORE && action[1] & RESTART == 0
    })
}

/// `struct epoll_event`.
#[cfg_attr(target_arch = "x86_64", repr(C, packed))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C))]
#[derive(Debug, Clone, Copy)]
pub struct EpollEvent {
    pub events: u32,
    pub data: u64,
}

/// Watches a descriptor as before (`EPOLL_CTL_MOD`): what it is ready for is said again.
pub fn watch_again(set: c_int, fd: c_int, event: EpollEvent) {
    const CHANGE: usize = 3;
    let arguments = [set as usize, CHANGE, fd as usize, (&raw const event) as usize, 0, 0];
    // SAFETY: the kernel reads the event.
    unsafe { system(number::EPOLL_CTL, arguments) };
}

/// Whether a socket has bytes that may be received.
pub fn has_bytes(fd: c_int) -> bool {
    const FIONREAD: usize = 0x541b;
    let mut count: c_int = 0;
    let arguments = [fd as usize, FIONREAD, (&raw mut count) as usize, 0, 0, 0];
    // SAFETY: the kernel writes the number.
    let result = unsafe { system(number::IOCTL, arguments) };
    result >= 0 && count > 0
}

/// Flags of an open file (`F_GETFL`).
pub fn status_flags(fd: c_int) -> Option<c_int> {
    // SAFETY: no pointers.
    let result = unsafe { system(number::FCNTL, [fd as usize, F_GETFL as usize, 0, 0, 0, 0]) };
    (result >= 0).then_some(result as c_int)
}

/// The process.
pub fn pid() -> u32 {
    // SAFETY: no arguments.
    unsafe { system(number::GETPID, [0; 6]) as u32 }
}

/// Whether the calling thread is the one that the process began with.
pub fn is_first_thread() -> bool {
    // SAFETY: no arguments.
    let thread = unsafe { system(number::GETTID, [0; 6]) };
    thread as u32 == pid()
}

/// The name of the calling thread: at the start that of the program.
pub fn comm() -> [u8; 16] {
    let mut name = [0; 16];
    let arguments = [PR_GET_NAME as usize, (&raw mut name) as usize, 0, 0, 0, 0];
    // SAFETY: the kernel writes sixteen bytes.
    unsafe { system(number::PRCTL, arguments) };
    name
}

/// Opens a file; the path ends with a zero.
///
/// # Safety
/// The path is readable up to its zero.
pub unsafe fn open(path: *const u8, flags: c_int) -> Option<c_int> {
    // SAFETY: the caller's.
    unsafe { open_at(AT_FDCWD, path, flags) }
}

/// The same of a path that begins at a folder.
///
/// # Safety
/// The path is readable up to its zero.
pub unsafe fn open_at(folder: c_int, path: *const u8, flags: c_int) -> Option<c_int> {
    let arguments = [folder as isize as usize, path as usize, flags as usize, 0, 0, 0];
    // SAFETY: the kernel reads the path.
    let result = unsafe { system(number::OPENAT, arguments) };
    (result >= 0).then_some(result as c_int)
}

/// Reads into the bytes: how many.
pub fn read(fd: c_int, bytes: &mut [u8]) -> usize {
    let arguments = [fd as usize, bytes.as_mut_ptr() as usize, bytes.len(), 0, 0, 0];
    // SAFETY: the kernel writes at most as many bytes as there are.
    let result = unsafe { system(number::READ, arguments) };
    usize::try_from(result).unwrap_or(0)
}

/// Closes a descriptor of ours.
pub fn close(fd: c_int) {
    // SAFETY: no pointers.
    unsafe { system(number::CLOSE, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// Reads from a place of a file: how many bytes.
pub fn read_at(fd: c_int, at: u64, bytes: &mut [u8]) -> usize {
    let arguments = [fd as usize, bytes.as_mut_ptr() as usize, bytes.len(), at as usize, 0, 0];
    // SAFETY: the kernel writes at most as many bytes as there are.
    let result = unsafe { system(number::PREAD, arguments) };
    usize::try_from(result).unwrap_or(0)
}

/// Copies memory of the process, if all of it may be read.
pub fn read_memory(pid: u32, from: usize, into: &mut [u8]) -> bool {
    let here = IoVec { base: into.as_mut_ptr().cast(), length: into.len() };
    let there = IoVec { base: ptr::with_exposed_provenance_mut(from), length: into.len() };
    let at = [(&raw const here) as usize, (&raw const there) as usize];
    // SAFETY: the kernel writes at most as many bytes as there are, and reads only what may be read.
    let result = unsafe { system(number::PROCESS_VM_READV, [pid as usize, at[0], 1, at[1], 1, 0]) };
    usize::try_from(result).is_ok_and(|count| count == into.len())
}

/// Kind and permissions of a file.
pub fn mode(fd: c_int) -> u32 {
    let mut status = [0_u64; 18];
    let arguments = [fd as usize, (&raw mut status) as usize, 0, 0, 0, 0];
    // SAFETY: as in `length`; `st_mode` is at byte 24 on x86-64 and at byte 16 on aarch64.
    let result = unsafe { system(number::FSTAT, arguments) };
    let at = if cfg!(target_arch = "x86_64") { 3 } else { 2 };
    if result < 0 { 0 } else { status[at] as u32 }
}

/// Whose a file is.
pub fn owner(fd: c_int) -> u32 {
    let mut status = [0_u64; 18];
    let arguments = [fd as usize, (&raw mut status) as usize, 0, 0, 0, 0];
    // SAFETY: as in `length`; `st_uid` is at byte 28 on x86-64 and at byte 24 on aarch64.
    unsafe { system(number::FSTAT, arguments) };
    if cfg!(target_arch = "x86_64") { (status[3] >> 32) as u32 } else { status[3] as u32 }
}

/// The effective user.
pub fn user() -> u32 {
    // SAFETY: no arguments.
    unsafe { system(number::GETEUID, [0; 6]) as u32 }
}

/// Whether a file gives capabilities to its program.
pub fn has_capabilities(fd: c_int) -> bool {
    let name = c"security.capability".as_ptr() as usize;
    // SAFETY: the kernel reads the name, and without room writes nothing.
    unsafe { system(number::FGETXATTR, [fd as usize, name, 0, 0, 0, 0]) > 0 }
}

/// Whether the calls of this process are shown to a recorder, by a filter.
pub fn is_shown() -> bool {
    // SAFETY: no pointers, and no process has this descriptor.
    let result = unsafe { system(number::CLOSE, [filter::PROBE as usize, 0, 0, 0, 0, 0]) };
    result == -(filter::PROBE_ERRNO as isize)
}

/// Whether the calling thread is the only one of its process, as far as /proc says.
pub fn has_one_thread() -> bool {
    // SAFETY: the path ends with a zero.
    let Some(fd) = (unsafe { open(c"/proc/self/stat".as_ptr().cast(), O_CLOEXEC) }) else {
        return false;
    };
    let mut bytes = [0; 1024];
    let count = read(fd, &mut bytes);
    close(fd);
    // `pid (name) state …`: the 20th field is the number of threads, proc_pid_stat(5).
    let text = bytes.get(..count).unwrap_or_default();
    let end = text.iter().rposition(|byte| *byte == b')').unwrap_or(0);
    let mut fields = text.get(end..).unwrap_or_default().split(|byte| *byte == b' ');
    fields.nth(18) == Some(b"1")
}

/// A local socket of datagrams that is connected to an address; or errno.
pub fn connect_local(name: &[u8]) -> Result<c_int, c_int> {
    const LOCAL: usize = 1;
    const DATAGRAMS_CLOEXEC: usize = 0o2_000_002;
    // SAFETY: no pointers.
    let fd = unsafe { system(number::SOCKET, [LOCAL, DATAGRAMS_CLOEXEC, 0, 0, 0, 0]) };
    if fd < 0 {
        return Err(-fd as c_int);
    }
    let arguments = [fd as usize, name.as_ptr() as usize, name.len(), 0, 0, 0];
    // SAFETY: the kernel reads as many bytes as there are.
    let result = unsafe { system(number::CONNECT, arguments) };
    if result < 0 {
        close(fd as c_int);
        return Err(-result as c_int);
    }
    Ok(fd as c_int)
}

/// Sends a message with these flags, and a descriptor with it; or errno.
pub fn send(fd: c_int, bytes: &[u8], descriptor: Option<c_int>, flags: u32) -> Result<(), c_int> {
    let mut part = IoVec { base: bytes.as_ptr().cast_mut().cast(), length: bytes.len() };
    // `struct cmsghdr` with one descriptor, which is followed by padding.
    let rights = ControlMessageHeader { length: 20, level: SOL_SOCKET, kind: SCM_RIGHTS };
    let mut control = (rights, descriptor.unwrap_or(-1), 0);
    let has_control = descriptor.is_some();
    let message = SocketMessageHeader {
        name: ptr::null_mut(),
        name_length: 0,
        parts: &raw mut part,
        parts_count: 1,
        control: if has_control { (&raw mut control).cast() } else { ptr::null_mut() },
        control_length: if has_control { 24 } else { 0 },
        flags: 0,
    };
    let arguments = [fd as usize, (&raw const message) as usize, flags as usize, 0, 0, 0];
    // SAFETY: the message and all that it points to live, and the kernel reads them.
    let result = unsafe { system(number::SENDMSG, arguments) };
    if result < 0 { Err(-result as c_int) } else { Ok(()) }
}

/// Installs the filter: where calls are shown from now on; or errno.
pub fn install_filter() -> Result<c_int, c_int> {
    let instructions = filter::program();
    let program = filter::SeccompProgram::of(&instructions);
    let (mode, flags) = (filter::SET_MODE_FILTER as usize, filter::FLAGS as usize);
    // SAFETY: the program and its instructions live, and the kernel copies them.
    let result =
        unsafe { system(number::SECCOMP, [mode, flags, (&raw const program) as usize, 0, 0, 0]) };
    if result < 0 { Err(-result as c_int) } else { Ok(result as c_int) }
}

/// Has the process, and what it starts, gain no rights by programs.
pub fn gain_no_rights() {
    const PR_SET_NO_NEW_PRIVS: usize = 38;
    // SAFETY: no pointers.
    unsafe { system(number::PRCTL, [PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0]) };
}

/// The length of a file.
pub fn length(fd: c_int) -> u64 {
    let mut status = [0_u64; 18];
    let arguments = [fd as usize, (&raw mut status) as usize, 0, 0, 0, 0];
    // SAFETY: `struct stat` has 144 bytes at the most; `st_size` is at byte 48.
    let result = unsafe { system(number::FSTAT, arguments) };
    if result < 0 { 0 } else { status[6] }
}

/// Maps so many bytes of a file for all, or memory of its own (-1).
pub fn map(fd: c_int, bytes: usize) -> Option<*mut u8> {
    const READ_WRITE: usize = 3;
    let flags = if fd < 0 { 0x22 } else { 0x01 };
    // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
    let result =
        unsafe { system(number::MMAP, [0, bytes, READ_WRITE, flags, fd as isize as usize, 0]) };
    (!(-4095..=0).contains(&result)).then(|| ptr::with_exposed_provenance_mut(result as usize))
}

/// Has the kernel clear memory in the children of a fork (`MADV_WIPEONFORK`).
pub fn wipe_on_fork(base: *mut u8, bytes: usize) -> bool {
    const WIPE: usize = 18;
    // SAFETY: the memory stays as it is in this process.
    let result = unsafe { system(number::MADVISE, [base as usize, bytes, WIPE, 0, 0, 0]) };
    result >= 0
}
