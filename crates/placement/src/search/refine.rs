//! Passes of moves (Fiduccia and Mattheyses 1982, for several parts): each unit moves at most once
//! a pass, the best move first even if it raises the cost for now; the best prefix of a pass is
//! kept.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

use super::cost::PlacementCost;
use super::state::PlacementAssignment;

/// A move that is possible; the cheapest is the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PlacementMove {
    cost: PlacementCost,
    unit: usize,
    label: usize,
}

impl PlacementAssignment<'_> {
    /// Puts routers and LANs where they cost least for the groups as they are.
    pub(super) fn settle(&mut self) {
        let between = self.problem.groups..self.labels.len();
        for _ in 0..PASSES {
            if !self.pass(between.clone(), false) {
                return;
            }
        }
    }

    /// Improves the division until nothing is found: groups with routers that follow them, then all
    /// on their own, then exchanges.
    pub(super) fn refine(&mut self) {
        for _ in 0..PASSES {
            let better = self.pass(0..self.problem.groups, true);
            let better = self.pass(0..self.labels.len(), false) || better;
            if !self.swap() && !better {
                return;
            }
        }
    }

    /// Whether it became better. With `follow`, routers move whenever that alone is better.
    fn pass(&mut self, movable: Range<usize>, follow: bool) -> bool {
        let mut free: Vec<bool> = (0..self.labels.len()).map(|u| movable.contains(&u)).collect();
        let mut open: BinaryHeap<_> =
            movable.filter_map(|unit| self.best_move(unit)).map(Reverse).collect();
        let (start, mut best, mut kept) = (self.cost, self.cost, 0);
        let mut moves: Vec<(usize, usize)> = Vec::new();
        let mut tries = 0;
        while let Some(Reverse(PlacementMove { cost, unit, .. })) = open.pop() {
            let Some(now) = self.best_move(unit).filter(|_| free[unit]) else { continue };
            if now.cost > cost {
                // Others have moved since this was found.
                open.push(Reverse(now));
                continue;
            }
            free[unit] = false;
            self.go(unit, now.label, &mut moves, &free, &mut open);
            if follow {
                self.follow(unit, &mut moves, &free, &mut open);
            }
            tries += 1;
            if self.cost < best {
                (best, kept, tries) = (self.cost, moves.len(), 0);
            } else if tries > PATIENCE {
                break;
            }
        }
        for (unit, from) in moves.drain(kept..).rev() {
            self.apply(unit, from);
        }
        best < start
    }

    /// Moves a unit and looks at its neighbours anew.
    fn go(
        &mut self,
        unit: usize,
        to: usize,
        moves: &mut Vec<(usize, usize)>,
        free: &[bool],
        open: &mut BinaryHeap<Reverse<PlacementMove>>,
    ) {
        moves.push((unit, self.labels[unit]));
        self.apply(unit, to);
        let moved = &self.problem.units[unit];
        let neighbours = moved.edges.iter().map(|edge| edge.to);
        let again = neighbours
            .chain(moved.near.iter().map(|near| near.0))
            .filter(|at| free.get(*at) == Some(&true));
        open.extend(again.filter_map(|other| self.best_move(other)).map(Reverse));
    }

    /// Lets routers around a unit that moved go where that is better, and those around them.
    pub(super) fn follow(
        &mut self,
        unit: usize,
        moves: &mut Vec<(usize, usize)>,
        free: &[bool],
        open: &mut BinaryHeap<Reverse<PlacementMove>>,
    ) {
        let problem = self.problem;
        let routers = |unit: usize| {
            let around = problem.units[unit].edges.iter().map(|edge| edge.to);
            around.filter(|other| *other >= problem.groups)
        };
        let mut waiting: Vec<usize> = routers(unit).collect();
        while let Some(router) = waiting.pop() {
            if let Some(PlacementMove { cost, label, .. }) = self.best_move(router)
                && cost < PlacementCost::default()
            {
                self.go(router, label, moves, free, open);
                waiting.extend(routers(router));
            }
        }
    }

    /// The cheapest move of a unit, with its cost, if it can move at all.
    fn best_move(&self, unit: usize) -> Option<PlacementMove> {
        let it = &self.problem.units[unit];
        let is_free = unit >= self.problem.groups;
        let machines = (0..self.nowhere()).filter(|label| it.allowed[*label]);
        // A router has no cause to be where none of its neighbours is.
        let machines = machines.filter(|label| !is_free || self.tie(unit, *label) > 0);
        let labels = machines.chain(is_free.then_some(self.nowhere()));
        let elsewhere = labels.filter(|label| *label != self.labels[unit]);
        elsewhere.map(|label| PlacementMove { cost: self.change(unit, label), unit, label }).min()
    }
}

/// Passes of a kind; four are enough for nearly all networks.
const PASSES: usize = 8;
/// Moves that a pass goes on without getting better than its best.
const PATIENCE: usize = 64;
