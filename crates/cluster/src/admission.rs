//! How many handshakes may be unfinished: strangers without the key can begin them, so their cost
//! is bounded, altogether and for each address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// Handshakes that are not finished.
#[derive(Debug, Default)]
pub(crate) struct HandshakeAdmission {
    all: usize,
    /// By address, or the /64 of which one machine has many addresses (RFC 4291, 2.5.4).
    by: BTreeMap<IpAddr, usize>,
}

/// What is done with a beginning connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandshakeDecision {
    /// Its handshake goes on; [`HandshakeAdmission::leave`] follows when it is over.
    Admit,
    /// Its address has to be proven first (RFC 9000, 8.1.2), which costs nothing to remember.
    Prove,
    /// There are too many.
    Refuse,
}

impl HandshakeAdmission {
    /// `is_proven`: the peer receives at that address. `is_crowded`: many connections are open.
    pub(crate) fn decide(
        &mut self,
        from: IpAddr,
        is_proven: bool,
        is_crowded: bool,
    ) -> HandshakeDecision {
        let from = group(from);
        let own = self.by.get(&from).copied().unwrap_or(0);
        let many = self.all >= UNPROVEN_MAX || own >= UNPROVEN_OF_ADDRESS_MAX || is_crowded;
        if many && !is_proven {
            return HandshakeDecision::Prove;
        }
        if self.all >= HALF_OPEN_MAX || own >= HALF_OPEN_OF_ADDRESS_MAX {
            return HandshakeDecision::Refuse;
        }
        self.all += 1;
        *self.by.entry(from).or_default() += 1;
        HandshakeDecision::Admit
    }

    /// A handshake is over, however it went.
    pub(crate) fn leave(&mut self, from: IpAddr) {
        let from = group(from);
        self.all = self.all.saturating_sub(1);
        if let Some(own) = self.by.get_mut(&from) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                self.by.remove(&from);
            }
        }
    }

    /// How many are not finished.
    #[cfg(test)]
    pub(crate) fn half_open(&self) -> usize {
        self.all
    }
}

fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

/// Handshakes that are not finished, altogether and of one address: each holds 44 kB
/// (`examples/handshake-cost.rs`).
pub(crate) const HALF_OPEN_MAX: usize = 256;
pub(crate) const HALF_OPEN_OF_ADDRESS_MAX: usize = 64;
/// With so many, only proven addresses get more.
const UNPROVEN_MAX: usize = 32;
const UNPROVEN_OF_ADDRESS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn an_address_that_is_not_proven_gets_few_and_all_of_them_together_not_many() {
        let mut admission = HandshakeAdmission::default();
        for _ in 0..16 {
            assert_eq!(admission.decide(v4(1), false, false), HandshakeDecision::Admit);
        }
        assert_eq!(admission.decide(v4(1), false, false), HandshakeDecision::Prove);
        for last in 2..18 {
            assert_eq!(admission.decide(v4(last), false, false), HandshakeDecision::Admit);
        }
        assert_eq!(admission.decide(v4(99), false, false), HandshakeDecision::Prove);
        assert_eq!(admission.decide(v4(99), true, false), HandshakeDecision::Admit);
        assert_eq!(
            HandshakeAdmission::default().decide(v4(1), false, true),
            HandshakeDecision::Prove
        );
    }

    #[test]
    fn one_address_does_not_take_the_place_of_the_others_and_all_together_are_bounded() {
        let mut admission = HandshakeAdmission::default();
        for from in 1..=4 {
            for _ in 0..64 {
                assert_eq!(admission.decide(v4(from), true, false), HandshakeDecision::Admit);
            }
            let next = admission.decide(v4(from), true, false);
            assert_eq!(next, HandshakeDecision::Refuse, "the 65th of address {from}");
        }
        assert_eq!(
            (admission.half_open(), admission.decide(v4(5), true, false)),
            (256, HandshakeDecision::Refuse)
        );
        admission.leave(v4(1));
        assert_eq!(admission.decide(v4(5), true, false), HandshakeDecision::Admit);
    }

    #[test]
    fn the_addresses_of_one_network_of_ipv6_count_as_one() {
        let mut admission = HandshakeAdmission::default();
        let of = |host: u16| IpAddr::from([0xfd00, 1, 2, 3, 0, 0, 0, host]);
        for host in 0..64 {
            assert_eq!(admission.decide(of(host), true, false), HandshakeDecision::Admit);
        }
        assert_eq!(admission.decide(of(99), true, false), HandshakeDecision::Refuse);
        (0..64).for_each(|host| admission.leave(of(host)));
        assert_eq!((admission.half_open(), admission.by.len()), (0, 0));
    }

    #[test]
    fn an_address_of_ipv4_is_the_same_written_as_ipv6_and_leaves_once() {
        let mut admission = HandshakeAdmission::default();
        let mapped: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
        for number in 0..64 {
            let from = if number % 2 == 0 { v4(1) } else { mapped };
            assert_eq!(admission.decide(from, true, false), HandshakeDecision::Admit);
        }
        assert_eq!(admission.decide(mapped, true, false), HandshakeDecision::Refuse);
        admission.leave(mapped);
        assert_eq!(admission.decide(v4(1), true, false), HandshakeDecision::Admit);
        // An address that has none leaves nothing, and no count falls below zero.
        admission.leave(v4(9));
        (0..100).for_each(|_| admission.leave(v4(1)));
        assert_eq!((admission.half_open(), admission.by.len()), (0, 0));
    }
}
