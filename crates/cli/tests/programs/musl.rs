//! Programs of another C library, musl: linked with it, and with nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use windtunnel_model::record::Kind;
use windtunnel_model::record::flag::END_UNKNOWN;
use windtunnel_model::record::kind::RecordSource;

use super::record::read;
use super::recorded::check;
use super::support::image::{Files, ImageBuilder};
use super::support::{Lab, Outcome, any_user, is_missing};

/// Compiles a program beside these tests into the test's folder.
pub(super) fn compile(lab: &Lab, compiler: &str, name: &str, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let binary = lab.path().join(format!("{name}{}", options.concat()));
    let mut build = Command::new(compiler);
    build.args(["-O1", "-Wall"]).args(options).arg("-o").arg(&binary);
    let output = build.arg(source.join(format!("{name}.c"))).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    binary
}

/// Where programs that are linked with musl look for it.
fn loader() -> PathBuf {
    format!("/lib/ld-musl-{}.so.1", std::env::consts::ARCH).into()
}

/// Answers every line.
const ANSWER: &str = "
import socket
listener = socket.create_server(('', 7000))
while True:
    stream, _ = listener.accept()
    with stream, stream.makefile('rb') as lines:
        for line in lines:
            stream.sendall(b'musl\\n')
";

/// Runs a node as a client, recorded; the server sees the machine's files.
#[track_caller]
fn ask(lab: &Lab, client: &str) -> Outcome {
    lab.write("answer.py", ANSWER);
    let outcome = lab.pass(&format!(
        "record: [engine, calls, tcp]\nnodes:\n  client: {{{client}, after: server}}\n  \
         server: {{run: python3 answer.py, daemon: true, ready: tcp:7000}}\n\
         links: [{{between: [client, server], latency: 2ms}}]\n"
    ));
    assert_eq!(outcome.output("client"), "musl\n", "{}", outcome.describe());
    check(lab, &outcome, 10);
    outcome
}

/// How many calls of the client are known to their end, and how many are not.
fn known_and_unknown(outcome: &Outcome) -> (usize, usize) {
    let read = read(&outcome.folder);
    let names = &read.headers[0].nodes;
    let calls = read.records.iter().filter(|(source, record)| {
        let is_call = source.layer == RecordSource::Calls as u8 && record.kind == Kind::Call as u8;
        is_call && names[source.node as usize] == "client"
    });
    let known = calls.clone().filter(|(_, record)| record.flags & END_UNKNOWN == 0).count();
    (known, calls.count() - known)
}

#[test]
fn a_program_that_is_linked_with_musl_runs_in_an_image_and_the_library_records_its_calls() {
    if is_missing(&["musl-gcc", "python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let program = compile(&lab, "musl-gcc", "ask", &[]);
        let loader = loader();
        let place = loader.to_str().unwrap();
        let files = Files::new().copy(&loader, place).copy(&program, "/bin/ask");
        let config = json!({"Entrypoint": ["/bin/ask"], "Cmd": ["server", "7000"]});
        ImageBuilder::new(lab.path()).layer(&files, 0).write("a.tar", &config);
        let (known, unknown) = known_and_unknown(&ask(&lab, "image: a.tar"));
        assert!(known >= 20 && unknown == 0, "{known} known, {unknown} unknown");
        lab.assert_nothing_left();
    }
}

#[test]
fn a_program_that_is_linked_with_musl_runs_with_the_machines_files_and_is_recorded() {
    if is_missing(&["musl-gcc", "python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        compile(&lab, "musl-gcc", "ask", &[]);
        let (known, unknown) = known_and_unknown(&ask(&lab, "run: ./ask server 7000"));
        assert!(known >= 20 && unknown == 0, "{known} known, {unknown} unknown");
    }
}

#[test]
fn a_static_program_is_all_that_an_image_needs_and_its_calls_are_recorded_as_they_begin() {
    if is_missing(&["musl-gcc", "python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let program = compile(&lab, "musl-gcc", "ask", &["-static"]);
        let files = Files::new().copy(&program, "/ask");
        let config = json!({"Entrypoint": ["/ask"], "Cmd": ["server", "7000"]});
        ImageBuilder::new(lab.path()).layer(&files, 0).write("a.tar", &config);
        for client in ["image: a.tar", "run: ./ask-static server 7000"] {
            let (known, unknown) = known_and_unknown(&ask(&lab, client));
            assert!(unknown >= 20 && known == 0, "{known} known, {unknown} unknown");
        }
        lab.assert_nothing_left();
    }
}
