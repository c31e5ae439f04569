//! Clocks of other agents.

use windtunnel_mesh::MeshEvent;
use windtunnel_model::Span;
use windtunnel_simlab::mesh::measure::RUN;
use windtunnel_simlab::mesh::{LinkConditions, MeshWorld};

use crate::{PLAN, SECOND, settle};

#[test]
fn clocks_are_known_within_their_bounds_and_a_step_is_noticed() {
    let conditions = LinkConditions {
        delay: Span::from_micros(50),
        jitter: Span::from_micros(300),
        loss: 10_000,
        twice: 0,
    };
    let mut world = MeshWorld::new(9, conditions);
    for machine in 0..4 {
        world.add_machine();
        world.start(machine, &[0]);
    }
    settle(&mut world);
    for machine in 0..4 {
        world.join_run(machine, RUN, PLAN, &[0, 1, 2, 3]);
    }
    world.run_for(Span::from_secs(20));
    settle(&mut world);
    let read = |world: &MeshWorld, machine: usize, of: usize| {
        let own = world.machines()[machine].clock.read(world.now());
        let mesh = world.machines()[machine].mesh.as_ref().expect("it lives");
        mesh.clock(world.machines()[of].agent, own).expect("measured")
    };
    for (machine, of) in [(0, 1), (1, 2), (3, 0)] {
        let clock = read(&world, machine, of);
        // The least round trip is little over 100 µs, so the bound is little over 50.
        assert!(clock.error < Span::from_micros(150), "{clock:?}");
        assert!(clock.rtt_min >= Span::from_micros(100) && clock.rtt_min < Span::from_micros(400));
        assert!(clock.skew_ppb.abs() < 220_000 && clock.exchanges > 50, "{clock:?}");
    }
    world.take_events();
    world.step_clock(1, Span::from_millis(5));
    world.run_for(SECOND);
    let stepped = world.machines()[1].agent;
    let ahead = world.take_events().into_iter().filter_map(|report| match report.event {
        MeshEvent::ClockStepped { agent, by } if report.machine != 1 && agent == stepped => {
            Some(by)
        }
        _ => None,
    });
    let ahead: Vec<i64> = ahead.collect();
    assert_eq!(ahead.len(), 3, "each other agent, once: {ahead:?}");
    assert!(ahead.iter().all(|by| (by - 5_000_000).abs() < 300_000), "{ahead:?}");
    settle(&mut world);
}

#[test]
fn clocks_of_agents_without_a_common_run_are_compared_too() {
    let mut world = MeshWorld::of(3, 2, LinkConditions::LAN);
    world.run_for(Span::from_secs(40));
    settle(&mut world);
    for machine in world.machines() {
        let own = machine.clock.read(world.now());
        let mesh = machine.mesh.as_ref().expect("it lives");
        for life in mesh.agents() {
            let clock = mesh.clock(life.agent, own).expect("measured");
            assert!(clock.exchanges >= 3, "{clock:?}");
        }
    }
}

#[test]
fn round_trips_that_were_long_when_agents_met_are_measured_again_soon() {
    // Much begins at once: everything takes 100 ms, for a second.
    let busy = LinkConditions { delay: Span::from_millis(100), ..LinkConditions::LAN };
    let mut world = MeshWorld::of(6, 1, busy);
    world.run_for(SECOND);
    world.network.conditions = LinkConditions::LAN;
    world.run_for(Span::from_secs(45));
    for machine in world.machines() {
        let own = machine.clock.read(world.now());
        let mesh = machine.mesh.as_ref().expect("it lives");
        for life in mesh.agents() {
            let clock = mesh.clock(life.agent, own).expect("measured");
            assert!(clock.rtt_min < Span::from_millis(1), "{clock:?}");
        }
    }
}
