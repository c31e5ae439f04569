//! The messages of FUSE, as far as files that hold one value each need them. Source: the kernel's
//! include/uapi/linux/fuse.h; numbers are in the machine's order.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;

/// The number of the file system's top.
pub(super) const TOP: u64 = 1;

/// At least as long as each message: text that is written comes in one, up to `WRITE_BYTES_MAX`.
pub(super) const MESSAGE_BYTES_MAX: usize = 2 * WRITE_BYTES_MAX as usize;

/// What the kernel asks of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FuseRequest<'a> {
    /// The answer has it, too.
    identity: u64,
    /// The number of the file.
    pub(super) node: u64,
    pub(super) operation: FuseOperation<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FuseOperation<'a> {
    Initialize,
    /// The file of this name in a folder.
    Find(&'a OsStr),
    ShowAttributes,
    /// Permissions or owner, or else times and length.
    ChangeAttributes {
        of_rights: bool,
    },
    Open,
    Read(FuseByteRange),
    Write {
        offset: u64,
        text: &'a [u8],
    },
    List(FuseByteRange),
    /// What nothing has to be done for.
    Close,
    ShowFreeSpace,
    /// A file or folder is to be made, removed or renamed.
    ChangeFolder,
    /// No answer is wanted.
    Notice,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FuseByteRange {
    pub(super) offset: u64,
    pub(super) bytes_max: u32,
}

impl FuseRequest<'_> {
    /// `None` if it is shorter than the kernel's are.
    pub(super) fn parse(message: &[u8]) -> Option<FuseRequest<'_>> {
        let body = message.get(HEADER_BYTES..)?;
        let range = || Some(FuseByteRange { offset: long(body, 8)?, bytes_max: word(body, 16)? });
        let operation = match word(message, 4)? {
            1 => FuseOperation::Find(OsStr::from_bytes(body.split(|&byte| byte == 0).next()?)),
            2 | 36 | 38 | 42 => FuseOperation::Notice,
            3 => FuseOperation::ShowAttributes,
            4 => FuseOperation::ChangeAttributes { of_rights: word(body, 0)? & RIGHTS != 0 },
            6 | 8..=13 | 35 | 45 => FuseOperation::ChangeFolder,
            14 | 27 => FuseOperation::Open,
            15 => FuseOperation::Read(range()?),
            16 => {
                let FuseByteRange { offset, bytes_max } = range()?;
                let text = body.get(WRITE_BYTES..)?.get(..bytes_max as usize)?;
                FuseOperation::Write { offset, text }
            }
            17 => FuseOperation::ShowFreeSpace,
            18 | 29 => FuseOperation::Close,
            26 => FuseOperation::Initialize,
            28 => FuseOperation::List(range()?),
            _ => FuseOperation::Other,
        };
        Some(FuseRequest { identity: long(message, 8)?, node: long(message, 16)?, operation })
    }

    /// The message to the kernel.
    pub(super) fn answer(&self, outcome: Result<Vec<u8>, Errno>) -> Vec<u8> {
        let (body, errno) = match outcome {
            Ok(body) => (body, 0),
            Err(errno) => (Vec::new(), errno.raw_os_error()),
        };
        let length = u32::try_from(ANSWER_HEADER_BYTES + body.len()).unwrap_or(u32::MAX);
        let mut message = Vec::from(length.to_ne_bytes());
        message.extend((-errno).to_ne_bytes());
        message.extend(self.identity.to_ne_bytes());
        message.extend(body);
        message
    }
}

/// What the kernel shows of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct FuseAttributes {
    pub(super) node: u64,
    pub(super) bytes: u64,
    pub(super) is_folder: bool,
    pub(super) permissions: u32,
    pub(super) user: u32,
    pub(super) group: u32,
}

impl FuseAttributes {
    fn encode(self) -> Vec<u8> {
        let kind = if self.is_folder { 0o040_000 } else { 0o100_000 };
        // No blocks, and three times of zero seconds and nanoseconds.
        let mut body = longs(&[self.node, self.bytes, 0, 0, 0, 0]);
        let links = 1;
        let block_bytes = 4096;
        let rights = [kind | self.permissions, links, self.user, self.group];
        body.extend(words(&[0, 0, 0]).into_iter().chain(words(&rights)));
        body.extend(words(&[0, block_bytes, 0]));
        body
    }

    /// Answers `ShowAttributes`: they are valid for no time, since all changes by itself.
    pub(super) fn shown(self) -> Vec<u8> {
        [longs(&[0, 0]), self.encode()].concat()
    }

    /// Answers `Find`.
    pub(super) fn found(self) -> Vec<u8> {
        [longs(&[self.node, 0, 0, 0, 0]), self.encode()].concat()
    }
}

/// One name in a folder.
#[derive(Debug)]
pub(super) struct FuseFolderEntry {
    pub(super) node: u64,
    pub(super) is_folder: bool,
    pub(super) name: String,
}

