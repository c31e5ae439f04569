//! Reads and writes that answer `None` instead of panicking when a field lies outside the slice.

/// The byte at `at`.
pub(crate) fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// The big-endian 16-bit field at `at`.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_be_bytes)
}

/// The big-endian 32-bit field at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_be_bytes)
}

/// The `N` bytes at `at`.
#[inline]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}

/// Overwrites the `N` bytes at `at`.
pub(crate) fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) -> Option<()> {
    *bytes.get_mut(at..)?.first_chunk_mut::<N>()? = value;
    Some(())
}

/// Overwrites the big-endian 16-bit field at `at`.
pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    put(bytes, at, value.to_be_bytes())
}

/// Overwrites the big-endian 32-bit field at `at`.
pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) -> Option<()> {
    put(bytes, at, value.to_be_bytes())
}

/// Copies `source` to the start of `out`, if it fits.
pub(crate) fn copy(source: &[u8], out: &mut [u8]) -> Option<usize> {
    out.get_mut(..source.len())?.copy_from_slice(source);
    Some(source.len())
}

/// A length as a 16-bit field; a length that does not fit has no such field.
pub(crate) fn len16(length: usize) -> Option<u16> {
    u16::try_from(length).ok()
}

/// A length as 32 bits; longer slices than 4 GiB do not occur, and count as that.
pub(crate) fn len32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// A 32-bit length as an index; it fits on every machine with 32-bit addresses or more.
pub(crate) fn index(length: u32) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}
