use super::*;

const NONE: TransmitFrame<'static> =
    TransmitFrame { interface: 0, vnet_header: &[0; 10], frame: &[] };

fn queue(bytes: usize) -> (FrameQueueProducer, FrameQueueConsumer) {
    let (giver, file) = FrameQueueProducer::create(bytes).unwrap();
    (giver, FrameQueueConsumer::open(file).unwrap())
}

fn give(giver: &mut FrameQueueProducer, interface: u32, byte: u8, length: usize) -> bool {
    let frame = vec![byte; length];
    giver.give(&TransmitFrame { interface, vnet_header: &[byte; 10], frame: &frame }, 1)
}

/// Interface, first byte and length of each frame.
fn take(taker: &mut FrameQueueConsumer, most: usize) -> Vec<(u32, u8, usize)> {
    let mut batch = vec![NONE; most];
    let looked = taker.look(&mut batch);
    let seen = batch[..looked.frames].iter().map(|it| {
        assert!(it.frame.iter().all(|byte| *byte == it.vnet_header[9]));
        (it.interface, it.vnet_header[0], it.frame.len())
    });
    let seen = seen.collect();
    taker.release(looked);
    seen
}

#[test]
fn frames_come_out_as_they_went_in() {
    let (mut giver, mut taker) = queue(0);
    assert!(take(&mut taker, 4).is_empty());
    for (index, length) in [(1, 0), (2, 14), (3, 60_000)] {
        assert!(give(&mut giver, index, index.to_le_bytes()[0], length));
    }
    assert_eq!(giver.queued().packets, 3);
    assert_eq!(take(&mut taker, 2), [(1, 1, 0), (2, 2, 14)]);
    assert_eq!(giver.queued().packets, 1);
    assert_eq!(take(&mut taker, 2), [(3, 3, 60_000)]);
    assert_eq!((giver.queued(), giver.used()), (PacketByteCount::default(), 0));
}

#[test]
fn what_has_no_room_is_refused_and_spoils_nothing() {
    let (mut giver, mut taker) = queue(0);
    let mut given = 0;
    while give(&mut giver, 7, given, 50_000) {
        given += 1;
    }
    assert!(given >= 2);
    assert!(!give(&mut giver, 7, 99, FRAME_BYTES_MAX + 1), "no frame is so long");
    let all = take(&mut taker, 64);
    assert_eq!(all, (0..given).map(|it| (7, it, 50_000)).collect::<Vec<_>>());
    assert!(give(&mut giver, 7, 1, 50_000));
}

#[test]
fn any_lengths_in_any_order_survive_the_end_of_the_ring() {
    let (mut giver, mut taker) = queue(0);
    let mut state = 1_u64;
    let mut inside = std::collections::VecDeque::new();
    let mut passed = 0;
    for step in 0..20_000_u32 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let length =
            usize::try_from(state >> 33).unwrap() % if step % 3 == 0 { 60_000 } else { 200 };
        if give(&mut giver, step, step.to_le_bytes()[0], length) {
            inside.push_back((step, step.to_le_bytes()[0], length));
        }
        if state >> 63 == 0 {
            for frame in take(&mut taker, 3) {
                assert_eq!(Some(frame), inside.pop_front());
                passed += 1;
            }
        }
        assert_eq!(giver.queued().packets, inside.len() as u64);
        let bytes: usize = inside.iter().map(|(.., length)| length).sum();
        assert_eq!(giver.queued().bytes, bytes as u64);
    }
    assert!(passed > 5_000);
}

#[test]
fn a_taker_that_found_nothing_is_woken_once() {
    let (mut giver, mut taker) = queue(0);
    assert!(!giver.must_wake());
    assert!(taker.begin_sleep());
    assert!(give(&mut giver, 1, 1, 10));
    assert!(giver.must_wake());
    assert!(!giver.must_wake());
    assert!(!taker.begin_sleep(), "a frame is there");
    assert!(!giver.must_wake(), "it does not sleep");
    assert_eq!(take(&mut taker, 8).len(), 1);
}

#[test]
fn two_threads_lose_and_repeat_nothing() {
    let (mut giver, mut taker) = queue(0);
    const FRAMES: u32 = 100_000;
    let taking = std::thread::spawn(move || {
        let mut next = 0;
        while next < FRAMES {
            for (interface, _, length) in take(&mut taker, 32) {
                assert_eq!((interface, length), (next, next as usize % 3000));
                next += 1;
            }
        }
    });
    let mut next = 0;
    while next < FRAMES {
        if give(&mut giver, next, next.to_le_bytes()[0], next as usize % 3000) {
            next += 1;
        } else {
            std::thread::yield_now();
        }
    }
    taking.join().unwrap();
}

#[test]
fn a_train_counts_as_its_packets() {
    let (mut giver, mut taker) = queue(0);
    let frame = vec![0; 30_000];
    assert!(giver.give(&TransmitFrame { interface: 1, vnet_header: &[0; 10], frame: &frame }, 21));
    assert_eq!(giver.queued(), PacketByteCount { packets: 21, bytes: 30_000 });
    assert_eq!(taker.waiting(), 21);
    taker.publish(FrameConsumerStatistics { computed_ns: 7, overflowed: 2 });
    assert_eq!(take(&mut taker, 1).len(), 1);
    assert_eq!(giver.queued(), PacketByteCount::default());
    assert_eq!(taker.waiting(), 0);
    assert_eq!(giver.account(), FrameConsumerStatistics { computed_ns: 7, overflowed: 2 });
}

#[test]
fn a_share_is_asked_by_port_and_withdrawn() {
    let (giver, taker) = queue(0);
    assert_eq!(giver.wanted(53), None);
    taker.want([(53, 1 << 16), (9000, 100), (7, 0)].into_iter());
    assert_eq!(
        [53, 9000, 7, 8].map(|port| giver.wanted(port)),
        [Some(1 << 16), Some(100), Some(1), None]
    );
    taker.want(std::iter::empty());
    assert_eq!(giver.wanted(9000), None);
}

#[test]
fn words_that_make_no_sense_stop_the_queue_and_nothing_else() {
    let (mut giver, mut taker) = queue(0);
    assert!(give(&mut giver, 1, 1, 100));
    // A length that no frame has.
    for length in [0_u32, 8, 24, !15, 16] {
        // SAFETY: the first word of the ring, which nothing else uses now.
        unsafe { giver.memory.at(0, 4).cast::<u32>().write(length) };
        assert!(take(&mut taker, 4).is_empty(), "{length}");
    }
    // A head that cannot be.
    giver.memory.long(HEAD).store(u64::MAX - 3, Ordering::Relaxed);
    assert!(take(&mut taker, 4).is_empty());
    // A tail before what was ever there: the queue is full for good.
    taker.memory.long(TAIL).store(1 << 40, Ordering::Relaxed);
    assert!(!give(&mut giver, 1, 1, 100));
    assert!(
        FrameQueueConsumer::open(rustix::fs::memfd_create("empty", MemfdFlags::CLOEXEC).unwrap())
            .is_err()
    );
}
