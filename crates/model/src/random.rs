//! Random draws as a pure function: a draw is named by (seed, link name, direction, element,
//! index).
//!
//! Because a draw depends on nothing else, adding a link changes no other link's draws, and the
//! decision about the n-th packet of a link does not depend on when it came or on what other
//! packets did.

use alloc::vec::Vec;

use sha2::{Digest, Sha256};

use crate::id::LinkDirection;

/// A stream of independent uniform 64-bit draws with random access.
///
/// The draws are those of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) started from a key, read at
/// a position instead of in sequence; the key is a SHA-256 of the stream's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomStream {
    key: u64,
}

impl RandomStream {
    /// The stream of one element of one direction of the link called `link`.
    #[must_use]
    pub fn derive(seed: u64, link: &str, direction: LinkDirection, element: &str) -> Self {
        RandomStream::named(seed, &[link, direction.name(), element])
    }

    /// The stream of that name. Names of three parts are those of links ([`RandomStream::derive`]).
    #[must_use]
    pub fn named(seed: u64, name: &[&str]) -> Self {
        let mut hash = Sha256::new();
        hash.update(seed.to_be_bytes());
        for part in name {
            // The length in front distinguishes ("ab","c") from ("a","bc").
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let digest = hash.finalize();
        let mut key = [0; 8];
        key.copy_from_slice(&digest[..8]);
        RandomStream { key: u64::from_be_bytes(key) }
    }

    /// The draw at `index`: uniform over all 64-bit values.
    #[must_use]
    pub const fn at(&self, index: u64) -> u64 {
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.key.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// The draws of a stream, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomSequence {
    stream: RandomStream,
    next: u64,
}

impl RandomSequence {
    /// From the first draw on.
    #[must_use]
    pub const fn new(stream: RandomStream) -> Self {
        RandomSequence { stream, next: 0 }
    }

    /// A whole number from 0 to below `bound`, each as likely as any other (to 2⁻⁶⁴ · `bound`); 0
    /// for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let draw = self.stream.at(self.next);
        self.next += 1;
        let scaled = (u128::from(draw) * u128::from(bound)) >> 64;
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// Takes one item out of `items`, each as likely as any other; the order of the others changes.
    pub fn take<T>(&mut self, items: &mut Vec<T>) -> Option<T> {
        let bound = u64::try_from(items.len()).unwrap_or(u64::MAX);
        let index = usize::try_from(self.below(bound)).unwrap_or(usize::MAX);
        (index < items.len()).then(|| items.swap_remove(index))
    }
}
