//! Exchanges of two groups, needed where machines are full or exactly even.

use alloc::vec;
use alloc::vec::Vec;

use super::state::PlacementAssignment;

impl PlacementAssignment<'_> {
    /// Exchanges pairs while that is better; whether any was.
    pub(super) fn swap(&mut self) -> bool {
        let before = self.cost;
        for _ in 0..SWEEPS {
            let start = self.cost;
            let partners = self.partners();
            for unit in 0..self.problem.groups {
                self.swap_best(unit, &partners);
            }
            if self.cost >= start {
                break;
            }
        }
        self.cost < before
    }

    /// By machine and machine to go to: the groups that go there most cheaply.
    fn partners(&self) -> Vec<Vec<usize>> {
        let hosts = self.nowhere();
        let mut partners: Vec<Vec<(i64, usize)>> = vec![Vec::new(); hosts * hosts];
        for unit in 0..self.problem.groups {
            let from = self.labels[unit];
            for to in (0..hosts).filter(|to| self.may_go(unit, *to)) {
                let best = &mut partners[from * hosts + to];
                let entry = (self.tie(unit, from) - self.tie(unit, to), unit);
                let at = best.partition_point(|known| *known < entry);
                best.insert(at, entry);
                best.truncate(PARTNERS);
            }
        }
        let units = |best: Vec<(i64, usize)>| best.into_iter().map(|(_, unit)| unit).collect();
        partners.into_iter().map(units).collect()
    }

    /// Exchanges a group with the partner that promises most, if that holds.
    fn swap_best(&mut self, unit: usize, partners: &[Vec<usize>]) {
        let (hosts, from) = (self.nowhere(), self.labels[unit]);
        let mut best: Option<(i64, usize, usize)> = None;
        for to in (0..hosts).filter(|to| self.may_go(unit, *to)) {
            let gone = self.tie(unit, from) - self.tie(unit, to);
            for &other in &partners[to * hosts + from] {
                if self.labels[other] == to {
                    let came = self.tie(other, to) - self.tie(other, from);
                    let entry = (gone + came + 2 * self.between(unit, other), other, to);
                    best = Some(best.map_or(entry, |best| best.min(entry)));
                }
            }
        }
        let Some((_, other, to)) = best else { return };
        let (before, mut moves) = (self.cost, Vec::new());
        for (unit, to) in [(unit, to), (other, from)] {
            moves.push((unit, self.labels[unit]));
            self.apply(unit, to);
        }
        for unit in [unit, other] {
            self.follow(unit, &mut moves, &[], &mut Default::default());
        }
        if self.cost >= before {
            for (unit, from) in moves.into_iter().rev() {
                self.apply(unit, from);
            }
        }
    }

    fn may_go(&self, unit: usize, to: usize) -> bool {
        self.labels[unit] != to && self.problem.units[unit].allowed[to]
    }

    /// The weight of the links between two units.
    fn between(&self, a: usize, b: usize) -> i64 {
        let degree = |unit: usize| self.problem.units[unit].edges.len();
        let (a, b) = if degree(a) <= degree(b) { (a, b) } else { (b, a) };
        let joining = self.problem.units[a].edges.iter().filter(|edge| edge.to == b);
        joining.map(|edge| edge.weight).sum()
    }
}

/// Rounds over all groups.
const SWEEPS: usize = 4;
/// Candidates for each pair of machines.
const PARTNERS: usize = 4;
