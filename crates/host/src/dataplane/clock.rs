//! From the kernel's arrival stamps (CLOCK_REALTIME) to the run's clock (CLOCK_MONOTONIC).

use windtunnel_model::Time;
use windtunnel_sys::clock;

/// Converts stamps; what it returns never decreases and is never in the future.
///
/// The two clocks' distance is read once a turn. If the machine's clock is set between a
/// stamp and its conversion, the stamp is wrong by that step; the bounds keep the error below one
/// turn of the loop.
#[derive(Debug)]
pub(super) struct ArrivalClock {
    /// Realtime minus monotonic, in nanoseconds.
    distance_ns: i128,
    now: Time,
    last: Time,
}

impl ArrivalClock {
    pub(super) fn new() -> Self {
        let mut clock = ArrivalClock { distance_ns: 0, now: Time::ZERO, last: Time::ZERO };
        clock.update();
        clock
    }

    /// Reads both clocks.
    pub(super) fn update(&mut self) {
        self.update_from(clock::monotonic_ns, clock::realtime_ns);
    }

    /// A processor lost between two readings would move all stamps of a turn. Of a few tries the
    /// closest counts, and what is left of the error makes stamps later: no packet may leave
    /// before its time.
    fn update_from(
        &mut self,
        mut monotonic: impl FnMut() -> u64,
        mut realtime: impl FnMut() -> u64,
    ) {
        let mut closest_ns = u64::MAX;
        for _ in 0..TRIES {
            let (before, real, after) = (monotonic(), realtime(), monotonic());
            self.now = Time::from_nanos(after);
            let apart_ns = after.saturating_sub(before);
            if apart_ns < closest_ns {
                closest_ns = apart_ns;
                self.distance_ns = i128::from(real) - i128::from(after);
            }
            if closest_ns <= CLOSE_NS {
                return;
            }
        }
    }

    /// The present, as of the last reading.
    pub(super) fn present(&self) -> Time {
        self.now
    }

    /// The latest time that was given out: what the engine has caught up with.
    pub(super) fn last(&self) -> Time {
        self.last
    }

    /// A stamp on the run's clock.
    pub(super) fn convert(&mut self, stamp_ns: u64) -> Time {
        let converted = u64::try_from(i128::from(stamp_ns) - self.distance_ns).unwrap_or(0);
        let converted = Time::from_nanos(converted);
        if converted > self.now {
            // It came in after the clocks were read, or the clock was set.
            self.now = Time::from_nanos(clock::monotonic_ns());
        }
        self.last = converted.min(self.now).max(self.last);
        self.last
    }

    /// `time`, or the last stamp if that is later; later stamps will not be before it.
    pub(super) fn not_before(&mut self, time: Time) -> Time {
        self.last = self.last.max(time);
        self.last
    }
}

const TRIES: usize = 4;
/// Two system calls without the vDSO; with it, readings take some 30 ns.
const CLOSE_NS: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_never_go_back_nor_ahead_of_the_present_even_when_the_clock_is_set() {
        let mut arrivals = ArrivalClock::new();
        let first = arrivals.convert(clock::realtime_ns());
        let hour_ns = 3_600_000_000_000;
        let set_back = arrivals.convert(clock::realtime_ns() - hour_ns);
        let set_ahead = arrivals.convert(clock::realtime_ns() + hour_ns);
        assert!(first <= set_back && set_back <= set_ahead);
        assert!(set_ahead <= Time::from_nanos(clock::monotonic_ns()));
    }

    #[test]
    fn a_stamp_keeps_its_distance_from_the_present() {
        let mut arrivals = ArrivalClock::new();
        let stamp = clock::realtime_ns() - 5_000_000;
        let age = Time::from_nanos(clock::monotonic_ns()).since(arrivals.convert(stamp));
        assert!(age.as_nanos() >= 4_000_000, "{age}");
    }

    #[test]
    fn a_processor_lost_between_the_readings_makes_no_stamp_early() {
        const REALTIME_AHEAD: u64 = 1_000_000_000;
        let instants = std::cell::RefCell::new([0u64, 500_000, 900_000].into_iter().cycle());
        let next = || instants.borrow_mut().next().unwrap();
        let mut arrivals = ArrivalClock { distance_ns: 0, now: Time::ZERO, last: Time::ZERO };
        arrivals.update_from(next, || next() + REALTIME_AHEAD);
        for instant in [0, 500_000, 900_000] {
            let stamp = i128::from(instant + REALTIME_AHEAD) - arrivals.distance_ns;
            assert!(stamp >= i128::from(instant), "{stamp} is before {instant}");
        }
    }
}
