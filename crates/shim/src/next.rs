//! The functions that ours stand before: those of the C library, as a rule.

use core::ffi::{c_char, c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::c::{ENOSYS, EpollEvent, IoVec, Messages, PollFd, SocketMessageHeader};

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn __errno_location() -> *mut c_int;
}

macro_rules! next {
    ($($name:ident, $symbol:literal: fn($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        #[allow(non_camel_case_types)]
        #[repr(usize)]
        enum Index { $($name,)* End }

        static FOUND: [AtomicPtr<c_void>; Index::End as usize] =
            [const { AtomicPtr::new(ptr::null_mut()) }; Index::End as usize];

        /// Looks all of them up.
        pub fn find() {
            $(lookup(Index::$name as usize, concat!($symbol, "\0"));)*
        }

        $(
            /// The function of this name.
            ///
            /// # Safety
            /// As the function itself.
            #[inline(always)]
            pub unsafe fn $name($($argument: $kind),*) -> $result {
                let mut found = FOUND[Index::$name as usize].load(Ordering::Relaxed);
                if found.is_null() {
                    found = lookup(Index::$name as usize, concat!($symbol, "\0"));
                }
                type Next = unsafe extern "C" fn($($kind),*) -> $result;
                // SAFETY: the symbol has this type by its manual page.
                let next = unsafe { mem::transmute::<*mut c_void, Next>(found) };
                // SAFETY: the caller's.
                unsafe { next($($argument),*) }
            }
        )*
    };
}

next! {
    read, "read": fn(fd: c_int, to: *mut c_void, count: usize) -> isize;
    read_chk, "__read_chk": fn(fd: c_int, to: *mut c_void, count: usize, room: usize) -> isize;
    readv, "readv": fn(fd: c_int, parts: *const IoVec, count: c_int) -> isize;
    preadv2, "preadv2": fn(fd: c_int, parts: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize;
    recv, "recv": fn(fd: c_int, to: *mut c_void, count: usize, flags: c_int) -> isize;
    recv_chk, "__recv_chk": fn(fd: c_int, to: *mut c_void, count: usize, room: usize, flags: c_int) -> isize;
    recvfrom, "recvfrom": fn(fd: c_int, to: *mut c_void, count: usize, flags: c_int, name: *mut c_void, length: *mut u32) -> isize;
    recvfrom_chk, "__recvfrom_chk": fn(fd: c_int, to: *mut c_void, count: usize, room: usize, flags: c_int, name: *mut c_void, length: *mut u32) -> isize;
    recvmsg, "recvmsg": fn(fd: c_int, message: *mut SocketMessageHeader, flags: c_int) -> isize;
    recvmmsg, "recvmmsg": fn(fd: c_int, messages: *mut Messages, count: u32, flags: c_int, timeout: *mut c_void) -> c_int;
    write, "write": fn(fd: c_int, from: *const c_void, count: usize) -> isize;
    writev, "writev": fn(fd: c_int, parts: *const IoVec, count: c_int) -> isize;
    pwritev2, "pwritev2": fn(fd: c_int, parts: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize;
    send, "send": fn(fd: c_int, from: *const c_void, count: usize, flags: c_int) -> isize;
    sendto, "sendto": fn(fd: c_int, from: *const c_void, count: usize, flags: c_int, name: *const c_void, length: u32) -> isize;
    sendmsg, "sendmsg": fn(fd: c_int, message: *const SocketMessageHeader, flags: c_int) -> isize;
    sendmmsg, "sendmmsg": fn(fd: c_int, messages: *mut Messages, count: u32, flags: c_int) -> c_int;
    sendfile, "sendfile": fn(out: c_int, file: c_int, at: *mut i64, count: usize) -> isize;
    splice, "splice": fn(from: c_int, from_at: *mut i64, to: c_int, to_at: *mut i64, count: usize, flags: u32) -> isize;
    socket, "socket": fn(family: c_int, kind: c_int, protocol: c_int) -> c_int;
    socketpair, "socketpair": fn(family: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int;
    connect, "connect": fn(fd: c_int, name: *const c_void, length: u32) -> c_int;
    accept, "accept": fn(fd: c_int, name: *mut c_void, length: *mut u32) -> c_int;
    accept4, "accept4": fn(fd: c_int, name: *mut c_void, length: *mut u32, flags: c_int) -> c_int;
    shutdown, "shutdown": fn(fd: c_int, how: c_int) -> c_int;
    setsockopt, "setsockopt": fn(fd: c_int, level: c_int, name: c_int, value: *const c_void, length: u32) -> c_int;
    epoll_ctl, "epoll_ctl": fn(set: c_int, order: c_int, fd: c_int, event: *mut EpollEvent) -> c_int;
    epoll_wait, "epoll_wait": fn(set: c_int, events: *mut EpollEvent, most: c_int, timeout: c_int) -> c_int;
    epoll_pwait, "epoll_pwait": fn(set: c_int, events: *mut EpollEvent, most: c_int, timeout: c_int, mask: *const c_void) -> c_int;
    epoll_pwait2, "epoll_pwait2": fn(set: c_int, events: *mut EpollEvent, most: c_int, timeout: *const [i64; 2], mask: *const c_void) -> c_int;
    poll, "poll": fn(all: *mut PollFd, count: usize, timeout: c_int) -> c_int;
    poll_chk, "__poll_chk": fn(all: *mut PollFd, count: usize, timeout: c_int, room: usize) -> c_int;
    ppoll, "ppoll": fn(all: *mut PollFd, count: usize, timeout: *const [i64; 2], mask: *const c_void) -> c_int;
    select, "select": fn(count: c_int, reads: *mut u64, writes: *mut u64, others: *mut u64, timeout: *mut [i64; 2]) -> c_int;
    pselect, "pselect": fn(count: c_int, reads: *mut u64, writes: *mut u64, others: *mut u64, timeout: *const [i64; 2], mask: *const c_void) -> c_int;
    close, "close": fn(fd: c_int) -> c_int;
    close_range, "close_range": fn(first: u32, last: u32, flags: c_int) -> c_int;
    closefrom, "closefrom": fn(first: c_int) -> ();
    dup, "dup": fn(fd: c_int) -> c_int;
    dup2, "dup2": fn(fd: c_int, to: c_int) -> c_int;
    dup3, "dup3": fn(fd: c_int, to: c_int, flags: c_int) -> c_int;
    fcntl, "fcntl": fn(fd: c_int, order: c_int, argument: usize) -> c_int;
    fcntl64, "fcntl64": fn(fd: c_int, order: c_int, argument: usize) -> c_int;
    ioctl, "ioctl": fn(fd: c_int, order: usize, argument: usize) -> c_int;
    prctl, "prctl": fn(order: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int;
    fork, "fork": fn() -> c_int;
    raw_fork, "_Fork": fn() -> c_int;
    execve, "execve": fn(path: *const c_char, arguments: *const *const c_char, variables: *const *const c_char) -> c_int;
    execv, "execv": fn(path: *const c_char, arguments: *const *const c_char) -> c_int;
    execvp, "execvp": fn(file: *const c_char, arguments: *const *const c_char) -> c_int;
    execvpe, "execvpe": fn(file: *const c_char, arguments: *const *const c_char, variables: *const *const c_char) -> c_int;
    fexecve, "fexecve": fn(fd: c_int, arguments: *const *const c_char, variables: *const *const c_char) -> c_int;
    execveat, "execveat": fn(folder: c_int, path: *const c_char, arguments: *const *const c_char, variables: *const *const c_char, flags: c_int) -> c_int;
    execl, "execl": fn() -> c_int;
    execlp, "execlp": fn() -> c_int;
    execle, "execle": fn() -> c_int;
    posix_spawn, "posix_spawn": fn(pid: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: *const *const c_char, variables: *const *const c_char) -> c_int;
    posix_spawnp, "posix_spawnp": fn(pid: *mut c_int, file: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: *const *const c_char, variables: *const *const c_char) -> c_int;
    shell, "system": fn(command: *const c_char) -> c_int;
    popen, "popen": fn(command: *const c_char, mode: *const c_char) -> *mut c_void;
    fdopen, "fdopen": fn(fd: c_int, mode: *const c_char) -> *mut c_void;
    fclose, "fclose": fn(stream: *mut c_void) -> c_int;
    fileno, "fileno": fn(stream: *mut c_void) -> c_int;
    clock_gettime, "clock_gettime": fn(clock: c_int, time: *mut [i64; 2]) -> c_int;
    system_call, "syscall": fn() -> isize;
    dprintf, "dprintf": fn() -> c_int;
    vdprintf, "vdprintf": fn() -> c_int;
    dprintf_chk, "__dprintf_chk": fn() -> c_int;
    vdprintf_chk, "__vdprintf_chk": fn() -> c_int;
}

/// The address of the next `syscall`.
#[cfg(target_arch = "x86_64")]
pub fn system_call_address() -> *mut c_void {
    address(Index::system_call as usize, "syscall\0")
}

/// Those of the next functions that take a list of arguments as their own.
#[cfg(target_arch = "x86_64")]
pub fn execl_addresses() -> [*mut c_void; 3] {
    [
        address(Index::execl as usize, "execl\0"),
        address(Index::execlp as usize, "execlp\0"),
        address(Index::execle as usize, "execle\0"),
    ]
}

/// Those of the next functions that print to a descriptor.
#[cfg(target_arch = "x86_64")]
pub fn print_addresses() -> [*mut c_void; 4] {
    [
        address(Index::dprintf as usize, "dprintf\0"),
        address(Index::vdprintf as usize, "vdprintf\0"),
        address(Index::dprintf_chk as usize, "__dprintf_chk\0"),
        address(Index::vdprintf_chk as usize, "__vdprintf_chk\0"),
    ]
}

#[cfg(target_arch = "x86_64")]
fn address(index: usize, name: &str) -> *mut c_void {
    let found = FOUND[index].load(Ordering::Relaxed);
    if found.is_null() { lookup(index, name) } else { found }
}

/// Finds a function behind this library in the order of loading. One that is not there, because no
/// library of the program has it, becomes one that fails.
#[cold]
fn lookup(index: usize, name: &str) -> *mut c_void {
    let next = -1_isize as *mut c_void;
    // SAFETY: the name ends with a zero. `RTLD_NEXT` is by the address that calls: this one.
    let mut found = unsafe { dlsym(next, name.as_ptr().cast()) };
    if found.is_null() {
        found = missing as *mut c_void;
    }
    FOUND[index].store(found, Ordering::Relaxed);
    found
}

/// Stands for a function that the program's C library does not have.
extern "C" fn missing() -> isize {
    set_errno(ENOSYS);
    -1
}

/// errno of the calling thread.
#[inline]
pub fn errno() -> c_int {
    // SAFETY: the C library returns the address of the thread's errno.
    unsafe { *__errno_location() }
}

/// Sets it.
pub fn set_errno(value: c_int) {
    // SAFETY: as in `errno`.
    unsafe { *__errno_location() = value };
}
