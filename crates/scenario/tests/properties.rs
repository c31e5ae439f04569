//! Laws over generated files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/load.rs"]
mod common;

use std::sync::OnceLock;

use common::load_text;
use proptest::prelude::*;
use windtunnel_model::{NetworkVertex, Plan};
use windtunnel_routing::Routes;
use windtunnel_scenario::plan_hash;

/// A property with values that are all valid.
fn property() -> impl Strategy<Value = String> {
    prop_oneof![
        (0u32..100_000).prop_map(|us| format!("latency: {us}us")),
        (0u32..100).prop_map(|ms| format!("jitter: {{spread: {ms}ms, distribution: normal}}")),
        (0u32..=1000).prop_map(|parts| format!("loss: {}.{}%", parts / 10, parts % 10)),
        (1u32..100).prop_map(|p| format!("loss: {{good-to-bad: {p}%, bad-to-good: 30%}}")),
        (1u32..10_000).prop_map(|rate| format!("rate: {rate}kbit")),
        (1280u32..9000).prop_map(|mtu| format!("mtu: {mtu}")),
        (0u32..500).prop_map(|packets| format!("queue: {packets}p")),
        Just("discipline: codel".to_owned()),
        Just("discipline: {fq-codel: {flows: 16}}".to_owned()),
        Just("discipline: pie".to_owned()),
        Just("reorder: jitter".to_owned()),
    ]
}

/// The key of a `key: value` text.
fn key(property: &str) -> String {
    property.split(':').next().unwrap_or("").to_owned()
}

fn link_keys() -> impl Strategy<Value = String> {
    let unique = |mut keys: Vec<String>| {
        keys.sort_by_key(|text| key(text));
        keys.dedup_by_key(|text| key(text));
        keys
    };
    let direction = prop::collection::vec(property(), 0..4).prop_map(unique);
    (prop::collection::vec(property(), 0..5).prop_map(unique), direction).prop_map(|(both, up)| {
        let both: String = both.iter().map(|key| format!(", {key}")).collect();
        format!("{both}, up: {{{}}}", up.join(", "))
    })
}

/// A tree of routers with groups of nodes behind them: always connected.
fn scenario() -> impl Strategy<Value = String> {
    let groups = prop::collection::vec((1u32..5, link_keys(), any::<prop::sample::Index>()), 1..6);
    let routers = prop::collection::vec((link_keys(), any::<prop::sample::Index>()), 1..6);
    (groups, routers, any::<u64>()).prop_map(|(groups, routers, seed)| {
        let mut text = format!("seed: {seed}\nnodes:\n");
        for (index, (count, ..)) in groups.iter().enumerate() {
            text += &format!("  n{index}: {{count: {count}, run: [sleep, {index}]}}\n");
        }
        let names: Vec<String> = (0..routers.len()).map(|index| format!("r{index}")).collect();
        text += &format!("routers: [{}]\nlinks:\n", names.join(", "));
        for (index, (keys, parent)) in routers.iter().enumerate().skip(1) {
            text += &format!("  - {{between: [r{index}, r{}]{keys}}}\n", parent.index(index));
        }
        for (index, (_, keys, router)) in groups.iter().enumerate() {
            let router = router.index(names.len());
            text += &format!("  - {{between: [n{index}, r{router}]{keys}}}\n");
        }
        text
    })
}

fn check_ids(plan: &Plan) {
    for (index, (owner, interface)) in plan.ports().enumerate() {
        assert_eq!(interface.port.index(), index);
        let link = &plan.links[interface.link.index()];
        let end = &link.ends[interface.outward.index()];
        assert_eq!(end.vertex, NetworkVertex::Node(owner));
        let position = usize::try_from(end.interface).unwrap();
        assert_eq!(plan.nodes[owner.index()].interfaces[position].port, interface.port);
    }
    let mut addresses: Vec<_> =
        plan.ports().flat_map(|(_, interface)| interface.addresses()).collect();
    let count = addresses.len();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), count, "an address is given twice");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// What is valid resolves; ids, ports and addresses fit each other; everybody reaches everybody.
    #[test]
    fn a_valid_file_always_resolves(text in scenario()) {
        let plan = load_text("net", text.as_bytes()).map_err(|e| TestCaseError::fail(e.to_string()))?.plan;
        check_ids(&plan);
        let routes = Routes::compute(&plan);
        let (first, last) = (plan.node_named("n0-1").unwrap(), plan.nodes.len() - 1);
        let last = windtunnel_model::NodeId::from_index(last);
        prop_assert!(first == last || routes.path(&plan, first, last).is_some());
        let again = load_text("net", text.as_bytes()).unwrap().plan;
        prop_assert_eq!(plan_hash(&plan), plan_hash(&again));
    }

    /// One bad character anywhere gives a plan or an error inside the file, never a panic.
    #[test]
    fn a_damaged_file_gives_a_plan_or_an_error_with_a_place_in_it(
        text in scenario(), at in any::<prop::sample::Index>(), damage in any::<u8>(),
    ) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = damage;
        if let Err(errors) = load_text("net", &bytes) {
            let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
            let lines = text.split(['\n', '\r']).count();
            for mistake in errors.mistakes() {
                prop_assert!(mistake.line >= 1 && usize::try_from(mistake.line).unwrap() <= lines);
                prop_assert!(mistake.column >= 1);
            }
        }
    }

    /// The head of one file of the corpus and the tail of another, with a piece of a third between.
    #[test]
    fn no_splice_of_the_corpus_causes_a_panic(
        files in prop::array::uniform3(any::<prop::sample::Index>()),
        cuts in prop::array::uniform4(any::<prop::sample::Index>()),
    ) {
        let [head, middle, tail] = files.map(|file| file.get(corpus()).as_slice());
        let cut = |bytes: &[u8], cut: usize| cuts[cut].index(bytes.len() + 1);
        let (from, to) = (cut(middle, 1), cut(middle, 2));
        let middle = &middle[from.min(to)..from.max(to)];
        let splice = [&head[..cut(head, 0)], middle, &tail[cut(tail, 3)..]].concat();
        windtunnel_scenario::fuzz_one(&splice);
    }

    #[test]
    fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        windtunnel_scenario::fuzz_one(&bytes);
    }

    #[test]
    fn no_text_of_yaml_marks_causes_a_panic(text in "[a-c:{}\\[\\],&*!|>'\"% \\-\n\t#0-9]{0,200}") {
        windtunnel_scenario::fuzz_one(text.as_bytes());
    }
}

/// Inputs that once were interesting: every file of the corpus, the cases and the good files.
fn corpus() -> &'static [Vec<u8>] {
    static CORPUS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let folders = ["corpus", "tests/cases", "tests/good"];
    CORPUS.get_or_init(|| windtunnel_simlab::fuzzing::files(env!("CARGO_MANIFEST_DIR"), &folders))
}

#[test]
fn the_corpus_causes_no_panic() {
    assert!(corpus().len() > 200, "the corpus is there");
    corpus().iter().for_each(|input| windtunnel_scenario::fuzz_one(input));
}
