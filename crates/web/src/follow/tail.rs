//! A file that grows.

use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use windtunnel_sys::below::FolderHandle;

/// A place in a file that need not be there yet.
#[derive(Debug)]
pub(super) struct FileTailReader {
    folder: Arc<FolderHandle>,
    path: PathBuf,
    /// What has been read.
    position: u64,
    /// The begin of a line whose end has not been written.
    partial: Vec<u8>,
    /// Whether the first line is one of which the begin was not read.
    inside: bool,
}

impl FileTailReader {
    /// At the end of what is there; the path is one below the folder.
    pub(super) fn at_end(folder: &Arc<FolderHandle>, path: PathBuf) -> Self {
        let partial = Vec::new();
        let mut tail = FileTailReader {
            folder: Arc::clone(folder),
            path,
            position: 0,
            partial,
            inside: false,
        };
        tail.position = tail.length();
        tail.inside = tail.position > 0 && tail.last_byte() != Some(b'\n');
        tail
    }

    /// Bytes that are there.
    fn length(&self) -> u64 {
        let about = self.folder.file(&self.path).and_then(|file| file.metadata());
        about.map_or(0, |about| about.len())
    }

    fn last_byte(&self) -> Option<u8> {
        let mut file = self.folder.file(&self.path).ok()?;
        file.seek(SeekFrom::Start(self.position.checked_sub(1)?)).ok()?;
        let mut byte = [0];
        file.read_exact(&mut byte).ok()?;
        Some(byte[0])
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// New bytes, at most so many.
    pub(super) fn bytes(&mut self, most: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Ok(mut file) = self.folder.file(&self.path) else { return bytes };
        let there = file.metadata().map_or(0, |data| data.len());
        if there == self.position {
            return bytes;
        }
        // Begun anew by something else: what was read is gone.
        self.position = self.position.min(there);
        let read = file
            .seek(SeekFrom::Start(self.position))
            .and_then(|_| file.take(most).read_to_end(&mut bytes));
        match read {
            Ok(_) => self.position += u64::try_from(bytes.len()).unwrap_or(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => bytes.clear(),
            Err(_) => bytes.clear(),
        }
        bytes
    }

    /// Whole new lines with their ends.
    pub(super) fn lines(&mut self, most: u64) -> Vec<String> {
        let bytes = self.bytes(most);
        self.partial.extend_from_slice(&bytes);
        let end = self.partial.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let rest = self.partial.split_off(end);
        let whole = std::mem::replace(&mut self.partial, rest);
        let text = String::from_utf8_lossy(&whole).into_owned();
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        if self.inside && !lines.is_empty() {
            lines.remove(0);
            self.inside = false;
        }
        lines
    }

    /// Leaves out all but the last bytes; how many.
    pub(super) fn skip_but(&mut self, last: u64) -> u64 {
        let there = self.length();
        let skipped = there.saturating_sub(last).saturating_sub(self.position);
        self.position += skipped;
        skipped
    }

    /// Bytes that have not been read.
    pub(super) fn behind(&self) -> u64 {
        self.length().saturating_sub(self.position)
    }

    /// Reads these bytes again, which are a part of a character.
    pub(super) fn back(&mut self, bytes: usize) {
        self.position = self.position.saturating_sub(u64::try_from(bytes).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;

    use super::*;

    fn append(path: &Path, text: &str) {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn tail(folder: &Path) -> FileTailReader {
        FileTailReader::at_end(&Arc::new(FolderHandle::open(folder).unwrap()), "f".into())
    }

    #[test]
    fn nothing_is_read_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        append(&folder.path().join("secret"), "secret\n");
        std::os::unix::fs::symlink("secret", folder.path().join("f")).unwrap();
        let mut tail = tail(folder.path());
        assert_eq!((tail.behind(), tail.lines(100)), (0, Vec::new()));
    }

    #[test]
    fn only_whole_lines_that_were_written_afterwards_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        append(&path, "old\nhalf");
        let mut tail = tail(folder.path());
        append(&path, " of it\nne");
        assert_eq!(tail.lines(100), [""; 0]);
        append(&path, "w\nmore\n");
        assert_eq!(tail.lines(100), ["new\n", "more\n"]);
        assert_eq!(tail.lines(100), [""; 0]);
    }

    #[test]
    fn a_file_that_comes_later_is_read_from_its_begin() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let mut tail = tail(folder.path());
        assert_eq!(tail.lines(100), [""; 0]);
        append(&path, "a\nb\n");
        assert_eq!(tail.lines(3), ["a\n"]);
        assert_eq!(tail.lines(3), ["b\n"]);
    }
}
