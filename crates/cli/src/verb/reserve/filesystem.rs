//! The files as the kernel asks for them, by FUSE.

use std::ffi::OsStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, TimeOrNow, WriteFlags,
};
use windtunnel_control::{ControlRequest, ReservationStatus};

use super::files::{self, ReservationFileEntry};
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

    fn parts(&self) -> Result<Vec<ReservationStatus>, Errno> {
        let asked =
            self.live.connect().and_then(|mut run| Ok(run.ask(&ControlRequest::reservations())?));
        // The run has ended.
        asked.map_err(|_| Errno::EIO)
    }

    fn entry(&self, path: &str) -> Result<ReservationFileEntry, Errno> {
        let refused = self.state().refused.clone();
        files::entry(&self.parts()?, path, &refused).ok_or(Errno::ENOENT)
    }

    fn path(&self, number: INodeNo) -> Result<String, Errno> {
        let at = usize::try_from(u64::from(number) - 1).unwrap_or(usize::MAX);
        self.state().paths.get(at).cloned().ok_or(Errno::ENOENT)
    }

    fn number(&self, path: &str) -> INodeNo {
        let paths = &mut self.state().paths;
        let at = paths.iter().position(|other| other == path).unwrap_or_else(|| {
            paths.push(path.to_owned());
            paths.len() - 1
        });
        INodeNo(at as u64 + 1)
    }

    fn attributes(&self, path: &str) -> Result<FileAttr, Errno> {
        let entry = self.entry(path)?;
        let (kind, perm, size) = match &entry {
            ReservationFileEntry::Folder => (FileType::Directory, 0o555, 0),
            ReservationFileEntry::File { text, writable: false } => {
                (FileType::RegularFile, 0o444, text.len())
            }
            ReservationFileEntry::File { text, writable: true } => {
                (FileType::RegularFile, 0o644, text.len())
            }
        };
        let (uid, gid) = self.owner;
        Ok(FileAttr {
            ino: self.number(path),
            size: size as u64,
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid,
            gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn text(&self, number: INodeNo) -> Result<String, Errno> {
        match self.entry(&self.path(number)?)? {
            ReservationFileEntry::File { text, .. } => Ok(text),
            ReservationFileEntry::Folder => Err(Errno::EISDIR),
        }
    }

    fn list(&self, number: INodeNo) -> Result<Vec<(INodeNo, FileType, String)>, Errno> {
        let path = self.path(number)?;
        let names = files::names(&self.parts()?, &path);
        let entry = |(name, is_folder): (String, bool)| {
            let kind = if is_folder { FileType::Directory } else { FileType::RegularFile };
            (self.number(&join(&path, &name)), kind, name)
        };
        let own = [".", ".."].map(|name| (number, FileType::Directory, name.to_owned()));
        Ok(own.into_iter().chain(names.into_iter().map(entry)).collect())
    }

    /// A text is written: what does not fit is busy with something else, and what cannot be read is
    /// invalid.
    fn set(&self, number: INodeNo, data: &[u8]) -> Result<(), Errno> {
        let path = self.path(number)?;
        if !matches!(self.entry(&path)?, ReservationFileEntry::File { writable: true, .. }) {
            return Err(Errno::EACCES);
        }
        let text = std::str::from_utf8(data).map_err(|_| Errno::EINVAL)?;
        let request =
            files::request(&path, text).map_err(|why| self.refuse(&why, Errno::EINVAL))?;
        let done = self.live.order(&request).map_err(|why| self.refuse(&why, Errno::EBUSY));
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

/// What changes by itself is looked at each time.
impl Filesystem for ReservationFilesystem {
    fn lookup(&self, _: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.path(parent).and_then(|folder| {
            self.attributes(&join(&folder, name.to_str().ok_or(Errno::ENOENT)?))
        });
        match found {
            Ok(attributes) => reply.entry(&AT_ONCE, &attributes, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn getattr(
        &self,
        _: &fuser::Request,
        number: INodeNo,
        _: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        match self.path(number).and_then(|path| self.attributes(&path)) {
            Ok(attributes) => reply.attr(&AT_ONCE, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    /// A file that is opened to be written is cut first, which changes nothing here.
    fn setattr(
        &self,
        request: &fuser::Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<std::time::SystemTime>,
        handle: Option<FileHandle>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if mode.or(uid).or(gid).is_some() {
            return reply.error(Errno::EPERM);
        }
        self.getattr(request, number, handle, reply);
    }

    /// The kernel keeps nothing of a file, so that each read is a look at the run.
    fn open(&self, _: &fuser::Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &fuser::Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.text(number) {
            Ok(text) => {
                let rest = text.as_bytes().get(usize::try_from(offset).unwrap_or(usize::MAX)..);
                let rest = rest.unwrap_or_default();
                reply.data(&rest[..rest.len().min(size as usize)]);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &fuser::Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // A value is written by one call.
        let done = if offset > 0 { Err(Errno::EINVAL) } else { self.set(number, data) };
        match done {
            Ok(()) => reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX)),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(
        &self,
        _: &fuser::Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let names = match self.list(number) {
            Ok(names) => names,
            Err(errno) => return reply.error(errno),
        };
        let first = usize::try_from(offset).unwrap_or(usize::MAX);
        for (at, (number, kind, name)) in names.into_iter().enumerate().skip(first) {
            if reply.add(number, at as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    // What there is follows from the run: nothing is made, removed or renamed.

    fn mknod(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: &OsStr,
        _: u32,
        _: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EPERM);
    }

    fn mkdir(&self, _: &fuser::Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn unlink(&self, _: &fuser::Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rmdir(&self, _: &fuser::Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rename(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: &OsStr,
        _: INodeNo,
        _: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EPERM);
    }

    fn create(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        reply.error(Errno::EPERM);
    }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// How long the kernel keeps an answer.
const AT_ONCE: Duration = Duration::ZERO;
