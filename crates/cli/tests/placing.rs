//! `check --hosts` against two real agents on loopback. Needs no rights.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Agents of two machines, m1 and m2, that have measured their round-trip time.
struct Cluster {
    folder: tempfile::TempDir,
    agents: Vec<Agent>,
}

/// It is killed when it is dropped.
struct Agent {
    child: Child,
    address: String,
    /// Kept open: the agent may still write.
    _talk: BufReader<ChildStderr>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn windtunnel(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windtunnel"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn key(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    assert!(windtunnel(&["keygen"]).arg(&path).output().unwrap().status.success());
    path
}

impl Agent {
    /// More processors than any load of this machine needs, so that it is never busy.
    fn start(name: &str, label: &str, key: &Path, join: Option<&str>) -> Agent {
        let mut command = windtunnel(&["agent", "--listen", "127.0.0.1:0", "--cpus", "100000"]);
        command.args(["--name", name, "--labels", label, "--uplink", "1gbit", "--memory", "100MB"]);
        command.arg("--key").arg(key).args(join.map(|join| format!("--join={join}")));
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut talk = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        talk.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("agent: listens on ").expect(&line).to_owned();
        Agent { child, address, _talk: talk }
    }
}

impl Cluster {
    fn start() -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let key = key(folder.path(), "key");
        let first = Agent::start("m1", "rack=1", &key, None);
        let second = Agent::start("m2", "rack=2", &key, Some(&first.address));
        let cluster = Cluster { folder, agents: vec![first, second] };
        let patience = Instant::now() + Duration::from_secs(30);
        while !cluster.is_complete() {
            assert!(Instant::now() < patience, "the agents do not know each other");
        }
        cluster
    }

    /// Whether both have measured the round-trip time to the other.
    fn is_complete(&self) -> bool {
        let output = self.ask(&["hosts", self.address(0), "--json"]);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let hosts = answer["hosts"].as_array().unwrap();
        hosts.len() == 2 && hosts.iter().all(|host| host["peers"][0]["clock"]["rtt_ns"].is_u64())
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        let mut command = windtunnel(arguments);
        command.arg("--key").arg(self.folder.path().join("key")).output().unwrap()
    }

    fn check(&self, file: &str, hosts: &str, more: &[&str]) -> (Option<i32>, String, String) {
        let path = self.folder.path().join("net.yaml");
        std::fs::write(&path, file).unwrap();
        let path = path.to_str().unwrap();
        let output = self.ask(&[&["check", path, "--hosts", hosts], more].concat());
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    fn address(&self, at: usize) -> &str {
        &self.agents[at].address
    }
}

/// Nodes that are pinned to m1 by its name and to m2 by a label, with one link.
fn pinned(link: &str) -> String {
    format!(
        "nodes: {{a: {{pin: m1, cpu: 1.5}}, b: {{pin: rack=2, memory: 20MB}}}}\nlinks: [{{between: [a, b], {link}}}]\n"
    )
}

/// Lines with one blank between words.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn the_placement_and_the_load_of_each_uplink_are_printed() {
    let cluster = Cluster::start();
    let file = pinned("rate: 10mbit, latency: 5s, queue: 100p");
    // Full packets need 1560 bytes between machines for each 1538 on the link.
    let placed = [
        "host nodes cpu of free memory of free up of free down of free",
        "m1 1 1.5 of 100000 1MB of 100MB 10.14mbit of 1gbit 10.14mbit of 1gbit",
        "m2 1 0 of 100000 21MB of 100MB 10.14mbit of 1gbit 10.14mbit of 1gbit",
        "m1: a",
        "m2: b",
        "net is valid and fits 2 machines: 2 nodes, 0 routers, 1 link, seed 1",
    ];
    let all = format!("{},all", cluster.address(0));
    let one_of_each = format!("{},m2", cluster.address(0));
    let twice = format!("{},{},m1", cluster.address(1), cluster.address(0));
    for hosts in [all, one_of_each, twice] {
        let (code, table, talk) = cluster.check(&file, &hosts, &[]);
        assert_eq!((code, talk.as_str()), (Some(0), ""), "{hosts}: {table}");
        assert_eq!(lines(&table)[3..], placed, "{hosts}");
    }
    // A path without latency gets the round-trip time between the machines.
    let hosts = format!("{},all", cluster.address(0));
    let (code, table, _) = cluster.check(&pinned("rate: 10mbit, queue: 100p"), &hosts, &[]);
    let rows = lines(&table);
    let warning = "warning: paths such as a to b ask for no latency, and lead from m1 to m2, a round trip of ";
    assert_eq!((code, rows.len()), (Some(0), 10));
    assert!(rows[8].starts_with(warning), "{rows:?}");
    assert!(rows[9].starts_with("net is valid and may not fit 2 machines: "), "{rows:?}");
    // No agent that m2 alone names is called m1.
    let (code, _, talk) = cluster.check(&file, cluster.address(1), &[]);
    let refused = "error: node a is pinned to `m1`, which is not a name or label of a machine\nhint: the machines are m2\n";
    assert_eq!((code, talk.as_str()), (Some(3), refused));
}

