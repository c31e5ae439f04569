//! Limits of nodes with the files of an image: they hold and are reported as those of other nodes.

use serde_json::json;

use super::bounds::{assert_eater_is_ended, bound, mechanism, reached};
use super::musl::compile;
use super::node_limits::{assert_held, assert_mechanism, limit, pass};
use super::support::image::{Files, ImageBuilder};
use super::support::{Lab, is_missing, users};

/// Writes an image of a few tools, and programs that take memory and make processes.
fn write_image(lab: &Lab) {
    let programs = ["eat", "forks"].map(|name| compile(lab, "gcc", name, &[]));
    let files = Files::new()
        .programs(&["/bin/sh", "sleep", "timeout"])
        .copy(&programs[0], "/bin/eat")
        .copy(&programs[1], "/bin/forks")
        .folder("/tmp", 0o1777);
    let config = json!({"Env": ["PATH=/usr/bin:/bin"]});
    ImageBuilder::new(lab.path()).layer(&files, 0).write("a.tar", &config);
}

#[test]
fn a_busy_program_of_an_image_has_its_share_of_a_processor() {
    if is_missing(&["gcc", "ldd"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        write_image(&lab);
        let outcome = pass(
            &lab,
            "nodes: {a: {image: a.tar, cpu: 25%, run: [timeout, 5, sh, -c, 'while :; do :; done']}, b: {}}\n\
             links: [{between: [a, b]}]\n\
             expect: [{node: a, exit: 124}]\n",
        );
        let limit = limit(&outcome, "a");
        assert_held(&limit);
        assert_mechanism(&limit, user);
        assert!(outcome.stdout.contains(limit["mechanism"].as_str().unwrap()));
        lab.assert_nothing_left();
    }
}

#[test]
fn a_program_of_an_image_that_eats_memory_is_ended_and_that_is_reported() {
    if is_missing(&["gcc", "ldd"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        write_image(&lab);
        let outcome = lab.pass(
            "nodes:\n  \
               a: {image: a.tar, memory: 64MB, run: eat 600 2000}\n  \
               b: {image: a.tar, memory: 200MB, run: eat 40 20000}\n\
             links: [{between: [a, b]}]\n\
             expect: [{node: a, exit: 137}, {node: b, exit: 0}]\n",
        );
        assert_eq!(outcome.output("b"), "ate\n");
        assert_eater_is_ended(&outcome, "eat");
        lab.assert_nothing_left();
    }
}

#[test]
fn programs_of_an_image_make_and_open_no_more_than_they_may() {
    if is_missing(&["gcc", "ldd"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        write_image(&lab);
        let outcome = lab.pass(
            "nodes:\n  \
               a: {image: a.tar, pids: 20, open-files: 64, run: [sh, -c, 'ulimit -n; exec forks 40']}\n  \
               b: {image: a.tar, run: forks 40}\n\
             links: [{between: [a, b]}]\n",
        );
        // All but the one that makes them.
        assert_eq!((outcome.output("a"), outcome.output("b")), ("64\n19\n".into(), "40\n".into()));
        let pids = bound(&outcome, "a", "pids");
        assert!(mechanism(&pids) != "watch", "{pids}");
        assert!(pids["peak"].as_u64() <= Some(20) && pids["met"].as_u64() >= Some(1), "{pids}");
        assert!(!reached(&outcome, "a", "pids").is_empty());
        assert_eq!(mechanism(&bound(&outcome, "a", "open-files")), "rlimit");
        lab.assert_nothing_left();
    }
}
