//! How soon a failure is noticed, and what the client sees of it.

use windtunnel_failover::{
    ReplicaExpulsionCause, ReplicaId, ReplicationConfig, ReplicationEventKind,
};
use windtunnel_model::Span;

use crate::basics::finish;
use crate::hand::{Hand, from_client, from_replica};
use crate::programs::Program;
use crate::world::{Death, How, Scenario, World};

/// Causes for which replicas were expelled.
pub(crate) fn causes(world: &World) -> Vec<(ReplicaId, ReplicaExpulsionCause)> {
    let cause = |what: &ReplicationEventKind| match what {
        ReplicationEventKind::Expelled { replica, cause, .. } => Some((*replica, *cause)),
        _ => None,
    };
    world.what().iter().filter_map(cause).collect()
}

#[test]
fn replies_with_the_time_of_day_are_noticed() {
    let mut scenario = Scenario::new(Program::Clock { rounds: 3 }, 2);
    scenario.think = vec![Span::ZERO, Span::from_millis(2)];
    let mut world = World::new(scenario);
    world.checks.is_honest = false;
    world.run(Span::from_secs(10));
    // Milliseconds differ in the last byte of eight.
    assert_eq!(causes(&world), [(ReplicaId(1), ReplicaExpulsionCause::Differed { offset: 7 })]);
    assert!(world.client.is_finished() && !world.client.was_reset);
    assert_eq!(world.client.received, world.hosts[0].tcp.as_ref().unwrap().data);
}

#[test]
fn a_program_that_hangs_is_expelled_after_the_stall_time() {
    let mut scenario = Scenario::new(Program::Reply { rounds: 4, bytes: 100 }, 2);
    // Three replies come at once, and then it thinks.
    scenario.think = vec![Span::from_secs(20), Span::ZERO];
    let world = finish(scenario);
    assert_eq!(causes(&world), [(ReplicaId(0), ReplicaExpulsionCause::Stalled)]);
    assert!(world.client.received.len() == 400);
}

#[test]
fn a_dead_idle_primary_costs_nothing_until_it_is_needed() {
    let pause = Span::from_millis(1_500);
    let mut scenario = Scenario::new(Program::Echo { bytes: 3_000, piece: 1_000, pause }, 2);
    let packet = finish(scenario.clone()).packets / 2;
    for how in [How::Cut, How::Killed] {
        scenario.deaths = vec![Death { packet, replica: 0, how, notice: None }];
        let world = finish(scenario.clone());
        assert_eq!(causes(&world).len(), 1, "{how:?}: {:?}", world.what());
        assert!(world.program.silence <= pause + Span::from_millis(200), "{how:?}");
    }
}

/// The longest silence that the client's program sees, and the latest of all expulsions, over
/// deaths of the primary at every packet, with a round trip of 10 ms.
fn longest(program: Program, how: How, notice: Option<Span>) -> Span {
    let mut scenario = Scenario::new(program, 2);
    let whole = finish(scenario.clone());
    let mut longest = Span::ZERO;
    for packet in 1..=whole.packets {
        scenario.deaths = vec![Death { packet, replica: 0, how, notice }];
        longest = longest.max(finish(scenario.clone()).program.silence);
    }
    longest
}

#[test]
fn the_longest_silence_of_a_client_is_below_200_ms_at_a_round_trip_of_10_ms() {
    let programs =
        [Program::Download { bytes: 300_000 }, Program::Reply { rounds: 20, bytes: 2_000 }];
    for program in programs {
        for (how, notice, bound) in [
            // 40 + 5 to the first probe, 3 × 20 to the last, 20 for its answer, and round trips.
            (How::Cut, None, 200),
            (How::Cut, Some(Span::from_millis(10)), 50),
            (How::Killed, None, 50),
            (How::Killed, Some(Span::from_millis(10)), 50),
        ] {
            let silence = longest(program, how, notice);
            println!("{program:?} {how:?} notice {notice:?}: {silence}");
            assert!(silence <= Span::from_millis(bound), "{program:?} {how:?}: {silence}");
        }
    }
}

#[test]
fn a_replica_that_answers_probes_is_not_taken_for_dead() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    hand.client(&from_client(1, 1, b"x")).unwrap();
    hand.replica(0, &from_replica(0, 1, 2, b""));
    let sent = hand.wait(Span::from_millis(40));
    // Both are probed with a byte that they have acknowledged: the one ahead may be the dead one.
    let probes: Vec<_> = sent.iter().map(|(to, seg)| (*to, seg.seq, seg.payload.len())).collect();
    let seq = |offset: u32| from_client(offset, 1, b"").seq;
    assert_eq!(probes, [(Some(0), seq(1), 1), (Some(1), seq(0), 1)]);
    for _ in 0..20 {
        hand.replica(0, &from_replica(0, 1, 2, b""));
        // The client has asked for none of these answers.
        assert_eq!(hand.replica(1, &from_replica(1, 1, 1, b"")), []);
        assert_eq!(hand.wait(Span::from_millis(20)).len(), 2);
    }
    assert_eq!(hand.events(), []);
    let mut to_client = 0;
    for _ in 0..10 {
        hand.replica(0, &from_replica(0, 1, 2, b""));
        let sent = hand.wait(Span::from_millis(10));
        to_client += sent.iter().filter(|(to, _)| to.is_none()).count();
    }
    assert_eq!(to_client, 1, "the acknowledgement");
    let silent = |what: &ReplicationEventKind| {
        matches!(
            what,
            ReplicationEventKind::Expelled {
                replica: ReplicaId(1),
                cause: ReplicaExpulsionCause::Silent,
                ..
            }
        )
    };
    assert!(hand.events().iter().any(silent));
}

