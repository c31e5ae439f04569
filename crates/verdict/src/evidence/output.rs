//! What programs wrote.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::program::ProgramKey;

/// Where the lines of one stream that match were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogMatches {
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
pub struct LogLine {
    /// Its number in the file, from 1.
    pub number: u64,
    /// When it was read, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// Its beginning.
    pub text: String,
}

/// Bytes of one program, both streams together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OutputByteCounts {
    /// Written by the program.
    pub bytes: u64,
    /// Of these, not kept.
    pub discarded: u64,
}

/// All that was carried.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct OutputCollectionSummary {
    #[serde(with = "crate::pairs")]
    pub volumes: BTreeMap<ProgramKey, OutputByteCounts>,
    /// Lines that expectations ask for, by stream.
    pub logs: Vec<LogMatches>,
    /// The first failure to write a file, if any.
    pub failure: Option<String>,
}
