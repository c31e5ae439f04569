//! A flow's demand, estimated from its use.

use windtunnel_model::{Rate, Span};

/// The bits that a flow sent in one period, and those that it could have sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowPeriodUsage {
    /// Bytes of the wire that the flow brought, those included that did not fit into its queue.
    pub bytes: u64,
    /// The length of the period, such as SplayNet's 50 ms; always the same one for a flow.
    pub period: Span,
    /// The share that it had: the least of the period, if it changed.
    pub share: Option<Rate>,
}

/// The demand of one flow, period by period: that of its
/// [`FlowTerms`](windtunnel_model::flow::FlowTerms).
///
/// # How
///
/// A new flow wants all that it can get, unless a period in which nothing limited it shows what it
/// uses ([`of_use`](Self::of_use)). After each period:
///
/// - It **used its share** (15/16 of it or more): it is held back, and may want anything. Its
///   demand doubles at once, and is without bound after three such periods in a row.
/// - It **did not**: its demand does not rise. Its use and a quarter more would do; a demand that
///   is more than an eighth too great goes a quarter of the way there.
///
/// It does not swing: a flow that brings a steady u ends with a demand of 11/8 to 10/7 u, of which
/// it uses about 7/10. That is well below 15/16: a noise of a tenth of u changes nothing, neither
/// up nor down, once the demand has come down to 9/7 u.
///
/// The least demand is one full packet (1538 bytes on Ethernet) a period, so that a flow that
/// pauses can begin again. A flow that has been silent for many periods should rather be stopped:
/// it then holds nothing back, and starts anew, with no bound, with its next packet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DemandEstimator {
    demand: Option<Rate>,
    /// Periods in a row in which it used its share.
    full_periods: u8,
}

impl DemandEstimator {
    /// A flow of which nothing is known yet: it wants all that it can get.
    #[must_use]
    pub fn new() -> Self {
        DemandEstimator::default()
    }

    /// A flow that brought so many bytes in a period without a limit: it wants what it used and a
    /// quarter more, and a full packet a period at the least.
    #[must_use]
    pub fn of_use(bytes: u64, period: Span) -> Self {
        let wanted = rate(bytes, period).map(|used| wanted(used, period));
        let demand = wanted.and_then(Rate::from_bits_per_second);
        DemandEstimator { demand, full_periods: 0 }
    }

    /// The present demand.
    #[must_use]
    pub fn demand(&self) -> Option<Rate> {
        self.demand
    }

    /// A period has passed; returns the new demand. A period of no length, and one without a limit
    /// on the flow, carry no information.
    pub fn observe(&mut self, seen: FlowPeriodUsage) -> Option<Rate> {
        let (Some(share), Some(used)) = (seen.share, rate(seen.bytes, seen.period)) else {
            return self.demand;
        };
        let share = share.bits_per_second();
        if used >= share - share / HELD_BACK {
            self.full_periods = self.full_periods.saturating_add(1).min(PATIENCE);
            let double = |demand: Rate| demand.bits_per_second().max(used).saturating_mul(2);
            let bounded = self.demand.filter(|_| self.full_periods < PATIENCE);
            self.demand = bounded.and_then(|demand| Rate::from_bits_per_second(double(demand)));
            return self.demand;
        }
        self.full_periods = 0;
        let wanted = wanted(used, seen.period);
        // The part above the share has had no effect.
        let demand = self.demand.map_or(share, |demand| demand.bits_per_second().min(share));
        self.demand = Rate::from_bits_per_second(nearer(demand, wanted).max(1));
        self.demand
    }
}

/// The demand, in bits a second, of a flow that uses so much.
fn wanted(used: u64, period: Span) -> u64 {
    let least = rate(FULL_PACKET, period).unwrap_or(1);
    used.saturating_add(used / 4).max(least)
}

/// The next demand on the way down to `wanted`.
fn nearer(demand: u64, wanted: u64) -> u64 {
    let surplus = demand.saturating_sub(wanted);
    if surplus <= demand / NOISE { demand } else { demand - surplus.div_ceil(4) }
}

/// Bits a second (saturating); `None` for no time.
fn rate(bytes: u64, period: Span) -> Option<u64> {
    let bits = u128::from(bytes) * 8 * 1_000_000_000;
    let rate = bits.checked_div(u128::from(period.as_nanos()))?;
    Some(u64::try_from(rate).unwrap_or(u64::MAX))
}

