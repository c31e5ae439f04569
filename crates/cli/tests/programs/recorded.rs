//! Well-known programs under recording: nothing is missing, every request adds up, and what they
//! did is played again with the same sizes.

use serde_json::{Value, json};

use super::clients::{build_fetch, go, name_of, ssh_scenario};
use super::support::evidence::{explain, requests, statistics, sum, workload};
use super::support::{Lab, Outcome, any_user, is_missing};

/// Names of nodes, the server's first, and of the link between them.
struct Network {
    server: &'static str,
    client: &'static str,
    /// The link's keys, without what it is between.
    link: &'static str,
}

impl Network {
    fn links(&self) -> String {
        let Network { server, client, link } = self;
        format!("links: [{{between: [{server}, {client}], name: wire, {link}}}]\n")
    }

    /// Runs programs with all layers recorded that an ordinary user can record.
    #[track_caller]
    fn record(&self, lab: &Lab, nodes: &str) -> Outcome {
        lab.pass(&format!("record: [engine, calls, tcp]\nnodes:\n{nodes}{}", self.links()))
    }

    /// Plays what programs did.
    #[track_caller]
    fn replay(&self, lab: &Lab, lines: &str) -> Outcome {
        lab.write("workload.jsonl", lines);
        let Network { server, client, .. } = self;
        let nodes = [server, client].map(|name| format!("  {name}: {{replay: workload.jsonl}}\n"));
        self.record(lab, &nodes.concat())
    }
}

/// Checks a recorded run of programs: of each connection all layers say the same, and at least so
/// many requests are explained.
#[track_caller]
pub(super) fn check(lab: &Lab, outcome: &Outcome, least: usize) {
    let report = outcome.report();
    assert_eq!(report["verdict"]["incomplete"], Value::Null, "{}", report["verdict"]);
    let statistics = statistics(lab, outcome);
    let mut connections = 0;
    for flow in statistics["flows"].as_array().unwrap() {
        if flow["protocol"] != "tcp" {
            continue;
        }
        connections += 1;
        for direction in ["forward", "reverse"] {
            let way = |field: &str| flow[direction][field].as_u64().unwrap();
            let sent = way("payload_bytes") - way("resent_bytes");
            assert_eq!(way("written_bytes"), sent, "{flow:#}");
            assert!(way("read_bytes") <= sent, "{flow:#}");
        }
    }
    assert!(connections > 0, "{statistics:#}");
    let explained = explain(lab, outcome, &["--all"]);
    assert_eq!(explained["problems"], json!([]), "{:#}", explained["problems"]);
    let all = requests(&explained, "request");
    assert!(all.len() >= least, "{} requests", all.len());
    for request in &all {
        let unknown = ["not_recorded", "network"];
        let unknown = |part: &Value| unknown.iter().any(|name| part["part"] == *name);
        assert_eq!(sum(&request["parts"], unknown), 0, "{request:#}");
    }
}

/// Bytes that a side wrote and read, in order; what was done in several calls is one.
fn sizes(steps: &Value) -> Vec<(&'static str, u64)> {
    let mut sizes: Vec<(&str, u64)> = Vec::new();
    for step in steps.as_array().unwrap() {
        for action in ["write", "read"] {
            let Some(bytes) = step[action].as_u64() else { continue };
            match sizes.last_mut() {
                Some((last, sum)) if *last == action => *sum += bytes,
                _ => sizes.push((action, bytes)),
            }
        }
    }
    sizes
}

/// All connections' sizes, in an order of their own: connections may begin at the same time.
fn all_sizes(connections: &[Value]) -> Vec<[Vec<(&'static str, u64)>; 2]> {
    let both = |it: &Value| [sizes(&it["client_steps"]), sizes(&it["server_steps"])];
    let mut all: Vec<_> = connections.iter().map(both).collect();
    all.sort_unstable();
    all
}

/// Plays what a run did on the same network: all sizes are the same.
#[track_caller]
fn check_replay(lab: &Lab, network: &Network, outcome: &Outcome) -> Outcome {
    let (lines, connections) = workload(lab, outcome);
    let played = network.replay(lab, &lines);
    let (_, again) = workload(lab, &played);
    assert_eq!(all_sizes(&again), all_sizes(&connections));
    played
}

#[test]
fn nginx_and_wrk() {
    if is_missing(&["nginx", "wrk"]) {
        return;
    }
    let network = Network { server: "web", client: "load", link: "latency: 2ms, rate: 100mbit" };
    for user in any_user() {
        let lab = Lab::new(user);
        let configuration = include_str!("../scenarios/nginx.conf");
        lab.write("nginx.conf", configuration);
        let outcome = network.record(
            &lab,
            "  web: {run: 'nginx -p . -c nginx.conf', daemon: true, ready: tcp:80}\n\
             \x20 load: {run: 'wrk -t 1 -c 4 -d 1s http://web/', after: web}\n",
        );
        check(&lab, &outcome, 50);
        check_replay(&lab, &network, &outcome);
        lab.assert_nothing_left();
    }
}

#[test]
fn redis_and_its_benchmark() {
    if is_missing(&["redis-server", "redis-benchmark"]) {
        return;
    }
    let network = Network { server: "db", client: "load", link: "latency: 1ms, rate: 100mbit" };
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = network.record(
            &lab,
            "  db:\n\
             \x20   run: [redis-server, --save, '', --protected-mode, no]\n\
             \x20   daemon: true\n\
             \x20   ready: tcp:6379\n\
             \x20 load: {run: 'redis-benchmark -h db -n 400 -c 5 -t set,get -q', after: db}\n",
        );
        check(&lab, &outcome, 800);
        check_replay(&lab, &network, &outcome);
        lab.assert_nothing_left();
    }
}

