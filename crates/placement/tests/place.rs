//! Placements, refusals, and their messages.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use windtunnel_model::{Bytes, Plan, Span};
use windtunnel_placement::{
    NodePlacement, PlacementHost, PlacementRefusal, Rtts, UplinkTrafficBound, place,
};

fn plan(text: &str) -> Plan {
    let source = windtunnel_scenario::ScenarioSource {
        name: "net.yaml",
        text: text.as_bytes(),
        default_name: "net",
        base_dir: "/",
    };
    let instead =
        windtunnel_scenario::ScenarioOverrides { several_machines: true, ..Default::default() };
    let loaded = windtunnel_scenario::load_instead(&source, &|_| Err(String::new()), instead);
    loaded.unwrap_or_else(|errors| panic!("{errors}")).plan
}

fn hosts(names: &[&str]) -> Vec<PlacementHost> {
    names.iter().map(|name| PlacementHost::new(*name)).collect()
}

/// The same round trip between any two of so many machines.
fn rtts(hosts: usize, rtt: Span) -> Rtts {
    let mut rtts = Rtts::default();
    (0..hosts).for_each(|a| (0..a).for_each(|b| rtts.set(a, b, rtt)));
    rtts
}

/// The names on each machine.
fn names(plan: &Plan, placed: &NodePlacement) -> Vec<String> {
    let on = |host| placed.nodes_on(host).map(|node| plan.nodes[node.index()].name.as_str());
    (0..placed.loads.len()).map(|host| on(host).collect::<Vec<_>>().join(" ")).collect()
}

fn messages(refused: &PlacementRefusal) -> Vec<String> {
    refused.reasons.iter().map(ToString::to_string).collect()
}

const TWO_SITES: &str = "nodes: {a: {}, b: {}, c: {}, d: {}}\nrouters: [r, s]\nlinks:\n\
    - {between: [a, r], rate: 1gbit, latency: 1ms}\n- {between: [b, s], rate: 1gbit, latency: 1ms}\n\
    - {between: [c, r], rate: 1gbit, latency: 1ms}\n- {between: [d, s], rate: 1gbit, latency: 1ms}\n\
    - {between: [r, s], rate: 10mbit, latency: 30ms}\n";

#[test]
fn neighbours_over_fast_links_stay_together() {
    let plan = plan(TWO_SITES);
    let placed = place(&plan, &hosts(&["m1", "m2"]), &rtts(2, Span::from_micros(200))).unwrap();
    assert_eq!(names(&plan, &placed), ["a c", "b d"]);
    // 10 Mbit/s of full packets: 1560 bytes between machines for each 1538 on the link.
    let across = UplinkTrafficBound::Bounded(10_143_043);
    assert!(placed.loads.iter().all(|load| (load.up, load.down) == (across, across)));
    assert_eq!(placed.warnings, []);
}

#[test]
fn pins_hold_by_name_and_by_label_and_names_win_over_labels() {
    let text = TWO_SITES.replace("a: {}", "a: {pin: m2}").replace("b: {}", "b: {pin: rack=1}");
    let plan = plan(&text);
    let mut hosts = hosts(&["m1", "m2"]);
    hosts[0].labels = ["rack=1".to_owned(), "m2".to_owned()].into();
    let placed = place(&plan, &hosts, &Rtts::default()).unwrap();
    assert_eq!(names(&plan, &placed), ["b d", "a c"]);
}

#[test]
fn pack_takes_as_few_machines_as_carry_it() {
    let text = format!("placement: pack\n{TWO_SITES}");
    let plan = plan(&text);
    let mut hosts = hosts(&["m1", "m2", "m3"]);
    let placed = place(&plan, &hosts, &Rtts::default()).unwrap();
    assert_eq!(names(&plan, &placed), ["a b c d", "", ""]);
    hosts.iter_mut().for_each(|host| host.nodes_max = Some(3));
    hosts[2].reserved.nodes = 3;
    let placed = place(&plan, &hosts, &Rtts::default()).unwrap();
    let used = placed.loads.iter().filter(|load| load.nodes > 0).count();
    assert_eq!((used, placed.loads[2].nodes), (2, 0));
}

#[test]
fn spread_is_as_even_as_whole_nodes_allow_whatever_is_cut() {
    let text = "placement: spread\nnodes: {a: {count: 7}}\nrouters: [r]\nlinks: [{between: [a, r], rate: 1gbit}]\n";
    let plan = plan(text);
    let placed = place(&plan, &hosts(&["m1", "m2", "m3"]), &Rtts::default()).unwrap();
    let mut nodes: Vec<u32> = placed.loads.iter().map(|load| load.nodes).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, [2, 2, 3]);
}

