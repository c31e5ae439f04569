//! Random networks, and the machines of their nodes.

use std::collections::BTreeSet;
use std::fmt::Write;

use proptest::collection::vec;
use proptest::prelude::*;
use windtunnel_model::Plan;

/// A network and on which machine each of its nodes is.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    /// As a scenario file.
    pub(crate) text: String,
    /// By node.
    pub(crate) machines: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Tree,
    Star,
    Ring,
    Waxman,
}

/// The random numbers of a node: its router, perhaps a second one, its machine, and the rates of
/// its links.
type Draw = (usize, Option<usize>, usize, [usize; 2]);

/// Connected networks of up to seven routers and nine nodes on two to five machines.
pub(crate) fn network() -> impl Strategy<Value = Network> {
    let shape =
        prop_oneof![Just(Shape::Tree), Just(Shape::Star), Just(Shape::Ring), Just(Shape::Waxman)];
    let routers = vec((0..1000_u32, 0..1000_u32, any::<usize>(), 0..RATES.len()), 1..8);
    let second = prop::option::weighted(0.2, 0..8_usize);
    let rates = [0..RATES.len(), 0..RATES.len()];
    let nodes = vec((0..8_usize, second, 0..5_usize, rates), 3..10);
    (shape, routers, vec(0..1000_u32, 64), nodes, 2..6_usize, any::<bool>()).prop_map(
        |(shape, routers, random, nodes, machines, equal)| Network {
            text: text(&edges(shape, &routers, &random), routers.len(), &nodes, equal),
            // There are nodes on two machines at least.
            machines: (0..)
                .zip(&nodes)
                .map(|(i, n)| if i < 2 { i } else { n.2 % machines })
                .collect(),
        },
    )
}

impl Network {
    pub(crate) fn plan(&self) -> Plan {
        let source = windtunnel_scenario::ScenarioSource {
            name: "net.yaml",
            text: self.text.as_bytes(),
            default_name: "net",
            base_dir: "/",
        };
        windtunnel_scenario::load(&source).unwrap_or_else(|errors| panic!("{errors}")).plan
    }
}

/// Pairs of routers and the number of the rate between them. A router is drawn as a place in a
/// square of 1000, an earlier router that it is joined to, and a rate.
fn edges(
    shape: Shape,
    routers: &[(u32, u32, usize, usize)],
    random: &[u32],
) -> BTreeSet<(usize, usize, usize)> {
    let count = routers.len();
    let tree = (1..count).map(|new| match shape {
        Shape::Star => (0, new),
        Shape::Ring => (new - 1, new),
        Shape::Tree | Shape::Waxman => (routers[new].2 % new, new),
    });
    let mut pairs: BTreeSet<(usize, usize)> = tree.collect();
    match shape {
        Shape::Ring if count > 2 => drop(pairs.insert((0, count - 1))),
        Shape::Waxman => {
            let all = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
            let near = |(a, b): &(usize, usize)| {
                let ((ax, ay, ..), (bx, by, ..)) = (routers[*a], routers[*b]);
                let far = f64::from(ax.abs_diff(bx)).hypot(f64::from(ay.abs_diff(by)));
                // Waxman (1988): α · exp(−d / βL), here with α = 0.6 and β = 0.3.
                let chance = 0.6 * (-far / (0.3 * 1000.0 * 2_f64.sqrt())).exp();
                f64::from(random[(a * 8 + b) % random.len()]) < 1000.0 * chance
            };
            pairs.extend(all.filter(near));
        }
        _ => {}
    }
    pairs.into_iter().map(|(a, b)| (a, b, routers[b].3)).collect()
}

fn text(
    edges: &BTreeSet<(usize, usize, usize)>,
    routers: usize,
    nodes: &[Draw],
    equal: bool,
) -> String {
    let sharing = if equal { "equal" } else { "rtt-aware" };
    let mut text = format!("model: paths\nsharing: {sharing}\nnodes: {{");
    (0..nodes.len()).for_each(|node| write!(text, "n{node}: {{}}, ").expect("a string"));
    text += "}\nrouters: [";
    (0..routers).for_each(|router| write!(text, "r{router}, ").expect("a string"));
    text += "]\nlinks:\n";
    let mut link = |a: &str, b: &str, rate: usize| {
        writeln!(text, "- {{between: [{a}, {b}], latency: 1ms{}}}", RATES[rate]).expect("a string");
    };
    for (a, b, rate) in edges {
        link(&format!("r{a}"), &format!("r{b}"), *rate);
    }
    for (node, (router, second, _, rates)) in nodes.iter().enumerate() {
        let first = router % routers;
        link(&format!("n{node}"), &format!("r{first}"), rates[0]);
        if let Some(second) = second.map(|second| second % routers).filter(|it| *it != first) {
            link(&format!("n{node}"), &format!("r{second}"), rates[1]);
        }
    }
    text
}

/// Of one link: some have no rate, and most of the others share theirs with another link.
const RATES: [&str; 6] =
    ["", ", rate: 1mbit", ", rate: 3mbit", ", rate: 7mbit", ", rate: 10mbit", ", rate: 10mbit"];
