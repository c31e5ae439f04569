//! The program's memory, read as the kernel reads the arguments of calls: what is not there is not
//! read, and the program goes on. Source: process_vm_readv(2).

use core::ffi::c_void;

use crate::c::{self, IoVec, Messages, SocketMessageHeader};
use crate::digest::PayloadDigest;

/// The digest of a run of bytes.
pub fn digest_of(base: *const c_void, length: usize) -> Option<u64> {
    let mut digest = PayloadDigest::new();
    add(&mut digest, base as usize, length)?;
    Some(digest.finish())
}

/// The digest of buffers, one after the other.
pub fn digest_of_parts(parts: *const IoVec, count: usize) -> Option<u64> {
    if count > PARTS_MAX {
        return None;
    }
    let mut digest = PayloadDigest::new();
    for at in 0..count {
        let part: IoVec = read(parts.wrapping_add(at))?;
        add(&mut digest, part.base as usize, part.length)?;
    }
    Some(digest.finish())
}

/// The digest of a message's buffers.
pub fn digest_of_message(message: *const SocketMessageHeader) -> Option<u64> {
    let message: SocketMessageHeader = read(message)?;
    digest_of_parts(message.parts, message.parts_count)
}

/// The same of one of several.
pub fn digest_of_one(messages: *const Messages, at: usize) -> Option<u64> {
    let one: Messages = read(messages.wrapping_add(at))?;
    digest_of_parts(one.message.parts, one.message.parts_count)
}

/// A value of which every bit pattern is one.
fn read<T: ZeroableStruct>(from: *const T) -> Option<T> {
    let mut value = T::NOTHING;
    let length = size_of::<T>();
    // SAFETY: the bytes of the value, all of which may be anything.
    let into = unsafe { core::slice::from_raw_parts_mut((&raw mut value).cast::<u8>(), length) };
    copy(from as usize, into).then_some(value)
}

fn add(digest: &mut PayloadDigest, mut from: usize, mut length: usize) -> Option<()> {
    // More cannot be a datagram, nor a train of such.
    if length > DATAGRAM_MAX {
        return None;
    }
    let mut piece = [0; PIECE_BYTES];
    while length > 0 {
        let some = length.min(PIECE_BYTES);
        let into = &mut piece[..some];
        if !copy(from, into) {
            return None;
        }
        digest.add(into);
        from = from.wrapping_add(some);
        length -= some;
    }
    Some(())
}

/// Copies what is at an address, if all of it may be read.
fn copy(from: usize, into: &mut [u8]) -> bool {
    into.is_empty() || c::read_memory(crate::process::number(), from, into)
}

/// Values of C that hold numbers and addresses only.
trait ZeroableStruct: Copy {
    const NOTHING: Self;
}

impl ZeroableStruct for IoVec {
    const NOTHING: IoVec = IoVec { base: core::ptr::null_mut(), length: 0 };
}

impl ZeroableStruct for SocketMessageHeader {
    const NOTHING: SocketMessageHeader = SocketMessageHeader {
        name: core::ptr::null_mut(),
        name_length: 0,
        parts: core::ptr::null_mut(),
        parts_count: 0,
        control: core::ptr::null_mut(),
        control_length: 0,
        flags: 0,
    };
}

impl ZeroableStruct for Messages {
    const NOTHING: Messages = Messages { message: SocketMessageHeader::NOTHING, length: 0 };
}

/// `UIO_MAXIOV`.
const PARTS_MAX: usize = 1024;
const DATAGRAM_MAX: usize = 1 << 16;
/// On the stack of a thread that may have little.
const PIECE_BYTES: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    fn part(bytes: &[u8]) -> IoVec {
        IoVec { base: bytes.as_ptr().cast_mut().cast(), length: bytes.len() }
    }

    #[test]
    fn parts_of_a_message_have_the_digest_of_its_payload() {
        let bytes: Vec<u8> = (0..5000_u32).map(|at| (at % 251) as u8).collect();
        let whole = digest_of(bytes.as_ptr().cast(), bytes.len());
        let mut digest = PayloadDigest::new();
        digest.add(&bytes);
        assert_eq!(whole, Some(digest.finish()));
        let mut parts = [part(&bytes[..7]), part(&[]), part(&bytes[7..])];
        assert_eq!(digest_of_parts(parts.as_ptr(), 3), whole);
        let message = SocketMessageHeader {
            parts: parts.as_mut_ptr(),
            parts_count: 3,
            ..SocketMessageHeader::NOTHING
        };
        assert_eq!(digest_of_message(&raw const message), whole);
        let messages = [Messages { message, length: 0 }; 2];
        assert_eq!(digest_of_one(messages.as_ptr(), 1), whole);
    }

    #[test]
    fn memory_that_is_not_there_has_no_digest_and_ends_nothing() {
        assert_eq!(digest_of(16 as *const c_void, 100), None);
        assert_eq!(digest_of_parts(core::ptr::null(), 1), None);
        assert_eq!(digest_of_message(core::ptr::null()), None);
        let astray = [IoVec { base: 16 as *mut c_void, length: 1 }];
        assert_eq!(digest_of_parts(astray.as_ptr(), 1), None);
    }
}
