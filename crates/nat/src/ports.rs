//! Which external port a new mapping gets (RFC 4787, 4.2).

use core::ops::RangeInclusive;

use windtunnel_model::plan::{PortAllocation, PortRange};
use windtunnel_model::random::RandomStream;

/// Chooses ports.
#[derive(Debug)]
pub(crate) struct PortAllocator {
    allocation: PortAllocation,
    range: Option<PortRange>,
    draws: RandomStream,
    drawn: u64,
    /// The last that was chosen.
    last: Option<u16>,
}

impl PortAllocator {
    pub(crate) fn new(
        allocation: PortAllocation,
        range: Option<PortRange>,
        draws: RandomStream,
    ) -> Self {
        PortAllocator { allocation, range, draws, drawn: 0, last: None }
    }

    /// A port for which `is_free` holds, for an internal one; `None`: there is none.
    ///
    /// A port below 1024 gets such a one, another another (REQ-3), unless a range is given. An even
    /// port gets an even one where one is left (REQ-4), but not in sequence.
    pub(crate) fn choose(&mut self, internal: u16, is_free: impl Fn(u16) -> bool) -> Option<u16> {
        let range = match self.range {
            Some(range) => range.first..=range.last,
            None if internal < 1024 => 1..=1023,
            None => 1024..=u16::MAX,
        };
        let chosen = match self.allocation {
            PortAllocation::Preserve if range.contains(&internal) && is_free(internal) => {
                Some(internal)
            }
            PortAllocation::Preserve | PortAllocation::Random => {
                let start = self.draw(&range);
                let parity = |port: &u16| port % 2 == internal % 2 && is_free(*port);
                from(&range, start)
                    .find(parity)
                    .or_else(|| from(&range, start).find(|port| is_free(*port)))
            }
            PortAllocation::Sequential => {
                let last = self.last.filter(|port| range.contains(port));
                let start = match last {
                    Some(last) if last < *range.end() => last + 1,
                    Some(_) => *range.start(),
                    None => self.draw(&range),
                };
                from(&range, start).find(|port| is_free(*port))
            }
        };
        self.last = chosen.or(self.last);
        chosen
    }

    /// A port of a range, each as likely as any other.
    fn draw(&mut self, range: &RangeInclusive<u16>) -> u16 {
        let count = u64::from(range.end() - range.start()) + 1;
        let draw = self.draws.at(self.drawn);
        self.drawn += 1;
        let offset = (u128::from(draw) * u128::from(count)) >> 64;
        range.start() + u16::try_from(offset).unwrap_or(0)
    }
}

/// All ports of a range, beginning in its middle.
fn from(range: &RangeInclusive<u16>, start: u16) -> impl Iterator<Item = u16> + use<> {
    (start..=*range.end()).chain(*range.start()..start)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn ports(allocation: PortAllocation, range: Option<(u16, u16)>) -> PortAllocator {
        let range = range.map(|(first, last)| PortRange { first, last });
        PortAllocator::new(allocation, range, RandomStream::named(1, &["test"]))
    }

    #[test]
    fn every_port_of_a_range_is_given_once_those_of_the_same_parity_first() {
        for allocation in [PortAllocation::Preserve, PortAllocation::Random] {
            let mut ports = ports(allocation, Some((40_000, 40_009)));
            let mut given = BTreeSet::new();
            for number in 0..10 {
                let port = ports.choose(5000, |port| !given.contains(&port)).unwrap();
                assert_eq!(port % 2, u16::from(number >= 5), "{number}: {port}");
                given.insert(port);
            }
            assert_eq!(given.len(), 10);
            assert_eq!(ports.choose(5000, |port| !given.contains(&port)), None);
        }
    }

    #[test]
    fn a_sequence_goes_up_one_by_one_and_round() {
        let mut ports = ports(PortAllocation::Sequential, Some((10, 13)));
        let first = ports.choose(9000, |_| true).unwrap();
        for step in 1..8 {
            let next = 10 + (first - 10 + step) % 4;
            assert_eq!(ports.choose(9000, |_| true), Some(next));
        }
    }

    #[test]
    fn ports_below_1024_stay_below() {
        let mut ports = ports(PortAllocation::Preserve, None);
        assert_eq!(ports.choose(500, |_| true), Some(500));
        for _ in 0..100 {
            assert!(ports.choose(500, |port| port != 500).unwrap() < 1024);
            assert!(ports.choose(5000, |port| port != 5000).unwrap() >= 1024);
        }
    }
}