#[test]
fn machines_are_filled_in_proportion_to_their_free_processors() {
    let text = "placement: spread\nnodes: {a: {count: 12}}\nrouters: [r]\nlinks: [{between: [a, r], rate: 1gbit}]\n";
    let plan = plan(text);
    let mut hosts = hosts(&["m1", "m2"]);
    hosts[0].reserved.cpu_millis = 8000;
    let placed = place(&plan, &hosts, &Rtts::default()).unwrap();
    assert_eq!((placed.loads[0].nodes, placed.loads[1].nodes), (4, 8));
}

#[test]
fn capacity_of_other_runs_is_not_given_again() {
    let text = TWO_SITES.replace("c: {}", "c: {cpu: 3, memory: 1GB}");
    let plan = plan(&text);
    let mut hosts = hosts(&["m1", "m2"]);
    hosts[0].reserved.cpu_millis = 14_000;
    let placed = place(&plan, &hosts, &Rtts::default()).unwrap();
    assert_eq!(placed.hosts[2], 1);
    assert_eq!((placed.loads[1].cpu_millis, placed.loads[0].cpu_millis), (3000, 0));
    let own = u64::from(placed.loads[1].nodes) * windtunnel_placement::BYTES_PER_NODE;
    assert_eq!(placed.loads[1].memory, Bytes(1_000_000_000 + own));
}

#[test]
fn a_pin_that_means_no_machine_is_refused_once() {
    let text = "nodes: {a: {count: 3, pin: m9}, b: {}}\nrouters: [r]\nlinks: [{between: [a, r]}, {between: [b, r]}]\n";
    let refused = place(&plan(text), &hosts(&["m1", "m2"]), &Rtts::default()).unwrap_err();
    assert_eq!(refused.reasons[0].hint(), "the machines are m1, m2");
    let text =
        "node a-1 is pinned to `m9`, which is not a name or label of a machine (and 2 more nodes)";
    assert_eq!(messages(&refused), [text]);
}

#[test]
fn a_resource_that_all_machines_together_lack_is_refused_with_numbers() {
    let text = "defaults: {node: {cpu: 4.5, memory: 8GB}}\nnodes: {a: {count: 10}}\nrouters: [r]\nlinks: [{between: [a, r]}]\n";
    let mut hosts = hosts(&["m1", "m2"]);
    hosts.iter_mut().for_each(|host| host.nodes_max = Some(4));
    hosts[0].reserved.memory = Bytes(60_000_000_000);
    let refused = place(&plan(text), &hosts, &Rtts::default()).unwrap_err();
    assert_eq!(
        messages(&refused),
        [
            "the nodes need 45 processors, all hosts together have 32 processors free",
            "the nodes need 80.01GB of memory, all hosts together have 68GB of memory free",
            "10 nodes are asked for, all hosts together have room for 8",
        ]
    );
}

#[test]
fn a_pinned_group_that_is_too_large_for_its_machine_is_refused_with_its_name() {
    let text = "nodes: {a: {count: 5, pin: m1, cpu: 4}, b: {}}\nrouters: [r]\nlinks: [{between: [a, r]}, {between: [b, r]}]\n";
    let refused = place(&plan(text), &hosts(&["m1", "m2"]), &Rtts::default()).unwrap_err();
    assert!(refused.attempt.is_some());
    let text = "host m1: the nodes put there need 20 processors, it has 16 processors free";
    assert_eq!(messages(&refused), [text]);
}

#[test]
fn nodes_nearer_than_machines_share_one() {
    // a and c are 2 ms apart, a round trip between machines takes 10.
    let plan = plan(TWO_SITES);
    let placed = place(&plan, &hosts(&["m1", "m2"]), &rtts(2, Span::from_millis(10))).unwrap();
    assert_eq!(names(&plan, &placed), ["a c", "b d"]);
    // 32 ms are less than half of 100: then all are on one machine.
    let placed = place(&plan, &hosts(&["m1", "m2"]), &rtts(2, Span::from_millis(100))).unwrap();
    assert_eq!(placed.loads.iter().map(|load| load.nodes).max(), Some(4));
}

#[test]
fn a_path_shorter_than_half_the_round_trip_is_refused_with_both() {
    let text = TWO_SITES.replace("a: {}", "a: {pin: m1}").replace("c: {}", "c: {pin: m2}");
    let plan = plan(&text);
    let refused = place(&plan, &hosts(&["m1", "m2"]), &rtts(2, Span::from_millis(10))).unwrap_err();
    let hint = "`pin: m1` for `a` and `c`, or give their links more latency";
    assert_eq!(refused.reasons[0].hint(), hint);
    let far = "a round trip of 10ms apart";
    assert_eq!(
        messages(&refused),
        [
            format!("the path a - r - c takes 2ms one way, its ends are on m1 and m2, {far}"),
            format!("the path c - r - a takes 2ms one way, its ends are on m2 and m1, {far}"),
        ]
    );
}

