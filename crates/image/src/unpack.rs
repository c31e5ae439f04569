//! From a layer to a folder that overlayfs takes as a layer of its own. Source: OCI Image
//! Specification, layer.md; the kernel's Documentation/filesystems/overlayfs.rst ("whiteouts and
//! opaque directories", "User xattr").
//!
//! A layer is written by anyone. Its entries get their place by [`ConfinedRootFolder`], so none is written outside
//! of the folder; names that lead out are refused by themselves. Device nodes are refused, but for
//! those below `dev`, which a node never sees: they are left out. A file that claims to be larger than
//! the disk has room is refused before anything of it is written.

mod attributes;
mod content;
mod place;
mod whiteout;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;
use tar::EntryType;

use crate::entries::{TarEntryHeader, TarEntryReader, UnixTimestamp, is_file};
use crate::ids::ImageOwnerMapping;
use crate::inside::ConfinedRootFolder;
use crate::merged::{MergedLayerTree, PathLookupResult, path_of};
use crate::name::{self, LayerEntryAction};
pub(crate) use attributes::is_taken_over;
use place::{folder_in, make_folder, make_room};
use whiteout::set_opaque;
pub(crate) use whiteout::{is_opaque, is_whiteout_at};

/// What a layer has and its folder has not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeftOut {
    /// Files whose owner is not the one that the image names.
    pub owners: u64,
    /// Extended attributes, of which those of capabilities give programs rights.
    pub attributes: u64,
    /// Device nodes below `/dev`.
    pub devices: u64,
}

/// Why an entry cannot be unpacked.
#[derive(Debug)]
pub(crate) enum EntryError {
    /// The layer as a whole.
    Read(io::Error),
    /// What it is, is not taken.
    Refused(String, String),
    /// It cannot be written.
    Failed(String, io::Error),
}

/// Unpacks the entries of a tar file into a folder, which is shown above the layers `below` (the topmost
/// first). Folders that the file does not name are as these have them, and hard links lead into these.
pub(crate) fn unpack(
    tar: impl Read,
    folder: &Path,
    below: &[PathBuf],
    ids: &ImageOwnerMapping,
) -> Result<LeftOut, EntryError> {
    let failed = |error| failed("/", error);
    let layers = std::iter::once(folder).chain(below.iter().map(PathBuf::as_path));
    let mut unpacker = Unpacker {
        inside: ConfinedRootFolder::open(folder).map_err(failed)?,
        root: folder,
        tree: MergedLayerTree::new(layers.map(Path::to_owned).collect()),
        ids,
        left_out: LeftOut::default(),
        folders: BTreeMap::new(),
        count: 0,
    };
    if let Some(lower) = below.first() {
        unpacker.inherit(lower, &[]).map_err(failed)?;
    }
    let mut entries = TarEntryReader::new(tar);
    while let Some(member) = entries.next().map_err(EntryError::Read)? {
        unpacker.entry(&member, &mut entries)?;
    }
    unpacker.set_times();
    Ok(unpacker.left_out)
}

struct Unpacker<'a> {
    inside: ConfinedRootFolder,
    root: &'a Path,
    /// This layer, and those below it.
    tree: MergedLayerTree,
    ids: &'a ImageOwnerMapping,
    left_out: LeftOut,
    folders: BTreeMap<PathBuf, UnpackedLayerFolder>,
    count: u64,
}

/// A folder of this layer.
struct UnpackedLayerFolder {
    /// When it was changed, which changes with what is put into it.
    modified: UnixTimestamp,
    /// Whether it has an entry, and is not only there because another entry is in it.
    is_entry: bool,
}

