//! Layers as the one tree that they are together, without overlayfs: to read a file of it, to unpack
//! the next layer onto it, and to copy it where overlayfs is denied.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use crate::copied;
use crate::inside::ConfinedRootFolder;
use crate::unpack::{is_opaque, is_whiteout_at};

/// Unpacked layers.
#[derive(Debug, Clone)]
pub struct MergedLayerTree {
    /// The topmost first.
    layers: Vec<PathBuf>,
}

/// What a path of the tree leads to.
#[derive(Debug)]
pub(crate) struct ResolvedLayerPath {
    /// The path without links; what is not there is at its end.
    pub(crate) names: Vec<OsString>,
    /// Of each folder on it, the root first: the layers that have a part of it, the topmost first.
    pub(crate) folders: Vec<Vec<usize>>,
    pub(crate) found: PathLookupResult,
}

/// What is there.
#[derive(Debug)]
pub(crate) enum PathLookupResult {
    Nothing,
    /// The last of [`ResolvedLayerPath::folders`].
    Folder,
    /// Anything else, and the layer that has it.
    Other(usize, Metadata),
}

impl MergedLayerTree {
    /// Of folders, the topmost first. Those below one that hides all are left away.
    #[must_use]
    pub fn new(mut layers: Vec<PathBuf>) -> MergedLayerTree {
        // overlayfs does not look whether a root is opaque.
        if let Some(last) = layers.iter().position(|layer| is_opaque(layer)) {
            layers.truncate(last + 1);
        }
        MergedLayerTree { layers }
    }

    /// Its layers, the topmost first.
    #[must_use]
    pub fn layers(&self) -> &[PathBuf] {
        &self.layers
    }

