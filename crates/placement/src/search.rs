//! Finding a good division: some starts, each improved by moves; the best is taken.

mod cost;
mod refine;
mod start;
mod state;
mod swap;

use alloc::vec::Vec;

use crate::problem::PlacementProblem;
use state::PlacementAssignment;

/// The machine of each group of nodes, as good as the search finds.
pub(crate) fn divide(problem: &PlacementProblem) -> Vec<usize> {
    best(problem).map(|state| state.labels[..problem.groups].to_vec()).unwrap_or_default()
}

/// The best division that was found.
fn best(problem: &PlacementProblem) -> Option<PlacementAssignment<'_>> {
    let improved = start::starts(problem).into_iter().map(|labels| {
        let mut state = PlacementAssignment::new(problem, labels);
        state.settle();
        state.refine();
        state
    });
    // Of a small network each division is tried: moves end at the best one near by.
    let each = start::each(problem, DIVISIONS_MOST).map(|labels| {
        let mut state = PlacementAssignment::new(problem, labels);
        state.settle();
        state
    });
    improved.chain(each).min_by_key(|state| state.cost)
}

/// Twelve nodes on two machines, or seven on three.
const DIVISIONS_MOST: usize = 4096;

#[cfg(test)]
mod tests;
