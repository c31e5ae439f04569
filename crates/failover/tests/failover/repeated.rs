//! Acknowledgements that repeat: each says to a sender without SACK that a segment came.

use windtunnel_failover::{ReplicaId, ReplicationConfig, ReplicationEventKind};
use windtunnel_model::{Span, Time};

use crate::basics::finish;
use crate::hand::{Hand, Sent, from_client, from_replica, syn_ack};
use crate::programs::Program;
use crate::world::{Rate, Scenario};

/// Two replicas, of which none has SACK.
fn without_sack() -> Hand {
    let mut hand = Hand::new(ReplicationConfig::default(), 2);
    hand.client(&hand.syn()).unwrap();
    for replica in 0..2 {
        let mut answer = syn_ack(replica);
        answer.sack_permitted = false;
        hand.replica(replica, &answer);
    }
    hand.client(&from_client(1, 1, b"")).unwrap();
    // The window of a SYN is not scaled, so that the first acknowledgement has another.
    for replica in 0..2 {
        hand.replica(replica, &from_replica(replica, 1, 1, b""));
    }
    hand.events();
    hand
}

fn to_client(sent: &[Sent]) -> usize {
    sent.iter().filter(|(to, _)| to.is_none()).count()
}

#[test]
fn each_segment_after_a_hole_is_one_repetition_though_one_replica_has_the_hole_filled_sooner() {
    let mut hand = without_sack();
    for offset in [11, 21, 31, 41, 51] {
        hand.client(&from_client(offset, 1, b"0123456789")).unwrap();
    }
    let mut repeats =
        |replica| to_client(&hand.replica(replica, &from_replica(replica, 1, 1, b"")));
    assert_eq!([0, 0, 0].map(&mut repeats), [0, 0, 0], "the other may have what is missing");
    assert_eq!([1, 1].map(&mut repeats), [1, 1]);
    hand.client(&from_client(1, 1, b"0123456789")).unwrap();
    assert_eq!(to_client(&hand.replica(0, &from_replica(0, 1, 61, b""))), 0);
    // What comes late from the one that still has the hole counts, which was not the primary's.
    let mut repeats = || to_client(&hand.replica(1, &from_replica(1, 1, 1, b"")));
    assert_eq!([repeats(), repeats(), repeats()], [1, 1, 1]);
}

#[test]
fn a_keep_alive_is_answered_by_a_replica_that_lives() {
    for lives in 0..2 {
        let mut hand = without_sack();
        for _ in 0..3 {
            hand.client(&from_client(0, 1, b"")).unwrap();
            let answer = from_replica(lives, 1, 1, b"");
            assert_eq!(to_client(&hand.replica(lives, &answer)), 1);
        }
    }
}

#[test]
fn answers_to_probes_are_not_shown_to_the_client() {
    let mut hand = without_sack();
    hand.client(&from_client(1, 1, b"x")).unwrap();
    hand.replica(1, &from_replica(1, 1, 2, b""));
    let sent = hand.wait(Span::from_millis(90));
    assert_eq!(sent.iter().filter(|(to, _)| *to == Some(0)).count(), 3);
    // A round trip of 70 ms: three probes were on their way when the first is answered.
    for _ in 0..3 {
        assert_eq!(to_client(&hand.replica(0, &from_replica(0, 1, 1, b""))), 0);
    }
    let silent = |what: &ReplicationEventKind| {
        matches!(what, ReplicationEventKind::Expelled { replica: ReplicaId(_), .. })
    };
    assert!(!hand.events().iter().any(silent));
}

/// How long an upload takes without SACK over 20 Mbit/s and 40 ms with a queue of 60 ms.
fn upload(delays: [u64; 2]) -> Span {
    let mut scenario = Scenario::new(Program::Upload { bytes: 4_000_000 }, 2);
    scenario.client.sack = false;
    scenario.client.room = 1 << 20;
    scenario.client_leg.delay = Span::from_millis(20);
    scenario.client_leg.rate = Some(Rate { byte: 400, queue: Span::from_millis(60) });
    let ends = scenario.replicas.iter_mut().zip(&mut scenario.legs).zip(delays);
    for ((replica, leg), delay) in ends {
        replica.room = 1 << 20;
        leg.delay = Span::from_millis(delay);
    }
    finish(scenario).now.since(Time::ZERO)
}

#[test]
fn an_upload_to_a_near_and_a_far_server_is_as_fast_as_to_two_far_ones() {
    let (both, far) = (upload([1, 15]), upload([15, 15]));
    println!("{both:?}, {far:?}");
    assert!(both.as_nanos() * 10 <= far.as_nanos() * 11, "{both:?}, two far ones {far:?}");
}
