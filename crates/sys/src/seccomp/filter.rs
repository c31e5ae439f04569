//! The filter's program: which calls of a process are shown to a supervisor. `core` only, so that
//! the preload library can compile this file into itself.
//!
//! Shown are the calls on sockets, those that read and write any descriptor, those after which a
//! number may mean another descriptor, and `io_uring_setup`. All others pass: the kernel finds that
//! out once for each number and keeps it in a bitmap, so that they cost next to nothing. So do all
//! calls of another architecture than this one (32-bit programs), which are not seen.
//!
//! Source: seccomp(2), linux/bpf_common.h, linux/audit.h.

/// An instruction of the classic Berkeley packet filter: `struct sock_filter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    pub code: u16,
    /// Instructions to skip where the condition holds.
    pub then: u8,
    /// Instructions to skip where it does not.
    pub or_else: u8,
    pub value: u32,
}

/// `struct sock_fprog`: what seccomp(2) takes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SeccompProgram {
    pub length: u16,
    pub instructions: *const Instruction,
}

/// The flags of the one sendmsg(2) that is not shown: that by which a process hands over its
/// listener, which could not be answered before the listener is there. No program sends with
/// `MSG_PROBE`, which only the kernel uses; local sockets ignore these flags.
pub const HANDOVER_FLAGS: u32 = MSG_DONTROUTE | MSG_PROBE | MSG_EOR | MSG_CONFIRM | MSG_NOSIGNAL;

/// The descriptor of the one close(2) that the filter answers, with [`PROBE_ERRNO`]: so a process
/// finds out whether its calls are shown. No process has a descriptor of that number.
pub const PROBE: u32 = 0x7773_6363;

/// `EXFULL`, of errno(3), which close(2) never returns.
pub const PROBE_ERRNO: u32 = 54;

/// `SECCOMP_SET_MODE_FILTER`.
pub const SET_MODE_FILTER: u32 = 1;

/// `SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV`: a signal that comes
/// while the supervisor looks at a call does not interrupt the call. Linux 5.19.
pub const FLAGS: u32 = 1 << 3 | 1 << 5;

/// Numbers of calls, by their names.
macro_rules! numbers {
    ($($name:ident = $number:literal;)*) => {
        /// Numbers of calls.
        pub mod number {
            $(
                #[doc = concat!("Of the call `", stringify!($name), "`.")]
                pub const $name: u32 = $number;
            )*
        }
    };
}

#[cfg(target_arch = "x86_64")]
numbers! {
    READ = 0;
    WRITE = 1;
    CLOSE = 3;
    READV = 19;
    WRITEV = 20;
    DUP2 = 33;
    SENDFILE = 40;
    SOCKET = 41;
    CONNECT = 42;
    ACCEPT = 43;
    SENDTO = 44;
    RECVFROM = 45;
    SENDMSG = 46;
    RECVMSG = 47;
    SHUTDOWN = 48;
    SETSOCKOPT = 54;
    EXECVE = 59;
    EXIT_GROUP = 231;
    SPLICE = 275;
    ACCEPT4 = 288;
    DUP3 = 292;
    RECVMMSG = 299;
    SENDMMSG = 307;
    EXECVEAT = 322;
    IO_URING_SETUP = 425;
    CLOSE_RANGE = 436;
}

#[cfg(target_arch = "aarch64")]
numbers! {
    DUP3 = 24;
    // There is none: the number of `dup3`, once more.
    DUP2 = 24;
    CLOSE = 57;
    READ = 63;
    WRITE = 64;
    READV = 65;
    WRITEV = 66;
    SENDFILE = 71;
    SPLICE = 76;
    EXIT_GROUP = 94;
    SOCKET = 198;
    ACCEPT = 202;
    CONNECT = 203;
    SENDTO = 206;
    RECVFROM = 207;
    SETSOCKOPT = 208;
    SHUTDOWN = 210;
    SENDMSG = 211;
    RECVMSG = 212;
    EXECVE = 221;
    ACCEPT4 = 242;
    RECVMMSG = 243;
    SENDMMSG = 269;
    EXECVEAT = 281;
    IO_URING_SETUP = 425;
    CLOSE_RANGE = 436;
}

/// The calls that are shown whatever their arguments are; `sendmsg` and `close` come on top.
const SHOWN: [u32; 22] = [
    number::READ,
    number::WRITE,
    number::READV,
    number::WRITEV,
    number::DUP2,
    number::SENDFILE,
    number::CONNECT,
    number::ACCEPT,
    number::SENDTO,
    number::RECVFROM,
    number::RECVMSG,
    number::SHUTDOWN,
    number::EXECVE,
    number::EXIT_GROUP,
    number::SPLICE,
    number::ACCEPT4,
    number::DUP3,
    number::RECVMMSG,
    number::SENDMMSG,
    number::EXECVEAT,
    number::IO_URING_SETUP,
    number::CLOSE_RANGE,
];

