//! Files that are right, and the plans that they mean.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/load.rs"]
mod common;

use common::load_text;
use windtunnel_scenario::plan_hash;

fn good(name: &str) -> windtunnel_scenario::LoadedScenario {
    let path = format!("{}/tests/good/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read(&path).expect(&path);
    load_text(name, &text).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The example of the documentation, every number of its plan reviewed.
#[test]
fn the_example_means_the_plan_that_was_reviewed() {
    let loaded = good("two-continents");
    insta::assert_json_snapshot!(loaded.plan);
    let notices: Vec<String> = loaded.notices.iter().map(ToString::to_string).collect();
    assert_eq!(notices, [] as [&str; 0]);
}

/// Hosts compare plans by this; a change of the plan's form must be noticed.
#[test]
fn the_hash_of_the_example_stays_what_it_was() {
    let hash = plan_hash(&good("two-continents").plan);
    insta::assert_snapshot!(hash);
}

/// plan.json in the run folder is read back by other commands.
#[test]
fn a_plan_survives_json() {
    let mut plan = good("two-continents").plan;
    let json = serde_json::to_string(&plan).unwrap();
    // Where the file asks for something is not part of the experiment.
    plan.expectations.iter_mut().for_each(|expectation| expectation.line = 0);
    assert_eq!(serde_json::from_str::<windtunnel_model::Plan>(&json).unwrap(), plan);
}
