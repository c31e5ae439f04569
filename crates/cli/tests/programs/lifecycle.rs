//! The start of programs, and the effects of their ends.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use super::support::{Lab, is_missing, users};

#[test]
fn a_program_starts_after_those_it_waits_for_are_ready() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        lab.write("listen.py", LISTEN);
        let outcome = lab.pass(
            "nodes:
  tcp:  {run: python3 -u listen.py tcp, daemon: true, ready: tcp:7000}
  unix: {run: python3 -u listen.py unix, daemon: true, ready: unix:ready.socket}
  log:  {run: python3 -u listen.py log, daemon: true, ready: 'log:^now [0-9]+$'}
  exit: {run: python3 -u listen.py exit, ready: exit}
  last: {run: 'true', after: [tcp, unix, log, exit]}
links: [{between: [tcp, last]}]
allow-unreachable: true
"
            .replace("unix:ready.socket", &format!("unix:{}/ready.socket", lab.path().display()))
            .as_str(),
        );
        let started = outcome.event(&[("event", "program-started"), ("node", "last")]);
        for node in ["tcp", "unix", "log", "exit"] {
            let ready = outcome.event(&[("event", "program-ready"), ("node", node)]);
            assert!(ready["at_ns"].as_u64() <= started["at_ns"].as_u64(), "{node}");
        }
    }
}

#[test]
fn a_missing_program_or_folder_is_reported_at_its_place_before_anything_starts() {
    let lab = Lab::new(users()[0]);
    lab.write("data", "no program");
    for (scenario, error) in [
        (
            "nodes:\n  a: {run: no-such-program -x}\n",
            "net.yaml:2:12: run: there is no program `no-such-program` in PATH",
        ),
        ("nodes:\n  a: {run: slep 1000}\n", "hint: did you mean `sleep`?"),
        (
            "nodes:\n  a: {run: ['sleep 1', 'sleep 2']}\n",
            "several programs are [{run: one}, {run: two}]",
        ),
        ("nodes:\n  a: {run: sleep 1, cwd: gone}\n", "net.yaml:2:26: cwd: there is no folder "),
        ("nodes:\n  a: {run: ./data}\n", "/./data is not executable"),
    ] {
        lab.write("net.yaml", scenario);
        for verb in [["check", "net.yaml"].as_slice(), &["run", "net.yaml", "--out", "run"]] {
            let seen = lab.windtunnel(verb).output().unwrap();
            assert_eq!(seen.status.code(), Some(3), "{seen:?}");
            let text = String::from_utf8(seen.stderr).unwrap();
            assert!(text.contains(error), "{text}");
        }
    }
    assert!(!lab.path().join("run").exists(), "nothing was started");
}

#[test]
fn a_program_that_another_was_to_make_and_did_not_ends_the_run_and_is_named() {
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.run(
            "nodes: {a: {run: ./no-such-program -x, after: b}, b: {run: sleep 1000, daemon: true}}
links: [{between: [a, b]}]
",
        );
        outcome.assert_code(1);
        assert!(outcome.stdout.contains("no-such-program"), "{}", outcome.describe());
        assert!(outcome.stdout.contains("No such file"), "{}", outcome.describe());
        lab.assert_nothing_left();
    }
}

#[test]
fn a_program_that_fails_fails_the_run() {
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.run(
            "nodes: {a: {run: [sh, -c, 'exit 9']}, b: {}}
links: [{between: [a, b]}]
",
        );
        outcome.assert_code(1);
        let last = outcome.stdout.lines().last().unwrap();
        assert!(last.contains("FAILED") && last.contains("exited with 9"), "{last}");
        assert_eq!(outcome.program("a")["exit"], 9);
        assert_eq!(outcome.file("nodes/a/exit").trim(), "exited with 9");
    }
}

#[test]
fn a_program_is_started_again_as_its_restart_says() {
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes:
  a: {run: [sh, -c, 'echo x >> tries; [ $(wc -l < tries) -ge 3 ]'], restart: on-failure}
  b: {run: [sh, -c, 'exit 3'], restart: never}
links: [{between: [a, b]}]
expect: [{node: a, exit: 0}, {node: b, exit: 3}]
",
        );
        assert_eq!(outcome.program("a")["starts"], 3);
        assert_eq!(outcome.program("b")["starts"], 1);
    }
}

