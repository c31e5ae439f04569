//! Refused connections, reported without a line for each: any stranger can cause refusals.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use windtunnel_model::{Span, Time};

/// Recent refusals.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// When the first of them was.
    since: Option<Time>,
    /// Those that were reported one by one.
    reported: BTreeSet<(IpAddr, String)>,
    /// Those that were not.
    unreported: u64,
    addresses: BTreeSet<IpAddr>,
}

/// Refusals that were not reported one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SuppressedRefusals {
    pub(super) refusals: u64,
    /// Of how many addresses, at least.
    pub(super) addresses: usize,
    pub(super) within: Span,
}

impl Refusals {
    /// A connection is refused. Returns whether that is to be reported now.
    pub(super) fn add(&mut self, from: SocketAddr, why: &str, now: Time) -> bool {
        self.since.get_or_insert(now);
        let key = (from.ip(), why.to_owned());
        if self.reported.len() < LINES_MAX && self.reported.insert(key) {
            return true;
        }
        self.unreported = self.unreported.saturating_add(1);
        if self.addresses.len() < ADDRESSES_MAX {
            self.addresses.insert(from.ip());
        }
        false
    }

    /// Those that were not reported one by one, when it is time for that.
    pub(super) fn take(&mut self, now: Time) -> Option<SuppressedRefusals> {
        let since = self.since.filter(|since| now.since(*since) >= TOGETHER)?;
        let before = std::mem::take(self);
        let (refusals, addresses) = (before.unreported, before.addresses.len());
        (refusals > 0).then_some(SuppressedRefusals {
            refusals,
            addresses,
            within: now.since(since),
        })
    }

    /// When [`Refusals::take`] may have something.
    pub(super) fn due(&self) -> Option<Time> {
        self.since.map(|since| since + TOGETHER)
    }
}

/// Lines for so long.
const LINES_MAX: usize = 5;
const TOGETHER: Span = Span::from_secs(10);
/// Addresses that are counted.
const ADDRESSES_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Time {
        Time::ZERO + Span::from_secs(second)
    }

    fn from(last: u8, port: u16) -> SocketAddr {
        ([10, 0, 0, last], port).into()
    }

    #[test]
    fn the_first_refusals_are_reported_one_by_one_and_the_rest_as_a_number() {
        let mut refusals = Refusals::default();
        let reported = (0..37).filter(|n| refusals.add(from(*n, 9), "no key", at(1))).count();
        assert_eq!((reported, refusals.take(at(5))), (5, None));
        let more = SuppressedRefusals { refusals: 32, addresses: 32, within: Span::from_secs(10) };
        assert_eq!(refusals.take(at(11)), Some(more));
        assert!(refusals.add(from(9, 1), "no key", at(12)));
        assert_eq!((refusals.take(at(60)), refusals.due()), (None, None));
    }

    #[test]
    fn repeated_refusals_of_one_address_are_reported_once() {
        let mut refusals = Refusals::default();
        let reported = (0..1000).filter(|n| refusals.add(from(1, *n), "no key", at(1))).count();
        assert_eq!(reported, 1);
        assert!(refusals.add(from(1, 1), "another version", at(2)));
        let more = SuppressedRefusals { refusals: 999, addresses: 1, within: Span::from_secs(10) };
        assert_eq!((refusals.due(), refusals.take(at(11))), (Some(at(11)), Some(more)));
    }

    #[test]
    fn a_flood_from_countless_addresses_takes_bounded_memory() {
        let mut refusals = Refusals::default();
        for number in 0..5000_u32 {
            let address = std::net::Ipv4Addr::from_bits(number);
            refusals.add((address, 1).into(), "no key", at(1));
        }
        let more =
            SuppressedRefusals { refusals: 4995, addresses: 1000, within: Span::from_secs(10) };
        assert_eq!(refusals.take(at(11)), Some(more));
        assert_eq!((refusals.due(), refusals.take(at(100))), (None, None));
    }
}
