use proptest::prelude::*;

use super::*;

const FRAME: usize = 52;
/// There is a review after so much time, however little came.
const REVIEW_AFTER: u64 = 10_000;

/// A socket of port 9 with `overflowed` datagrams lost and so many in its queue.
fn socket(overflowed: u64, queued: u64) -> UdpSocketBacklog {
    UdpSocketBacklog { port: 9, overflowed, queued_bytes: queued * memory_of(FRAME) }
}

/// A node that does nothing but receive: each unit of its time is for one datagram that the kernel
/// carries to the socket, or for the reader.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// Datagrams that come in a unit of time.
    comes: f64,
    /// Time that the kernel takes for one, and the reader.
    carry: f64,
    read: f64,
    /// Datagrams that the socket has room for.
    room: u64,
    /// The share that the network begins with.
    first: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    handed: f64,
    lost: f64,
    read: f64,
}

impl Node {
    /// What happens in the second half of so much time. Kernel and reader have equal parts of the
    /// time while both have something to do.
    fn flood(self, time: u64) -> Counts {
        let (mut controller, mut gate) =
            (DiscardController::default(), DatagramShareGate::default());
        if let Some(share) = self.first {
            controller.handed(9, 1, FRAME);
            controller.ports.get_mut(&9).unwrap().share = share;
        }
        let (mut offered, mut waits, mut queued, mut lost) = (0.0, 0_u64, 0_u64, 0_u64);
        let (mut carried, mut has_read) = (0.0, 0.0);
        let (mut counts, mut half) = (Counts::default(), None);
        for now in 0..time {
            offered += self.comes;
            while offered >= 1.0 {
                offered -= 1.0;
                let share = controller.shares().next().map(|(_, share)| share);
                if waits < 1000 && share.is_none_or(|share| gate.passes(9, share)) {
                    waits += 1;
                }
            }
            let both = waits > 0 && queued > 0;
            let part = if both { 0.5 } else { 1.0 };
            if waits > 0 {
                carried += part / self.carry;
            }
            while waits > 0 && carried >= 1.0 {
                (carried, waits) = (carried - 1.0, waits - 1);
                controller.handed(9, 1, FRAME);
                counts.handed += 1.0;
                if queued < self.room {
                    queued += 1;
                } else {
                    lost += 1;
                }
                if controller.is_due() {
                    controller.review([socket(lost, queued)].into_iter(), waits);
                }
            }
            if now % REVIEW_AFTER == 0 && controller.since_review() > 0 {
                controller.review([socket(lost, queued)].into_iter(), waits);
            }
            if queued > 0 {
                has_read += part / self.read;
            }
            while queued > 0 && has_read >= 1.0 {
                (has_read, queued) = (has_read - 1.0, queued - 1);
                counts.read += 1.0;
            }
            if now == time / 2 {
                half = Some(Counts { lost: lost as f64, ..counts });
            }
        }
        let half = half.unwrap();
        Counts {
            handed: counts.handed - half.handed,
            lost: lost as f64 - half.lost,
            read: counts.read - half.read,
        }
    }

