//! Well-known programs on small machines: each does its work, and the processor time of its node is
//! within the node's share.

use serde_json::Value;

use super::clients::{build_fetch, go};
use super::support::{Lab, Outcome, assert_limits_were_held, is_missing, users};

/// Runs a scenario whose programs must end well. Where the machine kept the limit's mechanism itself
/// from running, one second may be a little over it, and the report says so.
#[track_caller]
fn run(lab: &Lab, scenario: &str) -> Outcome {
    let outcome = lab.run(scenario);
    assert!(outcome.code < 2, "{}", outcome.describe());
    let report = outcome.report();
    assert_eq!(report["verdict"]["failures"], serde_json::json!([]), "{}", outcome.describe());
    assert_limits_were_held(&report);
    outcome
}

/// Whether a node wanted more than its share, and had no more.
#[track_caller]
fn assert_held(outcome: &Outcome, node: &str) {
    let report = outcome.report();
    let limits = report["limits"].as_array().unwrap();
    let limit = limits.iter().find(|it| it["node"] == node).expect(node).clone();
    assert!(limit["bound_windows"].as_u64() >= Some(1), "{limit}");
    let part =
        limit["delivered_median_cpus"].as_f64().unwrap() / limit["asked_cpus"].as_f64().unwrap();
    assert!(part < 1.05 && part > 0.05, "{limit}");
    assert_eq!(limit["failure"], Value::Null, "{limit}");
}

const LINKS: &str = "links: [{between: [server, client], latency: 1ms, rate: 1gbit}]\n";

#[test]
fn nginx_serves_what_a_tenth_of_a_processor_can() {
    if is_missing(&["nginx", "wrk"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        lab.write("nginx.conf", include_str!("../scenarios/nginx.conf"));
        let outcome = run(
            &lab,
            &format!(
                "nodes:\n\
                 \x20 server:\n\
                 \x20   run: nginx -p . -c nginx.conf\n\
                 \x20   daemon: true\n\
                 \x20   ready: tcp:80\n\
                 \x20   cpu: 10%\n\
                 \x20   memory: 100MB\n\
                 \x20   pids: 20\n\
                 \x20 client: {{run: 'wrk -t 1 -c 16 -d 4s http://server/', after: server}}\n{LINKS}"
            ),
        );
        assert_held(&outcome, "server");
        let output = outcome.output("client");
        assert!(output.contains("requests in") && !output.contains("Non-2xx"), "{output}");
        lab.assert_nothing_left();
    }
}

#[test]
fn redis_answers_with_a_tenth_of_a_processor_and_little_memory() {
    if is_missing(&["redis-server", "redis-benchmark"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let outcome = run(
            &lab,
            &format!(
                "nodes:\n\
                 \x20 server:\n\
                 \x20   run: [redis-server, --save, '', --protected-mode, no]\n\
                 \x20   daemon: true\n\
                 \x20   ready: tcp:6379\n\
                 \x20   cpu: 10%\n\
                 \x20   memory: 64MB\n\
                 \x20   open-files: 128\n\
                 \x20 client:\n\
                 \x20   run: redis-benchmark -h server -n 20000 -c 20 -t set,get -q\n\
                 \x20   after: server\n{LINKS}"
            ),
        );
        assert_held(&outcome, "server");
        let output = outcome.output("client");
        assert!(output.contains("GET:") && output.contains("requests per second"), "{output}");
    }
}

#[test]
fn a_static_server_of_go_has_all_its_threads_within_its_share() {
    if is_missing(&["wrk"]) {
        return;
    }
    let Some(go) = go() else { return };
    for user in users() {
        let lab = Lab::new(user);
        build_fetch(&lab, &go);
        let outcome = run(
            &lab,
            &format!(
                "nodes:\n\
                 \x20 server: {{run: ./fetch serve, daemon: true, ready: tcp:80, cpu: 20%}}\n\
                 \x20 client: {{run: 'wrk -t 1 -c 16 -d 4s http://server/', after: server}}\n{LINKS}"
            ),
        );
        assert_held(&outcome, "server");
        let output = outcome.output("client");
        assert!(output.contains("requests in"), "{output}");
    }
}

#[test]
fn a_compressor_of_many_threads_takes_as_long_as_its_share_says() {
    if is_missing(&["xz", "sh", "timeout"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let outcome = run(
            &lab,
            &format!(
                "nodes:\n\
                 \x20 server:\n\
                 \x20   run: [timeout, 5, sh, -c, 'xz -T 4 -1 -c < /dev/zero > /dev/null']\n\
                 \x20   cpu: 40%\n\
                 \x20   memory: 400MB\n\
                 \x20 client: {{}}\nexpect: [{{node: server, exit: 124}}]\n{LINKS}"
            ),
        );
        assert_held(&outcome, "server");
    }
}

#[test]
fn iperf3_and_a_flood_of_output_leave_other_nodes_alone() {
    if is_missing(&["iperf3", "yes", "ping", "timeout"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.run_with(
            "nodes:\n\
             \x20 server: {run: iperf3 -s -1, ready: tcp:5201, cpu: 20%}\n\
             \x20 client: {run: iperf3 -c server -t 3, after: server, send: 2MB/s}\n\
             \x20 flood: {run: timeout 3 yes, cpu: 20%}\n\
             \x20 a: {run: ping -c 20 -i 0.1 -w 30 b}\n\
             \x20 b: {}\n\
             routers: [r]\n\
             links:\n\
             - {between: [server, r]}\n\
             - {between: [client, r]}\n\
             - {between: [flood, r]}\n\
             - {between: [a, r], latency: 5ms}\n\
             - {between: [b, r]}\n\
             expect: [{node: flood, exit: 124}]\n",
            &["--output-limit", "1MB"],
        );
        assert!(outcome.code < 2, "{}", outcome.describe());
        assert_eq!(outcome.report()["verdict"]["failures"], serde_json::json!([]));
        let replies = outcome.output("a");
        assert!(replies.contains("20 received"), "{replies}");
        assert!(outcome.output("flood").len() <= 1_100_000, "{}", outcome.output("flood").len());
        lab.assert_nothing_left();
    }
}
