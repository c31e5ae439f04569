//! Room on the disk that is kept for what is written last: the report of a run, whose programs may
//! have filled the disk meanwhile.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use windtunnel_model::Plan;
use windtunnel_model::plan::EventAction;

/// An empty file with room for what will be written to it.
#[derive(Debug)]
pub struct PreallocatedFile {
    file: File,
}

impl PreallocatedFile {
    /// Makes the file, or empties it, and keeps `bytes` of room for it.
    ///
    /// # Errors
    /// If it cannot be made, or there is no room.
    pub fn create(path: &Path, bytes: u64) -> io::Result<Self> {
        PreallocatedFile::of(File::create(path)?, bytes)
    }

    /// Keeps `bytes` of room for a file.
    ///
    /// # Errors
    /// If there is no room.
    pub(crate) fn of(file: File, bytes: u64) -> io::Result<Self> {
        room(&file, 0, bytes)?;
        Ok(PreallocatedFile { file })
    }

    /// Writes the contents, and gives back the room that they do not need.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(mut self, contents: &[u8]) -> io::Result<()> {
        self.file.write_all(contents)?;
        // What is not a file of a disk (a pipe, a terminal) has no length.
        if !self.file.metadata()?.is_file() {
            return Ok(());
        }
        self.file.set_len(u64::try_from(contents.len()).unwrap_or(u64::MAX))
    }
}

/// Keeps room for `bytes` of the file from `offset` on, without changing its length (fallocate(2)).
/// Where the file system cannot do that, nothing is kept.
///
/// # Errors
/// If there is no room.
pub(crate) fn room(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::KEEP_SIZE, offset, bytes) {
        Err(full @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(full.into()),
        // Not supported, or no file that has blocks (a pipe, a terminal).
        _ => Ok(()),
    }
}

/// Room for `run.json` of a run of `plan`: more than any was found to need.
#[must_use]
pub fn report_bytes(plan: &Plan) -> u64 {
    let all = [
        (plan.links.len() * 2, 4_000),
        (changes(plan), 4_000),
        (plan.routers.len(), 1_000),
        (plan.expectations.len(), 2_000),
        (programs(plan), 1_500),
    ];
    FIXED_BYTES + sum(&all) + 2 * words(plan)
}

/// Room for a JUnit file of a run of `plan`, likewise.
#[must_use]
pub fn junit_bytes(plan: &Plan) -> u64 {
    FIXED_BYTES
        + sum(&[(plan.expectations.len(), 4_000), (programs(plan), 2_000)])
        + 4 * words(plan)
}

fn sum(all: &[(usize, u64)]) -> u64 {
    all.iter().map(|(count, bytes)| u64::try_from(*count).unwrap_or(0) * bytes).sum()
}

/// Planned changes of lanes, each of which makes a phase.
fn changes(plan: &Plan) -> usize {
    let changes = plan.events.iter().map(|event| match &event.action {
        EventAction::Link(change) => change.patches.len(),
        _ => 0,
    });
    changes.sum()
}

fn programs(plan: &Plan) -> usize {
    plan.nodes.iter().map(|node| node.programs.len()).sum()
}

/// Bytes of the words of all programs, which the report quotes.
fn words(plan: &Plan) -> u64 {
    let programs = plan.nodes.iter().flat_map(|node| &node.programs);
    let words = programs.flat_map(|program| &program.argv).map(String::len);
    u64::try_from(words.sum::<usize>()).unwrap_or(0)
}

/// What does not depend on the plan: verdict, doubts, failures, warnings, machines.
const FIXED_BYTES: u64 = 1 << 17;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_reserve_is_empty_and_has_room_until_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        let reserve = PreallocatedFile::create(&path, 1 << 20).unwrap();
        let kept = std::fs::metadata(&path).unwrap();
        assert_eq!(kept.len(), 0);
        reserve.write(b"{}").unwrap();
        let written = std::fs::metadata(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"{}");
        // Where the file system keeps room at all.
        assert!(kept.blocks() == 0 || written.blocks() < kept.blocks());
    }

    #[test]
    fn earlier_contents_do_not_remain_behind_the_written_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        std::fs::write(&path, "a long text of another time").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        PreallocatedFile::of(file, 0).unwrap().write(b"short").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"short");
    }
}
