//! Where the file has what callers look at in their turn.

use crate::position::SourceLocation;

/// Where a program is written in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenProgram {
    /// Its command, or the first word of a list of words.
    pub run: SourceLocation,
    /// Its working folder, if the file names one.
    pub cwd: Option<SourceLocation>,
    /// When it is ready, if the file says so.
    pub ready: Option<SourceLocation>,
}

/// Where the file system of a node is written in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenRoot {
    /// Its folder or image.
    pub source: SourceLocation,
    /// The platform of the image, if the file says so.
    pub platform: Option<SourceLocation>,
}
