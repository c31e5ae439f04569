//! Segments in both directions: numbers, windows, SACK, congestion marks, trains, ICMP.

use windtunnel_failover::{
    ReplicaExpulsionCause, ReplicaId, ReplicationConfig, ReplicationEventKind, ReplicationRefusal,
};
use windtunnel_model::Span;
use windtunnel_wire::icmp::{IcmpErrorKind, IcmpErrorReply, write_error};
use windtunnel_wire::{build, checksum, vnet};

use crate::hand::{Hand, ISN, ISNS, Sent, from_client, from_replica};
use crate::seg::{ACK, FIN, RST, Seg};

fn to_client(sent: &[Sent]) -> Vec<&Seg> {
    sent.iter().filter(|(to, _)| to.is_none()).map(|(_, seg)| seg).collect()
}

#[test]
fn the_client_gets_bytes_and_acknowledgements_that_all_replicas_have_sent() {
    let mut hand = Hand::open(ReplicationConfig::default(), 3);
    let sent = hand.client(&from_client(1, 1, b"get")).unwrap();
    let acks: Vec<u32> = sent.iter().map(|(_, seg)| seg.ack).collect();
    assert_eq!(acks, ISNS.map(|isn| isn.wrapping_add(1)));
    assert_eq!(hand.replica(0, &from_replica(0, 1, 4, b"reply")), []);
    assert_eq!(hand.replica(1, &from_replica(1, 1, 4, b"rep")), []);
    let sent = hand.replica(2, &from_replica(2, 1, 4, b"repl"));
    let [seg] = to_client(&sent)[..] else { panic!("{sent:?}") };
    assert_eq!((seg.seq, seg.ack, &seg.payload[..]), (ISNS[0] + 1, ISN + 4, &b"rep"[..]));
    let sent = hand.replica(1, &from_replica(1, 4, 4, b"ly"));
    assert_eq!(to_client(&sent)[0].payload, b"l");
    assert_eq!(hand.machine.view(hand.key()).unwrap().buffered, 2);
}

#[test]
fn what_one_replicas_way_has_lost_is_missing_to_the_client_which_asks_for_it() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    for offset in [1, 101, 201] {
        hand.replica(0, &from_replica(0, offset, 1, &[offset as u8; 100]));
    }
    // The second one's first segment is lost: the client gets the others out of order.
    let sent = hand.replica(1, &from_replica(1, 101, 1, &[101; 100]));
    assert_eq!((to_client(&sent)[0].seq, to_client(&sent)[0].payload[0]), (ISNS[0] + 101, 101));
    let sent = hand.replica(1, &from_replica(1, 201, 1, &[201; 100]));
    assert_eq!(to_client(&sent)[0].seq, ISNS[0] + 201);
    let mut ack = from_client(1, 1, b"");
    ack.sacks = vec![(ISNS[0] + 101, ISNS[0] + 301)];
    assert_eq!(hand.client(&ack).unwrap().len(), 2);
    // Both send it again: the first one's copy alone is not for the client.
    assert_eq!(to_client(&hand.replica(0, &from_replica(0, 1, 1, &[1; 100]))), [] as [&Seg; 0]);
    let sent = hand.replica(1, &from_replica(1, 1, 1, &[1; 100]));
    assert_eq!((to_client(&sent)[0].seq, to_client(&sent).len()), (ISNS[0] + 1, 1));
    assert_eq!(hand.machine.view(hand.key()).unwrap().buffered, 0);
    assert_eq!(hand.client(&from_client(1, 301, b"")).unwrap().len(), 2);
}

#[test]
fn windows_end_at_the_least_right_edge_of_all() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    hand.client(&from_client(1, 1, &[7; 1000])).unwrap();
    let (mut one, mut two) = (from_replica(0, 1, 1001, b""), from_replica(1, 1, 501, b""));
    (one.window, two.window) = (10, 20);
    hand.replica(0, &one);
    let sent = hand.replica(1, &two);
    // Edges 1001 + 1280 and 501 + 2560; the window from 501 is (2281 - 501) / 128 = 13.9.
    let seg = to_client(&sent)[0];
    assert_eq!((seg.ack, seg.window), (ISN + 501, 13));
}

