//! `attach` to a malicious agent that has the cluster's key. Needs no rights: the agent is a
//! double on loopback that speaks the real protocol and sends the answers of a test.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use windtunnel_cluster::protocol::AgentRequest;
use windtunnel_cluster::{ClusterKey, FakeAgent};
use windtunnel_control::frame;
use windtunnel_scenario::ScenarioSource;

/// A user's home with a key in it.
struct Home {
    folder: tempfile::TempDir,
    key: ClusterKey,
}

/// The result of a command.
struct Attached {
    /// Where the agent listens.
    agent: String,
    code: Option<i32>,
    stderr: String,
    /// All files of the home beside the key.
    files: Vec<PathBuf>,
}

impl Home {
    fn new() -> Home {
        let folder = tempfile::tempdir().unwrap();
        let key = ClusterKey::create(&folder.path().join("key")).unwrap();
        fs::create_dir_all(folder.path().join("work/below")).unwrap();
        Home { folder, key }
    }

    /// `attach` from a folder of the home, to an agent that answers so. The answer may name
    /// the address of the agent.
    fn attach(
        &self,
        words: &[&str],
        answer: impl Fn(&AgentRequest, SocketAddr) -> Vec<u8> + Send + 'static,
    ) -> Attached {
        let address = Arc::new(OnceLock::new());
        let own = Arc::clone(&address);
        let agent = FakeAgent::start(&self.key, move |ask| answer(&ask, *own.wait()));
        address.set(agent.address()).unwrap();
        let home = self.folder.path();
        let host = agent.address().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_windtunnel"));
        command.args(["attach", "--host", &host, "--key", "../../key"]).args(words);
        command.current_dir(home.join("work/below")).env("HOME", home).stdin(Stdio::null());
        for variable in ["WINDTUNNEL_OUT", "WINDTUNNEL_HOST", "WINDTUNNEL_KEY"] {
            command.env_remove(variable);
        }
        let output = command.output().unwrap();
        let mut files = files(home);
        files.retain(|path| *path != home.join("key"));
        let stderr = String::from_utf8(output.stderr).unwrap();
        Attached { agent: host, code: output.status.code(), stderr, files }
    }
}

impl Attached {
    /// It ended with one error, which names the agent and the cause.
    #[track_caller]
    fn assert_refused(&self, cause: &str) {
        let Attached { agent, code, stderr, .. } = self;
        assert_eq!(*code, Some(2), "{stderr}");
        let expected = format!("error: the agent at {agent} broke off: ");
        assert!(stderr.starts_with(&expected) && stderr.contains(cause), "{cause}: {stderr}");
        assert_eq!(stderr.matches("error: ").count(), 1, "{stderr}");
        assert_eq!(self.files, Vec::<PathBuf>::new(), "{stderr}");
    }
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| match fs::symlink_metadata(&path).unwrap().is_dir() {
        true => files(&path),
        false => vec![path],
    };
    entries.flat_map(below).collect()
}

/// An honest answer about a run of two nodes on one machine.
fn run(address: SocketAddr) -> Value {
    let source = ScenarioSource {
        name: "net.yaml",
        text: b"nodes: {a: {}, b: {}}\nlinks: [{between: [a, b], latency: 5ms}]\n",
        default_name: "net",
        base_dir: "/",
    };
    let plan = windtunnel_scenario::load(&source).unwrap().plan;
    json!({"answer": "run", "run": 7, "plan_hash": windtunnel_scenario::plan_hash(&plan),
        "placement": [0, 0], "base_dir": "/", "plan": plan,
        "members": [{"agent": format!("{:016x}", 1), "host": "m", "address": address}],
        "shared": {"max_lateness": "1ms", "output_limit": "1MB", "offload": true,
            "packet_memory": "1MB"}})
}

fn framed(answer: &Value) -> Vec<u8> {
    frame::encode(answer).unwrap()
}

/// The answer about a run with something else in one place.
fn changed(path: &'static str, value: Value) -> impl Fn(&AgentRequest, SocketAddr) -> Vec<u8> {
    move |_, address| {
        let mut run = run(address);
        *run.pointer_mut(path).unwrap_or_else(|| panic!("no {path}")) = value.clone();
        framed(&run)
    }
}

#[test]
fn nodes_and_experiments_with_names_of_other_folders_are_refused() {
    for name in ["../../.ssh", "/etc", "..", "a/../../../.ssh"] {
        let home = Home::new();
        let attached = home.attach(&["7"], changed("/plan/nodes/0/name", json!(name)));
        attached.assert_refused("cannot name a node");
        // The run folder has the experiment's name.
        let attached = home.attach(&["7"], changed("/plan/name", json!(name)));
        attached.assert_refused("cannot name an experiment");
    }
}

