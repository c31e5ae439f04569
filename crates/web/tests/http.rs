//! The server over loopback, with a plain client. A small script stands for the program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "http/client.rs"]
mod client;
#[path = "http/edit.rs"]
mod edit;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use client::{Served, ask};
use windtunnel_web::{LiveRunLocation, WebServer, WebServerContent, WebServerOptions};

/// A run folder with a socket on which nothing answers.
struct Bench {
    _root: tempfile::TempDir,
    folder: PathBuf,
    program: PathBuf,
    socket: Option<UnixListener>,
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("demo-1");
        fs::create_dir_all(folder.join("nodes/web")).unwrap();
        let text =
            "nodes: {web: {run: 'true'}, db: {}}\nlinks: [{name: ocean, between: [web, db]}]\n";
        let source = windtunnel_scenario::ScenarioSource {
            name: "net.yaml",
            text: text.as_bytes(),
            default_name: "demo",
            base_dir: "/",
        };
        let plan =
            windtunnel_scenario::load(&source).unwrap_or_else(|error| panic!("{error}")).plan;
        fs::write(folder.join("plan.json"), serde_json::to_vec(&plan).unwrap()).unwrap();
        for name in ["events.jsonl", "nodes/web/stdout"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let heading = format!("{}\n", windtunnel_trace::sample::COLUMNS);
        fs::write(folder.join("links.csv"), heading).unwrap();
        let program = root.path().join("program");
        fs::write(&program, SCRIPT).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let socket = Some(UnixListener::bind(folder.join("control.sock")).unwrap());
        Bench { _root: root, folder, program, socket }
    }

    fn serve(&self) -> Served {
        let folder = self.folder.clone();
        let found = LiveRunLocation { folder, name: "demo".to_owned(), elapsed_ns: 7 };
        let lister = Arc::new(move || vec![found.clone()]);
        let shown = WebServerContent::Runs { only: None, lister, until_end: false };
        let listen = "127.0.0.1:0".parse().unwrap();
        let server =
            WebServer::bind(WebServerOptions { listen, program: self.program.clone(), shown });
        Served::start(server.unwrap())
    }

    fn append(&self, name: &str, text: &str) {
        append(&self.folder.join(name), text);
    }
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Shows its words; `stop` fails as the program does; `exec` writes, and lives until it is ended.
const SCRIPT: &str = r#"#!/bin/sh
case "$1" in
  stop) echo "error: no live run" >&2; echo "hint: start one" >&2; exit 2 ;;
  exec) echo "$*"; echo oops >&2; case "$8" in *wait*) echo $$ > "$3/pid"; exec sleep 1000 ;; esac; exit 3 ;;
  *) echo "$*"; [ -z "$WINDTUNNEL_JSON" ] ;;
esac
"#;

fn event(text: &str, at_ns: u64) -> String {
    format!("{{\"at_ns\":{at_ns},\"event\":\"run-ended\",\"reason\":\"{text}\"}}\n")
}

#[test]
fn requests_without_the_token_or_from_elsewhere_are_refused() {
    let bench = Bench::new();
    let served = bench.serve();
    let host = format!("127.0.0.1:{}", served.port);
    let status =
        |path: &str, headers: &[(&str, &str)]| ask(served.port, "GET", path, headers, "").status;
    let authorized = format!("Bearer {}", served.token);
    let token = ("Authorization", authorized.as_str());
    assert_eq!(status("/api/runs", &[("Host", &host), token]), 200);
    assert_eq!(status("/api/runs", &[("Host", &host)]), 401);
    assert_eq!(status("/?token=0123", &[("Host", &host)]), 401);
    assert_eq!(status("/api/runs", &[("Host", &host), ("Authorization", "Bearer x")]), 401);
    assert_eq!(status("/nowhere", &[("Host", &host)]), 401);
    let rebound = format!("evil.example:{}", served.port);
    assert_eq!(status("/api/runs", &[("Host", &rebound), token]), 403);
    let origin = ("Origin", "http://evil.example");
    assert_eq!(status("/api/runs", &[("Host", &host), token, origin]), 403);
    let own = format!("http://{host}");
    assert_eq!(status("/api/runs", &[("Host", &host), token, ("Origin", &own)]), 200);
}

#[test]
fn the_page_has_headers_that_keep_other_pages_out() {
    let bench = Bench::new();
    let served = bench.serve();
    let page = served.get(&format!("/?token={}", served.token));
    assert_eq!(page.status, 200);
    assert!(page.body.contains("id=\"windtunnel-live\""));
    assert!(page.body.contains(&served.token));
    for header in [
        "content-security-policy: default-src 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
        "x-frame-options: deny",
    ] {
        assert!(page.head.to_lowercase().contains(header), "{header}: {}", page.head);
    }
}

#[test]
fn only_loopback_is_listened_on() {
    let bench = Bench::new();
    let served = bench.serve();
    let wanted = format!("0100007F:{:04X}", served.port);
    let table = fs::read_to_string("/proc/self/net/tcp").unwrap();
    let listens = table.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (local, _, state) = (words.next()?, words.next()?, words.next()?);
        (state == "0A" && local.ends_with(&wanted[8..])).then_some(local.to_owned())
    });
    assert_eq!(listens.collect::<Vec<_>>(), [wanted]);
}

