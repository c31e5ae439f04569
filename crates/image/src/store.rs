//! Where the files of an image are: a folder, or a tar file that holds them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Take};
use std::path::{Path, PathBuf};

use crate::error::ImageError;

/// The files of an image.
#[derive(Debug)]
pub(crate) enum ImageStorage {
    Folder(PathBuf),
    Tar { path: PathBuf, files: BTreeMap<String, TarFileLocation> },
}

/// Where a file is within a tar file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TarFileLocation {
    Bytes {
        at: u64,
        length: u64,
    },
    /// The same as another one.
    Link(String),
}

impl ImageStorage {
    /// Opens a folder or a tar file, of which only the heads of its entries are read.
    pub(crate) fn open(path: &Path) -> Result<ImageStorage, ImageError> {
        let failed = |source| ImageError::Read { path: path.to_owned(), source };
        let about = std::fs::metadata(path).map_err(failed)?;
        if about.is_dir() {
            return Ok(ImageStorage::Folder(path.to_owned()));
        }
        let mut file = File::open(path).map_err(failed)?;
        let mut beginning = Vec::new();
        (&mut file).take(6).read_to_end(&mut beginning).map_err(failed)?;
        let not = |why: &str| ImageError::NotAnImage { path: path.to_owned(), why: why.to_owned() };
        if is_compressed(&beginning) {
            return Err(not(
                "it is compressed as a whole: uncompress it first (gunzip, unzstd, unxz)",
            ));
        }
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let files =
            entries(file).map_err(|error| not(&format!("it is no whole tar file ({error})")))?;
        Ok(ImageStorage::Tar { path: path.to_owned(), files })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            ImageStorage::Folder(folder) => folder.join(name).is_file(),
            ImageStorage::Tar { files, .. } => files.contains_key(name),
        }
    }

    /// Opens one of the files; it and its length.
    pub(crate) fn read(&self, name: &str) -> io::Result<(Take<File>, u64)> {
        match self {
            ImageStorage::Folder(folder) => {
                let file = File::open(folder.join(name))?;
                let about = file.metadata()?;
                if !about.is_file() {
                    return Err(io::Error::other("it is not a file"));
                }
                Ok((file.take(about.len()), about.len()))
            }
            ImageStorage::Tar { path, files } => {
                let (at, length) = place(files, name).ok_or(io::ErrorKind::NotFound)?;
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(at))?;
                Ok((file.take(length), length))
            }
        }
    }

    /// The whole of a document.
    pub(crate) fn document(&self, name: &str) -> io::Result<Vec<u8>> {
        let (file, length) = self.read(name)?;
        if length > DOCUMENT_BYTES_MAX {
            return Err(io::Error::other(format!("it has {length} bytes, and may have 4 MiB")));
        }
        let mut bytes = Vec::new();
        let mut file = file.take(DOCUMENT_BYTES_MAX);
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

fn place(files: &BTreeMap<String, TarFileLocation>, name: &str) -> Option<(u64, u64)> {
    match files.get(name)? {
        TarFileLocation::Bytes { at, length } => Some((*at, *length)),
        // Links to links are not followed: no tool makes them, and they could go in circles.
        TarFileLocation::Link(other) => match files.get(other)? {
            TarFileLocation::Bytes { at, length } => Some((*at, *length)),
            TarFileLocation::Link(_) => None,
        },
    }
}

fn entries(file: File) -> io::Result<BTreeMap<String, TarFileLocation>> {
    let size = file.metadata()?.len();
    let mut archive = tar::Archive::new(file);
    let mut files = BTreeMap::new();
    for entry in archive.entries_with_seek()? {
        let entry = entry?;
        let Ok(name) = String::from_utf8(entry.path_bytes().into_owned()) else { continue };
        let name = name.trim_start_matches("./").to_owned();
        let place = match entry.header().entry_type() {
            kind if kind.is_file() => {
                let (at, length) = (entry.raw_file_position(), entry.size());
                if at.checked_add(length).is_none_or(|end| end > size) {
                    return Err(io::Error::other(format!(
                        "`{name}` ends behind the end of the file"
                    )));
                }
                TarFileLocation::Bytes { at, length }
            }
            kind if kind.is_symlink() || kind.is_hard_link() => {
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                let Ok(target) = String::from_utf8(target) else { continue };
                let base = if kind.is_symlink() { &name } else { "" };
                match beside(base, &target) {
                    Some(target) => TarFileLocation::Link(target),
                    None => continue,
                }
            }
            _ => continue,
        };
        if files.len() >= FILES_MAX {
            return Err(io::Error::other(format!("it has more than {FILES_MAX} files")));
        }
        files.insert(name, place);
    }
    Ok(files)
}

/// The name that a link in the folder of `from` leads to; `None` if it leads out.
fn beside(from: &str, target: &str) -> Option<String> {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Whether a file with this beginning is compressed: gzip (RFC 1952), zstd (RFC 8878), xz, bzip2.
fn is_compressed(beginning: &[u8]) -> bool {
    let marks: [&[u8]; 4] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh"];
    marks.iter().any(|mark| beginning.starts_with(mark))
}

const DOCUMENT_BYTES_MAX: u64 = 4 << 20;
const FILES_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_within_an_archive_lead_to_its_own_files() {
        assert_eq!(beside("abc/layer.tar", "../def/layer.tar").as_deref(), Some("def/layer.tar"));
        assert_eq!(beside("layer.tar", "../../etc/shadow"), None);
        let bytes = TarFileLocation::Bytes { at: 1, length: 2 };
        let files = BTreeMap::from([
            ("a".to_owned(), TarFileLocation::Link("b".into())),
            ("b".to_owned(), bytes),
            ("c".to_owned(), TarFileLocation::Link("c".into())),
        ]);
        assert_eq!(place(&files, "a"), Some((1, 2)));
        assert_eq!(place(&files, "c"), None);
    }
}
