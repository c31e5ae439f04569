//! Who has the key, who has another one, and who must not see it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Stdio;

use super::support::{Machines, address, is_root, missing};

#[test]
fn an_agent_with_another_key_runs_nothing_and_is_named() {
    let Some(mut machines) = Machines::new(2) else { return };
    let made = machines.ask(0, &["keygen", "other.key"]);
    assert!(made.status.success(), "{made:?}");
    machines.write("net.yaml", "nodes: {a: {run: 'true'}}\n");

    let run = |key: &str| {
        machines.ask(0, &["run", "net.yaml", "--hosts", &address(1), "--key", key, "--out", "out"])
    };
    let refused = run("other.key");
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains(&format!("the agent at {} has another key", address(1))), "{error}");
    assert!(!machines.home(0).join("out").exists());

    // A key that others may read is none.
    fs::set_permissions(machines.home(0).join("other.key"), fs::Permissions::from_mode(0o644))
        .unwrap();
    let open = run("other.key");
    let error = String::from_utf8(open.stderr).unwrap();
    assert!(open.status.code() == Some(2) && error.contains("other.key"), "{error}");

    machines.agent_of(1).wait_for("agent: refused 10.99.0.1:");
    machines.assert_nothing_left(1);
}

#[test]
fn an_agent_with_another_key_does_not_get_in() {
    let Some(mut machines) = Machines::with_first(1, 2) else { return };
    let made = machines.ask(1, &["keygen", "other.key"]);
    assert!(made.status.success(), "{made:?}");
    let mut stranger = machines.agent(1, &["--key", "other.key"]);
    stranger.wait_for("listens on");
    machines.agent_of(0).wait_for("agent: refused 10.99.0.2:");
    let hosts = machines.ask(0, &["hosts", &address(0), "--key", "../key"]);
    assert!(!String::from_utf8(hosts.stdout).unwrap().contains("two"));
    let run = machines.start("nodes: {a: {run: 'true', pin: two}}\n", &[]).finish();
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.stderr.contains("the machines are one"), "{}", run.stderr);
}

#[test]
fn no_program_of_a_run_over_machines_reads_its_agents_key() {
    let Some(mut machines) = Machines::new(2) else { return };
    let key = machines.path().join("key");
    assert!(fs::read_to_string(&key).unwrap().contains("PRIVATE KEY"));
    machines.write("beside", "beside\n");
    let beside = machines.home(0).join("beside");
    let look = format!("cat {} {} ../key; echo end", beside.display(), key.display());
    let outcome = machines.pass(&format!(
        "nodes:
  a: {{run: [sh, -c, '{look}'], pin: one}}
  b: {{run: [sh, -c, '{look}'], pin: two}}
  c: {{run: [sh, -c, 'umount -n -l {}; {look}'], pin: two, user: root}}
links: [{{between: [a, b]}}, {{between: [b, c]}}]
allow-unreachable: true
",
        key.display()
    ));
    for node in ["a", "b", "c"] {
        assert_eq!(outcome.output(node), "beside\nend\n", "in {node}");
    }
}

/// What the memory and the environment of a process can be read by.
const DOORS: [&str; 3] = ["mem", "environ", "maps"];

#[test]
fn no_process_of_the_same_user_looks_into_one_that_has_the_key() {
    if !is_root() {
        missing("root, so that the test's user is not the owner of its namespace");
        return;
    }
    let Some(mut machines) = Machines::new(1) else { return };
    let mut run = machines.start("nodes: {a: {run: sleep 1000}}\n", &[]);
    run.wait_for("the run begins");
    // Reads nothing until it is ended: whether a file can be opened is what is asked.
    let open = |process: u32, door: &str| {
        let path = format!("/proc/{process}/{door}");
        let seen = machines.command(0, "sh", &["-c", &format!("exec < {path}")]).output().unwrap();
        (seen.status.success(), String::from_utf8_lossy(&seen.stderr).into_owned())
    };
    let mut other = machines.command(0, "cat", &[]).stdin(Stdio::piped()).spawn().unwrap();
    super::support::until("a process without the key", || {
        open(other.id(), "environ").0.then_some(())
    });
    let agent = machines.agent_id(0);
    for (who, process) in [("the agent", agent), ("the command", run.id())] {
        let command = fs::read_to_string(format!("/proc/{process}/comm")).unwrap();
        assert_eq!(command, "windtunnel\n", "{who}");
        for door in DOORS {
            let (opened, error) = open(process, door);
            assert!(!opened && error.contains("Permission denied"), "{who}, {door}: {error}");
        }
        // Files of a process that cannot be traced are root's (proc(5)).
        let owner = fs::metadata(format!("/proc/{process}/mem")).unwrap().uid();
        assert_eq!(owner, 0, "{who}");
    }
    let owner = fs::metadata(format!("/proc/{}/mem", other.id())).unwrap().uid();
    assert_eq!(owner, 65_534);
    other.kill().unwrap();
    other.wait().unwrap();
    run.signal("INT");
    run.finish();
}
