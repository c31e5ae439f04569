//! Runs over several machines, put together from what their parts have left.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use windtunnel_dataplane::testing::plan;
use windtunnel_model::Span;
use windtunnel_trace::sample::COLUMNS;

use super::*;
use crate::testing::sample;

/// Node `a` is on member 0, `b` on member 1. Lanes: a-r, r-a, r-b, b-r.
const FILE: &str = "
nodes: {a: {run: x}, b: {run: y}}
routers: [r]
links: [{between: [a, r]}, {between: [r, b]}]
expect:
  - {node: a, log: ok}
  - {path: [a, b], throughput: {min: 1kbit}}
  - {path: [b, a], throughput: {min: 1kbit}}
  - {path: [a, b], rtt: {max: 1s}}
";

struct Bench {
    plan: Plan,
    root: tempfile::TempDir,
    parts: RunPartFolders,
}

impl Bench {
    fn new() -> Self {
        let (plan, root) = (plan(FILE), tempfile::tempdir().unwrap());
        let members = ["m0", "m1"].map(|name| (name.to_owned(), Ok(root.path().join(name))));
        let parts = RunPartFolders {
            members: members.into(),
            placement: vec![0, 1],
            ..RunPartFolders::default()
        };
        let bench = Bench { plan, parts, root };
        for member in [0, 1] {
            bench.leave(member, |_| {});
            bench.write(member, "links.csv", &format!("{COLUMNS}\n"));
            bench.write(member, "events.jsonl", "");
        }
        bench
    }

    fn folder(&self, member: usize) -> &Path {
        self.parts.members[member].1.as_ref().unwrap()
    }

    fn write(&self, member: usize, name: &str, text: &str) {
        fs::write(self.folder(member).join(name), text).unwrap();
    }

    /// What a member leaves behind: nothing went wrong, and its nodes have written a line each.
    fn leave(&self, member: usize, change: impl FnOnce(&mut Value)) {
        let folder = self.folder(member);
        for node in &self.plan.nodes {
            fs::create_dir_all(folder.join("nodes").join(&node.name)).unwrap();
        }
        let own = &self.plan.nodes[member].name;
        fs::write(folder.join("nodes").join(own).join("stdout"), format!("of {own}\n")).unwrap();
        let mut results: Value = serde_json::from_slice(&sample(&self.plan)).unwrap();
        results["member"] = json!(member);
        results["lost"] = json!([]);
        results["tally"]["kernel_drops"] = json!([]);
        results["device_drops"] = json!({"packets": 0, "backlog_packets": 0});
        results["notes"] = json!([]);
        results["carried"] = json!({"volumes": [], "logs": [], "failure": null});
        for lane in results["tally"]["lanes"].as_array_mut().unwrap() {
            lane["phases"] = json!([]);
        }
        let all = results["programs"].as_array().unwrap().clone();
        results["programs"] = json!([all[member]]);
        change(&mut results);
        self.write(member, "part.json", &results.to_string());
    }

    fn gather(&self) -> Result<RunReport, GatherError> {
        let root = self.root.path().join("run");
        let folder = RunOutputFolder::create(&root, &self.plan).unwrap();
        gather(
            &self.plan,
            JudgingTerms { plan_hash: "", late_above: Span::from_millis(1), attempts: &[] },
            &folder,
            &self.parts,
        )
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root.path().join("run").join(name)).unwrap()
    }
}

fn exit(results: &mut Value, code: u8) {
    let state = &mut results["programs"][0][1];
    let exit = json!({"code": code, "signal": null});
    state["life"] = json!({"Exited": {"exit": exit}});
    state["last_exit"] = exit;
    state["starts"] = json!(1);
}

#[test]
fn programs_of_all_machines_are_judged_together() {
    let bench = Bench::new();
    bench.leave(0, |results| exit(results, 0));
    bench.leave(1, |results| exit(results, 3));
    let report = bench.gather().unwrap();
    let failed: Vec<_> = report.programs.iter().map(|it| (it.node.as_str(), it.failed)).collect();
    assert_eq!(failed, [("a", false), ("b", true)]);
    assert!(report.verdict.failures.contains(&"b (y): exited with 3".to_owned()));
    let hosts: Vec<_> = report.hosts.iter().map(|host| (host.host.as_str(), host.nodes)).collect();
    assert_eq!(hosts, [("m0", 1), ("m1", 1)]);
}

#[test]
fn each_nodes_files_come_from_its_own_machine() {
    let bench = Bench::new();
    bench.gather().unwrap();
    assert_eq!(bench.read("nodes/a/stdout"), "of a\n");
    assert_eq!(bench.read("nodes/b/stdout"), "of b\n");
}

