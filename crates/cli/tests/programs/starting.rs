//! Runs over machines on which no agent runs: the real sshd starts them.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::clients::name_of;
use crate::free_port::free_port;
use crate::support::{Lab, Live, find_program, is_missing, is_root, until, users};

/// An sshd of the test's user on loopback; it ends when it is dropped.
struct Sshd {
    child: Child,
    /// How to come in.
    client: String,
}

impl Sshd {
    fn start(lab: &Lab) -> Sshd {
        if is_root() && !Path::new("/run/sshd").exists() {
            fs::create_dir_all("/run/sshd").unwrap();
        }
        for key in ["host_key", "user_key"] {
            let mut make = Command::new("ssh-keygen");
            make.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(lab.path().join(key));
            assert!(make.status().unwrap().success());
            lab.own(&lab.path().join(key));
        }
        lab.write("authorized_keys", fs::read(lab.path().join("user_key.pub")).unwrap());
        let port = free_port();
        let at = lab.path().display();
        let sshd = find_program("sshd").unwrap();
        let options = format!(
            "-D -e -f /dev/null -p {port} -h {at}/host_key -o AuthorizedKeysFile={at}/authorized_keys \
             -o ListenAddress=127.0.0.1 -o StrictModes=no -o PidFile=none -o UsePAM=no"
        );
        let mut words = lab.user().prefix().iter().map(|word| (*word).to_owned());
        let sshd = words.next().map_or_else(|| sshd.clone(), Into::into);
        let mut command = Command::new(sshd);
        command.args(words).args(options.split_whitespace());
        let log = fs::File::create(lab.path().join("sshd.log")).unwrap();
        let child = command.stdin(Stdio::null()).stderr(log).spawn().unwrap();
        let listens = || std::net::TcpStream::connect(("127.0.0.1", port)).ok();
        until("sshd listens", listens);
        let client = format!(
            "ssh -F /dev/null -p {port} -i {at}/user_key -o StrictHostKeyChecking=no \
             -o UserKnownHostsFile=/dev/null -o IdentitiesOnly=yes"
        );
        Sshd { child, client }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two free addresses on loopback.
fn hosts() -> [String; 2] {
    [(); 2].map(|()| format!("127.0.0.1:{}", free_port()))
}

/// A run that has begun and gets a signal.
fn interrupted<'a>(lab: &'a Lab, net: &str, options: &[&str], signal: &str) -> Live<'a> {
    let live = lab.start_with(net, options);
    let talk = live.folder().with_extension("stderr");
    until("the run begins", || {
        fs::read_to_string(&talk).ok()?.contains("started ping").then_some(())
    });
    live.signal(signal);
    live
}

#[test]
fn a_run_starts_agents_over_ssh_and_nothing_is_left_of_them() {
    if is_missing(&["ssh", "sshd", "ssh-keygen", "ping"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        // Nothing is missing: sshd refuses users without a shell in the password file.
        if name_of(user.number()).is_none() {
            eprintln!("passed over: user {} has no shell", user.number());
            continue;
        }
        let sshd = Sshd::start(&lab);
        let at = lab.path().display();
        let remote = format!("env HOME={at}/there {at}/windtunnel");
        lab.folder("there");
        let hosts = hosts();
        let names = hosts.join(",");
        let key = lab.path().join("key");
        assert!(lab.windtunnel(&["keygen", "key"]).status().unwrap().success());
        let options = ["--hosts", &names, "--ssh", &sshd.client, "--remote-windtunnel", &remote];
        let options = [&options[..], &["--key", key.to_str().unwrap()]].concat();
        let net = "placement: spread
nodes: {a: {run: ping -c 3 -i 0.2 b}, b: {}}
links: [{between: [a, b], latency: 20ms}]
";
        let outcome = lab.start_with(net, &options).finish();
        outcome.assert_code(0);
        for host in &hosts {
            let line = format!("agent on {host}: started over ssh, at ");
            assert!(outcome.stderr.contains(&line), "{}", outcome.describe());
        }
        assert!(outcome.output("a").contains("3 received"), "{}", outcome.describe());
        // A command that is ended has results, and one that is killed takes its agents with it all
        // the same.
        let long = net.replace("-c 3 -i 0.2", "-c 1000");
        let ended = interrupted(&lab, &long, &options, "TERM").finish();
        ended.assert_code(143);
        assert_eq!(ended.program("a")["node"], "a");
        drop(interrupted(&lab, &long, &options, "KILL"));
        until("the end of the agents", || {
            let said = fs::read_to_string(lab.path().join("sshd.log")).unwrap();
            let (came, left) = ("Accepted publickey", "Received disconnect");
            (said.matches(came).count() == 6 && said.matches(left).count() == 6).then_some(())
        });
        drop(sshd);
        lab.assert_nothing_left();
        let state = fs::read_dir(lab.path().join("there/.local/state/windtunnel")).unwrap();
        assert_eq!(state.count(), 0);
    }
}
