//! Flags, environment and streams of the binary itself. Nothing here needs rights.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "flags/live.rs"]
mod live;

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

const NET: &str = "tests/golden/check.in/net.yaml";

fn windtunnel(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windtunnel"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn an_environment_variable_stands_for_its_flag_and_the_flag_wins() {
    let asked = |flags: &[&str], variable: Option<(&str, &str)>| {
        let mut command = windtunnel(&["ps"]);
        command.args(flags).env_remove("WINDTUNNEL_RUN");
        command.envs(variable);
        let (_, talk) = text(&command.output().unwrap());
        talk.lines().next().unwrap_or_default().to_owned()
    };
    let of = |folder: &str| {
        format!("error: no live run in {folder}: No such file or directory (os error 2)")
    };
    assert_eq!(asked(&[], Some(("WINDTUNNEL_RUN", "there"))), of("there"));
    assert_eq!(asked(&["--run", "here"], Some(("WINDTUNNEL_RUN", "there"))), of("here"));
}

#[test]
fn a_switch_is_on_by_its_variable_unless_that_says_no() {
    let first = |value: &str| {
        let output = windtunnel(&["check", NET]).env("WINDTUNNEL_JSON", value).output().unwrap();
        output.stdout.first().copied()
    };
    assert_eq!(first("1"), Some(b'{'));
    assert_eq!(first("0"), Some(b'f'));
}

#[test]
fn every_option_but_env_has_a_variable() {
    let command = windtunnel_cli::command();
    let hidden = command.get_subcommands().filter(|verb| verb.is_hide_set());
    for verb in windtunnel_cli::leaves(&command).into_iter().chain(hidden) {
        let options = verb.get_arguments().filter(|argument| argument.get_long().is_some());
        for option in options {
            let name = option.get_long().unwrap_or_default();
            let exempt = ["env", "help"].contains(&name);
            let variable = option.get_env().map(|name| name.to_string_lossy().into_owned());
            let has = variable.is_some_and(|name| name.starts_with("WINDTUNNEL_"));
            assert!(has || exempt, "{} --{name}", verb.get_name());
        }
    }
}

#[test]
fn the_schema_is_json_and_completions_and_manual_begin_as_they_should() {
    let (schema, _) = text(&windtunnel(&["schema"]).output().unwrap());
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert!(schema["properties"]["nodes"].is_object());
    for (shell, start) in [
        ("bash", "_windtunnel() {"),
        ("zsh", "#compdef windtunnel"),
        ("fish", "function __windtunnel_complete"),
        ("elvish", "\nuse builtin;"),
        ("powershell", "\nusing namespace"),
    ] {
        let (script, _) = text(&windtunnel(&["completions", shell]).output().unwrap());
        assert!(script.starts_with(start), "{shell}: {}", &script[..60.min(script.len())]);
    }
    let (manual, _) = text(&windtunnel(&["manual"]).output().unwrap());
    assert!(manual.contains(".TH windtunnel 1"), "{}", &manual[..200]);
}

