//! Who is to blame where replicas are not at the same place: a program that does nothing, and none
//! that waits for others or for what was lost.

use windtunnel_failover::{
    ReplicaExpulsionCause, ReplicaId, ReplicationConfig, ReplicationEventKind,
};
use windtunnel_model::{Span, Time};

use crate::basics::finish;
use crate::hand::{Hand, from_client, from_replica};
use crate::noticing::causes;
use crate::programs::Program;
use crate::seg::FIN;
use crate::world::{Death, How, Rate, Scenario, World};

const HANGS: How = How::Paused(Span::from_secs(3_600));

#[test]
fn a_server_that_hangs_stops_no_upload() {
    for replica in 0..2 {
        for probes_with_a_byte in [false, true] {
            let mut scenario = Scenario::new(Program::Upload { bytes: 900_000 }, 2);
            scenario.client.probes_with_a_byte = probes_with_a_byte;
            scenario.deaths = vec![Death { packet: 60, replica, how: HANGS, notice: None }];
            let mut world = World::new(scenario);
            world.run(Span::from_secs(20));
            let id = ReplicaId(replica as u32);
            assert_eq!(
                causes(&world),
                [(id, ReplicaExpulsionCause::Stalled)],
                "{probes_with_a_byte}"
            );
            assert!(world.client.is_finished(), "stuck at {}", world.now);
            // Its room of 256 KiB, the client's first probe after 400 ms at the most, 800 ms, and
            // the rest in a second: 360 segments in round trips of 10 ms.
            assert!(world.now <= Time::ZERO + Span::from_secs(4), "{}", world.now);
        }
    }
}

#[test]
fn where_all_servers_of_an_upload_hang_the_one_that_goes_on_first_completes_it() {
    for first in 0..2 {
        let mut scenario = Scenario::new(Program::Upload { bytes: 900_000 }, 2);
        // Rooms that differ a little: one has some bytes left where the other has none.
        scenario.replicas[0].room += 700;
        let hang = |replica| {
            let time = if replica == first { Span::from_secs(5) } else { Span::from_secs(3_600) };
            Death { packet: 60, replica, how: How::Paused(time), notice: None }
        };
        scenario.deaths = vec![hang(0), hang(1)];
        let mut world = World::new(scenario);
        world.run(Span::from_secs(30));
        let other = ReplicaId(1 - first as u32);
        assert_eq!(causes(&world), [(other, ReplicaExpulsionCause::Stalled)]);
        assert!(world.client.is_finished(), "stuck at {}", world.now);
    }
}

#[test]
fn a_server_that_reads_slowly_and_does_read_is_never_given_up() {
    let mut scenario = Scenario::new(Program::Upload { bytes: 600_000 }, 2);
    scenario.replicas[1].room = 20_000;
    // It is stopped three times, each time for less than is borne; each time some 70 answers to
    // probes come.
    let hang = |packet| Death {
        packet,
        replica: 1,
        how: How::Paused(Span::from_millis(700)),
        notice: None,
    };
    scenario.deaths = [30, 230, 430].map(hang).to_vec();
    let world = finish(scenario);
    assert_eq!(causes(&world), []);
}

#[test]
fn a_primary_that_sends_again_what_the_client_lacks_makes_progress() {
    // Without SACK a hole is mended in each round trip, here 25 of them in 50 ms each.
    let mut scenario = Scenario::new(Program::Download { bytes: 400_000 }, 2);
    scenario.client.sack = false;
    scenario.client_leg.delay = Span::from_millis(25);
    scenario.client_leg.rate = Some(Rate { byte: 4_000, queue: Span::from_millis(80) });
    scenario.legs[1].delay = Span::from_millis(20);
    let world = finish(scenario);
    assert_eq!(causes(&world), []);
}

#[test]
fn a_stream_that_ended_is_not_alone_while_others_have_sent_more_that_was_lost() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    let fin = |replica, offset| {
        let mut seg = from_replica(replica, offset, 1, b"");
        seg.flags |= FIN;
        seg
    };
    hand.replica(0, &fin(0, 1));
    // The number of an acknowledgement says that a FIN, or a byte, went before it.
    let mut after = |offset| {
        for _ in 0..100 {
            hand.wait(Span::from_millis(20));
            hand.replica(0, &from_replica(0, 2, 1, b""));
            hand.replica(1, &from_replica(1, offset, 1, b""));
        }
        hand.events()
    };
    assert_eq!(after(2), []);
    hand.replica(1, &fin(1, 1));
    assert_eq!(hand.events(), []);
    // Where nothing says so, a second is enough.
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    hand.replica(0, &fin(0, 1));
    for _ in 0..60 {
        hand.wait(Span::from_millis(20));
        hand.replica(0, &from_replica(0, 2, 1, b""));
        hand.replica(1, &from_replica(1, 1, 1, b""));
    }
    let is_alone = |what: &ReplicationEventKind| {
        matches!(
            what,
            ReplicationEventKind::Expelled {
                replica: ReplicaId(0),
                cause: ReplicaExpulsionCause::FinishedAlone,
                ..
            }
        )
    };
    assert!(hand.events().iter().any(is_alone));
}

#[test]
fn a_client_that_lacks_an_acknowledgement_is_given_it_again() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    hand.client(&from_client(1, 1, b"0123456789")).unwrap();
    for replica in 0..2 {
        hand.replica(replica, &from_replica(replica, 1, 11, b""));
    }
    // That was lost, and so is what comes next on its way to one replica.
    hand.client(&from_client(21, 1, b"xyz")).unwrap();
    let mut ahead = from_replica(0, 1, 11, b"");
    ahead.sacks = vec![(from_client(21, 1, b"").seq, from_client(24, 1, b"").seq)];
    assert_eq!(hand.replica(0, &ahead), [], "news that only one has");
    hand.client(&from_client(1, 1, b"0123456789")).unwrap();
    let sent = hand.replica(0, &ahead);
    let acked: Vec<_> = sent.iter().map(|(to, seg)| (*to, seg.ack)).collect();
    assert_eq!(acked, [(None, from_client(11, 1, b"").seq)]);
    assert_eq!(hand.replica(0, &ahead), [], "once for each time that it asks");
}
