//! SYN and SYN-ACK: what is offered, what is left out, what is not taken.

use windtunnel_failover::{
    ConnectionTermination, LastReplicaLossPolicy, ReplicaExpulsionCause, ReplicaId,
    ReplicationConfig, ReplicationEventKind, ReplicationRefusal,
};
use windtunnel_model::Span;
use windtunnel_wire::{build, vnet};

use crate::hand::{CLIENT, Hand, ISN, ISNS, SERVICE, address, from_client, from_replica, syn_ack};
use crate::seg::{ACK, FIN, RST, SYN, Seg};

#[test]
fn a_syn_goes_to_all_without_options_that_need_more_than_this_protocol() {
    let mut hand = Hand::new(ReplicationConfig::default(), 3);
    let mut syn = hand.syn();
    syn.stamps = Some((9, 0));
    // Fast open with a cookie, multipath, and data.
    syn.extra = vec![34, 6, 1, 2, 3, 4, 30, 4, 0, 0];
    syn.payload = b"early".to_vec();
    syn.flags |= 0xc0;
    let sent = hand.client(&syn).unwrap();
    assert_eq!(sent.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    for (_, seg) in sent {
        assert_eq!((seg.seq, seg.flags, seg.window), (ISN, SYN | 0xc0, 64_000));
        assert_eq!((seg.mss, seg.shift, seg.sack_permitted), (Some(1460), Some(7), true));
        assert_eq!((seg.stamps, seg.extra.len(), seg.payload.len()), (Some((9, 0)), 0, 0));
    }
    assert_eq!(hand.machine.counters().options_removed, 2);
}

#[test]
fn a_syn_ack_offers_what_all_replicas_can_keep() {
    let mut hand =
        Hand::new(ReplicationConfig { mss_max: 1400, ..ReplicationConfig::default() }, 3);
    let mut syn = hand.syn();
    syn.stamps = Some((9, 0));
    assert_eq!(hand.client(&syn).unwrap()[0].1.mss, Some(1400));
    let mut one = syn_ack(0);
    one.stamps = Some((1, 9));
    assert_eq!(hand.replica(0, &one), []);
    let mut two = syn_ack(1);
    (two.mss, two.shift, two.window, two.sack_permitted) = (Some(1200), None, 30_000, false);
    assert_eq!(hand.replica(1, &two), []);
    let mut three = syn_ack(2);
    three.shift = Some(3);
    let sent = hand.replica(2, &three);
    let [(None, seg)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((seg.seq, seg.ack, seg.flags), (ISNS[0], ISN + 1, SYN | ACK));
    assert_eq!((seg.mss, seg.shift, seg.window), (Some(1200), Some(7), 30_000));
    assert_eq!((seg.sack_permitted, seg.stamps), (false, Some((5_001, 9))));

    // The client's window of 500 << 7 bytes, as each replica takes it.
    let windows: Vec<u16> =
        hand.client(&from_client(1, 1, b"x")).unwrap().iter().map(|(_, seg)| seg.window).collect();
    assert_eq!(windows, [500, 64_000, 500]);
}

#[test]
fn a_replica_that_does_not_answer_is_asked_again_and_then_left_out() {
    let mut hand = Hand::new(ReplicationConfig::default(), 2);
    hand.client(&hand.syn()).unwrap();
    hand.replica(0, &syn_ack(0));
    let sent = hand.wait(Span::from_millis(249));
    assert_eq!(sent.len(), 6, "each 40 ms");
    assert!(sent.iter().all(|(to, seg)| *to == Some(1) && seg.flags == SYN));
    let sent = hand.wait(Span::from_millis(1));
    assert_eq!((sent[0].0, sent[0].1.flags), (None, SYN | ACK));
    let (replica, cause) = (ReplicaId(1), ReplicaExpulsionCause::NoAnswer);
    let after = Span::from_millis(250);
    let expected = [
        ReplicationEventKind::Expelled { replica, cause, after, left: 1 },
        ReplicationEventKind::Opened { primary: ReplicaId(0), replicas: 1, waited: after },
    ];
    assert_eq!(hand.events(), expected);
    // Its answer comes after all: it is reset.
    let sent = hand.replica(1, &syn_ack(1));
    assert_eq!((sent[0].0, sent[0].1.flags, sent[0].1.seq), (Some(1), RST, ISN + 1));
}

#[test]
fn a_refused_replica_is_left_out_and_the_client_is_refused_when_all_are() {
    let mut hand = Hand::new(ReplicationConfig::default(), 2);
    hand.client(&hand.syn()).unwrap();
    let mut refusal = Seg::new(address(SERVICE), address(CLIENT));
    (refusal.ack, refusal.flags) = (ISN + 1, RST | ACK);
    assert_eq!(hand.replica(0, &refusal), []);
    let sent = hand.replica(1, &refusal);
    assert_eq!((sent[0].0, sent[0].1.flags), (None, RST | ACK));
    assert_eq!((sent[0].1.seq, sent[0].1.ack), (0, ISN + 1));
    assert_eq!(
        hand.events().last(),
        Some(&ReplicationEventKind::Closed(ConnectionTermination::Refused))
    );
}

#[test]
fn what_cannot_be_replicated_is_not_taken_and_counted() {
    let mut hand = Hand::new(ReplicationConfig::default(), 2);
    let mut signed = hand.syn();
    signed.extra = vec![19, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(hand.client(&signed), Err(ReplicationRefusal::Signed));
    assert_eq!(hand.client(&from_client(1, 1, b"x")), Err(ReplicationRefusal::Unknown));
    let udp = build::udp(address(CLIENT), address(SERVICE), b"x");
    assert_eq!(
        hand.client_frame(&vnet::VirtioNetHeader::default(), &udp),
        Err(ReplicationRefusal::NotTcp)
    );
    let mut wrong = hand.syn().frame();
    *wrong.last_mut().unwrap() ^= 1;
    assert_eq!(
        hand.client_frame(&vnet::VirtioNetHeader::default(), &wrong),
        Err(ReplicationRefusal::Malformed)
    );
    hand.order.pop();
    assert_eq!(hand.client(&hand.syn()), Err(ReplicationRefusal::TooFew));
    let refused = hand.machine.counters().refused;
    let counts =
        [refused.signed, refused.unknown, refused.not_tcp, refused.malformed, refused.too_few];
    assert_eq!(counts, [1; 5]);
    assert!(hand.machine.is_empty());
}

#[test]
fn a_full_table_takes_no_more_and_forgets_what_is_over() {
    let mut config = ReplicationConfig::default();
    config.limits.connections = 1;
    let mut hand = Hand::open(config, 2);
    let mut other = hand.syn();
    other.from.set_port(40_001);
    assert_eq!(hand.client(&other), Err(ReplicationRefusal::TableFull));
    let mut reset = from_client(1, 1, b"");
    reset.flags = RST;
    let sent = hand.client(&reset).unwrap();
    assert!(sent.iter().all(|(_, seg)| seg.flags == RST && seg.seq == ISN + 1));
    let closed = ReplicationEventKind::Closed(ConnectionTermination::ClientReset);
    assert_eq!((sent.len(), hand.events()), (2, vec![ReplicationEventKind::TableFull, closed]));
    assert_eq!(hand.client(&other).unwrap().len(), 2);
    assert_eq!((hand.machine.len(), hand.machine.counters().refused.table_full), (1, 1));
}

/// SYNs from so many addresses, which no client completes.
fn flood(hand: &mut Hand, count: u32) {
    for number in 0..count {
        let mut syn = hand.syn();
        let source = std::net::Ipv4Addr::from(0x0b00_0000 + number);
        syn.from = (source, 1_024).into();
        hand.client(&syn).unwrap();
    }
}

#[test]
fn a_flood_of_syns_takes_the_places_of_half_open_connections_only() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    flood(&mut hand, 70_000);
    assert_eq!(hand.machine.len(), 1 + 4_096);
    let counters = hand.machine.counters();
    assert_eq!((counters.half_open_forgotten, counters.refused.table_full), (70_000 - 4_096, 0));
    // A connection that was there goes on, and a new one opens.
    assert_eq!(hand.client(&from_client(1, 1, b"x")).unwrap().len(), 2);
    let mut syn = hand.syn();
    syn.from.set_port(40_001);
    assert_eq!(hand.client(&syn).unwrap().len(), 2 + 2, "and the resets of the oldest");
    hand.events();
    for replica in 0..2 {
        let mut answer = syn_ack(replica);
        answer.to = syn.from;
        hand.replica(replica, &answer);
    }
    assert!(matches!(hand.events()[..], [ReplicationEventKind::Opened { replicas: 2, .. }]));
    // After ten seconds nothing is left of the flood.
    hand.wait(Span::from_secs(10));
    assert_eq!(hand.machine.len(), 1);
    let mut again = from_client(1, 1, b"");
    again.from = syn.from;
    assert_eq!(hand.client(&again), Err(ReplicationRefusal::Unknown));
}

#[test]
fn a_half_open_connection_that_was_forgotten_begins_anew_with_the_next_syn() {
    let mut hand = Hand::new(ReplicationConfig::default(), 2);
    hand.client(&hand.syn()).unwrap();
    let sent = hand.wait(Span::from_secs(10));
    assert!(sent.iter().all(|(to, seg)| to.is_some() && seg.flags == RST), "{sent:?}");
    assert_eq!((sent.len(), hand.machine.len()), (2, 0));
    let sent = hand.client(&hand.syn()).unwrap();
    assert!(sent.iter().all(|(to, seg)| to.is_some() && seg.flags == SYN) && sent.len() == 2);
}

#[test]
fn a_table_that_is_full_is_one_event_until_there_is_room_again() {
    let mut config = ReplicationConfig::default();
    config.limits.connections = 1;
    let mut hand = Hand::open(config, 2);
    for port in 1..=3 {
        let mut other = hand.syn();
        other.from.set_port(port);
        assert_eq!(hand.client(&other), Err(ReplicationRefusal::TableFull));
    }
    assert_eq!(hand.events(), [ReplicationEventKind::TableFull]);
    assert_eq!(hand.machine.counters().refused.table_full, 3);
}

#[test]
fn a_syn_again_is_answered_and_another_from_the_same_port_begins_anew() {
    let mut hand = Hand::new(ReplicationConfig::default(), 2);
    hand.client(&hand.syn()).unwrap();
    hand.replica(0, &syn_ack(0));
    let again: Vec<_> = hand.client(&hand.syn()).unwrap().iter().map(|(to, _)| *to).collect();
    assert_eq!(again, [Some(1)]);
    hand.replica(1, &syn_ack(1));
    let again = hand.client(&hand.syn()).unwrap();
    assert_eq!((again[0].0, again[0].1.flags, again.len()), (None, SYN | ACK, 1));

    // Established: a SYN of another connection is challenged by the replicas, not by this room.
    hand.client(&from_client(1, 1, b"")).unwrap();
    hand.replica(0, &from_replica(0, 1, 1, b""));
    let mut other = hand.syn();
    other.seq = 900_000;
    let sent = hand.client(&other).unwrap();
    assert!(sent.iter().all(|(to, seg)| to.is_some() && seg.seq == 900_000 && seg.flags == SYN));
    // The challenge is passed, the client resets what it does not know, and may begin.
    let sent = hand.replica(0, &from_replica(0, 1, 1, b""));
    assert_eq!((sent[0].0, sent[0].1.ack), (None, ISN + 1));
    let mut reset = from_client(1, 1, b"");
    reset.flags = RST;
    hand.client(&reset).unwrap();
    let sent = hand.client(&other).unwrap();
    assert_eq!((sent.len(), sent[0].1.flags, sent[0].1.seq), (2, SYN, 900_000));
}

#[test]
fn the_state_of_a_finished_connection_lingers_and_is_forgotten() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    let mut fin = from_client(1, 1, b"");
    fin.flags |= FIN;
    hand.client(&fin).unwrap();
    for replica in 0..2 {
        let mut fin = from_replica(replica, 1, 2, b"");
        fin.flags |= FIN;
        hand.replica(replica, &fin);
    }
    hand.client(&from_client(2, 2, b"")).unwrap();
    assert_eq!(hand.events(), [ReplicationEventKind::Closed(ConnectionTermination::Finished)]);
    // One has not got the last acknowledgement: it is answered for the client.
    let mut fin = from_replica(1, 1, 2, b"");
    fin.flags |= FIN;
    let sent = hand.replica(1, &fin);
    assert_eq!((sent[0].0, sent[0].1.ack), (Some(1), ISNS[1].wrapping_add(2)));
    hand.wait(Span::from_secs(60));
    assert!(hand.machine.is_empty());
    assert_eq!(hand.machine.poll_timeout(), None);
}

#[test]
fn the_last_replicas_loss_is_a_reset_or_nothing() {
    for (on_loss, packets) in
        [(LastReplicaLossPolicy::Reset, 1), (LastReplicaLossPolicy::Silent, 0)]
    {
        let mut hand = Hand::open(ReplicationConfig { on_loss, ..ReplicationConfig::default() }, 2);
        hand.machine.replica_lost(hand.now, ReplicaId(0));
        hand.machine.replica_lost(hand.now, ReplicaId(1));
        let to_client = hand.sent().into_iter().filter(|(to, _)| to.is_none());
        let resets: Vec<Seg> = to_client.map(|(_, seg)| seg).collect();
        assert_eq!(resets.len(), packets);
        assert!(resets.iter().all(|seg| seg.flags == RST | ACK && seg.seq == ISNS[0] + 1));
        assert_eq!(
            hand.events().last(),
            Some(&ReplicationEventKind::Closed(ConnectionTermination::Lost))
        );
        assert_eq!(hand.client(&from_client(1, 1, b"x")).unwrap().len(), packets);
    }
}

#[test]
fn an_open_connection_of_two_replicas_has_less_than_three_kilobytes() {
    let mut hand = Hand::new(ReplicationConfig::default(), 2);
    hand.client(&hand.syn()).unwrap();
    for replica in 0..2 {
        hand.replica(replica, &syn_ack(replica));
    }
    let memory = hand.machine.view(hand.key()).unwrap().memory;
    println!("{memory} bytes");
    assert!(memory < 3_000, "{memory} bytes");
}
