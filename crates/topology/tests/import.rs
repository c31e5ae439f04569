//! What other tools' files mean, and what is said about the rest.

mod common;
#[path = "import/compose.rs"]
mod compose;
#[path = "import/directions.rs"]
mod directions;
#[path = "import/emulators.rs"]
mod emulators;
#[path = "import/keys.rs"]
mod keys;

use common::assert_loads_as_it_says;
use proptest::prelude::*;
use windtunnel_model::{NodeId, Plan, Rate, Span};
use windtunnel_routing::{PathSummary, Routes};
use windtunnel_topology::{
    ConversionRemark, ImportDocument, ImportError, ImportOptions, Topology, TopologyFormat,
    fuzz_one, import,
};

const PLACES: &str = include_str!("data/places.graphml");
const GML: &str = include_str!("data/places.gml");
const SHADOW: &str = include_str!("data/shadow.gml");
const SWITCH: &str = include_str!("data/switch.gml");
const MODELNET: &str = include_str!("data/modelnet.xml");
const KOLLAPS: &str = include_str!("data/kollaps.xml");
const EDGES: &str = include_str!("data/edges.csv");
const LAB: &str = include_str!("data/lab.clab.yml");

fn read_with(
    text: &str,
    options: &ImportOptions,
) -> Result<(TopologyFormat, Topology), ImportError> {
    let original =
        ImportDocument { name: "in/net.txt", text: text.as_bytes(), default_name: "net" };
    import(&original, options)
}

fn read(text: &str, format: TopologyFormat) -> Topology {
    let (found, topology) = read_with(text, &ImportOptions::default()).expect("it can be read");
    assert_eq!(found, format);
    assert_loads_as_it_says(&topology);
    topology
}

fn refused(text: &str) -> String {
    let error =
        read_with(text, &ImportOptions::default()).expect_err("it has a mistake").to_string();
    error.lines().next().unwrap_or_default().to_owned()
}

fn items<'t>(notes: &'t [ConversionRemark], start: &str) -> Vec<&'t str> {
    let note = notes.iter().find(|note| note.text.starts_with(start));
    note.unwrap_or_else(|| panic!("no note {start} in {notes:?}"))
        .items
        .iter()
        .map(String::as_str)
        .collect()
}

/// Latency, smallest rate in bit/s and hops between two nodes.
fn path(plan: &Plan, from: &str, to: &str) -> (String, Option<u64>, usize) {
    let id = |name: &str| -> NodeId { plan.node_named(name).expect("the node is there") };
    let lanes = Routes::compute(plan).path(plan, id(from), id(to)).expect("they are joined");
    let PathSummary { latency, bottleneck, hops, .. } = PathSummary::of(plan, &lanes);
    (latency.to_string(), bottleneck.map(Rate::bits_per_second), hops)
}

#[test]
fn places_become_routers_with_a_node_each_but_for_hyperedges() {
    let topology = read(PLACES, TopologyFormat::GraphMl);
    assert_eq!(topology.name, "Test-Net");
    let names: Vec<_> = topology.routers.iter().map(|router| router.name.as_str()).collect();
    assert_eq!(names, ["zero", "quarter", "pole", "quarter-2", "hyperedge-4", "island"]);
    assert_eq!(topology.routers[2].comment.as_deref(), Some("\"Pôle\""));
    let nodes: Vec<_> = topology.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(nodes, ["zero-host", "quarter-host", "pole-host", "quarter-2-host", "island-host"]);
}

#[test]
fn a_csv_of_edges_is_recognised_by_its_header_and_its_columns_are_attributes() {
    let topology = read(EDGES, TopologyFormat::Csv);
    let names: Vec<_> = topology.routers.iter().map(|router| router.name.as_str()).collect();
    assert_eq!(names, ["oslo", "sao-paulo", "perth"]);
    assert_eq!(topology.routers[1].comment.as_deref(), Some("\"São \"Paulo\"\""));
    let links: Vec<_> =
        topology.links[..2].iter().map(|link| (link.up.latency, link.up.rate)).collect();
    let rate = Rate::from_bits_per_second(100_000_000);
    assert_eq!(links, [(Span::from_micros(90_500), rate), (Span::from_millis(120), None)]);
}

