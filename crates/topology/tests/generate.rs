//! What is generated has the promised numbers, is connected, and loads as what it says.

mod common;

use std::collections::BTreeMap;

use common::{assert_loads_as_it_says, load};
use proptest::prelude::*;
use windtunnel_model::profile::QueueLimit;
use windtunnel_model::{Packets, Plan, Probability, Rate, Span};
use windtunnel_routing::Routes;
use windtunnel_topology::{
    GenerateError, GeneratedLinkProperties, GeneratorParameters, LatencyRange, Topology,
    TopologyShape, generate,
};

/// A shape with the numbers of nodes, routers and links that it must have: links of the shape and
/// of the nodes.
fn known() -> Vec<(TopologyShape, usize, usize, usize)> {
    vec![
        (TopologyShape::Star { nodes: 7 }, 7, 1, 7),
        (TopologyShape::Chain { routers: 5 }, 5, 5, 4 + 5),
        (TopologyShape::Ring { routers: 6 }, 6, 6, 6 + 6),
        (TopologyShape::FullMesh { routers: 6 }, 6, 6, 15 + 6),
        // 1 + 3 + 9 routers, 9 of them leaves.
        (TopologyShape::Tree { fanout: 3, depth: 2 }, 9, 13, 12 + 9),
        (TopologyShape::Tree { fanout: 1, depth: 3 }, 1, 4, 3 + 1),
        // r(c-1) + c(r-1) = 3·4 + 5·2.
        (TopologyShape::Grid { rows: 3, columns: 5 }, 15, 15, 22 + 15),
        (TopologyShape::Torus { rows: 3, columns: 5 }, 15, 15, 30 + 15),
        (TopologyShape::Dumbbell { left: 3, right: 2 }, 5, 2, 1 + 5),
        // (k+1)·2^k routers, k·2^(k+1) links, nodes at 2·2^k of them.
        (TopologyShape::Butterfly { dimension: 3 }, 16, 32, 48 + 16),
        // A clique of three, then two links for each of 17 newcomers.
        (TopologyShape::ScaleFree { routers: 20, attach: 2 }, 20, 20, 3 + 34 + 20),
    ]
}

fn made(shape: TopologyShape) -> Topology {
    generate(&GeneratorParameters::new(shape)).expect("the numbers fit")
}

/// How many links each router has to other routers.
fn degrees(plan: &Plan) -> BTreeMap<String, usize> {
    let nodes: Vec<&str> = plan.nodes.iter().map(|node| node.name.as_str()).collect();
    let mut degrees: BTreeMap<String, usize> =
        plan.routers.iter().map(|router| (router.name.clone(), 0)).collect();
    for link in &plan.links {
        let ends = link.ends.map(|end| plan.vertex_name(end.vertex));
        if ends.iter().all(|end| !nodes.contains(end)) {
            for end in ends {
                *degrees.entry(end.to_owned()).or_default() += 1;
            }
        }
    }
    degrees
}

#[test]
fn every_shape_has_the_promised_numbers() {
    for (shape, nodes, routers, links) in known() {
        let plan = load(&made(shape));
        let counts = (plan.nodes.len(), plan.routers.len(), plan.links.len());
        assert_eq!(counts, (nodes, routers, links), "{shape:?}");
    }
}

#[test]
fn every_shape_loads_as_it_says_and_joins_every_two_nodes() {
    for (shape, ..) in known() {
        // A scenario whose nodes cannot reach each other would be refused.
        let topology = made(shape);
        assert!(!topology.unreachable);
        assert_loads_as_it_says(&topology);
    }
}

#[test]
fn the_routers_of_regular_shapes_have_their_degrees() {
    let all = |shape, degree| {
        let plan = load(&made(shape));
        assert!(degrees(&plan).values().all(|of| *of == degree), "{shape:?}");
    };
    all(TopologyShape::Ring { routers: 9 }, 2);
    all(TopologyShape::FullMesh { routers: 5 }, 4);
    all(TopologyShape::Torus { rows: 4, columns: 3 }, 4);
    let butterfly = degrees(&load(&made(TopologyShape::Butterfly { dimension: 2 })));
    assert_eq!((butterfly["r-0-3"], butterfly["r-1-3"], butterfly["r-2-0"]), (2, 4, 2));
    let grid = degrees(&load(&made(TopologyShape::Grid { rows: 3, columns: 3 })));
    assert_eq!((grid["r-1-1"], grid["r-1-2"], grid["r-2-2"]), (2, 3, 4));
    let tree = degrees(&load(&made(TopologyShape::Tree { fanout: 2, depth: 2 })));
    assert_eq!((tree["r-1"], tree["r-2"], tree["r-7"]), (2, 3, 1));
}