/// The instructions of [`program`].
pub const LENGTH: usize = 4 + SHOWN.len() + 11;

/// The program that shows all calls through which bytes can move.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "jumps are shorter than the program")]
pub const fn program() -> [Instruction; LENGTH] {
    let (notify, allow) = (LENGTH - 2, LENGTH - 1);
    let mut program = [step(RETURN, RET_ALLOW); LENGTH];
    program[0] = step(LOAD_WORD, DATA_ARCHITECTURE);
    program[1] = jump(JUMP_EQUAL, ARCHITECTURE, 0, (allow - 2) as u8);
    program[2] = step(LOAD_WORD, DATA_NUMBER);
    // The x32 calls of x86-64 have this bit.
    program[3] = jump(JUMP_AT_LEAST, X32, (allow - 4) as u8, 0);
    let mut at = 4;
    while at < 4 + SHOWN.len() {
        program[at] = jump(JUMP_EQUAL, SHOWN[at - 4], (notify - at - 1) as u8, 0);
        at += 1;
    }
    program[at] = jump(JUMP_EQUAL, number::SENDMSG, 2, 0);
    program[at + 1] = jump(JUMP_EQUAL, number::CLOSE, 4, 0);
    program[at + 2] = step(RETURN, RET_ALLOW);
    program[at + 3] = step(LOAD_WORD, DATA_THIRD_ARGUMENT);
    program[at + 4] = jump(JUMP_EQUAL, HANDOVER_FLAGS, (allow - at - 5) as u8, 0);
    program[at + 5] = step(RETURN, RET_USER_NOTIF);
    program[at + 6] = step(LOAD_WORD, DATA_FIRST_ARGUMENT);
    program[at + 7] = jump(JUMP_EQUAL, PROBE, 0, 1);
    program[at + 8] = step(RETURN, RET_ERRNO | PROBE_ERRNO);
    program[notify] = step(RETURN, RET_USER_NOTIF);
    program[allow] = step(RETURN, RET_ALLOW);
    program
}

/// The instructions of [`destinations`].
pub const DESTINATIONS_LENGTH: usize = 18;

/// A program that shows the calls that can name the other end of what is sent, and no others:
/// connect(2), sendto(2) with an address, sendmsg(2) and sendmmsg(2).
#[must_use]
pub const fn destinations() -> [Instruction; DESTINATIONS_LENGTH] {
    [
        step(LOAD_WORD, DATA_ARCHITECTURE),
        jump(JUMP_EQUAL, ARCHITECTURE, 0, 15),
        step(LOAD_WORD, DATA_NUMBER),
        jump(JUMP_AT_LEAST, X32, 13, 0),
        jump(JUMP_EQUAL, number::CONNECT, 11, 0),
        jump(JUMP_EQUAL, number::SENDMMSG, 10, 0),
        jump(JUMP_EQUAL, number::SENDMSG, 2, 0),
        jump(JUMP_EQUAL, number::SENDTO, 4, 0),
        step(RETURN, RET_ALLOW),
        step(LOAD_WORD, DATA_THIRD_ARGUMENT),
        jump(JUMP_EQUAL, HANDOVER_FLAGS, 6, 0),
        step(RETURN, RET_USER_NOTIF),
        step(LOAD_WORD, DATA_FIFTH_ARGUMENT),
        jump(JUMP_EQUAL, 0, 0, 2),
        step(LOAD_WORD, DATA_FIFTH_ARGUMENT + 4),
        jump(JUMP_EQUAL, 0, 1, 0),
        step(RETURN, RET_USER_NOTIF),
        step(RETURN, RET_ALLOW),
    ]
}

/// The instructions of [`other_ways`].
pub const OTHER_WAYS_LENGTH: usize = 16;

/// A program that refuses what sends without a call that [`destinations`] shows: sockets of packets
/// (`AF_PACKET`), options of SCTP, and sockets of programs of another architecture.
#[must_use]
pub const fn other_ways() -> [Instruction; OTHER_WAYS_LENGTH] {
    [
        step(LOAD_WORD, DATA_ARCHITECTURE),
        jump(JUMP_EQUAL, ARCHITECTURE, 3, 0),
        step(LOAD_WORD, DATA_NUMBER),
        jump(JUMP_EQUAL, OTHER_SOCKETCALL, 11, 0),
        jump(JUMP_EQUAL, OTHER_SOCKET, 10, 9),
        step(LOAD_WORD, DATA_NUMBER),
        jump(JUMP_AT_LEAST, X32, 8, 0),
        jump(JUMP_EQUAL, number::SOCKET, 2, 0),
        jump(JUMP_EQUAL, number::SETSOCKOPT, 3, 0),
        step(RETURN, RET_ALLOW),
        step(LOAD_WORD, DATA_FIRST_ARGUMENT),
        jump(JUMP_EQUAL, AF_PACKET, 3, 2),
        step(LOAD_WORD, DATA_SECOND_ARGUMENT),
        jump(JUMP_EQUAL, SOL_SCTP, 1, 0),
        step(RETURN, RET_ALLOW),
        step(RETURN, RET_ERRNO | EACCES),
    ]
}

