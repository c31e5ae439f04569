//! Transfers over full queues in every mixture of TCP's options, in which all replicas but one die
//! or stop at a random moment.

use windtunnel_failover::{ReplicaId, ReplicationEventKind};
use windtunnel_model::Span;
use windtunnel_model::random::{RandomSequence, RandomStream};

use crate::programs::Program;
use crate::seeds::Chance;
use crate::tcp::Settings;
use crate::world::{Death, How, Leg, Rate, Scenario, World};

/// Runs of one test: 62 or 63 of each mixture.
const RUNS: u64 = 1_000;

/// What one end can do. The bits of a mixture say what both can; where one is missing, the client
/// lacks it, or a replica, or all do.
fn settings(chance: &mut Chance, mixture: u64, lacks: bool) -> Settings {
    let has = |bit: u64| !lacks || mixture >> bit & 1 == 1;
    Settings {
        isn: chance.of(0, 1 << 32) as u32,
        mss: chance.pick(&[536, 1200, 1460]),
        sack: has(0),
        stamps: Some((chance.of(0, 1 << 32) as u32, 1_000_000)).filter(|_| has(1)),
        shift: Some(chance.pick(&[2, 7])).filter(|_| has(2)),
        ecn: has(3),
        room: chance.pick(&[16_000, 60_000, 200_000]),
        probes_with_a_byte: chance.one_in(3),
    }
}

fn leg(chance: &mut Chance) -> Leg {
    let byte = 8_000 / chance.of(2, 21);
    let queue = Span::from_millis(chance.of(5, 60));
    Leg {
        delay: Span::from_micros(chance.of(200, 25_000)),
        jitter: Span::from_micros(1),
        loss: chance.pick(&[0, 0, 1_000, 10_000]),
        duplicate: 0,
        rate: Some(Rate { byte, queue }).filter(|_| !chance.one_in(4)),
    }
}

/// A run, and its replica that lives: nothing happens to it, or it stops for less than the time
/// after which a replica that does nothing is given up.
fn scenario(seed: u64) -> (Scenario, usize) {
    let mut chance =
        Chance(RandomSequence::new(RandomStream::named(seed, &["failover", "mixtures"])));
    let bytes = chance.of(20_000, 250_000) as usize;
    let program = match seed / 16 % 2 {
        0 => Program::Upload { bytes },
        _ => Program::Download { bytes },
    };
    let replicas = chance.of(2, 4) as usize;
    let mut scenario = Scenario::new(program, replicas);
    scenario.seed = seed;
    let who = chance.of(0, replicas as u64 + 2) as usize;
    let mixture = seed % 16;
    let lacks = |end: usize| who == end || who == replicas + 1;
    scenario.client = settings(&mut chance, mixture, lacks(replicas));
    scenario.replicas =
        (0..replicas).map(|end| settings(&mut chance, mixture, lacks(end))).collect();
    scenario.client_leg = leg(&mut chance);
    scenario.legs = (0..replicas).map(|_| leg(&mut chance)).collect();
    scenario.config.trains = chance.one_in(2);
    let survivor = chance.of(0, replicas as u64) as usize;
    let last = bytes as u64 / 400 + 20;
    for replica in 0..replicas {
        let how = match (replica == survivor, chance.of(0, 4)) {
            (true, 0) => How::Paused(Span::from_millis(chance.of(20, 400))),
            (true, _) => continue,
            (false, 0) => How::Cut,
            (false, 1) => How::Killed,
            (false, _) => How::Paused(Span::from_millis(chance.of(100, 20_000))),
        };
        let notice = Some(Span::from_millis(10)).filter(|_| how.is_final() && chance.one_in(3));
        scenario.deaths.push(Death { packet: chance.of(1, last), replica, how, notice });
    }
    (scenario, survivor)
}

/// What is wrong with a run.
fn run(seed: u64) -> Option<String> {
    let (scenario, survivor) = scenario(seed);
    let mut world = World::new(scenario);
    world.run(Span::from_secs(300));
    let what = world.what();
    let is_survivor = |what: &ReplicationEventKind| match what {
        ReplicationEventKind::Expelled { replica: ReplicaId(id), .. } => *id as usize == survivor,
        _ => false,
    };
    let replies = world.scenario.program.replies();
    let wrong = if what.iter().any(is_survivor) {
        "it was expelled"
    } else if world.client.was_reset {
        "the client was reset"
    } else if !world.client.is_finished() {
        "it did not end"
    } else if replies.is_some_and(|replies| replies != world.client.received) {
        "the client read other bytes"
    } else {
        return None;
    };
    let (deaths, program) = (&world.scenario.deaths, world.scenario.program);
    Some(format!("seed {seed}, {survivor} lives, {program:?}, {deaths:?}: {wrong}: {what:?}"))
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a seed that failed is run again by itself")]
fn a_transfer_completes_while_a_server_lives_and_that_one_is_never_given_up() {
    let first = std::env::var("FAILOVER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = first.map_or(0..RUNS, |seed: u64| seed..seed + 1);
    let failed = |seed| {
        let run = std::panic::catch_unwind(|| run(seed));
        run.unwrap_or_else(|_| Some(format!("seed {seed}: a panic")))
    };
    let failed: Vec<String> = seeds.filter_map(failed).collect();
    assert!(failed.is_empty(), "{} of {RUNS}:\n{}", failed.len(), failed.join("\n"));
}
