//! The library that programs load.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The list with one library more, behind the others.
pub(crate) fn with_library(list: Option<OsString>, library: &Path) -> OsString {
    let mut list = list.unwrap_or_default();
    if !list.as_bytes().trim_ascii().is_empty() {
        list.push(":");
    }
    list.push(library);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_own_preload_libraries_stay_in_front() {
        let list = |own: Option<&str>| with_library(own.map(OsString::from), Path::new("/l.so"));
        assert_eq!(list(None), "/l.so");
        assert_eq!(list(Some(" ")), " /l.so");
        assert_eq!(list(Some("a.so b.so")), "a.so b.so:/l.so");
    }
}
