use serde_json::{Value, json};
use windtunnel_control::frame;

use super::*;

/// A run of two nodes on two machines, as JSON.
pub(crate) fn run() -> Value {
    let interface = |port: u32, outward: &str| {
        json!({"port": port, "name": "eth0", "link": 0, "outward": outward, "v4": format!("10.0.0.{}", port + 1),
            "v6": null, "mtu": 1500})
    };
    let node = |name: &str, port: u32, outward: &str| {
        json!({"name": name, "group": name, "forward": false, "user": "invoker", "sysctl": {},
            "interfaces": [interface(port, outward)], "programs": []})
    };
    let profile = json!({"latency": "5ms", "jitter": {"spread": "0ns", "distribution": "uniform"}, "loss": "none",
        "duplicate": "0%", "corrupt": "0%",
        "reorder": {"by-jitter": false, "probability": "0%", "extra": "0ns"},
        "rate": null, "overhead": null, "mtu": 1500, "queue": null, "discipline": "drop-tail"});
    let end = |node: u32| json!({"vertex": {"node": node}, "interface": 0});
    let member = |last: u8| json!({"agent": format!("{last:016x}"), "host": format!("m{last}"), "address": format!("10.0.0.{last}:7447")});
    json!({"run": 7, "plan_hash": "0".repeat(64), "placement": [0, 1], "base_dir": "/",
        "members": [member(1), member(2)],
        "shared": {"max_lateness": "1ms", "output_limit": "1MB", "offload": true, "packet_memory": "1MB"},
        "plan": {"name": "net", "seed": 1, "duration": null,
            "routing": {"metric": "latency", "ecmp": false, "reroute": null},
            "nodes": [node("a", 0, "up"), node("b", 1, "down")], "routers": [], "routes": [], "events": [],
            "expectations": [],
            "links": [{"name": "a--b", "ends": [end(0), end(1)], "profiles": [profile, profile]}]}})
}

/// Why an answer with a changed run is refused.
#[track_caller]
fn refused(path: &str, value: Value) -> String {
    let mut run = run();
    *run.pointer_mut(path).unwrap() = value;
    run.as_object_mut().unwrap().insert("answer".to_owned(), json!("run"));
    frame::decode::<AgentReply>(&serde_json::to_vec(&run).unwrap()).unwrap_err().to_string()
}

#[test]
fn a_run_as_agents_send_it_is_accepted() {
    let mut run = run();
    run.as_object_mut().unwrap().insert("answer".to_owned(), json!("run"));
    let answer = frame::decode::<AgentReply>(&serde_json::to_vec(&run).unwrap()).unwrap();
    assert!(matches!(answer, AgentReply::Run(_)));
}

#[test]
fn a_run_with_nodes_outside_its_folder_is_refused() {
    for name in ["../../.ssh", "/root/.ssh", "", "..", "a\u{0}b", "\u{1b}[2J"] {
        let why = refused("/plan/nodes/0/name", json!(name));
        assert!(why.contains("cannot name a node"), "{why}");
    }
    assert!(refused("/plan/name", json!("../x")).contains("cannot name an experiment"));
}

#[test]
fn numbers_that_index_nothing_and_texts_that_are_nothing_are_refused() {
    let wrong = [
        ("/placement", json!([0, 2])),
        ("/placement", json!([0])),
        ("/placement", json!([])),
        ("/members", json!([])),
        ("/members/1/agent", json!("0000000000000001")),
        ("/members/1/agent", json!("one")),
        ("/members/1/host", json!("\u{1b}]0;x")),
        ("/plan_hash", json!("0")),
        ("/base_dir", json!("..")),
        ("/plan/nodes/0/interfaces/0/link", json!(u32::MAX)),
        ("/plan/nodes/0/interfaces/0/port", json!(u32::MAX)),
        ("/plan/links/0/ends/0/vertex/node", json!(u32::MAX)),
        ("/plan/links/0/ends/0/interface", json!(u32::MAX)),
        ("/plan/links/0/profiles/0/mtu", json!(0)),
    ];
    for (path, value) in wrong {
        refused(path, value);
    }
}

#[test]
fn a_file_of_another_machine_has_a_plain_path() {
    let file = |path: &str| AgentReply::File { path: path.to_owned(), bytes: 1, executable: false };
    file("nodes/a/stdout").validate().unwrap();
    for path in ["../x", "/x", "", "nodes//x", "nodes/./x", "a\0b"] {
        file(path).validate().unwrap_err();
    }
}

