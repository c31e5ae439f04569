//! Events, and what repetitions, flaps and churn come to.

use windtunnel_model::plan::{EventAction, PartitionMode, Plan};
use windtunnel_model::profile::PropertySetting;
use windtunnel_model::{NetworkVertex, NodeId, Span};

use super::{notices, plan};

#[test]
fn events_are_sorted_by_time_and_keep_the_files_order_at_one_time() {
    let text = "nodes: {a: {run: x}, b: {count: 2}}\nrouters: [r]\n\
                links: [{between: [a, r], name: l}, {between: [b, r], name: g}]\n\
                events:\n  - {at: 9s, heal: true}\n  - {at: 1s, link: g, direction: b-r, set: {loss: 1%}}\n  \
                - {at: 1s, node: a, do: kill}\n  \
                - {at: 0s, link: [l], set: {latency: 1ms, up: {latency: 2ms}}, down: true}\n";
    let plan = plan(text);
    let times: Vec<String> = plan.events.iter().map(|event| event.at.to_string()).collect();
    assert_eq!(times, ["0ns", "1s", "1s", "9s"]);
    let EventAction::Link(change) = &plan.events[0].action else { panic!("{:?}", plan.events[0]) };
    let latencies: Vec<_> = change.patches.iter().map(|(_, patch)| patch.latency).collect();
    assert_eq!(latencies, [Some(Span::from_millis(2)), Some(Span::from_millis(1))]);
    assert_eq!(change.state.iter().map(|(_, up)| *up).collect::<Vec<_>>(), [false, false]);
    let EventAction::Link(change) = &plan.events[1].action else { panic!("{:?}", plan.events[1]) };
    let lanes: Vec<String> = change.patches.iter().map(|(lane, _)| plan.lane_name(*lane)).collect();
    assert_eq!(lanes, ["b-1-r", "b-2-r"]);
    assert!(matches!(plan.events[2].action, EventAction::Node { .. }));
}

#[test]
fn an_event_may_take_a_rate_away() {
    let text = "nodes: {a: {}, b: {}}\nlinks: [{between: [a, b], name: l, rate: 1mbit}]\n\
                events: [{at: 1s, link: l, set: {rate: none}}]\n";
    let EventAction::Link(change) = &plan(text).events[0].action else { panic!("a link event") };
    assert_eq!(change.patches[0].1.rate, Some(PropertySetting::Default));
}

#[test]
fn repetitions_flaps_and_some_nodes_come_to_events_of_their_own() {
    let text = "duration: 4s\nnodes: {peers: {count: 10, run: x}}\nrouters: [r]\n\
                links: [{between: [peers, r], name: g}]\nevents:\n  \
                - {at: 1s, every: 1s, node: peers, do: restart, some: 25%}\n  \
                - {at: 500ms, flap: {link: g-1, direction: up, every: 200ms, down: 50ms, for: 430ms}}\n";
    let plan = plan(text);
    let restarts = plan.events.iter().filter_map(|event| match &event.action {
        EventAction::Node { nodes, .. } => Some((event.at.to_string(), nodes.clone())),
        _ => None,
    });
    let restarts: Vec<(String, Vec<NodeId>)> = restarts.collect();
    // Before the end at 4 s; 2.5 nodes are rounded to 3, and each time has random numbers of its own.
    let times: Vec<&str> = restarts.iter().map(|(at, _)| at.as_str()).collect();
    assert_eq!(times, ["1s", "2s", "3s"]);
    assert!(restarts.iter().all(|(_, nodes)| nodes.len() == 3), "{restarts:?}");
    assert!(restarts.iter().any(|(_, nodes)| *nodes != restarts[0].1), "{restarts:?}");
    let flaps = plan.events.iter().filter_map(|event| match &event.action {
        EventAction::Flap { lanes, up } => Some((event.at.to_string(), lanes.len(), *up)),
        _ => None,
    });
    // The third cut, at 900 ms, does not outlive the flap, which ends at 930 ms.
    let expected = [
        ("500ms", false),
        ("550ms", true),
        ("700ms", false),
        ("750ms", true),
        ("900ms", false),
        ("930ms", true),
    ];
    let expected = expected.map(|(at, up)| (at.to_owned(), 1, up));
    assert_eq!(flaps.collect::<Vec<_>>(), expected);
}