#[test]
fn curl_and_pythons_server() {
    if is_missing(&["python3", "curl"]) {
        return;
    }
    let network = Network { server: "web", client: "client", link: "latency: 5ms, rate: 20mbit" };
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("page", vec![b'x'; 300_000]);
        let outcome = network.record(
            &lab,
            "  web: {run: 'python3 -m http.server 80', daemon: true, ready: tcp:80}\n\
             \x20 client: {run: 'curl -sS -o /dev/null http://web/page', after: web}\n",
        );
        check(&lab, &outcome, 1);
        check_replay(&lab, &network, &outcome);
    }
}

#[test]
fn a_static_server_of_go() {
    if is_missing(&["curl"]) {
        return;
    }
    let Some(go) = go() else { return };
    let network = Network { server: "web", client: "client", link: "latency: 5ms, rate: 20mbit" };
    for user in any_user() {
        let lab = Lab::new(user);
        build_fetch(&lab, &go);
        let outcome = network.record(
            &lab,
            "  web: {run: ./fetch serve, daemon: true, ready: tcp:80}\n\
             \x20 client: {run: [{run: ./fetch http://web/}, {run: curl -sS http://web/}], after: web}\n",
        );
        check(&lab, &outcome, 2);
        check_replay(&lab, &network, &outcome);
    }
}

/// Becomes a static program in each of the ways that the C library has.
const BECOME: &str = r#"
import ctypes, os, sys

way, program = sys.argv[1], sys.argv[2:]
libc = ctypes.CDLL(None, use_errno=True)

def texts(*of):
    return (ctypes.c_char_p * (len(of) + 1))(*(text.encode() for text in of))

variables = texts(*(f"{name}={value}" for name, value in os.environ.items()))
folder, name = os.path.split(program[0])
file = os.open(program[0], os.O_RDONLY)
if way == "execve":
    os.execv(program[0], program)
elif way == "execvp":
    os.environ["PATH"] = folder
    os.execvp(name, program)
elif way == "fexecve":
    libc.fexecve(file, texts(*program), variables)
elif way == "execveat":
    libc.execveat(os.open(folder, os.O_PATH), name.encode(), texts(*program), variables, 0)
elif way == "execveat-open":
    libc.execveat(file, b"", texts(*program), variables, 0x1000)
sys.exit(f"{way}: {os.strerror(ctypes.get_errno())}")
"#;

#[test]
fn a_static_program_that_a_dynamic_one_becomes() {
    if is_missing(&["python3"]) {
        return;
    }
    let Some(go) = go() else { return };
    let network = Network { server: "web", client: "client", link: "latency: 5ms, rate: 20mbit" };
    let ways = ["execve", "execvp", "fexecve", "execveat", "execveat-open"];
    let clients: String = ways
        .iter()
        .map(|way| format!("{{run: python3 become.py {way} ./fetch http://web/}}, "))
        .collect();
    for user in any_user() {
        let lab = Lab::new(user);
        build_fetch(&lab, &go);
        lab.write("become.py", BECOME);
        let outcome = network.record(
            &lab,
            &format!(
                "  web: {{run: ./fetch serve, daemon: true, ready: tcp:80}}\n\
                 \x20 client: {{run: [{clients}], after: web}}\n"
            ),
        );
        check(&lab, &outcome, ways.len());
    }
}

#[test]
fn ssh() {
    if is_missing(&["ssh", "sshd", "ssh-keygen"]) {
        return;
    }
    let network = Network { server: "server", client: "client", link: "latency: 3ms" };
    for user in any_user() {
        let lab = Lab::new(user);
        // Nothing is missing: sshd refuses users without a shell in the password file.
        let Some(name) = name_of(lab.user().number()) else {
            eprintln!("passed over: user {} has no shell", lab.user().number());
            continue;
        };
        let outcome = lab.pass(&format!("record: [engine, calls, tcp]\n{}", ssh_scenario(&lab)));
        assert_eq!(outcome.output("client"), format!("{name} on server\n"));
        check(&lab, &outcome, 5);
        check_replay(&lab, &network, &outcome);
    }
}

/// Three connections at once, on each of which twenty lines are echoed.
const ASYNCIO: &str = r#"
import asyncio, sys

async def serve(reader, writer):
    while line := await reader.readline():
        await asyncio.sleep(0.003)
        writer.write(b"echo " + line)
        await writer.drain()
    writer.close()

async def server():
    async with await asyncio.start_server(serve, "", 7000) as listening:
        await listening.serve_forever()

async def client(host, name):
    reader, writer = await asyncio.open_connection(host, 7000)
    for number in range(20):
        line = b"%d %d\n" % (name, number)
        writer.write(line)
        await writer.drain()
        assert await reader.readline() == b"echo " + line
    writer.close()
    await writer.wait_closed()

async def clients(host):
    await asyncio.gather(*(client(host, name) for name in range(3)))

asyncio.run(server() if sys.argv[1] == "serve" else clients(sys.argv[2]))
"#;

#[test]
fn a_program_of_pythons_asyncio() {
    if is_missing(&["python3"]) {
        return;
    }
    let network = Network { server: "echo", client: "client", link: "latency: 10ms, rate: 10mbit" };
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("aio.py", ASYNCIO);
        let outcome = network.record(
            &lab,
            "  echo: {run: python3 aio.py serve, daemon: true, ready: tcp:7000}\n\
             \x20 client: {run: python3 aio.py ask echo, after: echo}\n",
        );
        check(&lab, &outcome, 60);
        let thinking = |part: &Value| part["part"] == "server_thinking";
        for request in requests(&explain(&lab, &outcome, &["--all"]), "request") {
            assert!(sum(&request["parts"], thinking) >= 3_000_000, "{request:#}");
        }
        check_replay(&lab, &network, &outcome);
    }
}
