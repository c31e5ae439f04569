//! Live runs are found, listed and completed. Runs here are sockets that answer: no rights are
//! needed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use windtunnel_control::{
    ConnectionInput, ControlConnection, ControlListener, ControlReply, ControlRequest, NodeStatus,
    RunStatus,
};

use windtunnel_model::ResourceUsage;

use super::text;

const NET: &str = "
nodes: {web: {run: sleep 9}, client: {}}
links: [{between: [web, client], name: ocean, latency: 1ms}, {between: [web, client], name: river}]
";

/// A run folder with a plan and a control socket that answers `ps`, until the test ends.
struct Answering<'t> {
    folder: PathBuf,
    end: &'t AtomicBool,
}

impl<'t> Answering<'t> {
    fn start<'s>(
        scope: &'s thread::Scope<'s, 't>,
        folder: PathBuf,
        name: &'static str,
        end: &'t AtomicBool,
    ) -> Self {
        std::fs::create_dir_all(&folder).unwrap();
        let source = windtunnel_scenario::ScenarioSource {
            name: "net.yaml",
            text: NET.as_bytes(),
            default_name: name,
            base_dir: "/",
        };
        let plan = windtunnel_scenario::load(&source).unwrap().plan;
        std::fs::write(folder.join("plan.json"), serde_json::to_vec(&plan).unwrap()).unwrap();
        let listener = ControlListener::open(&folder).unwrap();
        scope.spawn(move || answer(&listener, name, end));
        Answering { folder, end }
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
    }
}

fn answer(listener: &ControlListener, name: &str, end: &AtomicBool) {
    let mut open: Vec<ControlConnection> = Vec::new();
    while !end.load(Ordering::Relaxed) {
        open.extend(listener.accept(name).unwrap());
        open.retain_mut(|connection| {
            let _ = connection.flush();
            match connection.receive() {
                Some(ConnectionInput::Closed) => return false,
                Some(ConnectionInput::Request(request, _)) if *request == ControlRequest::Ps => {
                    let _ = connection.reply(&ControlReply::Ps(Box::new(status(name))));
                }
                _ => {}
            }
            true
        });
        thread::yield_now();
    }
}

fn status(name: &str) -> RunStatus {
    let node = NodeStatus {
        node: "web".into(),
        addresses: Vec::new(),
        init_pid: 1,
        absent: false,
        limits: ResourceUsage::default(),
        programs: Vec::new(),
    };
    RunStatus {
        name: name.into(),
        elapsed_ns: 1_000_000_000,
        nodes: vec![node],
        services: Vec::new(),
        nats: Vec::new(),
    }
}

fn windtunnel(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = super::windtunnel(arguments);
    command.current_dir(folder).env_remove("WINDTUNNEL_RUN");
    command
}

#[test]
fn live_runs_are_found_from_any_folder_and_latest_hides_none() {
    let root = tempfile::tempdir().unwrap();
    let [here, there] = ["here", "there"].map(|name| root.path().join(name));
    std::fs::create_dir_all(&here).unwrap();
    std::fs::create_dir_all(here.join("runs/over")).unwrap();
    std::os::unix::fs::symlink("over", here.join("runs/latest")).unwrap();
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let first = Answering::start(scope, here.join("runs/first"), "first", &end);
        let other = Answering::start(scope, there.join("runs/other"), "other", &end);
        let (data, talk) = text(&windtunnel(&here, &["ps"]).output().unwrap());
        assert!(data.starts_with("first, 1s after it began"), "{data}{talk}");
        for words in [&["ps", "--all", "--json"][..], &["ls", "--json"][..]] {
            let output = windtunnel(root.path(), words).output().unwrap();
            let runs: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            // Runs of other tests may live beside these.
            let run = |of: &Answering<'_>| {
                let folder = of.folder.canonicalize().unwrap();
                let runs = runs["runs"].as_array().unwrap();
                let found = runs.iter().find(|run| run["folder"] == folder.to_str().unwrap());
                found.cloned().unwrap_or_default()
            };
            assert_eq!(run(&first)["name"], "first", "{runs}");
            assert_eq!(run(&other)["nodes"], 1, "{runs}");
        }
        let (table, _) = text(&windtunnel(root.path(), &["ls"]).output().unwrap());
        assert!(table.contains("there/runs/other"), "{table}");
        // No run lives in this folder: runs elsewhere are listed.
        let (_, talk) = text(&windtunnel(root.path(), &["stop"]).output().unwrap());
        assert!(
            talk.starts_with("error: no live run in runs\nhint: elsewhere there is --run "),
            "{talk}"
        );
        let _second = Answering::start(scope, here.join("runs/second"), "second", &end);
        let (_, talk) = text(&windtunnel(&here, &["ps"]).output().unwrap());
        assert_eq!(
            talk,
            "error: 2 runs are live in runs\nhint: name one: --run runs/first, --run runs/second\n"
        );
    });
}

/// What bash offers for a command line that ends with its last word.
fn bash(folder: &Path, words: &[&str]) -> Vec<String> {
    let program = env!("CARGO_BIN_EXE_windtunnel");
    let script = "source <(\"$1\" completions bash); COMP_WORDS=(\"$@\"); \
                  COMP_CWORD=$(($# - 1)); _windtunnel; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .args(["--norc", "-c", script, "bash", program])
        .args(words)
        .current_dir(folder)
        .env_remove("WINDTUNNEL_RUN")
        .output()
        .unwrap();
    let (data, talk) = text(&output);
    assert_eq!(talk, "");
    data.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_live_runs_nodes_links_and_presets() {
    let root = tempfile::tempdir().unwrap();
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let _run = Answering::start(scope, root.path().join("runs/first"), "first", &end);
        let complete = |words: &[&str]| bash(root.path(), words);
        assert_eq!(complete(&["ge"]), ["generate"]);
        assert_eq!(complete(&["exec", ""]), ["web", "client"]);
        assert_eq!(complete(&["shell", "w"]), ["web"]);
        assert_eq!(complete(&["down", "oc"]), ["ocean"]);
        assert_eq!(complete(&["set", "ocean", "lat"]), ["latency="]);
        assert_eq!(complete(&["down", "ocean", "--direction", "cl"]), ["client-web"]);
        assert_eq!(complete(&["link", "--preset", "lt"]), ["lte"]);
        // Bash gives the pieces around `=` as words.
        assert_eq!(complete(&["link", "--preset", "=", "lt"]), ["lte"]);
        let runs = complete(&["ps", "--run", ""]);
        assert!(runs.contains(&"runs/first".to_owned()), "{runs:?}");
        assert_eq!(complete(&["exec", "--run", "runs/first", "cl"]), ["client"]);
        // No run is live there: there is nothing to offer.
        assert_eq!(complete(&["exec", "--run", "runs/none", ""]), [""; 0]);
    });
}