#[test]
fn a_random_flap_keeps_its_means_and_is_the_seeds() {
    let text = |seed| {
        format!(
            "seed: {seed}\nnodes: {{a: , b: }}\nlinks: [{{between: [a, b], name: l}}]\nevents:\n  \
             - {{at: 0s, flap: {{link: l, every: 100ms, down: 20ms, times: 1000, random: true}}}}\n"
        )
    };
    let times = |plan: &Plan| plan.events.iter().map(|e| e.at.as_nanos()).collect::<Vec<u64>>();
    let (one, other) = (times(&plan(&text(1))), times(&plan(&text(2))));
    assert_eq!(one, times(&plan(&text(1))));
    assert_ne!(one, other);
    let dark: u64 = one.chunks(2).map(|phase| phase[1] - phase[0]).sum();
    // Uniform from 0 to 40 ms: the mean of 1000 is 20 ms with a deviation of 0.37 ms.
    assert!((18_500_000_000..=21_500_000_000).contains(&dark), "{dark}");
    assert!((93_000_000_000..=107_000_000_000).contains(one.last().unwrap()), "{:?}", one.last());
}

#[test]
fn a_node_that_joins_by_a_script_is_absent_before_all_other_events() {
    let text = "nodes: {peers: {count: 5, run: x}}\nrouters: [r]\nlinks: [{between: [peers, r]}]\n\
                events:\n  - {at: 0s, heal: true}\n  \
                - churn: {nodes: peers, present: 40%, script: at 10s join 3, speed-up: 2}\n";
    let plan = plan(text);
    let EventAction::Absent { nodes } = &plan.events[0].action else { panic!("{:?}", plan.events) };
    assert_eq!(nodes.len(), 3);
    let EventAction::Churn { join, .. } = &plan.events[2].action else {
        panic!("{:?}", plan.events)
    };
    assert_eq!((plan.events[2].at, join), (Span::from_secs(5), nodes));
}

#[test]
fn a_partition_that_cuts_nothing_is_noticed() {
    let text = "nodes: {a: , b: }\nrouters: [r]\nlinks: [{between: [a, r]}, {between: [b, r]}]\n\
                events: [{at: 1s, partition: [[a], [b]]}]\n";
    assert!(notices(text)[0].contains("this partition cuts no link"), "{:?}", notices(text));
}

#[test]
fn a_second_partition_at_the_same_instant_is_noticed() {
    let head = "duration: 60s\nnodes: {a: , b: , c: }\nlans: {l: }\n\
                links: [{between: [a, l]}, {between: [b, l]}, {between: [c, l]}]\nevents:\n";
    let of = |events: &[&str]| {
        let lines: String = events.iter().map(|event| format!("  - {event}\n")).collect();
        notices(&format!("{head}{lines}"))
    };
    let twice = of(&["{at: 5s, partition: [[a], [b]]}", "{at: 5s, partition: [[a], [c]]}"]);
    assert_eq!(twice.len(), 1, "{twice:?}");
    let said =
        "this takes the place of the partition of line 6, at 5s as well, which so cuts nothing";
    assert!(twice[0].contains(said), "{twice:?}");
    // One that repeats meets another one at its second time; it is said once.
    let repeated = of(&[
        "{at: 0s, every: 5s, partition: [[a], [b]]}",
        "{at: 10s, every: 10s, partition: [[a], [c]]}",
    ]);
    assert_eq!(repeated.len(), 1, "{repeated:?}");
    let healed = of(&["{at: 5s, partition: [[a], [b]]}", "{at: 5s, heal: true}"]);
    assert!(healed[0].contains("this ends the partition of line 6, at 5s as well"), "{healed:?}");
    // These are one after the other.
    let fine = of(&[
        "{at: 5s, partition: [[a], [b]]}",
        "{at: 9s, heal: true}",
        "{at: 9s, partition: [[a], [c]]}",
    ]);
    assert!(fine.is_empty(), "{fine:?}");
}

#[test]
fn a_partition_may_be_of_pairs_that_share_nodes() {
    let text = "nodes: {n: {count: 5}}\nlans: {l: }\nlinks: [{between: [n, l]}]\nevents:\n  \
                - {at: 1s, partition: {pairs: [[n-1, n-3], [n-1, n-4], [n-2, [n-4, n-5]]]}}\n";
    let plan = plan(text);
    let node = |number| NetworkVertex::Node(NodeId(number));
    let groups = [[0].as_slice(), &[2], &[0], &[3], &[1], &[3, 4]];
    let groups = groups.map(|side| side.iter().map(|number| node(*number)).collect()).to_vec();
    assert_eq!(plan.events[0].action, EventAction::Partition { groups, cut: PartitionMode::Pairs });
    assert!(notices(text).is_empty());
}