#[test]
fn several_programs_share_a_node() {
    if is_missing(&["python3", "curl"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes:
  a:
    run:
      - {run: python3 -m http.server 80, daemon: true, ready: tcp:80}
      - {run: python3 -m http.server 81, daemon: true, ready: tcp:81}
  b: {after: a, run: [{run: curl -sS -o /dev/null http://a/}, {run: curl -sS -o /dev/null http://a:81/}]}
links: [{between: [a, b]}]
",
        );
        assert_eq!(outcome.report()["programs"].as_array().unwrap().len(), 4);
        lab.assert_nothing_left();
    }
}

#[test]
fn two_hundred_programs_may_exit_at_once() {
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes: {a: {count: 20, run: [RUNS]}}
routers: [r]
links: [{between: [a, r]}]
"
            .replace("RUNS", &["{run: 'true'}"; 10].join(", "))
            .as_str(),
        );
        assert_eq!(outcome.events(&[("event", "program-exited"), ("code", "0")]).len(), 200);
        lab.assert_nothing_left();
    }
}

#[test]
fn processes_that_a_program_leaves_behind_end_with_the_run() {
    for user in users() {
        let lab = Lab::new(user);
        lab.pass(
            "nodes: {a: {run: [sh, -c, 'setsid sleep 1000 & setsid sleep 1000 &']}, b: {}}
links: [{between: [a, b]}]
",
        );
        lab.assert_nothing_left();
    }
}

/// Becomes ready in one of four ways.
const LISTEN: &str = "import socket, sys, time
if sys.argv[1] == 'tcp':
    listener = socket.create_server(('', 7000))
elif sys.argv[1] == 'unix':
    listener = socket.socket(socket.AF_UNIX)
    listener.bind('ready.socket')
    listener.listen()
elif sys.argv[1] == 'log':
    print('not now'); print('now 7')
else:
    sys.exit(0)
time.sleep(1000)
";

#[test]
fn an_awaited_condition_is_shown_and_has_the_timeout_of_the_file() {
    let lab = Lab::new(users()[0]);
    let outcome = lab.run(
        "nodes:
  slow: {run: sleep 1000, daemon: true, ready: {tcp: 80, timeout: 1500ms}}
  client: {run: 'true', after: slow}
links: [{between: [slow, client]}]
",
    );
    outcome.assert_code(1);
    let warning = "slow (sleep) is not ready after 1.5s: nothing listens on tcp:80";
    assert!(outcome.stdout.contains(warning), "{}", outcome.describe());
    assert!(outcome.stderr.contains("waiting for slow: tcp:80"), "{}", outcome.describe());
    outcome.event(&[("event", "program-awaited"), ("node", "slow"), ("condition", "tcp:80")]);
}

#[test]
fn a_program_is_ready_when_a_command_beside_it_says_so() {
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes:
  a:
    run: [sh, -c, 'sleep 0.3; echo $WORD > up; exec sleep 1000']
    daemon: true
    cwd: there
    env: {WORD: yes}
    ready: {command: [sh, -c, 'echo check; test \"$(cat up)\" = \"$WORD\" && hostname | grep -qx a'], every: 20ms}
  b: {run: cat there/up, after: a}
links: [{between: [a, b]}]
"
            .replace("there", &lab.folder("there").display().to_string())
            .as_str(),
        );
        assert_eq!(outcome.output("b"), "yes\n");
        assert_eq!(outcome.output("a"), "", "what checks write is not the program's");
        outcome.event(&[("event", "program-ready"), ("node", "a")]);
        lab.assert_nothing_left();
    }
}

#[test]
fn a_check_that_hangs_is_killed_and_what_the_last_one_wrote_is_shown() {
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.run(
            "nodes:
  slow:
    run: sleep 1000
    daemon: true
    ready: {command: [sh, -c, 'echo almost; sleep 1000'], every: 10ms, check-timeout: 100ms, fall: 2}
  client: {run: 'true', after: slow}
links: [{between: [slow, client]}]
",
        );
        outcome.assert_code(1);
        let why = "slow (sleep) is not ready: 2 checks failed one after the other: `sh -c \"echo almost; \
                   sleep 1000\"` took longer than 100ms, and was killed: almost";
        assert!(outcome.stdout.contains(why), "{}", outcome.describe());
        lab.assert_nothing_left();
    }
}

#[test]
fn a_scenario_from_standard_input_runs_in_the_current_folder() {
    for user in users() {
        let lab = Lab::new(user);
        lab.folder("here");
        lab.write("here/words.txt", "beside\n");
        let words = ["run", "-", "--out", "../out-stdin", "--max-lateness", "5s"];
        let mut command = lab.windtunnel(&words);
        command.current_dir(lab.path().join("here")).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A program does not get the rest of the scenario as input, nor waits for more of it.
        let scenario = "nodes: {a: {run: [sh, -c, 'pwd; cat words.txt; cat']}, b: {}}
links: [{between: [a, b], latency: 1ms}]
";
        child.stdin.take().unwrap().write_all(scenario.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let said = fs::read_to_string(lab.path().join("out-stdin/nodes/a/stdout")).unwrap();
        assert_eq!(said, format!("{}\nbeside\n", lab.path().join("here").display()));
        let report = fs::read(lab.path().join("out-stdin/run.json")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["name"], "scenario");
        lab.assert_nothing_left();
    }
}
