//! The environment of programs that are executed under the limit: with the library and the variables
//! of the limit, whatever the program that executes them has made of these. One that gives another
//! `LD_PRELOAD`, an empty environment, or one of its own choice, has that, and these beside it.
//!
//! The list is on the stack of the call: in a child of vfork(2) nothing of the parent's changes.

use core::ffi::c_char;
use core::ptr;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use crate::variables::text;
use crate::{limit, variables};

/// What this process has from its own environment, which it may change later.
static PRELOAD: AtomicCString = AtomicCString::new();
static LIMIT: AtomicCString = AtomicCString::new();
static DOOR: AtomicCString = AtomicCString::new();

/// A text that a zero ends.
struct AtomicCString {
    bytes: [AtomicU8; TEXT_BYTES],
    length: AtomicUsize,
}

impl AtomicCString {
    const fn new() -> AtomicCString {
        AtomicCString {
            bytes: [const { AtomicU8::new(0) }; TEXT_BYTES],
            length: AtomicUsize::new(0),
        }
    }

    /// One that is too long is none.
    fn keep(&self, parts: [&[u8]; 2]) {
        let length = parts[0].len() + parts[1].len();
        if length < TEXT_BYTES {
            let all = parts[0].iter().chain(parts[1]);
            all.zip(&self.bytes).for_each(|(byte, place)| place.store(*byte, Ordering::Relaxed));
            self.length.store(length, Ordering::Release);
        }
    }

    fn bytes(&self) -> &[u8] {
        let length = self.length.load(Ordering::Acquire);
        // SAFETY: an atomic byte is like any, and none of these changes after the start.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr().cast(), length) }
    }

    fn pointer(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }
}

/// Keeps what programs are to be given, at the start of this one.
///
/// # Safety
/// The variables are texts that a null ends.
pub unsafe fn start(variables: *const *const c_char) {
    // SAFETY: the caller's; values end with a zero.
    let value = |name: &[u8]| unsafe { variables::variable(variables, name).map(|it| text(it)) };
    if let Some(list) = value(PRELOAD_NAME) {
        let own = elements(list).find(|path| path.ends_with(LIBRARY));
        own.into_iter().for_each(|path| PRELOAD.keep([path, b""]));
    }
    value(LIMIT_NAME).into_iter().for_each(|path| LIMIT.keep([LIMIT_NAME, path]));
    value(DOOR_NAME).into_iter().for_each(|path| DOOR.keep([DOOR_NAME, path]));
}

/// An environment as a call gives it, where there is a limit: none is an empty one for execve(2), and
/// not this process's own.
pub fn given(variables: *const *const c_char) -> *const *const c_char {
    static EMPTY: AtomicUsize = AtomicUsize::new(0);
    if variables.is_null() && limit::is_live() {
        EMPTY.as_ptr().cast_const().cast()
    } else {
        variables
    }
}

/// The path of the limit's region, with a zero behind it; `None`: there is none.
pub fn region_path() -> Option<*const u8> {
    let is_kept = LIMIT.bytes().len() > LIMIT_NAME.len();
    is_kept.then(|| LIMIT.pointer().cast::<u8>().wrapping_add(LIMIT_NAME.len()))
}

/// Whether a program gets what the limit reaches it by, where there is a limit.
///
/// # Safety
/// The variables are texts that a null ends, or null: this process's own.
pub unsafe fn is_complete(variables: *const *const c_char) -> bool {
    if !limit::is_live() {
        return true;
    }
    let variables = own_unless_given(variables);
    if variables.is_null() {
        return false;
    }
    // SAFETY: the caller's; values end with a zero.
    let value = |name: &[u8]| unsafe { variables::variable(variables, name).map(|it| text(it)) };
    let has_library =
        value(PRELOAD_NAME).is_some_and(|list| elements(list).any(|it| it == PRELOAD.bytes()));
    let is_as_kept = |name: &[u8], kept: &AtomicCString| {
        value(name).is_some_and(|value| kept.bytes().get(name.len()..) == Some(value))
    };
    has_library && is_as_kept(LIMIT_NAME, &LIMIT) && is_as_kept(DOOR_NAME, &DOOR)
}

