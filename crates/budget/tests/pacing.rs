//! Laws of budgets, in virtual time.

use proptest::prelude::*;
use windtunnel_budget::pacing::{BUFFER_NS, CREDIT_NS, PacingBudget, PacingController, piece};

const SECOND_NS: u64 = 1_000_000_000;

/// Start times of messages of one user that always has a next one, and wakes up late by what the
/// iterator says.
fn starts(budget: &PacingBudget, rate_bps: u64, sizes: &[u64], late_ns: &[u64]) -> Vec<u64> {
    let mut now = 0;
    let late = late_ns.iter().copied().cycle();
    let times = sizes.iter().zip(late).map(|(bytes, late)| {
        let at = budget.claim(now, rate_bps, *bytes);
        now = now.max(at + late);
        at
    });
    times.collect()
}

proptest! {
    #[test]
    fn any_window_of_more_than_ten_messages_has_the_rate_to_a_thousandth(
        rate_bytes in prop_oneof![1_u64..1000, 1000..1_000_000_u64, 1_000_000..10_000_000_000_u64],
        bytes in prop_oneof![1_u64..100, 100..10_000_u64, 10_000..1_000_000_u64],
        from in 0_usize..50,
        length in 11_usize..150,
    ) {
        let rate_bps = rate_bytes * 8;
        let sizes = vec![bytes; 210];
        let at = starts(&PacingBudget::new(0), rate_bps, &sizes, &[0]);
        let took_ns = u128::from(at[from + length] - at[from]);
        let exact_ns = u128::from(bytes) * length as u128 * u128::from(SECOND_NS);
        let exact_ns = exact_ns / u128::from(rate_bytes);
        // Start times are whole nanoseconds.
        let bound = (exact_ns / 1000).max(2);
        prop_assert!(took_ns.abs_diff(exact_ns) <= bound, "{took_ns} for {exact_ns}");
    }

    #[test]
    fn no_nanosecond_is_lost_over_many_messages(
        rate_bytes in 1_u64..100_000_000_000,
        sizes in prop::collection::vec(1_u64..1_000_000, 1..300),
    ) {
        let budget = PacingBudget::new(0);
        let _ = starts(&budget, rate_bytes * 8, &sizes, &[0]);
        let total: u64 = sizes.iter().sum();
        let exact = u128::from(total) * u128::from(SECOND_NS) / u128::from(rate_bytes);
        prop_assert!(u128::from(budget.free_at_ns()).abs_diff(exact) <= 1);
    }

    #[test]
    fn waking_up_late_costs_no_rate(
        rate_bytes in 1000_u64..1_000_000_000,
        late_ns in prop::collection::vec(0..CREDIT_NS, 1..20),
        bytes in 1_u64..100_000,
    ) {
        let sizes = vec![bytes; 200];
        let budget = PacingBudget::new(0);
        let _ = starts(&budget, rate_bytes * 8, &sizes, &late_ns);
        let exact = u128::from(bytes) * 200 * u128::from(SECOND_NS) / u128::from(rate_bytes);
        prop_assert!(u128::from(budget.free_at_ns()).abs_diff(exact) <= 1);
    }

    #[test]
    fn a_sender_that_is_kept_from_running_for_a_tenth_of_a_second_loses_no_rate(
        rate_bytes in 1_000_000_u64..1_000_000_000,
        late_ns in prop::collection::vec(0..BUFFER_NS, 1..20),
    ) {
        let (budget, rate_bps) = (PacingBudget::new(0), rate_bytes * 8);
        let bytes = piece(rate_bps, true);
        // It moves what it may, is refused, and comes back late.
        let (mut now, mut moved) = (1, 0);
        for late in late_ns {
            let due = loop {
                let at = budget.claim(now, rate_bps, bytes);
                if at > now {
                    break at;
                }
                moved += bytes;
            };
            budget.note_wait(now);
            now = due + late;
            budget.note_wait(now);
            moved += bytes;
        }
        // All claims followed each other: no time between them was lost.
        let exact = u128::from(moved) * u128::from(SECOND_NS) / u128::from(rate_bytes);
        prop_assert!(u128::from(budget.free_at_ns()).abs_diff(exact) <= 2);
    }

    #[test]
    fn idle_time_gives_no_more_than_the_credit(
        idle_ns in 0..1000 * SECOND_NS,
        rate_bytes in 1_u64..10_000_000_000,
        bytes in 1_u64..100_000,
    ) {
        let (budget, rate_bps) = (PacingBudget::new(0), rate_bytes * 8);
        let _ = budget.claim(0, rate_bps, bytes);
        let now = idle_ns.max(budget.free_at_ns());
        let before = now - now.min(CREDIT_NS);
        let mut moved = 0;
        // What starts at once; of small messages at a high rate that may be many.
        for _ in 0..10_000 {
            if budget.claim(now, rate_bps, bytes) > now {
                break;
            }
            moved += bytes;
        }
        let most = u128::from(rate_bytes) * u128::from(now - before) / u128::from(SECOND_NS);
        prop_assert!(u128::from(moved) <= most + u128::from(bytes) + 1);
    }

    #[test]
    fn a_refund_undoes_a_claim(
        rate_bytes in 1_u64..10_000_000_000,
        sizes in prop::collection::vec(1_u64..1_000_000, 1..50),
        part in 0_u64..100,
    ) {
        let (all, rest) = (PacingBudget::new(0), PacingBudget::new(0));
        let rate_bps = rate_bytes * 8;
        for bytes in sizes {
            let back = bytes * part / 100;
            let _ = all.claim(0, rate_bps, bytes);
            all.refund(rate_bps, back);
            let _ = rest.claim(0, rate_bps, bytes - back);
        }
        prop_assert!(all.free_at_ns().abs_diff(rest.free_at_ns()) <= 1);
    }

    #[test]
    fn a_change_of_the_rate_holds_for_what_is_claimed_already(
        old in 1_u64..1_000_000_000,
        new in 1_u64..1_000_000_000,
        bytes in 1_u64..1_000_000,
    ) {
        let budget = PacingBudget::new(0);
        let _ = budget.claim(0, old * 8, bytes);
        budget.rescale(0, old * 8, new * 8);
        let exact = u128::from(bytes) * u128::from(SECOND_NS) / u128::from(new);
        // A nanosecond at the old rate is more than one at the new.
        let bound = 1 + u128::from(old / new + 1);
        prop_assert!(u128::from(budget.free_at_ns()).abs_diff(exact) <= bound);
    }

    #[test]
    fn a_piece_takes_no_longer_than_five_milliseconds_or_a_segment(rate_bps in 8_u64..1 << 40) {
        let ns = |bytes: u64| u128::from(bytes) * 8 * u128::from(SECOND_NS) / u128::from(rate_bps);
        let blocking = piece(rate_bps, false);
        prop_assert!(blocking == 1448 || ns(blocking) <= 5_000_000);
        let nonblocking = piece(rate_bps, true);
        prop_assert!(nonblocking == 1 || ns(nonblocking) <= 100_000_000);
        prop_assert!(nonblocking <= blocking);
    }
}

