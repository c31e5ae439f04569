//! A file that is being fetched: never longer than its image says, and there when it is whole.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A file beside the one that it will be.
pub(crate) struct Blob<'a> {
    file: File,
    partial: PathBuf,
    /// Bytes that may still come.
    left: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl<'a> Blob<'a> {
    pub(crate) fn create(
        path: &Path,
        bytes: u64,
        progress: &'a mut dyn FnMut(u64),
    ) -> io::Result<Blob<'a>> {
        let partial = path.with_extension("partial");
        let file = File::create(&partial)?;
        Ok(Blob { file, partial, left: bytes, progress })
    }

    /// Writes what has come, unless it is more than may come.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let Some(left) = self.left.checked_sub(length) else {
            let text = "a blob is longer than its manifest says";
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        };
        self.left = left;
        self.file.write_all(bytes)?;
        (self.progress)(length);
        Ok(())
    }

    /// Gives it its name. Its digest has been checked.
    pub(crate) fn finish(self, path: &Path) -> io::Result<()> {
        if self.left > 0 {
            let text = format!("a blob is {} bytes shorter than its manifest says", self.left);
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        // What is there must be whole, also after a power failure.
        self.file.sync_all()?;
        fs::rename(&self.partial, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_has_its_name_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blob");
        let mut seen = 0;
        let mut progress = |bytes| seen += bytes;
        let mut blob = Blob::create(&path, 4, &mut progress).unwrap();
        blob.write(b"ab").unwrap();
        assert!(!path.exists());
        blob.write(b"cd").unwrap();
        blob.finish(&path).unwrap();
        assert_eq!((fs::read(&path).unwrap(), seen), (b"abcd".to_vec(), 4));
    }

    #[test]
    fn a_blob_that_is_shorter_than_it_should_be_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut progress = |_| ();
        let path = folder.path().join("blob");
        let mut blob = Blob::create(&path, 3, &mut progress).unwrap();
        blob.write(b"ab").unwrap();
        let error = blob.finish(&path).unwrap_err().to_string();
        assert_eq!(error, "a blob is 1 bytes shorter than its manifest says");
        assert!(!path.exists());
    }

    #[test]
    fn a_blob_that_is_longer_than_it_should_be_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut progress = |_| ();
        let mut blob = Blob::create(&folder.path().join("blob"), 3, &mut progress).unwrap();
        assert!(blob.write(b"abcd").is_err());
    }
}
