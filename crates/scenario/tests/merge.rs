//! Merge keys, aliases and extension keys: a file with them means what the file means that is
//! written out.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/load.rs"]
mod common;

use common::load_text;
use windtunnel_scenario::plan_hash;

/// Both files have the same plan; their names are equal, since a plan holds its name.
fn same(short: &str, written_out: &str) {
    let [short, written_out] = [short, written_out]
        .map(|text| load_text("net", text.as_bytes()).unwrap_or_else(|errors| panic!("{errors}")))
        .map(|loaded| {
            let mut plan = loaded.plan;
            // Where the file asks for something is not part of the experiment.
            plan.expectations.iter_mut().for_each(|expectation| expectation.line = 0);
            plan
        });
    assert_eq!(short, written_out);
    assert_eq!(plan_hash(&short), plan_hash(&written_out));
}

#[test]
fn a_merged_map_gives_the_keys_that_are_not_written_out() {
    same(
        "
x-access: &access {latency: 5ms, rate: 10mbit, loss: 1%}
nodes: {a: {}, b: {forward: true}, c: {}}
links:
  - {<<: *access, between: [a, b]}
  - {between: [b, c], rate: 20mbit, <<: *access}
",
        "
nodes: {a: {}, b: {forward: true}, c: {}}
links:
  - {between: [a, b], latency: 5ms, rate: 10mbit, loss: 1%}
  - {between: [b, c], latency: 5ms, rate: 20mbit, loss: 1%}
",
    );
}

#[test]
fn of_several_merged_maps_the_first_that_has_a_key_wins() {
    same(
        "
x-slow: &slow {rate: 1mbit, queue: 10p}
x-far: &far {latency: 80ms, rate: 5mbit}
nodes: {a: {}, b: {}}
links: [{between: [a, b], <<: [*slow, *far, {loss: 2%, latency: 1ms}]}]
",
        "
nodes: {a: {}, b: {}}
links: [{between: [a, b], rate: 1mbit, queue: 10p, latency: 80ms, loss: 2%}]
",
    );
}

#[test]
fn a_map_with_a_merge_of_its_own_is_merged_whole() {
    same(
        "
x-base: &base {daemon: true, start: 1s}
x-server: &server {<<: *base, start: 2s, env: {A: one}}
nodes:
  a: {<<: *server, run: sleep 1}
  b:
    <<: *server
    run: sleep 2
    env: {B: two}
links: [{between: [a, b]}]
",
        "
nodes:
  a: {run: sleep 1, daemon: true, start: 2s, env: {A: one}}
  b: {run: sleep 2, daemon: true, start: 2s, env: {B: two}}
links: [{between: [a, b]}]
",
    );
}

/// Ids of nodes, and so their addresses, follow the order of the file.
#[test]
fn merged_keys_stand_where_the_merge_stands() {
    same(
        "
x-servers: &servers {web: {}, db: {}}
nodes: {a: {forward: true}, <<: *servers, z: {}}
links: [{between: [a, web]}, {between: [a, db]}, {between: [a, z]}]
",
        "
nodes: {a: {forward: true}, web: {}, db: {}, z: {}}
links: [{between: [a, web]}, {between: [a, db]}, {between: [a, z]}]
",
    );
}

#[test]
fn keys_that_begin_with_x_mean_nothing_in_any_map_of_the_language() {
    same(
        "
x-owner: {team: network, pager: [1, 2]}
x-empty:
nodes:
  a: {run: sleep 1, x-note: the client}
  b: {run: [{run: sleep 2, x-why: first}]}
defaults: {x-a: 1, link: {x-b: 2, latency: 1ms}, node: {x-c: 3}}
links:
  - {between: [a, b], x-cable: 7, discipline: {x-first: 1, codel: {x-d: 4}}, rate: 1mbit}
events: [{at: 1s, link: a--b, set: {loss: 1%, x-e: 5}, x-f: 6}]
expect:
  - {node: a, exit: 0, x-g: 7}
  - {path: [a, b], rtt: {max: 5ms, p99: {max: 4ms}, x-h: 8}}
",
        "
nodes: {a: {run: sleep 1}, b: {run: [{run: sleep 2}]}}
defaults: {link: {latency: 1ms}}
links: [{between: [a, b], discipline: {codel: {}}, rate: 1mbit}]
events: [{at: 1s, link: a--b, set: {loss: 1%}}]
expect: [{node: a, exit: 0}, {path: [a, b], rtt: {max: 5ms, p99: {max: 4ms}}}]
",
    );
}

/// A node is a name, as a service of a compose file is.
#[test]
fn names_may_begin_with_x() {
    let text = "nodes: {x-ray: {env: {x-a: '1'}}, b: {}}\nlinks: [{between: [x-ray, b]}]";
    let plan = load_text("net", text.as_bytes()).unwrap().plan;
    let names: Vec<&str> = plan.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["x-ray", "b"]);
}

#[test]
fn the_traces_of_extensions_are_not_read() {
    let text = "
x-later: {trace: nowhere.csv}
nodes: {a: {}, b: {}}
links: [{between: [a, b], x-old: {trace: {file: gone.csv}}}]
";
    let read = std::cell::RefCell::new(Vec::new());
    let source = windtunnel_scenario::ScenarioSource {
        name: "net.yaml",
        text: text.as_bytes(),
        default_name: "net",
        base_dir: "/",
    };
    let files = |name: &str| {
        read.borrow_mut().push(name.to_owned());
        Err("there is none".to_owned())
    };
    windtunnel_scenario::load_with(&source, &files).unwrap();
    assert_eq!(read.into_inner(), [""; 0]);
}