#[test]
fn many_users_of_one_budget_have_the_rate_together_and_fair_shares() {
    let (budget, rate_bps, bytes) = (PacingBudget::new(0), 8_000_000, 1000);
    let mut due = [0_u64; 7];
    let mut moved = [0_u64; 7];
    // Each claims as soon as its last message has started.
    while let Some(user) = (0..due.len()).min_by_key(|user| due[*user]) {
        if due[user] > 10 * SECOND_NS {
            break;
        }
        due[user] = budget.claim(due[user], rate_bps, bytes);
        moved[user] += bytes;
    }
    let total: u64 = moved.iter().sum();
    assert!(total.abs_diff(10_000_000) <= 8 * bytes, "{total}");
    assert!(moved.iter().all(|of| of.abs_diff(total / 7) <= 2 * bytes), "{moved:?}");
}

#[test]
fn threads_that_claim_at_once_lose_nothing() {
    let (budget, rate_bps) = (PacingBudget::new(0), 3 * 8_000_000_007);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50_000 {
                    let _ = budget.claim(0, rate_bps, 777);
                }
            });
        }
    });
    let exact = 4 * 50_000 * 777_u128 * 8 * u128::from(SECOND_NS) / u128::from(rate_bps);
    assert!(u128::from(budget.free_at_ns()).abs_diff(exact) <= 1, "{}", budget.free_at_ns());
}
