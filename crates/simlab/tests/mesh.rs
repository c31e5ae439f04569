//! Meshes of agents from seeds: once it is quiet, all agents know the truth.
//!
//! `WINDTUNNEL_SEEDS` says how many seeds of small worlds are tried (default 4000; of others in
//! proportion), `WINDTUNNEL_SEED` which one alone, and `WINDTUNNEL_AGENTS` how many agents the
//! worlds of many have: 1000 take minutes for each seed, with `--release`.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};

use windtunnel_simlab::mesh::play::play;

/// Seeds of small worlds.
const SMALL: u64 = 4000;
/// Agents, and seeds that are tried with so many.
const MANY: [(u64, u64); 3] = [(20, 60), (60, 6), (150, 2)];

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs `check` for every seed on all processors; the least seed that fails is printed, with the
/// command for it: `again` is its beginning, and the test.
fn every_seed(
    again: [&str; 2],
    count: u64,
    check: impl Fn(u64) + Sync + std::panic::RefUnwindSafe,
) {
    let count = number("WINDTUNNEL_SEEDS").map_or(count, |seeds| (seeds * count).div_ceil(SMALL));
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
        "seed {seed} fails; again: {}WINDTUNNEL_SEED={seed} cargo test -p windtunnel-simlab --test mesh {}",
        again[0],
        again[1],
    );
}

#[test]
fn every_seed_ends_with_everybody_knowing_the_truth() {
    every_seed(["", "every_seed_ends"], SMALL, |seed| {
        let _ = play(seed, None);
    });
}

#[test]
fn many_agents_end_with_everybody_knowing_the_truth() {
    let alone = number("WINDTUNNEL_AGENTS").map(|agents| (agents, 1));
    for (agents, seeds) in alone.map_or(MANY.to_vec(), |one| vec![one]) {
        let agents_again = format!("WINDTUNNEL_AGENTS={agents} ");
        every_seed([&agents_again, "many_agents"], seeds, |seed| {
            let _ = play(seed, usize::try_from(agents).ok());
        });
    }
}

#[test]
fn every_seed_repeats_itself_to_the_byte() {
    every_seed(["", "every_seed_repeats"], 20, |seed| {
        assert_eq!(play(seed, None), play(seed, None), "runs differ");
    });
}
