//! A datagram not from a member of the run changes nothing, and is counted.

use std::collections::BTreeSet;

use windtunnel_wire::tunnel::TunnelHeader;

use super::{End, SEALED, address, frame, ms};
use crate::counters::DatagramRefusalCounters;
use crate::members::DatagramCarrierRefusal;
use crate::setup::Security;

fn refused(side: &End) -> DatagramRefusalCounters {
    let counters = side.members.counters();
    assert_eq!(counters.received.frames, 0, "nothing was handed over");
    counters.refused
}

#[test]
fn each_reason_has_its_counter() {
    let genuine = End::new(0, SEALED).send(ms(1), b"a frame").remove(0);
    let mut b = End::new(1, SEALED);
    // Every place where it can be cut, and every changed bit.
    for length in 0..genuine.len() {
        assert_eq!(b.accept(ms(1), &genuine[..length]), []);
    }
    let malformed = genuine.len() as u64;
    assert_eq!(
        refused(&b),
        DatagramRefusalCounters { malformed, ..DatagramRefusalCounters::default() }
    );

    let mut b = End::new(1, SEALED);
    for bit in 0..genuine.len() * 8 {
        let mut changed = genuine.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(b.accept(ms(1), &changed), [], "bit {bit}");
    }
    assert_eq!(refused(&b).total(), genuine.len() as u64 * 8);
    assert!(refused(&b).forged >= 8 * (genuine.len() as u64 - 24));
    assert!(!b.members.peer(0).unwrap().reached);

    let only = |datagram: &[u8], from: u16, side: End| {
        let mut side = side;
        assert_eq!(side.accept_from(ms(1), address(from), datagram), []);
        assert!(side.members.counters().lost == 0);
        refused(&side)
    };
    let none = DatagramRefusalCounters::default();
    let fresh = || End::new(1, SEALED);
    let of_run = |run| End::of_run(run, 0, SEALED).send(ms(1), b"x").remove(0);
    assert_eq!(only(&of_run(8), 0, fresh()), DatagramRefusalCounters { other_run: 1, ..none });
    assert_eq!(
        only(&genuine, 5, fresh()),
        DatagramRefusalCounters { stranger: 1, ..none },
        "another address"
    );
    let own = End::new(1, SEALED).send(ms(1), b"x").remove(0);
    assert_eq!(
        only(&own, 0, fresh()),
        DatagramRefusalCounters { stranger: 1, ..none },
        "reflected"
    );
    let other_key = End::new(0, Security::Sealed([4; 32])).send(ms(1), b"x").remove(0);
    assert_eq!(only(&other_key, 0, fresh()), DatagramRefusalCounters { forged: 1, ..none });
    let plain = End::new(0, Security::Plain).send(ms(1), b"x").remove(0);
    assert_eq!(only(&plain, 0, fresh()), DatagramRefusalCounters { other_security: 1, ..none });
    let other = End::new(1, Security::Plain);
    assert_eq!(only(&genuine, 0, other), DatagramRefusalCounters { other_security: 1, ..none });
}

#[test]
fn a_replayed_datagram_is_not_accepted() {
    for security in [SEALED, Security::Plain] {
        let (mut a, mut b) = (End::new(0, security), End::new(1, security));
        let first = a.send(ms(1), b"first").remove(0);
        assert_eq!(b.accept(ms(1), &first).len(), 1);
        assert_eq!(b.accept(ms(1), &first), []);
        for _ in 0..9000 {
            let next = a.send(ms(1), b"next").remove(0);
            assert_eq!(b.accept(ms(1), &next).len(), 1);
        }
        assert_eq!(b.accept(ms(1), &first), []);
        let refused = b.members.counters().refused;
        assert_eq!(
            refused,
            DatagramRefusalCounters {
                replayed: 1,
                too_late: 1,
                ..DatagramRefusalCounters::default()
            }
        );
    }
}

#[test]
fn a_flood_is_counted_and_genuine_frames_pass_in_between() {
    let (mut a, mut b) = (End::new(0, SEALED), End::new(1, SEALED));
    let mut forged = 0;
    for round in 0..2000 {
        let genuine = a.send(ms(1), &frame(round, 100)).remove(0);
        for attempt in 0..4 {
            let mut attack = genuine.clone();
            // Broken tags, and numbers far ahead that would close the window, were they believed.
            match attempt % 2 {
                0 => *attack.last_mut().unwrap() ^= 1 + attempt,
                _ => attack[16] ^= 0x40,
            }
            assert_eq!(b.accept(ms(1), &attack), []);
            forged += 1;
        }
        assert_eq!(b.accept(ms(1), &genuine), [(1, frame(round, 100))]);
    }
    let counters = b.members.counters();
    assert_eq!(counters.refused.total(), forged);
    assert_eq!(counters.refused.forged, forged);
    assert_eq!((counters.received.frames, counters.lost), (2000, 0));
}

#[test]
fn a_genuine_datagram_of_contradictory_content_is_malformed() {
    // Plain, as an honest sender does not make such: two pieces of one frame that overlap.
    let (mut a, mut b) = (End::new(0, Security::Plain), End::new(1, Security::Plain));
    let datagrams = a.send(ms(1), &frame(1, 3000));
    b.accept(ms(1), &datagrams[0]);
    let mut overlap = datagrams[1].clone();
    overlap[24 + 8..24 + 12].copy_from_slice(&7u32.to_be_bytes());
    assert_eq!(b.accept(ms(1), &overlap), []);
    let mut beyond = datagrams[2].clone();
    beyond[24 + 8..24 + 12].copy_from_slice(&3000u32.to_be_bytes());
    assert_eq!(b.accept(ms(1), &beyond), []);
    let counters = b.members.counters();
    assert_eq!((counters.refused.malformed, counters.incomplete), (2, 1));
}

#[test]
fn no_number_is_used_twice_whatever_becomes_of_the_datagrams() {
    let (mut a, mut b) = (End::new(0, SEALED), End::new(1, SEALED));
    let mut seen = BTreeSet::new();
    let mut datagrams = 0;
    for round in 0..300_u32 {
        let now = ms(u64::from(round) * 7);
        a.wire.refusal = match round % 5 {
            3 => Some(DatagramCarrierRefusal::Blocked),
            4 => Some(DatagramCarrierRefusal::TooBig),
            _ => None,
        };
        a.push(now, round, &frame(1, 700 * (round as usize % 100) + 1));
        a.flush(now);
        a.members.handle_timeout(now, &mut a.wire);
        b.members.handle_timeout(now, &mut b.wire);
        for datagram in a.wire.datagrams.drain(..).collect::<Vec<_>>() {
            let header = TunnelHeader::parse(&datagram).unwrap();
            let data = header.kind == windtunnel_wire::tunnel::TunnelDatagramKind::Data;
            assert!(seen.insert((data, header.sequence)), "{header:?} twice");
            datagrams += 1;
            b.accept(now, &datagram);
        }
        for datagram in b.wire.datagrams.drain(..).collect::<Vec<_>>() {
            a.accept(now, &datagram);
        }
    }
    assert!(datagrams > 1000 && seen.iter().any(|&(data, _)| !data));
    assert_eq!(b.members.counters().refused.total(), 0);
}