    /// The content of a file, of its first 4 MiB; `None` if there is no such file.
    #[must_use]
    pub fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let walked = self.walk(path, true).ok()?;
        let PathLookupResult::Other(layer, _) = walked.found else { return None };
        let open = ConfinedRootFolder::open(&self.layers[layer])
            .ok()?
            .read(path_of(&walked.names))
            .ok()?;
        let file = fs::File::from(open);
        let is_file = file.metadata().is_ok_and(|about| about.is_file());
        let mut bytes = Vec::new();
        let read = file.take(READ_BYTES_MAX).read_to_end(&mut bytes);
        (is_file && read.is_ok()).then_some(bytes)
    }

    /// Copies what is at `path` (the root: an empty path), if it is a folder, into the folder `target`,
    /// with owners, modes, times and extended attributes. The caller alone may write there. Whether
    /// there was one.
    ///
    /// # Errors
    /// What could not be copied.
    pub fn copy(&self, path: &Path, target: &Path) -> Result<bool, (PathBuf, io::Error)> {
        let Ok(walked) = self.walk(path, true) else { return Ok(false) };
        let (PathLookupResult::Folder, Some(parts)) = (&walked.found, walked.folders.last()) else {
            return Ok(false);
        };
        for layer in parts.iter().rev() {
            let from = self.place(*layer, &walked.names);
            let about = fs::symlink_metadata(&from).map_err(|error| (from.clone(), error))?;
            let mut copier = Copier { links: BTreeMap::new() };
            copier.folder(&from, &about, target)?;
        }
        Ok(true)
    }

    /// Gives the folder `target` the attributes of the tree's root.
    ///
    /// # Errors
    /// As chown(2), chmod(2), setxattr(2) and utimensat(2) have them.
    pub fn like_root(&self, target: &Path) -> io::Result<()> {
        let Some(layer) = self.layers.first() else { return Ok(()) };
        copied::attributes(layer, &fs::metadata(layer)?, target)
    }

    /// Where something is that [`MergedLayerTree::walk`] has found in a layer.
    pub(crate) fn place(&self, layer: usize, names: &[OsString]) -> PathBuf {
        self.layers[layer].join(path_of(names))
    }

    /// Goes along a path as overlayfs would show it, through links of all layers, also of the last
    /// name where `follows`. No link leads out of the tree.
    pub(crate) fn walk(
        &self,
        path: impl AsRef<Path>,
        follows: bool,
    ) -> io::Result<ResolvedLayerPath> {
        let mut pending: VecDeque<OsString> = steps(path.as_ref()).collect();
        let root = (0..self.layers.len()).collect();
        let mut walked = ResolvedLayerPath {
            names: Vec::new(),
            folders: vec![root],
            found: PathLookupResult::Folder,
        };
        let mut links = 0;
        while let Some(step) = pending.pop_front() {
            if step == ".." {
                walked.names.pop();
                // Of what is not there, no folder is known.
                walked.folders.truncate(walked.names.len() + 1);
                if walked.folders.len() == walked.names.len() + 1 {
                    walked.found = PathLookupResult::Folder;
                }
                continue;
            }
            let is_missing = matches!(walked.found, PathLookupResult::Nothing);
            walked.names.push(step);
            if is_missing {
                continue;
            }
            let parts = walked.folders.last().map_or(&[][..], Vec::as_slice);
            let (found, below) = self.look(parts, &walked.names)?;
            match found {
                PathLookupResult::Other(layer, about)
                    if about.is_symlink() && (follows || !pending.is_empty()) =>
                {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(Errno::LOOP.into());
                    }
                    let target = fs::read_link(self.place(layer, &walked.names))?;
                    walked.names.pop();
                    if target.is_absolute() {
                        walked.names.clear();
                        walked.folders.truncate(1);
                    }
                    steps(&target).rev().for_each(|step| pending.push_front(step));
                }
                PathLookupResult::Other(..) if !pending.is_empty() => {
                    return Err(Errno::NOTDIR.into());
                }
                PathLookupResult::Folder => {
                    walked.folders.push(below);
                    walked.found = PathLookupResult::Folder;
                }
                found => walked.found = found,
            }
        }
        Ok(walked)
    }

    /// What has the last of `names` in a folder of which these layers have parts; of a folder, the layers
    /// that have parts of it.
    fn look(
        &self,
        parts: &[usize],
        names: &[OsString],
    ) -> io::Result<(PathLookupResult, Vec<usize>)> {
        let mut below = Vec::new();
        for layer in parts {
            let place = self.place(*layer, names);
            let about = match fs::symlink_metadata(&place) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            if about.is_dir() {
                below.push(*layer);
                if is_opaque(&place) {
                    break;
                }
            } else if below.is_empty() && !is_whiteout_at(&place) {
                return Ok((PathLookupResult::Other(*layer, about), below));
            } else {
                break;
            }
        }
        let found =
            if below.is_empty() { PathLookupResult::Nothing } else { PathLookupResult::Folder };
        Ok((found, below))
    }
}

/// The steps of a path.
fn steps(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

/// A path below a root; of the root itself `.`.
pub(crate) fn path_of(names: &[OsString]) -> PathBuf {
    if names.is_empty() { ".".into() } else { names.join(OsStr::new("/")).into() }
}

struct Copier {
    /// Files with several names, by device and number: where they are already.
    links: BTreeMap<(u64, u64), PathBuf>,
}

impl Copier {
    fn folder(
        &mut self,
        from: &Path,
        about: &Metadata,
        to: &Path,
    ) -> Result<(), (PathBuf, io::Error)> {
        let failed = |error: io::Error| (from.to_owned(), error);
        match fs::symlink_metadata(to) {
            Ok(there) if there.is_dir() => {
                if is_opaque(from) {
                    empty(to).map_err(failed)?;
                }
            }
            Ok(_) => fs::remove_file(to).and_then(|()| fs::create_dir(to)).map_err(failed)?,
            Err(_) => fs::create_dir(to).map_err(failed)?,
        }
        for entry in fs::read_dir(from).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            self.entry(&entry.path(), &to.join(entry.file_name()))?;
        }
        copied::attributes(from, about, to).map_err(failed)
    }

    fn entry(&mut self, from: &Path, to: &Path) -> Result<(), (PathBuf, io::Error)> {
        let failed = |error: io::Error| (from.to_owned(), error);
        let about = fs::symlink_metadata(from).map_err(failed)?;
        if about.is_dir() {
            return self.folder(from, &about, to);
        }
        remove(to).map_err(failed)?;
        if is_whiteout_at(from) {
            return Ok(());
        }
        if about.nlink() > 1 {
            let number = (about.dev(), about.ino());
            if let Some(first) = self.links.get(&number) {
                return fs::hard_link(first, to).map_err(failed);
            }
            self.links.insert(number, to.to_owned());
        }
        copied::entry(from, &about, to).map_err(failed)
    }
}