#[test]
fn a_csv_whose_rows_do_not_fit_the_header_is_refused_with_the_place() {
    assert_eq!(
        refused("from,to,delay\na,b\n"),
        "in/net.txt:2:1: this row has 2 fields, and the header 3"
    );
    assert_eq!(refused("from,to\na,\n"), "in/net.txt:2:3: an end of this edge has no name");
    assert_eq!(refused("from,to\na,\"b\n"), "in/net.txt:2:3: the quote in `a,\"b` is not closed");
    assert_eq!(
        refused("from,to\n\"a\"x,b\n"),
        "in/net.txt:2:4: a comma must follow a field in quotes"
    );
}

#[test]
fn latency_is_the_great_circle_at_two_thirds_of_light_speed_where_both_places_are_known() {
    let topology = read(PLACES, TopologyFormat::GraphMl);
    // A quarter of the equator: 50.072 ms (see `geography`); two links between the same places stay
    // two.
    let quarter = Span::from_micros(50_072);
    let links: Vec<_> = topology.links[..6].iter().map(|link| link.up.latency).collect();
    let default = Span::from_millis(1);
    assert_eq!(links, [quarter, quarter, quarter, default, default, default]);
    assert_eq!(
        items(&topology.notes.assumed, "These links have a latency of 1ms"),
        ["pole--quarter-2", "quarter-2--hyperedge-4", "hyperedge-4--zero"]
    );
    assert_eq!(items(&topology.notes.assumed, "The latency of 3 of 7 links"), [""; 0]);
}

#[test]
fn rates_are_from_the_speed_or_the_label_and_others_are_reported() {
    let topology = read(PLACES, TopologyFormat::GraphMl);
    let bits = |at: usize| topology.links[at].up.rate.map(Rate::bits_per_second);
    assert_eq!(
        [0, 1, 2, 3].map(bits),
        [Some(10_000_000_000), Some(2_500_000_000), Some(155_000_000), None]
    );
    assert_eq!(items(&topology.notes.lost, "A LinkSpeed"), ["pole--quarter-2 \"10-40\""]);
    assert_eq!(items(&topology.notes.lost, "Links from a router to itself"), ["pole"]);
    assert_eq!(items(&topology.notes.lost, "Numbers without a unit"), ["weight (1 edge)"]);
}

#[test]
fn parts_that_no_link_joins_are_listed_and_allowed() {
    let topology = read(PLACES, TopologyFormat::GraphMl);
    assert!(topology.unreachable);
    assert_eq!(items(&topology.notes.assumed, "No link joins"), ["island-host + island"]);
}

#[test]
fn gml_has_entities_comments_and_its_own_latencies() {
    let topology = read(GML, TopologyFormat::Gml);
    assert_eq!(topology.name, "Münz---Co");
    assert_eq!(topology.routers[0].name, "koln");
    assert_eq!(topology.routers[1].name, "pop-1");
    assert_eq!(topology.links[0].up.latency, Span::from_millis(7));
    assert_eq!(items(&topology.notes.lost, "Parts of the file"), ["the list `graphics`"]);
}

#[test]
fn hosts_are_attached_where_and_as_many_as_asked() {
    let options = ImportOptions {
        hosts: Some(2),
        hosts_at: vec!["Pôle".to_owned(), "quarter".to_owned()],
        run: Some("true".to_owned()),
        ..ImportOptions::default()
    };
    let (_, topology) = read_with(PLACES, &options).unwrap();
    assert_loads_as_it_says(&topology);
    let nodes: Vec<_> = topology
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node.count, node.run.is_some()))
        .collect();
    assert_eq!(nodes, [("quarter-host", Some(2), true), ("pole-host", Some(2), true)]);
    let options =
        ImportOptions { hosts_at: vec!["nowhere".to_owned()], ..ImportOptions::default() };
    let error = read_with(PLACES, &options).unwrap_err();
    assert_eq!(error.to_string(), "no router is called `nowhere`");
    assert!(error.hint().unwrap().starts_with("there are zero, quarter"));
    let options = ImportOptions { hosts: Some(0), ..ImportOptions::default() };
    assert_eq!(read_with(PLACES, &options).unwrap_err(), ImportError::NoNode);
}