#[test]
fn samples_of_one_interval_are_added_though_machines_took_them_at_slightly_different_times() {
    let bench = Bench::new();
    let row = |at: &str, lane: &str, bytes: u64| {
        format!("{at},{lane},1,100,1,100,{bytes},0,0,0,0,7,0,0,0,0,0,0,0,0,0\n")
    };
    let text = |rows: &[String]| format!("{COLUMNS}\n{}", rows.concat());
    bench.write(
        0,
        "links.csv",
        &text(&[row("0.100010", "a--r,a-r", 500), row("0.200010", "a--r,a-r", 500)]),
    );
    bench.write(
        1,
        "links.csv",
        &text(&[row("0.099990", "a--r,a-r", 250), row("0.300000", "r--b,r-b", 80)]),
    );
    bench.leave(0, |results| {
        for lane in results["tally"]["lanes"].as_array_mut().unwrap() {
            lane["counters"]["delivered_packets"] = json!(3);
        }
    });
    let report = bench.gather().unwrap();
    let csv = bench.read("links.csv");
    let rows: Vec<&str> = csv.lines().filter(|row| row.contains(",a-r,")).collect();
    assert!(rows[0].starts_with("0.100010,a--r,a-r,2,200,2,200,750,"), "{}", rows[0]);
    assert!(rows[1].starts_with("0.200010,a--r,a-r,1,100,1,100,500,"), "{}", rows[1]);
    // 1250 bytes in 0.3 s, the average of a run shorter than a second: 4166 bytes/s.
    let lane = report.links.iter().find(|link| link.direction == "a-r").unwrap();
    assert_eq!(lane.achieved.rate_peak_bit_per_s, Some(4166 * 8));
}

#[test]
fn events_are_in_order_of_time_and_what_all_machines_report_is_there_once() {
    let bench = Bench::new();
    let began = |at: u64| format!("{{\"at_ns\":{at},\"event\":\"run-began\"}}\n");
    let warning = "{\"at_ns\":3,\"event\":\"warning\",\"message\":\"w\"}\n";
    bench.write(0, "events.jsonl", &format!("{}{{\"at_ns\":9,\"event\":\"healed\"}}\n", began(1)));
    bench.write(1, "events.jsonl", &format!("{}{warning}{{\"at_ns\":8,\"ev", began(2)));
    bench.gather().unwrap();
    let events = bench.read("events.jsonl");
    let times: Vec<u64> = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["at_ns"].as_u64().unwrap())
        .collect();
    assert_eq!(times, [1, 3, 9]);
}

#[test]
fn counters_are_sums_and_payload_is_what_the_receivers_machine_counted() {
    let bench = Bench::new();
    for (member, packets) in [(0, 30), (1, 12)] {
        bench.leave(member, |results| {
            let tally = &mut results["tally"];
            tally["lanes"][2]["counters"]["delivered_packets"] = json!(packets);
            tally["late"] = json!(1);
            let flow = |from: u32, to: u32| {
                let payload = json!({"start": 0, "counts": [[100_000_000, 1000 + member]]});
                json!({"from": from, "to": to, "payload": payload, "counted": 0})
            };
            tally["flows"] = json!([flow(0, 1), flow(1, 0)]);
        });
    }
    let report = bench.gather().unwrap();
    let link = report.links.iter().find(|link| link.direction == "r-b").unwrap();
    assert_eq!(link.delivered_packets, 42);
    let paths = bench.read("paths.csv");
    let bytes: Vec<&str> =
        paths.lines().skip(1).map(|row| row.rsplit(',').next().unwrap()).collect();
    // From a to b: as member 1 has counted it.
    assert_eq!(bytes, ["1001", "1000"]);
}

#[test]
fn the_worst_reason_to_end_is_that_of_the_run() {
    let bench = Bench::new();
    bench.leave(0, |results| results["ending"] = json!("Stopped"));
    bench.leave(1, |results| results["ending"] = json!({"Fatal": "the disk is full"}));
    let report = bench.gather().unwrap();
    assert_eq!(report.ended, "the disk is full");
    bench.leave(0, |results| results["ending"] = json!({"Interrupted": 15}));
    fs::remove_dir_all(bench.root.path().join("run")).unwrap();
    bench.leave(1, |_| {});
    assert_eq!(bench.gather().unwrap().verdict.exit_code, 143);
}

