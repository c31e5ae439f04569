//! The preload library: stands before the C library's functions that work on sockets, and records
//! each call into the region that `WINDTUNNEL_RECORD` names (the path of a file); and has calls wait
//! for the limit in the region that `WINDTUNNEL_LIMIT` names; and declares datagrams of sockets that
//! programs share, in the region that `WINDTUNNEL_SENDS` names. Each works without the others.
//!
//! **Promises:** the program's behaviour, its errno and its signals are the same; nothing is printed,
//! allocated or locked; no descriptor stays open, so that a program may close all it has; safe in
//! signal handlers, threads, and children of fork(2) and vfork(2). A call to which nothing else is
//! added than the record takes tens of nanoseconds more. Without the variable, or when the file is
//! not a region, all calls pass through.
//!
//! **Refuses:** payload, of which at most a digest leaves the process; and any library: it has no `DT_NEEDED`, so that one file serves programs of
//! glibc and of musl. What it calls is looked up behind it when the program starts.
//!
//! # What it sees
//!
//! Sockets of IPv4 and IPv6: connect, accept, accept4, close, shutdown; read, readv, recv, recvfrom,
//! recvmsg, recvmmsg; write, writev, send, sendto, sendmsg, sendmmsg, sendfile, splice; preadv2 and
//! pwritev2 without a position; the names of these for `_FORTIFY_SOURCE`, for files above 2 GiB and
//! with two underscores. Calls that make, copy or close descriptors are followed.
//!
//! # What it does not see
//!
//! | what | how that shows |
//! | --- | --- |
//! | io_uring | an `Unseen` record of the process |
//! | stdio on sockets (`fdopen`): the C library calls itself | an `Unseen` record of the flow |
//! | descriptors that are unknown when the program confines its system calls (seccomp) | an `Unseen` record of the process |
//! | sockets for which the region's table has no entry | an `Unseen` record of the process, and the region's count |
//! | the C library's own sockets (names looked up by DNS), system calls in assembler or by `syscall(2)`, libraries loaded with `RTLD_DEEPBIND` | not at all here; the kernel layer sees them |
//! | programs with more rights than their user (setuid), and static ones: the loader does not load this there | the process is not in the records; static ones are for seccomp notification |
//! | calls between vfork(2) and exec | not at all |
//! | a call that never returned (the thread was cancelled, longjmp) | later calls there have the flag `SHARED` |
//!
//! # Static programs
//!
//! Before such a program is executed the library installs a filter for the process, and hands over
//! where its calls are shown (`launch`). Where that cannot be, because the recorder is not there, the
//! kernel is too old, or the program would lose rights, the recorder's findings or an `Unseen` record
//! of the process say so; the latter also where another process is made for it at once
//! (posix_spawn(3), system(3), popen(3)), as the filter would be this process's as well. A library
//! that is loaded under a filter records nothing: the calls are shown already.
//!
//! | module | what it knows |
//! | --- | --- |
//! | `exports` | the functions that programs call |
//! | `calls` | a call on a socket: offsets before and after, and its record |
//! | `launch` | programs that the library cannot enter, before they start |
//! | `environment` | what programs are given that are executed under the limit |
//! | `descriptors` | what each descriptor is |
//! | `process` | whose memory this is; what cannot be seen |
//! | `names` | addresses |
//! | `paced` | calls that move bytes, under the limit |
//! | `limit` | the limit, and waiting for it |
//! | `senders` | which program sends a datagram of a socket that several have |
//! | `published` | a region, and whether there is one yet |
//! | `memory` | reading memory that may not be there |
//! | `turns` | when calls that must not block may move bytes |
//! | `watch` | descriptors that a program watches by epoll(7) |
//! | `clock` | the time, in nanoseconds, for a few of them |
//! | `next` | the functions behind ours |
//! | `c` | types and system calls |
//! | `start` | finding what the variables name |
//! | `region` | the region that records go to |
//! | `variables` | variables of the environment |
//! | `raw`, `sockets`, `elf`, `filter` | rings, the table of sockets, programs, the filter: files of `windtunnel-sys` |
//! | `pacing` | when bytes may move: files of `windtunnel-budget` |
//! | `record` | the format: files of `windtunnel-model` |
//! | `digest` | by what a datagram is known again: a file of `windtunnel-wire` |

#![cfg_attr(not(test), no_std)]
#![allow(dead_code, reason = "files of other crates are used in part")]
#![allow(clippy::missing_safety_doc, reason = "each is the C library's function of that name")]

pub mod c;
pub mod calls;
pub mod clock;
pub mod descriptors;
#[path = "../../wire/src/digest.rs"]
pub mod digest;
#[path = "../../sys/src/executable/elf.rs"]
pub mod elf;
pub mod environment;
pub mod exports;
#[path = "../../sys/src/seccomp/filter.rs"]
pub mod filter;
pub mod launch;
pub mod limit;
pub mod memory;
pub mod names;
pub mod next;
pub mod paced;
pub mod pacing;
pub mod process;
pub mod published;
#[path = "../../sys/src/region/raw.rs"]
pub mod raw;
#[path = "../../model/src/record.rs"]
pub mod record;
pub mod region;
pub mod senders;
#[path = "../../sys/src/region/sockets.rs"]
pub mod sockets;
pub mod start;
pub mod turns;
pub mod variables;
pub mod watch;

// Frames of core refer to a personality for unwinding. A thread that is cancelled in a call unwinds
// through this library, in which there is nothing to clean up: 8 is `_URC_CONTINUE_UNWIND`. Hidden,
// because a program of Rust has its own.
#[cfg(all(preload, target_arch = "x86_64"))]
core::arch::global_asm!(
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality:",
    "mov eax, 8",
    "ret",
);
#[cfg(all(preload, target_arch = "aarch64"))]
core::arch::global_asm!(
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality:",
    "mov w0, #8",
    "ret",
);

/// The code cannot panic; core wants a handler.
#[cfg(preload)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