#[test]
fn where_all_are_silent_none_is_taken_for_dead_and_probes_become_rare() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    hand.client(&from_client(1, 1, b"x")).unwrap();
    hand.replica(0, &from_replica(0, 1, 2, b""));
    let sent = hand.wait(Span::from_secs(5));
    // Four from 40 ms on, each 20 ms; then after 20, 40, 80, 160, 320 and 640 ms; then each second.
    let probes = |replica| sent.iter().filter(|(to, _)| *to == Some(replica)).count();
    assert_eq!((probes(0), probes(1)), (4 + 6 + 3, 4 + 6 + 3));
    assert_eq!(hand.events(), []);
    hand.replica(1, &from_replica(1, 1, 2, b""));
    assert_eq!(hand.wait(Span::from_secs(5)), []);
}

/// Two replicas that have been silent together for five seconds, of which one now answers.
fn after_a_shared_silence() -> Hand {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    hand.client(&from_client(1, 1, b"x")).unwrap();
    hand.replica(0, &from_replica(0, 1, 2, b""));
    hand.wait(Span::from_secs(5));
    hand.replica(0, &from_replica(0, 1, 2, b""));
    hand
}

#[test]
fn after_a_silence_of_all_each_may_answer_new_probes_before_it_is_taken_for_dead() {
    let mut hand = after_a_shared_silence();
    let sent = hand.wait(Span::from_millis(50));
    let probes = sent.iter().filter(|(to, _)| *to == Some(1)).count();
    assert_eq!(probes, 3, "at once, after 20 ms and after 40 ms");
    hand.replica(1, &from_replica(1, 1, 2, b""));
    assert_eq!(hand.wait(Span::from_secs(5)), []);
    assert_eq!(hand.events(), []);
    assert_eq!(hand.machine.view(hand.key()).unwrap().replicas.len(), 2);
}

#[test]
fn a_replica_that_stays_silent_when_another_answers_again_is_expelled() {
    let mut hand = after_a_shared_silence();
    for _ in 0..5 {
        hand.wait(Span::from_millis(20));
        hand.replica(0, &from_replica(0, 1, 2, b""));
    }
    let silent = |what: &ReplicationEventKind| {
        matches!(
            what,
            ReplicationEventKind::Expelled {
                replica: ReplicaId(1),
                cause: ReplicaExpulsionCause::Silent,
                ..
            }
        )
    };
    assert_eq!(hand.events().iter().filter(|what| silent(what)).count(), 1);
}

#[test]
fn a_retransmission_of_the_client_has_the_probe_sent_at_once() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    hand.client(&from_client(1, 1, b"x")).unwrap();
    hand.replica(0, &from_replica(0, 1, 2, b""));
    hand.client(&from_client(1, 1, b"x")).unwrap();
    assert_eq!(hand.wait(Span::ZERO).len(), 2);
    assert_eq!(hand.machine.counters().client_retransmissions, 1);
}

#[test]
fn the_last_replica_is_never_given_up_for_silence() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    hand.machine.replica_lost(hand.now, ReplicaId(0));
    hand.events();
    hand.client(&from_client(1, 1, b"x")).unwrap();
    hand.wait(Span::from_secs(100));
    assert_eq!(hand.events(), []);
    assert_eq!(hand.machine.view(hand.key()).unwrap().primary, Some(ReplicaId(1)));
}

#[test]
fn the_same_seed_gives_the_same_events_at_the_same_times() {
    let run = || {
        let mut scenario = Scenario::new(Program::Download { bytes: 50_000 }, 3);
        for leg in &mut scenario.legs {
            (leg.loss, leg.jitter) = (20_000, Span::from_millis(2));
        }
        scenario.deaths = vec![Death { packet: 60, replica: 0, how: How::Cut, notice: None }];
        let world = finish(scenario);
        (world.events.clone(), world.packets, world.machine.counters(), world.now)
    };
    assert_eq!(run(), run());
}

#[test]
fn output_that_is_ahead_is_bounded_by_the_window_that_replicas_see() {
    let mut scenario = Scenario::new(Program::Download { bytes: 400_000 }, 2);
    scenario.config.limits.output = 8_000;
    scenario.legs[1].delay = Span::from_millis(30);
    let world = finish(scenario);
    let counters = world.machine.counters();
    assert_eq!((counters.output_too_far, counters.output_full), (0, 0));
    assert_eq!(causes(&world), []);
}

#[test]
fn what_is_due_at_once_is_due_now_and_not_in_the_past() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    let data = from_client(1, 1, b"question");
    hand.client(&data).unwrap();
    hand.replica(0, &from_replica(0, 1, 9, b""));
    // They are apart since then; 40 ms later the second would be probed.
    hand.wait(Span::from_millis(30));
    hand.client(&data).unwrap();
    assert_eq!(hand.machine.poll_timeout(), Some(hand.now));
    let sent = hand.wait(Span::ZERO);
    assert!(sent.iter().any(|(to, _)| *to == Some(1)), "it is probed: {sent:?}");
}