#[test]
fn numbers_that_index_nothing_and_absurd_counts_are_refused() {
    let home = Home::new();
    for (path, value) in [
        ("/placement", json!([0, 65_535])),
        ("/placement", json!(vec![0; 100_000])),
        ("/members", json!([])),
        ("/plan/nodes/0/interfaces/0/port", json!(u32::MAX)),
        ("/plan/nodes/0/interfaces/0/link", json!(u32::MAX)),
        ("/plan/links/0/ends/0/vertex/node", json!(u32::MAX)),
        ("/plan/links/0/ends/0/interface", json!(u32::MAX)),
        ("/plan/links/0/profiles/0/mtu", json!(0)),
        ("/manner/packet_memory", json!("99999999999999999999GB")),
        ("/base_dir", json!("../..")),
    ] {
        home.attach(&["7"], changed(path, value)).assert_refused("");
    }
}

#[test]
fn a_list_of_runs_that_cannot_be_is_refused() {
    let home = Home::new();
    for card in [
        json!({"run": 7, "name": "../../.ssh", "nodes": 1, "over": false}),
        json!({"run": 7, "name": "net", "nodes": 18_446_744_073_709_551_615_u64, "over": false}),
        json!({"run": -1, "name": "net", "nodes": 1, "over": false}),
    ] {
        let runs = json!({"answer": "runs", "runs": [card]});
        home.attach(&[], move |_, _| framed(&runs)).assert_refused("");
    }
}

#[test]
fn lengths_that_do_not_come_true_are_refused() {
    let home = Home::new();
    let none: Vec<u8> = Vec::new();
    for bytes in [none, vec![0xff; 4], vec![3, 0x93, 0x87, 0, b'{'], vec![0, 0, 0, 2, b'[', b']']] {
        home.attach(&["7"], move |_, _| bytes.clone()).assert_refused("");
    }
}

/// A run that is over at once, with one file in its part.
fn over_with_file(path: &'static str) -> impl Fn(&AgentRequest, SocketAddr) -> Vec<u8> {
    move |ask, address| {
        let ended = json!({"answer": "part", "now_ns": 1, "said": {"from-part": "ended"}});
        let file = json!({"answer": "file", "path": path, "bytes": 3, "executable": false});
        let done = framed(&json!({"answer": "done"}));
        match ask {
            AgentRequest::Watch { .. } => [framed(&run(address)), framed(&ended)].concat(),
            AgentRequest::Fetch { .. } => [framed(&file), b"key".to_vec(), done].concat(),
            _ => done,
        }
    }
}

#[test]
fn files_of_a_part_stay_below_the_run_folder() {
    for path in ["../../../../.ssh/authorized_keys", "/tmp/windtunnel-hostile", "nodes/../../x"] {
        let home = Home::new();
        let attached = home.attach(&["7", "--out", "out"], over_with_file(path));
        let (stderr, agent) = (&attached.stderr, &attached.agent);
        assert_eq!(attached.code, Some(2), "{stderr}");
        let error = format!("error: the agent at {agent} broke off: ");
        assert!(stderr.contains(&error), "{stderr}");
        assert!(
            stderr.contains(&format!("`{path}` is not the name of a file of a run")),
            "{stderr}"
        );
        let out = home.folder.path().join("work/below/out");
        let outside: Vec<_> =
            attached.files.iter().filter(|path| !path.starts_with(&out)).collect();
        assert_eq!(outside, Vec::<&PathBuf>::new(), "{stderr}");
        assert!(!Path::new("/tmp/windtunnel-hostile").exists());
        let has_key = |path: &PathBuf| fs::read(path).is_ok_and(|bytes| bytes == b"key");
        assert!(!attached.files.iter().any(has_key), "{stderr}");
    }
}

#[test]
fn results_that_cannot_be_those_of_the_part_make_no_verdict() {
    let home = Home::new();
    // The file that the part's own numbers are read from.
    let attached = home.attach(&["7", "--out", "out"], over_with_file("part.json"));
    let stderr = &attached.stderr;
    assert_eq!(attached.code, Some(4), "{stderr}");
    assert!(stderr.contains("error: cannot read what host m has counted"), "{stderr}");
    let out = home.folder.path().join("work/below/out");
    assert!(attached.files.iter().all(|path| path.starts_with(&out)), "{:?}", attached.files);
}
