//! Variables of the environment, and their texts.

use core::ffi::c_char;

unsafe extern "C" {
    /// The environment, as the C library keeps it (environ(7)).
    pub static environ: *const *const c_char;
}

/// The value of a variable.
///
/// # Safety
/// `variables` is a list of texts that a null ends.
pub unsafe fn variable(mut variables: *const *const c_char, name: &[u8]) -> Option<*const u8> {
    loop {
        // SAFETY: up to the null.
        let text = unsafe { *variables };
        if text.is_null() {
            return None;
        }
        let mut at = 0;
        // SAFETY: the comparison stops at the first difference, hence at the text's zero.
        while at < name.len() && unsafe { *text.cast::<u8>().add(at) } == name[at] {
            at += 1;
        }
        if at == name.len() {
            // SAFETY: within the text.
            return Some(unsafe { text.cast::<u8>().add(at) });
        }
        // SAFETY: up to the null.
        variables = unsafe { variables.add(1) };
    }
}

/// The bytes of a text before its zero.
///
/// # Safety
/// There is a zero.
pub unsafe fn text<'a>(begin: *const u8) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: up to the zero.
    while unsafe { *begin.add(length) } != 0 {
        length += 1;
    }
    // SAFETY: all these bytes are there.
    unsafe { core::slice::from_raw_parts(begin, length) }
}
