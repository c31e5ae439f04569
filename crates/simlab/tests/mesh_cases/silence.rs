//! Members of a run that are silent for a while: how long each run bears it.

use windtunnel_mesh::{MeshEvent, RunId, RunPeerState};
use windtunnel_model::Span;
use windtunnel_simlab::mesh::measure::{self, RUN};
use windtunnel_simlab::mesh::{LinkConditions, MeshWorld};

use crate::{PLAN, SECOND, part};

/// Agents in one run that bears a silence of so long.
fn patient(agents: usize, seed: u64, patience: Span) -> MeshWorld {
    let mut world = measure::in_run(agents, seed, LinkConditions::LAN);
    let all: Vec<usize> = (0..agents).collect();
    bear(&mut world, &all, RUN, patience);
    world.take_events();
    world
}

fn bear(world: &mut MeshWorld, machines: &[usize], run: RunId, patience: Span) {
    for machine in machines {
        let set = world.act(*machine, |mesh, now| mesh.set_patience(now, run, patience));
        set.expect("it lives").expect("a run");
    }
}

/// Which machines had an event of a run about the last machine: silent, answers, lost.
fn reports(world: &mut MeshWorld, run: RunId) -> [Vec<usize>; 3] {
    let last = world.machines().last().expect("machines").agent;
    let mut seen = [Vec::new(), Vec::new(), Vec::new()];
    for report in world.take_events() {
        let (kind, of, agent) = match report.event {
            MeshEvent::RunSilent { run, agent, .. } => (0, run, agent),
            MeshEvent::RunAnswers { run, agent } => (1, run, agent),
            MeshEvent::RunLost { run, agent, .. } => (2, run, agent),
            _ => continue,
        };
        if (of, agent) == (run, last) {
            seen[kind].push(report.machine);
        }
    }
    seen.iter_mut().for_each(|machines| machines.sort_unstable());
    seen
}

#[test]
fn a_member_that_is_away_for_less_than_its_run_bears_is_silent_and_goes_on() {
    for seed in 0..10 {
        let mut world = patient(4, seed, Span::from_secs(5));
        world.stall(3, Span::from_millis(1500));
        world.run_for(Span::from_secs(8));
        let [silent, answers, lost] = reports(&mut world, RUN);
        assert!(!silent.is_empty(), "seed {seed}");
        assert_eq!((&silent, lost), (&answers, Vec::new()), "seed {seed}");
        assert_eq!(world.false_alarms(), 0, "seed {seed}");
        assert!((0..3).all(|machine| part(&world, machine, 3) == RunPeerState::Confirmed));
        assert!((0..3).all(|machine| part(&world, 3, machine) == RunPeerState::Confirmed));
        assert_eq!(world.machines()[3].view.renewals, 0, "it was never down for anyone");
    }
}

#[test]
fn a_pause_that_has_no_effect_is_not_reported() {
    for seed in 0..10 {
        let mut world = patient(4, seed, Span::from_secs(5));
        world.stall(3, Span::from_millis(400));
        world.run_for(Span::from_secs(2));
        assert!(reports(&mut world, RUN).iter().all(Vec::is_empty), "seed {seed}");
    }
}

#[test]
fn a_member_is_lost_when_it_has_been_silent_for_as_long_as_its_run_bears() {
    for seed in 0..10 {
        let mut world = patient(3, seed, Span::from_secs(4));
        world.crash(2);
        // From the probe that fails on, of which there are 40 a second.
        world.run_for(Span::from_secs(4));
        assert_eq!(reports(&mut world, RUN)[2], [0; 0], "seed {seed}");
        world.run_for(Span::from_millis(500));
        assert_eq!(reports(&mut world, RUN)[2], [0, 1], "seed {seed}");
    }
}

#[test]
fn each_run_has_its_own_patience_with_the_same_agent() {
    let other = RunId(77);
    for seed in 0..10 {
        let mut world = patient(3, seed, SECOND);
        let all = [0, 1, 2];
        all.iter().for_each(|machine| world.join_run(*machine, other, PLAN, &all));
        world.run_for(SECOND);
        bear(&mut world, &all, other, Span::from_secs(6));
        world.take_events();
        world.stall(2, Span::from_secs(3));
        world.run_for(Span::from_secs(2));
        // Both runs learn of it, and only one gives it up.
        assert_eq!(reports(&mut world, RUN)[2], [0, 1], "seed {seed}");
        world.run_for(Span::from_secs(5));
        let [_, answers, lost] = reports(&mut world, other);
        assert_eq!(lost, [0; 0], "seed {seed}");
        assert!(!answers.is_empty(), "seed {seed}");
        assert_eq!(world.false_alarms(), 0, "seed {seed}");
    }
}

#[test]
fn agents_without_the_run_that_give_a_member_up_do_not_decide_for_it() {
    for seed in 0..10 {
        let mut world = MeshWorld::of(5, seed, LinkConditions::LAN);
        // Machines 1 to 3 have no run, and give up an agent after some seconds.
        let members = [0, 4];
        members.iter().for_each(|machine| world.join_run(*machine, RUN, PLAN, &members));
        world.run_for(SECOND);
        bear(&mut world, &members, RUN, Span::from_secs(20));
        world.take_events();
        world.stall(4, Span::from_secs(12));
        world.run_for(Span::from_secs(30));
        assert!(world.false_alarms() > 0, "seed {seed}: the others have given it up");
        assert_eq!(part(&world, 0, 4), RunPeerState::Confirmed, "seed {seed}");
        assert_eq!(part(&world, 4, 0), RunPeerState::Confirmed, "seed {seed}");
    }
}

#[test]
fn a_run_that_becomes_less_patient_gives_up_what_is_silent_already() {
    let mut world = patient(3, 1, Span::from_secs(30));
    world.crash(2);
    world.run_for(Span::from_secs(6));
    assert_eq!(reports(&mut world, RUN)[2], [0; 0]);
    bear(&mut world, &[0, 1], RUN, Span::from_secs(5));
    world.run_for(Span::from_millis(200));
    assert_eq!(reports(&mut world, RUN)[2], [0, 1]);
}

#[test]
fn a_run_that_becomes_more_patient_keeps_what_is_silent_already() {
    let mut world = patient(3, 1, Span::from_secs(2));
    world.stall(2, Span::from_secs(4));
    world.run_for(SECOND);
    bear(&mut world, &[0, 1], RUN, Span::from_secs(10));
    world.run_for(Span::from_secs(6));
    assert_eq!(reports(&mut world, RUN)[2], [0; 0]);
    assert_eq!(
        (part(&world, 0, 2), part(&world, 2, 0)),
        (RunPeerState::Confirmed, RunPeerState::Confirmed)
    );
}
