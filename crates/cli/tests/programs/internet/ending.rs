//! What the gateway meets while programs are being stopped.

use serde_json::json;

use super::super::support::{Lab, User};
use super::{HOST, report};

/// A datagram to where nothing may go, and the gateway's answer to it.
const ASK: &str = r"
import socket, signal, sys
def ask():
    it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    it.settimeout(60)
    it.connect(('203.0.113.1', 9))
    it.send(b'x')
    try:
        it.recv(1)
    except OSError as error:
        print(error.errno, flush=True)
";

#[test]
fn what_is_refused_after_the_end_of_the_run_is_not_in_its_account() {
    let lab = Lab::new(User::Invoker);
    lab.write("worker.py", format!("{ASK}\nask()\nask()\n"));
    let daemon = "
def end(*_):
    ask()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print('ready', flush=True)
while True:
    signal.pause()
";
    lab.write("daemon.py", format!("{ASK}{daemon}"));
    let outcome = lab.run_with(
        "ipv6: false\nrouters: [r]\nnodes:\n  \
         d: {run: python3 daemon.py, daemon: true, ready: 'log:ready'}\n  \
         w: {run: python3 worker.py, after: d}\n  internet: {}\n\
         links: [{between: [d, r]}, {between: [w, r]}, {between: [r, internet], latency: 1ms}]\n",
        &HOST,
    );
    outcome.assert_code(0);
    // EHOSTUNREACH or EACCES: it was answered, also at the end.
    assert_eq!(outcome.output("d").lines().count(), 2, "{}", outcome.describe());
    let internet = &report(&outcome)["internet"];
    assert_eq!(internet["refused"], json!({"not_allowed": 2}), "{internet}");
}
