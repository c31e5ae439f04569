//! What the owner of a machine allows.

use std::fs;

use super::support::{Machines, address, is_root};

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

/// Computes in two processes for so many seconds, and prints the processor time of both.
const BURN: &str = "
import os, sys, time
until = time.monotonic() + float(sys.argv[1])
child = os.fork()
while time.monotonic() < until:
    pass
if child:
    os.wait()
    print(sum(os.times()[:4]))
";

#[test]
fn nodes_without_limits_use_no_more_together_than_the_owner_allows_where_groups_hold_it() {
    let Some(mut machines) = Machines::with(&[&[], &["--max-cpu", "0.4"]]) else { return };
    machines.write("burn.py", BURN);
    let burn = "{run: python3 burn.py 4, pin: two}";
    let file = format!("nodes: {{a: {burn}, b: {burn}, here: {{run: sleep 1, pin: one}}}}\n");
    // How late something was is not asked: these two leave the machine little.
    let outcome = machines.pass_within(&file, "1s");
    let time = |node: &str| outcome.output(node).trim().parse::<f64>().unwrap();
    let together = time("a") + time("b");
    let doctor = String::from_utf8(machines.ask(1, &["doctor"]).stdout).unwrap();
    let by = doctor.lines().find(|line| line.contains("processor limits")).unwrap();
    if by.contains("by cgroup") {
        // And what starting the interpreters took before.
        assert!(together < 0.4 * 4.0 + 0.4, "{together}");
    }
    assert!(together > 0.1, "{together}");
    for at in 0..2 {
        machines.assert_nothing_left(at);
    }
}

/// Leaves its control group, computes, and says whether it could.
const LEAVE: &str = "
import os, time
done = False
for line in open('/proc/self/cgroup'):
    _, controllers, path = line.rstrip('\\n').split(':', 2)
    root = '/sys/fs/cgroup/' + (controllers or 'unified')
    if '/windtunnel-' in path and os.path.exists(root):
        open(root + '/cgroup.procs', 'w').write('0')
        done = True
print('escaped' if done else 'held', flush=True)
until = time.monotonic() + float(os.environ['SECONDS'])
while time.monotonic() < until:
    pass
";

#[test]
fn what_the_owner_allows_and_a_program_or_somebody_else_lifts_is_said_by_the_run_and_the_agent() {
    if !is_root() {
        return;
    }
    let Some(mut machines) = Machines::with_first(1, 2) else { return };
    machines.agent_of_root(1, &["--max-cpu", "0.6"]);
    machines.write("leave.py", LEAVE);
    let own = format!("-{}-", machines.agent_id(1));
    let mut groups = fs::read_dir("/sys/fs/cgroup/cpu").into_iter().flatten().flatten();
    // Elsewhere there is none that this test finds.
    let group = groups.find(|it| it.file_name().to_string_lossy().contains(&own));
    let Some(group) = group.map(|it| it.path()) else { return };
    let file = |program: &str| {
        format!("nodes: {{a: {{run: {program}, pin: two}}, here: {{run: sleep 1, pin: one}}}}\n")
    };
    // It stays outside; or it has ended between two looks.
    for seconds in ["1.5", "0.1"] {
        let leave = format!("[sh, -c, 'SECONDS={seconds} python3 leave.py; sleep 1.5']");
        let outcome = machines.start(&file(&leave), &[]).finish();
        assert_eq!(outcome.output("a"), "escaped\n");
        let warnings = outcome.report()["verdict"]["warnings"].to_string();
        let why = "what this machine's agent allows (--max-cpu, --max-memory) was not held: ";
        assert!(warnings.contains(why), "{warnings}");
    }
    let mut run = machines.start(&file("sleep 600"), &[]);
    run.wait_for("the run begins");
    fs::write(group.join("cpu.cfs_quota_us"), "-1").unwrap();
    machines.agent_of(1).wait_for("NOT LIMITED: --max-cpu and --max-memory: ");
    run.signal("INT");
    let warnings = run.finish().report()["verdict"]["warnings"].to_string();
    assert!(warnings.contains("cpu.cfs_quota_us of its control group was changed"), "{warnings}");
    let quota = fs::read_to_string(group.join("cpu.cfs_quota_us")).unwrap();
    assert_ne!(quota, "-1\n", "it holds again");
}
