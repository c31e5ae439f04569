//! Volumes that are folders of the run.

use std::fs;

use serde_json::json;

use super::support::image::{Files, ImageBuilder};
use super::support::{Lab, Outcome, is_missing, users};

/// A group that writes and a node that reads, of images with different files at the same place.
fn lab(user: super::support::User) -> Lab {
    let lab = Lab::new(user);
    for (name, seed) in [("first", "/data/seed"), ("second", "/data/other")] {
        let files = Files::new().programs(&["/bin/sh", "cat", "ls"]).file(seed, "seed\n");
        ImageBuilder::new(lab.path())
            .layer(&files, 0)
            .write(&format!("{name}.tar"), &json!({"Env": ["PATH=/usr/bin:/bin"]}));
    }
    lab
}

fn scenario(writer: &str, more: &str) -> String {
    format!(
        "nodes:\n  \
           w: {{count: 3, image: first.tar, volumes: ['shared:/data'], ready: exit{writer},\n      \
               run: [sh, -c, 'echo by $HOSTNAME >/data/$HOSTNAME && ls /data/seed']}}\n  \
           r: {{image: second.tar, volumes: ['shared:/data'], after: w, run: [sh, -c, 'ls /data; cat /data/*']}}\n\
         {more}routers: [net]\nlinks: [{{between: [w, net]}}, {{between: [r, net]}}]\n"
    )
}

const READ: &str = "seed\nw-1\nw-2\nw-3\nseed\nby w-1\nby w-2\nby w-3\n";

#[track_caller]
fn run(lab: &Lab, scenario: &str) -> Outcome {
    let outcome = lab.pass(scenario);
    for number in 1..=3 {
        assert_eq!(
            outcome.output(&format!("w-{number}")),
            "/data/seed\n",
            "{}",
            outcome.describe()
        );
    }
    assert_eq!(outcome.output("r"), READ, "{}", outcome.describe());
    outcome
}

#[test]
fn a_group_shares_a_named_volume_that_begins_with_the_files_of_the_first() {
    if is_missing(&["ldd"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = run(&lab, &scenario("", ""));
        assert!(!outcome.path("volumes").exists(), "gone at the end");
        assert!(!outcome.path("nodes/w-1/files").exists(), "gone at the end");
        // The next run begins anew.
        run(&lab, &scenario("", ""));
        lab.assert_nothing_left();
    }
}

#[test]
fn a_named_volume_stays_if_one_of_its_nodes_keeps_files_and_no_other_volume_does() {
    if is_missing(&["ldd"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let other =
            "  o: {image: first.tar, volumes: ['own:/data'], run: [sh, -c, 'echo x >/data/x']}\n";
        let outcome = run(&lab, &scenario(", keep-files: true", other));
        let kept = outcome.path("volumes/shared");
        for (name, text) in [("seed", "seed\n"), ("w-1", "by w-1\n"), ("w-3", "by w-3\n")] {
            assert_eq!(fs::read_to_string(kept.join(name)).unwrap(), text, "{name}");
        }
        assert!(!outcome.path("volumes/own").exists(), "no node of it keeps files");
        let keeps = other.replace("{image", "{keep-files: true, image");
        let outcome = run(&lab, &scenario("", &keeps));
        assert!(!outcome.path("volumes/shared").exists(), "no node of it keeps files");
        assert_eq!(outcome.file("volumes/own/x"), "x\n");
    }
}