#[test]
fn a_lost_machine_is_named_with_its_nodes_and_since_when() {
    let mut bench = Bench::new();
    bench.parts.members[1].1 = Err("it did not answer for 5s".to_owned());
    bench.leave(0, |results| results["lost"] = json!([[1, "2s"]]));
    let report = bench.gather().unwrap();
    let lost = &report.lost[0];
    assert_eq!((lost.host.as_str(), lost.nodes, lost.since_ns), ("m1", 1, Some(2_000_000_000)));
    assert!(!report.verdict.faithful);
    assert_eq!(
        report.verdict.unfaithful[0],
        "host m1 is lost since 2.00s: of its 1 node nothing is known"
    );
}

#[test]
fn a_loss_that_load_explains_is_repeatable_and_another_is_not() {
    let silent = || {
        let mut bench = Bench::new();
        bench.parts.members[1].1 = Err("it is lost to the other machines".to_owned());
        bench.parts.silent.insert(1);
        bench.leave(0, |results| {
            results["lost"] = json!([[1, "2s"]]);
            (results["busy"], results["idle"], results["stolen"]) = (json!(5), json!(95), json!(0));
        });
        bench
    };
    let disturbed = |bench: &Bench| {
        let verdict = bench.gather().unwrap().verdict;
        fs::remove_dir_all(bench.root.path().join("run")).unwrap();
        assert!(!verdict.faithful);
        (verdict.disturbed, verdict.unfaithful[0].clone())
    };
    let bench = silent();
    assert!(!disturbed(&bench).0, "a machine with power that was cut looks the same");
    // The other machine had no processor to spare: 95 % of the time.
    bench.leave(0, |results| {
        results["lost"] = json!([[1, "2s"]]);
        (results["busy"], results["idle"], results["stolen"]) = (json!(95), json!(5), json!(0));
    });
    let (is_disturbed, text) = disturbed(&bench);
    assert!(is_disturbed, "{text}");
    let why = "likely cause: host m0: the processors are saturated: busy for 95% of the time";
    assert!(text.contains(why), "{text}");
    // It has answered again since, and has stood still as long as it was silent.
    let mut bench = silent();
    let aside = bench.root.path().join("m1");
    bench.parts.members[1].1 = Ok(aside.clone());
    bench.leave(1, |results| results["tally"]["stalls"]["longest"] = json!("6s"));
    bench.parts.members[1].1 = Err("the other machines went on without it".to_owned());
    bench.parts.aside.insert(1, aside);
    let (is_disturbed, text) = disturbed(&bench);
    assert!(is_disturbed && text.contains("likely cause: it stood still for 6.00s"), "{text}");
    // What failed for a reason of its own fails again.
    let mut bench = silent();
    bench.parts.silent.clear();
    bench.leave(0, |results| (results["busy"], results["idle"]) = (json!(95), json!(5)));
    assert!(!disturbed(&bench).0);
}

#[test]
fn the_side_that_was_cut_off_is_left_out_of_the_run() {
    let bench = Bench::new();
    bench.leave(1, |results| results["apart"] = json!(true));
    let report = bench.gather().unwrap();
    assert!(!report.partial);
    assert_eq!(report.hosts.len(), 1);
    assert_eq!(report.lost[0].why, "it was cut off, and the others went on without it");
}

#[test]
fn a_side_that_is_alone_is_a_partial_run() {
    let mut bench = Bench::new();
    bench.parts.members[0].1 = Err("cut".to_owned());
    bench.leave(1, |results| results["apart"] = json!(true));
    let report = bench.gather().unwrap();
    assert!(report.partial);
    assert!(report.verdict.text.starts_with("PARTIAL, "), "{}", report.verdict.text);
}

#[test]
fn a_run_of_which_nothing_is_left_has_no_verdict() {
    let mut bench = Bench::new();
    bench.parts.members.iter_mut().for_each(|(_, part)| *part = Err("lost".to_owned()));
    let error = bench.gather().unwrap_err();
    assert_eq!(error.to_string(), "all machines of the run are lost");
}

#[test]
fn results_that_cannot_be_read_are_named_by_their_machine() {
    let bench = Bench::new();
    bench.leave(1, |results| results["member"] = json!(0));
    let error = bench.gather().unwrap_err();
    assert_eq!(error.to_string(), "cannot read what host m1 has counted");
}

