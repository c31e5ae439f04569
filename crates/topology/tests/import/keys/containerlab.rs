//! containerlab's keys.

use super::{Case, case};

pub(super) fn cases() -> Vec<Case> {
    [nodes(), links(), others()].into_iter().flatten().collect()
}

fn row(key: &'static str, carried: &'static str, file: String, figure: &'static str) -> Case {
    case("containerlab", key, carried, file, figure)
}

/// Two nodes and what else is said.
fn lab(nodes: &str, links: &str) -> String {
    format!(
        "name: lab\ntopology:\n  nodes:\n    a: {{kind: linux}}\n    b: {{kind: linux}}\n{nodes}  \
         links:\n{links}"
    )
}

fn link(rest: &str) -> String {
    lab("", &format!("    - {{endpoints: [\"a:e1\", \"b:e1\"]{rest}}}\n"))
}

fn node(text: &str) -> String {
    lab(&format!("    {text}\n"), "    - {endpoints: [\"a:e1\", \"b:e1\"]}\n")
}

/// From one node to the other through two switches.
const SWITCHED: &str = "    - {endpoints: [\"a:e1\", \"s1:p1\"]}\n    \
                        - {endpoints: [\"s1:p2\", \"s2:p1\"]}\n    \
                        - {endpoints: [\"s2:p2\", \"b:e1\"]}\n";

fn nodes() -> Vec<Case> {
    vec![
        row(
            "`kind: linux`, `kind: ext-container`",
            "exact",
            node("c: {kind: ext-container}"),
            "nodes:\n  a: {}\n  b: {}\n  c: {}",
        ),
        row(
            "`kind: bridge`, `kind: ovs-bridge`",
            "exact",
            lab("    s1: {kind: bridge}\n    s2: {kind: ovs-bridge}\n", SWITCHED),
            "lans: [s1] … - {between: [a, s1]}\n  - {between: [s1, b]}",
        ),
        row("other kinds", "approximated", node("r: {kind: nokia_srlinux}"), "routers:\n  [r]"),
        row(
            "`group`, `defaults: kind`",
            "exact",
            "topology:\n  defaults: {kind: linux}\n  groups: {g: {kind: bridge}}\n  nodes:\n    a: {}\n    s: {group: g}\n  \
             links:\n    - {endpoints: [\"a:e\", \"s:p\"]}\n".to_owned(),
            "a: {} … lans: [s]",
        ),
    ]
}

fn links() -> Vec<Case> {
    vec![
        row("`endpoints`", "exact", link(""), "- {between: [a, b]}"),
        row("`mtu`", "exact", link(", mtu: 9000"), "mtu: 9000"),
        row("`delay`, `latency`", "exact", link(", delay: 50ms"), "latency: 50ms"),
        // netem's `delay 50ms 10ms` is 40 to 60 ms.
        row(
            "`jitter`",
            "exact",
            link(", delay: 50ms, jitter: 10ms"),
            "{between: [a, b], latency: 40ms, jitter: 20ms, reorder: jitter}",
        ),
        row("`loss`", "exact", link(", loss: 1.5"), "loss: 1.5%"),
        row("`rate`", "exact", link(", rate: 10000"), "rate: 10mbit, overhead: 14B"),
    ]
}

fn others() -> Vec<Case> {
    vec![
        row(
            "`image`, `exec`, `env`",
            "not carried",
            node("c: {kind: linux, image: alpine, exec: [ls], env: {A: b}}"),
            "c (alpine) … exec of c, env of c",
        ),
        row(
            "`mac` of an endpoint",
            "not carried",
            lab(
                "",
                "    - {endpoints: [{node: a, interface: e1, mac: \"02:00:00:00:00:01\"}, \"b:e1\"]}\n",
            ),
            "Keys of endpoints: mac",
        ),
        row(
            "links to `host`, `mgmt-net`, `macvlan`",
            "not carried",
            lab(
                "",
                "    - {endpoints: [\"a:e1\", \"b:e1\"]}\n    - {endpoints: [\"a:e2\", \"host:x\"]}\n    \
                 - {endpoints: [\"a:e3\", \"mgmt-net:x\"]}\n    - {type: macvlan, endpoint: {node: a, interface: e4}}\n",
            ),
            "Links that leave the topology: line 8, line 9, macvlan (line 10)",
        ),
        row(
            "`mgmt`",
            "not carried",
            format!("mgmt: {{network: n}}\n{}", link("")),
            "Keys of the file: mgmt",
        ),
        row(
            "`labels`",
            "description",
            node("c: {kind: linux, labels: {a: b}}"),
            "Keys of nodes: labels",
        ),
    ]
}
