//! Programs that are executed: execve(2) and its family, and the functions that make a process for
//! a program at once.

use core::ffi::{c_char, c_int, c_void};

use super::export;
use crate::environment::{completed, given};
use crate::launch;
use crate::next;

export! {
    fn execve(path: *const c_char, arguments: *const *const c_char, variables: *const *const c_char) -> c_int {
        // SAFETY: the variables are texts.
        unsafe { completed(given(variables), |variables| {
            let launched = launch::before(path.cast(), false, variables);
            let result = next::execve(path, arguments, variables);
            launched.has_failed();
            result
        }) }
    }

    fn execv(path: *const c_char, arguments: *const *const c_char) -> c_int {
        // SAFETY: the path is a text.
        unsafe { completed(OWN, |variables| {
            let launched = launch::before(path.cast(), false, variables);
            let result = if variables.is_null() {
                next::execv(path, arguments)
            } else {
                next::execve(path, arguments, variables)
            };
            launched.has_failed();
            result
        }) }
    }

    fn execvp(file: *const c_char, arguments: *const *const c_char) -> c_int {
        // SAFETY: the name is a text.
        unsafe { completed(OWN, |variables| {
            let launched = launch::before(file.cast(), true, variables);
            let result = if variables.is_null() {
                next::execvp(file, arguments)
            } else {
                next::execvpe(file, arguments, variables)
            };
            launched.has_failed();
            result
        }) }
    }

    fn execvpe(file: *const c_char, arguments: *const *const c_char, variables: *const *const c_char) -> c_int {
        // SAFETY: the name and the variables are texts.
        unsafe { completed(given(variables), |variables| {
            let launched = launch::before(file.cast(), true, variables);
            let result = next::execvpe(file, arguments, variables);
            launched.has_failed();
            result
        }) }
    }

    fn fexecve(fd: c_int, arguments: *const *const c_char, variables: *const *const c_char) -> c_int {
        // SAFETY: the variables are texts.
        unsafe { completed(given(variables), |variables| {
            let launched = launch::before_open(fd, variables);
            let result = next::fexecve(fd, arguments, variables);
            launched.has_failed();
            result
        }) }
    }

    fn execveat(folder: c_int, path: *const c_char, arguments: *const *const c_char, variables: *const *const c_char, flags: c_int) -> c_int {
        // SAFETY: the path and the variables are texts.
        unsafe { completed(given(variables), |variables| {
            let launched = launch::before_at(folder, path.cast(), variables, flags);
            let result = next::execveat(folder, path, arguments, variables, flags);
            launched.has_failed();
            result
        }) }
    }

    fn posix_spawn(pid: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: *const *const c_char, variables: *const *const c_char) -> c_int {
        // SAFETY: the path and the variables are texts.
        unsafe { completed(given(variables), |variables| {
            launch::note(path.cast(), false, variables);
            next::posix_spawn(pid, path, actions, attributes, arguments, variables)
        }) }
    }

    fn posix_spawnp(pid: *mut c_int, file: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: *const *const c_char, variables: *const *const c_char) -> c_int {
        // SAFETY: the name and the variables are texts.
        unsafe { completed(given(variables), |variables| {
            launch::note(file.cast(), true, variables);
            next::posix_spawnp(pid, file, actions, attributes, arguments, variables)
        }) }
    }

    fn system(command: *const c_char) -> c_int {
        // SAFETY: a text.
        unsafe { launch::note(SHELL, false, OWN) };
        // SAFETY: the caller's arguments are passed on.
        unsafe { next::shell(command) }
    }

    fn popen(command: *const c_char, mode: *const c_char) -> *mut c_void {
        // SAFETY: a text.
        unsafe { launch::note(SHELL, false, OWN) };
        // SAFETY: the caller's arguments are passed on.
        unsafe { next::popen(command, mode) }
    }
}

/// The environment of this process.
const OWN: *const *const c_char = core::ptr::null();

const SHELL: *const u8 = c"/bin/sh".as_ptr().cast();

/// A function with a list of arguments: looks at them, and goes on in the next function with all
/// registers and the stack as they were.
#[cfg(target_arch = "x86_64")]
macro_rules! with_list {
    ($($name:ident, $before:ident;)*) => {
        $(
            /// The function of this name, with a list of arguments.
            #[cfg_attr(preload, unsafe(no_mangle))]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() -> c_int {
                core::arch::naked_asm!(
                    "push rax",
                    "push r9",
                    "push r8",
                    "push rcx",
                    "push rdx",
                    "push rsi",
                    "push rdi",
                    "mov rdi, rsp",
                    "call {before}",
                    "mov r11, rax",
                    "pop rdi",
                    "pop rsi",
                    "pop rdx",
                    "pop rcx",
                    "pop r8",
                    "pop r9",
                    "pop rax",
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

/// The arguments of a call: six in registers, `rax` and the address to return to, then those on the
/// stack.
#[cfg(target_arch = "x86_64")]
unsafe fn argument<T>(saved: *const *const T, number: usize) -> *const T {
    let place = if number < 6 { number } else { number + 2 };
    // SAFETY: the caller asks for no argument behind the last.
    unsafe { *saved.add(place) }
}

#[cfg(target_arch = "x86_64")]
extern "C" fn before_execl(saved: *const *const u8) -> *mut c_void {
    // SAFETY: the path is a text.
    let _ = unsafe { launch::before(argument(saved, 0), false, OWN) };
    next::execl_addresses()[0]
}

#[cfg(target_arch = "x86_64")]
extern "C" fn before_execlp(saved: *const *const u8) -> *mut c_void {
    // SAFETY: the name is a text.
    let _ = unsafe { launch::before(argument(saved, 0), true, OWN) };
    next::execl_addresses()[1]
}

/// The environment follows the null that ends the list.
#[cfg(target_arch = "x86_64")]
extern "C" fn before_execle(saved: *const *const u8) -> *mut c_void {
    let mut end = 1;
    // SAFETY: the list ends with a null.
    while !unsafe { argument(saved, end) }.is_null() {
        end += 1;
    }
    // SAFETY: the argument is there, and a list of texts; the path is a text.
    let _ = unsafe {
        let variables = given(argument(saved, end + 1).cast());
        launch::before(argument(saved, 0), false, variables)
    };
    next::execl_addresses()[2]
}