#[test]
fn a_reader_that_closes_the_pipe_early_is_not_a_failure() {
    let mut child = windtunnel(&["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Dropped before the program can have written more than a pipe holds.
    drop(child.stdout.take());
    let mut talk = String::new();
    child.stderr.take().unwrap().read_to_string(&mut talk).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(talk, "");
}

/// The JSON of a failure, from the stream that has it; nothing else is there.
fn failure(output: &Output, verb: &str) -> serde_json::Value {
    let (data, talk) = text(output);
    let is_besides = ["exec", "shell"].contains(&verb);
    let (json, other) = if is_besides { (&talk, &data) } else { (&data, &talk) };
    assert_eq!(other, "", "{verb}");
    let failure: serde_json::Value =
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{verb}: {error} in {json}"));
    let keys: Vec<&str> = failure.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["code", "error", "hint", "kind", "mistakes", "more", "reasons"], "{verb}");
    assert_eq!(failure["code"], output.status.code().unwrap(), "{verb}");
    assert!(!failure["error"].as_str().unwrap().is_empty(), "{verb}");
    failure
}

/// How each verb fails without a live run, a cluster or rights.
fn failing(verb: &str) -> (&'static [&'static str], &'static str) {
    match verb {
        "run" | "check" | "edit" => (&["tests/no.yaml"], "scenario"),
        "link" => (&["--latency", "fast", "--", "true"], "scenario"),
        "init" => (&["tests/golden/check.in/net.yaml"], "usage"),
        "generate" => (&["star", "--routers", "3"], "usage"),
        "import" => (&["tests/no.xml"], "scenario"),
        "exec" => (&["--run", "tests", "a", "--", "true"], "usage"),
        "shell" => (&["--run", "tests", "a"], "usage"),
        "ps" | "top" | "links" | "stop" => (&["--run", "tests"], "usage"),
        "capture" => (&["--run", "tests", "a", "-w", "/dev/null"], "usage"),
        "set" => (&["--run", "tests", "a--b", "loss=1%"], "usage"),
        "down" | "up" => (&["--run", "tests", "a--b"], "usage"),
        "do" => (&["--run", "tests", "{link: a--b, down: true}"], "usage"),
        "limit set" => (&["no", "--send", "1MB/s"], "usage"),
        "keygen" => (&["Cargo.toml"], "usage"),
        "agent" | "hosts" | "attach" => (&["--key", "tests/no.key"], "usage"),
        "explain" | "plot" | "report" | "web" => (&["tests/no"], "usage"),
        "service list" => (&["--run", "tests"], "usage"),
        "service show" => (&["--run", "tests", "www"], "usage"),
        "service add" | "service remove" | "service drain" => {
            (&["--run", "tests", "www", "s1"], "usage")
        }
        "service weight" => (&["--run", "tests", "www", "s1", "2"], "usage"),
        "record start" | "record stop" | "record status" | "reserve tree" | "reserve mount" => {
            (&["--run", "tests"], "usage")
        }
        "records show" | "records stats" | "records follow" | "records workload" => {
            (&["tests/no"], "usage")
        }
        "records export" => (&["tests/no", "--format", "csv"], "usage"),
        "manual" => (&["--out", "/dev/null/no"], "machine"),
        "completions" => (&["tcsh"], "usage"),
        // They fail by a wrong command line only.
        "doctor" | "images" | "schema" | "ls" | "limit list" => (&["--no-such-option"], "usage"),
        other => panic!("{other} is a new verb: say here how it fails"),
    }
}

#[test]
fn every_verb_prints_its_failures_as_json_with_the_same_fields() {
    let mut command = windtunnel_cli::command();
    command.build();
    for verb in windtunnel_cli::leaves(&command) {
        let name = verb.get_bin_name().unwrap().strip_prefix("windtunnel ").unwrap();
        let words: Vec<&str> = name.split(' ').collect();
        let (arguments, kind) = failing(name);
        let output = windtunnel(&words).arg("--json").args(arguments).output().unwrap();
        let record = failure(&output, name);
        assert_eq!(record["kind"], kind, "{name}: {record}");
        // No verb is known to be meant where the command line is wrong.
        let output = windtunnel(&words).args(["--json", "--no-such-option"]).output().unwrap();
        assert_eq!(failure(&output, "any")["kind"], "usage", "{name}");
        let output =
            windtunnel(&words).arg("--no-such-option").env("WINDTUNNEL_JSON", "1").output();
        assert_eq!(failure(&output.unwrap(), "any")["code"], 2, "{name}");
    }
}

#[test]
fn mistakes_in_a_file_have_their_places_in_json() {
    let output = windtunnel(&["check", "--json", "-"]);
    let output = fed(output, b"nodes: {a: {}}\nlinks: 7\nseed: x\n");
    let failure = failure(&output, "check");
    let places: Vec<_> = failure["mistakes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mistake| (mistake["file"].as_str().unwrap(), mistake["line"].as_u64().unwrap()))
        .collect();
    assert_eq!(places, [("<stdin>", 2), ("<stdin>", 3)]);
    assert_eq!((&failure["kind"], &failure["more"]), (&"scenario".into(), &0.into()));
}

/// Runs a command with this on its standard input.
fn fed(mut command: Command, input: &[u8]) -> Output {
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.spawn().unwrap();
    // A command that does not read to the end has printed the reason.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

#[test]
fn a_scenario_is_read_from_standard_input_with_paths_from_the_current_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("steps.csv"), "time,rate\n0s,5mbit\n").unwrap();
    let scenario = b"nodes: {a: {}, b: {}}\nlinks: [{between: [a, b], trace: steps.csv}]\n";
    let mut command = windtunnel(&["check", "-"]);
    command.current_dir(folder.path());
    let (data, talk) = text(&fed(command, scenario));
    assert!(data.contains("scenario is valid and fits"), "{data}{talk}");
    for verb in ["check", "run"] {
        let output = fed(windtunnel(&[verb, "-"]), b"nodes: {a: {run: 'x'}}\nlinks: 7\n");
        assert_eq!(output.status.code(), Some(3));
        let (_, talk) = text(&output);
        assert!(talk.starts_with("<stdin>:2:8: `links` must be a list of links"), "{talk}");
        let both = windtunnel(&[verb, "-", "--hosts", "x", "--key", "-"]).output().unwrap();
        let (_, talk) = text(&both);
        assert!(talk.starts_with("error: the scenario and the key cannot both come"), "{talk}");
    }
}

