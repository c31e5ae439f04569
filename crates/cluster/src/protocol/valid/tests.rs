use serde_json::{Value, json};
use windtunnel_control::frame;

use super::*;

/// A run of two nodes on two machines, as JSON.
pub(crate) fn run() -> Value {
    let interface = |port: u32, outward: &str| {
        json!({"port": port, "name": "eth0", "link": 0, "outward": outward, "v4": format!("10.0.0.{}", port + 1),
            "v6": null, "mtu": 1500})
    };
    let node = |name: &str, port: u32, outward: &str| {
        json!({"name": name, "group": name, "forward": false, "user": "invoker", "sysctl": {},
            "interfaces": [interface(port, outward)], "programs": []})
    };
    let profile = json!({"latency": "5ms", "jitter": {"spread": "0ns", "distribution": "uniform"}, "loss": "none",
        "duplicate": "0%", "corrupt": "0%",
        "reorder": {"by-jitter": false, "probability": "0%", "extra": "0ns"},
        "rate": null, "overhead": null, "mtu": 1500, "queue": null, "discipline": "drop-tail"});
    let end = |node: u32| json!({"vertex": {"node": node}, "interface": 0});
    let member = |last: u8| json!({"agent": format!("{last:016x}"), "host": format!("m{last}"), "address": format!("10.0.0.{last}:7447")});
    json!({"run": 7, "plan_hash": "0".repeat(64), "placement": [0, 1], "base_dir": "/",
        "members": [member(1), member(2)],
        "shared": {"max_lateness": "1ms", "output_limit": "1MB", "offload": true, "packet_memory": "1MB"},
        "plan": {"name": "net", "seed": 1, "duration": null,
            "routing": {"metric": "latency", "ecmp": false, "reroute": null},
            "nodes": [node("a", 0, "up"), node("b", 1, "down")], "routers": [], "routes": [], "events": [],
            "expectations": [],
            "links": [{"name": "a--b", "ends": [end(0), end(1)], "profiles": [profile, profile]}]}})
}

/// Why an answer with a changed run is refused.
#[track_caller]
fn refused(path: &str, value: Value) -> String {
    let mut run = run();
    *run.pointer_mut(path).unwrap() = value;
    run.as_object_mut().unwrap().insert("answer".to_owned(), json!("run"));
    frame::decode::<Answer>(&serde_json::to_vec(&run).unwrap()).unwrap_err().to_string()
}

#[test]
fn a_run_as_agents_send_it_is_accepted() {
    let mut run = run();
    run.as_object_mut().unwrap().insert("answer".to_owned(), json!("run"));
    let answer = frame::decode::<Answer>(&serde_json::to_vec(&run).unwrap()).unwrap();
    assert!(matches!(answer, Answer::Run(_)));
}

#[test]
fn a_run_with_nodes_outside_its_folder_is_refused() {
    for name in ["../../.ssh", "/root/.ssh", "", "..", "a\u{0}b", "\u{1b}[2J"] {
        let why = refused("/plan/nodes/0/name", json!(name));
        assert!(why.contains("cannot name a node"), "{why}");
    }
    assert!(refused("/plan/name", json!("../x")).contains("cannot name an experiment"));
}

#[test]
fn numbers_that_index_nothing_and_texts_that_are_nothing_are_refused() {
    let wrong = [
        ("/placement", json!([0, 2])),
        ("/placement", json!([0])),
        ("/placement", json!([])),
        ("/members", json!([])),
        ("/members/1/agent", json!("0000000000000001")),
        ("/members/1/agent", json!("one")),
        ("/members/1/host", json!("\u{1b}]0;x")),
        ("/plan_hash", json!("0")),
        ("/base_dir", json!("..")),
        ("/plan/nodes/0/interfaces/0/link", json!(u32::MAX)),
        ("/plan/nodes/0/interfaces/0/port", json!(u32::MAX)),
        ("/plan/links/0/ends/0/vertex/node", json!(u32::MAX)),
        ("/plan/links/0/ends/0/interface", json!(u32::MAX)),
        ("/plan/links/0/profiles/0/mtu", json!(0)),
    ];
    for (path, value) in wrong {
        refused(path, value);
    }
}

#[test]
fn a_file_of_another_machine_has_a_plain_path() {
    let file = |path: &str| Answer::File { path: path.to_owned(), bytes: 1, executable: false };
    file("nodes/a/stdout").validate().unwrap();
    for path in ["../x", "/x", "", "nodes//x", "nodes/./x", "a\0b"] {
        file(path).validate().unwrap_err();
    }
}

#[test]
fn the_agent_that_was_asked_is_one_of_those_that_are_there() {
    let hosts = Hosts { asked: 7, hosts: Vec::new(), silent: Vec::new(), throughput: Vec::new() };
    hosts.validate().unwrap_err();
}
