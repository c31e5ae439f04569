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
def stream():
    it = socket.create_server(("192.0.2.1", 53))
    while True:
        client, _ = it.accept()
        question = client.recv(514)
        reply = answer(question[2:])
        client.sendall(len(reply).to_bytes(2, "big") + reply)
threading.Thread(target=names, daemon=True).start()
threading.Thread(target=stream, daemon=True).start()
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
nsenter -t $there -n sh -c 'ip link set lo up; ip addr add 192.0.2.1/24 dev v1; ip link set v1 up; ip addr add 2001:db8::1/64 dev v1 nodad
  echo 1 > /proc/sys/net/ipv4/ip_forward; echo 0 > /proc/sys/net/ipv4/icmp_ratelimit; ip route add 198.51.100.0/24 via 192.0.2.2
  nft "add table ip t; add chain ip t f { type filter hook forward priority 0; }; add rule ip t f ip daddr 198.51.100.1 reject with icmp type admin-prohibited; add rule ip t f ip daddr 198.51.100.2 reject with icmp type host-unreachable"'
ip addr add 192.0.2.2/24 dev v0
ip addr add 2001:db8::2/64 dev v0 nodad
ip link set v0 up
ip route add default via 192.0.2.1
nsenter -t $there -n python3 neighbour.py &
serves=$!
trap 'kill $there $serves' EXIT
until [ -e ready ]; do sleep 0.01; done
# At the first nothing listens.
printf 'nameserver 192.0.2.2\nnameserver 192.0.2.1\nsearch corp.example\noptions ndots:2\n' > resolv.conf
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
    !is_missing(&["ip", "nft", "nsenter", "unshare", "python3", "ping"])
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

#[test]
fn errors_of_the_outside_keep_their_type_and_code_and_names_by_tcp_go_on_to_the_next_resolver() {
    if !can_run() {
        return;
    }
    let client = r#"
import errno, re, socket, struct, subprocess
conf = open("/etc/resolv.conf").read()
assert "search corp.example\n" in conf and "options ndots:2\n" in conf, conf
server = re.search(r"nameserver (\S+)", conf)[1]
it = socket.create_connection((server, 53), timeout=30)
question = b"\x12\x34\1\0\0\1\0\0\0\0\0\0\4site\7example\0\0\1\0\1"
it.sendall(len(question).to_bytes(2, "big") + question)
reply = it.recv(514)
assert reply[-4:] == bytes([192, 0, 2, 1]), reply
# RFC 792 and RFC 1812: destination unreachable, by a rule (13), as a host (1).
IP_RECVERR, MSG_ERRQUEUE = 11, 0x2000
def said(it):
    data, control, flags, address = it.recvmsg(100, 200, MSG_ERRQUEUE)
    number, origin, kind, code = struct.unpack("=IBBB", control[0][2][:7])
    assert origin == 2, origin
    return kind, code
for address, code, text in (("198.51.100.1", 13, "Packet filtered"), ("198.51.100.2", 1, "Destination Host Unreachable")):
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        it = socket.socket(socket.AF_INET, kind)
        it.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
        it.settimeout(30)
        try:
            it.connect((address, 9))
            it.send(b"x")
            it.recv(1)
            raise SystemExit("answered")
        except OSError as error:
            assert error.errno == errno.EHOSTUNREACH, error
        assert said(it) == (3, code), (address, kind)
    ping = subprocess.run(["ping", "-n", "-c", "1", "-W", "30", address], capture_output=True, text=True)
    assert text in ping.stdout, ping.stdout
# Its neighbour does not answer for that address.
ping = subprocess.run(["ping", "-n", "-c", "1", "-W", "30", "192.0.2.77"], capture_output=True, text=True)
assert "Destination Host Unreachable" in ping.stdout, ping.stdout
"#;
    let lab = Lab::new(User::Invoker);
    let (_, report) = run(&lab, "", client);
    assert_eq!(report["internet"]["lost"], serde_json::json!({}));
}