#[test]
fn a_plan_that_two_machines_cannot_carry_is_refused_with_numbers() {
    let cluster = Cluster::start();
    let hosts = format!("{},m2", cluster.address(0));
    let (code, table, talk) = cluster.check(&pinned("rate: 2gbit, latency: 5s"), &hosts, &[]);
    assert_eq!(code, Some(3), "{table}");
    let last =
        "net is valid and cannot be carried by 2 machines: 2 nodes, 0 routers, 1 link, seed 1";
    assert_eq!(lines(&table).last().map(String::as_str), Some(last));
    assert!(lines(&table).contains(&"the best that was found:".to_owned()), "{table}");
    let errors: Vec<&str> = talk.lines().filter(|line| line.starts_with("error: ")).collect();
    let way = |host, way, to| {
        format!(
            "error: host {host}: nodes there can {way} 2.029gbit {to} other hosts, its uplink has 1gbit, free 1gbit"
        )
    };
    let expected = ["m1", "m2"].map(|host| [way(host, "send", "to"), way(host, "be sent", "from")]);
    assert_eq!(errors, expected.concat());
    // No loopback has a round trip of less than 4 ns.
    let (code, json, _) = cluster.check(&pinned("latency: 1ns"), &hosts, &["--json"]);
    let answer: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, answer["concerns"].as_array().map(Vec::len)), (Some(3), Some(0)));
    let refusals = answer["placement"]["refusals"].as_array().unwrap();
    let ends = |from, to, nodes| {
        format!(
            "the path {nodes} takes 1ns one way, its ends are on {from} and {to}, a round trip of "
        )
    };
    for (refusal, expected) in
        refusals.iter().zip([ends("m1", "m2", "a - b"), ends("m2", "m1", "b - a")])
    {
        let message = refusal["message"].as_str().unwrap();
        assert!(message.starts_with(&expected), "{message}");
    }
    assert_eq!(refusals.len(), 2);
    assert_eq!(answer["placement"]["hosts"][0]["nodes"], serde_json::json!(["a"]));
}

#[test]
fn machines_are_asked_for_the_programs_of_their_nodes() {
    let cluster = Cluster::start();
    let hosts = format!("{},all", cluster.address(0));
    let file = |program: &str| {
        format!(
            "nodes: {{a: {{pin: m1, run: 'true'}}, b: {{pin: m2, run: {program}}}}}\n\
             links: [{{between: [a, b], latency: 5s}}]\n"
        )
    };
    let (code, table, talk) = cluster.check(&file("'true'"), &hosts, &[]);
    assert_eq!((code, talk.as_str()), (Some(0), ""), "{table}");
    // Both machines are this one, so that only the name says which was asked.
    for more in [&[][..], &["--json"]] {
        let (code, table, talk) = cluster.check(&file("no-such-program"), &hosts, more);
        assert_eq!(code, Some(4), "{table}");
        let all = table + &talk;
        assert!(all.contains("host m2: node b: "), "{all}");
        assert!(all.contains("there is no program `no-such-program` in PATH"), "{all}");
        assert!(!all.contains("host m1: node"), "{all}");
    }
}

#[test]
fn unknown_machines_are_refused_with_a_list_of_the_known_ones() {
    let cluster = Cluster::start();
    let file = pinned("latency: 5s");
    let hosts = format!("{},no such machine", cluster.address(0));
    let (code, table, talk) = cluster.check(&file, &hosts, &[]);
    let there = format!("m1 ({}), m2 ({})", cluster.address(0), cluster.address(1));
    let expected = format!(
        "error: no agent of the cluster is called `no such machine`, and it is not an address\nhint: there are {there}\n"
    );
    assert_eq!((code, table.as_str(), talk), (Some(2), "", expected));
    // An agent that is unknown to both.
    let stranger = Agent::start("m3", "x", &cluster.folder.path().join("key"), None);
    let hosts = format!("{},{}", cluster.address(0), stranger.address);
    let (code, _, talk) = cluster.check(&file, &hosts, &[]);
    let (first, other) = (cluster.address(0), &stranger.address);
    let expected = format!(
        "error: the agent at {other} and the one at {first} do not know each other\n\
         hint: start it with `windtunnel agent --join {first}`\n"
    );
    assert_eq!((code, talk), (Some(2), expected));
    // Another key.
    let other = key(cluster.folder.path(), "other");
    let net = cluster.folder.path().join("net.yaml");
    let mut command = windtunnel(&["check"]);
    command.arg(net).arg("--key").arg(other).env("WINDTUNNEL_HOSTS", first);
    let output = command.output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(talk.starts_with(&format!("error: the agent at {first} has another key\n")), "{talk}");
}

#[test]
fn the_machines_outside_is_refused_over_several_machines_at_its_place() {
    let cluster = Cluster::start();
    let hosts = format!("{},all", cluster.address(0));
    let file = "nodes:\n  phone: {run: 'true', publish: '8080:80'}\n  internet: {allow: dns}\n\
                links: [{between: [phone, internet]}]\n";
    let (code, table, talk) = cluster.check(file, &hosts, &[]);
    assert_eq!((code, table.as_str()), (Some(3), ""), "{talk}");
    let place = "net.yaml:3:3: `internet`: over several machines the model of paths is used, where \
                 there is no way to the outside\n    3 |   internet: {allow: dns}\n      |   ^^^^^^^^\n\
                 hint: run it on one machine\n";
    assert!(talk.contains(place), "{talk}");
    // Nor does a permission change that.
    let path = cluster.folder.path().join("net.yaml");
    let out = cluster.folder.path().join("out");
    let run = ["run", path.to_str().unwrap(), "--hosts", &hosts, "--out", out.to_str().unwrap()];
    for permission in ["--allow-internet", "--allow-host"] {
        let output = cluster.ask(&[&run[..], &[permission]].concat());
        let talk = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{talk}");
        assert!(talk.contains(place), "{talk}");
        assert!(!out.exists(), "nothing has happened");
    }
}
