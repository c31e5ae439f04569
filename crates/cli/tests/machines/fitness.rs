//! Machines that can have no nodes.

use super::support::{Machines, address};

#[test]
fn a_machine_that_can_have_no_nodes_says_so_and_is_refused_by_name() {
    let Some(mut machines) = Machines::with_first(1, 2) else { return };
    // Settings of the kernel are read-only, as in most containers.
    let read_only = "mount --bind -o ro /proc/sys /proc/sys && exec \"$@\"";
    machines.agent_behind(1, &["unshare", "--mount", "--", "sh", "-c", read_only, "sh"]);
    machines.agent_of(1).wait_for("warning: this machine can have no nodes");
    machines.write("net.yaml", "nodes: {a: {run: 'true'}}\n");
    let ask = |words: &[&str]| {
        let asked = machines.ask(0, &[words, &["--key", "../key"]].concat());
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (asked.status.code(), text(asked.stdout), text(asked.stderr))
    };
    let (code, table, warnings) = ask(&["hosts", &address(0)]);
    let row = table.lines().find(|line| line.starts_with("two")).unwrap();
    assert!(code == Some(1) && row.contains(" none "), "{code:?} {table}");
    assert!(warnings.contains("warning: two can have no nodes: "), "{warnings}");
    let all = format!("{},all", address(0));
    for verb in [&["check"][..], &["run", "--out", "out"]] {
        let (code, _, error) = ask(&[verb, &["net.yaml", "--hosts", &all]].concat());
        assert!(error.contains("error: host two can have no nodes: "), "{error}");
        assert!(error.contains("/proc/sys") && error.contains("hint: "), "{error}");
        assert_eq!(code, Some(4), "{error}");
    }
    assert!(!machines.home(0).join("out").exists());
    let (code, _, error) = ask(&["check", "net.yaml", "--hosts", &address(0)]);
    assert_eq!(code, Some(0), "the other one can: {error}");
    for at in 0..2 {
        machines.assert_nothing_left(at);
    }
}
