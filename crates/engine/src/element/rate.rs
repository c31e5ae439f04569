//! Rate: one segment after the other goes onto the line, each for as long as its bits take.
//!
//! - **Parameters**: the rate in bit/s (default: none, no time at all) and the overhead in bytes charged
//!   for each segment (default with a rate: Ethernet's 38).
//! - **Time**: segment i leaves at d(i) = max(d(i−1), arrival(i)) + (IP bytes + overhead)·8/rate (Lindley
//!   1952). Fractions of a nanosecond are carried on while the line is busy, so that no rate drifts. A
//!   train's segments are served as if they came singly; its first and last departures are computed
//!   at once. What would take longer than 100 µs is served in parts of at most that.
//! - **Order, bytes**: unchanged.
//! - **Drop reasons**: none; see [`queue`](super::queue).
//! - **Change**: what is in transmission keeps its end; what waits gets the new rate.
//! - **Model**: a serial line. tc-tbf(8) allows bursts; here there are none.

use windtunnel_model::{LinkProfile, Rate, Span, Time};

use crate::packet::{Packet, Shape, Times};

/// A train that a rate would spread over more than this is served in parts of at most this.
pub(crate) const SPLIT_SPACING: Span = Span::from_micros(100);

#[derive(Debug)]
pub(crate) struct Server {
    rate: Option<Rate>,
    overhead: u32,
    /// Bit·ns left over from the last transmission, less than the rate.
    carry: u64,
    free_at: Time,
    state: State,
}

#[derive(Debug)]
enum State {
    Idle,
    /// Its first segment is on the line.
    Sending(Packet, Times),
    /// The first segment has left, and with it the packet; the others occupy the line.
    Trailing(Shape, Times),
}

impl Server {
    pub(crate) fn new(profile: &LinkProfile) -> Self {
        Server {
            rate: profile.rate,
            overhead: profile.effective_overhead().0,
            carry: 0,
            free_at: Time::ZERO,
            state: State::Idle,
        }
    }

    pub(crate) fn set(&mut self, profile: &LinkProfile) {
        if self.rate != profile.rate {
            self.carry = 0;
        }
        self.rate = profile.rate;
        self.overhead = profile.effective_overhead().0;
    }

    pub(crate) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    pub(crate) fn overhead(&self) -> u32 {
        self.overhead
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Segments that it holds.
    pub(crate) fn packets(&self) -> u64 {
        match &self.state {
            State::Sending(packet, _) => u64::from(packet.shape.count),
            State::Idle | State::Trailing(..) => 0,
        }
    }

    /// How many segments of a train are served in one go.
    pub(crate) fn part(&self, shape: &Shape) -> u32 {
        let Some(rate) = self.rate else { return shape.count };
        let bytes = u64::from(shape.each) + u64::from(self.overhead);
        let fits = rate.bytes_in(SPLIT_SPACING) / bytes.max(1);
        u32::try_from(fits).unwrap_or(u32::MAX).clamp(1, shape.count)
    }

    /// The time that `count` full segments of a train take.
    pub(crate) fn time_for(&self, shape: &Shape, count: u32) -> Span {
        let bytes = u64::from(shape.each) + u64::from(self.overhead);
        self.rate.map_or(Span::ZERO, |rate| rate.time_for(u64::from(count) * bytes))
    }

    /// Starts a transmission; answers when the first segment ends, and how long the line is busy.
    pub(crate) fn begin(&mut self, packet: Packet) -> (Time, Span) {
        let Some(rate) = self.rate else {
            let times = packet.times;
            self.state = State::Sending(packet, times);
            return (times.first, Span::ZERO);
        };
        let start = self.free_at.max(packet.times.first);
        if start > self.free_at {
            self.carry = 0;
        }
        let (times, busy) = self.serve(rate, start, &packet);
        self.free_at = times.last;
        self.state = State::Sending(packet, times);
        (times.first, busy)
    }

    /// The end of what was being waited for: the packet, where its first segment has left; and when the
    /// server is to be asked again, `None` when it is idle now.
    pub(crate) fn end(&mut self) -> (Option<Packet>, Option<Time>) {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Sending(mut packet, times) => {
                packet.times = times;
                if times.last == times.first {
                    return (Some(packet), None);
                }
                self.state = State::Trailing(packet.shape, times);
                (Some(packet), Some(times.last))
            }
            State::Idle | State::Trailing(..) => (None, None),
        }
    }

    /// Segments of the train in transmission that still wait for the line at `now`, and their bytes.
    pub(crate) fn waiting(&self, now: Time) -> (u64, u64) {
        let (shape, times) = match &self.state {
            State::Idle => return (0, 0),
            State::Sending(packet, times) => (packet.shape, times),
            State::Trailing(shape, times) => (*shape, times),
        };
        let gone = ended(&shape, times, now);
        let waiting = shape.count.saturating_sub(gone + 1);
        if waiting == 0 {
            return (0, 0);
        }
        let rest = Shape { count: waiting, ..shape };
        (u64::from(waiting), rest.charge(self.overhead))
    }

    /// Departures of a train: each is the greatest of what its predecessors and its arrival allow, and
    /// as arrivals are even, the greatest is found at the ends.
    fn serve(&mut self, rate: Rate, start: Time, packet: &Packet) -> (Times, Span) {
        let (shape, at) = (packet.shape, packet.times);
        let full = u64::from(shape.each) + u64::from(self.overhead);
        let last = u64::from(shape.last) + u64::from(self.overhead);
        let ends = |from: Time, bytes: u64, mut carry: u64| {
            let time = rate.serialise(bytes, &mut carry);
            (from + time, carry)
        };
        if shape.count == 1 {
            let (end, carry) = ends(start, last, self.carry);
            self.carry = carry;
            return (Times::at_once(end), end.since(start));
        }
        let body_bytes = u64::from(shape.count - 1) * full;
        let (first, _) = ends(start, full, self.carry);
        let (body, _) = ends(start, body_bytes, self.carry);
        let (end, mut carry) = ends(start, body_bytes + last, self.carry);
        let busy = end.since(start);
        let body = body.max(ends(at.body, full, 0).0);
        let mut times = Times { first, body, last: end };
        for (late, left) in [ends(at.body, full + last, 0), ends(at.last, last, 0)] {
            if late > times.last {
                (times.last, carry) = (late, left);
            }
        }
        self.carry = carry;
        (times, busy)
    }
}

/// How many segments have left at `now`; departures are even up to the last but one.
fn ended(shape: &Shape, times: &Times, now: Time) -> u32 {
    if now < times.first {
        return 0;
    }
    if now >= times.body {
        return if now >= times.last { shape.count } else { shape.count - 1 };
    }
    let spread = u128::from(times.body.since(times.first).as_nanos());
    let passed = u128::from(now.since(times.first).as_nanos());
    let steps = passed * u128::from(shape.count - 2) / spread.max(1);
    let index = u32::try_from(steps).unwrap_or(u32::MAX).min(shape.count - 1);
    // Rounding down can be one short where `now` is just a departure.
    let next_too = times.of(index + 1, shape.count) <= now;
    index + 1 + u32::from(next_too)
}
