//! Reservations that the command line adds to those of a file.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use windtunnel_model::{NodeId, ReservationId};
use windtunnel_scenario::{
    LoadedScenario, ScenarioErrors, ScenarioOverrides, ScenarioSource, load_instead, plan_hash,
};

/// A file of two nodes, with `more` behind them.
fn file(more: &str) -> String {
    format!("nodes: {{a: {{}}, b: {{}}}}\nlinks: [{{between: [a, b]}}]\n{more}")
}

fn load(text: &str, reserve: &[&str]) -> Result<LoadedScenario, ScenarioErrors> {
    let source = ScenarioSource {
        name: "net.yaml",
        text: text.as_bytes(),
        default_name: "net",
        base_dir: "/",
    };
    let reserve: Vec<String> = reserve.iter().map(|text| (*text).to_owned()).collect();
    let instead = ScenarioOverrides { reserve: &reserve, ..ScenarioOverrides::default() };
    load_instead(&source, &|_| Err("no files".to_owned()), instead)
}

fn mistake(text: &str, reserve: &[&str]) -> String {
    let errors = load(text, reserve).unwrap_err();
    assert_eq!(errors.mistakes().len(), 1, "{errors}");
    errors.to_string()
}

#[test]
fn a_tree_of_options_is_the_plan_that_the_same_tree_of_a_file_is() {
    let options = ["site={of: [front, b], cpu: {min: 80%, weight: 3}}", "front={of: a, pids: 100}"];
    let whole = file(
        "reserve:\n  site: {of: [front, b], cpu: {min: 80%, weight: 3}}\n  front: {of: a, pids: 100}\n",
    );
    let of_options = load(&file(""), &options).unwrap().plan;
    let of_file = load(&whole, &[]).unwrap().plan;
    assert_eq!(plan_hash(&of_options), plan_hash(&of_file));
    let half = file("reserve:\n  site: {of: [front, b], cpu: {min: 80%, weight: 3}}\n");
    let of_both = load(&half, &options[1..]).unwrap().plan;
    assert_eq!(plan_hash(&of_both), plan_hash(&of_file));
}

#[test]
fn a_reservation_of_an_option_may_be_around_one_of_the_file() {
    let plan = load(&file("reserve: {in: {of: a, pids: 9}}\n"), &["out={of: in}"]).unwrap().plan;
    let named = |name| plan.reservation_named(name).unwrap();
    let (inner, outer): (ReservationId, ReservationId) = (named("in"), named("out"));
    assert_eq!(plan.reservations[inner.index()].parent, Some(outer));
    assert_eq!(plan.nodes[NodeId(0).index()].reservation, Some(inner));
}

#[test]
fn a_name_that_is_taken_is_refused_with_both_places() {
    assert_eq!(
        mistake(&file("reserve:\n  site: {of: a, pids: 9}\n"), &["site={of: b, pids: 9}"]),
        "--reserve:1:1: reservation `site` is given twice, first in line 4\n    \
             1 | site={of: b, pids: 9}\n      \
               | ^^^^\nhint: keep one of the two"
    );
    assert_eq!(
        mistake(&file(""), &["site={of: a, pids: 9}", "site={of: b, pids: 8}"]),
        "--reserve:1:1: reservation `site` is given twice, first in `--reserve site={of: a, pids: 9}`\n    \
             1 | site={of: b, pids: 8}\n      \
               | ^^^^\nhint: keep one of the two"
    );
    let taken = mistake(&file(""), &["a={of: b, pids: 9}"]);
    assert!(taken.starts_with("--reserve:1:1: `a` names something else already, in line 1\n"));
}

#[test]
fn a_mistake_in_an_option_is_shown_in_its_text() {
    assert_eq!(
        mistake(&file(""), &["site={of: [a, c], pids: 9}"]),
        "--reserve:1:15: no node or group is called `c`\n    \
             1 | site={of: [a, c], pids: 9}\n      \
               |               ^\nhint: there are a, b"
    );
    assert_eq!(
        mistake(&file(""), &["one={of: a, pids: 9}", "two={of: b, cpu: {most: 1}}"]),
        "--reserve:1:19: unknown key `most` of cpu\n    \
             1 | two={of: b, cpu: {most: 1}}\n      \
               |                   ^^^^\nhint: it has limit, min, weight"
    );
    assert_eq!(
        mistake(&file(""), &["site={of: a"]),
        "--reserve:1:6: the list or map that starts here does not end\n    \
             1 | site={of: a\n      \
               |      ^\nhint: close the map with `}`; quote a text that holds `: `, `{`, `}`, `[`, `]`, `,` or ` #`"
    );
    let below = mistake(&file(""), &["site=\n  of: a\n  pids: no"]);
    assert!(below.starts_with("--reserve:3:9: pids: `no` is not a whole number"), "{below}");
}

#[test]
fn an_option_that_is_no_reservation_is_refused() {
    for (text, message) in [
        ("site", "`site` is not NAME={of: …}"),
        ("={of: a}", "`={of: a}` is not NAME={of: …}"),
        ("site=", "`site` has no value: it must be a reservation: a map of keys"),
        ("site=5", "`site` must be a reservation: a map of keys, not the text `5`"),
        ("site={pids: 9}", "this reservation lacks `of`"),
    ] {
        let found = mistake(&file(""), &[text]);
        let (place, found) = found.split_once(": ").unwrap();
        assert!(place.starts_with("--reserve:1:"), "{place}");
        assert_eq!(found.lines().next(), Some(message));
    }
}
