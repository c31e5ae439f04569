//! A link without a file: a wrapper of a command.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::support::{Lab, any_user, is_missing, users};

#[test]
fn a_command_runs_across_a_link_and_its_end_is_the_end() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let words = ["link", "--latency", "10ms", "--out", "run", "--max-lateness", "5s", "--"];
        let ping = ["ping", "-c", "3", "-i", "0.05", "server"];
        let output = lab.windtunnel(&[words.as_slice(), &ping].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let seen = String::from_utf8(output.stdout).unwrap();
        assert!(seen.starts_with("PING "), "nothing but the command's own: {seen}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("FAITHFUL") && stderr.contains("(run)"), "{stderr}");
        let rtt = seen.lines().last().unwrap().split(['=', '/']).nth(4).unwrap();
        assert!(rtt.trim().parse::<f64>().unwrap() >= 20.0, "{seen}");
    }
}

#[test]
fn the_command_starts_once_the_server_listens_and_the_loss_is_that_of_one_direction() {
    if is_missing(&["iperf3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let link = ["link", "--rate", "10mbit", "--down", "loss=1% latency=43ms", "--out", "run"];
        let server =
            ["--max-lateness", "5s", "--latency", "40ms", "--server", "iperf3 -s -1", "--"];
        let client = ["iperf3", "-c", "server", "-n", "200K"];
        let words = [link.as_slice(), &server, &client].concat();
        let output = lab.windtunnel(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let report = std::fs::read_to_string(lab.path().join("run/run.json")).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        let asked = |direction: usize| &report["links"][direction]["asked"];
        assert_eq!(asked(0)["rate"], "10mbit");
        assert_eq!(asked(0)["latency"], "40ms");
        let server = std::fs::read_to_string(lab.path().join("run/nodes/server/exit")).unwrap();
        assert_eq!(server, "it still ran at the end, then exited with 0\n", "it had the time");
        assert_eq!((&asked(1)["rate"], &asked(1)["latency"]), (&"10mbit".into(), &"43ms".into()));
    }
}

#[test]
fn the_printed_text_is_a_scenario_and_mistakes_are_shown_in_it() {
    let lab = Lab::new(users()[0]);
    let words = ["link", "--rate", "10mbit", "--print", "--server", "cat", "--", "true"];
    let output = lab.windtunnel(&words).output().unwrap();
    lab.write("net.yaml", &output.stdout);
    let check = lab.windtunnel(&["check", "net.yaml"]).output().unwrap();
    assert_eq!(check.status.code(), Some(0), "{check:?}");
    let more = ["--reserve", "both={of: [client, server], pids: 9}"];
    let output = lab.windtunnel(&[&words[..3], &more, &words[3..]].concat()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("reserve:\n  both: {of: [client, server], pids: 9}\n"), "{text}");
    lab.write("net.yaml", &text);
    let check = lab.windtunnel(&["check", "net.yaml"]).output().unwrap();
    assert_eq!(check.status.code(), Some(0), "{check:?}");
    let wrong = lab.windtunnel(&["link", "--latency", "40", "--", "true"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(3));
    let text = String::from_utf8(wrong.stderr).unwrap();
    assert!(text.contains("command line:7:14") && text.contains("latency: 40"), "{text}");
}

#[test]
fn the_exit_code_is_the_commands_own() {
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("data", "no program");
        for (words, code, error) in [
            (["sh", "-c", "exit 7"].as_slice(), 7, "exited with 7"),
            (&["sh", "-c", "kill -TERM $$"], 143, "ended by signal 15"),
            (&["no-such-program"], 127, "there is no program `no-such-program` in PATH"),
            (&["./data"], 126, "is not executable"),
        ] {
            let seen = link(&lab, &[], words).output().unwrap();
            assert_eq!(seen.status.code(), Some(code), "{seen:?}");
            assert!(String::from_utf8_lossy(&seen.stderr).contains(error), "{seen:?}");
            assert_eq!(seen.stdout, b"");
        }
        lab.assert_nothing_left();
    }
}

#[test]
fn bytes_pass_through_as_they_are() {
    for user in any_user() {
        let lab = Lab::new(user);
        let bytes: Vec<u8> = (0..300_000_u32).map(|n| n.wrapping_mul(n).to_be_bytes()[1]).collect();
        let mut command = link(
            &lab,
            &["--server", "sh -c 'echo noise; sleep 1000'", "--ready", "none"],
            &["cat"],
        );
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let seen = std::thread::scope(|scope| {
            scope.spawn(|| {
                input.write_all(&bytes).unwrap();
                drop(input);
            });
            let mut seen = Vec::new();
            output.read_to_end(&mut seen).unwrap();
            seen
        });
        assert!(seen == bytes, "{} of {} bytes", seen.len(), bytes.len());
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn signals_are_the_commands_while_it_runs() {
    for user in any_user() {
        let lab = Lab::new(user);
        let script = "trap 'echo got; exit 3' INT; echo up; while :; do sleep 0.02; done";
        let mut command = link(&lab, &[], &["sh", "-c", script]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "up");
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
        assert_eq!(lines.next().unwrap().unwrap(), "got");
        assert_eq!(child.wait().unwrap().code(), Some(3));
        let report = std::fs::read_to_string(lab.path().join("run/run.json")).unwrap();
        assert!(!report.contains("interrupted"), "{report}");
    }
}

#[test]
fn strict_makes_faithfulness_count() {
    if is_missing(&["ping"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    // No packet leaves within a nanosecond of its time.
    let late = ["--latency", "1ms", "--max-lateness", "1ns"];
    let ping = ["ping", "-c", "1", "server"];
    let seen = link(&lab, &late, &ping).output().unwrap();
    assert_eq!(seen.status.code(), Some(0), "{seen:?}");
    assert!(String::from_utf8_lossy(&seen.stderr).contains("NOT FAITHFUL"), "{seen:?}");
    std::fs::remove_dir_all(lab.path().join("run")).unwrap();
    let seen = link(&lab, &[&late[..], &["--strict"]].concat(), &ping).output().unwrap();
    assert_eq!(seen.status.code(), Some(1), "{seen:?}");
    std::fs::remove_dir_all(lab.path().join("run")).unwrap();
    let seen = link(&lab, &["--strict"], &["sh", "-c", "exit 7"]).output().unwrap();
    assert_eq!(seen.status.code(), Some(7), "the command's own failure comes first: {seen:?}");
}

#[test]
fn a_shell_has_the_callers_terminal_with_job_control() {
    if is_missing(&["python3", "bash", "stty"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("drive.py", DRIVER);
        let wrapped = link(&lab, &["--latency", "1ms"], &["bash", "--norc", "--noprofile"]);
        let words = std::iter::once(wrapped.get_program()).chain(wrapped.get_args());
        let mut driver = Command::new("python3");
        driver.arg("drive.py").args(words).current_dir(lab.path()).env("HOME", lab.path());
        let seen = driver.output().unwrap();
        let text = String::from_utf8_lossy(&seen.stdout);
        assert!(seen.status.success(), "{text}{}", String::from_utf8_lossy(&seen.stderr));
        lab.assert_nothing_left();
    }
}

/// `link` with these options and this command, and its folder `run`.
fn link(lab: &Lab, options: &[&str], command: &[&str]) -> Command {
    let _ = std::fs::remove_dir_all(lab.path().join("run"));
    lab.windtunnel(&[&["link", "--out", "run"], options, command].concat())
}

/// Plays the user at a terminal of 33 lines: types, and waits for what must come.
const DRIVER: &str = r#"
import fcntl, os, pty, select, struct, sys, termios
os.environ["PS1"] = "ready> "
pid, tty = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
fcntl.ioctl(tty, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
seen = b""
def expect(text):
    global seen
    while text not in seen:
        if not select.select([tty], [], [], 60)[0]:
            sys.exit("no %r in %r" % (text, seen))
        try:
            got = os.read(tty, 4096)
        except OSError:
            got = b""
        if not got:
            sys.exit("the end before %r in %r" % (text, seen))
        seen += got
    seen = seen[seen.index(text) + len(text):]
def say(line):
    os.write(tty, line)
expect(b"ready> ")
say(b"echo is-$((6 * 7))\n")
expect(b"is-42\r\n")
expect(b"ready> ")
say(b"sh -c 'echo g''o; exec cat'\n")
expect(b"go\r\n")
say(b"mirror\n")
expect(b"mirror\r\nmirror\r\n")
say(b"\x03")
expect(b"ready> ")
say(b"echo code-$?\n")
expect(b"code-130\r\n")
expect(b"ready> ")
say(b"sh -c 'echo on''ce; exec sleep 1000'\n")
expect(b"once\r\n")
say(b"\x1a")
expect(b"Stopped")
expect(b"ready> ")
say(b"kill %1; wait; echo done-$((1 + 1))\n")
expect(b"done-2\r\n")
expect(b"ready> ")
fcntl.ioctl(tty, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 55, 0, 0))
say(b"until test x$(stty size | tr ' ' x) = x44x55; do :; done; echo sized-$((2 + 1))\n")
expect(b"sized-3\r\n")
say(b"exit 5\n")
expect(b"FAITHFUL")
while True:
    try:
        if not os.read(tty, 4096):
            break
    except OSError:
        break
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(None if code == 5 else "exit code %d" % code)
"#;
