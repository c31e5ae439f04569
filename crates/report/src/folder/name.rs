//! Names of folders.

use std::fs;
use std::path::Path;

/// The name of a folder, also of `.` and of links such as `latest`.
pub(crate) fn name_of(folder: &Path) -> String {
    let whole = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let name = whole.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| folder.display().to_string())
}
