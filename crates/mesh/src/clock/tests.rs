//! Clocks that drift and step.

use super::*;
use crate::rng::SeededRng;
use proptest::prelude::*;

/// Two clocks and the paths between them.
struct Pair {
    skew_ppb: i128,
    offset: i128,
    rng: SeededRng,
    clock: PeerClockEstimate,
}

impl Pair {
    fn new(skew_ppb: i128, offset: i128, seed: u64) -> Self {
        let rng = SeededRng::new(seed, "pair", "delays");
        Pair { skew_ppb, offset, rng, clock: PeerClockEstimate::default() }
    }

    /// Their clock when ours shows `own`.
    fn theirs(&self, own: i128) -> i128 {
        own + self.offset + own * self.skew_ppb / BILLION
    }

    fn time(nanos: i128) -> Time {
        Time::from_nanos(u64::try_from(nanos).unwrap())
    }

    /// An exchange over paths of `base` and something random below `jitter`, each way.
    fn exchange(
        &mut self,
        sent: i128,
        base: i128,
        jitter: u64,
    ) -> (i128, TimestampExchangeOutcome) {
        let there = sent + base + i128::from(self.rng.below(jitter));
        let leaves = there + 5_000;
        let back = leaves + base + i128::from(self.rng.below(jitter));
        let outcome = self.clock.take(&TimestampExchange {
            sent: Self::time(sent),
            came: Self::time(self.theirs(there)),
            left: Self::time(self.theirs(leaves)),
            back: Self::time(back),
        });
        (back, outcome)
    }

    /// How far off the estimate is at `own`, and its bound.
    fn error(&self, own: i128) -> (i128, i128) {
        let read = self.clock.read(Self::time(own)).unwrap();
        let truth = self.theirs(own) - own;
        ((i128::from(read.offset) - truth).abs(), i128::from(read.error.as_nanos()))
    }
}

const SECOND: i128 = BILLION;
const START: i128 = 3600 * SECOND;

proptest! {
    /// With any skew up to 200 ppm and any delays, the error stays within its bound and no step
    /// is reported where there was none.
    #[test]
    fn the_bound_holds(
        skew in -200_000..200_000i64,
        base in 1_000..20_000_000i64,
        jitter in 1..5_000_000u64,
        seed in any::<u64>()
    ) {
        let mut pair = Pair::new(i128::from(skew), 77 * SECOND, seed);
        for number in 0..200 {
            let sent = START + number * SECOND / 4;
            let (back, outcome) = pair.exchange(sent, i128::from(base), jitter);
            prop_assert_eq!(outcome, TimestampExchangeOutcome::Taken);
            for later in [0, SECOND / 8] {
                let (error, bound) = pair.error(back + later);
                prop_assert!(error <= bound, "{} over {} at {}", error, bound, number);
            }
        }
    }
}

#[test]
fn a_skew_of_200_ppm_is_followed() {
    // 50 µs each way and up to 200 µs more: the fastest of some hundred packets takes about 52
    // µs, so the estimate is good to a few microseconds once the skew is known, against
    // 50 µs of drift between two exchanges.
    let mut pair = Pair::new(200_000, -5 * SECOND, 1);
    let mut worst = 0;
    for number in 0..400 {
        let (back, _) = pair.exchange(START + number * SECOND / 4, 50_000, 200_000);
        if number > 200 {
            worst = worst.max(pair.error(back).0);
        }
    }
    let read = pair.clock.read(Pair::time(START + 100 * SECOND)).unwrap();
    assert!((read.skew_ppb - 200_000).abs() < 5_000, "{read:?}");
    assert!(worst < 30_000, "{worst} ns");
    assert!(read.rtt_min >= Span::from_micros(100) && read.rtt_min < Span::from_micros(200));
    assert_eq!(read.one_way.as_nanos(), read.rtt_min.as_nanos() / 2);
}

#[test]
fn a_step_is_noticed_and_a_change_of_skew_is_none() {
    let mut pair = Pair::new(20_000, 0, 1);
    for number in 0..100 {
        pair.exchange(START + number * SECOND / 4, 100_000, 50_000);
    }
    pair.offset += 10_000_000;
    let (back, outcome) = pair.exchange(START + 25 * SECOND, 100_000, 50_000);
    let TimestampExchangeOutcome::Stepped(by) = outcome else { panic!("{outcome:?}") };
    assert!((by - 10_000_000).abs() < 200_000, "{by}");
    assert!(pair.error(back).0 <= pair.error(back).1);
    // The clock goes on from where it is, but slower.
    let before = pair.theirs(START + 26 * SECOND);
    pair.skew_ppb = -100_000;
    pair.offset += before - pair.theirs(START + 26 * SECOND);
    for number in 104..300 {
        let (back, outcome) = pair.exchange(START + number * SECOND / 4, 100_000, 50_000);
        assert_eq!(outcome, TimestampExchangeOutcome::Taken, "exchange {number}");
        if number > 140 {
            let (error, bound) = pair.error(back);
            assert!(error <= bound, "{error} over {bound}");
        }
    }
}

