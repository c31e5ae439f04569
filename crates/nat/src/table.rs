//! Numbers of entries by their hashes: linear probing, deletion shifts back what follows (Knuth,
//! volume 3, 6.4, algorithm R), at most half full. Where entries lie depends on the order in which
//! they came, and nothing reads them in that order.

use alloc::vec;
use alloc::vec::Vec;

/// Which entries have a hash.
#[derive(Debug, Default)]
pub(crate) struct HashIndex {
    /// A power of two, or none: the upper half of the hash, and the number and one more; 0: free.
    places: Vec<u64>,
    len: usize,
}

impl HashIndex {
    /// The number of the entry that `is` one looked for, of those of a hash.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.places.is_empty() {
            return None;
        }
        let tag = hash & TAG;
        let mut at = self.home(hash);
        loop {
            let place = self.places[at];
            if place & TAG == tag && place != 0 {
                let number = number(place);
                if is(number) {
                    return Some(number);
                }
            }
            if place == 0 {
                return None;
            }
            at = self.next(at);
        }
    }

    /// Adds an entry.
    pub(crate) fn insert(&mut self, hash: u64, number: u32) {
        if (self.len + 1) * 2 > self.places.len() {
            self.grow();
        }
        self.len += 1;
        self.put((hash & TAG) | (u64::from(number) + 1));
    }

    /// Takes an entry out.
    pub(crate) fn remove(&mut self, hash: u64, number: u32) {
        let wanted = (hash & TAG) | (u64::from(number) + 1);
        let mut at = self.home(hash);
        while self.places[at] != wanted {
            if self.places[at] == 0 {
                return;
            }
            at = self.next(at);
        }
        self.len -= 1;
        self.places[at] = 0;
        let mut free = at;
        loop {
            at = self.next(at);
            let place = self.places[at];
            if place == 0 {
                return;
            }
            // One whose home lies behind the free place stays.
            let home = self.home(place);
            let mask = self.places.len() - 1;
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(free) & mask {
                self.places[free] = place;
                self.places[at] = 0;
                free = at;
            }
        }
    }

    fn put(&mut self, place: u64) {
        let mut at = self.home(place);
        while self.places[at] != 0 {
            at = self.next(at);
        }
        self.places[at] = place;
    }

    fn grow(&mut self) {
        let len = (self.places.len() * 2).max(LEAST);
        let places = core::mem::replace(&mut self.places, vec![0; len]);
        places.into_iter().filter(|place| *place != 0).for_each(|place| self.put(place));
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        usize::try_from(hash >> 32).unwrap_or(0) & (self.places.len() - 1)
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.places.len() - 1)
    }
}

fn number(place: u64) -> u32 {
    u32::try_from((place & !TAG) - 1).unwrap_or(u32::MAX)
}

const TAG: u64 = 0xffff_ffff_0000_0000;
const LEAST: usize = 16;

/// Entries by number; numbers of those that are gone are given again.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn insert(&mut self, entry: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.entries[number as usize] = Some(entry);
            return number;
        }
        self.entries.push(Some(entry));
        u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        let entry = self.entries.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(entry)
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.entries.get(number as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.entries.get_mut(number as usize)?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.entries).filter_map(|(number, entry)| Some((number, entry.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;
    use windtunnel_model::random::RandomStream;

    #[test]
    fn an_index_finds_what_an_ordered_map_does_whatever_was_removed() {
        let (mut index, mut model) = (HashIndex::default(), BTreeMap::new());
        let draws = RandomStream::named(1, &["test"]);
        for step in 0..20_000u64 {
            let key = draws.at(step) % 700;
            // Few upper halves, so that many probe the same places.
            let hash = (key % 13) << 32;
            let number = u32::try_from(key).unwrap();
            if model.remove(&number).is_some() {
                index.remove(hash, number);
            } else {
                model.insert(number, hash);
                index.insert(hash, number);
            }
            let probe = u32::try_from(draws.at(step ^ 1) % 700).unwrap();
            let found = index.find(u64::from(probe % 13) << 32, |it| it == probe);
            assert_eq!(found.is_some(), model.contains_key(&probe), "step {step}");
        }
        assert_eq!(index.len, model.len());
    }

    #[test]
    fn numbers_are_given_again() {
        let mut slab = Slab::default();
        let [a, b] = ["a", "b"].map(|it| slab.insert(it));
        assert_eq!((slab.remove(a), slab.remove(a), slab.len()), (Some("a"), None, 1));
        assert_eq!((slab.insert("c"), slab.get(a), slab.get(b)), (a, Some(&"c"), Some(&"b")));
    }
}
