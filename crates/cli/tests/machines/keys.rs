//! Who has another key.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::support::{Machines, address};

#[test]
fn who_has_another_key_runs_nothing_and_is_named() {
    let Some(mut machines) = Machines::new(2) else { return };
    let made = machines.ask(0, &["keygen", "other.key"]);
    assert!(made.status.success(), "{made:?}");
    machines.write("net.yaml", "nodes: {a: {run: 'true'}}\n");

    let run = |key: &str| {
        machines.ask(0, &["run", "net.yaml", "--hosts", &address(1), "--key", key, "--out", "out"])
    };
    let refused = run("other.key");
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.contains(&format!("the agent at {} has another key", address(1))), "{told}");
    assert!(!machines.home(0).join("out").exists());

    // A key that others may read is none.
    fs::set_permissions(machines.home(0).join("other.key"), fs::Permissions::from_mode(0o644))
        .unwrap();
    let open = run("other.key");
    let told = String::from_utf8(open.stderr).unwrap();
    assert!(open.status.code() == Some(2) && told.contains("other.key"), "{told}");

    machines.agent_of(1).wait_for("agent: refused 10.99.0.1:");
    machines.assert_nothing_left(1);
}

#[test]
fn an_agent_with_another_key_does_not_get_in() {
    let Some(mut machines) = Machines::with_first(1, 2) else { return };
    let made = machines.ask(1, &["keygen", "other.key"]);
    assert!(made.status.success(), "{made:?}");
    let mut stranger = machines.agent(1, &["--key", "other.key"]);
    stranger.wait_for("hears at");
    machines.agent_of(0).wait_for("agent: refused 10.99.0.2:");
    let hosts = machines.ask(0, &["hosts", &address(0), "--key", "../key"]);
    assert!(!String::from_utf8(hosts.stdout).unwrap().contains("two"));
    let run = machines.start("nodes: {a: {run: 'true', pin: two}}\n", &[]).finish();
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.stderr.contains("the machines are one"), "{}", run.stderr);
}
