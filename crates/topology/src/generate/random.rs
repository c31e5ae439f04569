//! Random graphs, from draws that depend on the seed alone.

use std::collections::BTreeSet;

use windtunnel_model::random::RandomStream;
use windtunnel_model::{LinkDirection, Probability};

use super::GenerateError;
use crate::topology::MOST_LINKS;

/// So many graphs are drawn until one is connected; fewer of large ones, see [`MOST_DRAWS`].
const ATTEMPTS: u64 = 100;
/// About so many pairs are drawn in all.
const MOST_DRAWS: u64 = 200_000_000;

/// A connected graph of G(n, p): each pair of routers is joined with this probability (Gilbert
/// 1959; Erdős, Rényi 1959). Graphs that are not connected are thrown away, so that the result is
/// one of G(n, p) under the condition that it is connected.
pub(super) fn gilbert(
    routers: u32,
    probability: Probability,
    seed: u64,
) -> Result<Vec<[usize; 2]>, GenerateError> {
    let count = index(routers);
    let wide = u64::from(routers);
    let attempts = (MOST_DRAWS / (wide * wide.saturating_sub(1) / 2).max(1)).clamp(3, ATTEMPTS);
    for attempt in 0..attempts {
        let draws = stream(seed, &format!("random-{attempt}"));
        let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| [a, b]));
        let drawn = (0..).zip(pairs).filter(|(pair, _)| probability.decides(draws.at(*pair)));
        let most = index(u32::try_from(MOST_LINKS).unwrap_or(u32::MAX));
        let edges: Vec<[usize; 2]> = drawn.map(|(_, edge)| edge).take(most + 1).collect();
        if edges.len() > most {
            let value = u64::try_from(edges.len()).unwrap_or(u64::MAX);
            return Err(GenerateError::TooLarge { what: "links or more", value, most: MOST_LINKS });
        }
        if is_connected(count, &edges) {
            return Ok(edges);
        }
    }
    let threshold = threshold(routers);
    Err(GenerateError::NotConnected { attempts, routers, probability, threshold })
}

/// The probability ln(n)/n around which graphs of G(n, p) become connected (Erdős, Rényi 1960).
pub(super) fn threshold(routers: u32) -> Probability {
    let n = f64::from(routers.max(2));
    parts(libm::log(n) / n)
}

/// The probability that is taken where none is given: 2·ln(n)/n, at most 100 %.
pub(super) fn comfortable(routers: u32) -> Probability {
    let n = f64::from(routers.max(2));
    parts(2.0 * libm::log(n) / n)
}

/// Preferential attachment (Barabási, Albert 1999): a clique of `attach + 1` routers, then each
/// further router is joined to `attach` different ones, drawn with probability proportional to
/// their degrees.
pub(super) fn barabasi(routers: u32, attach: u32, seed: u64) -> Vec<[usize; 2]> {
    let (count, attach) = (index(routers), index(attach));
    let draws = stream(seed, "scale-free");
    let first = attach + 1;
    let clique = (0..first).flat_map(|a| (a + 1..first).map(move |b| [a, b]));
    let mut edges: Vec<[usize; 2]> = clique.collect();
    // Every end of every edge: a draw among them finds a router by its degree.
    let mut ends: Vec<usize> = edges.iter().flatten().copied().collect();
    let mut draw = 0;
    for newcomer in first..count {
        let mut chosen = BTreeSet::new();
        while chosen.len() < attach {
            let most = u64::try_from(ends.len()).unwrap_or(u64::MAX);
            let at = usize::try_from(below(draws.at(draw), most)).unwrap_or(0);
            chosen.insert(ends[at]);
            draw += 1;
        }
        for old in chosen {
            edges.push([old, newcomer]);
            ends.extend([old, newcomer]);
        }
    }
    edges
}

/// A number below `most` from a draw that is uniform over 64 bits.
pub(super) fn below(draw: u64, most: u64) -> u64 {
    let scaled = (u128::from(draw) * u128::from(most)) >> 64;
    u64::try_from(scaled).unwrap_or(0)
}

/// Whether every vertex can be reached from the first.
fn is_connected(count: usize, edges: &[[usize; 2]]) -> bool {
    let mut neighbours = vec![Vec::new(); count];
    for [a, b] in edges {
        neighbours[*a].push(*b);
        neighbours[*b].push(*a);
    }
    let mut seen = vec![false; count];
    let mut waiting: Vec<usize> = (0..count.min(1)).collect();
    let mut reached = 0;
    while let Some(at) = waiting.pop() {
        if !std::mem::replace(&mut seen[at], true) {
            reached += 1;
            waiting.extend(neighbours[at].iter().filter(|next| !seen[**next]));
        }
    }
    reached == count
}

fn stream(seed: u64, what: &str) -> RandomStream {
    RandomStream::derive(seed, "generate", LinkDirection::Up, what)
}

/// A fraction, rounded up to 0.01 % so that it is easy to write, at most 1.
fn parts(fraction: f64) -> Probability {
    const STEPS: f64 = 10_000.0;
    const STEP: u32 = 100_000;
    let steps = (1..=10_000_u32).find(|steps| f64::from(*steps) >= fraction * STEPS);
    let parts = steps.map(|steps| steps * STEP);
    parts.and_then(Probability::from_parts_per_billion).unwrap_or(Probability::ALWAYS)
}

fn index(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
