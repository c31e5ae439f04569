//! Programs that share the link of their node, with real programs. Who sends when depends on the
//! machine: so programs agree on a time, and bounds are wide.

use serde_json::Value;

use super::support::{Lab, Outcome, User, is_missing, users};

/// What both senders begin with: waits for a time that all of them agree on, which the first says.
const TOGETHER: &str = "
import os, socket, sys, time
def together():
    try:
        with open(os.open('go', os.O_CREAT | os.O_EXCL | os.O_WRONLY), 'w') as file:
            file.write(f'{time.time() + 1.5:f}\\n')
    except FileExistsError:
        pass
    text = ''
    while not text.endswith('\\n'):
        text = open('go').read()
    begin = float(text)
    time.sleep(max(0, begin - time.time()))
    return begin
";

/// Sends datagrams of 1000 bytes for 4 s, 250 a second, which is 2 Mbit/s.
const DATAGRAMS: &str = "
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
begin = together()
for number in range(1000):
    time.sleep(max(0, begin + number / 250 - time.time()))
    sender.sendto(bytes(1000), (sys.argv[1], 9))
";

/// Sends a stream for 4 s, as fast as it goes, and then drops what has not been sent.
const STREAM: &str = "
sender = socket.create_connection((sys.argv[1], 5000))
sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\\1\\0\\0\\0\\0\\0\\0\\0')
begin = together()
sender.settimeout(0.1)
while time.time() < begin + 4:
    try:
        sender.send(bytes(1000))
    except TimeoutError:
        pass
sender.close()
";

/// Reads all streams that come.
const SINK: &str = "
import socket, threading
def read(stream):
    try:
        while stream.recv(1 << 16):
            pass
    except OSError:
        pass
server = socket.create_server(('', 5000))
while True:
    threading.Thread(target=read, args=server.accept()[:1], daemon=True).start()
";

fn lab(user: User) -> Lab {
    let lab = Lab::new(user);
    lab.write("datagrams.py", format!("{TOGETHER}{DATAGRAMS}"));
    lab.write("stream.py", format!("{TOGETHER}{STREAM}"));
    lab.write("sink.py", SINK);
    lab
}

/// What the programs of the only node with shares had, and the rest.
fn shares(outcome: &Outcome) -> Value {
    let report = outcome.report();
    assert_eq!(report["shares"].as_array().map(Vec::len), Some(1), "{}", outcome.describe());
    report["shares"][0].clone()
}

fn sent(shares: &Value, program: usize) -> f64 {
    shares["programs"][program]["wire_bytes"].as_f64().unwrap()
}

#[track_caller]
fn assert_near(value: f64, wanted: f64, shares: &Value) {
    assert!((value / wanted - 1.0).abs() < 0.2, "{value} instead of {wanted}: {shares:#}");
}

#[test]
fn datagrams_of_programs_share_the_link_by_minimum_and_weight() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = lab.run(
            "nodes:\n  box:\n    run:\n      - {run: python3 datagrams.py far, send: {weight: 3}}\n      \
             - {run: [sh, -c, 'python3 datagrams.py far; true']}\n      \
             - {run: python3 datagrams.py far, send: {min: 800kbit}}\n  far: {}\n\
             links: [{between: [box, far], rate: 2mbit, queue: 20p}]\n",
        );
        outcome.assert_code(0);
        let shares = shares(&outcome);
        let [weighted, plain, reserved] = [0, 1, 2].map(|program| sent(&shares, program));
        let all = weighted + plain + reserved;
        // Of 1.2 Mbit/s that nothing reserves a sixth each for b, c and the rest, which sends
        // nothing.
        assert_near(weighted / plain, 3.0, &shares);
        assert_near(reserved / all, 1.0 / 1.8, &shares);
        assert!(all * 8.0 > 2e6 * 3.5, "the link was busy for 4 s: {shares:#}");
        assert!(shares["early_packets"].as_u64() < Some(50), "{shares:#}");
        assert_eq!(shares["untracked_packets"], 0);
        let names = ["python3", "sh", "python3-2", "(rest)"];
        let programs = shares["programs"].as_array().unwrap();
        assert!(programs.iter().zip(names).all(|(program, name)| program["name"] == name));
        assert!(outcome.stdout.contains("sender"), "{}", outcome.describe());
    }
}

#[test]
fn streams_of_programs_share_the_link_by_weight() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = lab.run(
            "nodes:\n  far: {run: python3 sink.py, daemon: true, ready: 'tcp:5000'}\n  box:\n    after: far\n    run:\n      \
             - {run: python3 stream.py far, send: {weight: 3}}\n      - {run: python3 stream.py far}\n\
             links: [{between: [box, far], rate: 4mbit, latency: 2ms, queue: 60p}]\n",
        );
        outcome.assert_code(0);
        let shares = shares(&outcome);
        assert_near(sent(&shares, 0) / sent(&shares, 1), 3.0, &shares);
    }
}