#[test]
fn the_agent_that_was_asked_is_one_of_those_that_are_there() {
    let hosts =
        ClusterHosts { asked: 7, hosts: Vec::new(), silent: Vec::new(), throughput: Vec::new() };
    hosts.validate().unwrap_err();
}

fn card(last: u8) -> Value {
    json!({"agent": format!("{last:016x}"), "host": "m", "address": "10.0.0.1:7447", "labels": [],
        "windtunnel": "1", "kernel": "6", "cpus": 1, "load_hundredths": 0, "memory": "1MB",
        "memory_free": "1MB", "uplink": null, "peers": []})
}

/// Why a card with a changed value is refused; empty if it is not.
fn card_with(path: &str, value: Value) -> String {
    let mut card = card(1);
    card.as_object_mut().unwrap().entry(path[1..].split('/').next().unwrap()).or_insert(json!(0));
    *card.pointer_mut(path).unwrap() = value;
    let card: AgentDescription = serde_json::from_value(card).unwrap();
    card.validate().err().map(|why| why.to_string()).unwrap_or_default()
}

#[test]
fn amounts_of_a_machine_are_taken_up_to_an_exabyte_and_not_beyond() {
    for field in ["/load_hundredths", "/memory", "/memory_free", "/cpu_millis_max"] {
        let amount = |number: u64| match field {
            "/memory" | "/memory_free" => json!(format!("{number}B")),
            _ => json!(number),
        };
        assert_eq!(card_with(field, amount(AMOUNT_MAX)), "", "{field}");
        let why = card_with(field, amount(AMOUNT_MAX + 1));
        assert_eq!(why, "`m` has more than any machine", "{field}");
    }
    assert_eq!(card_with("/cpus", json!(1_u32 << 28)), "");
    assert_eq!(card_with("/cpus", json!((1_u32 << 28) + 1)), "`m` has more than any machine");
}

#[test]
fn a_reason_for_which_a_machine_has_no_nodes_is_short() {
    let unfit = |why: &str| json!({"why": why, "hint": why});
    assert_eq!(card_with("/unfit", unfit("no namespaces")), "");
    assert_ne!(card_with("/unfit", unfit(&"x".repeat(1 << 20))), "");
}

#[test]
fn numbers_of_agents_are_up_to_sixteen_hexadecimal_digits() {
    for agent in ["0", "ffffffffffffffff", "0123456789ABCDEF"] {
        assert_eq!(card_with("/agent", json!(agent)), "", "{agent}");
    }
    for agent in ["", "00000000000000000", "g", "-1", "0x1", "\u{665}"] {
        let why = card_with("/agent", json!(agent));
        assert!(why.ends_with("is not the number of an agent"), "{agent}: {why}");
    }
}

#[test]
fn texts_of_a_card_are_short_and_without_control_characters() {
    for field in ["/host", "/windtunnel", "/kernel"] {
        for text in ["", "\u{1b}[2J", "a\nb"] {
            let why = card_with(field, json!(text));
            assert!(why.ends_with("cannot name a machine"), "{field} {text:?}: {why}");
        }
    }
    let labels = |count: usize| (0..count).map(|number| json!(number.to_string())).collect();
    assert_eq!(card_with("/labels", labels(LABELS_MAX)), "");
    assert_eq!(card_with("/labels", labels(LABELS_MAX + 1)), "1001 labels");
}

#[test]
fn a_peer_is_at_most_a_day_away_and_its_clock_within_bounds() {
    let peer = |rtt_ns: u64, offset_ns: i64| {
        let clock = json!({"offset_ns": offset_ns, "error_ns": 1, "rtt_ns": rtt_ns});
        card_with("/peers", json!([{"agent": "2", "address": "10.0.0.2:1", "clock": clock}]))
    };
    let bound = i64::try_from(AMOUNT_MAX).unwrap();
    assert_eq!((peer(RTT_NS_MAX, bound), peer(0, -bound)), (String::new(), String::new()));
    let why = "agent 2 is further away than a machine can be";
    for (rtt_ns, offset_ns) in [(RTT_NS_MAX + 1, 0), (0, bound + 1), (0, i64::MIN)] {
        assert_eq!(peer(rtt_ns, offset_ns), why);
    }
}

