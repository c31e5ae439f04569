//! Machines that are lost: killed, cut off, or only their part.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::support::{Machines, Outcome, Run, address, is_missing, until};

#[test]
fn a_run_fails_soon_after_an_agent_is_killed_and_leaves_nothing() {
    let Some((mut machines, run)) = under_way("fail") else { return };
    machines.agent_of(2).signal("KILL");
    let outcome = run.finish_within(SOON);
    lost_and_failed(&outcome);
    for at in 0..3 {
        machines.assert_nothing_left(at);
    }
}

#[test]
fn the_others_go_on_without_a_killed_agent_if_the_file_says_so() {
    let Some((mut machines, mut run)) = under_way("continue") else { return };
    machines.agent_of(2).signal("KILL");
    run.wait_for("three is lost");
    let ps = machines.ask(0, &["ps", "--run", run.name()]);
    let ps = String::from_utf8(ps.stdout).unwrap();
    let state = |node: &str| {
        let line = ps.lines().find(|line| line.starts_with(node)).unwrap_or_default();
        ["running", "lost"].into_iter().find(|state| line.contains(state))
    };
    assert_eq!(
        (state("a "), state("b "), state("c ")),
        (Some("running"), Some("running"), Some("lost")),
        "{ps}"
    );
    // Packets still go between the two.
    run.wait_for_more("bytes from");
    let stopped = machines.ask(0, &["stop", "--run", run.name()]);
    assert!(stopped.status.success(), "{stopped:?}");
    let outcome = run.finish_within(SOON);
    let lost = outcome.events("host-lost");
    assert_eq!(
        (lost.len(), &lost[0]["host"], &lost[0]["nodes"]),
        (1, &"three".into(), &serde_json::json!(["c"]))
    );
    assert_eq!(outcome.events("run-ended")[0]["reason"], "stopped by command");
    assert!(outcome.stdout.contains("host three was lost"), "{}", outcome.stdout);
    for at in 0..3 {
        machines.assert_nothing_left(at);
    }
}

#[test]
fn both_sides_of_a_cut_network_end_if_the_file_says_so() {
    let Some((machines, run)) = under_way("fail") else { return };
    machines.cut(2);
    let outcome = run.finish_within(SOON);
    lost_and_failed(&outcome);
    for at in 0..2 {
        machines.assert_nothing_left(at);
    }
    // What it has seen until then waits for somebody to fetch it.
    machines.assert_nothing_runs(2);
    assert_eq!(machines.folders(2).len(), 1);
    machines.mend(2);
    machines.meet();
}

#[test]
fn of_a_cut_network_the_larger_side_goes_on_and_nothing_of_the_other_outlives_the_run() {
    let Some((machines, mut run)) = under_way("continue") else { return };
    machines.cut(2);
    run.wait_for("three is lost");
    machines.assert_nothing_runs(2);
    run.wait_for_more("bytes from");
    machines.mend(2);
    machines.meet();
    // The two know it again, but not in this run.
    run.wait_for_more("bytes from");
    assert!(machines.processes(2).is_empty(), "{:?}", machines.processes(2));
    let stopped = machines.ask(0, &["stop", "--run", run.name()]);
    assert!(stopped.status.success(), "{stopped:?}");
    let outcome = run.finish_within(SOON);
    assert_eq!(outcome.events("host-lost").len(), 1);
    assert_eq!(outcome.events("run-ended")[0]["reason"], "stopped by command");
}

#[test]
fn of_two_halves_of_a_cut_run_one_is_the_run_and_both_say_what_is_missing() {
    if is_missing(&["ping"]) {
        return;
    }
    let Some(mut machines) = Machines::new(2) else { return };
    let mut run = machines.start(HALVES, &[]);
    run.wait_for("icmp_seq=2");
    let mut attached = machines.attach(1, &["--host", &address(1)]);
    attached.wait_for("bytes from");
    machines.cut(1);
    run.wait_for("host two is lost");
    attached.wait_for("host one is lost");
    // Both go on: each is watched.
    for (at, run) in [(0, &run), (1, &attached)] {
        let stopped = machines.ask(at, &["stop", "--run", run.name()]);
        assert!(stopped.status.success(), "{stopped:?}");
    }
    let (first, second) = (run.finish(), attached.finish());
    for (outcome, other) in [(&first, "two"), (&second, "one")] {
        outcome.assert_code(1);
        let report = outcome.report();
        assert_eq!(report["verdict"]["faithful"], false);
        let doubts = report["verdict"]["unfaithful"].as_array().unwrap();
        let lost = format!("host {other} is lost since ");
        let is_lost = |doubt: &serde_json::Value| doubt.as_str().unwrap().starts_with(&lost);
        assert!(doubts.iter().any(is_lost), "{doubts:?}");
        assert_eq!(
            (&report["lost"][0]["host"], &report["lost"][0]["nodes"]),
            (&other.into(), &1.into())
        );
        assert!(report["lost"][0]["since_ns"].as_u64().unwrap() > 0);
    }
    // The half with the first machine is the run.
    let (first, second) = (first.report(), second.report());
    assert_eq!(
        (&first["partial"], &first["verdict"]["passed"]),
        (&serde_json::Value::Null, &true.into())
    );
    assert_eq!((&second["partial"], &second["verdict"]["passed"]), (&true.into(), &false.into()));
    let text = second["verdict"]["text"].as_str().unwrap();
    assert!(text.starts_with("PARTIAL, NOT FAITHFUL, FAILED: "), "{text}");
}

