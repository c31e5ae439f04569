//! Reorder: some packets are held back so that later ones overtake them.
//!
//! - **Parameters**: a probability (default 0) and the time `extra` that a chosen packet is held
//!   back on top of its delay; a `correlation` ρ of these decisions (default 0, less than 1);
//!   `by_jitter` (default false): whether jitter alone may change the order.
//! - **Time**: a chosen packet leaves `extra` later. **Order**: the others do not wait for it.
//!   **Bytes**: unchanged.
//! - **Drop reasons**: none.
//! - **Model**: `reorder` of tc-netem(8) the other way round: there the chosen packets skip the
//!   delay and all others are delayed; here the latency stays the least that a packet can take. The
//!   correlation is netem's (`get_crandom` of `net/sched/sch_netem.c`): for each packet that comes
//!   here x(n) = ρ·x(n−1) + (1−ρ)·u(n) with u uniform over [0, 1), and it is chosen where x is less
//!   than the probability. x(n) has the lag-1 autocorrelation ρ and a mean of 1/2, but not the
//!   uniform distribution: its variance is (1−ρ)/(12·(1+ρ)). Hence, as with netem, the share of
//!   chosen packets is not the probability where there is a correlation.

use windtunnel_model::profile::PacketReordering as Setting;
use windtunnel_model::{LinkProfile, Probability, Span};

use super::{RandomDraws, RngKey};

#[derive(Debug)]
pub(crate) struct ReorderProcess {
    draws: RandomDraws,
    setting: Setting,
    /// x of the packet before, scaled to 2⁶⁴; packets are numbered from 1, so that draw 0 is free.
    last: u64,
}

impl ReorderProcess {
    pub(crate) fn new(rng: &RngKey<'_>, profile: &LinkProfile) -> Self {
        let draws = RandomDraws::new(rng, "reorder");
        ReorderProcess { draws, setting: profile.reorder, last: draws.at(0, false) }
    }

    pub(crate) fn set(&mut self, profile: &LinkProfile) {
        self.setting = profile.reorder;
    }

    pub(crate) fn is_none(&self) -> bool {
        self.setting.probability.is_never()
    }

    pub(crate) fn by_jitter(&self) -> bool {
        self.setting.by_jitter
    }

    /// The first of `count` segments, numbered from `number`, that is held back.
    pub(crate) fn first_held(&self, number: u64, count: u32, copy: bool) -> Option<u32> {
        let mut last = self.last;
        (0..count).find(|index| {
            last = self.value(last, number + u64::from(*index), copy);
            self.chooses(last)
        })
    }

    /// How long the packet of the segments from `number` on is held back; `None`: it is not chosen.
    /// Each segment of a train passes here once, with others of the same fate.
    pub(crate) fn hold(&mut self, number: u64, count: u32, copy: bool) -> Option<Span> {
        let first = self.value(self.last, number, copy);
        self.last = first;
        if !self.setting.correlation.is_never() {
            for index in 1..count {
                self.last = self.value(self.last, number + u64::from(index), copy);
            }
        }
        self.chooses(first).then_some(self.setting.extra)
    }

    fn chooses(&self, value: u64) -> bool {
        !self.is_none() && self.setting.probability.decides(value)
    }

