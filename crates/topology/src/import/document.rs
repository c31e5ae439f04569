//! A file to import, and what is around it.

use std::fmt;

/// The largest file that is read.
pub const LARGEST_IMPORT: usize = 16 << 20;

/// A file to import.
#[derive(Debug, Clone, Copy)]
pub struct ImportDocument<'a> {
    /// The file as it is named in errors and comments.
    pub name: &'a str,
    /// Its bytes.
    pub text: &'a [u8],
    /// The experiment's name where the file has none: the file's stem.
    pub default_name: &'a str,
}

/// What is around a file and belongs to it.
#[derive(Clone, Copy)]
pub struct ImportContext<'a> {
    /// Compose files whose values go over those of the file, each over those before.
    pub over: &'a [ImportDocument<'a>],
    /// Reads a file by its path from the file's folder, or says why it cannot.
    pub read: &'a dyn Fn(&str) -> Result<Vec<u8>, String>,
}

impl fmt::Debug for ImportContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("over", &self.over).finish_non_exhaustive()
    }
}
