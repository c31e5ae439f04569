//! What is looked at of runs over machines: the live page, and repetitions that are laid over each other.

use std::process::Stdio;

use serde_json::{Value, json};

use super::page::{Page, next};
use super::support::{Machines, is_missing, until};

#[test]
fn a_run_over_machines_is_seen_and_changed_by_its_page_until_it_ends() {
    if is_missing(&["ping"]) {
        return;
    }
    let Some(mut machines) = Machines::new(2) else { return };
    let mut run = machines.start(FILE, &[]);
    run.wait_for("icmp_seq=3");
    let mut web = machines.windtunnel_outside(0, &["web", run.name(), "--until-end"]);
    let mut web = web.stdout(Stdio::piped()).spawn().unwrap();
    let page = Page::of(&mut web);
    assert!(page.url().starts_with("http://127.0.0.1:"), "{}", page.url());
    let list = page.json("GET", "/api/runs", "");
    assert_eq!(list[0]["alive"], true, "{list}");
    let id = list[0]["id"].as_str().unwrap().to_owned();
    let document = page.json("GET", &format!("/api/runs/{id}/document"), "");
    assert_eq!(document["runs"][0]["lanes"].as_array().unwrap().len(), 4, "{document}");

    let mut stream = page.open("GET", &format!("/api/runs/{id}/stream?after=0"), "");
    let sample = next(&mut stream, "sample");
    let lanes: Vec<u64> =
        sample["lanes"].as_array().unwrap().iter().map(|lane| lane[0].as_u64().unwrap()).collect();
    assert!(lanes.contains(&0) && lanes.contains(&3), "lanes of both machines: {sample}");
    let status = next(&mut stream, "status");
    assert_eq!(status["nodes"].as_array().unwrap().len(), 2, "{status}");

    // `far` is an end of node b, which is on the machine that does not lead.
    let argv = json!({ "argv": ["set", "far", "latency=80ms"] }).to_string();
    let done = page.json("POST", &format!("/api/runs/{id}/command"), &argv);
    assert_eq!(done["exit"], 0, "{done}");
    until("that the page gets the new latency", || {
        let links = next(&mut stream, "links");
        let lanes = links["links"].as_array().unwrap().iter();
        let latencies: Vec<&Value> =
            lanes.filter(|it| it["link"] == "far").map(|it| &it["properties"]["latency"]).collect();
        (latencies == [&json!("80ms"), &json!("80ms")]).then_some(())
    });
    let argv = json!({ "argv": ["stop"] }).to_string();
    assert_eq!(page.json("POST", &format!("/api/runs/{id}/command"), &argv)["exit"], 0);
    let ended = next(&mut stream, "ended");
    let shown = &ended["document"]["runs"][0];
    assert!(shown["summary"]["elapsed_ns"].is_u64(), "{ended}");
    assert!(shown["series"]["lanes"].as_array().unwrap().iter().all(Value::is_object), "{shown}");
    run.finish().assert_passed();
    assert!(web.wait().unwrap().success());
}

#[test]
fn repetitions_over_machines_are_runs_with_seeds_that_count_up() {
    let Some(mut machines) = Machines::new(2) else { return };
    let run = machines.start(SHORT, &["--repeat", "2", "--seed", "7", "--attempts", "5"]);
    let outcome = run.finish();
    outcome.assert_code(0);
    let reports = ["1", "2"].map(|number| {
        serde_json::from_str::<Value>(&outcome.file(&format!("{number}/run.json"))).unwrap()
    });
    assert_eq!((&reports[0]["seed"], &reports[1]["seed"]), (&7.into(), &8.into()));
    let page = machines.ask(0, &["report", outcome.folder.to_str().unwrap(), "--json"]);
    let document: Value = serde_json::from_slice(&page.stdout).unwrap();
    assert_eq!(document["comparison"]["groups"][0]["runs"], json!([0, 1]), "{page:?}");
}

const FILE: &str = "
nodes:
  a: {run: ping -4 -i 0.1 b, pin: one}
  b: {run: sleep 600, daemon: true, pin: two}
routers: [r]
links:
  - {between: [a, r], latency: 5ms, name: near}
  - {between: [b, r], latency: 5ms, name: far}
";
const SHORT: &str = "
nodes:
  a: {run: 'true', pin: one}
  b: {pin: two}
links:
  - {between: [a, b], latency: 5ms}
";
