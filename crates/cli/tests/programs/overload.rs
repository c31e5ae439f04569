//! More work than the machine has processor time for. With a bound of nanoseconds every machine is
//! overloaded by a flood: the tests are of the response, not of the speed of this machine.

use std::fs;
use std::process::Command;

use super::support::{Lab, any_user, is_missing};

/// Sends small datagrams as fast as it can.
const FLOOD: &str = "
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[1])):
    s.sendto(b'x' * 64, (sys.argv[2], 9))
print('sent')
";

/// On the way, so that a packet is more work for the emulation than for its sender, also where the
/// emulation comes first.
const ROUTERS: usize = 60;

fn scenario(lab: &Lab, packets: u32, policy: &str) -> String {
    lab.write("flood.py", FLOOD);
    let routers: Vec<String> = (1..=ROUTERS).map(|number| format!("r{number}")).collect();
    let ends = routers.windows(2).map(|pair| format!(", {{between: [{}, {}]}}", pair[0], pair[1]));
    let (first, last, between) = (&routers[0], &routers[ROUTERS - 1], ends.collect::<String>());
    format!(
        "on-overload: {policy}
nodes:
  a: {{run: python3 flood.py {packets} b}}
  b: {{}}
routers: [{}]
links: [{{between: [a, {first}], name: wire}}{between}, {{between: [{last}, b]}}]
",
        routers.join(", ")
    )
}

#[test]
fn under_overload_that_is_reported_the_run_goes_on_and_answers() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let text = scenario(&lab, 200_000, "report");
        let mut live = lab.start_with(&text, &["--max-lateness", "2ns"]);
        live.wait_for(&[("event", "overloaded")]);
        let answer = live.ask("ps", &["--json"]);
        assert!(answer.status.success(), "{answer:?}");
        let outcome = live.finish();
        outcome.assert_code(1);
        assert!(outcome.output("a").contains("sent"));
        let report = outcome.report();
        assert!(report["machine"]["overloads"].as_u64() > Some(0), "{report}");
        assert_eq!(report["machine"]["freezes"], 0);
        assert!(outcome.stdout.contains("the emulation fell behind"), "{}", outcome.stdout);
        outcome.assert_conserved();
    }
}

#[test]
fn a_freeze_pauses_all_programs_until_the_emulation_has_caught_up() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let text = scenario(&lab, 50_000, "freeze");
        let outcome = lab.run_with(&text, &["--max-lateness", "2ns"]);
        outcome.assert_code(1);
        assert!(outcome.output("a").contains("sent"), "every program went on in the end");
        let machine = &outcome.report()["machine"];
        assert!(machine["freezes"].as_u64() > Some(0), "{machine}");
        assert!(machine["frozen_ns"].as_u64() > Some(0), "{machine}");
        let froze = outcome.events(&[("event", "overloaded")]);
        assert!(froze.iter().any(|event| event["frozen"] == true), "{froze:?}");
        assert!(!outcome.events(&[("event", "caught-up")]).is_empty());
        assert!(outcome.stdout.contains("all programs were paused"), "{}", outcome.stdout);
    }
}

#[test]
fn an_event_that_pauses_a_node_outlasts_a_freeze() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let text = scenario(&lab, 50_000, "freeze")
            .replace("  b: {}", "  b: {run: \"sh -c 'sleep 0.3; echo woke'\", daemon: true}")
            + "events: [{at: 1ms, node: b, do: pause}]\n";
        let outcome = lab.run_with(&text, &["--max-lateness", "2ns"]);
        assert!(outcome.report()["machine"]["freezes"].as_u64() > Some(0));
        assert_eq!(outcome.output("b"), "", "it was paused from the beginning");
    }
}

#[test]
fn an_overload_ends_the_run_where_the_command_line_wants_it() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let text = scenario(&lab, 100_000_000, "report");
        let options = ["--max-lateness", "2ns", "--on-overload", "abort"];
        let outcome = lab.run_with(&text, &options);
        outcome.assert_code(1);
        let report = outcome.report();
        let ended = report["ended"].as_str().unwrap();
        assert!(ended.starts_with("overloaded: the emulation was "), "{ended}");
        assert!(!outcome.is_faithful());
    }
}

/// Prints the scheduling policy of this process: the 41st field of its statistics (proc(5)).
const POLICY: &str = "
with open('/proc/self/stat') as file:
    print('policy', file.read().rsplit(')', 1)[1].split()[38])
";

#[test]
fn the_packet_loop_and_the_thread_of_events_alone_come_first_where_root_runs_them() {
    if is_missing(&["python3"]) {
        return;
    }
    // In a container root may be without the right: util-linux's chrt meets the same refusal.
    let tried = Command::new("chrt").args(["-r", "1", "true"]).output();
    let root_may = tried.is_ok_and(|output| output.status.success());
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("policy.py", POLICY);
        let mut live = lab.start(
            "nodes: {a: {run: python3 policy.py}, b: {run: sleep 600}}\n\
             links: [{between: [a, b]}]\n",
        );
        live.wait_for_output("a", "policy");
        let expected = user.number() == 0 && root_may;
        let first = if expected { REAL_TIME } else { NORMAL };
        let main = live.id().to_string();
        let of = |wanted: &dyn Fn(&str, &str) -> bool| policies(live.id(), wanted);
        assert_eq!(of(&|_, name| name == "engine"), [first]);
        // The main thread does the events of the file.
        assert_eq!(of(&|thread, _| thread == main), [first]);
        let others = of(&|thread, name| name != "engine" && thread != main);
        assert!(others.iter().all(|policy| *policy == NORMAL), "{others:?}");
        assert_eq!(live.ask("stop", &[]).status.code(), Some(0));
        let outcome = live.finish();
        assert!(outcome.output("a").contains("policy 0"), "{}", outcome.output("a"));
        assert_eq!(outcome.report()["machine"]["real_time"], expected);
        lab.assert_nothing_left();
    }
}

/// Of the threads of a process that are wanted by their numbers and names.
fn policies(process: u32, wanted: impl Fn(&str, &str) -> bool) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let stat = |thread: std::io::Result<fs::DirEntry>| {
        let stat = fs::read_to_string(thread.unwrap().path().join("stat")).unwrap();
        let number = stat.split_once(' ').unwrap().0;
        let (name, fields) = stat.split_once('(').unwrap().1.rsplit_once(')').unwrap();
        let policy = fields.split_whitespace().nth(38).unwrap().parse().unwrap();
        wanted(number, name).then_some(policy)
    };
    threads.filter_map(stat).collect()
}

/// `SCHED_OTHER`, `SCHED_RR`.
const NORMAL: u32 = 0;
const REAL_TIME: u32 = 2;

#[test]
fn the_programs_of_each_of_few_nodes_are_in_a_session_of_their_own() {
    for user in any_user() {
        let lab = Lab::new(user);
        let session = "{run: cut -d' ' -f6 /proc/self/stat}";
        let outcome = lab
            .run(&format!("nodes: {{a: {session}, b: {session}}}\nlinks: [{{between: [a, b]}}]\n"));
        // Within the node's PID namespace: that of its init.
        for node in ["a", "b"] {
            assert_eq!(outcome.output(node), "1\n");
        }
    }
}
