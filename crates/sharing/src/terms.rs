//! What is known of a flow beside its path.

use windtunnel_model::{Bytes, Rate, Span};

/// The terms on which a flow takes part: they may change while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The round-trip time of the path, without queues.
    pub rtt: Span,
    /// The bytes that the flow may have in flight (for TCP, the window): it never goes faster than
    /// a window a round trip. `None`: no bound.
    pub window: Option<Bytes>,
    /// What the flow wants, in bits a second of the wire; what is left of its share goes to
    /// others. `None`: all that it can get. [`Appetite`](crate::Appetite) finds it from what a
    /// flow uses.
    pub demand: Option<Rate>,
}

impl Terms {
    /// A flow with this round-trip time that wants all that it can get.
    #[must_use]
    pub const fn new(rtt: Span) -> Self {
        Terms { rtt, window: None, demand: None }
    }

    /// The same with a window.
    #[must_use]
    pub const fn with_window(self, window: Bytes) -> Self {
        Terms { window: Some(window), ..self }
    }

    /// The same with a demand.
    #[must_use]
    pub const fn with_demand(self, demand: Rate) -> Self {
        Terms { demand: Some(demand), ..self }
    }

    /// What the window allows: a window a round trip (SplayNet, section 3.2: ρ ≤ W/RTT), rounded
    /// down to a bit a second, but never to nothing. `None` without a window, or when the round
    /// trip takes no time.
    #[must_use]
    pub fn window_rate(&self) -> Option<Rate> {
        const BIT_NANOS_PER_BYTE: u128 = 8 * 1_000_000_000;
        let bits = u128::from(self.window?.0) * BIT_NANOS_PER_BYTE;
        let rate = bits.checked_div(u128::from(self.rtt.as_nanos()))?;
        Rate::from_bits_per_second(u64::try_from(rate).unwrap_or(u64::MAX).max(1))
    }

    /// The lesser of the demand and of what the window allows: the *ceiling* of the flow.
    #[must_use]
    pub fn ceiling(&self) -> Option<Rate> {
        match (self.demand, self.window_rate()) {
            (Some(demand), Some(window)) => Some(demand.min(window)),
            (demand, window) => demand.or(window),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(terms: &Terms) -> Option<u64> {
        terms.ceiling().map(Rate::bits_per_second)
    }

    #[test]
    fn a_window_a_round_trip_is_the_most() {
        let terms = Terms::new(Span::from_millis(100)).with_window(Bytes(65_536));
        assert_eq!(rate(&terms), Some(5_242_880));
        let third = Terms { rtt: Span::from_millis(300), ..terms };
        assert_eq!(rate(&third), Some(1_747_626), "1 747 626.67, rounded down");
    }

    #[test]
    fn the_lesser_of_window_and_demand_is_the_ceiling() {
        let terms = Terms::new(Span::from_millis(100));
        assert_eq!(rate(&terms), None);
        let demand: Rate = "1mbit".parse().unwrap();
        assert_eq!(rate(&terms.with_demand(demand)), Some(1_000_000));
        assert_eq!(rate(&terms.with_demand(demand).with_window(Bytes(65_536))), Some(1_000_000));
        assert_eq!(rate(&terms.with_demand(demand).with_window(Bytes(1_250))), Some(100_000));
    }

    #[test]
    fn odd_windows_and_round_trips_have_a_rate() {
        assert_eq!(rate(&Terms::new(Span::ZERO).with_window(Bytes(1))), None);
        assert_eq!(rate(&Terms::new(Span::from_secs(9)).with_window(Bytes(0))), Some(1));
        let huge = Terms::new(Span::from_nanos(1)).with_window(Bytes(u64::MAX));
        assert_eq!(rate(&huge), Some(u64::MAX));
    }
}
