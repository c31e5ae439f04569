//! Values over time, held or on straight lines, and the exact time that bytes take at such a rate.
//!
//! Transmission integrates the rate: a packet that starts at s leaves at the last nanosecond t for
//! which ∫ₛᵗ rate is no more than its bits and what was left over from the packet before it; the
//! rest is carried on. The integral is kept in 10⁻⁹ bit as an integer. Where the rate is constant
//! that is exact; on a straight line it is rounded down at the two ends of what is asked, which
//! does not add up.
//!
//! Before the first row its values hold, as do the last row's after it. A trace that repeats begins
//! again at the time of its last row, whose values then hold for no time.

use alloc::sync::Arc;

use windtunnel_model::trace::{LinkTrace, TraceColumn, TraceContent, TraceSeries as Recorded};
use windtunnel_model::{Time, TraceMode, TraceUse};

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TracedProperty {
    Rate,
    Latency,
    Loss,
}

/// One column as a lane follows it.
#[derive(Debug)]
pub(crate) struct TracePlayback {
    trace: Arc<LinkTrace>,
    what: TracedProperty,
    following: TraceUse,
    origin: Time,
}

/// What lies between two times of the trace: from `from`, for `length`, from one value to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TraceInterval {
    from: u64,
    /// `None`: for ever.
    length: Option<u64>,
    first: u64,
    last: u64,
}

impl TracePlayback {
    /// `None` where the trace has no such column.
    pub(super) fn new(
        trace: Arc<LinkTrace>,
        what: TracedProperty,
        following: TraceUse,
        origin: Time,
    ) -> Option<Self> {
        let series = TracePlayback { trace, what, following, origin };
        let (times, values) = series.columns()?;
        let sound = !times.is_empty() && times.len() == values.len();
        sound.then_some(series)
    }

    /// The value at a time.
    pub(crate) fn at(&self, time: Time) -> u64 {
        let (position, _) = self.position(time);
        let step = self.step(position);
        step.value(position - step.from)
    }

    /// When `work` (in 10⁻⁹ bit) is done that begins at `start`, and what is left over for the
    /// next; `None` if the rate stays at zero before that.
    pub(crate) fn finish(&self, start: Time, work: u128) -> Option<(Time, u64)> {
        let (mut position, _) = self.position(start);
        let (mut left, mut passed) = (work, 0_u64);
        // A pass that carries nothing is followed by others that do not either.
        let mut carried = true;
        loop {
            let step = self.step(position);
            let inside = position - step.from;
            let before = step.supply(inside);
            if let Some(length) = step.length {
                let available = step.supply(length).saturating_sub(before);
                if available <= left {
                    left -= available;
                    passed = passed.checked_add(length - inside)?;
                    if left == 0 {
                        let idle = step.idle_end(inside, before + available);
                        return Some((later(start, passed - idle), 0));
                    }
                    carried |= available > 0;
                    position = step.from + length;
                    if self.following.repeat && position >= self.length() {
                        if !core::mem::replace(&mut carried, false) {
                            return None;
                        }
                        position = 0;
                    }
                    continue;
                }
            } else if step.first == 0 {
                return None;
            }
            let done = step.reach(inside, before + left);
            let rest = before + left - step.supply(done);
            passed = passed.checked_add(done - inside)?;
            return Some((later(start, passed), u64::try_from(rest).unwrap_or(0)));
        }
    }

    fn columns(&self) -> Option<(&[u64], &[u64])> {
        let TraceContent::Series(Recorded { time_ns, rate_bit_per_s, latency_ns, loss_ppb }) =
            &self.trace.content
        else {
            return None;
        };
        let column = match self.what {
            TracedProperty::Rate => rate_bit_per_s,
            TracedProperty::Latency => latency_ns,
            TracedProperty::Loss => loss_ppb,
        };
        let values: &TraceColumn = column.as_ref()?;
        Some((&time_ns.0, &values.0))
    }

    /// Where in the trace a time is, and in which pass.
    fn position(&self, time: Time) -> (u64, u64) {
        let offset = self.following.offset.as_nanos();
        let position = time.since(self.origin).as_nanos().saturating_add(offset);
        let length = self.length();
        if self.following.repeat && length > 0 {
            (position % length, position / length)
        } else {
            (position, 0)
        }
    }

