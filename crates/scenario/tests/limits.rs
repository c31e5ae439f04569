//! What the limits of nodes and of their programs come to.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "common/load.rs"]
mod common;

use common::load_text;
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::EventAction;
use windtunnel_model::{Bytes, Plan, Rate};

fn plan(text: &str) -> Plan {
    let plan = load_text("test", text.as_bytes()).unwrap_or_else(|errors| panic!("{errors}")).plan;
    plan.validate().unwrap();
    plan
}

fn rates(plan: &Plan) -> Vec<[Option<String>; 2]> {
    let text = |rate: Option<Rate>| rate.map(|rate| rate.to_string());
    let of_link = |link: &windtunnel_model::plan::Link| {
        [text(link.profiles[0].rate), text(link.profiles[1].rate)]
    };
    plan.links.iter().map(of_link).collect()
}

fn some(rate: &str) -> Option<String> {
    Some(rate.to_owned())
}

#[test]
fn a_share_is_a_limit_or_a_reservation_with_a_weight() {
    let plan = plan(
        "nodes:\n\
         \x20 a: {cpu: 25%}\n\
         \x20 b: {cpu: {limit: 0.25}}\n\
         \x20 c: {cpu: {min: 25%, weight: 2}}\n\
         \x20 d: {cpu: {limit: 2.5, min: 1, weight: 3}}\n\
         routers: [r]\n\
         links: [{between: [a, r]}, {between: [b, r]}, {between: [c, r]}, {between: [d, r]}]\n",
    );
    let shares = plan.nodes.iter().map(|node| {
        let Demand { cpu_millis, cpu_min_millis, cpu_weight, .. } = node.demand;
        (cpu_millis, cpu_min_millis, cpu_weight)
    });
    let expected = [
        (Some(250), None, None),
        (Some(250), None, None),
        (None, Some(250), Some(2)),
        (Some(2500), Some(1000), Some(3)),
    ];
    assert_eq!(shares.collect::<Vec<_>>(), expected);
}

#[test]
fn a_program_has_its_own_limits_and_none_of_its_nodes() {
    let plan = plan(
        "defaults: {node: {memory: 64MB, pids: 100, open-files: 256}}\n\
         nodes:\n\
         \x20 a: {pids: 50, run: [{run: sleep 1, cpu: 10%, memory: 32MB}, {run: sleep 2}]}\n\
         \x20 b: {}\n\
         links: [{between: [a, b]}]\n",
    );
    let asked = |node: usize| plan.nodes[node].demand;
    assert_eq!((asked(0).pids, asked(1).pids), (Some(50), Some(100)));
    assert_eq!((asked(0).memory, asked(0).open_files), (Some(Bytes(64_000_000)), Some(256)));
    let programs = &plan.nodes[0].programs;
    let first = Demand {
        cpu_millis: Some(100),
        cpu_reserved_millis: Some(100),
        memory: Some(Bytes(32_000_000)),
        memory_reserved: Some(Bytes(32_000_000)),
        ..Demand::default()
    };
    assert_eq!(programs[0].demand, first);
    assert!(programs[1].demand.is_unknown());
}

#[test]
fn disks_have_a_rate_and_a_weight() {
    let plan = plan(
        "defaults: {node: {disk: 10MB/s}}\n\
         nodes:\n\
         \x20 a: {disk: {weight: 3}, run: [{run: sleep 1, disk: 2MB/s}]}\n\
         \x20 b: {run: sleep 1}\n\
         links: [{between: [a, b]}]\n\
         reserve: {site: {of: b, disk: {limit: 1KB/s, weight: 2}}}\n\
         events: [{at: 1s, node: b, limit: {disk: 5MB/s}}]\n",
    );
    let of = |demand: &Demand| (demand.limits().disk, demand.disk_weight);
    assert_eq!(of(&plan.nodes[0].demand), (None, Some(3)));
    assert_eq!(of(&plan.nodes[0].programs[0].demand), (Some(2_000_000), None));
    assert_eq!(of(&plan.nodes[1].demand), (Some(10_000_000), None));
    assert_eq!(of(&plan.reservations[0].demand), (Some(1_000), Some(2)));
    let EventAction::Limit { limits, .. } = &plan.events[0].action else { panic!() };
    assert_eq!(of(limits), (Some(5_000_000), None));
}

#[test]
fn what_a_node_sends_and_receives_bounds_the_rates_of_its_link() {
    let plan = plan(
        "nodes: {a: {send: 1MB/s, receive: 500KB/s}, b: {}, c: {count: 2, send: 2mbit}}\n\
         routers: [r]\n\
         links:\n\
         \x20 - {between: [a, r]}\n\
         \x20 - {between: [r, b], rate: 3mbit}\n\
         \x20 - {between: [c, r], rate: 1mbit}\n",
    );
    let expected = [
        [some("8mbit"), some("4mbit")],
        [some("3mbit"), some("3mbit")],
        [some("1mbit"), some("1mbit")],
        [some("1mbit"), some("1mbit")],
    ];
    assert_eq!(rates(&plan), expected);
}

#[test]
fn of_two_bounds_of_one_lane_the_lesser_holds() {
    let plan = plan("nodes: {a: {send: 3mbit}, b: {receive: 2mbit}}\nlinks: [{between: [a, b]}]\n");
    assert_eq!(rates(&plan), [[some("2mbit"), None]]);
}

#[test]
fn a_change_of_the_links_rate_does_not_lift_the_bound() {
    let plan = plan(
        "nodes: {a: {send: 3mbit}, b: {}}\n\
         links: [{name: l, between: [a, b], rate: 1mbit}]\n\
         events: [{at: 1s, link: l, set: {rate: 10mbit}}, {at: 2s, link: l, set: {rate: none}}]\n",
    );
    let mut profile = plan.links[0].profiles[0].clone();
    let mut seen = vec![profile.rate];
    for event in &plan.events {
        let EventAction::Link(change) = &event.action else { panic!("{event:?}") };
        change.patches[0].1.apply_to(&mut profile);
        seen.push(profile.rate);
    }
    let mbit = |rate: u64| Rate::from_bits_per_second(rate * 1_000_000);
    assert_eq!(seen, [mbit(1), mbit(3), mbit(3)]);
}

#[test]
fn reservations_are_a_tree_of_nodes_groups_and_other_reservations() {
    let plan = plan(
        "nodes: {web: {count: 2, cpu: 10%}, db: {cpu: {min: 30%}}, other: {}}\n\
         routers: [r]\n\
         links: [{between: [web, r]}, {between: [db, r]}, {between: [other, r]}]\n\
         reserve:\n\
         \x20 site: {of: [front, db], cpu: {min: 80%, weight: 3}, pids: 90}\n\
         \x20 front: {of: web, memory: 64MB}\n",
    );
    let parents = plan.reservations.iter().map(|it| (it.name.as_str(), it.parent.map(|it| it.0)));
    assert_eq!(parents.collect::<Vec<_>>(), [("site", None), ("front", Some(0))]);
    let of_nodes = plan.nodes.iter().map(|node| node.reservation.map(|it| it.0));
    assert_eq!(of_nodes.collect::<Vec<_>>(), [Some(1), Some(1), Some(0), None]);
    let site = plan.reservation_named("site").unwrap();
    assert_eq!(plan.reserved_within(site), [500, 64_000_000], "twice 10 % and 30 %");
    assert_eq!(plan.reserved_by(site), [800, 64_000_000]);
}
