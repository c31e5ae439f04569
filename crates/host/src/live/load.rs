//! What the machine's processors did while packets were late: why they were, a whole run does not
//! say.

use windtunnel_dataplane::Tally;
use windtunnel_model::{Span, Time};
use windtunnel_sys::limits::{self, CpuTickCounters};
use windtunnel_verdict::evidence::WhenLate;

/// What the processors had done, at times of a run.
#[derive(Debug, Default)]
pub(crate) struct CpuLoadHistory {
    samples: Vec<(Time, CpuTickCounters)>,
    /// The least time between two.
    every: Span,
}

impl CpuLoadHistory {
    pub(crate) fn begin(&mut self, now: Time) {
        (self.samples, self.every) = (Vec::new(), EVERY);
        self.end(now);
    }

    /// Looks at the processors, where that is due.
    pub(crate) fn sample(&mut self, now: Time) {
        if self.samples.last().is_none_or(|(last, _)| now.since(*last) >= self.every) {
            self.end(now);
        }
    }

    /// Looks at them for the last time.
    pub(crate) fn end(&mut self, now: Time) {
        if let Ok(processors) = limits::processors() {
            self.add(now, processors);
        }
    }

    fn add(&mut self, now: Time, processors: CpuTickCounters) {
        if self.samples.len() >= SAMPLES_MOST {
            // Half as often, for all of the run.
            let mut index = 0_usize;
            self.samples.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.every = self.every + self.every;
        }
        self.samples.push((now, processors));
    }

    /// What they did when packets were late, or dropped by the kernel, or the loop stood still.
    pub(crate) fn when_late(&self, tally: &Tally, origin: Time) -> WhenLate {
        let at = |time: Time| origin + time.since(Time::ZERO);
        let late = tally.late_intervals.iter().map(|late| (at(late.at), INTERVAL.max(late.max)));
        let drops = tally.kernel_drops.iter().map(|(time, _)| (at(*time), INTERVAL));
        let stalls = Some((at(tally.stalls.at), tally.stalls.longest));
        let stalls = stalls.filter(|(_, longest)| !longest.is_zero());
        let intervals: Vec<(Time, Span)> = late.chain(drops).chain(stalls).collect();
        let during = |from: Time, to: Time| {
            intervals.iter().any(|(end, lasted)| {
                let began = Time::from_nanos(end.as_nanos().saturating_sub(lasted.as_nanos()));
                began < to && *end > from
            })
        };
        let mut sum = WhenLate::default();
        for pair in self.samples.windows(2) {
            let [(from, before), (to, after)] = pair else { continue };
            if during(*from, *to) {
                sum.busy += after.busy.saturating_sub(before.busy);
                sum.idle += after.idle.saturating_sub(before.idle);
                sum.stolen += after.stolen.saturating_sub(before.stolen);
                sum.lasted = sum.lasted + to.since(*from);
            }
        }
        sum
    }
}

/// As often as packets are sampled.
const EVERY: Span = Span::from_millis(100);
/// Packets in an interval before its end are late.
const INTERVAL: Span = Span::from_millis(100);
/// A quarter of an hour; then half as often.
const SAMPLES_MOST: usize = 9_000;

#[cfg(test)]
mod tests {
    use super::*;
    use windtunnel_dataplane::LateInterval;
    use windtunnel_model::Lane;

    const ORIGIN: Time = Time::from_nanos(7_000_000_000);

    fn load(samples: &[(u64, u64, u64)]) -> CpuLoadHistory {
        let mut load = CpuLoadHistory { every: EVERY, ..CpuLoadHistory::default() };
        for &(millis, busy, stolen) in samples {
            let processors = CpuTickCounters { busy, idle: 10 * millis, stolen };
            load.add(ORIGIN + Span::from_millis(millis), processors);
        }
        load
    }

    #[test]
    fn only_what_processors_did_when_packets_were_late_counts() {
        let load = load(&[(0, 0, 0), (100, 5, 50), (200, 15, 51), (300, 30, 90)]);
        let late = |millis: u64| LateInterval {
            at: Time::from_nanos(millis * 1_000_000),
            lane: Lane::from_index(0),
            max: Span::from_millis(2),
        };
        let tally = Tally { late_intervals: vec![late(200)], ..Tally::default() };
        let lasted = Span::from_millis(100);
        let expected = WhenLate { busy: 10, idle: 1_000, stolen: 1, lasted };
        assert_eq!(load.when_late(&tally, ORIGIN), expected);
        assert_eq!(load.when_late(&Tally::default(), ORIGIN), WhenLate::default());
    }

    #[test]
    fn a_long_run_is_sampled_less_often_and_keeps_its_beginning() {
        let mut load = load(&[]);
        for sample in 0..9_001 {
            load.add(ORIGIN + Span::from_millis(sample * 100), CpuTickCounters::default());
        }
        assert_eq!((load.samples.len(), load.every), (4_501, Span::from_millis(200)));
        assert_eq!(load.samples[0].0, ORIGIN);
        assert_eq!(load.samples[1].0, ORIGIN + Span::from_millis(200));
    }
}
