//! Processes: fork(2), what a program says of itself, and system calls by number.

use core::ffi::{c_char, c_int};

use super::export;
use crate::c;
use crate::clock;
use crate::descriptors;
use crate::environment::given;
use crate::launch;
use crate::limit;
use crate::next;
use crate::process;
use crate::record::kind::CallBlindSpot;
use crate::region::region;

/// Forks by `next`. What the child has to ask the kernel it asks at once, before it may confine
/// itself.
fn fork_with(next: impl FnOnce() -> c_int) -> c_int {
    if !crate::region::is_live() || process::owner().is_none() {
        let result = next();
        if result == 0 && limit::is_live() {
            process::forked();
        }
        return result;
    }
    descriptors::count_all(true);
    let result = next();
    if result == 0 {
        process::forked();
        let recording = region().recording();
        if recording & 1 != 0 {
            let (time, ring) = clock::now_and_processor();
            process::name(recording, ring, time);
        }
    } else if result < 0 {
        descriptors::count_all(false);
    }
    result
}

export! {
    fn fork() -> c_int {
        // SAFETY: no arguments.
        fork_with(|| unsafe { next::fork() })
    }

    fn __fork() -> c_int {
        // SAFETY: no arguments.
        fork_with(|| unsafe { next::fork() })
    }

    fn _Fork() -> c_int {
        // SAFETY: no arguments.
        fork_with(|| unsafe { next::raw_fork() })
    }

    fn prctl(order: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
        if order == c::PR_SET_SECCOMP && (crate::region::is_live() || limit::is_live()) {
            process::confine();
        }
        // SAFETY: the caller's arguments are passed on.
        let result = unsafe { next::prctl(order, a, b, c, d) };
        if order == c::PR_SET_NAME && result == 0 && crate::region::is_live() {
            process::rename();
        }
        result
    }
}

/// `dprintf(3)`: the C library writes to the descriptor itself. It goes on in the next function with
/// all registers and the stack as they were, those of floating point included.
#[cfg(target_arch = "x86_64")]
macro_rules! print {
    ($($name:ident, $before:ident, $index:literal;)*) => {
        $(
            #[doc = "dprintf(3), whose arguments follow."]
            #[cfg_attr(preload, unsafe(no_mangle))]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() -> c_int {
                core::arch::naked_asm!(
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    "push rcx",
                    "push r8",
                    "push r9",
                    "push rax",
                    "sub rsp, 128",
                    "movups [rsp], xmm0",
                    "movups [rsp + 16], xmm1",
                    "movups [rsp + 32], xmm2",
                    "movups [rsp + 48], xmm3",
                    "movups [rsp + 64], xmm4",
                    "movups [rsp + 80], xmm5",
                    "movups [rsp + 96], xmm6",
                    "movups [rsp + 112], xmm7",
                    "call {before}",
                    "mov r11, rax",
                    "movups xmm0, [rsp]",
                    "movups xmm1, [rsp + 16]",
                    "movups xmm2, [rsp + 32]",
                    "movups xmm3, [rsp + 48]",
                    "movups xmm4, [rsp + 64]",
                    "movups xmm5, [rsp + 80]",
                    "movups xmm6, [rsp + 96]",
                    "movups xmm7, [rsp + 112]",
                    "add rsp, 128",
                    "pop rax",
                    "pop r9",
                    "pop r8",
                    "pop rcx",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    "jmp r11",
                    before = sym $before,
                )
            }

            #[cfg(target_arch = "x86_64")]
            extern "C" fn $before(fd: c_int) -> *mut core::ffi::c_void {
                launch::hold_stream(fd);
                next::print_addresses()[$index]
            }
        )*
    };
}

#[cfg(target_arch = "x86_64")]
print! {
    dprintf, before_dprintf, 0;
    vdprintf, before_vdprintf, 1;
    __dprintf_chk, before_dprintf_chk, 2;
    __vdprintf_chk, before_vdprintf_chk, 3;
}

/// `syscall(2)`: looks at the number, and goes on in the next function with all registers and the
/// stack as they were.
#[cfg(target_arch = "x86_64")]
#[cfg_attr(preload, unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn syscall() -> isize {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "sub rsp, 8",
        "call {before}",
        "add rsp, 8",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        before = sym before_system_call,
    )
}

/// Before a system call by its number, which may change what can be seen: the next function.
#[cfg(target_arch = "x86_64")]
extern "C" fn before_system_call(
    number: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
) -> *mut core::ffi::c_void {
    // read, write, readv, writev, sendfile, sendto, recvfrom, sendmsg, recvmsg, recvmmsg, sendmmsg
    const MOVES: [usize; 11] = [0, 1, 19, 20, 40, 44, 45, 46, 47, 299, 307];
    const CLOSE: usize = 3;
    const EXECVE: usize = 59;
    const SECCOMP: usize = 317;
    const EXECVEAT: usize = 322;
    const IO_URING_SETUP: usize = 425;
    const CLOSE_RANGE: usize = 436;
    if crate::region::is_live() || limit::is_live() {
        match number {
            // SAFETY: the path is a text, and the variables are a list of texts, for the kernel as well.
            EXECVE => unsafe {
                let _ = launch::before(a as *const _, false, given(c as *const *const c_char));
            },
            // SAFETY: as above.
            EXECVEAT => unsafe {
                let variables = given(d as *const *const c_char);
                let _ = launch::before_at(a as c_int, b as *const _, variables, e as c_int);
            },
            CLOSE => descriptors::closing_range(a as u32, a as u32),
            CLOSE_RANGE if c as u32 & c::CLOSE_RANGE_CLOEXEC == 0 => {
                descriptors::closing_range(a as u32, b as u32);
            }
            SECCOMP => process::confine(),
            IO_URING_SETUP => process::note(CallBlindSpot::IoUring),
            number if MOVES.contains(&number) => limit::note_raw(a as c_int),
            _ => {}
        }
    }
    next::system_call_address()
}
