//! Announcements on a star, where flows meet only at their nodes.

use windtunnel_model::flow::FlowKey;
use windtunnel_model::{NodeId, Span};
use windtunnel_simlab::mesh::measure::{self, RUN};
use windtunnel_simlab::mesh::{LinkConditions, MeshWorld};

use crate::{SECOND, flow, flows, settle};

/// Messages about flows that a machine has sent.
fn flow_messages(world: &MeshWorld, machine: usize) -> u64 {
    let mesh = world.machines()[machine].mesh.as_ref().expect("it lives");
    let counters = mesh.counters();
    counters.flows.datagrams
}

/// A run of 16 machines on a star: node n is on machine n % 16, and the links of nodes are all that
/// there is to share.
fn star(conditions: LinkConditions) -> MeshWorld {
    let mut world = measure::in_run(16, 1, conditions);
    for machine in 0..16 {
        let nodes = (0..150).filter(|node| node % 16 == machine).map(NodeId);
        world.set_nodes(machine as usize, RUN, nodes.collect());
    }
    world
}

const ALL: [usize; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

fn between(source: u32, destination: u32) -> FlowKey {
    FlowKey { source: NodeId(source), destination: NodeId(destination), number: 0 }
}

#[test]
fn a_short_flow_on_a_star_is_two_messages_and_not_thirty() {
    // Its start and its end, to the machine of its destination; within a quarter of a second it is
    // over.
    let mut world = star(LinkConditions::LAN);
    world.run_for(SECOND);
    let before: u64 = ALL.iter().map(|machine| flow_messages(&world, *machine)).sum();
    for number in 0..100_u32 {
        let (source, destination) = (number % 150, (number * 7 + 1) % 150);
        let (from, home) = ((source % 16) as usize, (destination % 16) as usize);
        let key = between(source, destination);
        world.set_flow_for(from, RUN, key, flow(), &[home], &ALL);
        world.run_for(Span::from_millis(200));
        world.end_flow(from, RUN, key);
        world.run_for(Span::from_millis(100));
    }
    let sent = ALL.iter().map(|machine| flow_messages(&world, *machine)).sum::<u64>() - before;
    assert!(sent <= 200, "{sent} messages for 100 flows");
    settle(&mut world);
}

#[test]
fn a_flow_that_stays_is_known_to_all_soon_and_to_its_destination_at_once() {
    let mut world = star(LinkConditions::LAN);
    world.run_for(SECOND);
    world.set_flow_for(3, RUN, between(3, 20), flow(), &[4], &ALL);
    world.run_for(Span::from_millis(1));
    assert_eq!(ALL.map(|machine| flows(&world, machine)).iter().sum::<usize>(), 1);
    assert_eq!(flows(&world, 4), 1);
    world.run_for(Span::from_millis(250));
    assert_eq!(ALL.map(|machine| flows(&world, machine)).iter().sum::<usize>(), 15);
    assert_eq!(world.difference(), None);
}

#[test]
fn machines_with_flows_that_meet_at_a_node_know_each_others_within_three_trips() {
    for conditions in [LinkConditions::LAN, LinkConditions::LAN.losing(20_000)] {
        let mut world = star(conditions);
        for round in 0..50_u32 {
            let (a, b, to) = (between(1, 20), between(2, 20), 4);
            world.run_for(SECOND);
            world.set_flow_for(1, RUN, a, flow(), &[to], &ALL);
            // The other one comes before the first is announced to all.
            world.run_for(Span::from_millis(u64::from(1 + round)));
            world.set_flow_for(2, RUN, b, flow(), &[to], &ALL);
            // To the destination's machine, from there to the two, from each to the other: 60 µs at
            // the most each, and each may wait 2 ms for a batch.
            world.run_for(Span::from_micros(3 * 60 + 3 * 2000));
            if conditions == LinkConditions::LAN {
                assert_eq!([1, 2, to].map(|machine| flows(&world, machine)), [1, 1, 2]);
                assert_eq!(flows(&world, 7), 0, "no other agent needs to know");
            }
            settle(&mut world);
            for (machine, key) in [(1, a), (2, b)] {
                world.end_flow(machine, RUN, key);
            }
            settle(&mut world);
        }
    }
}
