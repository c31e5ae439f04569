//! A file of lines that ends with a whole one, whatever happens: the process is killed, or the disk
//! is full.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, Write};

use crate::RunOutputFolder;
use crate::reserve;

/// A file that grows by whole lines.
#[derive(Debug)]
pub struct LineFileWriter {
    file: File,
    /// Whole lines that are to be written.
    waiting: Vec<u8>,
    /// Bytes of the file.
    length: u64,
    /// Room ahead of the end that is kept for this file.
    ahead: u64,
    /// Up to here the file has room.
    reserved: u64,
    failure: Option<io::Error>,
}

impl LineFileWriter {
    /// Makes a file of a run folder anew, and keeps `ahead` bytes of room for what will come.
    ///
    /// # Errors
    /// If it cannot be made, or the disk has no room.
    pub fn create(folder: &RunOutputFolder, name: &str, ahead: u64) -> io::Result<Self> {
        LineFileWriter::of(folder.below().create(name)?, ahead)
    }

    /// Of an empty file.
    fn of(file: File, ahead: u64) -> io::Result<Self> {
        reserve::room(&file, 0, ahead)?;
        let waiting = Vec::new();
        Ok(LineFileWriter { file, waiting, length: 0, ahead, reserved: ahead, failure: None })
    }

    /// Where whole lines are put; they reach the file with [`LineFileWriter::commit`].
    pub fn waiting(&mut self) -> &mut Vec<u8> {
        &mut self.waiting
    }

    /// Writes what waits, in one write. After a failure the file ends with the last line that is
    /// whole, and nothing more is written: a gap would be worse than an end.
    pub fn commit(&mut self) {
        let lines = std::mem::take(&mut self.waiting);
        if self.failure.is_none() {
            self.reserve_ahead(lines.len());
            let (written, failure) = write_most(&mut self.file, &lines);
            self.length += u64::try_from(whole_lines(&lines[..written])).unwrap_or(0);
            if let Some(failure) = failure {
                self.failure = Some(failure);
                // That this fails too says nothing more; `finish` tries again.
                let _ = self.end_at_a_line();
            }
        }
        self.waiting = lines;
        self.waiting.clear();
    }

    /// Writes what waits and gives back the room that was kept.
    ///
    /// # Errors
    /// Why not all has been written.
    pub fn finish(mut self) -> io::Result<()> {
        self.commit();
        let ended = self.end_at_a_line();
        self.failure.map_or(ended, Err)
    }

    /// Keeps room beyond what is about to be written. A disk that has none left lets the file grow
    /// into the room that it has.
    fn reserve_ahead(&mut self, more: usize) {
        let end = self.length.saturating_add(u64::try_from(more).unwrap_or(u64::MAX));
        let wanted = end.saturating_add(self.ahead);
        if self.reserved.saturating_sub(end) < self.ahead / 2
            && reserve::room(&self.file, self.length, wanted - self.length).is_ok()
        {
            self.reserved = wanted;
        }
    }

    fn end_at_a_line(&mut self) -> io::Result<()> {
        self.file.set_len(self.length)?;
        self.file.seek(io::SeekFrom::Start(self.length)).map(|_| ())
    }
}

/// How much could be written, and why not all.
fn write_most(out: &mut impl Write, bytes: &[u8]) -> (usize, Option<io::Error>) {
    let mut written = 0;
    while written < bytes.len() {
        match out.write(&bytes[written..]) {
            Ok(0) => return (written, Some(ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (written, Some(error)),
        }
    }
    (written, None)
}

/// The bytes up to the end of the last whole line.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn lines(path: &Path, ahead: u64) -> LineFileWriter {
        LineFileWriter::of(File::create(path).unwrap(), ahead).unwrap()
    }

    #[test]
    fn room_that_is_kept_does_not_show_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let mut lines = lines(&path, 1 << 16);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
        lines.waiting().extend(b"one\ntwo\n");
        lines.commit();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
        lines.waiting().extend(b"three\n");
        lines.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\nthree\n");
    }

    #[test]
    fn a_disk_that_is_full_leaves_whole_lines_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let mut lines = lines(&path, 0);
        lines.waiting().extend(b"one\n");
        lines.commit();
        // Every write to it fails as on a full disk.
        let full = File::options().write(true).open("/dev/full").unwrap();
        let real = std::mem::replace(&mut lines.file, full);
        lines.waiting().extend(b"two\n");
        lines.commit();
        lines.file = real;
        lines.waiting().extend(b"three\n");
        let error = lines.finish().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!(std::fs::read(&path).unwrap(), b"one\n");
    }

    #[test]
    fn only_what_is_a_whole_line_counts_of_a_write_that_was_cut() {
        struct Short(Vec<u8>);
        impl Write for Short {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let room = 6 - self.0.len();
                if room == 0 {
                    return Err(ErrorKind::StorageFull.into());
                }
                let taken = room.min(bytes.len()).min(4);
                self.0.extend(&bytes[..taken]);
                Ok(taken)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (written, failure) = write_most(&mut Short(Vec::new()), b"one\ntwo\n");
        assert_eq!((written, failure.unwrap().kind()), (6, ErrorKind::StorageFull));
        assert_eq!(whole_lines(&b"one\ntwo\n"[..written]), 4);
        assert_eq!(whole_lines(b"none"), 0);
    }
}