/// How a program gets a socket that another one has: the first of both makes it and hands it over.
const HANDED: &str = "
import array
def handed(kind, make):
    if kind == 'gives':
        shared = make()
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        door.bind(chr(0) + 'door')
        door.listen()
        taker = door.accept()[0]
        taker.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [shared.fileno()]))])
        return shared
    taker = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    while taker.connect_ex(chr(0) + 'door'):
        time.sleep(0.01)
    data = taker.recvmsg(1, 64)[1][0][2]
    return socket.socket(fileno=int.from_bytes(data[:4], sys.byteorder))
def bound():
    shared = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    shared.bind(('', 7000))
    return shared
";

/// Sends datagrams of 1000 bytes for 4 s on one socket, 500 a second, which is 4 Mbit/s.
const FLOOD: &str = "
kind, far = sys.argv[1:]
sender = handed(kind, bound)
begin = together()
for number in range(2000):
    time.sleep(max(0, begin + number / 500 - time.time()))
    payload = kind.encode() + number.to_bytes(4, 'big')
    if kind == 'gives':
        sender.sendto(payload + bytes(1000 - len(payload)), (far, 9))
    else:
        sender.sendmsg([payload, bytes(1000 - len(payload))], [], 0, (far, 9))
";

/// Counts what comes while both senders flood, and whether each sender's datagrams are in order.
const COUNT: &str = "
import os, socket, time
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(('', 9))
print('ready', flush=True)
counts, last, begin = {}, {}, None
sink.settimeout(0.5)
while begin is None or time.time() < begin + 4.5:
    try:
        data = sink.recv(2000)
    except TimeoutError:
        continue
    if begin is None:
        begin = float(open('go').read())
    sender, number = data[:5].decode(), int.from_bytes(data[5:9], 'big')
    # Until the socket is found to be shared, datagrams are the first program's, in its queue.
    assert time.time() < begin + 0.2 or last.get(sender, -1) < number, data[:9]
    last[sender] = number
    if begin + 0.2 < time.time() < begin + 3.9:
        counts[sender] = counts.get(sender, 0) + 1
print(counts['gives'], counts['takes'])
";

#[test]
fn a_socket_of_two_programs_carries_each_at_its_share() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        lab.write("flood.py", format!("{TOGETHER}{HANDED}{FLOOD}"));
        lab.write("count.py", COUNT);
        let outcome = lab.run(
            "nodes:\n  far: {run: python3 count.py, ready: 'log:^ready'}\n  box:\n    after: far\n    run:\n      \
             - {run: python3 flood.py gives far, send: {weight: 3}}\n      \
             - {run: python3 flood.py takes far}\n\
             links: [{between: [box, far], rate: 2mbit, queue: 20p}]\n",
        );
        outcome.assert_code(0);
        let shares = shares(&outcome);
        let counted = outcome.output("far");
        let counts = counted.lines().last().unwrap().split(' ');
        let counts: Vec<f64> = counts.map(|it| it.parse().unwrap()).collect();
        let ratio = counts[0] / counts[1];
        assert!((ratio / 3.0 - 1.0).abs() < 0.05, "{counts:?} is {ratio} to 1: {shares:#}");
        assert_eq!(shares["shared_flows"], 1, "{shares:#}");
        assert!(shares["attributed_packets"].as_u64() > Some(800), "{shares:#}");
        assert!(shares["unattributed_packets"].as_u64() < Some(50), "{shares:#}");
        assert!(
            outcome.stdout.contains("several programs had: 1; of their packets"),
            "{}",
            outcome.describe()
        );
    }
}

/// Sends some datagrams by each way that there is, and some that fail, once the socket is known to
/// be shared.
const WAYS: &str = "
import ctypes
kind, far = sys.argv[1:]
sender = handed(kind, bound)
begin = together()
sender.sendto(b'first', (far, 9))
time.sleep(max(0, begin + 1 - time.time()))
if kind == 'takes':
    class Part(ctypes.Structure):
        _fields_ = [('base', ctypes.c_char_p), ('length', ctypes.c_size_t)]
    class Message(ctypes.Structure):
        _fields_ = [('name', ctypes.c_void_p), ('name_length', ctypes.c_uint32), ('parts', ctypes.POINTER(Part)),
                    ('count', ctypes.c_size_t), ('control', ctypes.c_void_p), ('control_length', ctypes.c_size_t),
                    ('flags', ctypes.c_int), ('padding', ctypes.c_int), ('sent', ctypes.c_uint32)]
    library = ctypes.CDLL(None, use_errno=True)
    sender.connect((socket.gethostbyname(far), 9))
    for _ in range(10):
        sender.send(b'send')
        os.write(sender.fileno(), b'write')
        os.writev(sender.fileno(), [b'wri', b'tev'])
        sender.sendmsg([b'send', b'msg'])
        parts = [(Part * 2)(Part(b'many', 4), Part(str(at).encode(), 1)) for at in range(3)]
        messages = (Message * 3)(*[Message(None, 0, part, 2, None, 0, 0, 0, 0) for part in parts])
        assert library.sendmmsg(sender.fileno(), messages, 3, 0) == 3
        try:
            sender.send(bytes(65530))
            raise SystemExit('too much was sent')
        except OSError:
            pass
        assert library.send(sender.fileno(), ctypes.c_void_p(16), 100, 0) == -1
        assert ctypes.get_errno() == 14
        time.sleep(0.05)
