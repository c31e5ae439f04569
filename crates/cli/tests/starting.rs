//! `--hosts` where no agent runs: a stand-in for ssh starts them here, as a shell on another
//! machine would. Needs no rights.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use free_port::free_port;

#[path = "common/free_port.rs"]
mod free_port;

const WINDTUNNEL: &str = env!("CARGO_BIN_EXE_windtunnel");

/// A user with a key, a scenario and a stand-in for ssh that writes down how it is called.
struct User {
    folder: tempfile::TempDir,
}

impl User {
    fn new() -> User {
        let user = User { folder: tempfile::tempdir().unwrap() };
        let made = windtunnel(&["keygen"]).arg(user.path("key")).output().unwrap();
        assert!(made.status.success());
        let nodes = "nodes: {a: {}, b: {}}\nlinks: [{between: [a, b], latency: 5s}]\n";
        fs::write(user.path("net.yaml"), format!("placement: spread\n{nodes}")).unwrap();
        fs::create_dir(user.path("home")).unwrap();
        user.program(
            "ssh",
            "for word; do host=$command; command=$word; done\nexec sh -c \"$command\"",
        );
        user
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A shell script that first writes its arguments to `calls`, a line for each call.
    fn program(&self, name: &str, text: &str) {
        let (path, calls) = (self.path(name), self.path("calls"));
        let text = format!("#!/bin/sh\necho \"$*\" >> {}\n{text}\n", calls.display());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn check(&self, hosts: &str, more: &[&str]) -> Output {
        let mut command = windtunnel(&["check", "--hosts", hosts]);
        command.env("WINDTUNNEL_REMOTE_WINDTUNNEL", WINDTUNNEL);
        command.arg(self.path("net.yaml")).arg("--key").arg(self.path("key")).args(more);
        command.env("WINDTUNNEL_SSH", self.path("ssh")).env("HOME", self.path("home"));
        command.env_remove("XDG_STATE_HOME").env_remove("SLURM_JOB_ID").output().unwrap()
    }

    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn windtunnel(arguments: &[&str]) -> Command {
    let mut command = Command::new(WINDTUNNEL);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Free addresses on loopback.
fn free<const N: usize>() -> [String; N] {
    [(); N].map(|()| format!("127.0.0.1:{}", free_port()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn agents_are_started_where_there_are_none_and_are_gone_with_the_command() {
    let user = User::new();
    let [first, second] = free();
    let output = user.check(&format!("{first},{second}"), &[]);
    let (table, talk) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{talk}{table}");
    assert!(table.contains("2 machines"), "{table}");
    for host in [&first, &second] {
        assert!(talk.contains(&format!("agent on {host}: started over ssh, at ")), "{talk}");
        // The address is free again.
        UdpSocket::bind(host).unwrap();
    }
    let mut calls = user.calls();
    calls.sort();
    let mut expected = [&first, &second].map(|host| {
        let port = host.rsplit_once(':').unwrap().1;
        format!(
            "-T -o BatchMode=yes 127.0.0.1 {WINDTUNNEL} agent --key - --until-stdin-closes --advertise ssh \
             --listen [::]:{port}"
        )
    });
    expected.sort();
    assert_eq!(calls, expected);
    assert_eq!(files(&user.path("home")), Vec::<PathBuf>::new());
}

/// An agent that has said that it listens; it ends when its standard input closes.
#[track_caller]
fn listening_agent(user: &User, address: &str) -> Child {
    let mut agent = windtunnel(&["agent", "--until-stdin-closes", "--listen", address]);
    agent.arg("--key").arg(user.path("key")).arg("--folder").arg(user.path("agent"));
    let mut agent = agent.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut announced = String::new();
    let mut out = BufReader::new(agent.stdout.as_mut().unwrap());
    out.read_line(&mut announced).unwrap();
    assert_eq!(announced, format!("windtunnel agent at {address}\n"));
    agent
}

#[test]
fn an_agent_that_runs_already_is_used_and_the_other_one_joins_it() {
    let user = User::new();
    let [first, second] = free();
    let mut agent = listening_agent(&user, &first);
    let output = user.check(&format!("{second},{first}"), &[]);
    let (table, talk) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{talk}{table}");
    assert!(table.contains("2 machines"), "{table}");
    assert_eq!(user.calls().len(), 1);
    // It does not end with another user's command, but when its standard input closes.
    assert!(agent.try_wait().unwrap().is_none());
    drop(agent.stdin.take());
    assert!(agent.wait().unwrap().success());
    assert!(!user.path("agent").exists());
}

#[test]
fn a_port_in_use_at_which_no_agent_answers_is_named() {
    let user = User::new();
    let [taken, other] = free();
    let _socket = UdpSocket::bind(&taken).unwrap();
    let output = user.check(&format!("{taken},{other}"), &[]);
    let talk = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{talk}");
    let error = format!("error: no agent answers at {taken}, and its UDP port is in use there\n");
    assert!(talk.contains(&error), "{talk}");
    assert!(talk.contains("; else name another port: HOST:PORT\n"), "{talk}");
}

#[test]
fn agents_that_are_there_wait_for_an_ssh_that_takes_longer_than_a_connection_lives_idle() {
    let user = User::new();
    let [first, second] = free();
    let mut agent = listening_agent(&user, &first);
    // Idle connections are given up after 5 s.
    user.program(
        "ssh",
        "sleep 7\nfor word; do host=$command; command=$word; done\nexec sh -c \"$command\"",
    );
    let output = user.check(&format!("{first},{second}"), &[]);
    let (table, talk) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{talk}{table}");
    assert!(table.contains("2 machines"), "{table}");
    drop(agent.stdin.take());
    assert!(agent.wait().unwrap().success());
}

#[test]
fn agents_that_are_all_started_by_ssh_need_no_key_and_leave_none() {
    let user = User::new();
    let [first, second] = free();
    let mut command = windtunnel(&["check", "--hosts", &format!("{first},{second}")]);
    command.arg(user.path("net.yaml")).env("WINDTUNNEL_REMOTE_WINDTUNNEL", WINDTUNNEL);
    command.env("WINDTUNNEL_SSH", user.path("ssh")).env("HOME", user.path("home"));
    for variable in ["WINDTUNNEL_KEY", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "SLURM_JOB_ID"] {
        command.env_remove(variable);
    }
    let output = command.output().unwrap();
    let (table, talk) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{talk}{table}");
    assert!(table.contains("2 machines"), "{table}");
    assert_eq!(files(&user.path("home")), Vec::<PathBuf>::new());
    // A key that is named is not made.
    let named = command.arg("--key").arg(user.path("no-key")).output().unwrap();
    assert_eq!(named.status.code(), Some(2));
    assert!(text(&named.stderr).contains("cannot read the key"), "{}", text(&named.stderr));
}

#[test]
fn an_error_of_ssh_is_reported_with_a_hint() {
    let user = User::new();
    let [host] = free();
    let failure = |script: &str, hosts: &str, more: &[&str]| {
        user.program("ssh", script);
        let output = user.check(hosts, more);
        assert_eq!(text(&output.stdout), "");
        (output.status.code(), text(&output.stderr))
    };
    let start = format!("error: no agent answers at {host}, and none can be started there: ");
    let (code, talk) =
        failure("echo 'b: Permission denied (publickey).' >&2; exit 255", &host, &[]);
    assert_eq!(code, Some(4));
    assert!(
        talk.starts_with(&format!("{start}b: Permission denied (publickey).\nhint: `")),
        "{talk}"
    );
    assert!(talk.contains("ssh-copy-id"), "{talk}");
    let run = "for word; do command=$word; done\nexec sh -c \"$command\"";
    let (_, talk) = failure(run, &host, &["--remote-windtunnel", "/no/windtunnel"]);
    assert!(talk.starts_with(&start) && talk.contains("/no/windtunnel: not found"), "{talk}");
    assert!(talk.ends_with("or name its path with --remote-windtunnel\n"), "{talk}");
    let (_, talk) = failure(run, &host, &["--ssh", "no-such-ssh"]);
    assert!(talk.starts_with(&format!("{start}cannot run no-such-ssh: No such file")), "{talk}");
    // A name that ssh cannot resolve either.
    let unknown = "echo 'Could not resolve hostname no.such.host' >&2; exit 255";
    let (_, talk) = failure(unknown, "no.such.host", &[]);
    let expected = "error: no agent is called `no.such.host`, it is not an address, and none can be started there: Could \
                    not resolve hostname no.such.host\n";
    assert!(talk.starts_with(expected), "{talk}");
    // No option of ssh is ever a machine.
    let before = user.calls().len();
    let (code, talk) = failure("exit 1", "-oProxyCommand=x", &[]);
    assert_eq!((code, user.calls().len()), (Some(2), before), "{talk}");
    let (code, talk) = failure("exit 1", "slurm", &[]);
    assert_eq!((code, user.calls().len()), (Some(2), before));
    assert!(talk.contains("not inside a Slurm allocation"), "{talk}");
}

#[test]
fn a_line_of_ssh_without_an_end_is_an_error_that_names_the_machine() {
    let user = User::new();
    let [host] = free();
    for (stream, to) in [("standard output", 1), ("standard error", 2)] {
        // It goes on until the session is ended.
        let endless = format!("tr '\\0' x < /dev/zero >&{to} &\ncat > /dev/null\nkill $!");
        user.program("ssh", &endless);
        let output = user.check(&host, &[]);
        let talk = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{talk}");
        let expected = format!(
            "error: no agent answers at {host}, and none can be started there: a line of the {stream} \
             of ssh is over 65536 bytes\nhint: "
        );
        assert!(talk.contains(&expected), "{talk}");
    }
}

#[test]
fn a_run_that_ends_with_the_command_cannot_be_detached() {
    let user = User::new();
    let [host] = free();
    let mut command = windtunnel(&["run", "--detach", "--remote-windtunnel", WINDTUNNEL]);
    command.args(["--hosts", &host]).arg(user.path("net.yaml")).arg("--key").arg(user.path("key"));
    command.arg("--ssh").arg(user.path("ssh")).env("HOME", user.path("home"));
    let output = command.env_remove("XDG_STATE_HOME").output().unwrap();
    let talk = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{talk}");
    assert!(talk.contains("error: --detach: the run would end with this command"), "{talk}");
}