#[test]
fn a_latency_that_an_event_sets_counts() {
    let text = format!(
        "{}events: [{{at: 1s, link: a--r, set: {{latency: 0ms}}}}]\n",
        TWO_SITES.replace("a: {}", "a: {pin: m1}").replace("c: {}", "c: {pin: m2}")
    );
    let rtts = rtts(2, Span::from_millis(3));
    let refused = place(&plan(&text), &hosts(&["m1", "m2"]), &rtts).unwrap_err();
    assert!(messages(&refused)[0].contains("takes 1ms one way"));
    let without = text.split("events").next().unwrap();
    assert!(place(&plan(without), &hosts(&["m1", "m2"]), &rtts).is_ok());
}

#[test]
fn paths_without_latency_may_be_split_with_a_warning() {
    let text =
        "placement: spread\nnodes: {a: {}, b: {}}\nlinks: [{between: [a, b], rate: 1mbit}]\n";
    let placed =
        place(&plan(text), &hosts(&["m1", "m2"]), &rtts(2, Span::from_micros(300))).unwrap();
    let messages: Vec<String> = placed.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(messages.len(), 1);
    assert!(messages[0].starts_with("paths such as a to b ask for no latency"), "{messages:?}");
}

#[test]
fn a_round_trip_that_was_not_measured_gives_a_warning() {
    let placed = place(&plan(TWO_SITES), &hosts(&["m1", "m2"]), &Rtts::default()).unwrap();
    let messages: Vec<String> = placed.warnings.iter().map(ToString::to_string).collect();
    let text = "the round-trip time between m1 and m2 is not known: no path was compared with it";
    assert_eq!(messages, [text]);
}

#[test]
fn more_than_the_uplink_carries_is_refused_with_numbers() {
    let text = "nodes: {a: {pin: b, count: 4}, z: {pin: c, count: 4}}\nrouters: [r]\nlinks:\n\
                - {between: [a, r], rate: 3gbit}\n- {between: [z, r], rate: 20gbit}\n";
    let mut hosts = hosts(&["b", "c"]);
    hosts[0].uplink = "10gbit".parse().ok();
    hosts[0].reserved.uplink_up = 2_000_000_000;
    hosts[1].uplink = "100gbit".parse().ok();
    let refused = place(&plan(text), &hosts, &Rtts::default()).unwrap_err();
    assert_eq!(
        messages(&refused),
        [
            "host b: nodes there can send 12.18gbit to other hosts, its uplink has 10gbit, free 8gbit",
            "host b: nodes there can be sent 12.18gbit from other hosts, its uplink has 10gbit, free 10gbit",
        ]
    );
}

#[test]
fn fewer_machines_are_used_where_all_of_them_cannot_carry_it() {
    let text = "nodes: {a: {count: 4}}\nrouters: [r]\nlinks: [{between: [a, r], rate: 2gbit, latency: 5ms}]\n";
    let mut hosts = hosts(&["m1", "m2", "m3"]);
    hosts.iter_mut().for_each(|host| host.uplink = "1gbit".parse().ok());
    let placed = place(&plan(text), &hosts, &Rtts::default()).unwrap();
    assert_eq!(placed.loads.iter().map(|load| load.nodes).max(), Some(4));
    let spread = format!("placement: spread\n{text}");
    assert!(place(&plan(&spread), &hosts, &Rtts::default()).is_err());
}

#[test]
fn links_without_a_rate_bound_nothing_and_nodes_are_counted() {
    let text = "nodes: {a: {pin: m1}, b: {pin: m1}, c: {pin: m2}}\nrouters: [r]\nlinks:\n\
                - {between: [a, r]}\n- {between: [b, r], rate: 1mbit}\n- {between: [c, r]}\n";
    let mut hosts = hosts(&["m1", "m2"]);
    hosts.iter_mut().for_each(|host| host.uplink = "1gbit".parse().ok());
    let placed = place(&plan(text), &hosts, &Rtts::default()).unwrap();
    assert_eq!(placed.loads[0].up, UplinkTrafficBound::Unbounded { nodes: 1 });
    assert_eq!(placed.loads[1].down, UplinkTrafficBound::Unbounded { nodes: 1 });
}

#[test]
fn no_machine_is_an_error_and_one_needs_no_network() {
    let plan = plan(TWO_SITES);
    assert_eq!(
        messages(&place(&plan, &[], &Rtts::default()).unwrap_err()),
        ["there is no machine"]
    );
    let placed = place(&plan, &hosts(&["m1"]), &Rtts::default()).unwrap();
    assert_eq!(placed.loads[0].up, UplinkTrafficBound::Bounded(0));
    assert_eq!(placed.warnings, []);
}
