//! The network between the machines loses packets, and everybody lives.

use super::support::{Machines, Outcome, Run, address, is_missing};

#[test]
fn datagrams_that_one_direction_between_two_machines_loses_are_counted_and_the_pair_is_named() {
    let Some((machines, mut run)) = pinging() else { return };
    // Between agents all goes on.
    machines.drop_from(1, 2, "ipproto udp dport 7448-65534");
    run.wait_for("has got no answer of host");
    let outcome = stopped(&machines, run);
    outcome.assert_code(1);
    let lost = lost_between(&outcome, "three", "two");
    // The replies to ten requests in each of two seconds.
    assert!(lost >= 10, "{lost}");
    assert_eq!(sent(&outcome, "three", "two") - received(&outcome, "two", "three"), lost);
    assert_eq!(sent(&outcome, "two", "three"), received(&outcome, "three", "two"));
    let last = outcome.stdout.lines().last().unwrap();
    assert!(last.starts_with("NOT FAITHFUL, "), "{last}");
    // Neither knows which of the two ways it was.
    let silent = outcome.events("peer-silent");
    let pairs = silent.iter().map(|event| (event["host"].clone(), event["peer"].clone()));
    let pairs: Vec<_> = pairs.collect();
    for (host, peer) in [("two", "three"), ("three", "two")] {
        assert!(pairs.contains(&(host.into(), peer.into())), "{pairs:?}");
        let text = format!("host {host} got no answer of host {peer} from ");
        let doubts = doubts(&outcome);
        assert!(doubts.iter().any(|doubt| doubt.starts_with(&text)), "{doubts:?}");
    }
}

#[test]
fn two_of_three_machines_that_are_cut_from_each_other_are_reported_though_none_is_lost() {
    let Some((machines, mut run)) = pinging() else { return };
    machines.drop_from(1, 2, "");
    machines.drop_from(2, 1, "");
    run.wait_for("has got no answer of host");
    let outcome = stopped(&machines, run);
    outcome.assert_code(1);
    // The requests: no later number of theirs has come.
    let lost = lost_between(&outcome, "two", "three");
    assert!(lost >= 10, "{lost}");
    assert_eq!(sent(&outcome, "two", "three") - received(&outcome, "three", "two"), lost);
    assert_eq!(outcome.events("host-lost").len(), 0);
    let last = outcome.stdout.lines().last().unwrap();
    assert!(last.starts_with("NOT FAITHFUL, "), "{last}");
}

#[test]
fn a_run_whose_packets_do_not_pass_does_not_begin_and_names_the_machines_and_the_ports() {
    let Some(mut machines) = Machines::new(3) else { return };
    machines.drop_from(1, 2, "ipproto udp dport 7448-65534");
    let outcome = machines.start(FILE, &[]).finish();
    outcome.assert_code(4);
    let text =
        "error: no packet comes from host three (10.99.0.3:7448) to host two (10.99.0.2:7448): ";
    assert!(outcome.stderr.contains(text), "{}", outcome.stderr);
    let hint = "hint: let UDP ports 7447-7547 pass between all machines, in both directions";
    assert!(outcome.stderr.contains(hint), "{}", outcome.stderr);
    for at in 0..3 {
        machines.assert_nothing_left(at);
    }
}

#[test]
fn a_run_does_not_begin_if_two_agents_do_not_reach_each_other_and_names_them() {
    let Some(mut machines) = Machines::new(3) else { return };
    machines.drop_from(1, 2, "");
    machines.drop_from(2, 1, "");
    let outcome = machines.start(FILE, &[]).finish();
    outcome.assert_code(4);
    let text = "error: the agents do not reach each other: nothing comes from host ";
    assert!(outcome.stderr.contains(text), "{}", outcome.stderr);
    for place in ["two (10.99.0.2:7447)", "three (10.99.0.3:7447)"] {
        assert!(outcome.stderr.contains(place), "{}", outcome.stderr);
    }
    for at in 0..3 {
        machines.assert_nothing_left(at);
    }
}

#[test]
fn agents_on_a_switch_without_a_default_route_find_each_other_by_one_address() {
    let anywhere: &[&str] = &["--listen", "0.0.0.0:7447"];
    // As docs/cluster.md says: the first is started alone, the others know the first. They meet or
    // this fails.
    let Some(machines) = Machines::with(&[anywhere; 3]) else { return };
    let hosts = machines.ask(2, &["hosts", "--key", "../key", "--json"]);
    let hosts: serde_json::Value = serde_json::from_slice(&hosts.stdout).unwrap();
    let addresses = hosts["hosts"].as_array().unwrap().iter().map(|host| host["address"].clone());
    let expected = (0..3).map(|at| serde_json::Value::from(address(at)));
    let mut addresses: Vec<_> = addresses.map(|it| it.as_str().unwrap().to_owned()).collect();
    addresses.sort();
    let expected: Vec<_> = expected.map(|it| it.as_str().unwrap().to_owned()).collect();
    assert_eq!(addresses, expected);
}

/// Three machines and a run on all of them, in which packets go between the second and the third.
fn pinging() -> Option<(Machines, Run)> {
    if is_missing(&["ping"]) {
        return None;
    }
    let mut machines = Machines::new(3)?;
    let mut run = machines.start(FILE, &[]);
    run.wait_for("icmp_seq=5");
    Some((machines, run))
}

fn stopped(machines: &Machines, run: Run) -> Outcome {
    let stopped = machines.ask(0, &["stop", "--run", run.name()]);
    assert!(stopped.status.success(), "{stopped:?}");
    run.finish()
}

fn doubts(outcome: &Outcome) -> Vec<String> {
    let report = outcome.report();
    let doubts = report["verdict"]["unfaithful"].as_array().unwrap().iter();
    doubts.map(|doubt| doubt.as_str().unwrap().to_owned()).collect()
}

/// How many datagrams are said to be lost from one machine to another.
#[track_caller]
fn lost_between(outcome: &Outcome, from: &str, to: &str) -> u64 {
    let what = format!(
        "datagrams with packets from host {from} to host {to} were lost between the machines"
    );
    let doubts = doubts(outcome);
    let doubt = doubts.iter().find(|doubt| doubt.ends_with(&what));
    let doubt = doubt.unwrap_or_else(|| panic!("{doubts:?}"));
    doubt.split(' ').next().unwrap().parse().unwrap()
}

fn sent(outcome: &Outcome, from: &str, to: &str) -> u64 {
    counted(outcome, from, to, "sent_datagrams")
}

fn received(outcome: &Outcome, at: &str, from: &str) -> u64 {
    counted(outcome, at, from, "received_datagrams")
}

fn counted(outcome: &Outcome, host: &str, peer: &str, what: &str) -> u64 {
    let report = outcome.report();
    let host = report["hosts"].as_array().unwrap().iter().find(|one| one["host"] == host).unwrap();
    let peers = host["peers"].as_array().unwrap();
    peers.iter().find(|one| one["host"] == peer).unwrap()[what].as_u64().unwrap()
}

const FILE: &str = "
nodes:
  a: {run: sleep 600, daemon: true, pin: one}
  b: {run: ping -4 -i 0.1 c, pin: two}
  c: {run: sleep 600, daemon: true, pin: three}
routers: [r]
links:
  - {between: [a, r], latency: 5ms}
  - {between: [b, r], latency: 5ms}
  - {between: [c, r], latency: 5ms}
";