/// As `networkx.write_gml` and `networkx.write_graphml` write them.
#[test]
fn attributes_of_networkx_are_read_where_their_unit_is_known() {
    let text = |first: &str, second: &str| {
        format!(
            "graph [\n  node [ id 0 label \"a\" ]\n  node [ id 1 label \"b\" ]\n  node [ id 2 label \"c\" ]\n  \
             edge [ source 0 target 1 {first} ]\n  edge [ source 1 target 2 {second} ]\n]\n"
        )
    };
    let topology = read(
        &text("bandwidth \"100 Mbps\" weight \"5 ms\"", "capacity_gbps 2.5 delay_us 1500"),
        TopologyFormat::Gml,
    );
    let seen = topology.links[..2].iter().map(|link| {
        (link.up.rate.map(Rate::bits_per_second), link.up.latency, link.up == link.down)
    });
    assert_eq!(
        seen.collect::<Vec<_>>(),
        [
            (Some(100_000_000), Span::from_millis(5), true),
            (Some(2_500_000_000), Span::from_micros(1_500), true)
        ]
    );
    assert!(topology.notes.lost.is_empty(), "{:?}", topology.notes.lost);
    // A bare number may be anything: a cost, a rate in any unit.
    let topology = read(&text("bandwidth 100 weight 3", "bandwidth 10.5"), TopologyFormat::Gml);
    assert!(topology.links.iter().all(|link| link.up.rate.is_none()));
    assert_eq!(
        items(&topology.notes.lost, "Numbers without a unit"),
        ["bandwidth (2 edges)", "weight (1 edge)"]
    );
    let graphml = "<graphml><key id='d0' for='edge' attr.name='bandwidth' attr.type='double'/>\
                   <key id='d1' for='graph' attr.name='bandwidth_unit' attr.type='string'/>\
                   <graph edgedefault='undirected'><data key='d1'>Mbit/s</data><node id='a'/><node id='b'/>\
                   <edge source='a' target='b'><data key='d0'>40.0</data></edge></graph></graphml>";
    let topology = read(graphml, TopologyFormat::GraphMl);
    assert_eq!(topology.links[0].up.rate.map(Rate::bits_per_second), Some(40_000_000));
    assert!(topology.notes.lost.is_empty(), "{:?}", topology.notes.lost);
}

#[test]
fn the_head_of_the_file_says_where_it_is_from_and_what_is_missing() {
    let yaml = read(LAB, TopologyFormat::Containerlab).to_yaml();
    assert!(
        yaml.starts_with(
            "# Imported from net.txt (containerlab YAML) by `windtunnel import`.\n#\n"
        )
    );
    assert!(yaml.contains("\n# Not carried over:\n# - Keys of the file: mgmt\n"));
}

