//! A link without a file.

use serde_json::Value;

use super::support::{Lab, is_missing, users};

#[test]
fn a_command_runs_across_a_link_and_its_end_is_the_end() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let words = ["link", "--latency", "10ms", "--out", "run", "--max-lateness", "5s", "--"];
        let ping = ["ping", "-c", "3", "-i", "0.05", "server"];
        let output = lab.windtunnel(&[words.as_slice(), &ping].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let seen = std::fs::read_to_string(lab.path().join("run/nodes/client/stdout")).unwrap();
        let rtt = seen.lines().last().unwrap().split(['=', '/']).nth(4).unwrap();
        assert!(rtt.trim().parse::<f64>().unwrap() >= 20.0, "{seen}");
    }
}

#[test]
fn the_command_starts_once_the_server_listens_and_the_loss_is_that_of_one_direction() {
    if is_missing(&["iperf3"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let link = ["link", "--rate", "10mbit", "--down", "loss=1% latency=3ms", "--out", "run"];
        let server = ["--max-lateness", "5s", "--server", "iperf3 -s -1", "--"];
        let client = ["iperf3", "-c", "server", "-n", "200K"];
        let words = [link.as_slice(), &server, &client].concat();
        let output = lab.windtunnel(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let report = std::fs::read_to_string(lab.path().join("run/run.json")).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        let asked = |direction: usize| &report["links"][direction]["asked"];
        assert_eq!(asked(0)["rate"], "10mbit");
        assert_eq!(asked(0)["latency"], "0ns");
        assert_eq!((&asked(1)["rate"], &asked(1)["latency"]), (&"10mbit".into(), &"3ms".into()));
    }
}

#[test]
fn what_is_printed_is_a_scenario_and_mistakes_are_shown_in_it() {
    let lab = Lab::new(users()[0]);
    let words = ["link", "--rate", "10mbit", "--print", "--server", "cat", "--", "true"];
    let output = lab.windtunnel(&words).output().unwrap();
    lab.write("net.yaml", &output.stdout);
    let check = lab.windtunnel(&["check", "net.yaml"]).output().unwrap();
    assert_eq!(check.status.code(), Some(0), "{check:?}");
    let wrong = lab.windtunnel(&["link", "--latency", "40", "--", "true"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(3));
    let text = String::from_utf8(wrong.stderr).unwrap();
    assert!(text.contains("command line:7:14") && text.contains("latency: 40"), "{text}");
}
