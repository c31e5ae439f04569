//! Cost of placing a plan: rows of name, asked, ours (median, least to greatest), uplinks
//! together, and those of dealing nodes out in turn.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for the workshop")]

use std::time::Instant;

use windtunnel_model::{Plan, Span};
use windtunnel_placement::{NodePlacement, PlacementHost, Rtts, UplinkTrafficBound, place};
use windtunnel_topology::{
    GeneratedLinkProperties, GeneratorParameters, LatencyRange, TopologyShape, generate,
};

fn main() {
    let rounds = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(5);
    println!("network\tasked\tours\tuplinks\tround robin");
    let routers = 200;
    let shapes = [
        ("1000 nodes, scale-free", TopologyShape::ScaleFree { routers, attach: 2 }),
        ("1000 nodes, ring", TopologyShape::Ring { routers }),
        ("1000 nodes, tree", TopologyShape::Tree { fanout: 6, depth: 3 }),
        ("1000 nodes, star", TopologyShape::Star { nodes: 1000 }),
    ];
    for (name, shape) in shapes {
        let plan = network(shape);
        let hosts: Vec<PlacementHost> =
            (0..16).map(|at| PlacementHost::new(format!("m{at}"))).collect();
        let mut rtts = Rtts::default();
        (0..16).for_each(|a| (0..a).for_each(|b| rtts.set(a, b, Span::from_micros(200))));
        let mut times = Vec::new();
        let mut placed = None;
        for _ in 0..rounds {
            let start = Instant::now();
            placed = Some(place(&plan, &hosts, &rtts).unwrap());
            times.push(start.elapsed().as_secs_f64() * 1000.0);
        }
        times.sort_by(f64::total_cmp);
        let (least, median, most) = (times[0], times[times.len() / 2], times[times.len() - 1]);
        let ours = uplinks(&placed.unwrap());
        let mut dealt = plan.clone();
        for (at, node) in dealt.nodes.iter_mut().enumerate() {
            node.pin = Some(format!("m{}", at % 16));
        }
        let dealt = uplinks(&place(&dealt, &hosts, &Rtts::default()).unwrap());
        println!(
            "{name}\t100 ms\t{median:.1} ms ({least:.1} to {most:.1})\t{ours} Mbit/s\t{dealt} Mbit/s"
        );
    }
}

fn network(shape: TopologyShape) -> Plan {
    let mut request = GeneratorParameters::new(shape);
    if !matches!(shape, TopologyShape::Star { .. }) {
        request.nodes = Some(1000);
    }
    request.latency = LatencyRange { least: Span::from_millis(1), most: Span::from_millis(20) };
    request.trunk = GeneratedLinkProperties {
        rate: "100mbit".parse().ok(),
        ..GeneratedLinkProperties::default()
    };
    request.access = GeneratedLinkProperties {
        rate: "20mbit".parse().ok(),
        ..GeneratedLinkProperties::default()
    };
    let yaml = generate(&request).unwrap().to_yaml();
    let text = yaml.as_bytes();
    let source = windtunnel_scenario::ScenarioSource {
        name: "net.yaml",
        text,
        default_name: "net",
        base_dir: "/",
    };
    windtunnel_scenario::load(&source).unwrap().plan
}

/// The most that can leave all machines, in Mbit/s.
fn uplinks(placed: &NodePlacement) -> u64 {
    let up = placed.loads.iter().map(|load| match load.up {
        UplinkTrafficBound::Bounded(bits) => bits / 1_000_000,
        UplinkTrafficBound::Unbounded { .. } => 0,
    });
    up.sum()
}
