//! From the kernel's arrival stamps (CLOCK_REALTIME) to the run's clock (CLOCK_MONOTONIC).

use windtunnel_model::Time;
use windtunnel_sys::clock;

/// Converts stamps; no time that it returns is in the future.
///
/// The two clocks' distance is read once a turn. If the machine's clock is set between a
/// stamp and its conversion, the stamp is wrong by that step: it counts for nothing then.
#[derive(Debug)]
pub(super) struct ArrivalClock {
    /// Realtime minus monotonic, in nanoseconds.
    distance_ns: i128,
    now: Time,
    last: Time,
    /// Stamps from here on are of the clock as it is set now.
    set_at: Time,
}

/// When a packet came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PacketArrival {
    /// By its stamp: when its node's device handed it to the kernel.
    pub(super) sent: Time,
    /// When the engine takes it: later where it has caught up with a later time already, as the kernel
    /// hands the packets of different devices over on different processors. This never decreases.
    pub(super) at: Time,
}

impl ArrivalClock {
    pub(super) fn new() -> Self {
        let start = Time::ZERO;
        let mut clock = ArrivalClock { distance_ns: 0, now: start, last: start, set_at: start };
        clock.update();
        clock.set_at = Time::ZERO;
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
        let (mut closest_ns, before_ns, read_at) = (u64::MAX, self.distance_ns, self.now);
        for _ in 0..TRIES {
            let (before, real, after) = (monotonic(), realtime(), monotonic());
            self.now = Time::from_nanos(after);
            let apart_ns = after.saturating_sub(before);
            if apart_ns < closest_ns {
                closest_ns = apart_ns;
                self.distance_ns = i128::from(real) - i128::from(after);
            }
            if closest_ns <= CLOSE_NS {
                break;
            }
        }
        // A clock that is kept in step runs less than a thousandth faster or slower (adjtimex(2)).
        let drift_ns = u128::from(self.now.since(read_at).as_nanos() / 1000) + STEP_NS;
        if self.distance_ns.abs_diff(before_ns) > drift_ns {
            self.set_at = self.now;
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
    pub(super) fn convert(&mut self, stamp_ns: u64) -> PacketArrival {
        let converted = u64::try_from(i128::from(stamp_ns) - self.distance_ns).unwrap_or(0);
        let converted = Time::from_nanos(converted);
        if converted > self.now {
            // It came in after the clocks were read, or the clock was set.
            self.now = Time::from_nanos(clock::monotonic_ns());
        }
        let sent = converted.min(self.now);
        self.last = self.last.max(sent);
        let sent = if sent < self.set_at { self.last } else { sent };
        PacketArrival { sent, at: self.last }
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
/// A clock that moves by more between two readings was set.
const STEP_NS: u128 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: u64 = 3_600_000_000_000;

    #[test]
    fn the_engines_time_never_goes_back_nor_ahead_of_the_present_even_when_the_clock_is_set() {
        let mut arrivals = ArrivalClock::new();
        let first = arrivals.convert(clock::realtime_ns()).at;
        let set_back = arrivals.convert(clock::realtime_ns() - HOUR_NS).at;
        let set_ahead = arrivals.convert(clock::realtime_ns() + HOUR_NS).at;
        assert!(first <= set_back && set_back <= set_ahead);
        assert!(set_ahead <= Time::from_nanos(clock::monotonic_ns()));
    }

    #[test]
    fn a_stamp_keeps_its_distance_from_the_present() {
        let mut arrivals = ArrivalClock::new();
        let stamp = clock::realtime_ns() - 5_000_000;
        let age = Time::from_nanos(clock::monotonic_ns()).since(arrivals.convert(stamp).sent);
        assert!(age.as_nanos() >= 4_000_000, "{age}");
    }

    #[test]
    fn a_packet_that_comes_after_a_later_one_keeps_its_own_time() {
        let mut arrivals = ArrivalClock::new();
        let now = clock::realtime_ns();
        let later = arrivals.convert(now - 1_000);
        let sooner = arrivals.convert(now - 50_000);
        assert_eq!(later.sent, later.at);
        assert_eq!((sooner.at, later.at.since(sooner.sent).as_nanos()), (later.at, 49_000));
    }

    #[test]
    fn stamps_from_before_the_clock_was_set_count_for_nothing() {
        const SECOND: u64 = 1_000_000_000;
        let start = Time::from_nanos(SECOND);
        let mut arrivals =
            ArrivalClock { distance_ns: 0, now: start, last: start, set_at: Time::ZERO };
        let ahead = 2 * SECOND + HOUR_NS;
        arrivals.update_from(|| 2 * SECOND, || ahead);
        // Taken a second before, by the clock as it was then: an hour ago by what it is now.
        let old = arrivals.convert(SECOND);
        assert_eq!((old.sent, old.at), (start, start));
        let new = arrivals.convert(ahead);
        assert_eq!(new.sent, Time::from_nanos(2 * SECOND));
    }

    #[test]
    fn a_processor_lost_between_the_readings_makes_no_stamp_early() {
        const REALTIME_AHEAD: u64 = 1_000_000_000;
        let instants = std::cell::RefCell::new([0u64, 500_000, 900_000].into_iter().cycle());
        let next = || instants.borrow_mut().next().unwrap();
        let start = Time::ZERO;
        let mut arrivals = ArrivalClock { distance_ns: 0, now: start, last: start, set_at: start };
        arrivals.update_from(next, || next() + REALTIME_AHEAD);
        for instant in [0, 500_000, 900_000] {
            let stamp = i128::from(instant + REALTIME_AHEAD) - arrivals.distance_ns;
            assert!(stamp >= i128::from(instant), "{stamp} is before {instant}");
        }
    }
}
