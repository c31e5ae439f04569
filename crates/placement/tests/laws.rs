//! Properties of every network and all machines.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use windtunnel_model::placement::Strategy as Filling;
use windtunnel_model::{Bytes, NodeId, Plan, Probability, Span};
use windtunnel_placement::{
    BYTES_PER_NODE, NodePlacement, PlacementHost, PlacementRefusalReason, ReservedCapacity, Rtts,
    UplinkTrafficBound, place,
};
use windtunnel_routing::Routes;
use windtunnel_topology::{
    GeneratedLinkProperties, GeneratorParameters, LatencyRange, TopologyShape, generate,
};

/// A generated network.
fn network(shape: TopologyShape, nodes: u32, seed: u64) -> Plan {
    let mut request = GeneratorParameters::new(shape);
    if !matches!(shape, TopologyShape::Star { .. } | TopologyShape::Dumbbell { .. }) {
        request.nodes = Some(nodes);
    }
    request.seed = seed;
    request.latency = LatencyRange { least: Span::from_micros(100), most: Span::from_millis(20) };
    request.trunk = GeneratedLinkProperties {
        rate: "100mbit".parse().ok(),
        ..GeneratedLinkProperties::default()
    };
    request.access = GeneratedLinkProperties {
        rate: "20mbit".parse().ok(),
        ..GeneratedLinkProperties::default()
    };
    let yaml = generate(&request).unwrap().to_yaml();
    let source = windtunnel_scenario::ScenarioSource {
        name: "net.yaml",
        text: yaml.as_bytes(),
        default_name: "net",
        base_dir: "/",
    };
    windtunnel_scenario::load(&source).unwrap_or_else(|errors| panic!("{errors}")).plan
}

fn shapes() -> impl Strategy<Value = TopologyShape> {
    prop_oneof![
        (2..30u32).prop_map(|nodes| TopologyShape::Star { nodes }),
        (2..20u32).prop_map(|routers| TopologyShape::Chain { routers }),
        (3..20u32).prop_map(|routers| TopologyShape::Ring { routers }),
        (2..4u32, 1..4u32).prop_map(|(fanout, depth)| TopologyShape::Tree { fanout, depth }),
        (2..5u32, 2..5u32).prop_map(|(rows, columns)| TopologyShape::Grid { rows, columns }),
        (1..15u32, 1..15u32).prop_map(|(left, right)| TopologyShape::Dumbbell { left, right }),
        (5..25u32).prop_map(|routers| TopologyShape::ScaleFree { routers, attach: 2 }),
        (5..20u32).prop_map(|routers| TopologyShape::Random {
            routers,
            probability: Probability::from_parts_per_billion(300_000_000)
        }),
    ]
}

/// Processors, gigabytes, nodes, Mbit/s of the uplink, and half processors that are taken.
type Sizes = (u64, u64, Option<u32>, Option<u64>, u64);

fn machines() -> impl Strategy<Value = Vec<PlacementHost>> {
    let host = (
        1..17u64,
        1..33u64,
        proptest::option::of(1..40u32),
        proptest::option::of(1..2000u64),
        0..4u64,
    );
    proptest::collection::vec(host, 1..6).prop_map(|hosts| {
        let host =
            |(index, (cpu, memory, nodes_max, uplink, reserved)): (usize, Sizes)| PlacementHost {
                cpu_millis: cpu * 1000,
                memory: Bytes(memory * 1_000_000_000),
                nodes_max,
                uplink: uplink.and_then(|mbit| format!("{mbit}mbit").parse().ok()),
                labels: [format!("odd={}", index % 2)].into(),
                reserved: ReservedCapacity {
                    cpu_millis: reserved * 500,
                    ..ReservedCapacity::default()
                },
                ..PlacementHost::new(format!("m{index}"))
            };
        hosts.into_iter().enumerate().map(host).collect()
    })
}

fn rtts(hosts: usize, seed: u64) -> Rtts {
    let mut rtts = Rtts::default();
    for a in 0..hosts {
        for b in 0..a {
            let micros = (seed >> ((a * 7 + b * 3) % 50)) % 8 * 400;
            if micros > 0 {
                rtts.set(a, b, Span::from_micros(micros));
            }
        }
    }
    rtts
}

