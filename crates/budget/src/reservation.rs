//! A tree of reservations of one resource: what each part has of its parent, at the least and by
//! weight. Eclipse/BSD's `/reserv` is the model (Bruno et al., USENIX ATC 1999).
//!
//! When all parts of a parent want the resource, each has its minimum, and of what is no part's
//! minimum a share by its weight. What some leave goes to the others in proportion to these sums.
//!
//! ```
//! use windtunnel_budget::reservation::{ReservationNode, ReservationTree};
//!
//! let tree = ReservationTree::new(vec![
//!     ReservationNode { min: 600, weight: 2, ..ReservationNode::default() },
//!     ReservationNode { parent: Some(0), min: 400, ..ReservationNode::default() },
//!     ReservationNode { parent: Some(0), ..ReservationNode::default() },
//!     ReservationNode::default(),
//! ]).unwrap();
//! // Of 1200: 600 are reserved, and of the rest two thirds are the first part's.
//! assert_eq!(tree.shares(1200), [1000, 700, 300, 200]);
//! ```

use alloc::vec;
use alloc::vec::Vec;

/// One part of a parent, or of the whole resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReservationNode {
    /// By position; `None`: a part of the whole.
    pub parent: Option<usize>,
    /// What it has whenever it wants that; 0: nothing of its own.
    pub min: u64,
    /// Its part of what is not reserved, beside those of the others; 0 counts as 1.
    pub weight: u32,
    /// The most that it may have.
    pub limit: Option<u64>,
}

/// Parts, each within another one or the whole.
#[derive(Debug, Clone, Default)]
pub struct ReservationTree {
    parts: Vec<ReservationNode>,
    /// Of the whole, then of each part.
    children: Vec<Vec<usize>>,
    /// Parents before their parts.
    order: Vec<usize>,
}

/// A part whose parents lead back to itself, or to none that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoTree(pub usize);

/// A part, or the whole, of which more is reserved than it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverbookedReservation {
    /// By position; `None`: the whole.
    pub part: Option<usize>,
    /// What is reserved within it.
    pub asked: u64,
    pub has: u64,
}

impl Default for ReservationNode {
    fn default() -> Self {
        ReservationNode { parent: None, min: 0, weight: 1, limit: None }
    }
}

impl ReservationTree {
    /// # Errors
    /// The first part that is in no tree.
    pub fn new(parts: Vec<ReservationNode>) -> Result<ReservationTree, NoTree> {
        let mut children = vec![Vec::new(); parts.len() + 1];
        for (index, part) in parts.iter().enumerate() {
            let parent = part.parent.map_or(0, |parent| parent.saturating_add(1));
            children.get_mut(parent).ok_or(NoTree(index))?.push(index);
        }
        let mut order = children[0].clone();
        let mut next = 0;
        while let Some(part) = order.get(next) {
            order.extend_from_slice(&children[part + 1]);
            next += 1;
        }
        let mut reached = vec![false; parts.len()];
        order.iter().for_each(|part| reached[*part] = true);
        match reached.iter().position(|reached| !reached) {
            Some(part) => Err(NoTree(part)),
            None => Ok(ReservationTree { parts, children, order }),
        }
    }

    /// What is reserved for each part: its minimum, or what is reserved within it if it has none.
    #[must_use]
    pub fn reserved(&self) -> Vec<u64> {
        let mut reserved = vec![0; self.parts.len()];
        for part in self.order.iter().rev().copied() {
            let within = self.within(Some(part), &reserved);
            reserved[part] = if self.parts[part].min > 0 { self.parts[part].min } else { within };
        }
        reserved
    }

