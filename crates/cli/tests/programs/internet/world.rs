//! An outside that is no machine's: a network namespace with one neighbour, a resolver and a server in
//! it, in which windtunnel runs as on a machine of its own.

use super::super::support::{Lab, User, is_missing, is_root, missing};

/// The neighbour: answers every question for a name with its own addresses, and serves a page.
const NEIGHBOUR: &str = r#"
import http.server, socket, socketserver, threading
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"outside by " + self.client_address[0].encode())
    def log_message(self, *_):
        pass
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    address_family = socket.AF_INET6
def answer(question):
    end = question.index(b"\0", 12) + 5
    kind = question[end - 3]
    data = {1: bytes([192, 0, 2, 1]), 28: socket.inet_pton(socket.AF_INET6, "2001:db8::1")}.get(kind, b"")
    head = question[:2] + b"\x81\x80\0\1" + (b"\0\1" if data else b"\0\0") + b"\0\0\0\0"
    record = b"\xc0\x0c\0" + bytes([kind]) + b"\0\1\0\0\0\x3c\0" + bytes([len(data)]) + data
    return head + question[12:end] + (record if data else b"")
def names():
    it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    it.bind(("192.0.2.1", 53))
    while True:
        question, client = it.recvfrom(512)
        it.sendto(answer(question), client)
threading.Thread(target=names, daemon=True).start()
server = Server(("::", 80), Page)
open("ready", "w").close()
server.serve_forever()
"#;

/// Makes the namespaces and the neighbour, then runs what follows.
const WORLD: &str = r#"
set -e
ip link set lo up
ip link add v0 type veth peer name v1
unshare -n sleep 600 &
there=$!
until [ "$(readlink /proc/$there/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link set v1 netns $there
nsenter -t $there -n sh -c 'ip link set lo up; ip addr add 192.0.2.1/24 dev v1; ip link set v1 up; ip addr add 2001:db8::1/64 dev v1 nodad'
ip addr add 192.0.2.2/24 dev v0
ip addr add 2001:db8::2/64 dev v0 nodad
ip link set v0 up
ip route add default via 192.0.2.1
nsenter -t $there -n python3 neighbour.py &
serves=$!
trap 'kill $there $serves' EXIT
until [ -e ready ]; do sleep 0.01; done
echo 'nameserver 192.0.2.1' > resolv.conf
mount --bind resolv.conf /etc/resolv.conf
"#;

/// Runs a client in a world of its own: what windtunnel wrote, and its run folder's `run.json`.
fn run(lab: &Lab, allow: &str, client: &str) -> (String, serde_json::Value) {
    lab.write("neighbour.py", NEIGHBOUR);
    lab.write("client.py", client);
    let scenario = format!(
        "nodes: {{client: {{run: python3 client.py}}, internet: {{{allow}}}}}\n\
         links: [{{between: [client, internet], latency: 2ms}}]\n"
    );
    lab.write("net.yaml", scenario);
    let words = "./windtunnel run net.yaml --out run --allow-internet --max-lateness 5s";
    let script = format!("{WORLD}{words}\n");
    let output = lab.command(&["unshare", "-n", "-m", "bash", "-c", &script]).output().unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(0), "{text}");
    let report = std::fs::read_to_string(lab.path().join("run/run.json")).unwrap();
    (text, serde_json::from_str(&report).unwrap())
}

fn can_run() -> bool {
    if !is_root() {
        missing("root, for a network namespace that stands for the machine's");
        return false;
    }
    !is_missing(&["ip", "nsenter", "unshare", "python3", "ping"])
}

#[test]
fn nodes_reach_the_outside_by_its_names_and_by_both_versions_of_ip() {
    if !can_run() {
        return;
    }
    let client = r#"
import errno, socket, subprocess, urllib.request
for url, source in (("http://site.example/", None), ("http://192.0.2.1/", b"::ffff:192.0.2.2"),
                    ("http://[2001:db8::1]/", b"2001:db8::2")):
    page = urllib.request.urlopen(url, timeout=30).read()
    assert page.startswith(b"outside by "), page
    # As an ordinary program of the machine, in the machine's name.
    assert source is None or page == b"outside by " + source, page
it = socket.socket()
assert it.connect_ex(("192.0.2.1", 81)) == errno.ECONNREFUSED
# Its neighbour does not answer for that address.
it = socket.socket()
assert it.connect_ex(("192.0.2.77", 80)) == errno.EHOSTUNREACH
# The machine's own addresses, on its own interface.
for family, address in ((socket.AF_INET, "192.0.2.2"), (socket.AF_INET6, "2001:db8::2")):
    it = socket.socket(family)
    error = it.connect_ex((address, 80))
    assert error in (errno.EHOSTUNREACH, errno.EACCES), (address, error)
# No way there.
it = socket.socket(socket.AF_INET6)
assert it.connect_ex(("2001:db8:1::1", 80)) == errno.ENETUNREACH
for address in ("192.0.2.1", "2001:db8::1"):
    subprocess.run(["ping", "-c", "2", "-i", "0.2", address], check=True)
"#;
    let lab = Lab::new(User::Invoker);
    let (_, report) = run(&lab, "", client);
    let internet = &report["internet"];
    assert_eq!(internet["flows"]["tcp"], 3, "{internet}");
    assert_eq!(internet["flows"]["echo"], 2, "{internet}");
    assert!(internet["flows"]["dns"].as_u64().unwrap() >= 1, "{internet}");
    assert!(internet["refused"]["machine"].as_u64().unwrap() >= 2, "{internet}");
    assert!(internet["refused"]["no_route"].as_u64().unwrap() >= 1, "{internet}");
    assert_eq!(report["verdict"]["faithful"], true);
}

#[test]
fn a_list_lets_pass_what_it_names_and_names_only_where_it_says_so() {
    if !can_run() {
        return;
    }
    let client = r#"
import errno, socket, urllib.request
assert urllib.request.urlopen("http://192.0.2.1/", timeout=30).read().startswith(b"outside by ")
for port in (53, 81):
    it = socket.socket()
    assert it.connect_ex(("192.0.2.1", port)) == errno.EHOSTUNREACH
try:
    socket.getaddrinfo("site.example", 80)
    raise SystemExit("resolved")
except socket.gaierror:
    pass
"#;
    let lab = Lab::new(User::Invoker);
    let (_, report) = run(&lab, "allow: [192.0.2.0/24:80]", client);
    assert!(report["internet"]["refused"]["not_listed"].as_u64().unwrap() >= 3);
    let client = r#"
import socket
assert socket.gethostbyname("site.example") == "192.0.2.1"
"#;
    let lab = Lab::new(User::Invoker);
    let (_, report) = run(&lab, "allow: dns", client);
    assert!(report["internet"]["flows"]["dns"].as_u64().unwrap() >= 1);
}
