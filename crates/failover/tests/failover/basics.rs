//! Connections without deaths.

use windtunnel_failover::{ReplicaId, ReplicationEventKind};
use windtunnel_model::Span;

use crate::programs::Program;
use crate::tcp::Oddities;
use crate::world::{Scenario, World};

/// Runs a scenario to its end; the client must have read exactly what it should.
pub(crate) fn finish(scenario: Scenario) -> World {
    let mut world = World::new(scenario);
    world.run(Span::from_secs(200));
    let what = world.what();
    assert!(!world.client.was_reset, "the client was reset: {what:?}");
    assert!(
        world.client.is_finished(),
        "stuck at {} after {} bytes of {:?}: {what:?}",
        world.now,
        world.client.received.len(),
        world.scenario.program,
    );
    if let Some(replies) = world.scenario.program.replies() {
        assert!(world.client.received == replies, "the client read other bytes: {what:?}");
    }
    world
}

pub(crate) const PROGRAMS: [Program; 6] = [
    Program::Echo { bytes: 9_000, piece: 1_000, pause: Span::from_millis(3) },
    Program::Download { bytes: 60_000 },
    Program::Slow { bytes: 60_000, rate: 4_000 },
    Program::Reply { rounds: 6, bytes: 3_000 },
    Program::Upload { bytes: 40_000 },
    Program::Clash { bytes: 20_000 },
];

#[test]
fn every_program_finishes_with_one_to_three_replicas() {
    for program in PROGRAMS {
        for replicas in 2..=3 {
            let mut scenario = Scenario::new(program, replicas);
            scenario.client.room = 20_000;
            let world = finish(scenario);
            let primary = ReplicaId(0);
            let opened = ReplicationEventKind::Opened { primary, replicas, waited: Span::ZERO };
            assert_eq!(world.what()[0], opened);
            assert_eq!(world.what().len(), 2, "{program:?}: {:?}", world.what());
            assert_eq!(world.client.odd, Oddities::default());
            for host in &world.hosts {
                let tcp = host.tcp.as_ref().unwrap();
                assert!(tcp.is_finished(), "{program:?}");
                assert_eq!(tcp.odd, Oddities::default(), "{program:?}");
            }
        }
    }
}