#[test]
fn a_sack_block_is_shown_where_every_replica_has_the_range() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    for offset in [1, 101, 201, 301] {
        hand.client(&from_client(offset, 1, &[7; 100])).unwrap();
    }
    let blocks = |replica: u32, acked: u32, blocks: &[(u32, u32)]| {
        let mut seg = from_replica(replica, 1, acked, b"");
        seg.sacks = blocks.iter().map(|(start, end)| (ISN + start, ISN + end)).collect();
        seg
    };
    // One lacks the first segment, the other the second.
    let sent = hand.replica(0, &blocks(0, 1, &[(101, 401)]));
    assert_eq!(to_client(&sent), [] as [&Seg; 0]);
    hand.replica(1, &from_replica(1, 1, 101, b""));
    let sent = hand.replica(1, &blocks(1, 101, &[(201, 301)]));
    let seg = to_client(&sent)[0];
    assert_eq!((seg.ack, &seg.sacks[..]), (ISN + 1, &[(ISN + 201, ISN + 301)][..]));
    // The client's own blocks go to each in its numbers.
    hand.replica(0, &from_replica(0, 1, 401, &[1; 300]));
    hand.replica(1, &from_replica(1, 1, 401, &[1; 300]));
    let mut ack = from_client(401, 1, b"");
    ack.sacks = vec![(ISNS[0] + 101, ISNS[0] + 201)];
    let sent = hand.client(&ack).unwrap();
    let expected = [0, 1].map(|at| {
        let isn: u32 = ISNS[at];
        vec![(isn.wrapping_add(101), isn.wrapping_add(201))]
    });
    assert_eq!([sent[0].1.sacks.clone(), sent[1].1.sacks.clone()], expected);
}

#[test]
fn of_two_the_primarys_bytes_are_right_and_of_three_the_majoritys() {
    for (replicas, wrong) in [(2, 1), (3, 0)] {
        let mut hand = Hand::open(ReplicationConfig::default(), replicas);
        let mut sent = Vec::new();
        for replica in 0..replicas {
            let bytes = if replica == wrong { b"at 12:01" } else { b"at 12:00" };
            sent = hand.replica(replica, &from_replica(replica, 1, 1, bytes));
        }
        let text: Vec<u8> = to_client(&sent).iter().flat_map(|seg| seg.payload.clone()).collect();
        assert_eq!(text, b"at 12:00");
        let reset = sent.iter().find(|(to, _)| *to == Some(wrong)).unwrap();
        assert_eq!((reset.1.flags, reset.1.seq), (RST, ISN + 1));
        let (replica, cause) = (ReplicaId(wrong), ReplicaExpulsionCause::Differed { offset: 7 });
        let left = replicas as usize - 1;
        let what = hand.events();
        assert_eq!(
            what[0],
            ReplicationEventKind::Expelled { replica, cause, after: Span::ZERO, left }
        );
        let promoted = ReplicationEventKind::Promoted { replica: ReplicaId(1) };
        assert_eq!(what.contains(&promoted), wrong == 0);
        assert_eq!(hand.machine.counters().differed, 1);
    }
}

#[test]
fn a_fin_is_held_until_all_finish_there_and_its_replica_leaves_where_another_goes_on() {
    let finish = |replica: u32, offset: u32| {
        let mut seg = from_replica(replica, offset, 1, b"");
        seg.flags |= FIN;
        seg
    };
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    assert_eq!(hand.replica(0, &finish(0, 1)), []);
    let sent = hand.replica(1, &finish(1, 1));
    assert_eq!((to_client(&sent)[0].flags & FIN, hand.events()), (FIN, vec![]));

    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    hand.replica(0, &finish(0, 1));
    let sent = hand.replica(1, &from_replica(1, 1, 1, b"on"));
    assert_eq!(to_client(&sent)[0].payload, b"on");
    let cause = ReplicaExpulsionCause::FinishedAlone;
    let expelled = |what: &ReplicationEventKind| matches!(what, ReplicationEventKind::Expelled { cause: c, .. } if *c == cause);
    assert!(expelled(&hand.events()[0]));

    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    hand.replica(0, &finish(0, 1));
    // Both answer the probes.
    for _ in 0..99 {
        hand.wait(Span::from_millis(10));
        hand.replica(0, &from_replica(0, 2, 1, b""));
        hand.replica(1, &from_replica(1, 1, 1, b""));
    }
    assert_eq!(hand.events(), []);
    hand.wait(Span::from_millis(10));
    assert!(expelled(&hand.events()[0]));
    // The last one's FIN is the connection's.
    let sent = hand.replica(1, &finish(1, 1));
    assert_eq!((to_client(&sent)[0].flags & FIN, to_client(&sent)[0].seq), (FIN, ISNS[0] + 1));
}

