//! Agreement on runs.

use windtunnel_mesh::{AgentId, LossCause, MeshEvent, PlanHash, RunId, RunPeerState};
use windtunnel_model::Span;
use windtunnel_simlab::mesh::measure::{self, RUN};
use windtunnel_simlab::mesh::{LinkConditions, MeshWorld};

use crate::{PLAN, SECOND, flow, flows, key, part, settle};

#[test]
fn another_plan_is_refused_with_both_hashes_and_the_agent() {
    let mut world = MeshWorld::of(3, 1, LinkConditions::LAN.losing(50_000));
    let other = PlanHash([2; 32]);
    world.take_events();
    for (machine, plan) in [(0, PLAN), (1, PLAN), (2, other)] {
        world.join_run(machine, RUN, plan, &[0, 1, 2]);
    }
    settle(&mut world);
    let events = world.take_events();
    for (machine, agent, ours, theirs) in
        [(0, 2, PLAN, other), (1, 2, PLAN, other), (2, 0, other, PLAN), (2, 1, other, PLAN)]
    {
        let agent = world.machines()[agent].agent;
        let refusals = events.iter().filter(|report| {
            report.machine == machine
                && matches!(&report.event, MeshEvent::RunRefused { run: RUN, agent: a, ours: o, theirs: t, .. }
                    if (*a, *o, *t) == (agent, ours, theirs))
        });
        assert_eq!(refusals.count(), 1, "machine {machine} about {agent}");
    }
    let ready = events.iter().any(|report| matches!(report.event, MeshEvent::RunReady { .. }));
    assert!(!ready, "a run is not ready with a member that has another plan");
}

#[test]
fn a_run_is_ready_for_all_when_the_last_member_has_come() {
    let mut world = MeshWorld::of(4, 1, LinkConditions::LAN.losing(20_000));
    for machine in [0, 1, 2] {
        world.join_run(machine, RUN, PLAN, &[0, 1, 2, 3]);
    }
    world.run_for(SECOND);
    let ready = |world: &MeshWorld, machine: usize| {
        world.machines()[machine].mesh.as_ref().is_some_and(|mesh| mesh.is_ready(RUN))
    };
    assert!((0..4).all(|machine| !ready(&world, machine)));
    assert_eq!(
        (part(&world, 0, 1), part(&world, 0, 3)),
        (RunPeerState::Confirmed, RunPeerState::Waiting)
    );
    world.join_run(3, RUN, PLAN, &[0, 1, 2, 3]);
    settle(&mut world);
    assert!((0..4).all(|machine| ready(&world, machine)));
    world.leave_run(2, RUN);
    settle(&mut world);
    assert!(!ready(&world, 0) && part(&world, 0, 2) == RunPeerState::Left);
}

#[test]
fn changes_of_one_run_do_not_appear_in_another() {
    let mut world = measure::in_run(3, 1, LinkConditions::LAN);
    let second = RunId(2);
    for machine in 0..3 {
        world.join_run(machine, second, PlanHash([3; 32]), &[0, 1, 2]);
    }
    settle(&mut world);
    world.set_flow(0, RUN, key(1), flow(), &[1, 2]);
    world.set_flow(0, second, key(2), flow(), &[1]);
    world.leave_run(2, second);
    settle(&mut world);
    let mesh = world.machines()[1].mesh.as_ref().expect("it lives");
    let of = |run| mesh.flows(run).map(|(_, key, _)| key.number).collect::<Vec<_>>();
    assert_eq!((of(RUN), of(second)), (vec![1], vec![2]));
    assert_eq!(flows(&world, 2), 1);
}

#[test]
fn a_loss_that_one_agent_saw_is_agreed_on_by_all_members() {
    let mut world = measure::in_run(4, 1, LinkConditions::LAN);
    world.take_events();
    world.crash(3);
    world.run_for(Span::from_secs(3));
    let lost = world.machines()[3].agent;
    let reports: Vec<(usize, LossCause)> = world
        .take_events()
        .into_iter()
        .filter_map(|report| match report.event {
            MeshEvent::RunLost { agent, cause, .. } if agent == lost => {
                Some((report.machine, cause))
            }
            _ => None,
        })
        .collect();
    let mut machines: Vec<usize> = reports.iter().map(|(machine, _)| *machine).collect();
    machines.sort_unstable();
    assert_eq!(machines, [0, 1, 2], "{reports:?}");
}

#[test]
fn a_world_of_two_hundred_agents_agrees_and_loses_none() {
    let mut world = measure::in_run(200, 4, LinkConditions::LAN.losing(10_000));
    let all: Vec<usize> = (0..200).collect();
    for machine in (0..200).step_by(10) {
        let number = u32::try_from(machine).expect("small");
        world.set_flow(machine, RUN, key(number), flow(), &all);
    }
    settle(&mut world);
    world.crash(10);
    world.run_for(SECOND);
    settle(&mut world);
    assert_eq!(world.false_alarms(), 0);
    let gone: AgentId = world.machines()[10].agent;
    let ghosts = world.machines().iter().filter_map(|machine| machine.mesh.as_ref());
    assert!(ghosts.flat_map(|mesh| mesh.flows(RUN)).all(|(agent, ..)| agent != gone));
}
