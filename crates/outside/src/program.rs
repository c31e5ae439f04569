//! A program that is started outside any emulation: what its file says, and its words for the kernel.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use windtunnel_sys::executable::{self, SystemCallOrigin};

/// Whether a program gains rights by its file.
pub(crate) fn gains_rights(program: &OsStr) -> bool {
    let path = std::env::var_os("PATH");
    let folder = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    executable::gains_rights(program, path.as_deref(), &folder)
}

/// Whether a program makes its calls itself, so that no library can stand before them.
pub(crate) fn is_direct(program: &OsStr) -> bool {
    let path = std::env::var_os("PATH");
    let folder = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    executable::calls_of(program, path.as_deref(), &folder) == SystemCallOrigin::Direct
}

/// A command and its environment, for the kernel.
pub(crate) fn strings(
    arguments: &[OsString],
    variables: BTreeMap<OsString, OsString>,
) -> io::Result<(Vec<CString>, Vec<CString>)> {
    let words = arguments.iter().map(|word| CString::new(word.clone().into_vec()));
    let environment = variables.into_iter().map(|(mut entry, value)| {
        entry.push("=");
        entry.push(value);
        CString::new(entry.into_vec())
    });
    Ok((words.collect::<Result<_, _>>()?, environment.collect::<Result<_, _>>()?))
}