#[test]
fn an_agent_that_is_away_until_the_others_have_ended_ends_its_part_when_it_is_back() {
    let Some((mut machines, run)) = under_way("fail") else { return };
    machines.agent_of(2).signal("STOP");
    for at in 0..2 {
        machines.assert_nothing_runs(at);
    }
    assert!(!machines.process_ids(2, "sleep").is_empty());
    machines.agent_of(2).signal("CONT");
    machines.assert_nothing_runs(2);
    lost_and_failed(&run.finish_within(SOON));
}

#[test]
fn a_machine_that_is_silent_for_less_than_the_file_bears_goes_on_in_the_run() {
    let Some((mut machines, mut run)) = under_way_with("host-timeout: 10s") else { return };
    machines.agent_of(2).signal("STOP");
    // Half a second without an answer once lost a machine, and the run with it.
    run.wait_for("host three has not answered since");
    std::thread::sleep(SILENCE);
    machines.agent_of(2).signal("CONT");
    run.wait_for("host three answers again");
    let stopped = machines.ask(0, &["stop", "--run", run.name()]);
    assert!(stopped.status.success(), "{stopped:?}");
    let outcome = run.finish_within(SOON);
    assert_eq!(outcome.events("host-lost").len(), 0);
    assert_eq!(outcome.events("host-silent")[0]["host"], "three");
    let lasted = |event: &serde_json::Value| event["lasted_ns"].as_u64().unwrap();
    let longest = outcome.events("host-answers").iter().map(lasted).max().unwrap();
    // It is counted from the last datagram, which may have come after the first doubt.
    assert!(u128::from(longest) >= SILENCE.as_nanos(), "{longest}");
    assert!(!outcome.exit("c").is_empty(), "its results are here");
    assert!(outcome.stdout.contains("PASSED"), "{}", outcome.stdout);
}

#[test]
fn a_machine_that_stands_still_when_the_run_ends_keeps_its_results_and_the_run() {
    let Some((machines, mut run)) = under_way_with("host-timeout: 2s") else { return };
    let still = stands_still(&machines, 2);
    let stop = stop_of(&machines, &run);
    run.wait_for("stopped by command");
    // A command that looks at the run waits for the machine; what leads the run does not.
    let looks = machines.ask(1, &["ps", "--run", run.name()]);
    assert!(!looks.status.success(), "{looks:?}");
    for at in 0..2 {
        machines.assert_nothing_runs(at);
    }
    signal_all(&still, "CONT");
    kept_by_all(&run.finish_within(SOON), stop);
    for at in 0..3 {
        machines.assert_nothing_left(at);
    }
}

#[test]
fn a_machine_that_stands_still_while_results_are_fetched_gives_them_when_it_is_back() {
    let Some((machines, mut run)) = under_way_with("host-timeout: 2s") else { return };
    let stop = stop_of(&machines, &run);
    run.wait_for("stopped by command");
    until("the last file of its part", || {
        let folders = machines.folders(2);
        folders.iter().any(|folder| folder.join("part.json").exists()).then_some(())
    });
    let still = stands_still(&machines, 2);
    for at in 0..2 {
        machines.assert_nothing_runs(at);
    }
    signal_all(&still, "CONT");
    kept_by_all(&run.finish_within(SOON), stop);
}

#[test]
fn a_run_can_be_stopped_while_its_first_machine_stands_still() {
    let Some((machines, run)) = under_way_with("host-timeout: 10s") else { return };
    let still = stands_still(&machines, 0);
    let stop = stop_of(&machines, &run);
    machines.assert_nothing_runs(1);
    signal_all(&still, "CONT");
    kept_by_all(&run.finish_within(SOON), stop);
}