#[test]
fn a_file_that_is_there_is_overwritten_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("net.yaml");
    let name = file.to_str().unwrap();
    let xml = format!("{}/../topology/tests/data/modelnet.xml", env!("CARGO_MANIFEST_DIR"));
    for verb in [&["generate", "star"][..], &["import", &xml][..]] {
        std::fs::write(&file, "mine").unwrap();
        let output = windtunnel(verb).args(["-o", name]).output().unwrap();
        let (_, talk) = text(&output);
        assert_eq!(output.status.code(), Some(2), "{talk}");
        assert!(talk.ends_with("is there already\nhint: --force overwrites it\n"), "{talk}");
        assert_eq!(std::fs::read(&file).unwrap(), b"mine");
        let forced = windtunnel(verb).args(["-o", name, "--force", "--json"]).output().unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&forced.stdout).unwrap();
        assert_eq!(answer["path"], name);
        assert_eq!(answer["scenario"], std::fs::read_to_string(&file).unwrap());
        std::fs::remove_file(&file).unwrap();
        assert!(windtunnel(verb).args(["-o", name]).status().unwrap().success());
        // Standard output and devices have no content to lose.
        let plain = windtunnel(verb).args(["-o", "-"]).output().unwrap();
        assert_eq!(plain.stdout, std::fs::read(&file).unwrap());
        assert!(windtunnel(verb).args(["-o", "/dev/null"]).status().unwrap().success());
    }
}

#[test]
fn a_negative_quantity_is_refused_as_a_quantity() {
    let first = |arguments: &[&str]| {
        let (_, talk) = text(&windtunnel(arguments).output().unwrap());
        talk.lines().next().unwrap_or_default().to_owned()
    };
    let generated = first(&["generate", "star", "--latency", "-5ms"]);
    assert!(
        generated.starts_with("error: invalid value '-5ms' for '--latency <TIME[..TIME]>': "),
        "{generated}"
    );
    let run = first(&["run", NET, "--duration", "-5s"]);
    assert!(run.starts_with("error: invalid value '-5s' for '--duration <TIME>': "), "{run}");
    let link = first(&["link", "--latency", "-5ms", "--", "true"]);
    assert!(link.contains("latency: `-5ms` is not a time"), "{link}");
}

#[test]
fn a_command_of_generated_nodes_is_checked_before_anything_is_written() {
    for (command, why) in
        [("echo it's", "a quote is not closed"), ("  ", "no command"), ("", "no command")]
    {
        let output = windtunnel(&["generate", "star", "--run", command]).output().unwrap();
        let (data, talk) = text(&output);
        assert_eq!((output.status.code(), data.as_str()), (Some(2), ""));
        assert!(talk.contains(why), "{talk}");
    }
}

/// The program under a limit of the shell, with what it prints in a file that is returned.
fn limited(limit: &str, arguments: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let [out, talk] = ["out", "talk"].map(|name| folder.path().join(name));
    let script = format!("ulimit {limit}; exec \"$0\" {arguments} >\"$1\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_windtunnel")]).arg(&out);
    let output = command.stdin(Stdio::null()).output().unwrap();
    std::fs::write(&talk, &output.stderr).unwrap();
    let read = |path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    (output.status.code(), read(out), read(talk))
}

#[test]
fn too_small_limits_of_the_process_are_errors_with_the_command_that_raises_them() {
    let check = format!("check {NET}");
    let (code, _, talk) = limited("-s 64", &check);
    let said = "error: this process may have 64 KiB of stack, and windtunnel needs 512 KiB\n\
                hint: raise the limit: `ulimit -s 512` or more\n";
    assert_eq!((code, talk.as_str()), (Some(4), said));
    let (code, _, talk) = limited("-v 100000", &check);
    let said = "error: this process may have 100000 KiB of address space, and windtunnel needs \
                262144 KiB\nhint: raise the limit: `ulimit -v 262144` or more\n";
    assert_eq!((code, talk.as_str()), (Some(4), said));
    let (code, out, _) = limited("-v 100000", &format!("{check} --json"));
    let failure: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, failure["kind"].as_str()), (Some(4), Some("machine")));
}

#[test]
fn a_file_beyond_the_limit_of_sizes_is_an_error() {
    let (code, _, talk) = limited("-f 2", "schema");
    assert_eq!(code, Some(4), "{talk}");
    assert!(talk.contains("File too large") && talk.contains("`ulimit -f`"), "{talk}");
}
