//! Meshes of agents from seeds: once it is quiet, everybody knows the truth.
//!
//! `WINDTUNNEL_SEEDS` says how many seeds are tried (default 4000), `WINDTUNNEL_SEED` which one alone.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};

use windtunnel_simlab::mesh::play::play;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs `check` for every seed on all processors; the least seed that fails is told.
fn every_seed(count: u64, check: impl Fn(u64) + Sync + std::panic::RefUnwindSafe) {
    let count = number("WINDTUNNEL_SEEDS").unwrap_or(count);
    let (first, end) = number("WINDTUNNEL_SEED").map_or((1, count + 1), |seed| (seed, seed + 1));
    let (next, failed) = (AtomicU64::new(first), AtomicU64::new(u64::MAX));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || failed.load(Ordering::Relaxed) < u64::MAX {
                        return;
                    }
                    if catch_unwind(|| check(seed)).is_err() {
                        failed.fetch_min(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let seed = failed.into_inner();
    assert!(
        seed == u64::MAX,
        "seed {seed} fails; again: WINDTUNNEL_SEED={seed} cargo test -p windtunnel-simlab --test mesh every_seed"
    );
}

#[test]
fn every_seed_ends_with_everybody_knowing_the_truth() {
    every_seed(4000, |seed| {
        let _ = play(seed, None);
    });
}

#[test]
fn every_seed_repeats_itself_to_the_byte() {
    every_seed(20, |seed| assert_eq!(play(seed, None), play(seed, None), "runs differ"));
}
