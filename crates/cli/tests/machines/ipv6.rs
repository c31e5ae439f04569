//! Machines that have only IPv6.

use super::support::{MAX_LATENESS, Machines, Run, is_missing};

#[test]
fn agents_meet_and_a_run_is_done_over_machines_that_have_only_ipv6() {
    if is_missing(&["ping"]) {
        return;
    }
    let Some(machines) = Machines::bare(2) else { return };
    for (at, own) in ["fd77::1/64", "fd77::2/64"].into_iter().enumerate() {
        for words in ["-4 addr flush dev uplink", &format!("-6 addr add {own} dev uplink nodad")] {
            let mut ip = machines.as_root(at, "ip");
            assert!(ip.args(words.split(' ')).status().unwrap().success(), "ip {words}");
        }
    }
    let everywhere = ["--listen", "[::]:7447"];
    let mut first = machines.agent(0, &everywhere);
    // Without a route to others and without another agent, it finds its address by itself.
    first.wait_for("listens on [::]:7447, others reach it at [fd77::1]:7447");
    let mut second = machines.agent(1, &[&everywhere[..], &["--join", "fd77::1"]].concat());
    first.wait_for("[fd77::2]:7447 is there");
    second.wait_for("[fd77::1]:7447 is there");
    machines.meet_at("[fd77::1]", 2);
    machines.write("net.yaml", FILE);
    // One as a name server has it, and one as agents print it.
    let words = ["run", "net.yaml", "--hosts", "fd77::1,[fd77::2]:7447", "--key", "../key"];
    let options = ["--out", "out", "--max-lateness", MAX_LATENESS, "--attempts", "5"];
    let run = machines.windtunnel(0, &[&words[..], &options].concat());
    let outcome = Run::start(run, machines.home(0).join("out")).finish();
    outcome.assert_code(0);
    let output = outcome.output("a");
    assert_eq!(output.matches(" 3 received").count(), 2, "{output}");
    let report = outcome.report();
    let sent = |at: usize| report["hosts"][at]["peers"][0]["sent_packets"].as_u64();
    assert!(sent(0) >= Some(6) && sent(1) >= Some(6), "{}", report["hosts"]);
}

const FILE: &str = "
nodes:
  a: {run: [sh, -c, ping -4 -c 3 -i 0.1 b && ping -6 -c 3 -i 0.1 b], pin: one}
  b: {pin: two}
links:
  - {between: [a, b], latency: 10ms}
";