/// The instructions of [`refusals`].
pub const REFUSALS_LENGTH: usize = 10;

/// A program that answers io_uring_setup(2), and socket(2) for MPTCP, as a kernel without them, and
/// lets all else pass.
#[must_use]
pub const fn refusals() -> [Instruction; REFUSALS_LENGTH] {
    [
        step(LOAD_WORD, DATA_ARCHITECTURE),
        jump(JUMP_EQUAL, ARCHITECTURE, 0, 7),
        step(LOAD_WORD, DATA_NUMBER),
        jump(JUMP_EQUAL, number::IO_URING_SETUP, 0, 1),
        step(RETURN, RET_ERRNO | ENOSYS),
        jump(JUMP_EQUAL, number::SOCKET, 0, 3),
        step(LOAD_WORD, DATA_THIRD_ARGUMENT),
        jump(JUMP_EQUAL, IPPROTO_MPTCP, 0, 1),
        step(RETURN, RET_ERRNO | EPROTONOSUPPORT),
        step(RETURN, RET_ALLOW),
    ]
}

impl SeccompProgram {
    /// What seccomp(2) takes, for as long as the instructions live.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "programs are shorter than 256")]
    pub const fn of(instructions: &[Instruction]) -> SeccompProgram {
        SeccompProgram { length: instructions.len() as u16, instructions: instructions.as_ptr() }
    }
}

const fn step(code: u16, value: u32) -> Instruction {
    jump(code, value, 0, 0)
}

const fn jump(code: u16, value: u32, then: u8, or_else: u8) -> Instruction {
    Instruction { code, then, or_else, value }
}

/// BPF_LD | BPF_W | BPF_ABS.
const LOAD_WORD: u16 = 0x20;
/// BPF_JMP | BPF_JEQ | BPF_K.
const JUMP_EQUAL: u16 = 0x15;
/// BPF_JMP | BPF_JGE | BPF_K.
const JUMP_AT_LEAST: u16 = 0x35;
/// BPF_RET | BPF_K: an end of a program, with what is to become of a call.
pub const RETURN: u16 = 0x06;

/// Offsets in `struct seccomp_data`.
const DATA_NUMBER: u32 = 0;
const DATA_ARCHITECTURE: u32 = 4;
/// The low halves, on a little-endian machine.
const DATA_FIRST_ARGUMENT: u32 = 16;
const DATA_SECOND_ARGUMENT: u32 = 24;
const DATA_THIRD_ARGUMENT: u32 = 32;
const DATA_FIFTH_ARGUMENT: u32 = 48;

/// The bit of the x32 calls of x86-64.
pub const X32: u32 = 0x4000_0000;
/// socketcall(2) and socket(2) of the 32-bit programs of this machine.
pub const OTHER_SOCKETCALL: u32 = 102;
/// See [`OTHER_SOCKETCALL`].
#[cfg(target_arch = "x86_64")]
pub const OTHER_SOCKET: u32 = 359;
/// See [`OTHER_SOCKETCALL`].
#[cfg(target_arch = "aarch64")]
pub const OTHER_SOCKET: u32 = 281;
/// Sockets of packets.
pub const AF_PACKET: u32 = 17;
/// Options of SCTP.
pub const SOL_SCTP: u32 = 132;
/// "Permission denied", of errno(3).
const EACCES: u32 = 13;

/// "Function not implemented", of errno(3).
const ENOSYS: u32 = 38;
/// "Protocol not supported".
const EPROTONOSUPPORT: u32 = 93;
/// Streams over several paths.
pub const IPPROTO_MPTCP: u32 = 262;
/// The call is shown.
pub const RET_USER_NOTIF: u32 = 0x7fc0_0000;
const RET_ERRNO: u32 = 0x0005_0000;
/// The call goes on.
pub const RET_ALLOW: u32 = 0x7fff_0000;

/// `AUDIT_ARCH_X86_64`.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
/// `AUDIT_ARCH_AARCH64`.
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

const MSG_DONTROUTE: u32 = 0x4;
const MSG_PROBE: u32 = 0x10;
const MSG_EOR: u32 = 0x80;
const MSG_CONFIRM: u32 = 0x800;
const MSG_NOSIGNAL: u32 = 0x4000;
