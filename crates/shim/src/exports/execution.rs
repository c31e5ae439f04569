//! Programs that are executed: execve(2) and its family, and the functions that make a process for
//! a program at once.

use core::ffi::{c_char, c_int, c_void};

use super::export;
use crate::launch;
use crate::next;

export! {
    fn execve(path: *const c_char, arguments: *const *const c_char, variables: *const *const c_char) -> c_int {
        // SAFETY: the path is a text.
        let launched = unsafe { launch::before(path.cast(), false, variables) };
        // SAFETY: the caller's arguments are passed on.
        let result = unsafe { next::execve(path, arguments, variables) };
        launched.has_failed();
        result
    }

    fn execv(path: *const c_char, arguments: *const *const c_char) -> c_int {
        // SAFETY: the path is a text.
        let launched = unsafe { launch::before(path.cast(), false, OWN) };
        // SAFETY: the caller's arguments are passed on.
        let result = unsafe { next::execv(path, arguments) };
        launched.has_failed();
        result
    }

    fn execvp(file: *const c_char, arguments: *const *const c_char) -> c_int {
        // SAFETY: the name is a text.
        let launched = unsafe { launch::before(file.cast(), true, OWN) };
        // SAFETY: the caller's arguments are passed on.
        let result = unsafe { next::execvp(file, arguments) };
        launched.has_failed();
        result
    }

    fn execvpe(file: *const c_char, arguments: *const *const c_char, variables: *const *const c_char) -> c_int {
        // SAFETY: the name is a text.
        let launched = unsafe { launch::before(file.cast(), true, variables) };
        // SAFETY: the caller's arguments are passed on.
        let result = unsafe { next::execvpe(file, arguments, variables) };
        launched.has_failed();
        result
    }

    fn fexecve(fd: c_int, arguments: *const *const c_char, variables: *const *const c_char) -> c_int {
        // SAFETY: the variables are texts.
        let launched = unsafe { launch::before_open(fd, variables) };
        // SAFETY: the caller's arguments are passed on.
        let result = unsafe { next::fexecve(fd, arguments, variables) };
        launched.has_failed();
        result
    }

    fn execveat(folder: c_int, path: *const c_char, arguments: *const *const c_char, variables: *const *const c_char, flags: c_int) -> c_int {
        // SAFETY: the path is a text.
        let launched = unsafe { launch::before_at(folder, path.cast(), variables, flags) };
        // SAFETY: the caller's arguments are passed on.
        let result = unsafe { next::execveat(folder, path, arguments, variables, flags) };
        launched.has_failed();
        result
    }

    fn posix_spawn(pid: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: *const *const c_char, variables: *const *const c_char) -> c_int {
        // SAFETY: the path is a text.
        unsafe { launch::note(path.cast(), false) };
        // SAFETY: the caller's arguments are passed on.
        unsafe { next::posix_spawn(pid, path, actions, attributes, arguments, variables) }
    }

    fn posix_spawnp(pid: *mut c_int, file: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: *const *const c_char, variables: *const *const c_char) -> c_int {
        // SAFETY: the name is a text.
        unsafe { launch::note(file.cast(), true) };
        // SAFETY: the caller's arguments are passed on.
        unsafe { next::posix_spawnp(pid, file, actions, attributes, arguments, variables) }
    }

    fn system(command: *const c_char) -> c_int {
        // SAFETY: a text.
        unsafe { launch::note(SHELL, false) };
        // SAFETY: the caller's arguments are passed on.
        unsafe { next::shell(command) }
    }

    fn popen(command: *const c_char, mode: *const c_char) -> *mut c_void {
        // SAFETY: a text.
        unsafe { launch::note(SHELL, false) };
        // SAFETY: the caller's arguments are passed on.
        unsafe { next::popen(command, mode) }
    }
}

/// The environment of this process.
const OWN: launch::Variables = core::ptr::null();

const SHELL: *const u8 = c"/bin/sh".as_ptr().cast();

/// A function with any number of arguments, of which the first is a text: looks at that one, and
/// goes on in the next function with all registers and the stack as they were.
#[cfg(target_arch = "x86_64")]
macro_rules! with_list {
    ($($name:ident, $before:ident;)*) => {
        $(
            /// The function of this name, with a list of arguments.
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
                    "call {before}",
                    "mov r11, rax",
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
        )*
    };
}

#[cfg(target_arch = "x86_64")]
with_list! {
    execl, before_execl;
    execlp, before_execlp;
    execle, before_execle;
}

#[cfg(target_arch = "x86_64")]
extern "C" fn before_execl(path: *const u8) -> *mut c_void {
    // SAFETY: the path is a text.
    let _ = unsafe { launch::before(path, false, OWN) };
    next::execl_addresses()[0]
}

#[cfg(target_arch = "x86_64")]
extern "C" fn before_execlp(file: *const u8) -> *mut c_void {
    // SAFETY: the name is a text.
    let _ = unsafe { launch::before(file, true, OWN) };
    next::execl_addresses()[1]
}

#[cfg(target_arch = "x86_64")]
extern "C" fn before_execle(path: *const u8) -> *mut c_void {
    // SAFETY: the path is a text.
    let _ = unsafe { launch::before(path, false, OWN) };
    next::execl_addresses()[2]
}