/// A share is used when less than this part of it is left.
const HELD_BACK: u64 = 16;
/// A demand that is too great by less than this part stays.
const NOISE: u64 = 8;
/// Periods after which a flow that uses its share wants all.
const PATIENCE: u8 = 3;
/// A full packet on Ethernet: 1500 bytes and SplayNet's 38 bytes of framing.
const FULL_PACKET: u64 = 1538;

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Span = Span::from_millis(50);

    fn bytes(bits_per_second: u64) -> u64 {
        bits_per_second / 8 / 20
    }

    fn mbit(rate: u64) -> Option<Rate> {
        Rate::from_bits_per_second(rate * 1_000_000)
    }

    /// Periods of a flow that brings `wants` and may send the least of its demand and `fair`.
    fn after(estimator: &mut DemandEstimator, periods: usize, wants: u64, fair: u64) -> Vec<u64> {
        let period = |_| {
            let share =
                estimator.demand().map_or(fair, |demand| demand.bits_per_second().min(fair));
            let share_as_rate = Rate::from_bits_per_second(share);
            let seen = FlowPeriodUsage {
                bytes: bytes(wants.min(share)),
                period: PERIOD,
                share: share_as_rate,
            };
            estimator.observe(seen).map_or(u64::MAX, Rate::bits_per_second)
        };
        (0..periods).map(period).collect()
    }

    #[test]
    fn a_flow_that_uses_its_share_keeps_wanting_all() {
        let mut estimator = DemandEstimator::new();
        assert_eq!(after(&mut estimator, 50, u64::MAX, 10_000_000), vec![u64::MAX; 50]);
    }

    #[test]
    fn a_steady_flow_is_left_with_less_than_half_more_and_never_swings() {
        for wants in [320_000, 1_000_000, 4_000_000] {
            let mut estimator = DemandEstimator::new();
            let demands = after(&mut estimator, 100, wants, 10_000_000);
            assert!(demands.is_sorted_by(|a, b| a >= b), "{demands:?}");
            assert!((wants / 8 * 11..=wants / 7 * 10 + 10).contains(&demands[20]), "{demands:?}");
            assert!(demands[20..].iter().all(|demand| *demand == demands[20]), "{demands:?}");
        }
    }

    #[test]
    fn a_flow_that_needs_nearly_its_share_keeps_it() {
        let demands = after(&mut DemandEstimator::new(), 100, 8_000_000, 10_000_000);
        assert_eq!(demands, vec![10_000_000; 100]);
    }

    #[test]
    fn it_shrinks_smoothly() {
        let mut estimator = DemandEstimator::new();
        let demands = after(&mut estimator, 20, 1_000_000, 10_000_000);
        assert_eq!(demands[0], 7_812_500, "a quarter of the way from 10 to 1.25 Mbit/s");
        assert!(demands.windows(2).all(|pair| pair[1] >= pair[0] / 4 * 3));
    }

    #[test]
    fn it_wants_all_after_three_periods_of_hunger() {
        let mut estimator = DemandEstimator::new();
        after(&mut estimator, 40, 1_000_000, 10_000_000);
        let steady = estimator.demand().unwrap().bits_per_second();
        let demands = after(&mut estimator, 3, u64::MAX, 10_000_000);
        assert_eq!(demands, [2 * steady, 4 * steady, u64::MAX]);
    }

    #[test]
    fn noise_of_a_tenth_changes_nothing_in_the_long_run() {
        let mut estimator = DemandEstimator::new();
        let mut noisy = |periods: usize| -> Vec<u64> {
            let noise = [1_100_000, 950_000, 900_000, 1_000_000, 1_090_000].into_iter().cycle();
            let wants = noise.take(periods);
            wants.flat_map(|wants| after(&mut estimator, 1, wants, 10_000_000)).collect()
        };
        let demands = noisy(60);
        assert!(demands.is_sorted_by(|a, b| a >= b), "{demands:?}");
        assert!(noisy(500).iter().all(|demand| *demand == demands[59]));
    }

    #[test]
    fn an_idle_flow_may_still_send_a_packet_a_period() {
        let mut estimator = DemandEstimator::new();
        let least = 1538 * 8 * 20;
        let demands = after(&mut estimator, 100, 0, 10_000_000);
        assert!((least..=least / 7 * 8 + 8).contains(&demands[99]), "{}", demands[99]);
        let again = after(&mut estimator, 50, least, 10_000_000);
        assert!((least..=least / 7 * 10 + 10).contains(&again[49]), "{again:?}");
    }

    #[test]
    fn a_flow_begins_with_the_demand_of_what_it_used_without_a_limit() {
        let begun = |bytes| DemandEstimator::of_use(bytes, PERIOD).demand().unwrap();
        assert_eq!(begun(bytes(4_000_000)).bits_per_second(), 5_000_000);
        assert_eq!(begun(84).bits_per_second(), 1538 * 8 * 20, "a full packet a period");
        assert_eq!(DemandEstimator::of_use(84, Span::ZERO).demand(), None);
        // It may want all later, as any other flow.
        let mut estimator = DemandEstimator::of_use(bytes(1_000_000), PERIOD);
        let demands = after(&mut estimator, 3, u64::MAX, 10_000_000);
        assert_eq!(demands, [2_500_000, 5_000_000, u64::MAX]);
    }

    #[test]
    fn a_period_without_information_changes_nothing() {
        let mut estimator = DemandEstimator::new();
        after(&mut estimator, 3, 0, 10_000_000);
        let before = estimator.clone();
        estimator.observe(FlowPeriodUsage { bytes: 9, period: Span::ZERO, share: mbit(1) });
        estimator.observe(FlowPeriodUsage { bytes: 9, period: PERIOD, share: None });
        assert_eq!(estimator, before);
        let most = FlowPeriodUsage {
            bytes: u64::MAX,
            period: Span::from_nanos(1),
            share: Rate::from_bits_per_second(1),
        };
        assert!(estimator.observe(most).is_some());
    }
}