    fn length(&self) -> u64 {
        self.columns().and_then(|(times, _)| times.last().copied()).unwrap_or(0)
    }

    fn step(&self, position: u64) -> TraceInterval {
        // `new` has seen that there is at least one row, and as many values as times.
        let (times, values) = self.columns().unwrap_or((&[0], &[0]));
        let next = times.partition_point(|time| *time <= position);
        match (next.checked_sub(1), times.get(next)) {
            (None, end) => {
                let length = end.copied();
                TraceInterval { from: 0, length, first: values[0], last: values[0] }
            }
            (Some(index), Some(end)) => {
                let line = self.following.mode == TraceMode::Interpolate;
                let last = if line { values[next] } else { values[index] };
                let length = Some(end - times[index]);
                TraceInterval { from: times[index], length, first: values[index], last }
            }
            (Some(index), None) => TraceInterval {
                from: times[index],
                length: None,
                first: values[index],
                last: values[index],
            },
        }
    }
}

impl TraceInterval {
    fn value(&self, inside: u64) -> u64 {
        match self.length {
            Some(length) if self.first != self.last && length > 0 => {
                let rise = i128::from(self.last) - i128::from(self.first);
                let risen = (rise * i128::from(inside)).div_euclid(i128::from(length));
                u64::try_from(i128::from(self.first) + risen).unwrap_or(0)
            }
            _ => self.first,
        }
    }

    /// The integral from the step's beginning: bit/s times ns. The scenario bounds lengths and
    /// rates so that it fits.
    fn supply(&self, inside: u64) -> u128 {
        let level = u128::from(self.first).saturating_mul(u128::from(inside));
        match self.length {
            Some(length) if self.first != self.last && length > 0 => {
                let square = u128::from(inside).saturating_mul(u128::from(inside));
                let rise = u128::from(self.first.abs_diff(self.last)).saturating_mul(square);
                let twice = 2 * u128::from(length);
                if self.last > self.first {
                    level.saturating_add(rise / twice)
                } else {
                    level.saturating_sub(rise.div_ceil(twice))
                }
            }
            _ => level,
        }
    }

    /// The last nanosecond, from `inside` on, up to which no more than `goal` is supplied; the step
    /// supplies more than that.
    fn reach(&self, inside: u64, goal: u128) -> u64 {
        if self.first == self.last {
            let steps = goal / u128::from(self.first.max(1));
            return u64::try_from(steps).unwrap_or(u64::MAX);
        }
        let (mut low, mut high) = (inside, self.length.unwrap_or(u64::MAX));
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.supply(middle) <= goal { low = middle } else { high = middle }
        }
        low
    }

    /// How long before the step's end the supply had reached `goal` already, because the rate was
    /// zero.
    fn idle_end(&self, inside: u64, goal: u128) -> u64 {
        let length = self.length.unwrap_or(inside);
        let (mut low, mut high) = (inside, length);
        if self.supply(low) >= goal {
            return length - low;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.supply(middle) >= goal { high = middle } else { low = middle }
        }
        length - high
    }
}

fn later(start: Time, nanos: u64) -> Time {
    start + windtunnel_model::Span::from_nanos(nanos)
}

#[cfg(test)]
mod tests {
    use windtunnel_model::Span;

    use super::*;

    const S: u64 = 1_000_000_000;

    fn rate(rows: &[(u64, u64)], mode: TraceMode, repeat: bool) -> TracePlayback {
        let column = |pick: fn(&(u64, u64)) -> u64| TraceColumn(rows.iter().map(pick).collect());
        let content = TraceContent::Series(Recorded {
            time_ns: column(|row| row.0),
            rate_bit_per_s: Some(column(|row| row.1)),
            latency_ns: None,
            loss_ppb: None,
        });
        let trace = Arc::new(LinkTrace { file: "x.csv".into(), content });
        let following = TraceUse { trace: 0, mode, repeat, offset: Span::ZERO };
        TracePlayback::new(trace, TracedProperty::Rate, following, Time::ZERO)
            .expect("it has a rate")
    }

