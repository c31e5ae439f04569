//! Hashes of what flows are found by.
//!
//! Senders choose their ports and addresses, and a table in which all of them meet in one place would
//! be a list. So the hash has a key, drawn from the seed of the run. What a hash is shows nowhere: a
//! table is never read in the order of its places.

use windtunnel_model::random::RandomStream;

/// The key of a hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashKey([u64; 4]);

impl HashKey {
    /// One of draws that nothing else takes: others count up from 0.
    pub(crate) fn new(draws: RandomStream) -> HashKey {
        HashKey([0, 1, 2, 3].map(|number| draws.at(u64::MAX - number)))
    }

    /// Of two words.
    #[inline]
    pub(crate) fn of_two(&self, [a, b]: [u64; 2]) -> u64 {
        let HashKey([k, l, m, n]) = self;
        // Once more: of words that follow each other one product leaves many in one place.
        fold(fold(a ^ k, b ^ l) ^ m, *n)
    }

    /// Of five words.
    #[inline]
    pub(crate) fn of_five(&self, [a, b, c, d, e]: [u64; 5]) -> u64 {
        let HashKey([k, l, m, n]) = self;
        self.of_two([fold(a ^ k, b ^ l) ^ e, fold(c ^ m, d ^ n)])
    }
}

/// All bits of a product (as wyhash folds it; Wang, Yi, 2019).
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn words_that_follow_each_other_meet_in_few_places() {
        for seed in 0..20 {
            let hash = HashKey::new(RandomStream::named(seed, &["test"]));
            for shift in [0, 16, 32, 48] {
                let mut places: BTreeMap<u64, u32> = BTreeMap::new();
                for word in 0..1u64 << 14 {
                    let hashes = [
                        hash.of_two([7, word << shift]),
                        hash.of_two([word << shift, 7]),
                        hash.of_five([0, word << shift, 0, 7, 9]),
                        hash.of_five([0, 7, 0, 9, word << shift]),
                    ];
                    for (kind, hash) in (0..).zip(hashes) {
                        // The bits that a table of 2^15 places takes.
                        *places.entry(kind << 32 | hash >> 32 & 0x7fff).or_default() += 1;
                    }
                }
                let most = places.values().max();
                assert!(most.is_some_and(|most| *most <= 9), "seed {seed}, {shift}: {most:?}");
            }
        }
    }

    #[test]
    fn another_key_is_another_hash() {
        let [a, b] = [1, 2].map(|seed| HashKey::new(RandomStream::named(seed, &["test"])));
        assert_ne!(a.of_two([1, 2]), b.of_two([1, 2]));
        assert_ne!(a.of_five([1, 2, 3, 4, 5]), b.of_five([1, 2, 3, 4, 5]));
    }
}