    /// x of a packet, where `last` is that of the one before.
    fn value(&self, last: u64, number: u64, copy: bool) -> u64 {
        let drawn = self.draws.at(number, copy);
        let all = u128::from(Probability::ALWAYS.parts_per_billion());
        let correlation = u128::from(self.setting.correlation.parts_per_billion());
        if correlation == 0 {
            return drawn;
        }
        let sum = u128::from(drawn) * (all - correlation) + u128::from(last) * correlation;
        u64::try_from(sum / all).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_model::LinkDirection;

    use super::*;

    const PACKETS: u32 = 200_000;

    fn element(probability: &str, correlation: &str) -> ReorderProcess {
        let mut profile = LinkProfile::default();
        profile.reorder.probability = probability.parse().unwrap();
        profile.reorder.correlation = correlation.parse().unwrap();
        profile.reorder.extra = Span::from_millis(1);
        let rng = RngKey { seed: 1, link: "l", direction: LinkDirection::Up, part: 0 };
        ReorderProcess::new(&rng, &profile)
    }

    fn decisions(mut element: ReorderProcess) -> Vec<bool> {
        (1..=PACKETS).map(|n| element.hold(u64::from(n), 1, false).is_some()).collect()
    }

    fn share(of: impl Iterator<Item = bool>) -> f64 {
        let (count, held) = of.fold((0_u32, 0_u32), |(n, held), it| (n + 1, held + u32::from(it)));
        f64::from(held) / f64::from(count)
    }

    /// Of packets, and of packets behind one that is held back, the share that is held back.
    fn shares(held: &[bool]) -> (f64, f64) {
        let behind = held.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]);
        (share(held.iter().copied()), share(behind))
    }

    fn assert_near(value: f64, expected: f64, most: f64) {
        assert!((value - expected).abs() < most, "{value} is not {expected} ± {most}");
    }

    /// 4 standard deviations: √(0.25·0.75/200000) = 0.001, and of the 50000 behind held ones 0.002.
    #[test]
    fn without_correlation_a_packet_behind_a_held_one_is_like_any_other() {
        let (all, behind) = shares(&decisions(element("25%", "0%")));
        assert_near(all, 0.25, 0.004);
        assert_near(behind, 0.25, 0.008);
    }

    /// With ρ = 1/2, x is the sum of u(n−k)/2^(k+1): its distribution function F is Fabius's, with
    /// F' (x) = 2·F(2x) up to 1/2, F(1/4) = 5/72 and F(1/8) = 1/288. That is the share of held
    /// packets at 25 %. Behind a held packet x is below 1/4 where u < 1/2 − x(n−1): on average
    /// 1/2 − E[x | x < 1/4] = 1/2 − (1/4·F(1/4) − F(1/8))/F(1/4) = 3/10.
    #[test]
    fn half_correlated_decisions_follow_the_fabius_function() {
        let (all, behind) = shares(&decisions(element("25%", "50%")));
        assert_near(all, 5.0 / 72.0, 0.003);
        assert_near(behind, 0.3, 0.02);
    }

    /// Of x = ρ·x' + (1−ρ)·u: mean 1/2, variance (1−ρ)/(12·(1+ρ)), lag-1 autocorrelation ρ. The
    /// mean's standard deviation is √(1/(12·200000)) = 0.0007 for every ρ, that of the
    /// autocorrelation at most √(1/200000) = 0.0022.
    #[test]
    fn the_drawn_value_has_the_autocorrelation_that_was_asked() {
        for (text, rho) in [("20%", 0.2), ("50%", 0.5), ("90%", 0.9)] {
            let element = element("1%", text);
            let mut last = element.last;
            let values: Vec<f64> = (1..=PACKETS)
                .map(|number| {
                    last = element.value(last, u64::from(number), false);
                    f64::from(u32::try_from(last >> 32).unwrap()) / 2_f64.powi(32)
                })
                .collect();
            let count = f64::from(PACKETS);
            let mean = values.iter().sum::<f64>() / count;
            let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            let lagged = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
            assert_near(mean, 0.5, 0.003);
            assert_near(variance * 12.0 * (1.0 + rho) / (1.0 - rho), 1.0, 0.03);
            assert_near(lagged.sum::<f64>() / count / variance, rho, 0.01);
        }
    }

    #[test]
    fn segments_of_a_train_are_decided_like_packets_of_their_own() {
        let alone = decisions(element("30%", "60%"));
        let mut element = element("30%", "60%");
        let mut held = Vec::new();
        let mut number = 1;
        while number + 40 <= PACKETS {
            // A train of 40 segments: those in front of a held one stay together.
            let mut left = 40;
            while left > 0 {
                let first = element.first_held(u64::from(number), left, false);
                let run = first.map_or(left, |index| index.max(1));
                let decided = element.hold(u64::from(number), run, false).is_some();
                held.extend((0..run).map(|_| decided));
                (number, left) = (number + run, left - run);
            }
        }
        assert_eq!(held, alone[..held.len()]);
    }
}