#[test]
fn runs_are_found_by_ids_that_were_listed_and_never_by_paths() {
    let bench = Bench::new();
    let served = bench.serve();
    let list = served.get("/api/runs").json();
    assert_eq!((&list[0]["id"], &list[0]["alive"]), (&"demo-1".into(), &true.into()));
    let document = served.get("/api/runs/demo-1/document").json();
    assert_eq!(
        (&document["format"], &document["mode"]),
        (&"windtunnel-report".into(), &"live".into())
    );
    assert_eq!(document["runs"][0]["lanes"][0]["link"], "ocean");
    for id in ["..", "%2e%2e", "..%2f..%2fetc", "demo-1%2f", "demo-2", "%00"] {
        assert_eq!(served.get(&format!("/api/runs/{id}/document")).status, 404, "{id}");
    }
    assert_eq!(served.get("/etc/passwd").status, 404);
    assert_eq!(ask(served.port, "DELETE", "/api/runs", &served.headers(), "").status, 405);
}

#[test]
fn a_command_has_the_exit_code_and_the_words_of_the_program() {
    let bench = Bench::new();
    let served = bench.serve();
    let command =
        |argv: &str| served.post("/api/runs/demo-1/command", &format!("{{\"argv\":{argv}}}"));
    let done = command(r#"["set", "ocean", "loss=1%; rm -rf $HOME"]"#).json();
    let run = bench.folder.display();
    assert_eq!(done["stdout"], format!("set --run {run} ocean loss=1%; rm -rf $HOME\n"));
    assert_eq!(done["exit"], 0);
    let failed = command(r#"["stop"]"#).json();
    assert_eq!(failed["exit"], 2);
    assert_eq!(failed["stderr"], "error: no live run\nhint: start one\n");
    let refused = command(r#"["run", "x.yaml"]"#);
    assert_eq!((refused.status, &refused.json()["hint"]), (400, &"use it in a terminal".into()));
    assert_eq!(command("7").status, 400);
    let large = format!("[\"set\", \"{}\"]", "x".repeat(5 << 20));
    assert_eq!(command(&large).status, 413);
}

#[test]
fn a_shell_command_of_a_node_is_streamed_with_its_exit_code() {
    let bench = Bench::new();
    let served = bench.serve();
    let body = r#"{"node": "web", "command": "ss -tn | head"}"#;
    let answer = served.post("/api/runs/demo-1/exec", body);
    let run = bench.folder.display();
    let expected = format!("exec --run {run} web -- sh -c ss -tn | head\noops\n[exit 3]\n");
    assert_eq!(answer.body, expected);
    let option = served.post("/api/runs/demo-1/exec", r#"{"node": "--all", "command": "x"}"#);
    assert_eq!(option.status, 400);
}

#[test]
fn a_shell_command_ends_when_the_browser_goes() {
    let bench = Bench::new();
    let served = bench.serve();
    let mut stream =
        served.open("POST", "/api/runs/demo-1/exec", r#"{"node":"web","command":"wait"}"#);
    stream.until("oops");
    let pid = loop {
        let text = fs::read_to_string(bench.folder.join("pid")).unwrap_or_default();
        if let Ok(pid) = text.trim().parse::<u32>() {
            break pid;
        }
        thread::yield_now();
    };
    drop(stream);
    // The test ends when the process has.
    while Path::new(&format!("/proc/{pid}/stat")).exists() {
        thread::yield_now();
    }
}

#[test]
fn what_happens_after_the_document_is_streamed_until_the_run_ends() {
    let mut bench = Bench::new();
    let served = bench.serve();
    let document = served.get("/api/runs/demo-1/document").json();
    let after = &document["runs"][0]["elapsed_ns"];
    // Between the document and the stream.
    bench.append("events.jsonl", &event("early", 50));
    let mut stream = served.open("GET", &format!("/api/runs/demo-1/stream?after={after}"), "");
    stream.until("early");
    let idle = "0,0,0,0,0";
    bench.append(
        "links.csv",
        &format!("0.100000,ocean,web-db,1,60,1,60,60,{idle},1,60,0,0,0,0,0,0,0\n"),
    );
    let sample = stream.until("event: sample");
    assert!(sample.contains("\"lanes\":[[0,60,60,60,1,0,0,1,60,0]]"), "{sample}");
    bench.append("nodes/web/stdout", "hello\n");
    let output = stream.until("event: output");
    assert!(
        output.contains("\"node\":\"web\"") && output.contains("\"text\":\"hello\\n\""),
        "{output}"
    );
    fs::write(bench.folder.join("run.json"), "{}").unwrap();
    bench.socket = None;
    let ended = stream.until("event: ended");
    assert!(ended.contains("windtunnel-report"), "{ended}");
    assert_eq!(stream.rest(), "");
}

#[test]
fn a_slow_browser_misses_messages_and_is_informed_while_others_get_all() {
    let bench = Bench::new();
    let served = bench.serve();
    let path = "/api/runs/demo-1/stream";
    let (mut slow, mut quick) = (served.open("GET", path, ""), served.open("GET", path, ""));
    // More than the server and both ends of a connection keep.
    for number in 0..2000 {
        bench.append("events.jsonl", &event(&"x".repeat(15_000), number));
    }
    bench.append("events.jsonl", &event("last", 5000));
    quick.until("last\"");
    let text = slow.until("last\"");
    let gaps = slow.all.matches("event: gap").count();
    assert!(gaps >= 1, "{}", text.len());
}