else:
    time.sleep(1.5)
";

#[test]
fn datagrams_are_their_senders_by_whatever_call_they_are_sent() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        lab.write("ways.py", format!("{TOGETHER}{HANDED}{WAYS}"));
        lab.write(
            "take.py",
            "import socket, time\nsink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
             sink.bind(('', 9))\nprint('ready', flush=True)\ntime.sleep(600)\n",
        );
        let outcome = lab.run(
            "nodes:\n  far: {run: python3 take.py, daemon: true, ready: 'log:^ready'}\n  box:\n    after: far\n    run:\n      - {run: python3 ways.py gives far, send: {weight: 3}}\n      \
             - {run: python3 ways.py takes far}\n\
             links: [{between: [box, far], rate: 2mbit}]\n",
        );
        outcome.assert_code(0);
        let shares = shares(&outcome);
        // 7 datagrams ten times; of the first two it may not be known yet that several can send.
        assert_eq!(
            shares["programs"][1]["packets"].as_u64().map(|it| it / 10),
            Some(7),
            "{shares:#}"
        );
        assert!(shares["attributed_packets"].as_u64() >= Some(70), "{shares:#}");
        assert!(shares["unattributed_packets"].as_u64() <= Some(2), "{shares:#}");
    }
}

#[test]
fn datagrams_of_two_sockets_with_one_port_are_their_senders() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        lab.write(
            "bound.py",
            "import socket, sys, time\n\
             sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
             sender.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n\
             sender.bind(('', 7000))\n\
             time.sleep(0.5)\n\
             if len(sys.argv) > 2:\n    \
                 for _ in range(20):\n        \
                     sender.sendto(b'x', (sys.argv[1], 9))\n        \
                     time.sleep(0.05)\n\
             time.sleep(1)\n",
        );
        let outcome = lab.run(
            "nodes:\n  box:\n    run:\n      - {run: python3 bound.py far}\n      \
             - {run: python3 bound.py far send, send: {weight: 2}}\n  far: {}\n\
             links: [{between: [box, far], rate: 1mbit}]\n",
        );
        outcome.assert_code(0);
        let shares = shares(&outcome);
        assert_eq!(shares["shared_flows"], 1, "{shares:#}");
        assert!(shares["programs"][1]["packets"].as_u64() >= Some(10), "{shares:#}");
    }
}

#[test]
fn a_stream_of_two_programs_is_the_first_ones_and_said_to_be_shared() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = lab(users()[0]);
    let stream = "
kind, far = sys.argv[1:]
sender = handed(kind, lambda: socket.create_connection((far, 5000)))
if kind == 'takes':
    for _ in range(30):
        sender.send(bytes(1000))
        time.sleep(0.1)
else:
    time.sleep(3.5)
";
    lab.write("pair.py", format!("{TOGETHER}{HANDED}{stream}"));
    let outcome = lab.run(
        "nodes:\n  far: {run: python3 sink.py, daemon: true, ready: 'tcp:5000'}\n  box:\n    after: far\n    run:\n      \
         - {run: python3 pair.py gives far}\n      - {run: python3 pair.py takes far, send: {weight: 2}}\n\
         links: [{between: [box, far], rate: 1mbit}]\n",
    );
    outcome.assert_code(0);
    let shares = shares(&outcome);
    assert_eq!((&shares["shared_flows"], &shares["attributed_packets"]), (&1.into(), &0.into()));
    assert!(shares["unattributed_packets"].as_u64() >= Some(10), "{shares:#}");
    assert_eq!(shares["programs"][1]["packets"], 0, "{shares:#}");
}

#[test]
fn what_is_executed_in_the_node_is_the_rest_and_the_discipline_stays() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let mut live = lab.start(
            "nodes: {box: {run: [{run: sleep 30, send: {min: 100kbit}}]}, far: {}}\n\
             links: [{between: [box, far], rate: 1mbit}]\n",
        );
        live.wait_for(&[("event", "run-began")]);
        let refused = live.ask("set", &["box--far", "discipline=codel"]);
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(text.contains("that programs share does not change"), "{refused:?}");
        let refused = live.ask("set", &["box--far", "rate=99kbit"]);
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(text.contains("less than the 100000 bit/s"), "{refused:?}");
        let sender = "import socket, sys, time\n\
             sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
             for _ in range(20):\n    \
                 sender.sendto(b'x', ('far', 9))\n    \
                 time.sleep(0.05)\n";
        let seen = live.exec("box", &["python3", "-c", sender]);
        assert_eq!(seen.status.code(), Some(0), "{seen:?}");
        live.ask("stop", &[]);
        let shares = shares(&live.finish());
        assert_eq!(shares["programs"][0]["packets"], 0, "{shares:#}");
        assert!(shares["programs"][1]["packets"].as_u64() >= Some(20), "{shares:#}");
        assert_eq!(
            shares["unowned_packets"], 0,
            "it has an owner, which is no program: {shares:#}"
        );
    }
}
