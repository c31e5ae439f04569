//! Frames over networks that lose, double and shuffle datagrams.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{End, SEALED, frame, label, ms};
use crate::counters::UnsentFrameCounts;
use crate::members::{DatagramCarrierRefusal, OutgoingFrame, TunnelFlushOutcome};
use crate::setup::Security;

/// Frames of all the sizes that matter: small, about a datagram's, GSO packets.
fn sizes() -> impl Strategy<Value = Vec<usize>> {
    let size = prop_oneof![1..200usize, 1100..1600usize, 1..67_000usize, Just(66 << 10)];
    proptest::collection::vec(size, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_frame_arrives_once_and_unchanged_in_whatever_order(
        sizes in sizes(),
        draws in proptest::collection::vec(any::<u32>(), 64),
        sealed in any::<bool>(),
    ) {
        let security = if sealed { SEALED } else { Security::Plain };
        let (mut a, mut b) = (End::new(0, security), End::new(1, security));
        let mut count = 0;
        for (port, &size) in (0..).zip(&sizes) {
            a.push(ms(1), port, &frame(size, size));
            // Now and then the frames pushed so far are sent.
            if draws[port as usize % 64] % 3 == 0 {
                count += a.flush(ms(1)).sent;
            }
        }
        count += a.flush(ms(1)).sent;
        prop_assert_eq!(count, sizes.len() as u64);
        // Each datagram comes twice, up to 20 places later than it was sent. A frame of which the rest comes much later
        // is waited for: time stands still.
        let mut order: Vec<(usize, Vec<u8>)> = Vec::new();
        for (place, datagram) in a.wire.datagrams.drain(..).enumerate() {
            let late = |draw: usize| draws[(place * 2 + draw) % 64] as usize % 20;
            order.push((place + late(0), datagram.clone()));
            order.push((place + late(1), datagram));
        }
        order.sort_by_key(|&(place, _)| place);
        let datagrams = order.len() as u64;
        let mut arrived = BTreeSet::new();
        for (_, datagram) in order {
            for (port, bytes) in b.accept(ms(2), &datagram) {
                prop_assert_eq!(&bytes, &frame(sizes[port as usize], sizes[port as usize]));
                prop_assert!(arrived.insert(port), "{} came twice", port);
            }
        }
        let counters = b.members.counters();
        prop_assert_eq!(arrived.len() as u64 + counters.incomplete, sizes.len() as u64);
        prop_assert_eq!(counters.received.datagrams, datagrams / 2);
        prop_assert_eq!(counters.refused.replayed, datagrams / 2);
        prop_assert_eq!(counters.lost, 0);
    }

    #[test]
    fn a_lost_frame_is_counted_and_spoils_no_other(
        sizes in sizes(),
        losses in proptest::collection::btree_set(1..200usize, 0..30),
    ) {
        let (mut a, mut b) = (End::new(0, SEALED), End::new(1, SEALED));
        for (port, &size) in (0..).zip(&sizes) {
            a.push(ms(1), port, &frame(size, size));
        }
        a.flush(ms(1));
        let datagrams: Vec<_> = a.wire.datagrams.drain(..).collect();
        let lost = losses.iter().filter(|&&at| at < datagrams.len() - 1).count() as u64;
        let mut whole = 0;
        for (at, datagram) in datagrams.iter().enumerate() {
            if at == datagrams.len() - 1 || !losses.contains(&at) {
                for (port, bytes) in b.accept(ms(2), datagram) {
                    prop_assert_eq!(&bytes, &frame(sizes[port as usize], sizes[port as usize]));
                    whole += 1;
                }
            }
        }
        b.members.handle_timeout(ms(52), &mut b.wire);
        let counters = b.members.counters();
        prop_assert_eq!(counters.lost, lost);
        prop_assert_eq!(counters.received.frames, whole);
        // A loss spoils the frames that have a byte in the datagram, and no other.
        prop_assert!(whole + counters.incomplete <= sizes.len() as u64);
        if lost == 0 {
            prop_assert_eq!(whole, sizes.len() as u64);
        }
    }
}

#[test]
fn a_frame_that_stays_unfinished_is_given_up_after_50_ms() {
    let (mut a, mut b) = (End::new(0, SEALED), End::new(1, SEALED));
    let datagrams = a.send(ms(1), &frame(1, 3000));
    assert_eq!(datagrams.len(), 3);
    assert_eq!(b.accept(ms(1), &datagrams[0]), []);
    b.members.handle_timeout(ms(2), &mut b.wire);
    assert!(b.members.poll_timeout().is_some_and(|due| due <= ms(51)));
    b.accept(ms(50), &datagrams[2]);
    b.members.handle_timeout(ms(51), &mut b.wire);
    assert_eq!(b.members.counters().incomplete, 1);
    // Its straggler begins nothing new, and is lost no more.
    assert_eq!(b.members.counters().lost, 1);
    assert_eq!(b.accept(ms(52), &datagrams[1]), []);
    b.members.handle_timeout(ms(200), &mut b.wire);
    let counters = b.members.counters();
    assert_eq!((counters.incomplete, counters.lost, counters.refused.total()), (1, 0, 0));
}

#[test]
fn unfinished_frames_are_overtaken_and_take_bounded_memory() {
    let (mut a, mut b) = (End::new(0, SEALED), End::new(1, SEALED));
    for round in 0..200 {
        let datagrams = a.send(ms(1), &frame(round, 60_000));
        assert_eq!(b.accept(ms(1), &datagrams[0]), []);
    }
    // A mebibyte holds 17 frames of 60 000 bytes.
    assert_eq!(b.members.counters().incomplete, 200 - 17);
    let whole = frame(9, 60_000);
    let datagrams = a.send(ms(1), &whole);
    let arrived: Vec<_> = datagrams.iter().flat_map(|bytes| b.accept(ms(1), bytes)).collect();
    assert_eq!(arrived, [(1, whole)]);
}

#[test]
fn small_frames_share_datagrams_and_a_train_is_cut_into_full_ones() {
    let mut a = End::new(0, SEALED);
    for port in 0..100 {
        a.push(ms(1), port, &frame(1, 64));
    }
    assert_eq!(a.flush(ms(1)).sent, 100);
    // 1160 bytes of payload hold eleven frames with their 38 bytes, and the 38 bytes left over no
    // byte of another.
    assert_eq!(a.wire.datagrams.len(), 10);
    a.wire.datagrams.clear();
    let train = a.send(ms(1), &frame(1, 65_000));
    // The first carries 38 bytes of its own, the others 12.
    assert_eq!(train.len(), (65_000 + 26_usize).div_ceil(1160 - 12));
    assert!(train[..train.len() - 1].iter().all(|datagram| datagram.len() == 1200));
}

#[test]
fn sizes_grow_to_the_mtu_of_the_path_and_reach_both_sides() {
    let (mut a, mut b) = (End::new(0, SEALED), End::new(1, SEALED));
    for step in 0..200 {
        let now = ms(step);
        for side in [&mut a, &mut b] {
            side.members.handle_timeout(now, &mut side.wire);
        }
        for _ in 0..40 {
            let (from_a, from_b) = (a.wire.datagrams.pop_front(), b.wire.datagrams.pop_front());
            from_a.map(|datagram| b.accept(now, &datagram));
            from_b.map(|datagram| a.accept(now, &datagram));
        }
    }
    for (side, other) in [(&a, 1), (&b, 0)] {
        let peer = side.members.peer(other).unwrap();
        assert!(peer.reached);
        assert_eq!(peer.path.size(), 1472);
        assert_eq!(side.members.counters().lost, 0, "probes are not counted as lost");
    }
    assert_eq!(a.send(ms(300), &frame(1, 1300)).len(), 1);
    // The device's MTU decreased: datagrams under way are counted as lost, later ones are smaller.
    a.wire.limit = 1300;
    a.push(ms(301), 1, &frame(1, 3000));
    let unsent = UnsentFrameCounts { too_big: 1, ..UnsentFrameCounts::default() };
    assert_eq!(a.flush(ms(301)), TunnelFlushOutcome { sent: 0, unsent });
    assert_eq!(a.send(ms(302), &frame(1, 3000)).len(), 3);
}

#[test]
fn a_datagram_that_the_kernel_refuses_is_counted_by_reason() {
    for refusal in [DatagramCarrierRefusal::Blocked, DatagramCarrierRefusal::Failed] {
        let mut a = End::new(0, SEALED);
        a.wire.refusal = Some(refusal);
        a.push(ms(1), 1, &frame(1, 60));
        // More than one batch: the second does not begin in the middle of a frame.
        a.push(ms(1), 2, &frame(1, 66_000));
        a.push(ms(1), 3, &frame(1, 66_000));
        a.push(ms(1), 4, &[]);
        a.push(ms(1), 5, &frame(1, (66 << 10) + 1));
        a.members.push(
            ms(1),
            &OutgoingFrame { to: 9, label: label(1), frame: b"nobody" },
            &mut a.wire,
        );
        let flushed = a.flush(ms(1));
        let UnsentFrameCounts { blocked, failed, unfit, too_big } = flushed.unsent;
        let (as_expected, other) = if refusal == DatagramCarrierRefusal::Blocked {
            (blocked, failed)
        } else {
            (failed, blocked)
        };
        assert_eq!((as_expected, other, unfit, too_big, flushed.sent), (3, 0, 3, 0, 0));
        assert_eq!(a.members.counters().unsent, flushed.unsent);
        a.wire.refusal = None;
        let mut b = End::new(1, SEALED);
        let arrived: Vec<_> =
            a.send(ms(2), b"later").iter().flat_map(|bytes| b.accept(ms(2), bytes)).collect();
        assert_eq!(arrived, [(1, b"later".to_vec())]);
    }
}

#[test]
fn datagrams_lost_on_the_way_to_a_peer_are_the_difference_of_two_counts_also_at_the_end() {
    for lost in 0..4 {
        let (mut a, mut b) = (End::new(0, SEALED), End::new(1, SEALED));
        // Probes are none of it.
        a.members.handle_timeout(ms(1), &mut a.wire);
        let mut datagrams: Vec<_> = a.wire.datagrams.drain(..).collect();
        for round in 0..5 {
            datagrams.extend(a.send(ms(2), &frame(round, 100)));
        }
        // The last ones: no later number shows that they are missing.
        datagrams.truncate(datagrams.len() - lost);
        datagrams.iter().for_each(|datagram| drop(b.accept(ms(3), datagram)));
        let sent = a.members.peer(1).unwrap().counters().sent;
        let counters = b.members.peer(0).unwrap().counters();
        assert_eq!((sent.datagrams, sent.frames), (5, 5));
        assert_eq!(counters.lost, 0, "it cannot be known here");
        assert_eq!(sent.datagrams - counters.received.datagrams, lost as u64);
        assert_eq!(sent.frames - counters.received.frames, lost as u64);
        let each = sent.bytes / 5;
        assert_eq!(sent.bytes - counters.received.bytes, lost as u64 * each);
    }
}