/// Calls `next` with an environment by which the limit reaches a program. Where there is no room for
/// it, with the one that was given.
///
/// # Safety
/// As [`is_complete`].
#[inline(always)]
pub unsafe fn completed<R>(
    variables: *const *const c_char,
    next: impl FnOnce(*const *const c_char) -> R,
) -> R {
    // SAFETY: the caller's.
    if unsafe { is_complete(variables) } {
        return next(variables);
    }
    // SAFETY: the caller's.
    unsafe { rebuilt(variables, next) }
}

#[cold]
#[inline(never)]
unsafe fn rebuilt<R>(
    variables: *const *const c_char,
    next: impl FnOnce(*const *const c_char) -> R,
) -> R {
    let given = own_unless_given(variables);
    let mut list: [*const c_char; VARIABLES_MAX] = [ptr::null(); VARIABLES_MAX];
    let mut preload = [0_u8; PRELOAD_BYTES];
    let list_of = |it: *const *const c_char| {
        // SAFETY: the caller's; a value ends with a zero.
        unsafe { variables::variable(it, PRELOAD_NAME).map(|value| text(value)) }
    };
    let others = if given.is_null() { None } else { list_of(given) }.unwrap_or_default();
    let is_kept = !PRELOAD.bytes().is_empty() && region_path().is_some();
    // The last place stays null.
    let added = [preload.as_ptr().cast(), LIMIT.pointer(), DOOR.pointer()];
    // SAFETY: the caller's.
    let count = unsafe { copy(given, &mut list[..VARIABLES_MAX - 1 - added.len()]) };
    let (Some(count), true, true) = (count, is_kept, write_list(&mut preload, others)) else {
        return next(variables);
    };
    list[count..count + added.len()].copy_from_slice(&added);
    next(list.as_ptr())
}

/// Copies all variables but those of the limit: how many; `None`: there is no room.
///
/// # Safety
/// The variables are texts that a null ends, or null.
unsafe fn copy(variables: *const *const c_char, to: &mut [*const c_char]) -> Option<usize> {
    let mut count = 0;
    let mut at = variables;
    // SAFETY: up to the null.
    while !at.is_null() && !unsafe { *at }.is_null() {
        // SAFETY: as above.
        let variable = unsafe { *at };
        // SAFETY: it ends with a zero.
        let content = unsafe { text(variable.cast()) };
        if ![PRELOAD_NAME, LIMIT_NAME, DOOR_NAME].iter().any(|name| content.starts_with(name)) {
            *to.get_mut(count)? = variable;
            count += 1;
        }
        // SAFETY: not beyond the null.
        at = unsafe { at.add(1) };
    }
    Some(count)
}

/// Writes `LD_PRELOAD=` with the library behind the others; whether there is room.
fn write_list(to: &mut [u8; PRELOAD_BYTES], others: &[u8]) -> bool {
    let separator: &[u8] = if others.trim_ascii().is_empty() { b"" } else { b":" };
    let has_it = elements(others).any(|it| it == PRELOAD.bytes());
    let own: [&[u8]; 2] = if has_it { [b"", b""] } else { [separator, PRELOAD.bytes()] };
    let parts = [PRELOAD_NAME, others, own[0], own[1]];
    if parts.iter().map(|part| part.len()).sum::<usize>() >= PRELOAD_BYTES {
        return false;
    }
    let all = parts.iter().flat_map(|part| part.iter());
    all.zip(to.iter_mut()).for_each(|(byte, place)| *place = *byte);
    true
}

fn own_unless_given(variables: *const *const c_char) -> *const *const c_char {
    // SAFETY: the C library keeps the list.
    if variables.is_null() { unsafe { variables::environ } } else { variables }
}

/// As ld.so(8) divides a list.
fn elements(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b':' || *byte == b' ').filter(|path| !path.is_empty())
}

const PRELOAD_NAME: &[u8] = b"LD_PRELOAD=";
const LIMIT_NAME: &[u8] = b"WINDTUNNEL_LIMIT=";
const DOOR_NAME: &[u8] = b"WINDTUNNEL_HANDOVER=";
/// As `windtunnel_host` names it.
const LIBRARY: &[u8] = b"/libwindtunnel.so";
const TEXT_BYTES: usize = 4096;
/// Others beside the library.
const PRELOAD_BYTES: usize = 2 * TEXT_BYTES;
/// What takes no more than a few pages of a stack.
const VARIABLES_MAX: usize = 1024;