#[test]
fn a_torus_is_as_wide_as_half_its_sides() {
    let plan = load(&made(TopologyShape::Torus { rows: 6, columns: 4 }));
    let routes = Routes::compute(&plan);
    let (from, nodes) = (plan.node_named("node-1").unwrap(), plan.nodes.len());
    let hops = (1..nodes).map(|to| {
        let to = windtunnel_model::NodeId::from_index(to);
        routes.path(&plan, from, to).unwrap().len() - 2
    });
    assert_eq!(hops.max(), Some(3 + 2));
}

#[test]
fn scale_free_graphs_have_hubs_and_newcomers_have_their_links() {
    let plan = load(&made(TopologyShape::ScaleFree { routers: 200, attach: 2 }));
    let degrees = degrees(&plan);
    assert_eq!(degrees.values().sum::<usize>(), 2 * (3 + 2 * 197));
    assert!(degrees.values().all(|degree| *degree >= 2));
    // In a graph of this size with the same number of links at random, a degree of 16 is 6 standard
    // deviations from the mean of 4.
    assert!(degrees.values().max() >= Some(&16), "{degrees:?}");
}

#[test]
fn a_thousand_nodes_are_dealt_out_evenly_over_two_hundred_routers() {
    let shape = TopologyShape::ScaleFree { routers: 200, attach: 2 };
    let topology =
        generate(&GeneratorParameters { nodes: Some(1000), ..GeneratorParameters::new(shape) })
            .unwrap();
    let plan = load(&topology);
    assert_eq!((plan.nodes.len(), plan.routers.len()), (1000, 200));
    let mut attached: BTreeMap<&str, usize> = BTreeMap::new();
    for link in topology.links.iter().filter(|link| link.between[0].starts_with("node-")) {
        *attached.entry(&link.between[1]).or_default() += 1;
    }
    assert_eq!(attached.len(), 200);
    assert!(attached.values().all(|nodes| *nodes == 5));
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_another_graph() {
    for shape in [
        TopologyShape::ScaleFree { routers: 50, attach: 3 },
        TopologyShape::Random { routers: 50, probability: None },
    ] {
        let of = |seed| {
            generate(&GeneratorParameters { seed, ..GeneratorParameters::new(shape) })
                .unwrap()
                .to_yaml()
        };
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }
}

#[test]
fn the_links_of_a_random_graph_are_as_many_as_its_probability_says() {
    let probability = "10%".parse().unwrap();
    let links = |seed| {
        let shape = TopologyShape::Random { routers: 100, probability: Some(probability) };
        let topology =
            generate(&GeneratorParameters { seed, ..GeneratorParameters::new(shape) }).unwrap();
        topology.links.len() - 100
    };
    // 4950 pairs, mean 495, standard deviation √(4950·0.1·0.9) = 21.1; over 16 graphs: 5.3.
    let mean = (1..=16).map(links).sum::<usize>() / 16;
    assert!((495 - 22..=495 + 22).contains(&mean), "{mean}");
}

#[test]
fn latencies_are_drawn_from_their_range_and_the_rest_is_on_every_link() {
    let range = LatencyRange { least: Span::from_millis(5), most: Span::from_millis(50) };
    let trunk = GeneratedLinkProperties {
        jitter: Span::from_millis(1),
        loss: "0.5%".parse().unwrap(),
        rate: Some("10mbit".parse().unwrap()),
        queue: Some(QueueLimit::Packets(Packets(50))),
    };
    let access = GeneratedLinkProperties {
        rate: Some("1gbit".parse().unwrap()),
        ..GeneratedLinkProperties::default()
    };
    let shape = TopologyShape::Ring { routers: 40 };
    let request =
        GeneratorParameters { latency: range, trunk, access, ..GeneratorParameters::new(shape) };
    let topology = generate(&request).unwrap();
    assert_loads_as_it_says(&topology);
    let (ring, nodes) = topology.links.split_at(40);
    assert!(ring.iter().all(|link| (range.least..=range.most).contains(&link.up.latency)));
    let different: std::collections::BTreeSet<Span> =
        ring.iter().map(|link| link.up.latency).collect();
    assert!(different.len() > 30, "{different:?}");
    assert!(ring.iter().all(|link| link.up.loss == trunk.loss && link.up.queue == trunk.queue));
    assert!(nodes.iter().all(|link| link.up.rate == Rate::from_bits_per_second(1_000_000_000)));
    assert!(nodes.iter().all(|link| link.up.latency == Span::from_millis(1)));
}

#[test]
fn every_node_runs_the_command_whatever_letters_it_has() {
    let command = "sh -c 'echo \"näh: {a}, #b\" \\ | cat'";
    let request = GeneratorParameters {
        run: Some(command.to_owned()),
        ..GeneratorParameters::new(TopologyShape::Star { nodes: 2 })
    };
    let plan = load(&generate(&request).unwrap());
    for node in &plan.nodes {
        assert_eq!(node.programs[0].argv, ["sh", "-c", "echo \"näh: {a}, #b\" \\ | cat"]);
    }
}

#[test]
fn sizes_out_of_range_are_refused_with_the_number() {
    let refused = |shape| generate(&GeneratorParameters::new(shape)).unwrap_err().to_string();
    assert_eq!(
        refused(TopologyShape::Ring { routers: 2 }),
        "the number of routers is 2: a ring needs at least 3"
    );
    assert_eq!(
        refused(TopologyShape::ScaleFree { routers: 3, attach: 3 }),
        "the number of routers is 3: this scale-free graph needs at least 4"
    );
    assert_eq!(
        refused(TopologyShape::FullMesh { routers: 400 }),
        "this would make 79800 links: at most 50000 can be made"
    );
    let error = generate(&GeneratorParameters {
        nodes: Some(0),
        ..GeneratorParameters::new(TopologyShape::Ring { routers: 3 })
    });
    assert_eq!(
        error.unwrap_err().to_string(),
        "the number of nodes is 0: a network needs at least 1"
    );
}

#[test]
fn a_random_graph_that_never_is_connected_is_an_error_with_the_threshold() {
    let probability = Probability::from_parts_per_billion(10_000_000).unwrap();
    let shape = TopologyShape::Random { routers: 50, probability: Some(probability) };
    let error = generate(&GeneratorParameters::new(shape)).unwrap_err();
    assert!(matches!(error, GenerateError::NotConnected { routers: 50, attempts: 100, .. }));
    // ln(50)/50 = 7.824 %.
    assert!(error.hint().unwrap().contains("7.83%"), "{:?}", error.hint());
}

#[test]
fn the_largest_network_that_may_be_loads() {
    let shape = TopologyShape::ScaleFree { routers: 10_000, attach: 3 };
    let topology =
        generate(&GeneratorParameters { nodes: Some(10_000), ..GeneratorParameters::new(shape) })
            .unwrap();
    assert_eq!(load(&topology).links.len(), 6 + 3 * 9_996 + 10_000);
}

fn any_shape() -> impl Strategy<Value = TopologyShape> {
    let n = 0..40_u32;
    prop_oneof![
        n.clone().prop_map(|nodes| TopologyShape::Star { nodes }),
        n.clone().prop_map(|routers| TopologyShape::Chain { routers }),
        n.clone().prop_map(|routers| TopologyShape::Ring { routers }),
        n.clone().prop_map(|routers| TopologyShape::FullMesh { routers }),
        (0..6_u32, 0..4_u32).prop_map(|(fanout, depth)| TopologyShape::Tree { fanout, depth }),
        (0..7_u32, 0..7_u32).prop_map(|(rows, columns)| TopologyShape::Grid { rows, columns }),
        (0..7_u32, 0..7_u32).prop_map(|(rows, columns)| TopologyShape::Torus { rows, columns }),
        (n.clone(), n.clone()).prop_map(|(left, right)| TopologyShape::Dumbbell { left, right }),
        (0..6_u32).prop_map(|dimension| TopologyShape::Butterfly { dimension }),
        n.clone().prop_map(|routers| TopologyShape::Random { routers, probability: None }),
        (n, 0..5_u32).prop_map(|(routers, attach)| TopologyShape::ScaleFree { routers, attach }),
        any::<[u32; 2]>().prop_map(|[rows, columns]| TopologyShape::Grid { rows, columns }),
        any::<[u32; 2]>().prop_map(|[fanout, depth]| TopologyShape::Tree { fanout, depth }),
        any::<[u32; 2]>()
            .prop_map(|[routers, attach]| TopologyShape::ScaleFree { routers, attach }),
        any::<u32>().prop_map(|dimension| TopologyShape::Butterfly { dimension }),
        any::<u32>().prop_map(|routers| TopologyShape::Random { routers, probability: None }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_numbers_give_a_connected_network_or_an_error(shape in any_shape(), seed in 0..100_u64) {
        match generate(&GeneratorParameters { seed, ..GeneratorParameters::new(shape) }) {
            Ok(topology) => assert_loads_as_it_says(&topology),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    /// Quotes, colons, `#`, braces, ends of lines: nothing in a command is taken for YAML.
    #[test]
    fn a_command_reaches_the_node_as_it_was_given(words in prop::collection::vec("[^\\x00]{0,8}", 0..4)) {
        let quoted: Vec<String> =
            words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
        let run = Some(format!("cmd {}", quoted.join(" ")));
        let request = GeneratorParameters { run, ..GeneratorParameters::new(TopologyShape::Star { nodes: 2 }) };
        let plan = load(&generate(&request).expect("a star of two"));
        prop_assert_eq!(&plan.nodes[0].programs[0].argv[1..], &words[..]);
    }
}
