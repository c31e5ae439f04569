//! Machines whose names take long to resolve.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::support::{MAX_LATENESS, Machines, address, is_missing, until};

/// A name server on a machine's loopback, until the test ends. All names are the second machine's
/// address, which it answers late.
struct Resolver(Child);

impl Resolver {
    /// `python`: a command line of Python on that machine.
    fn start(mut python: Command) -> Resolver {
        let child = python.args(["-c", SERVER]).stdout(Stdio::piped()).spawn().unwrap();
        let mut resolver = Resolver(child);
        let mut line = [0; 6];
        std::io::Read::read_exact(resolver.0.stdout.as_mut().unwrap(), &mut line).unwrap();
        assert_eq!(&line, b"ready\n");
        resolver
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        // It has nothing to tidy up.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_name_that_resolves_after_the_idle_time_of_connections_is_waited_for() {
    if is_missing(&["python3", "mount"]) {
        return;
    }
    let Some(machines) = Machines::new(2) else { return };
    machines.write("resolv.conf", "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n");
    machines.write("nsswitch.conf", "hosts: files dns\n");
    machines.write(
        "net.yaml",
        "placement: spread\nnodes: {a: {run: hostname}, b: {run: hostname}}\n\
         links: [{between: [a, b], latency: 1ms}]\n",
    );
    let _resolver = Resolver::start(machines.as_root(0, "python3"));
    let here = "mount --bind resolv.conf /etc/resolv.conf && \
        mount --bind nsswitch.conf /etc/nsswitch.conf && exec \"$@\"";
    let behind = ["unshare", "--mount", "--", "sh", "-c", here, "sh"];
    let hosts = format!("{},slow.test:7447", address(0));
    let words = ["run", "net.yaml", "--hosts", &hosts, "--key", "../key", "--out", "out"];
    let words = [&words[..], &["--max-lateness", MAX_LATENESS, "--attempts", "5"]].concat();
    let began = Instant::now();
    let output = machines.windtunnel_behind(0, &behind, &words).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert!(began.elapsed() >= LATE, "the name was not asked for: {error}");
    assert!(error.contains("1 on one") && error.contains("1 on two"), "{error}");
    until("that nothing is left", || machines.folders(1).is_empty().then_some(()));
}

/// Longer than connections without a word are kept for, which is 5 s.
const LATE: Duration = Duration::from_secs(7);

/// Answers each question on a thread of its own: type A with an address, all else with nothing
/// (RFC 1035, 4.1).
const SERVER: &str = r#"
import socket, threading, time
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
print("ready", flush=True)
def answer(asked, client):
    time.sleep(7)
    end = asked.index(b"\0", 12) + 5
    is_a = asked[end - 4:end - 2] == b"\0\1"
    head = asked[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_a else b"\0\0") + b"\0\0\0\0"
    record = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4" + socket.inet_aton("10.99.0.2") if is_a else b""
    server.sendto(head + asked[12:end] + record, client)
while True:
    asked, client = server.recvfrom(512)
    threading.Thread(target=answer, args=(asked, client), daemon=True).start()
"#;