/// `windtunnel stop`, which waits for the end of the run.
fn stop_of(machines: &Machines, run: &Run) -> Child {
    let mut stop = machines.windtunnel(0, &["stop", "--run", run.name()]);
    stop.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Stops the agent of a machine and everything of runs there.
fn stands_still(machines: &Machines, at: usize) -> Vec<u32> {
    let processes = machines.processes(at).into_iter().map(|(id, _)| id);
    let all: Vec<u32> = [machines.agent_id(at)].into_iter().chain(processes).collect();
    signal_all(&all, "STOP");
    all
}

fn signal_all(processes: &[u32], signal: &str) {
    for id in processes {
        // Some may have ended with others.
        let _ = Command::new("kill").args(["-s", signal, &id.to_string()]).output().unwrap();
    }
}

#[track_caller]
fn kept_by_all(outcome: &Outcome, stop: Child) {
    let stopped = stop.wait_with_output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
    assert_eq!(outcome.events("host-lost").len(), 0, "{}", outcome.stdout);
    assert_eq!(outcome.events("run-ended")[0]["reason"], "stopped by command");
    assert!(["a", "b", "c"].iter().all(|node| !outcome.exit(node).is_empty()), "{outcome:?}");
    assert!(outcome.stdout.contains("PASSED"), "{}", outcome.stdout);
    assert_eq!(outcome.report()["lost"], serde_json::Value::Null);
}

#[test]
fn a_part_that_is_killed_is_a_machine_that_is_lost() {
    let Some((machines, run)) = under_way("fail") else { return };
    let parts = machines.process_ids(2, "windtunnel part");
    assert!(!parts.is_empty());
    for id in parts {
        // One ends with the other.
        let _ = Command::new("kill").args(["-s", "KILL", &id.to_string()]).output().unwrap();
    }
    let outcome = run.finish_within(SOON);
    lost_and_failed(&outcome);
    for at in 0..3 {
        machines.assert_nothing_left(at);
    }
}

#[test]
fn a_machine_that_cannot_keep_what_it_counted_is_lost_and_the_run_fails() {
    let Some(mut machines) = Machines::new(2) else { return };
    // As on a full disk: its last file cannot be written.
    let scenario = "
nodes:
  a: {run: 'true', pin: one}
  b: {run: [sh, -c, 'echo began; until test -d ../two/parts/*/part.json; do sleep 0.05; done'], pin: two}
";
    let mut run = machines.start(scenario, &[]);
    run.wait_for("began");
    // By the agent's user, which removes it afterwards.
    let taken = machines.folders(1)[0].join("part.json/full");
    let mut make = machines.command(1, "mkdir", &["-p", taken.to_str().unwrap()]);
    assert!(make.status().unwrap().success());
    let outcome = run.finish();
    outcome.assert_code(1);
    let last = outcome.stdout.lines().last().unwrap();
    assert!(last.contains("FAILED: host two is lost: cannot write "), "{}", outcome.stdout);
    assert_eq!(outcome.exit("a"), "exited with 0");
    for at in 0..2 {
        machines.assert_nothing_left(at);
    }
}

#[track_caller]
fn lost_and_failed(outcome: &Outcome) {
    outcome.assert_code(1);
    let last = outcome.stdout.lines().last().unwrap();
    assert!(last.contains("FAILED: host three is lost"), "{}", outcome.stdout);
    let lost = outcome.events("host-lost");
    assert_eq!(
        (lost.len(), &lost[0]["host"], &lost[0]["nodes"]),
        (1, &"three".into(), &serde_json::json!(["c"]))
    );
    // What the others have written until then is there.
    assert!(outcome.output("a").contains("icmp_seq=2"), "{}", outcome.output("a"));
    assert!(!outcome.exit("a").is_empty() && !outcome.exit("b").is_empty());
}

/// Three machines and a run on all of them, in which packets go.
fn under_way(on_host_loss: &str) -> Option<(Machines, Run)> {
    under_way_with(&format!("on-host-loss: {on_host_loss}\nhost-timeout: 1s"))
}

fn under_way_with(head: &str) -> Option<(Machines, Run)> {
    if is_missing(&["ping"]) {
        return None;
    }
    let mut machines = Machines::new(3)?;
    let mut run = machines.start(&format!("{head}{FILE}"), &[]);
    run.wait_for("icmp_seq=2");
    until("programs on each machine", || {
        (0..3).all(|at| !machines.process_ids(at, "sleep").is_empty() || at == 0).then_some(())
    });
    Some((machines, run))
}

const FILE: &str = "
nodes:
  a: {run: ping -4 -i 0.1 b, pin: one}
  b: {run: sleep 600, daemon: true, pin: two}
  c: {run: sleep 600, daemon: true, pin: three}
routers: [r]
links:
  - {between: [a, r], latency: 5ms}
  - {between: [b, r], latency: 5ms}
  - {between: [c, r], latency: 5ms}
";
const HALVES: &str = "
on-host-loss: continue
host-timeout: 1s
nodes:
  a: {run: ping -4 -i 0.1 a, pin: one}
  b: {run: ping -4 -i 0.1 b, pin: two}
routers: [r]
links:
  - {between: [a, r], latency: 5ms}
  - {between: [b, r], latency: 5ms}
";
/// How long a machine goes on standing still after the others have noticed it.
const SILENCE: Duration = Duration::from_millis(500);
/// Within seconds: a loss is noticed in two, on a machine that has time.
const SOON: Duration = Duration::from_secs(15);