    /// What is read in that time if nothing is carried for nothing.
    fn could_read(self, time: u64) -> f64 {
        let half = (time - time / 2) as f64;
        half * self.comes.min(1.0 / (self.carry + self.read))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_is_handed_over_is_what_is_read_and_the_reader_is_never_idle(
        comes in 0.3_f64..20.0, carry in 1.0_f64..10.0, read in 2.0_f64..40.0, room in 64_u64..2000,
        first in proptest::option::of(1..ALL),
    ) {
        let node = Node { comes, carry, read, room, first };
        let counts = node.flood(1_000_000);
        let wasted = counts.lost / counts.handed;
        let part = counts.read / node.could_read(1_000_000);
        prop_assert!(wasted < 0.02, "{wasted} of the work was for nothing");
        prop_assert!(part > 0.98, "{part} of what could be read");
    }
}

#[test]
fn a_review_after_few_datagrams_does_not_let_many_through_until_the_next_one() {
    // Reviews fall due by time soon after one by number: shares swung between few and all for good.
    let node = Node { comes: 0.7, carry: 1.27, read: 3.6, room: 1148, first: None };
    let counts = node.flood(1_000_000);
    assert!(counts.lost < 0.01 * counts.handed, "{counts:?}");
    assert!(counts.read > 0.98 * node.could_read(1_000_000), "{counts:?}");
}

#[test]
fn equal_nodes_read_equally_much_wherever_they_begin() {
    let node = |first| Node { comes: 4.0, carry: 5.0, read: 8.0, room: 277, first };
    let firsts = [None, Some(1), Some(ALL / 100), Some(ALL / 2)];
    let counts = firsts.map(|first| node(first).flood(2_000_000).read);
    let (least, most) = (counts.iter().copied().fold(f64::MAX, f64::min), counts.iter().copied());
    let most = most.fold(0.0, f64::max);
    assert!(least > 0.995 * most, "{counts:?}");
}

#[test]
fn a_reader_that_keeps_up_gets_everything() {
    let node = Node { comes: 0.05, carry: 5.0, read: 8.0, room: 256, first: None };
    let counts = node.flood(1_000_000);
    assert_eq!(counts.lost, 0.0);
    assert!((counts.read - 25_000.0).abs() < 3.0, "{counts:?}");
}

#[test]
fn a_reader_that_recovers_gets_everything_again() {
    let mut controller = DiscardController::default();
    let mut overflowed = 0;
    for _ in 0..10 {
        (0..1000).for_each(|_| controller.handed(9, 1, FRAME));
        overflowed += 999;
        controller.review([socket(overflowed, 277)].into_iter(), 0);
    }
    let share = controller.shares().next().map(|(_, share)| share);
    assert_eq!(share, Some(ALL >> 10), "half at a time");
    let mut reviews = 0;
    while controller.shares().next().is_some() {
        controller.handed(9, 1, FRAME);
        controller.review([socket(overflowed, 0)].into_iter(), 0);
        reviews += 1;
    }
    assert!(reviews <= 10, "{reviews}: doubled at the least");
}

#[test]
fn one_port_does_not_pay_for_another() {
    let mut controller = DiscardController::default();
    for _ in 0..100 {
        controller.handed(1, 1, FRAME);
        controller.handed(2, 1, FRAME);
    }
    let of = |port, overflowed| UdpSocketBacklog { port, overflowed, queued_bytes: ROOM_BYTES };
    controller.review([of(1, 20), of(1, 30), of(2, 0), of(3, 7)].into_iter(), 0);
    let shares: Vec<_> = controller.shares().collect();
    assert_eq!(shares, [(1, ALL / 2)]);
}

#[test]
fn a_socket_that_was_made_anew_counts_from_nothing() {
    let mut controller = DiscardController::default();
    controller.handed(9, 1, FRAME);
    controller.review([socket(1_000_000, 138)].into_iter(), 0);
    (0..100).for_each(|_| controller.handed(9, 1, FRAME));
    let before = controller.shares().next().unwrap().1;
    controller.review([socket(10, 138)].into_iter(), 0);
    let after = controller.shares().next().unwrap().1;
    assert!(after > before / 10 * 7, "{after} of {before}: no more than 10 overflowed");
}

#[test]
fn no_share_is_nothing() {
    let mut controller = DiscardController::default();
    controller.handed(9, 1, FRAME);
    controller.review([socket(u64::MAX, u64::MAX >> 16)].into_iter(), 0);
    assert_eq!(controller.shares().next(), Some((9, ALL / 2)), "half at a time");
    for round in 0..100 {
        (0..10).for_each(|_| controller.handed(9, 1, FRAME));
        controller.review([socket(round, 277)].into_iter(), 0);
    }
    assert_eq!(controller.shares().next(), Some((9, 1)), "nothing is read any more");
}
