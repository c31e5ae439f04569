//! The lines of a file that another machine has written.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use windtunnel_folder::{FolderError, failed};
use windtunnel_sys::below::regular_file;

/// Lines of a bounded length; of a longer one, what is beyond that is left out.
pub(super) struct BoundedLines {
    file: BufReader<File>,
    path: PathBuf,
    line: Vec<u8>,
}

impl BoundedLines {
    pub(super) fn open(path: &Path) -> Result<Self, FolderError> {
        let file = regular_file(path).map_err(failed("read", path))?;
        Ok(BoundedLines { file: BufReader::new(file), path: path.to_owned(), line: Vec::new() })
    }

    /// The next line with its end, if it has one; `None` at the file's.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, FolderError> {
        self.line.clear();
        let mut bounded = self.file.by_ref().take(LINE_BYTES_MAX);
        let read = bounded.read_until(b'\n', &mut self.line).map_err(failed("read", &self.path))?;
        if read == 0 {
            return Ok(None);
        }
        if self.line.last() != Some(&b'\n') {
            self.file.skip_until(b'\n').map_err(failed("read", &self.path))?;
        }
        Ok(Some(&self.line))
    }
}

/// The longest line that means something: an event with all words of a command (execve(2): 128 KiB
/// each).
const LINE_BYTES_MAX: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_does_not_end_takes_no_more_memory_than_a_line_may() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let long = "x".repeat(9 << 20);
        std::fs::write(&path, format!("a\n{long}\nb\n{long}")).unwrap();
        let mut lines = BoundedLines::open(&path).unwrap();
        let mut lengths = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            lengths.push(line.len());
        }
        assert_eq!(lengths, [2, 4 << 20, 2, 4 << 20]);
        assert!(lines.line.capacity() <= 16 << 20);
    }
}