#[test]
fn mistakes_have_their_line_and_column() {
    let cases = [
        ("", "in/net.txt:1:1: the file is empty"),
        ("hello: world\n", "in/net.txt:1:1: this is not a known format"),
        ("<svg/>", "in/net.txt:1:1: `<svg>` begins no format that is known"),
        (
            "<graphml>\n<graph>\n</graphml>",
            "in/net.txt:3:1: this is not XML: expected 'graph' tag, not 'graphml' at 3:1",
        ),
        (
            "<graphml><graph>\n  <node id='1'/><edge source='1' target='2'/>\n</graph></graphml>",
            "in/net.txt:2:42: no node has the id `2`",
        ),
        ("<!DOCTYPE a><graphml/>", "in/net.txt:1:1: a document type"),
        (
            "graph [\n node [ id 1 ]\n edge [ source 1 target 9 ]\n]",
            "in/net.txt:3:25: no node has the id `9`",
        ),
        ("graph [\n node [ id 1 ", "in/net.txt:2:2: the list `node` does not end"),
        (
            "graph [ node [ id 1 host_bandwidth_up \"0 Mbit\" ] ]",
            "in/net.txt:1:40: host_bandwidth_up: `0 Mbit` is not a rate of more than zero with a unit such as \"100 Mbit\"",
        ),
        (
            "<topology><vertices><vertex int_idx='1' role='virtnode'/></vertices>\n<edges><edge int_src='1' \
             int_dst='2' dbl_kbps='0'/></edges></topology>",
            "in/net.txt:2:38: dbl_kbps: `0` is not a rate in kbit/s of more than zero",
        ),
        (
            "topology:\n  nodes: {a: {kind: linux}}\n  links:\n    - endpoints: [\"a:e\", \"b:e\"]\n",
            "in/net.txt:4:26: no node is called `b`",
        ),
        (
            "<experiment><services><service name='a' image='i'/></services>\n<links><link origin='a' dest='b' \
             latency='1' upload='1Mbps'/></links></experiment>",
            "in/net.txt:2:8: no service or bridge is called `b`",
        ),
        ("topology:\n  nodes: [a]\n", "in/net.txt:2:10: nodes must be a map of keys"),
    ];
    for (text, message) in cases {
        assert_eq!(refused(text), message, "{text}");
    }
}

#[test]
fn latin_1_is_read_and_reported() {
    let mut text = MODELNET.replace("<topology>", "<topology><!-- caf? -->").into_bytes();
    let at = text.iter().position(|byte| *byte == b'?').unwrap();
    let at = text[at + 1..]
        .windows(4)
        .position(|part| part == b"caf?")
        .map_or(at, |found| at + 4 + found);
    text[at] = 0xe9;
    let original = ImportDocument { name: "net.xml", text: &text, default_name: "net" };
    let (_, topology) = import(&original, &ImportOptions::default()).unwrap();
    assert!(topology.notes.assumed.iter().any(|note| note.text.contains("ISO-8859-1")));
}

#[test]
fn depth_and_size_are_bounded() {
    let deep = format!("graph {}", "[ a ".repeat(100_000));
    assert_eq!(refused(&deep), "in/net.txt:1:133: lists more than 32 levels deep");
    let elements = "<a>".repeat(300_000);
    assert!(refused(&elements).contains("this is not XML"), "{}", refused(&elements));
    let nodes: String = (0..10_001).map(|id| format!("node [ id {id} ] ")).collect();
    assert_eq!(
        refused(&format!("graph [ {nodes} ]")),
        "this would make 10001 nodes: a scenario has at most 10000"
    );
}

#[test]
fn the_corpus_is_replayed() {
    windtunnel_simlab::fuzzing::replay(env!("CARGO_MANIFEST_DIR"), 10, fuzz_one);
}

/// A sample with a few bytes changed, cut, or repeated.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let samples = [PLACES, GML, SHADOW, SWITCH, MODELNET, KOLLAPS, LAB];
    let changes =
        proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..6);
    (0..samples.len(), changes).prop_map(move |(sample, changes)| {
        let mut text = samples[sample].as_bytes().to_vec();
        for (at, byte, kind) in changes {
            let at = at.index(text.len().max(1)).min(text.len());
            match kind {
                0 if at < text.len() => text[at] = byte,
                1 if at < text.len() => text[at] = b"0123456789-.eE\"[]<>&"[usize::from(byte) % 20],
                2 => text.truncate(at),
                _ => {
                    let end = (at + usize::from(byte)).min(text.len());
                    let copy = text[at..end].to_vec();
                    text.splice(at..at, copy);
                }
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_bytes_make_any_importer_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzz_one(&bytes);
    }

    #[test]
    fn samples_with_mistakes_are_imported_or_refused(bytes in mutated()) {
        fuzz_one(&bytes);
    }
}
