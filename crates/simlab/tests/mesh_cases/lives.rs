//! Restarts, cuts and departures of agents.

use windtunnel_mesh::{AgentDepartureReason, MeshEvent, RunPeerState};
use windtunnel_model::Span;
use windtunnel_simlab::mesh::measure::{self, RUN};
use windtunnel_simlab::mesh::{LinkConditions, MeshWorld};

use crate::{PLAN, SECOND, flow, flows, key, part, settle};

#[test]
fn a_killed_agent_takes_its_flows_along_and_comes_back_empty() {
    let mut world = measure::in_run(3, 1, LinkConditions::LAN);
    world.set_flow(0, RUN, key(1), flow(), &[1, 2]);
    world.run_for(Span::from_millis(1));
    assert_eq!((flows(&world, 1), flows(&world, 2)), (1, 1));
    world.crash(0);
    world.run_for(SECOND);
    assert_eq!((flows(&world, 1), flows(&world, 2)), (0, 0));
    assert_eq!((part(&world, 1, 0), part(&world, 2, 0)), (RunPeerState::Lost, RunPeerState::Lost));
    world.start(0, &[1]);
    settle(&mut world);
    // The plan may be the same; the run goes on without it.
    world.join_run(0, RUN, PLAN, &[0, 1, 2]);
    settle(&mut world);
    assert_eq!((part(&world, 1, 0), part(&world, 0, 1)), (RunPeerState::Lost, RunPeerState::Lost));
}

#[test]
fn an_agent_that_restarts_faster_than_it_is_missed_is_a_new_life_all_the_same() {
    let mut world = measure::in_run(3, 1, LinkConditions::LAN);
    world.set_flow(0, RUN, key(1), flow(), &[1, 2]);
    world.run_for(Span::from_millis(100));
    world.take_events();
    world.crash(0);
    world.run_for(Span::from_millis(10));
    world.start(0, &[1]);
    settle(&mut world);
    let agent = world.machines()[0].agent;
    for machine in [1, 2] {
        let events: Vec<_> =
            world.take_events().into_iter().filter(|report| report.machine == machine).collect();
        let over = |event: &MeshEvent| matches!(event, MeshEvent::AgentDown { life, how: AgentDepartureReason::Replaced } if life.agent == agent);
        assert!(machine == 2 || events.iter().any(|report| over(&report.event)), "{events:?}");
        assert_eq!((flows(&world, machine), part(&world, machine, 0)), (0, RunPeerState::Lost));
    }
}

#[test]
fn an_agent_with_a_clock_set_back_over_a_restart_comes_in_all_the_same() {
    let mut world = MeshWorld::of(3, 1, LinkConditions::LAN);
    world.crash(0);
    world.run_for(SECOND);
    // The next start would have a greater number; this one has a smaller.
    world.start_as(0, 5, &[1]);
    let took = settle(&mut world);
    assert!(took < SECOND, "{took}");
    let life = world.machines()[0].mesh.as_ref().expect("it lives").identity();
    assert_eq!((life.epoch, world.machines()[0].view.renewals), (1_000_001, 1));
}

#[test]
fn both_sides_of_a_cut_network_go_on_by_themselves_also_after_it_is_mended() {
    let mut world = measure::in_run(4, 1, LinkConditions::LAN);
    for machine in 0..4 {
        let number = u32::try_from(machine).expect("small");
        world.set_flow(machine, RUN, key(number), flow(), &[0, 1, 2, 3]);
    }
    settle(&mut world);
    assert_eq!((0..4).map(|machine| flows(&world, machine)).collect::<Vec<_>>(), [3; 4]);
    world.network.cut(&[0, 0, 1, 1]);
    world.run_for(SECOND);
    assert_eq!((0..4).map(|machine| flows(&world, machine)).collect::<Vec<_>>(), [1; 4]);
    world.network.heal();
    let took = settle(&mut world);
    assert!(took <= Span::from_secs(4), "they find each other after {took}");
    for (one, other) in [(0, 1), (2, 3)] {
        assert_eq!(
            (part(&world, one, other), part(&world, other, one)),
            (RunPeerState::Confirmed, RunPeerState::Confirmed)
        );
    }
    for (one, other) in [(0, 2), (1, 3), (0, 3), (1, 2)] {
        assert_eq!(
            (part(&world, one, other), part(&world, other, one)),
            (RunPeerState::Lost, RunPeerState::Lost)
        );
    }
}

#[test]
fn an_agent_that_cannot_send_for_a_while_is_cut_off_and_knows_it() {
    let mut world = measure::in_run(3, 1, LinkConditions::LAN);
    world.network.cut(&[1, 0, 0]);
    world.run_for(SECOND);
    world.take_events();
    world.network.heal();
    settle(&mut world);
    // Alone, it had lost the others too. Either side may begin a new life; the two with a
    // connection have not lost each other.
    let renewals: u64 = world.machines().iter().map(|machine| machine.view.renewals).sum();
    assert!(renewals > 0);
    assert_eq!(
        (part(&world, 0, 1), part(&world, 1, 0), part(&world, 1, 2)),
        (RunPeerState::Lost, RunPeerState::Lost, RunPeerState::Confirmed)
    );
}

#[test]
fn an_agent_that_leaves_is_gone_at_once_and_is_not_reported_lost() {
    let mut world = MeshWorld::of(5, 1, LinkConditions::LAN);
    world.take_events();
    let leaver = world.machines()[3].agent;
    world.leave(3);
    world.run_for(Span::from_millis(1));
    let endings: Vec<_> = world
        .take_events()
        .into_iter()
        .filter_map(|report| match report.event {
            MeshEvent::AgentDown { life, how } => Some((life.agent, how)),
            _ => None,
        })
        .collect();
    assert_eq!(endings, vec![(leaver, AgentDepartureReason::Left); 4]);
}