#[test]
fn a_reset_of_one_is_an_expulsion_and_of_the_last_a_reset() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    let reset = |replica: u32| {
        let mut seg = from_replica(replica, 1, 1, b"");
        seg.flags = RST;
        seg
    };
    assert_eq!(hand.replica(0, &reset(0)), []);
    let sent = hand.replica(1, &reset(1));
    assert_eq!((to_client(&sent)[0].flags, to_client(&sent)[0].seq), (RST | ACK, ISNS[0] + 1));
}

#[test]
fn each_replica_is_echoed_its_own_timestamp_of_the_time_that_the_client_echoes() {
    let mut hand = Hand::new(ReplicationConfig::default(), 2);
    let mut syn = hand.syn();
    syn.stamps = Some((9, 0));
    hand.client(&syn).unwrap();
    // Clocks of 1 ms and 10 ms.
    let mut answers = Vec::new();
    for (replica, stamp) in [(0, 100), (1, 7_000)] {
        let mut answer = crate::hand::syn_ack(replica);
        answer.stamps = Some((stamp, 9));
        answers = hand.replica(replica, &answer);
    }
    let (first, _) = answers[0].1.stamps.unwrap();
    let mut ack = from_client(1, 1, b"");
    let mut echoes = |hand: &mut Hand, echo: u32| -> Vec<u32> {
        ack.stamps = Some((20, echo));
        let sent = hand.client(&ack).unwrap();
        sent.iter().map(|(_, seg)| seg.stamps.unwrap().1).collect()
    };
    assert_eq!(echoes(&mut hand, first), [100, 7_000]);
    hand.wait(Span::from_millis(50));
    for (replica, stamp) in [(0, 150), (1, 7_005)] {
        let mut data = from_replica(replica, 1, 1, b"x");
        data.stamps = Some((stamp, 9));
        answers = hand.replica(replica, &data);
    }
    assert_eq!(answers[0].1.stamps.unwrap().0, first + 50);
    assert_eq!(echoes(&mut hand, first), [100, 7_000]);
    assert_eq!(echoes(&mut hand, first + 50), [150, 7_005]);
}

#[test]
fn congestion_marks_and_their_echoes_pass_in_both_directions() {
    let mut hand = Hand::new(ReplicationConfig::default(), 2);
    let mut syn = hand.syn();
    syn.flags |= 0xc0;
    hand.client(&syn).unwrap();
    for replica in 0..2 {
        let mut answer = crate::hand::syn_ack(replica);
        answer.flags |= 0x40;
        let sent = hand.replica(replica, &answer);
        assert!(replica == 0 || sent[0].1.flags & 0xc0 == 0x40);
    }
    hand.client(&from_client(1, 1, b"")).unwrap();
    let mut data = from_client(1, 1, b"x");
    (data.ecn, data.flags) = (3, ACK | 0x40);
    let sent = hand.client(&data).unwrap();
    assert!(sent.iter().all(|(_, seg)| seg.ecn == 3 && seg.flags & 0x40 != 0));
    // A mark on a backup's way reaches the client; the primary's CWR, too.
    let (mut one, mut two) = (from_replica(0, 1, 2, b"y"), from_replica(1, 1, 2, b"y"));
    (one.ecn, one.flags, two.ecn, two.flags) = (2, ACK | 0x80, 3, ACK | 0x40);
    hand.replica(0, &one);
    let sent = hand.replica(1, &two);
    let seg = to_client(&sent)[0];
    assert_eq!((seg.ecn, seg.flags & 0xc0), (3, 0xc0));
    // The next data is as the primary marks it.
    hand.replica(1, &from_replica(1, 2, 2, b"z"));
    let mut next = from_replica(0, 2, 2, b"z");
    next.ecn = 2;
    let sent = hand.replica(0, &next);
    assert_eq!((to_client(&sent)[0].ecn, to_client(&sent)[0].flags & 0xc0), (2, 0));
}

#[test]
fn urgent_data_is_where_the_primary_says() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    let mut data = from_client(1, 1, b"stop");
    (data.flags, data.urgent) = (ACK | 0x20, 3);
    let sent = hand.client(&data).unwrap();
    assert!(sent.iter().all(|(_, seg)| seg.flags & 0x20 != 0 && seg.urgent == 3));
    let mut reply = from_replica(0, 1, 5, b"stopped");
    (reply.flags, reply.urgent) = (ACK | 0x20, 6);
    hand.replica(0, &reply);
    hand.replica(1, &from_replica(1, 1, 5, b"st"));
    let sent = hand.replica(1, &from_replica(1, 3, 5, b"opped"));
    let seg = to_client(&sent)[0];
    assert_eq!((seg.seq, seg.flags & 0x20, seg.urgent), (ISNS[0] + 3, 0x20, 4));
}

