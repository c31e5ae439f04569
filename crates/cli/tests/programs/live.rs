//! Other verbs on a live run.

use std::io::{Read, Write};
use std::process::{Output, Stdio};

use serde_json::Value;

use super::support::{Lab, Live, any_user, is_missing, until};

#[test]
fn exec_passes_input_output_and_the_exit_code_through() {
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start(BOX);
        live.wait_for(&[("event", "run-began")]);
        let seen = live.exec("box", &["sh", "-c", "echo out; echo err >&2; exit 7"]);
        assert_eq!(text(&seen), ("out\n".into(), "err\n".into(), Some(7)));
        let seen = live.exec("box", &["sh", "-c", "kill -TERM $$"]);
        assert_eq!(seen.status.code(), Some(143));
        let seen = live.exec("box", &["no-such-program"]);
        assert_eq!(seen.status.code(), Some(127), "{seen:?}");
        assert!(text(&seen).1.contains("no-such-program"), "{seen:?}");
        lab.write("data", "no program");
        let seen = live.exec("box", &["./data"]);
        assert_eq!(seen.status.code(), Some(126), "{seen:?}");
        let seen = live.ask("exec", &["box", "sh", "-c", "exit 8"]);
        assert_eq!(seen.status.code(), Some(8), "no `--` is needed: {seen:?}");
        let seen = live.exec("nowhere", &["true"]);
        assert_eq!(seen.status.code(), Some(2));
        assert!(text(&seen).1.contains("no node is called nowhere"), "{seen:?}");
        assert_eq!(piped(&live, b"one\ntwo\n"), "ONE\nTWO\n");
        stop(live);
        lab.assert_nothing_left();
    }
}

#[test]
fn exec_runs_inside_the_node() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start(BOX);
        live.wait_for(&[("event", "run-began")]);
        let seen = live.exec("box", &["sh", "-c", "hostname; echo $WINDTUNNEL_NODE"]);
        assert_eq!(text(&seen).0, "box\nbox\n");
        let seen = live.exec("box", &["ping", "-c", "1", "other"]);
        assert!(text(&seen).0.contains("1 received"), "{seen:?}");
        stop(live);
    }
}

#[test]
fn exec_gives_a_terminal_where_it_has_one() {
    if is_missing(&["script", "stty"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start(BOX);
        live.wait_for(&[("event", "run-began")]);
        let command =
            live.command("exec", &["box", "--", "sh", "-c", "test -t 0 && tty && exit 5"]);
        let words: Vec<String> = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|word| format!("'{}'", word.to_str().unwrap()))
            .collect();
        let mut script = std::process::Command::new("script");
        script.args(["-qec", &words.join(" "), "/dev/null"]).current_dir(lab.path());
        let seen = script.stdin(Stdio::null()).output().unwrap();
        assert_eq!(seen.status.code(), Some(5), "{seen:?}");
        assert!(text(&seen).0.contains("/dev/"), "{seen:?}");
        stop(live);
    }
}

#[test]
fn a_command_ends_with_the_exec_that_started_it() {
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start(BOX);
        live.wait_for(&[("event", "run-began")]);
        let words = ["box", "--", "sh", "-c", "echo $$ > started; exec sleep 987654"];
        let mut exec = live.command("exec", &words).spawn().unwrap();
        until("the command's start", || lab.path().join("started").exists().then_some(()));
        exec.kill().unwrap();
        exec.wait().unwrap();
        until("the command's end", || {
            let seen = live.exec("box", &["sh", "-c", "cat /proc/[0-9]*/cmdline"]);
            (!text(&seen).0.contains("sleep\0987654")).then_some(())
        });
        stop(live);
    }
}

#[test]
fn ps_lists_every_program_and_its_state() {
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start(
            "nodes:
  a: {run: [{run: sleep 1000}, {run: [sh, -c, 'exit 4']}]}
  box: {}
links: [{between: [a, box]}]
",
        );
        live.wait_for(&[("event", "program-exited")]);
        let seen = live.ask("ps", &["--json"]);
        let status: Value = serde_json::from_slice(&seen.stdout).unwrap();
        let programs = &status["nodes"][0]["programs"];
        assert_eq!(programs[0]["state"], "running");
        assert_eq!((&programs[1]["state"], &programs[1]["exit"]), (&"exited".into(), &4.into()));
        assert_eq!(status["nodes"][1]["addresses"][0], "10.0.0.2");
        let people = text(&live.ask("ps", &[])).0;
        assert!(people.contains("sleep 1000") && people.contains("box"), "{people}");
        good(&live.ask("stop", &[]));
        live.finish().assert_code(1);
    }
}