    /// What is reserved of the whole.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.within(None, &self.reserved())
    }

    /// The first part of which more is reserved than it has. That a part reserves something is its
    /// own affair: only minima bound what is within.
    #[must_use]
    pub fn overbooked(&self) -> Option<OverbookedReservation> {
        let reserved = self.reserved();
        self.order.iter().copied().find_map(|part| {
            let (asked, has) = (self.within(Some(part), &reserved), self.parts[part].min);
            let most = self.parts[part].limit.unwrap_or(u64::MAX);
            let has = if has > 0 { has } else { most };
            (asked > has).then_some(OverbookedReservation { part: Some(part), asked, has })
        })
    }

    /// What each part has when all want as much as they can get.
    #[must_use]
    pub fn shares(&self, whole: u64) -> Vec<u64> {
        let reserved = self.reserved();
        let mut shares = vec![0; self.parts.len()];
        self.divide(None, whole, &reserved, &mut shares);
        for part in self.order.iter().copied() {
            let has = shares[part].min(self.parts[part].limit.unwrap_or(u64::MAX));
            self.divide(Some(part), has, &reserved, &mut shares);
        }
        shares
    }

    fn divide(&self, parent: Option<usize>, whole: u64, reserved: &[u64], shares: &mut [u64]) {
        let children = self.children_of(parent);
        let weight = |part: &usize| u128::from(self.parts[*part].weight.max(1));
        let weights: u128 = children.iter().map(weight).sum();
        let free = whole.saturating_sub(self.within(parent, reserved));
        for part in children {
            let of_free = u128::from(free) * weight(part) / weights.max(1);
            let of_free = u64::try_from(of_free).unwrap_or(u64::MAX);
            shares[*part] = reserved[*part].saturating_add(of_free);
        }
    }

    /// The parts of a part, or of the whole.
    #[must_use]
    pub fn children_of(&self, parent: Option<usize>) -> &[usize] {
        &self.children[parent.map_or(0, |parent| parent + 1)]
    }

    fn within(&self, parent: Option<usize>, reserved: &[u64]) -> u64 {
        let parts = self.children_of(parent).iter();
        parts.fold(0, |sum: u64, part| sum.saturating_add(reserved[*part]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part(parent: Option<usize>, min: u64, weight: u32) -> ReservationNode {
        ReservationNode { parent, min, weight, limit: None }
    }

    #[test]
    fn a_part_without_a_minimum_reserves_what_is_reserved_within_it() {
        let parts = vec![part(None, 0, 1), part(Some(0), 300, 1), part(Some(0), 200, 1)];
        let tree = ReservationTree::new(parts).unwrap();
        assert_eq!((tree.reserved(), tree.total()), (vec![500, 300, 200], 500));
        assert_eq!(tree.overbooked(), None);
    }

    #[test]
    fn more_than_a_part_has_cannot_be_reserved_within_it() {
        let parts = vec![part(None, 400, 1), part(Some(0), 300, 1), part(Some(0), 200, 1)];
        let tree = ReservationTree::new(parts).unwrap();
        let expected = OverbookedReservation { part: Some(0), asked: 500, has: 400 };
        assert_eq!(tree.overbooked(), Some(expected));
        assert_eq!(tree.total(), 400, "of the whole, it has what it says");
        let limited = ReservationNode { limit: Some(250), ..part(None, 0, 1) };
        let tree = ReservationTree::new(vec![limited, part(Some(0), 300, 1)]).unwrap();
        assert_eq!(tree.overbooked().map(|it| (it.asked, it.has)), Some((300, 250)));
    }

    #[test]
    fn what_a_part_may_not_have_is_not_divided_within_it() {
        let limited = ReservationNode { limit: Some(200), ..part(None, 0, 9) };
        let tree =
            ReservationTree::new(vec![limited, part(Some(0), 0, 1), part(Some(0), 0, 3)]).unwrap();
        assert_eq!(tree.shares(1000), [1000, 50, 150]);
    }

    #[test]
    fn a_circle_is_no_tree() {
        let parts = vec![part(None, 0, 1), part(Some(2), 0, 1), part(Some(1), 0, 1)];
        assert_eq!(ReservationTree::new(parts).unwrap_err(), NoTree(1));
        assert_eq!(ReservationTree::new(vec![part(Some(7), 0, 1)]).unwrap_err(), NoTree(0));
    }

    /// Parts whose parents come before them.
    fn trees() -> impl Strategy<Value = Vec<ReservationNode>> {
        let one = (any::<prop::sample::Index>(), any::<bool>(), 0_u64..1000, 1_u32..100);
        prop::collection::vec(one, 1..20).prop_map(|parts| {
            let parts =
                parts.into_iter().enumerate().map(|(index, (parent, root, min, weight))| {
                    let parent = (index > 0 && !root).then(|| parent.index(index.max(1)));
                    ReservationNode { parent, min, weight, limit: None }
                });
            let mut parts: Vec<ReservationNode> = parts.collect();
            for index in (0..parts.len()).rev() {
                let reserved = ReservationTree::new(parts.clone()).unwrap().reserved();
                let within = (0..parts.len()).filter(|part| parts[*part].parent == Some(index));
                let within: u64 = within.map(|part| reserved[part]).sum();
                let min = &mut parts[index].min;
                *min = if *min > 500 { *min + within } else { *min * u64::from(within == 0) };
            }
            parts
        })
    }

    proptest! {
        #[test]
        fn each_part_has_its_minimum_and_all_together_no_more_than_there_is(parts in trees()) {
            let tree = ReservationTree::new(parts).unwrap();
            prop_assert_eq!(tree.overbooked(), None);
            let whole = tree.total() + 777;
            let (shares, reserved) = (tree.shares(whole), tree.reserved());
            for (share, least) in shares.iter().zip(&reserved) {
                prop_assert!(share >= least);
            }
            for parent in core::iter::once(None).chain((0..shares.len()).map(Some)) {
                let children = tree.children_of(parent);
                let sum: u64 = children.iter().map(|part| shares[*part]).sum();
                let has = parent.map_or(whole, |part| shares[part]);
                prop_assert!(sum <= has);
                // Less than one for each part is lost by rounding.
                let lost = u64::try_from(children.len()).unwrap();
                prop_assert!(children.is_empty() || sum + lost > has);
            }
        }
    }
}