/// Answers `List`: whole entries from the offset on, which counts entries.
pub(super) fn listed(entries: &[FuseFolderEntry], range: FuseByteRange) -> Vec<u8> {
    let mut body = Vec::new();
    let first = usize::try_from(range.offset).unwrap_or(usize::MAX);
    for (entry, next) in entries.iter().zip(1..).skip(first) {
        let mut record = longs(&[entry.node, next]);
        let kind = if entry.is_folder { 4 } else { 8 };
        record.extend(words(&[u32::try_from(entry.name.len()).unwrap_or(u32::MAX), kind]));
        record.extend(entry.name.as_bytes());
        record.resize(record.len().next_multiple_of(8), 0);
        if body.len() + record.len() > range.bytes_max as usize {
            break;
        }
        body.extend(record);
    }
    body
}

/// Answers `Initialize`: version 7.31 of the protocol, which every kernel that we run on has, and none of its options but
/// writes of more than a page.
pub(super) fn initialized() -> Vec<u8> {
    let big_writes = 1 << 5;
    // Version, bytes read ahead, options; numbers of requests in the background by default; bytes of a write.
    let mut body = words(&[7, 31, 0, big_writes, 0, WRITE_BYTES_MAX]);
    body.resize(64, 0);
    body
}

/// Answers `Open`: the kernel keeps nothing of a file, so that each read asks again.
pub(super) fn opened() -> Vec<u8> {
    let direct_io = 1;
    [longs(&[0]), words(&[direct_io, 0])].concat()
}

/// Answers `Write`.
pub(super) fn written(bytes: usize) -> Vec<u8> {
    words(&[u32::try_from(bytes).unwrap_or(u32::MAX), 0])
}

/// Answers `ShowFreeSpace`: there is none, in blocks of 512 bytes, and names have up to 255 bytes.
pub(super) fn free_space() -> Vec<u8> {
    let mut body = longs(&[0; 5]);
    body.extend(words(&[512, 255]));
    body.resize(80, 0);
    body
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn longs(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// `fuse_in_header`, `fuse_out_header` and `fuse_write_in`.
const HEADER_BYTES: usize = 40;
const ANSWER_HEADER_BYTES: usize = 16;
const WRITE_BYTES: usize = 40;
/// `FATTR_MODE`, `FATTR_UID` and `FATTR_GID`.
const RIGHTS: u32 = 0b111;
const WRITE_BYTES_MAX: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(operation: u32, body: &[u8]) -> Vec<u8> {
        let mut message = words(&[u32::try_from(HEADER_BYTES + body.len()).unwrap(), operation]);
        message.extend(longs(&[77, 5, 0, 0]));
        message.extend(body);
        message
    }

    #[test]
    fn requests_are_read_as_the_kernel_writes_them() {
        let find = message(1, b"cpu.min\0");
        let found = FuseRequest::parse(&find).unwrap();
        let operation = FuseOperation::Find(OsStr::new("cpu.min"));
        assert_eq!(found, FuseRequest { identity: 77, node: 5, operation });
        let body = [longs(&[0, 3]), words(&[2, 0]), longs(&[0]), words(&[0, 0]), b"ab".to_vec()];
        let write = message(16, &body.concat());
        let operation = FuseRequest::parse(&write).unwrap().operation;
        assert_eq!(operation, FuseOperation::Write { offset: 3, text: b"ab" });
        assert_eq!(FuseRequest::parse(&write[..write.len() - 1]), None, "it is cut");
        assert_eq!(FuseRequest::parse(&[0; 39]), None);
    }

    #[test]
    fn answers_have_the_lengths_that_the_kernel_asks_for() {
        let attributes = FuseAttributes {
            node: 2,
            bytes: 3,
            is_folder: false,
            permissions: 0o644,
            user: 1,
            group: 1,
        };
        assert_eq!((attributes.shown().len(), attributes.found().len()), (104, 128));
        assert_eq!((initialized().len(), opened().len(), free_space().len()), (64, 16, 80));
        let find = message(1, b"x\0");
        let refused = FuseRequest::parse(&find).unwrap().answer(Err(Errno::NOENT));
        assert_eq!(refused, [words(&[16, 2_u32.wrapping_neg()]), longs(&[77])].concat());
    }

    #[test]
    fn a_list_has_whole_entries_and_goes_on_where_it_ended() {
        let entry =
            |name: &str| FuseFolderEntry { node: 9, is_folder: true, name: name.to_owned() };
        let entries = [entry("a"), entry("longer.name")];
        let list = |offset, bytes_max| listed(&entries, FuseByteRange { offset, bytes_max }).len();
        assert_eq!((list(0, 100), list(0, 71), list(1, 100), list(2, 100)), (72, 32, 40, 0));
    }
}
