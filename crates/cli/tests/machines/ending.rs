//! Runs that are interrupted, left alone and fetched, and several at once.

use std::fs;

use super::support::{Machines, Run, address, is_missing, until};

#[test]
fn ctrl_c_ends_a_run_on_all_machines_and_what_there_is_of_it_comes_here() {
    let Some(mut machines) = Machines::new(2) else { return };
    let mut run = machines.start(FILE, &[]);
    run.wait_for("icmp_seq=3");
    run.signal("INT");
    let outcome = run.finish();
    outcome.assert_code(130);
    assert!(outcome.output("a").contains("icmp_seq=3"), "{}", outcome.output("a"));
    assert!(!outcome.exit("a").is_empty() && !outcome.exit("b").is_empty());
    assert_eq!(outcome.report()["verdict"]["exit_code"], 130);
    for at in 0..2 {
        machines.assert_nothing_left(at);
    }
}

#[test]
fn a_run_goes_on_without_the_command_that_began_it_and_is_fetched_from_another_machine() {
    let Some(mut machines) = Machines::new(2) else { return };
    let mut run = machines.start(FILE, &[]);
    run.wait_for("icmp_seq=3");
    run.signal("KILL");
    assert_eq!(run.finish().code, 137);

    let mut attached = machines.attach(1, &["--host", &address(1)]);
    attached.wait_for("bytes from");
    assert!(!machines.processes(0).is_empty() && !machines.processes(1).is_empty());
    let ps = machines.ask(1, &["ps", "--run", attached.name()]);
    assert!(ps.status.success(), "{ps:?}");
    attached.signal("INT");
    let outcome = attached.finish();
    outcome.assert_code(130);
    // From the beginning, not from when it was attached.
    assert!(outcome.output("a").contains("icmp_seq=1 "), "{}", outcome.output("a"));
    assert_eq!(outcome.events("run-began").len(), 1);
    for at in 0..2 {
        machines.assert_nothing_runs(at);
        until("the end of its folders", || machines.folders(at).is_empty().then_some(()));
    }
}

#[test]
fn a_detached_run_is_fetched_when_it_is_over_by_all_that_follow_it() {
    let Some(mut machines) = Machines::new(2) else { return };
    // It cannot be repeated, and is not about time.
    let begun = machines.start_within(SHORT, "1s", &["--detach"]).finish();
    begun.assert_code(0);
    let number = begun.stdout.trim().to_owned();
    assert!(number.len() == 16 && !begun.folder.exists(), "{begun:?}");
    until("the end of its programs", || {
        let over = |at| machines.folders(at).iter().all(|folder| folder.join("part.json").exists());
        (over(0) && over(1)).then_some(())
    });
    let fetched = [
        machines.attach(0, &["--host", &address(0)]),
        machines.attach(1, &["--host", &address(0), &number]),
    ];
    let outcomes = fetched.map(Run::finish);
    assert!(outcomes.iter().any(|outcome| outcome.code == 0), "{outcomes:?}");
    for outcome in outcomes {
        // Either may find that the other was faster; without a number the error is that there is no
        // run.
        if outcome.code == 0 {
            assert_eq!(outcome.output("b").trim(), "done");
        } else {
            let errors = [number.as_str(), "no run has a part on"];
            assert!(
                errors.iter().any(|error| outcome.stderr.contains(error)),
                "{}",
                outcome.stderr
            );
        }
    }
    for at in 0..2 {
        until("the end of its folders", || machines.folders(at).is_empty().then_some(()));
    }
    let none = machines.ask(0, &["attach", &number, "--host", &address(0), "--key", "../key"]);
    assert!(String::from_utf8(none.stderr).unwrap().contains(&format!("no run {number} is here")));
}

#[test]
fn results_that_are_not_fetched_expire_and_both_sides_report_it() {
    let keep = ["--keep-results", "1s"];
    let Some(mut machines) = Machines::with(&[&keep, &keep]) else { return };
    let begun = machines.start(SHORT, &["--detach"]).finish();
    begun.assert_code(0);
    let number = begun.stdout.trim().to_owned();
    let expired = format!("the results of run {number} (net-1) have expired");
    for at in 0..2 {
        machines.agent_of(at).wait_for(&expired);
        machines.assert_nothing_left(at);
        let late =
            machines.ask(at, &["attach", &number, "--host", &address(at), "--key", "../key"]);
        let (text, code) = (String::from_utf8(late.stderr).unwrap(), late.status.code());
        assert!(
            code == Some(2) && text.contains("have expired: they were not fetched for 1s"),
            "{text}"
        );
    }
}

#[test]
fn runs_at_the_same_time_on_the_same_agents_do_not_know_of_each_other() {
    if is_missing(&["ping"]) {
        return;
    }
    let Some(mut machines) = Machines::new(2) else { return };
    let mut first = machines.start(FILE, &[]);
    first.wait_for("icmp_seq=2");
    // The same file: the same names and addresses.
    let mut second = machines.start(FILE, &[]);
    second.wait_for("icmp_seq=2");
    let processes = machines.processes(1).len();
    second.signal("INT");
    second.finish().assert_code(130);
    until("the end of the second run", || {
        (machines.processes(1).len() * 2 == processes).then_some(())
    });
    first.wait_for_more("bytes from");
    let stopped = machines.ask(0, &["stop", "--run", first.name()]);
    assert!(stopped.status.success(), "{stopped:?}");
    let outcome = first.finish();
    outcome.assert_passed();
    // Nothing was lost meanwhile: the numbers of the answers have no gap.
    let text = outcome.output("a");
    let numbers = text
        .lines()
        .filter_map(|line| line.split("icmp_seq=").nth(1)?.split(' ').next()?.parse().ok());
    let numbers: Vec<usize> = numbers.collect();
    assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>(), "{text}");
    for at in 0..2 {
        machines.assert_nothing_left(at);
    }
}

#[test]
fn an_agent_that_ends_takes_its_runs_with_it_and_begins_empty() {
    let Some(mut machines) = Machines::new(2) else { return };
    let mut run = machines.start(FILE, &[]);
    run.wait_for("icmp_seq=2");
    machines.agent_of(1).signal("INT");
    let outcome = run.finish();
    outcome.assert_code(1);
    assert!(outcome.stdout.contains("host two is lost"), "{}", outcome.stdout);
    machines.agent_of(1).wait();
    for at in 0..2 {
        machines.assert_nothing_left(at);
    }
    fs::create_dir(machines.home(1).join("parts/9f2c41d07ab35e18")).unwrap();
    let mut again = machines.agent(1, &[]);
    again.wait_for("10.99.0.1:7447 is there");
    assert!(machines.folders(1).is_empty(), "{:?}", machines.folders(1));
    machines.meet();
    machines.pass(SHORT);
}

const FILE: &str = "
nodes:
  a: {run: ping -4 -i 0.1 b, pin: one}
  b: {run: sleep 600, daemon: true, pin: two}
links:
  - {between: [a, b], latency: 5ms}
";
const SHORT: &str = "
nodes:
  a: {run: 'true', pin: one}
  b: {run: echo done, pin: two}
links:
  - {between: [a, b], latency: 5ms}
";