    fn bits(bits: u64) -> u128 {
        u128::from(bits) * u128::from(S)
    }

    fn finish(series: &TracePlayback, start: u64, work: u128) -> Option<(u64, u64)> {
        series.finish(Time::from_nanos(start), work).map(|(at, carry)| (at.as_nanos(), carry))
    }

    #[test]
    fn held_rates_add_up_over_their_steps() {
        let series = rate(&[(0, 1000), (S, 4000)], TraceMode::Hold, false);
        // Half a second at 1000 bit/s, then 2000 bits at 4000 bit/s.
        assert_eq!(finish(&series, S / 2, bits(2500)), Some((S + S / 2, 0)));
        assert_eq!(finish(&series, 5 * S, bits(8000)), Some((7 * S, 0)));
        assert_eq!((series.at(Time::ZERO), series.at(Time::from_nanos(9 * S))), (1000, 4000));
    }

    #[test]
    fn the_unused_rest_of_a_nanosecond_is_carried() {
        let series = rate(&[(0, 3)], TraceMode::Hold, false);
        // One bit at 3 bit/s takes 333333333.3 ns: 10⁹ = 3 · 333333333 + 1.
        assert_eq!(finish(&series, 0, bits(1)), Some((333_333_333, 1)));
        assert_eq!(finish(&series, 333_333_333, bits(1) + 1), Some((666_666_666, 2)));
        assert_eq!(finish(&series, 666_666_666, bits(1) + 2), Some((S, 0)));
    }

    #[test]
    fn a_straight_line_is_integrated() {
        let series = rate(&[(0, 0), (2 * S, 2000)], TraceMode::Interpolate, false);
        // 500 bits are there when t²·1000/2 = 500: after a second.
        assert_eq!(finish(&series, 0, bits(500)), Some((S, 0)));
        // The other 1500 bits of the line, then 2000 bit/s.
        assert_eq!(finish(&series, S, bits(1500)), Some((2 * S, 0)));
        assert_eq!(finish(&series, S, bits(3500)), Some((3 * S, 0)));
        assert_eq!(series.at(Time::from_nanos(S / 2)), 500);
        let falling = rate(&[(0, 2000), (2 * S, 0)], TraceMode::Interpolate, false);
        assert_eq!(finish(&falling, 0, bits(1500)), Some((S, 0)));
        assert_eq!(finish(&falling, 0, bits(2001)), None);
    }

    #[test]
    fn an_outage_is_waited_for_and_a_packet_done_before_it_does_not_wait() {
        let rows = [(0, 1000), (S, 0), (3 * S, 1000), (4 * S, 0)];
        let series = rate(&rows, TraceMode::Hold, true);
        assert_eq!(finish(&series, 0, bits(1000)), Some((S, 0)));
        assert_eq!(finish(&series, 0, bits(1500)), Some((3 * S + S / 2, 0)));
        // 3000 bits: two in the first pass, one in the next.
        assert_eq!(finish(&series, 0, bits(3000)), Some((5 * S, 0)));
        assert_eq!(finish(&rate(&rows, TraceMode::Hold, false), 0, bits(3000)), None);
    }

    #[test]
    fn packets_one_after_the_other_take_what_they_take_together() {
        let rows = [(0, 7_000_003), (S / 3, 11), (S / 2, 999_999_937), (S, 123_457)];
        for mode in [TraceMode::Hold, TraceMode::Interpolate] {
            let series = rate(&rows, mode, true);
            let (mut now, mut carry, mut total) = (0, 0_u64, 0);
            for index in 0..300_u64 {
                let work = bits(400 + index * 37 % 12_000);
                total += work;
                (now, carry) = finish(&series, now, work + u128::from(carry)).expect("it goes on");
            }
            let (together, rest) = finish(&series, 0, total).expect("it goes on");
            // On a line each of the 300 may round by 10⁻⁹ bit: far less than a nanosecond's supply
            // here, except where 11 bit/s are reached.
            assert!(now.abs_diff(together) <= 30, "{mode:?}: {now} {together}");
            if mode == TraceMode::Hold {
                assert_eq!((now, carry), (together, rest));
            }
        }
    }
}
