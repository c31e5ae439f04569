//! From the kernel's arrival stamps (CLOCK_REALTIME) to the run's clock (CLOCK_MONOTONIC).

use windtunnel_model::Time;
use windtunnel_sys::clock;

/// Converts stamps; what it returns never decreases and is never in the future.
///
/// The two clocks' distance is read once a turn. If somebody sets the machine's clock between a stamp and
/// its conversion, the stamp is wrong by that step; the bounds keep the error below one turn of the loop.
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
        let monotonic = clock::monotonic_ns();
        self.distance_ns = i128::from(clock::realtime_ns()) - i128::from(monotonic);
        self.now = Time::from_nanos(monotonic);
    }

    /// The present, as of the last reading.
    pub(super) fn present(&self) -> Time {
        self.now
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
}
