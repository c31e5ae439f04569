//! What is carried from a program's pipes.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use regex::Regex;
use windtunnel_sys::below::FolderHandle;
use windtunnel_verdict::evidence::ProgramKey;

/// A pipe to carry.
#[derive(Debug)]
pub(crate) struct OutputStreamSetup {
    pub key: ProgramKey,
    /// Shown in front of its lines.
    pub source: String,
    /// Whether it is standard error.
    pub error: bool,
    /// The reading end.
    pub pipe: OwnedFd,
    /// The run folder, and the path below it of the file that is appended to.
    pub folder: Arc<FolderHandle>,
    pub inner: PathBuf,
    /// The same file as users name it.
    pub file: PathBuf,
    /// A line that matches makes the program ready.
    pub ready: Option<Regex>,
    /// Lines that expectations ask for.
    pub watches: Vec<LogWatch>,
}

/// Lines to be counted.
#[derive(Debug)]
pub(crate) struct LogWatch {
    pub expectation: usize,
    /// What a line must match.
    pub pattern: Regex,
    /// Only lines read from this on, in nanoseconds of the monotonic clock,
    pub from_ns: u64,
    /// and before this.
    pub to_ns: u64,
}