impl Unpacker<'_> {
    fn entry<R: Read>(
        &mut self,
        member: &TarEntryHeader,
        data: &mut TarEntryReader<R>,
    ) -> Result<(), EntryError> {
        let shown = shown(&member.name);
        let refused = |why: &str| EntryError::Refused(shown.clone(), why.to_owned());
        self.count += 1;
        if self.count > ENTRIES_MAX {
            return Err(refused("is one of more than ten million entries"));
        }
        let parts = name::parts(&member.name).map_err(refused)?;
        let write = |error| failed(&shown, error);
        match name::asked(parts).map_err(refused)? {
            LayerEntryAction::Nothing => Ok(()),
            LayerEntryAction::Opaque(folder) => {
                let (names, folder) = self.folder(&folder).map_err(write)?;
                self.hide_below(&names, &folder).map_err(write)
            }
            LayerEntryAction::Whiteout(parts) => self.white_out(&parts).map_err(write),
            LayerEntryAction::Entry(parts) if parts.is_empty() => {
                if !member.kind.is_dir() {
                    return Err(refused("is the root, and not a folder"));
                }
                let root = self.inside.find("").map_err(write)?;
                self.put(&[], member.modified, true);
                self.finish(&root, OsStr::new("."), member).map_err(write)
            }
            LayerEntryAction::Entry(parts) => self.place(member, data, parts, &shown),
        }
    }

    fn place<R: Read>(
        &mut self,
        member: &TarEntryHeader,
        data: &mut TarEntryReader<R>,
        mut parts: Vec<OsString>,
        shown: &str,
    ) -> Result<(), EntryError> {
        let refused = |why: String| EntryError::Refused(shown.to_owned(), why);
        let write = |error| failed(shown, error);
        let kind = member.kind;
        if matches!(kind, EntryType::Char | EntryType::Block) {
            if parts[0] == "dev" {
                self.left_out.devices += 1;
                return Ok(());
            }
            return Err(refused("is a device node, which no node gets".to_owned()));
        }
        let Some(name) = parts.pop() else { return Ok(()) };
        let (mut names, above) = self.folder(&parts).map_err(write)?;
        let was_hidden = make_room(&above, &name, kind.is_dir()).map_err(write)?;
        match kind {
            EntryType::Directory => {
                make_folder(&above, &name, was_hidden).map_err(write)?;
                names.push(name.clone());
                self.put(&names, member.modified, true);
            }
            EntryType::Symlink => {
                if member.link.is_empty() || member.link.contains(&0) {
                    return Err(refused("is a link to nothing".to_owned()));
                }
                let made = rustix::fs::symlinkat(&member.link[..], &above, &name);
                made.map_err(|error| write(error.into()))?;
            }
            EntryType::Link => return self.hard_link(member, &above, &name, shown),
            EntryType::Fifo => {
                let mode = Mode::from_raw_mode(0o600);
                rustix::fs::mknodat(&above, &name, FileType::Fifo, mode, 0)
                    .map_err(|error| write(error.into()))?;
            }
            kind if is_file(kind) => {
                self.check_room(member.extents.iter().map(|it| it.length).sum())
                    .map_err(refused)?;
                content::write(member, data, &above, &name).map_err(|error| match error {
                    content::Error::Read(error) => EntryError::Read(error),
                    content::Error::Write(error) => failed(shown, error),
                })?;
            }
            other => {
                return Err(refused(format!("is of an unknown kind ({:#x})", other.as_byte())));
            }
        }
        self.finish(&above, &name, member).map_err(write)
    }

    /// The folder at the path, and its path without links. What of it this layer does not have yet is
    /// made as the layers below have it; what none has, as root's, open to all.
    fn folder(&mut self, parts: &[OsString]) -> io::Result<(Vec<OsString>, OwnedFd)> {
        if let Ok(own) = self.inside.folder_without_links(&parts.join(OsStr::new("/"))) {
            return Ok((parts.to_vec(), own));
        }
        let walked = self.tree.walk(path_of(parts), true)?;
        if matches!(walked.found, PathLookupResult::Other(..)) {
            return Err(Errno::NOTDIR.into());
        }
        let mut folder = self.inside.find("")?;
        for (depth, name) in (1..).zip(&walked.names) {
            let names = &walked.names[..depth];
            let layer = walked.folders.get(depth).and_then(|layers| layers.first());
            folder = match layer {
                Some(0) => folder_in(&folder, name)?,
                Some(layer) => {
                    let made = make_folder(&folder, name, false)?;
                    self.inherit(&self.tree.place(*layer, names), names)?;
                    made
                }
                // A whiteout of this layer hides what was there.
                None => {
                    let was_hidden = make_room(&folder, name, true)?;
                    let made = make_folder(&folder, name, was_hidden)?;
                    let mode = Mode::from_raw_mode(0o755);
                    rustix::fs::chmodat(&folder, name, mode, AtFlags::empty())?;
                    made
                }
            };
        }
        Ok((walked.names, folder))
    }

    fn put(&mut self, folder: &[OsString], modified: UnixTimestamp, is_entry: bool) {
        self.folders.insert(path_of(folder), UnpackedLayerFolder { modified, is_entry });
    }

    /// Gives a folder of this layer the attributes of one below it.
    fn inherit(&mut self, from: &Path, names: &[OsString]) -> io::Result<()> {
        let about = fs::symlink_metadata(from)?;
        crate::copied::attributes(from, &about, &self.root.join(path_of(names)))?;
        self.put(names, attributes::modified(&about), false);
        Ok(())
    }

    /// The owner, the mode, the time and the extended attributes.
    fn finish(&mut self, above: &OwnedFd, name: &OsStr, of: &TarEntryHeader) -> io::Result<()> {
        let left_out = attributes::set(above, name, of, self.ids)?;
        self.left_out.owners += left_out.owners;
        self.left_out.attributes += left_out.attributes;
        Ok(())
    }

    fn hard_link(
        &mut self,
        member: &TarEntryHeader,
        above: &OwnedFd,
        name: &OsStr,
        shown: &str,
    ) -> Result<(), EntryError> {
        let refused = |why: String| EntryError::Refused(shown.to_owned(), why);
        // Some builders write the path from the root.
        let below = member.link.strip_prefix(b"/").unwrap_or(&member.link);
        let target = self::shown(&member.link);
        let parts = name::parts(below)
            .map_err(|why| refused(format!("is a link to `{target}`, which {why}")))?;
        let lacking = || {
            let why = "which neither this layer nor one below it has";
            refused(format!("is a link to `{target}`, {why}"))
        };
        let walked = self.tree.walk(path_of(&parts), false).map_err(|_| lacking())?;
        let (last, folder) = walked.names.split_last().ok_or_else(lacking)?;
        let failed = |error| failed(shown, error);
        match &walked.found {
            PathLookupResult::Nothing => return Err(lacking()),
            PathLookupResult::Folder => {
                return Err(refused(format!("is a link to `{target}`, a folder")));
            }
            PathLookupResult::Other(0, _) => {}
            // As a program that links a file of a lower layer gets it: a copy in this one.
            PathLookupResult::Other(layer, about) => {
                use std::os::unix::fs::MetadataExt;
                self.check_room(about.blocks().saturating_mul(512)).map_err(refused)?;
                self.folder(folder).map_err(failed)?;
                let to = self.tree.place(0, &walked.names);
                crate::copied::entry(&self.tree.place(*layer, &walked.names), about, &to)
                    .map_err(failed)?;
            }
        }
        let folder = self.inside.find(path_of(folder)).map_err(failed)?;
        let linked = rustix::fs::linkat(&folder, last, above, name, AtFlags::empty());
        linked.map_err(|error| failed(error.into()))
    }

    /// Hides what lower layers have: a character device 0/0, which needs no rights.
    fn white_out(&mut self, parts: &[OsString]) -> io::Result<()> {
        let Some((name, above)) = parts.split_last() else { return Ok(()) };
        let walked = self.tree.walk(path_of(parts), false);
        if walked.is_ok_and(|walked| matches!(walked.found, PathLookupResult::Nothing)) {
            return Ok(());
        }
        let (mut names, above) = self.folder(above)?;
        match rustix::fs::statat(&above, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
            // This layer's own, which is above.
            Ok(about) if FileType::from_raw_mode(about.st_mode).is_dir() => {
                names.push(name.clone());
                self.hide_below(&names, &folder_in(&above, name)?)?;
                if !self.remove_implied(&path_of(&names))? {
                    return Ok(());
                }
            }
            Ok(_) => return Ok(()),
        }
        let mode = Mode::empty();
        Ok(rustix::fs::mknodat(&above, name, FileType::CharacterDevice, mode, 0)?)
    }

    /// Lets nothing of what lower layers have in a folder of this one show. What only led to whiteouts in
    /// it goes, because overlayfs lists whiteouts of a folder that no lower layer has.
    fn hide_below(&self, names: &[OsString], folder: &OwnedFd) -> io::Result<()> {
        set_opaque(folder)?;
        self.clear_whiteouts(&path_of(names))
    }

    fn clear_whiteouts(&self, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(self.root.join(folder))? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                let path = if folder == Path::new(".") {
                    entry.file_name().into()
                } else {
                    folder.join(entry.file_name())
                };
                self.clear_whiteouts(&path)?;
                self.remove_implied(&path)?;
            } else if is_whiteout_at(&entry.path()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Removes a folder that has no entry and nothing in it. Whether it has.
    fn remove_implied(&self, folder: &Path) -> io::Result<bool> {
        if self.folders.get(folder).is_some_and(|about| about.is_entry) {
            return Ok(false);
        }
        match fs::remove_dir(self.root.join(folder)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether the disk has room for so many bytes.
    fn check_room(&self, bytes: u64) -> Result<(), String> {
        let Ok(about) = rustix::fs::statvfs(self.root) else { return Ok(()) };
        let free = about.f_bavail.saturating_mul(about.f_frsize);
        if bytes <= free {
            return Ok(());
        }
        Err(format!("claims to have {bytes} bytes, and the cache's disk has room for {free}"))
    }

    fn set_times(&self) {
        for (path, about) in &self.folders {
            if let Ok(folder) = self.inside.find(path) {
                // It may have been replaced since.
                let _ = attributes::set_time(&folder, OsStr::new("."), about.modified);
            }
        }
    }
}

/// A path to what is open, for calls that take no descriptor of this kind.
pub(crate) fn place_of(open: impl AsFd) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", open.as_fd().as_raw_fd()))
}

fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().take(200).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn failed(entry: &str, error: io::Error) -> EntryError {
    EntryError::Failed(entry.to_owned(), error)
}

const ENTRIES_MAX: u64 = 10_000_000;

#[cfg(test)]
mod tests;
