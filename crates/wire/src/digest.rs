//! A digest of a datagram's payload, by which what its sender has declared and what is on the
//! network are found to be the same one. It is no defence against a sender that looks for collisions.
//!
//! The preload library compiles this file into itself: it uses `core` only.

/// The digest of bytes that come in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadDigest {
    state: u64,
    /// Bytes that do not fill a word yet, low first, and how many.
    pending: u64,
    filled: u32,
    length: u64,
}

impl PayloadDigest {
    /// That of no bytes yet.
    #[must_use]
    pub const fn new() -> PayloadDigest {
        PayloadDigest { state: SEED, pending: 0, filled: 0, length: 0 }
    }

    /// Adds bytes; where pieces begin and end does not matter.
    pub fn add(&mut self, bytes: &[u8]) {
        self.length = self.length.wrapping_add(bytes.len() as u64);
        let missing = ((8 - self.filled) % 8) as usize;
        let (first, rest) = bytes.split_at(missing.min(bytes.len()));
        first.iter().for_each(|byte| self.add_byte(*byte));
        let mut words = rest.chunks_exact(8);
        for word in &mut words {
            let mut eight = [0; 8];
            eight.copy_from_slice(word);
            self.state = mixed(self.state, u64::from_le_bytes(eight));
        }
        words.remainder().iter().for_each(|byte| self.add_byte(*byte));
    }

    /// The digest.
    #[must_use]
    pub const fn finish(self) -> u64 {
        mixed(mixed(self.state, self.pending), self.length)
    }

    fn add_byte(&mut self, byte: u8) {
        self.pending |= (byte as u64) << (self.filled * 8);
        self.filled += 1;
        if self.filled == 8 {
            self.state = mixed(self.state, self.pending);
            (self.pending, self.filled) = (0, 0);
        }
    }
}

impl Default for PayloadDigest {
    fn default() -> Self {
        PayloadDigest::new()
    }
}

/// A step: multiplication spreads low bits upwards, the shift high ones downwards.
#[inline]
const fn mixed(state: u64, word: u64) -> u64 {
    let product = (state ^ word).wrapping_mul(FACTOR);
    product ^ (product >> 32)
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTOR: u64 = 0xbf58_476d_1ce4_e5b9;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> u64 {
        let mut digest = PayloadDigest::new();
        digest.add(bytes);
        digest.finish()
    }

    #[test]
    fn pieces_have_the_digest_of_the_whole() {
        let bytes: Vec<u8> = (0..100).collect();
        for first in 0..bytes.len() {
            for second in first..bytes.len() {
                let mut digest = PayloadDigest::new();
                digest.add(&bytes[..first]);
                digest.add(&bytes[first..second]);
                digest.add(&bytes[second..]);
                assert_eq!(digest.finish(), of(&bytes), "{first}, {second}");
            }
        }
    }

    #[test]
    fn each_bit_and_the_length_count() {
        let mut seen = std::collections::BTreeSet::new();
        for length in 0..40 {
            let bytes = vec![0; length];
            assert!(seen.insert(of(&bytes)), "{length} zeros");
            for bit in 0..length * 8 {
                let mut other = bytes.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                assert!(seen.insert(of(&other)), "bit {bit} of {length} bytes");
            }
        }
    }
}
