use windtunnel_model::{Bytes, Packets};
use windtunnel_sys::frame_queue::{FrameConsumerStatistics, FrameQueueConsumer};

use super::*;

const ZERO: [u8; 10] = [0; 10];

fn queue(limit: QueueLimit) -> (ReceiveQueue, FrameQueueConsumer) {
    let (giver, file) = FrameQueueProducer::create(1 << 20).unwrap();
    let (ports, wake) = (vec![PortId(5)], EventFd::open().unwrap());
    let queue = ReceiveQueue::new(NodeId(3), ports, giver, wake, limit);
    (queue, FrameQueueConsumer::open(file).unwrap())
}

/// An Ethernet frame with a UDP datagram over IPv4 to a port.
fn datagram(port: u16, payload: usize) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend(u16::try_from(28 + payload).unwrap().to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x10, 0]);
    frame.extend(port.to_be_bytes());
    frame.extend(u16::try_from(8 + payload).unwrap().to_be_bytes());
    frame.resize(14 + 28 + payload, 0);
    frame
}

fn offer(queue: &mut ReceiveQueue, frame: &[u8]) -> bool {
    queue.offer(&TransmitFrame { interface: 2, vnet_header: &ZERO, frame })
}

fn take(taker: &mut FrameQueueConsumer, most: usize) -> usize {
    let mut batch = vec![TransmitFrame { interface: 0, vnet_header: &ZERO, frame: &[] }; most];
    let looked = taker.look(&mut batch);
    let frames = looked.frames;
    taker.release(looked);
    frames
}

#[test]
fn what_waits_is_bounded_in_packets_and_everything_is_counted() {
    let (mut queue, mut taker) = queue(QueueLimit::Packets(Packets(10)));
    let taken = (0..25).filter(|_| offer(&mut queue, &datagram(9, 20))).count();
    assert_eq!(taken, 10);
    assert_eq!(take(&mut taker, 4), 4);
    assert_eq!((0..25).filter(|_| offer(&mut queue, &datagram(9, 20))).count(), 4);
    let received = queue.received();
    assert_eq!((received.came, received.dropped_full, received.dropped_early), (50, 36, 0));
    assert_eq!(received.delivered(), 14);
}

#[test]
fn what_waits_is_bounded_in_bytes() {
    let (mut queue, mut taker) = queue(QueueLimit::Bytes(Bytes(1000)));
    let frame = datagram(9, 258);
    assert_eq!(frame.len(), 300);
    assert_eq!((0..9).filter(|_| offer(&mut queue, &frame)).count(), 3);
    assert_eq!(take(&mut taker, 8), 3);
    assert!(offer(&mut queue, &datagram(9, 1400)), "an empty queue takes any frame");
    assert!(!offer(&mut queue, &frame));
}

#[test]
fn a_train_counts_as_its_packets() {
    let (mut queue, _taker) = queue(QueueLimit::Packets(Packets(30)));
    // UDP in segments of 1000 bytes: 21 packets.
    let frame = datagram(9, 20_500);
    let header = vnet::VirtioNetHeader {
        gso_type: 5,
        gso_size: 1000,
        hdr_len: 42,
        ..vnet::VirtioNetHeader::default()
    };
    let emitted = header.emit();
    let mut offer =
        || queue.offer(&TransmitFrame { interface: 2, vnet_header: &emitted, frame: &frame });
    assert!(offer());
    assert!(!offer(), "21 and 21 are more than 30");
    let received = queue.received();
    assert_eq!((received.came, received.dropped_full), (42, 21));
}

#[test]
fn of_datagrams_that_sockets_have_no_room_for_only_the_share_that_is_wanted_is_taken() {
    let (mut queue, mut taker) = queue(QueueLimit::Packets(Packets(1000)));
    taker.want([(9, (1 << 16) / 4)].into_iter());
    let taken = (0..400).filter(|_| offer(&mut queue, &datagram(9, 20))).count();
    let others = (0..400).filter(|_| offer(&mut queue, &datagram(53, 20))).count();
    assert_eq!((taken, others), (100, 400));
    assert_eq!(queue.received().dropped_early, 300);
    assert_eq!(take(&mut taker, 1000), 500);
}

#[test]
fn the_run_counts_from_its_beginning() {
    let (mut queue, taker) = queue(QueueLimit::Packets(Packets(10)));
    offer(&mut queue, &datagram(9, 20));
    taker.publish(FrameConsumerStatistics { computed_ns: 100, overflowed: 3 });
    queue.reset();
    taker.publish(FrameConsumerStatistics { computed_ns: 150, overflowed: 4 });
    let expected = ReceiveQueueCounters {
        node: 3,
        computed_ns: 50,
        overflowed: 1,
        ..ReceiveQueueCounters::default()
    };
    assert_eq!(queue.received(), expected);
}

#[test]
fn memory_holds_what_the_limit_allows() {
    let plan = crate::testing::plan("nodes: {a: {}, b: {}}\nlinks: [{between: [a, b]}]");
    for packets in [1, 1000, 32_000] {
        let limit = QueueLimit::Packets(Packets(packets));
        let (mut giver, _file) =
            FrameQueueProducer::create(ring_bytes(&plan.nodes[0], limit)).unwrap();
        let frame = vec![0; 1514];
        let outgoing = TransmitFrame { interface: 1, vnet_header: &ZERO, frame: &frame };
        assert!((0..packets).all(|_| giver.give(&outgoing, 1)), "{packets}");
    }
    let (mut giver, _file) =
        FrameQueueProducer::create(ring_bytes(&plan.nodes[0], QueueLimit::Bytes(Bytes(1 << 20))))
            .unwrap();
    let frame = vec![0; 42];
    let outgoing = TransmitFrame { interface: 1, vnet_header: &ZERO, frame: &frame };
    assert!((0..(1 << 20) / 42).all(|_| giver.give(&outgoing, 1)));
}