#[test]
fn an_overload_is_reported_for_the_machine_that_had_it() {
    let bench = Bench::new();
    bench.leave(1, |results| {
        results["tally"]["refused"] = json!(3);
        results["tally"]["remote"]["refused_datagrams"] = json!(562);
        results["began_late"] = json!("105ms");
        results["notes"] = json!(["a limit could not be raised"]);
    });
    let report = bench.gather().unwrap();
    assert_eq!(report.hosts.iter().map(|it| it.refused_datagrams).collect::<Vec<_>>(), [0, 562]);
    let verdict = report.verdict;
    let doubts = [
        "host m1: the run began 105ms late there: programs and events were late",
        "host m1: the kernel refused 3 packets that were due",
    ];
    assert_eq!(verdict.unfaithful, doubts);
    let refused = "host m1: 562 datagrams were refused at its port: of another sender or run, not \
                   whole, or sent twice";
    assert_eq!(verdict.warnings, ["host m1: a limit could not be raised", refused]);
}

/// Two machines that exchange packets and know each other's clocks as well as that.
fn with_clocks(bench: &Bench, errors_us: [Option<u64>; 2]) {
    with_clocks_and(bench, 5, errors_us);
}

/// The same where so many packets went each way.
fn with_clocks_and(bench: &Bench, packets: u64, errors_us: [Option<u64>; 2]) {
    for (member, error) in (0..).zip(errors_us) {
        let other = 1 - member;
        bench.leave(member, |results| {
            let way = json!({
                "datagrams": packets, "packets": packets, "bytes": 100 * packets, "datagrams_before": 0,
            });
            results["tally"]["peers"] = json!([{
                "member": other, "sent": way, "received": way, "overtaken": 0, "silences": [],
            }]);
            let error = error.map(|us| format!("{us}us"));
            let bound = json!({"ahead_ns": 10_100_000, "error": error, "by": "exchanges"});
            let known = error.is_some().then(|| json!([[other, bound]]));
            results["clocks"] = known.unwrap_or(json!([]));
        });
    }
}

#[test]
fn machines_that_know_each_others_clocks_less_well_than_the_bound_are_doubted() {
    let bench = Bench::new();
    // As over +20 ms one way and 0 back: half of that is not known.
    with_clocks(&bench, [Some(300), Some(10_580)]);
    let report = bench.gather().unwrap();
    let doubt = "delays one way between host m0 and host m1 may be wrong by 10.5ms, too long one \
                 way and too short the other: so well their clocks are known, by the fastest messages \
                 each way (round trips are right; `delays: round-trips` if only these matter)";
    assert_eq!(report.verdict.unfaithful, [doubt]);
    assert!(!report.verdict.disturbed, "another attempt finds the same clocks");
    let clock = report.hosts[1].peers[0].clock.as_ref().unwrap();
    assert_eq!(
        (clock.ahead_ns, clock.error_ns, clock.by.as_str()),
        (10_100_000, 10_580_000, "exchanges")
    );
}

#[test]
fn clocks_within_the_bound_are_no_doubt_and_unknown_ones_are() {
    for (errors, is_faithful) in [
        ([Some(1_000), Some(999)], true),
        ([Some(1_001), Some(0)], false),
        ([Some(5), None], false),
    ] {
        let bench = Bench::new();
        with_clocks(&bench, errors);
        let verdict = bench.gather().unwrap().verdict;
        assert_eq!(verdict.faithful, is_faithful, "{errors:?}: {:?}", verdict.unfaithful);
        assert!(verdict.warnings.is_empty());
    }
}

#[test]
fn machines_between_which_no_packet_goes_need_not_know_each_others_clocks() {
    for errors in [[Some(300), Some(10_580)], [None, None]] {
        let bench = Bench::new();
        with_clocks_and(&bench, 0, errors);
        let verdict = bench.gather().unwrap().verdict;
        assert!(verdict.faithful, "{errors:?}: {:?}", verdict.unfaithful);
    }
}

#[test]
fn where_only_round_trips_matter_clocks_are_a_warning() {
    let mut bench = Bench::new();
    bench.plan = plan(&format!("{FILE}delays: round-trips\n"));
    with_clocks(&bench, [Some(300), Some(10_580)]);
    let verdict = bench.gather().unwrap().verdict;
    assert!(verdict.faithful, "{:?}", verdict.unfaithful);
    let warning = verdict.warnings.iter().find(|text| text.contains("clocks")).unwrap();
    assert!(
        warning.starts_with("delays one way between host m0 and host m1 may be wrong by 10.5ms")
    );
    assert!(warning.ends_with("the file says that only round trips matter)"), "{warning}");
}

#[test]
fn an_interval_is_that_of_the_nearest_tenth_of_a_second() {
    let at = |ms| Time::ZERO + Span::from_millis(ms);
    let of = |ms| interval::interval_of(at(ms));
    assert_eq!([of(51), of(100), of(149), of(150), of(249)], [1, 1, 1, 2, 2]);
}