#[test]
fn what_runs_have_of_a_machine_is_bounded_so_that_sums_fit() {
    let amounts = [
        AllocatedResources { cpu_millis: AMOUNT_MAX + 1, ..AllocatedResources::default() },
        AllocatedResources {
            memory: windtunnel_model::Bytes(u64::MAX),
            ..AllocatedResources::default()
        },
        AllocatedResources { up_bit_per_s: AMOUNT_MAX + 1, ..AllocatedResources::default() },
        AllocatedResources { down_bit_per_s: u64::MAX, ..AllocatedResources::default() },
    ];
    for reserved in amounts {
        let why = reserved.validate().unwrap_err().to_string();
        assert_eq!(why, "runs have more than any machine has");
        assert!(AMOUNT_MAX.checked_mul(2).is_some());
    }
}

#[test]
fn a_question_about_a_part_names_one_of_the_members() {
    let ask = |member: u16| {
        let run = serde_json::from_value(run()).unwrap();
        AgentRequest::Part { run, member }.validate().err().map(|why| why.to_string())
    };
    assert_eq!((ask(1), ask(2)), (None, Some("member 2 of 2".to_owned())));
    let receive = |member| AgentRequest::Receive { run: 1, member }.validate().is_ok();
    assert!(receive(9_999) && !receive(10_000));
    let stop = AgentRequest::Exec { run: 1, request: Box::new(ControlRequest::Stop), size: None };
    assert_eq!(stop.validate().unwrap_err().to_string(), "that is not a command");
}

#[test]
fn reasons_of_up_to_64_kib_are_taken() {
    let reason = |bytes: usize| "x".repeat(bytes);
    for (bytes, is_taken) in [(64 << 10, true), ((64 << 10) + 1, false)] {
        let messages = [
            AgentReply::Error { message: reason(bytes) }.validate().is_ok(),
            RunMemberMessage::Failed { why: reason(bytes) }.validate().is_ok(),
        ];
        assert_eq!(messages, [is_taken; 2], "{bytes}");
    }
    // The part checks its own words.
    RunMemberMessage::News { news: reason(1 << 20) }.validate().unwrap();
}

/// The JSON that goes over the wire: other versions of agents and clients read it.
#[test]
fn messages_have_the_wire_form_that_they_always_had() {
    let address = "10.0.0.1:7".parse().unwrap();
    let asks = [
        (AgentRequest::Card, json!({"ask": "card"})),
        (AgentRequest::Hosts { measure: true }, json!({"ask": "hosts", "measure": true})),
        (AgentRequest::Take, json!({"ask": "take"})),
        (AgentRequest::Send { to: address }, json!({"ask": "send", "to": "10.0.0.1:7"})),
        (AgentRequest::Join { address }, json!({"ask": "join", "address": "10.0.0.1:7"})),
        (AgentRequest::Runs, json!({"ask": "runs"})),
        (AgentRequest::Watch { run: 7 }, json!({"ask": "watch", "run": 7})),
        (
            AgentRequest::Receive { run: 7, member: 1 },
            json!({"ask": "receive", "run": 7, "member": 1}),
        ),
        (AgentRequest::Control { run: 7 }, json!({"ask": "control", "run": 7})),
        (AgentRequest::Fetch { run: 7 }, json!({"ask": "fetch", "run": 7})),
        (AgentRequest::Forget { run: 7 }, json!({"ask": "forget", "run": 7})),
    ];
    for (ask, wire) in asks {
        assert_eq!(serde_json::to_value(&ask).unwrap(), wire);
        assert_eq!(
            frame::decode::<AgentRequest>(&serde_json::to_vec(&wire).unwrap()).unwrap(),
            ask
        );
    }
    let orders = [
        (PartCommand::Measure, json!({"order": "measure"})),
        (
            PartCommand::Begin { agent: "1f".into(), at_ns: 9 },
            json!({"order": "begin", "agent": "1f", "at_ns": 9}),
        ),
        (
            PartCommand::Peers { addresses: vec![None, Some(address)] },
            json!({"order": "peers", "addresses": [null, "10.0.0.1:7"]}),
        ),
    ];
    for (order, wire) in orders {
        assert_eq!(serde_json::to_value(&order).unwrap(), wire);
    }
    let commands = [
        (ToCommand::InputEnds, json!({"to": "input-ends"})),
        (ToCommand::Signal { signal: 2 }, json!({"to": "signal", "signal": 2})),
        (ToCommand::Size { rows: 1, columns: 2 }, json!({"to": "size", "rows": 1, "columns": 2})),
    ];
    for (message, wire) in commands {
        assert_eq!(serde_json::to_value(&message).unwrap(), wire);
    }
}
