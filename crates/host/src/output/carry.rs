//! What is carried from a program's pipes, and what was seen of it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use regex::Regex;
use serde::{Deserialize, Serialize};
use windtunnel_sys::below::FolderHandle;

/// Names one program of the plan: its node's position and its own among the node's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ProgramKey {
    pub node: usize,
    /// Position among the node's programs.
    pub program: usize,
}

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

/// Where the lines of one stream that match were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogMatches {
    pub expectation: usize,
    pub key: ProgramKey,
    /// The file that has them.
    pub file: PathBuf,
    /// How many matched.
    pub lines: u64,
    /// The first of them.
    pub first: Option<LogLine>,
}

/// A line of a program's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogLine {
    /// Its number in the file, from 1.
    pub number: u64,
    /// When it was read, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// Its beginning.
    pub text: String,
}

/// Bytes of one program, both streams together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct OutputByteCounts {
    /// Written by the program.
    pub bytes: u64,
    /// Of these, not kept.
    pub discarded: u64,
}

/// All that was carried.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct OutputCollectionSummary {
    #[serde(with = "crate::pairs")]
    pub volumes: BTreeMap<ProgramKey, OutputByteCounts>,
    /// Lines that expectations ask for, by stream.
    pub logs: Vec<LogMatches>,
    /// The first failure to write a file, if any.
    pub failure: Option<String>,
}
