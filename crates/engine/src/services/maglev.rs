//! Maglev's consistent hashing: Eisenbud et al., "Maglev: A Fast and Reliable Software Network Load
//! Balancer" (NSDI 2016), section 3.4.
//!
//! Each replica has an order of its own of all places of a table, by two hashes of its name. In
//! turns, each takes the first place of its order that is free, until the table is full: so shares
//! differ by one place at most, and a table without a replica has most other places as before. It
//! depends on nothing but the replicas: all routers have the same. A flow's hash is a place.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::hash::mix;

/// Tables, by the service's number for hashes, the size and the replicas in them.
#[derive(Debug, Default)]
pub(super) struct MaglevTableCache {
    known: BTreeMap<(u64, usize, Vec<u16>), Vec<u16>>,
}

impl MaglevTableCache {
    /// The replica of a flow with this hash, of those that are there, each with its own number for
    /// hashes. `of`: how many the service has in all.
    pub(super) fn find(
        &mut self,
        service: u64,
        of: usize,
        there: &[(u16, u64)],
        hash: u64,
    ) -> Option<u16> {
        if there.is_empty() {
            return None;
        }
        let size = size(of);
        let key = (service, size, there.iter().map(|(number, _)| *number).collect());
        // Which replicas are there changes seldom.
        if self.known.len() >= TABLES_MAX && !self.known.contains_key(&key) {
            self.known.clear();
        }
        let table = self.known.entry(key).or_insert_with(|| {
            let orders: Vec<MaglevPermutation> =
                there.iter().map(|(_, name)| MaglevPermutation::of(*name, size)).collect();
            let positions = filled(orders, size).into_iter();
            positions.filter_map(|at| Some(there.get(usize::from(at))?.0)).collect()
        });
        let place = usize::try_from(hash % size as u64).unwrap_or(0);
        table.get(place).copied()
    }
}

/// The places of a table as a replica wants them: from `next`, in steps of `skip`. The size is a
/// prime, so that it comes to all of them.
#[derive(Debug, Clone, Copy)]
struct MaglevPermutation {
    next: usize,
    skip: usize,
}

impl MaglevPermutation {
    fn of(name: u64, size: usize) -> MaglevPermutation {
        let part = |number, of: usize| {
            let hash = mix(u128::from(name), number);
            usize::try_from(hash % of as u64).unwrap_or(0)
        };
        MaglevPermutation { next: part(1, size), skip: part(2, size - 1) + 1 }
    }

    fn advance(&mut self, size: usize) {
        self.next += self.skip;
        if self.next >= size {
            self.next -= size;
        }
    }
}

/// By place: the position of the replica that has it.
fn filled(mut orders: Vec<MaglevPermutation>, size: usize) -> Vec<u16> {
    let mut table = alloc::vec![FREE; size];
    let mut left = size;
    while left > 0 && !orders.is_empty() {
        for (order, position) in orders.iter_mut().zip(0u16..).take(left) {
            while table[order.next] != FREE {
                order.advance(size);
            }
            table[order.next] = position;
            left -= 1;
        }
    }
    table
}

/// More than a hundred places for each replica, so that shares differ by less than 1 %.
fn size(replicas: usize) -> usize {
    if replicas <= 163 { SIZE } else { SIZE_OF_MANY }
}

/// No position: there are at most 1024.
const FREE: u16 = u16::MAX;
/// A prime.
const SIZE: usize = 16_381;
/// A prime.
const SIZE_OF_MANY: usize = 131_071;
/// Tables that are kept: 8 MiB of the smaller ones.
const TABLES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn replicas(count: u16) -> Vec<(u16, u64)> {
        (0..count).map(|number| (number, mix(u128::from(number), 77))).collect()
    }

    /// Every place of a table.
    fn table(of: usize, there: &[(u16, u64)]) -> Vec<u16> {
        let mut tables = MaglevTableCache::default();
        (0..size(of) as u64).map(|hash| tables.find(5, of, there, hash).unwrap()).collect()
    }

    fn shares(table: &[u16]) -> BTreeMap<u16, usize> {
        let mut shares = BTreeMap::new();
        table.iter().for_each(|replica| *shares.entry(*replica).or_insert(0) += 1);
        shares
    }

    /// Tables 1 and 2 of the paper.
    #[test]
    fn the_example_of_the_paper_is_filled_as_there_with_and_without_the_second_replica() {
        let [b0, b1, b2] =
            [(3, 4), (0, 2), (3, 1)].map(|(next, skip)| MaglevPermutation { next, skip });
        assert_eq!(filled(vec![b0, b1, b2], 7), [1, 0, 1, 0, 2, 2, 0]);
        assert_eq!(filled(vec![b0, b2], 7), [0, 0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn the_sizes_are_primes_and_a_hundred_times_the_replicas() {
        for size in [SIZE, SIZE_OF_MANY] {
            assert!((2..size).take_while(|n| n * n <= size).all(|n| size % n != 0), "{size}");
        }
        assert!(size(163) >= 163 * 100 && size(164) >= 1024 * 100);
    }

    #[test]
    fn shares_differ_by_one_place() {
        for count in [1u16, 2, 3, 7, 100, 163] {
            let shares = shares(&table(count.into(), &replicas(count)));
            let least = SIZE / usize::from(count);
            assert_eq!(shares.len(), usize::from(count));
            assert!(shares.values().all(|share| [least, least + 1].contains(share)), "{count}");
            // The first ones in order have what is over.
            let more = shares.values().take_while(|share| **share > least).count();
            assert_eq!(more, SIZE % usize::from(count), "{count}");
        }
    }

    /// A hash by remainder moves (N - 1)/N of the places; the least that can move is what the lost
    /// replica had.
    #[test]
    fn few_places_of_others_move_when_a_replica_goes_and_all_are_as_before_when_it_comes_back() {
        for count in [3u16, 10, 50] {
            let all = replicas(count);
            let before = table(count.into(), &all);
            for gone in [0, count / 2, count - 1] {
                let rest: Vec<_> = all.iter().copied().filter(|(it, _)| *it != gone).collect();
                let after = table(count.into(), &rest);
                let others = before.iter().zip(&after).filter(|(was, _)| **was != gone);
                let (kept, moved): (Vec<_>, Vec<_>) = others.partition(|(was, is)| was == is);
                assert!(after.iter().all(|replica| *replica != gone));
                let percent = moved.len() * 100 / (kept.len() + moved.len());
                assert!(percent < 5, "{count} without {gone}: {percent} % of others moved");
            }
            assert_eq!(table(count.into(), &all), before);
        }
    }

    #[test]
    fn the_table_is_the_same_in_whatever_order_routers_came_to_know_their_replicas() {
        let all = replicas(5);
        let mut tables = MaglevTableCache::default();
        let hashes = || (0..500u64).map(|hash| mix(u128::from(hash), 3));
        let fresh: Vec<_> = hashes().map(|hash| tables.find(5, 5, &all, hash)).collect();
        let mut other = MaglevTableCache::default();
        for part in [&all[..1], &all[2..], &all[1..4]] {
            other.find(5, 5, part, 1);
        }
        assert!(hashes().map(|hash| other.find(5, 5, &all, hash)).eq(fresh));
        assert_eq!(other.find(5, 5, &[], 1), None);
    }
}