#[test]
fn links_are_changed_cut_and_mended_while_they_run() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start(BOX);
        live.wait_for(&[("event", "run-began")]);
        let ping = |live: &Live<'_>| {
            let seen = live.exec("box", &["ping", "-c", "2", "-i", "0.1", "-W", "1", "other"]);
            text(&seen).0
        };
        assert!(ping(&live).contains("2 received"));
        good(&live.ask("set", &["wire", "latency=40ms"]));
        let changed = live.ask("links", &["--changed", "--json"]);
        let changed: Value = serde_json::from_slice(&changed.stdout).unwrap();
        let lanes = changed["links"].as_array().unwrap();
        assert_eq!(lanes.len(), 2, "{changed}");
        for lane in lanes {
            assert_eq!((&lane["link"], &lane["state"]), (&"wire".into(), &"up".into()));
            assert_eq!(lane["properties"]["latency"], "40ms");
            assert!(lane["changed_from"]["latency"].is_string(), "{lane}");
        }
        let slow = ping(&live);
        let times = slow.lines().filter_map(|line| line.split("time=").nth(1));
        let times: Vec<f64> =
            times.filter_map(|time| time.split(' ').next()?.parse().ok()).collect();
        assert!(times.len() == 2 && times.iter().all(|time| *time >= 80.0), "{slow}");
        good(&live.ask("down", &["wire"]));
        assert!(ping(&live).contains("0 received"));
        good(&live.ask("up", &["wire"]));
        assert!(ping(&live).contains("2 received"));
        let seen = live.ask("set", &["wyre", "latency=40ms"]);
        assert_eq!(seen.status.code(), Some(2));
        assert!(text(&seen).1.contains("the links are wire"), "{seen:?}");
        let seen = live.ask("set", &["wire", "latency=40"]);
        assert_eq!(seen.status.code(), Some(2), "{seen:?}");
        // Half of an IPv6 packet's least size: a value that is invalid in the file is refused.
        let seen = live.ask("set", &["wire", "mtu=640"]);
        assert_eq!(seen.status.code(), Some(2), "{seen:?}");
        let outcome = stop(live);
        assert_eq!(outcome.events(&[("event", "link-state"), ("up", "false")]).len(), 2);
        assert_eq!(outcome.events(&[("event", "link-set")]).len(), 2);
    }
}

#[test]
fn two_runs_at_once_do_not_meet() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let (one, two) = (Lab::new(user), Lab::new(user));
        let (mut first, mut second) = (one.start(BOX), two.start(BOX));
        first.wait_for(&[("event", "run-began")]);
        second.wait_for(&[("event", "run-began")]);
        good(&first.ask("down", &["wire"]));
        let ping = ["ping", "-c", "1", "-W", "1", "other"];
        assert!(text(&first.exec("box", &ping)).0.contains("0 received"));
        assert!(text(&second.exec("box", &ping)).0.contains("1 received"));
        stop(first);
        one.assert_nothing_left();
        assert!(text(&second.exec("box", &ping)).0.contains("1 received"));
        stop(second);
        two.assert_nothing_left();
    }
}

#[test]
fn a_run_that_is_over_cannot_be_asked() {
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass("nodes: {a: {run: 'true'}}\n");
        let run = outcome.folder.to_str().unwrap();
        let seen = lab.windtunnel(&["ps", "--run", run]).output().unwrap();
        assert_eq!(seen.status.code(), Some(2));
        let stderr = text(&seen).1;
        assert!(stderr.contains("no live run") && stderr.contains("hint:"), "{stderr}");
    }
}

/// `exec` of `tr` with something on its standard input.
fn piped(live: &Live<'_>, input: &[u8]) -> String {
    let mut command = live.command("exec", &["box", "--", "tr", "a-z", "A-Z"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert!(child.wait().unwrap().success());
    output
}

#[track_caller]
fn stop(live: Live<'_>) -> super::support::Outcome {
    good(&live.ask("stop", &[]));
    let outcome = live.finish();
    outcome.assert_code(0);
    outcome
}

#[track_caller]
fn good(seen: &Output) {
    assert!(seen.status.success(), "{seen:?}");
}

fn text(seen: &Output) -> (String, String, Option<i32>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&seen.stdout), text(&seen.stderr), seen.status.code())
}

/// Two nodes without programs: such a run lasts until it is stopped.
const BOX: &str = "nodes: {box: {}, other: {}}
links: [{between: [box, other], name: wire, latency: 1ms}]
";
