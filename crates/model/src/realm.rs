//! Address realms (RFC 2663, 2.1): the parts of a network in which an IPv4 address means the same,
//! with NATs between them.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use crate::id::{LinkId, RouterId};
use crate::plan::{MiddleboxSide, Plan};

/// The realms of a plan. Each link is in one; two that meet at a vertex which passes packets on are
/// in the same, unless that vertex translates between them.
///
/// Packets get from the inside of a NAT to its outside, and from there to the outside of further
/// ones, but never to another inside by its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRealms {
    /// By link.
    of_link: Vec<u32>,
    /// By realm: those that its packets get to, itself among them.
    reach: Vec<Vec<u32>>,
}

/// A NAT that is not the only way between its sides: a router may not send packets past the
/// translation that their answers need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BypassedNat(pub RouterId);

impl AddressRealms {
    /// Those of `plan`; `None`: nothing is translated, so there is one.
    ///
    /// # Errors
    /// [`BypassedNat`], the first such NAT in the plan's order.
    pub fn of(plan: &Plan) -> Result<Option<AddressRealms>, BypassedNat> {
        let nats: Vec<_> = plan.middleboxes.iter().filter(|it| it.nat.is_some()).collect();
        if nats.is_empty() {
            return Ok(None);
        }
        let mut links = DisjointSets::new(plan.links.len());
        for node in plan.nodes.iter().filter(|node| node.forward) {
            links.join_all(node.interfaces.iter().map(|it| it.link));
        }
        for lan in &plan.lans {
            links.join_all(lan.attachments.iter().map(|lane| lane.link));
        }
        for (index, router) in plan.routers.iter().enumerate() {
            let nat = plan.middlebox(RouterId::from_index(index)).filter(|it| it.nat.is_some());
            let Some(nat) = nat else {
                links.join_all(router.interfaces.iter().map(|it| it.link));
                continue;
            };
            for side in [MiddleboxSide::Inside, MiddleboxSide::Outside] {
                let here = router.interfaces.iter().zip(&nat.sides);
                links.join_all(here.filter(|(_, it)| **it == side).map(|(it, _)| it.link));
            }
        }
        let (of_link, count) = links.numbers();
        let mut trees = DisjointSets::new(count);
        let mut outward = vec![BTreeSet::new(); count];
        for nat in nats {
            let interfaces = &plan.routers[nat.router.index()].interfaces;
            let realm_on = |side: MiddleboxSide| {
                let at = nat.sides.iter().position(|it| *it == side)?;
                of_link.get(interfaces.get(at)?.link.index()).copied()
            };
            let (Some(inside), Some(outside)) =
                (realm_on(MiddleboxSide::Inside), realm_on(MiddleboxSide::Outside))
            else {
                continue;
            };
            if !trees.join(inside as usize, outside as usize) {
                return Err(BypassedNat(nat.router));
            }
            outward[inside as usize].insert(outside);
        }
        let reach = (0..count).map(|realm| reach_of(&outward, realm)).collect();
        Ok(Some(AddressRealms { of_link, reach }))
    }

    /// The realm of a link.
    #[must_use]
    pub fn of_link(&self, link: LinkId) -> u32 {
        self.of_link[link.index()]
    }

    /// Whether packets of one realm get to addresses of another one.
    #[must_use]
    #[inline]
    pub fn reaches(&self, from: u32, to: u32) -> bool {
        from == to || self.reach[from as usize].contains(&to)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.reach.len()
    }
}

fn reach_of(outward: &[BTreeSet<u32>], realm: usize) -> Vec<u32> {
    let mut open = vec![u32::try_from(realm).unwrap_or(u32::MAX)];
    let mut seen = BTreeSet::new();
    while let Some(realm) = open.pop() {
        if seen.insert(realm) {
            open.extend(&outward[realm as usize]);
        }
    }
    seen.into_iter().collect()
}

/// Disjoint sets of numbers.
struct DisjointSets(Vec<usize>);

impl DisjointSets {
    fn new(count: usize) -> Self {
        DisjointSets((0..count).collect())
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    /// Whether they were two.
    fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        // The lower number stays, so that numbers follow the plan's order.
        let (low, high) = (a.min(b), a.max(b));
        self.0[high] = low;
        a != b
    }

    fn join_all(&mut self, mut links: impl Iterator<Item = LinkId>) {
        let Some(first) = links.next() else { return };
        for link in links {
            self.join(first.index(), link.index());
        }
    }

    /// By member: the number of its set, counted from 0; and how many there are.
    fn numbers(mut self) -> (Vec<u32>, usize) {
        let mut known: Vec<Option<u32>> = vec![None; self.0.len()];
        let mut count = 0;
        let numbers = (0..self.0.len()).map(|at| {
            let root = self.root(at);
            *known[root].get_or_insert_with(|| {
                count += 1;
                count - 1
            })
        });
        let numbers: Vec<u32> = numbers.collect();
        (numbers, count as usize)
    }
}
