//! Flags, environment and streams of the binary itself. Nothing here needs rights.

use std::io::Read;
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
    for verb in command.get_subcommands() {
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
fn the_schema_is_json_and_completions_and_manual_are_what_they_should_be() {
    let (schema, _) = text(&windtunnel(&["schema"]).output().unwrap());
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert!(schema["properties"]["nodes"].is_object());
    for (shell, start) in [
        ("bash", "_windtunnel() {"),
        ("zsh", "#compdef windtunnel"),
        ("fish", "# Print an optspec"),
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
fn a_reader_that_goes_early_is_no_failure() {
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