fn empty(folder: &Path) -> io::Result<()> {
    let names: io::Result<Vec<OsString>> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect();
    names?.into_iter().try_for_each(|name| remove(&folder.join(name)))
}

/// Whatever is there, if anything is.
fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(about) if about.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    }
}

/// As Linux has it (path_resolution(7)).
const LINKS_MAX: usize = 40;
const READ_BYTES_MAX: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use tar::EntryType;

    use super::*;
    use crate::ids::ImageOwnerMapping;
    use crate::testing::{TestLayerEntry, file, other, tar};
    use crate::unpack::{EntryError, unpack};

    /// Layers, the lowest first; `None` where the file system has no extended attributes of users.
    fn merged(layers: &[&[TestLayerEntry]]) -> Option<(tempfile::TempDir, MergedLayerTree)> {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for (number, entries) in layers.iter().enumerate() {
            let path = folder.path().join(number.to_string());
            fs::create_dir(&path).unwrap();
            match unpack(&tar(entries)[..], &path, &paths, &ImageOwnerMapping::One) {
                Err(EntryError::Failed(_, error)) if error.raw_os_error() == Some(95) => {
                    return None;
                }
                other => drop(other.unwrap()),
            }
            paths.insert(0, path);
        }
        Some((folder, MergedLayerTree::new(paths)))
    }

    fn layers() -> Option<(tempfile::TempDir, MergedLayerTree)> {
        merged(&[
            &[
                file("etc/passwd", b"old"),
                file("etc/gone", b"x"),
                file("var/old", b"x"),
                file("d/x", b"1"),
            ],
            &[
                file("etc/passwd", b"new"),
                file("etc/.wh.gone", b""),
                file("var/.wh..wh..opq", b""),
                file("var/new", b"y"),
                other("var/same", EntryType::Link, "var/new"),
                file("d", b"a file now"),
            ],
        ])
    }

    #[test]
    fn a_file_is_that_of_the_topmost_layer_that_has_it_or_hides_it() {
        let Some((_folder, merged)) = layers() else { return };
        let read = |path: &str| merged.read(Path::new(path));
        assert_eq!(read("etc/passwd"), Some(b"new".to_vec()));
        assert_eq!(read("etc/gone"), None);
        assert_eq!(read("var/old"), None);
        assert_eq!(read("var/new"), Some(b"y".to_vec()));
        assert_eq!(read("etc"), None, "not a file");
    }

    #[test]
    fn a_copy_has_what_overlayfs_would_show() {
        let Some((folder, merged)) = layers() else { return };
        let target = folder.path().join("copy");
        fs::create_dir(&target).unwrap();
        assert!(merged.copy(Path::new(""), &target).unwrap());
        let mut names: Vec<String> = fs::read_dir(target.join("var"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["new", "same"]);
        assert!(!target.join("etc/gone").exists());
        assert_eq!(fs::read_to_string(target.join("etc/passwd")).unwrap(), "new");
        assert_eq!(fs::read_to_string(target.join("d")).unwrap(), "a file now");
        let number = |name: &str| fs::metadata(target.join(name)).unwrap().ino();
        assert_eq!(number("var/new"), number("var/same"));
    }

    #[test]
    fn a_folder_can_be_copied_by_itself() {
        let Some((folder, merged)) = layers() else { return };
        let target = folder.path().join("copy");
        fs::create_dir(&target).unwrap();
        assert!(merged.copy(Path::new("var"), &target).unwrap());
        assert_eq!(fs::read_dir(&target).unwrap().count(), 2);
        assert!(!merged.copy(Path::new("nowhere"), &target).unwrap());
    }
}