/// Every law for a placement that was not refused.
fn holds(
    plan: &Plan,
    hosts: &[PlacementHost],
    rtts: &Rtts,
    placed: &NodePlacement,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(placed.hosts.len(), plan.nodes.len());
    prop_assert_eq!(placed.loads.len(), hosts.len());
    for (at, (host, load)) in hosts.iter().zip(&placed.loads).enumerate() {
        let nodes: Vec<_> = placed.nodes_on(at).map(|node| &plan.nodes[node.index()]).collect();
        let cpu: u64 =
            nodes.iter().filter_map(|node| node.demand.cpu_reserved_millis).map(u64::from).sum();
        let memory: u64 = nodes
            .iter()
            .map(|node| node.demand.memory_reserved.unwrap_or_default().0 + BYTES_PER_NODE)
            .sum();
        prop_assert_eq!(load.nodes as usize, nodes.len());
        prop_assert_eq!((load.cpu_millis, load.memory), (cpu, Bytes(memory)));
        prop_assert!(
            cpu <= host.free_cpu_millis() && memory <= host.free_memory().0 || nodes.is_empty()
        );
        prop_assert!(host.free_nodes().is_none_or(|free| load.nodes <= free));
        for (traffic, free) in [(load.up, host.free_up()), (load.down, host.free_down())] {
            let UplinkTrafficBound::Bounded(bits) = traffic else { panic!("all links have rates") };
            prop_assert!(free.is_none_or(|free| bits <= free));
        }
        for node in nodes {
            prop_assert!(node.pin.as_deref().is_none_or(|pin| host.answers_to(pin)));
        }
    }
    let routes = Routes::compute(plan);
    for (from, a) in placed.hosts.iter().enumerate() {
        for (to, b) in placed.hosts.iter().enumerate().filter(|(_, b)| *b != a) {
            let lanes =
                routes.path(plan, NodeId::from_index(from), NodeId::from_index(to)).unwrap();
            let latency: u64 = lanes
                .iter()
                .map(|lane| {
                    plan.links[lane.link.index()].profiles[lane.direction.index()]
                        .latency
                        .as_nanos()
                })
                .sum();
            let rtt = rtts.between(*a, *b).unwrap_or_default().as_nanos();
            prop_assert!(latency == 0 || latency >= rtt / 2, "{latency} ns for {rtt}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_placement_fits_and_keeps_to_pins_and_distances(
        shape in shapes(), nodes in 2..40u32, seed in any::<u64>(), hosts in machines(),
        pins in proptest::collection::vec((0..40usize, 0..6usize, 0..2000u32), 0..6), filling in 0..3u8,
    ) {
        let mut plan = network(shape, nodes, seed);
        plan.placement = [Filling::Auto, Filling::Pack, Filling::Spread][usize::from(filling)];
        for (node, host, cpu) in pins {
            let at = node % plan.nodes.len();
            let host = host % hosts.len();
            plan.nodes[at].pin = Some(if cpu % 2 == 0 { format!("m{host}") } else { format!("odd={}", host % 2) });
            plan.nodes[at].demand.cpu_reserved_millis = Some(cpu);
        }
        let rtts = rtts(hosts.len(), seed);
        let first = place(&plan, &hosts, &rtts);
        prop_assert_eq!(&first, &place(&plan, &hosts, &rtts), "the same again");
        match first {
            Ok(placed) => holds(&plan, &hosts, &rtts, &placed)?,
            Err(refused) => {
                prop_assert!(!refused.reasons.is_empty());
                let wrong = |reason: &PlacementRefusalReason| match reason {
                    PlacementRefusalReason::TooLittle { asked, free, .. } | PlacementRefusalReason::Uplink { asked, free, .. } => asked <= free,
                    PlacementRefusalReason::TooClose { latency, rtt, .. } => latency.as_nanos() >= rtt.as_nanos() / 2,
                    _ => false,
                };
                prop_assert!(!refused.reasons.iter().any(wrong), "{refused}");
            }
        }
    }

    #[test]
    fn a_plan_with_enough_room_is_not_refused(shape in shapes(), nodes in 2..40u32, seed in any::<u64>(), hosts in 1..9usize) {
        let plan = network(shape, nodes, seed);
        let hosts: Vec<PlacementHost> = (0..hosts).map(|at| PlacementHost::new(format!("m{at}"))).collect();
        let rtts = rtts(hosts.len(), seed);
        let uniform = (0..hosts.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        let mut same = Rtts::default();
        uniform.for_each(|(a, b)| same.set(a, b, Span::from_micros(seed % 5000)));
        let placed = place(&plan, &hosts, &same).unwrap_or_else(|refused| panic!("{refused}"));
        holds(&plan, &hosts, &same, &placed)?;
        let placed = place(&plan, &hosts, &rtts).unwrap_or_else(|refused| panic!("{refused}"));
        holds(&plan, &hosts, &rtts, &placed)?;
    }
}

#[test]
fn a_thousand_nodes_over_sixteen_machines_are_divided_evenly() {
    let plan = network(TopologyShape::ScaleFree { routers: 200, attach: 2 }, 1000, 7);
    let hosts: Vec<PlacementHost> =
        (0..16).map(|at| PlacementHost::new(format!("m{at}"))).collect();
    let placed = place(&plan, &hosts, &Rtts::default()).unwrap();
    // 62.5 each, give or take a tenth.
    assert!(placed.loads.iter().all(|load| (56..=69).contains(&load.nodes)), "{:?}", placed.loads);
}