#[test]
fn trains_are_translated_whole_and_cut_only_where_the_caller_wants() {
    for trains in [true, false] {
        let mut hand = Hand::open(ReplicationConfig { trains, ..ReplicationConfig::default() }, 2);
        let (from, to) = (hand.key().client, hand.key().service);
        let (mut frame, header) =
            build::tcp_train(from, to, ISN + 1, ACK, &crate::programs::pattern(4_000), 1_448);
        frame[42..46].copy_from_slice(&(ISNS[0] + 1).to_be_bytes());
        let order = hand.order.clone();
        hand.machine.handle_client(hand.now, &header, &frame, &order).unwrap();
        let transmit = hand.machine.poll_transmit().unwrap();
        assert_eq!((transmit.vnet.gso_size, transmit.vnet.gso_type), (1_448, vnet::GSO_TCPV4));
        let lengths: Vec<usize> = hand.sent().iter().map(|(_, seg)| seg.payload.len()).collect();
        assert_eq!(lengths, [1_448, 1_448, 1_104]);

        let reply = |replica: u32| {
            let seq = ISNS[replica as usize].wrapping_add(1);
            let (mut frame, header) =
                build::tcp_train(to, from, seq, ACK, &crate::programs::pattern(4_000), 1_448);
            frame[42..46].copy_from_slice(&(ISN + 4_001).to_be_bytes());
            (frame, header)
        };
        for replica in 0..2 {
            let (frame, header) = reply(replica);
            hand.machine.handle_replica(hand.now, ReplicaId(replica), &header, &frame).unwrap();
        }
        let frames: Vec<u16> = std::iter::from_fn(|| hand.machine.poll_transmit())
            .map(|transmit| transmit.vnet.gso_size)
            .collect();
        // The client's MSS is 1460, and there are no timestamps.
        assert_eq!(frames, if trains { vec![1_460] } else { vec![0; 3] });
    }
}

#[test]
fn what_a_replica_repeats_is_answered_for_the_client_that_has_acknowledged_it() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    for replica in 0..2 {
        hand.replica(replica, &from_replica(replica, 1, 1, b"reply"));
    }
    // The client lacks it: the primary's copy is passed, the backup's is not.
    let repeat = |replica: u32| from_replica(replica, 1, 1, b"reply");
    assert_eq!(hand.replica(1, &repeat(1)), []);
    assert_eq!(to_client(&hand.replica(0, &repeat(0)))[0].payload, b"reply");
    // Where the client was sent nothing for a while, the backup's is, too.
    hand.wait(Span::from_millis(20));
    assert_eq!(to_client(&hand.replica(1, &repeat(1)))[0].payload, b"reply");
    hand.client(&from_client(1, 6, b"")).unwrap();
    let sent = hand.replica(1, &repeat(1));
    assert_eq!((sent[0].0, sent[0].1.ack), (Some(1), ISNS[1].wrapping_add(6)));
    // A keep-alive and a probe of the window are for the client.
    let sent = hand.replica(0, &from_replica(0, 5, 1, b""));
    assert_eq!((sent[0].0, sent[0].1.seq), (None, ISNS[0] + 5));
    assert_eq!(hand.machine.counters().absorbed, 1);
}

#[test]
fn an_icmp_error_about_a_packet_to_the_client_goes_to_every_replica_in_its_numbers() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    let key = hand.key();
    let packet = build::tcp(key.service, key.client, ISNS[0] + 1, ACK, &[7; 1400]);
    let router = "10.0.0.1".parse().unwrap();
    let reply =
        IcmpErrorReply { kind: IcmpErrorKind::TooBig { mtu: 1_000 }, source: router, mac: [2; 6] };
    let mut error = vec![0; 1_500];
    let length = write_error(&reply, &packet, &mut error).unwrap();
    error.truncate(length);
    hand.machine.handle_icmp(hand.now, &error).unwrap();
    for isn in &ISNS[..2] {
        let frame = hand.machine.poll_transmit().unwrap().frame;
        assert!(checksum::verify(&frame));
        // Ethernet, IPv4, ICMP, quoted IPv4, ports.
        let at = 14 + 20 + 8 + 20 + 4;
        assert_eq!(frame[at..at + 4], isn.wrapping_add(1).to_be_bytes());
    }
    for replica in 0..2 {
        hand.replica(replica, &from_replica(replica, 1, 1, &[1; 1_000]));
    }
    error[14 + 20 + 8 + 20 + 3] ^= 1;
    assert_eq!(hand.machine.handle_icmp(hand.now, &error), Err(ReplicationRefusal::Unknown));
}
