//! What the owner of a machine allows.

use std::fs;

use super::support::{Machines, address};

#[test]
fn a_part_beyond_the_owners_limits_is_refused_with_numbers_and_leaves_nothing() {
    let strict = [
        "--max-nodes",
        "2",
        "--max-cpu",
        "1.5",
        "--max-memory",
        "1GB",
        "--deny-exec",
        "nc*,/opt/*",
    ];
    let Some(mut machines) = Machines::with(&[&[], &strict]) else { return };
    let refusals = [
        ("a: {run: sleep 600, pin: two, count: 3}", 3, "3 nodes are put there, it has room for 2"),
        (
            "a: {run: sleep 600, pin: two, cpu: 1.6}",
            3,
            "need 1.6 processors, it has 1.5 processors",
        ),
        (
            "a: {run: sleep 600, pin: two, memory: 2GB}",
            3,
            "need 2.001GB of memory, it has 1GB of memory",
        ),
        (
            "a: {run: /usr/bin/nc -l 1, pin: two}",
            4,
            "node a runs /usr/bin/nc, which the machine's owner does not allow (nc*)",
        ),
    ];
    for (nodes, code, why) in refusals {
        let outcome = machines.start(&file(nodes), &[]).finish();
        outcome.assert_code(code);
        let error = outcome.stderr.lines().find(|line| line.starts_with("error: host two: "));
        assert!(error.is_some_and(|error| error.contains(why)), "{}", outcome.stderr);
        assert!(!outcome.folder.exists(), "nothing has happened");
    }
    // Nor a folder that windtunnel names itself, nor a link to it.
    machines.write("net.yaml", &file("a: {run: sleep 600, pin: nowhere}"));
    let hosts = format!("{},all", address(0));
    let refused = machines.ask(0, &["run", "net.yaml", "--hosts", &hosts, "--key", "../key"]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let left: Vec<_> = fs::read_dir(machines.home(0).join("runs")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");

    // What runs is counted.
    let mut run = machines.start(&file("a: {run: sleep 600, pin: two, count: 2}"), &[]);
    run.wait_for("the run begins");
    let second = machines.start(&file("a: {run: sleep 600, pin: two}"), &[]).finish();
    second.assert_code(3);
    let why = "1 node is put there, it has room for 0";
    assert!(second.stderr.contains(why), "{}", second.stderr);
    run.signal("INT");
    run.finish().assert_code(130);
    for at in 0..2 {
        machines.assert_nothing_left(at);
    }
}

/// A file with these nodes, and one on the first machine.
fn file(nodes: &str) -> String {
    format!("nodes:\n  {nodes}\n  here: {{run: sleep 600, pin: one}}\n")
}
