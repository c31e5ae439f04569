//! The files as the kernel asks for them, by FUSE.

use std::ffi::OsStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use windtunnel_control::{ControlRequest, ReservationStatus};

use super::files::{self, ReservationFileEntry};
use super::fuse::{
    self, FuseAttributes, FuseByteRange, FuseFolderEntry, FuseOperation, FuseRequest,
};
use crate::failure::VerbFailure;
use crate::live::LiveRunSelector;

/// The files of one live run.
#[derive(Debug)]
pub(super) struct ReservationFilesystem {
    live: LiveRunSelector,
    owner: (u32, u32),
    state: Mutex<ReservationMountState>,
}

#[derive(Debug, Default)]
struct ReservationMountState {
    /// Paths by their number, from that of the top on: they live as long as the mount.
    paths: Vec<String>,
    /// Why the last text was refused.
    refused: String,
}

impl ReservationFilesystem {
    pub(super) fn of(live: LiveRunSelector, owner: (u32, u32)) -> ReservationFilesystem {
        let state = ReservationMountState { paths: vec![String::new()], refused: String::new() };
        ReservationFilesystem { live, owner, state: Mutex::new(state) }
    }

    /// The message that answers one of the kernel; `None` for one that needs none. What changes by itself is looked at
    /// each time.
    pub(super) fn answer(&self, request: &FuseRequest<'_>) -> Option<Vec<u8>> {
        let node = request.node;
        let outcome = match request.operation {
            FuseOperation::Notice => return None,
            FuseOperation::Initialize => Ok(fuse::initialized()),
            FuseOperation::Find(name) => self.find(node, name),
            // What there is follows from the run: nothing is made, removed, renamed or given away.
            FuseOperation::ChangeAttributes { of_rights: true } | FuseOperation::ChangeFolder => {
                Err(Errno::PERM)
            }
            // A file that is opened to be written is cut first, which changes nothing here.
            FuseOperation::ShowAttributes | FuseOperation::ChangeAttributes { .. } => {
                self.path(node).and_then(|path| Ok(self.attributes(&path)?.shown()))
            }
            FuseOperation::Open => Ok(fuse::opened()),
            FuseOperation::Read(range) => self.read(node, range),
            // A value is written by one call.
            FuseOperation::Write { offset: 1.., .. } => Err(Errno::INVAL),
            FuseOperation::Write { text, .. } => {
                self.set(node, text).map(|()| fuse::written(text.len()))
            }
            FuseOperation::List(range) => {
                self.list(node).map(|entries| fuse::listed(&entries, range))
            }
            FuseOperation::Close => Ok(Vec::new()),
            FuseOperation::ShowFreeSpace => Ok(fuse::free_space()),
            FuseOperation::Other => Err(Errno::NOSYS),
        };
        Some(request.answer(outcome))
    }

    fn find(&self, folder: u64, name: &OsStr) -> Result<Vec<u8>, Errno> {
        let name = name.to_str().ok_or(Errno::NOENT)?;
        Ok(self.attributes(&join(&self.path(folder)?, name))?.found())
    }

    fn read(&self, node: u64, range: FuseByteRange) -> Result<Vec<u8>, Errno> {
        let text = self.text(node)?;
        let rest = text.as_bytes().get(usize::try_from(range.offset).unwrap_or(usize::MAX)..);
        let rest = rest.unwrap_or_default();
        Ok(rest[..rest.len().min(range.bytes_max as usize)].to_vec())
    }

    fn parts(&self) -> Result<Vec<ReservationStatus>, Errno> {
        let asked =
            self.live.connect().and_then(|mut run| Ok(run.ask(&ControlRequest::reservations())?));
        // The run has ended.
        asked.map_err(|_| Errno::IO)
    }

    fn entry(&self, path: &str) -> Result<ReservationFileEntry, Errno> {
        let refused = self.state().refused.clone();
        files::entry(&self.parts()?, path, &refused).ok_or(Errno::NOENT)
    }

    fn path(&self, node: u64) -> Result<String, Errno> {
        let at = node.checked_sub(fuse::TOP).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.state().paths.get(at).cloned()).ok_or(Errno::NOENT)
    }

    fn number(&self, path: &str) -> u64 {
        let paths = &mut self.state().paths;
        let at = paths.iter().position(|other| other == path).unwrap_or_else(|| {
            paths.push(path.to_owned());
            paths.len() - 1
        });
        fuse::TOP + at as u64
    }

    fn attributes(&self, path: &str) -> Result<FuseAttributes, Errno> {
        let entry = self.entry(path)?;
        let (is_folder, permissions, bytes) = match &entry {
            ReservationFileEntry::Folder => (true, 0o555, 0),
            ReservationFileEntry::File { text, writable: false } => (false, 0o444, text.len()),
            ReservationFileEntry::File { text, writable: true } => (false, 0o644, text.len()),
        };
        let (user, group) = self.owner;
        let node = self.number(path);
        Ok(FuseAttributes { node, bytes: bytes as u64, is_folder, permissions, user, group })
    }

    fn text(&self, node: u64) -> Result<String, Errno> {
        match self.entry(&self.path(node)?)? {
            ReservationFileEntry::File { text, .. } => Ok(text),
            ReservationFileEntry::Folder => Err(Errno::ISDIR),
        }
    }

    fn list(&self, node: u64) -> Result<Vec<FuseFolderEntry>, Errno> {
        let path = self.path(node)?;
        let names = files::names(&self.parts()?, &path);
        let entry = |(name, is_folder): (String, bool)| FuseFolderEntry {
            node: self.number(&join(&path, &name)),
            is_folder,
            name,
        };
        let own = [".", ".."].map(|name| FuseFolderEntry {
            node,
            is_folder: true,
            name: name.to_owned(),
        });
        Ok(own.into_iter().chain(names.into_iter().map(entry)).collect())
    }

    /// A text is written: what does not fit is busy with something else, and what cannot be read is
    /// invalid.
    fn set(&self, node: u64, data: &[u8]) -> Result<(), Errno> {
        let path = self.path(node)?;
        if !matches!(self.entry(&path)?, ReservationFileEntry::File { writable: true, .. }) {
            return Err(Errno::ACCESS);
        }
        let text = std::str::from_utf8(data).map_err(|_| Errno::INVAL)?;
        let request = files::request(&path, text).map_err(|why| self.refuse(&why, Errno::INVAL))?;
        let done = self.live.order(&request).map_err(|why| self.refuse(&why, Errno::BUSY));
        done.map(|_| self.state().refused.clear())
    }

    fn refuse(&self, why: &VerbFailure, errno: Errno) -> Errno {
        self.state().refused = format!("{}\n", why.text().trim_end());
        errno
    }

    fn state(&self) -> MutexGuard<'_, ReservationMountState> {
        // Each change is complete in itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
