//! Rate: one segment after the other goes onto the line, each for as long as its bits take.
//!
//! - **Parameters**: the rate in bit/s (default: none, no time at all), or a
//!   [`trace`](super::trace) of it; the overhead in bytes charged for each segment (default with a
//!   rate: Ethernet's 38; with delivery opportunities 4, as in mahimahi).
//! - **Time**: segment i leaves at d(i) = max(d(i−1), arrival(i)) + (IP bytes + overhead)·8/rate
//!   (Lindley 1952). Fractions of a nanosecond are carried on while the line is busy, so that no
//!   rate drifts. A train's segments are served as if they came singly; its first and last
//!   departures are computed at once. What would take longer than 100 µs is served in parts of at
//!   most that. With a trace of rates the quotient becomes an integral, and segments are served
//!   singly. With delivery opportunities what waits leaves at their instants: see
//!   [`slots`](super::trace::DeliverySlotPlayback).
//! - **Order, bytes**: unchanged.
//! - **Drop reasons**: none; see [`queue`](super::queue).
//! - **Change**: what is in transmission keeps its end; what waits gets the new rate. A packet that
//!   has used some opportunities needs only the rest; one that a trace would never let end is begun
//!   anew.
//! - **Model**: a serial line. tc-tbf(8) allows bursts; here there are none. Traces: mm-link(1),
//!   whose opportunities are not rounded to the millisecond in which a packet comes here.

mod slots;

use windtunnel_model::{LinkProfile, Rate, Span, Time, TraceUse};

use super::trace::{DeliverySlot, DeliverySlotPlayback, TracePlayback, TraceSet, TracedProperty};
use crate::packet::{EmulatedPacket, PacketTrainShape, PacketTrainTimes};

/// A train that a rate would spread over more than this is served in parts of at most this.
pub(crate) const SPLIT_SPACING: Span = Span::from_micros(100);

const BIT_NANOS_PER_BYTE: u128 = 8 * 1_000_000_000;

#[derive(Debug)]
pub(crate) struct LaneTransmitter {
    /// With a trace, its mean.
    rate: Option<Rate>,
    supply: LineRateSource,
    following: Option<TraceUse>,
    overhead: u32,
    /// Bit·ns left over from the last transmission, less than the rate.
    carry: u64,
    free_at: Time,
    /// When the last transmission began.
    began: Time,
    state: TransmitterState,
    /// A packet whose transmission is not settled yet, and the bytes that it still needs.
    pending: Option<(EmulatedPacket, u64)>,
}

/// Where the rate comes from.
#[derive(Debug)]
enum LineRateSource {
    Steady,
    Varying(TracePlayback),
    /// With the instant that is being waited for.
    Slots(DeliverySlotPlayback, Option<DeliverySlot>),
}

#[derive(Debug)]
enum TransmitterState {
    Idle,
    /// Its first segment is on the line.
    Sending(EmulatedPacket, PacketTrainTimes),
    /// The first segment has left, and with it the packet; the others occupy the line.
    Trailing(PacketTrainShape, PacketTrainTimes),
}

impl LaneTransmitter {
    pub(crate) fn new(profile: &LinkProfile) -> Self {
        LaneTransmitter {
            rate: profile.rate,
            supply: LineRateSource::Steady,
            following: None,
            overhead: profile.effective_overhead().0,
            carry: 0,
            free_at: Time::ZERO,
            began: Time::ZERO,
            state: TransmitterState::Idle,
            pending: None,
        }
    }

    /// For a lane whose rate is applied elsewhere: only the overhead is its own.
    pub(crate) fn without_rate(profile: &LinkProfile) -> Self {
        LaneTransmitter { rate: None, ..LaneTransmitter::new(profile) }
    }

    pub(crate) fn set(&mut self, profile: &LinkProfile) {
        if self.rate != profile.rate {
            self.carry = 0;
        }
        self.rate = profile.rate;
        self.overhead = profile.effective_overhead().0;
    }

