//! Sums of words (RFC 1071), and checksums updated in place (RFC 1624).

use core::net::IpAddr;

/// Long inputs are folded after each block, so that the accumulator cannot overflow.
const BLOCK: usize = 1 << 16;

/// The sum of some bytes; an odd last byte counts as the high half of a word.
#[must_use]
pub fn sum(bytes: &[u8]) -> u16 {
    let mut total = 0u64;
    for block in bytes.chunks(BLOCK) {
        total = u64::from(fold(total)) + block_sum(block);
    }
    // One's-complement sums do not care about byte order until they are read (RFC 1071, 2.B).
    u16::from_be(fold(total))
}

/// The checksum of some bytes.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u16 {
    !sum(bytes)
}

/// The sum of two sums.
#[must_use]
pub fn add(left: u16, right: u16) -> u16 {
    let (sum, carry) = left.overflowing_add(right);
    sum + u16::from(carry)
}

/// The checksum after one word under it changed from `old` to `new` (RFC 1624, equation 3).
#[must_use]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !add(add(!checksum, !old), new)
}

/// The sum of a TCP or UDP pseudo-header (RFC 9293, 3.1; RFC 8200, 8.1): `length` is that of the
/// transport header and payload. Addresses of two families give the sum of what is there.
#[must_use]
pub(crate) fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, length: u32) -> u16 {
    let [a, b, c, d] = length.to_be_bytes();
    let rest = sum(&[a, b, c, d, 0, protocol]);
    add(add(address_sum(source), address_sum(destination)), rest)
}

fn address_sum(address: IpAddr) -> u16 {
    match address {
        IpAddr::V4(v4) => sum(&v4.octets()),
        IpAddr::V6(v6) => sum(&v6.octets()),
    }
}

/// Adds up eight bytes at a time, as two halves, in the machine's byte order.
fn block_sum(block: &[u8]) -> u64 {
    let (words, tail) = block.as_chunks::<8>();
    let halves = |word: u64| (word & 0xffff_ffff) + (word >> 32);
    let mut last = [0u8; 8];
    for (to, from) in last.iter_mut().zip(tail) {
        *to = *from;
    }
    let total: u64 = words.iter().map(|word| halves(u64::from_ne_bytes(*word))).sum();
    total + halves(u64::from_ne_bytes(last))
}

#[expect(clippy::cast_possible_truncation, reason = "the loop leaves 16 bits")]
fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow_sum(bytes: &[u8]) -> u16 {
        bytes.chunks(2).fold(0, |total, pair| {
            add(total, u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
        })
    }

    #[test]
    fn the_example_of_rfc_1071_has_its_sum() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(sum(&bytes), 0xddf2);
        assert_eq!(checksum(&bytes), 0x220d);
    }

    #[test]
    fn every_length_gives_the_sum_of_its_words() {
        let bytes: Vec<u8> = (0..200_003u32).map(|i| (i * 31 % 251).to_le_bytes()[0]).collect();
        for length in (0..64).chain([65535, 65536, 65537, 131_073, 200_003]) {
            assert_eq!(sum(&bytes[..length]), slow_sum(&bytes[..length]), "{length} bytes");
        }
        assert_eq!(sum(&[0xff; 65536]), 0xffff);
    }

    #[test]
    fn the_update_of_rfc_1624_does_not_make_minus_zero() {
        // Section 4: checksum 0xdd2f, 0x5555 becomes 0x3285; the right answer is 0, not 0xffff.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn the_pseudo_header_sum_is_that_of_its_bytes() {
        let v4 = pseudo_header([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 6, 20);
        assert_eq!(v4, 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 6 + 20);
        let one: IpAddr = "fd00::1".parse().unwrap();
        let two: IpAddr = "fd00::2".parse().unwrap();
        assert_eq!(pseudo_header(one, two, 17, 0x1_0003), 0xfa01 + 1 + 2 + 17 + 1 + 3);
    }
}
