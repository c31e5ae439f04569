//! The content of a file, with its holes.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};

use crate::entries::{TarEntryHeader, TarEntryReader};

/// An error of the layer is another one than an error of the disk.
pub(super) enum Error {
    Read(io::Error),
    Write(io::Error),
}

/// Makes a file of the data of an entry.
pub(super) fn write<R: Read>(
    member: &TarEntryHeader,
    data: &mut TarEntryReader<R>,
    above: &OwnedFd,
    name: &OsStr,
) -> Result<(), Error> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(above, name, flags, Mode::from_raw_mode(0o600));
    let mut file = File::from(file.map_err(|error| Error::Write(error.into()))?);
    let mut buffer = vec![0; COPY_BYTES];
    let mut end = 0;
    // The last part is often empty, and says how long the file is.
    for extent in member.extents.iter().filter(|extent| extent.length > 0) {
        if extent.at != end {
            file.seek(SeekFrom::Start(extent.at)).map_err(Error::Write)?;
        }
        let mut rest = extent.length;
        while rest > 0 {
            let most = usize::try_from(rest).unwrap_or(usize::MAX).min(buffer.len());
            let read = match data.read(&mut buffer[..most]) {
                Ok(0) => return Err(Error::Read(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::Read(error)),
            };
            file.write_all(&buffer[..read]).map_err(Error::Write)?;
            rest -= read as u64;
        }
        end = extent.at + extent.length;
    }
    if end < member.size {
        file.set_len(member.size).map_err(Error::Write)?;
    }
    Ok(())
}

const COPY_BYTES: usize = 256 << 10;