    /// Serves what begins from now on at this rate.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        if self.rate != Some(rate) {
            self.rate = Some(rate);
            self.carry = 0;
        }
    }

    /// Puts a transmission off whose first segment would end before `earliest`; when it ends now.
    pub(crate) fn hold(&mut self, first: Time, earliest: Time) -> Time {
        let later = earliest.since(first);
        if let TransmitterState::Sending(_, times) = &mut self.state
            && !later.is_zero()
        {
            *times = times.map(|time| time + later);
            self.free_at = times.last;
            self.carry = 0;
        }
        first.max(earliest)
    }

    /// How many bytes of the train in transmission have left at `now`.
    pub(crate) fn sent(&self, now: Time) -> u64 {
        let (shape, last) = match &self.state {
            TransmitterState::Idle => return 0,
            TransmitterState::Sending(packet, times) => (&packet.shape, times.last),
            TransmitterState::Trailing(shape, times) => (shape, times.last),
        };
        let bytes = shape.charge(self.overhead);
        let passed = u128::from(now.since(self.began).as_nanos());
        let whole = u128::from(last.since(self.began).as_nanos());
        let sent = u128::from(bytes) * passed / whole.max(1);
        u64::try_from(sent).unwrap_or(u64::MAX).min(bytes)
    }

    /// The end of the packet in transmission, if that is after `now`, and its bytes.
    pub(crate) fn sending(&self, now: Time) -> Option<(Time, u64)> {
        let TransmitterState::Sending(packet, times) = &self.state else { return None };
        (times.first > now).then(|| (times.first, packet.shape.charge(self.overhead)))
    }

    /// Sends what is left of the packet in transmission, begun at the rate `from`, at the rate
    /// `to`; when it ends then.
    pub(crate) fn go_on(&mut self, now: Time, from: Rate, to: Rate) -> Time {
        let TransmitterState::Sending(_, times) = &mut self.state else { return now };
        let scaled = |time: Time| {
            let left = u128::from(time.since(now).as_nanos()) * u128::from(from.bits_per_second());
            let left = left.div_ceil(u128::from(to.bits_per_second()));
            now + Span::from_nanos(u64::try_from(left).unwrap_or(u64::MAX))
        };
        *times = times.map(scaled);
        self.free_at = times.last;
        self.carry = 0;
        times.first
    }

    /// Takes the trace that `profile` names from `now` on, or none; without a `now` all traces have
    /// started again.
    pub(crate) fn follow(&mut self, profile: &LinkProfile, traces: &TraceSet, now: Option<Time>) {
        if self.following == profile.traces.rate && now.is_some() {
            return;
        }
        self.following = profile.traces.rate;
        self.carry = 0;
        self.supply = match traces.slots(self.following) {
            Some(slots) => LineRateSource::Slots(slots, None),
            None => match traces.series(self.following, TracedProperty::Rate) {
                Some(series) => LineRateSource::Varying(series),
                None => LineRateSource::Steady,
            },
        };
        if matches!(&self.state, TransmitterState::Sending(_, times) if times.first == Time::MAX)
            && let TransmitterState::Sending(packet, _) =
                core::mem::replace(&mut self.state, TransmitterState::Idle)
        {
            let bytes = packet.shape.charge(self.overhead);
            self.pending = Some((packet, bytes));
        }
        // What waited for an opportunity, or for ever, begins now.
        if self.is_idle() {
            self.free_at = now.unwrap_or(Time::ZERO);
        }
    }

    /// Whether the line would take a packet at once.
    pub(crate) fn is_free(&self) -> bool {
        self.is_idle() && self.pending.is_none() && !self.has_slots()
    }

    pub(crate) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    pub(crate) fn overhead(&self) -> u32 {
        self.overhead
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, TransmitterState::Idle)
    }

    /// Segments that it holds.
    pub(crate) fn packets(&self) -> u64 {
        let pending = self.pending.as_ref().map_or(0, |(packet, _)| u64::from(packet.shape.count));
        match &self.state {
            TransmitterState::Sending(packet, _) => pending + u64::from(packet.shape.count),
            TransmitterState::Idle | TransmitterState::Trailing(..) => pending,
        }
    }

    /// The number of the packet that it holds.
    pub(crate) fn number(&self) -> Option<u64> {
        let pending = self.pending.as_ref().map(|(packet, _)| packet.number);
        match &self.state {
            TransmitterState::Sending(packet, _) => Some(packet.number),
            TransmitterState::Idle | TransmitterState::Trailing(..) => pending,
        }
    }

    /// How many segments of a train are served in one go.
    pub(crate) fn part(&self, shape: &PacketTrainShape) -> u32 {
        let Some(rate) = self.rate else { return shape.count };
        if shape.count == 1 {
            return 1;
        }
        if !matches!(self.supply, LineRateSource::Steady) {
            return 1;
        }
        let bytes = u64::from(shape.each) + u64::from(self.overhead);
        let fits = rate.bytes_in(SPLIT_SPACING) / bytes.max(1);
        u32::try_from(fits).unwrap_or(u32::MAX).clamp(1, shape.count)
    }

    /// The time that `count` full segments of a train take.
    pub(crate) fn time_for(&self, shape: &PacketTrainShape, count: u32) -> Span {
        if count == 0 {
            return Span::ZERO;
        }
        let bytes = u64::from(shape.each) + u64::from(self.overhead);
        self.rate.map_or(Span::ZERO, |rate| rate.time_for(u64::from(count) * bytes))
    }

    /// Whether a packet that begins at `now` follows the one before it without a gap, all of its
    /// segments.
    pub(crate) fn follows(&self, now: Time, packet: &EmulatedPacket) -> bool {
        self.free_at == now && now > Time::ZERO && packet.times.last <= now
    }

    /// Starts a transmission; answers when the first segment ends, and how long the line is busy.
    pub(crate) fn begin(&mut self, packet: EmulatedPacket) -> (Time, Span) {
        let bytes = packet.shape.charge(self.overhead);
        self.begin_rest(packet, bytes)
    }

    /// As `begin`, for a packet of which only `bytes` are left to be sent.
    pub(crate) fn begin_rest(&mut self, mut packet: EmulatedPacket, bytes: u64) -> (Time, Span) {
        let Some(rate) = self.rate else {
            packet.sent = packet.times.first;
            let times = packet.times;
            self.state = TransmitterState::Sending(packet, times);
            return (times.first, Span::ZERO);
        };
        let start = self.free_at.max(packet.times.first);
        packet.sent = start;
        self.began = start;
        if start > self.free_at {
            self.carry = 0;
        }
        let (times, busy) = match &self.supply {
            LineRateSource::Varying(series) => {
                let work = u128::from(bytes) * BIT_NANOS_PER_BYTE + u128::from(self.carry);
                let (end, carry) = series.finish(start, work).unwrap_or((Time::MAX, 0));
                self.carry = carry;
                // A line that never ends is not busy but dead.
                let busy = if end == Time::MAX { Span::ZERO } else { end.since(start) };
                (PacketTrainTimes::at_once(end), busy)
            }
            _ => self.serve(rate, start, &packet, bytes),
        };
        self.free_at = times.last;
        self.state = TransmitterState::Sending(packet, times);
        (times.first, busy)
    }

    /// The end of what was being waited for: the packet, where its first segment has left; and when
    /// the server is to be asked again, `None` when it is idle now.
    pub(crate) fn end(&mut self) -> (Option<EmulatedPacket>, Option<Time>) {
        match core::mem::replace(&mut self.state, TransmitterState::Idle) {
            TransmitterState::Sending(mut packet, times) => {
                packet.times = times;
                if times.last == times.first {
                    return (Some(packet), None);
                }
                self.state = TransmitterState::Trailing(packet.shape, times);
                (Some(packet), Some(times.last))
            }
            TransmitterState::Idle | TransmitterState::Trailing(..) => (None, None),
        }
    }

    /// Segments of the train in transmission that still wait for the line at `now`, and their
    /// bytes.
    pub(crate) fn waiting(&self, now: Time) -> (u64, u64) {
        let (shape, times) = match &self.state {
            TransmitterState::Idle => return (0, 0),
            TransmitterState::Sending(packet, times) => (packet.shape, times),
            TransmitterState::Trailing(shape, times) => (*shape, times),
        };
        let gone = ended(&shape, times, now);
        let waiting = shape.count.saturating_sub(gone + 1);
        if waiting == 0 {
            return (0, 0);
        }
        let rest = PacketTrainShape { count: waiting, ..shape };
        (u64::from(waiting), rest.charge(self.overhead))
    }

    /// Departures of a train: each is the greatest of what its predecessors and its arrival allow,
    /// and as arrivals are even, the greatest is found at the ends.
    fn serve(
        &mut self,
        rate: Rate,
        start: Time,
        packet: &EmulatedPacket,
        bytes: u64,
    ) -> (PacketTrainTimes, Span) {
        let (shape, at) = (packet.shape, packet.times);
        let full = u64::from(shape.each) + u64::from(self.overhead);
        let last = u64::from(shape.last) + u64::from(self.overhead);
        let ends = |from: Time, bytes: u64, mut carry: u64| {
            let time = rate.serialise(bytes, &mut carry);
            (from + time, carry)
        };
        if shape.count == 1 {
            let (end, carry) = ends(start, bytes, self.carry);
            self.carry = carry;
            return (PacketTrainTimes::at_once(end), end.since(start));
        }
        let body_bytes = u64::from(shape.count - 1) * full;
        let (first, _) = ends(start, full, self.carry);
        let (body, _) = ends(start, body_bytes, self.carry);
        let (end, mut carry) = ends(start, body_bytes + last, self.carry);
        let busy = end.since(start);
        let body = body.max(ends(at.body, full, 0).0);
        let mut times = PacketTrainTimes { first, body, last: end };
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
fn ended(shape: &PacketTrainShape, times: &PacketTrainTimes, now: Time) -> u32 {
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
