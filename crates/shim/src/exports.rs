//! The functions that programs call in place of the C library's.

mod bytes;
mod descriptors;
mod execution;
mod messages;
mod process;
mod readiness;
mod sockets;

/// Functions of C's names. They have them only in the library: this crate's tests have the C
/// library's.
macro_rules! export {
    ($($(#[doc = $doc:literal])* fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)? $body:block)*) => {
        $(
            $(#[doc = $doc])*
            #[allow(non_snake_case, reason = "the name is the C library's")]
            #[cfg_attr(preload, unsafe(no_mangle))]
            pub unsafe extern "C" fn $name($($argument: $kind),*) $(-> $result)? $body
        )*
    };
}
use export;
