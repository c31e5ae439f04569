//! A scenario as it is given: its text, and the files that it names.

/// The largest file that is read.
pub const LARGEST_FILE: usize = 16 << 20;

/// A file's text and where it is from.
#[derive(Debug, Clone, Copy)]
pub struct ScenarioSource<'a> {
    /// The file as it is named in errors.
    pub name: &'a str,
    /// Its bytes.
    pub text: &'a [u8],
    /// The experiment's name where the file has none: the file's stem.
    pub default_name: &'a str,
    /// Absolute path of the file's folder: where relative `cwd`s start.
    pub base_dir: &'a str,
}

/// Gives the bytes of a file that a scenario names (a path as it is written there, relative to the
/// scenario's folder), at most one more than [`LARGEST_FILE`]; or the reason why it cannot.
pub type ReadFile<'a> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'a;