#[test]
fn impossible_stamps_are_refused() {
    let at = Time::from_nanos;
    let mut clock = PeerClockEstimate::default();
    let odd = |sent, came, left, back| TimestampExchange {
        sent: at(sent),
        came: at(came),
        left: at(left),
        back: at(back),
    };
    for exchange in [odd(10, 5, 4, 20), odd(10, 5, 6, 9), odd(10, 5, 50, 20)] {
        assert_eq!(clock.take(&exchange), TimestampExchangeOutcome::Odd);
    }
    assert_eq!(clock.read(at(30)), None);
    let extreme = odd(0, u64::MAX, u64::MAX, 1);
    assert_eq!(clock.take(&extreme), TimestampExchangeOutcome::Taken);
    assert_eq!(clock.read(at(u64::MAX)).unwrap().offset, i64::MAX);
}

/// Wall clocks of which ours is `error_us` exact and theirs likewise; theirs.ahead is chosen so that
/// their monotonic clock is ahead of ours by `offset`.
fn walls(offset: i64, error_us: u64) -> (WallClockReading, WallClockReading) {
    let error = Some(Span::from_micros(error_us));
    let own = WallClockReading { ahead_ns: 1_700_000_000_000_000_000, error };
    (own, WallClockReading { ahead_ns: own.ahead_ns - offset, error })
}

/// Over paths of 20 ms there and 0 back, exchanges alone leave half of that open.
fn asymmetric() -> PeerClockEstimate {
    let mut clock = PeerClockEstimate::default();
    let exchange = TimestampExchange {
        sent: Pair::time(START),
        came: Pair::time(START + 20_000_000),
        left: Pair::time(START + 20_000_000),
        back: Pair::time(START + 20_000_000),
    };
    assert_eq!(clock.take(&exchange), TimestampExchangeOutcome::Taken);
    clock
}

#[test]
fn wall_clocks_that_are_kept_bound_what_exchanges_cannot() {
    let mut clock = asymmetric();
    let now = Pair::time(START + 20_000_000);
    let read = clock.read(now).unwrap();
    assert!(read.offset.abs_diff(10_000_000) < 10_000, "half of the asymmetry: {read:?}");
    assert!(read.error >= Span::from_millis(10) && read.by == ClockOffsetConstraint::ByNothing);
    let (own, theirs) = walls(0, 200);
    clock.claim(now, own, theirs, None);
    let read = clock.read(now).unwrap();
    // From -0.4 to 0.4 ms by the walls, and not below 0 by the exchange.
    assert!(read.offset.abs_diff(200_000) < 10_000, "{read:?}");
    assert!(read.error <= Span::from_micros(210), "{read:?}");
    assert_eq!(read.by, ClockOffsetConstraint::ByWallClocks);
}

#[test]
fn what_the_operator_states_counts_before_what_the_kernel_says() {
    let mut clock = asymmetric();
    let now = Pair::time(START + 20_000_000);
    let (own, theirs) = walls(0, 900_000);
    clock.claim(now, own, theirs, Some(Span::from_micros(50)));
    let read = clock.read(now).unwrap();
    assert!(
        read.error <= Span::from_micros(30) && read.by == ClockOffsetConstraint::ByStatement,
        "{read:?}"
    );
}

#[test]
fn a_claim_that_the_exchanges_contradict_or_that_says_no_more_is_not_used() {
    let mut clock = asymmetric();
    let now = Pair::time(START + 20_000_000);
    let measured = clock.read(now).unwrap();
    // A wall clock that is wrong by a second, and says it is exact; and one that nothing keeps.
    let (own, wrong) = walls(-1_000_000_000, 1);
    let (_, far) = walls(0, 60_000_000);
    for theirs in [wrong, far, WallClockReading { error: None, ..wrong }] {
        clock.claim(now, own, theirs, None);
        assert_eq!(clock.read(now), Some(measured), "{theirs:?}");
    }
}

#[test]
fn a_claim_ages_with_the_greatest_drift() {
    let mut clock = asymmetric();
    let at = |millis: i128| Pair::time(START + 20_000_000 + millis * 1_000_000);
    let (own, theirs) = walls(0, 100);
    clock.claim(at(0), own, theirs, None);
    let (first, later) = (clock.read(at(0)).unwrap(), clock.read(at(10_000)).unwrap());
    // 250 ppm of 10 s on either side of the claim.
    assert!(later.error >= first.error + Span::from_millis(2), "{first:?} {later:?}");
}
