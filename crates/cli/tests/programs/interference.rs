//! What programs of nodes make that drops or delays packets beside the emulation is said.

use super::support::{Lab, Outcome, is_missing, is_root, users};

/// The warnings of a run that speak of what a node has.
fn warnings(outcome: &Outcome, node: &str) -> Vec<String> {
    let report = outcome.report();
    let warnings = report["verdict"]["warnings"].as_array().unwrap();
    let warnings = warnings.iter().filter_map(serde_json::Value::as_str);
    let begin = format!("node {node} has ");
    let reported = warnings.filter_map(|warning| warning.strip_prefix(&begin)).map(str::to_owned);
    reported.collect()
}

const FILTERS: &str =
    "packet filters of its own, whose drops, delays and changes are not the emulation's: ";

/// A node that runs these commands as its root, and stays.
fn node(name: &str, commands: &str) -> String {
    format!(
        "  {name}: {{user: root, run: [sh, -c, \"{commands} && echo made && sleep 600\"], \
         daemon: true, ready: 'log:made'}}\n"
    )
}

/// The kernel counts what it drops; what is reported is that number.
#[test]
fn packets_that_a_nodes_own_filter_drops_are_reported_with_their_number() {
    if is_missing(&["nft", "ping"]) {
        return;
    }
    let rule = "nft add table ip t && nft add chain ip t c '{ type filter hook input priority 0; }' \
                && nft add rule ip t c icmp type echo-request numgen inc mod 5 0 counter drop";
    let nodes = node("b", rule);
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.pass(&format!(
            "ipv6: false\nnodes:\n  a: {{after: b, run: ping -c 20 -i 0.02 -W 1 b}}\n{nodes}\
             links: [{{between: [a, b], latency: 1ms}}]\n"
        ));
        assert!(outcome.output("a").contains("20 packets transmitted, 16 received"));
        let text = format!("{FILTERS}ip table t, chain c (input): drop (4 packets)");
        assert_eq!(warnings(&outcome, "b"), std::slice::from_ref(&text), "{}", outcome.describe());
        assert!(outcome.stderr.contains(&text) || outcome.stdout.contains(&text));
        assert_eq!(warnings(&outcome, "a"), [""; 0]);
    }
}

#[test]
fn filters_of_all_kinds_are_reported_by_what_they_can_do() {
    if is_missing(&["nft", "ip"]) {
        return;
    }
    let table = "nft add table inet p && nft add chain inet p c ";
    let cases = [
        (
            "policy",
            format!("{table} '{{ type filter hook input priority 0; policy drop; }}'"),
            Some("inet table p, chain c (input): policy drop (not counted)"),
        ),
        (
            "silent",
            format!(
                "{table} '{{ type filter hook output priority 0; }}' && nft add rule inet p c udp dport 9 drop"
            ),
            Some("inet table p, chain c (output): drop (not counted)"),
        ),
        (
            "limited",
            format!("{table} && nft add rule inet p c limit rate over 5/second counter reject"),
            Some("inet table p, chain c: reject + rate limit (0 packets)"),
        ),
        (
            "harmless",
            format!(
                "{table} '{{ type filter hook input priority 0; }}' && nft add rule inet p c counter accept"
            ),
            None,
        ),
        (
            "removed",
            format!("{table} && nft delete table inet p"),
            Some("rules of nftables, removed before the end"),
        ),
    ];
    let nodes: String = cases.iter().map(|(name, commands, _)| node(name, commands)).collect();
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.pass(&format!(
            "allow-unreachable: true\nnodes:\n{nodes}  last: {{after: [policy, silent, limited, \
             harmless, removed], run: 'true'}}\n"
        ));
        for (name, _, expected) in &cases {
            let expected: Vec<String> =
                expected.iter().map(|expected| format!("{FILTERS}{expected}")).collect();
            assert_eq!(warnings(&outcome, name), expected, "{}", outcome.describe());
        }
        assert_eq!(warnings(&outcome, "last"), [""; 0]);
    }
}

/// Rules of the older tool, and a bridge that is down, into which a device leads.
#[test]
fn rules_of_legacy_iptables_and_ports_that_forward_nothing_are_reported() {
    if is_missing(&["iptables-legacy", "ip6tables-legacy", "ip"]) {
        return;
    }
    let lock = "export XTABLES_LOCKFILE=lock-$WINDTUNNEL_NODE";
    let older = format!(
        "{lock} && iptables-legacy -A INPUT -p udp -m limit --limit 5/second -j DROP && \
         iptables-legacy -t mangle -P OUTPUT DROP && ip6tables-legacy -A FORWARD -j REJECT"
    );
    let bridged = "ip link add br0 type bridge && ip link set eth0 master br0";
    let nodes = [node("older", &older), node("bridged", bridged)].concat();
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.pass(&format!(
            "allow-unreachable: true\nnodes:\n{nodes}  last: {{after: [older, bridged], run: 'true'}}\n\
             links: [{{between: [older, bridged]}}, {{between: [older, last]}}]\n"
        ));
        let reported = |node| warnings(&outcome, node);
        let older = reported("older");
        assert_eq!(older.len(), 1, "{}", outcome.describe());
        let chains: Vec<&str> = older[0].strip_prefix(FILTERS).unwrap().split(", ").collect();
        let parts = [
            "iptables table filter",
            "chain INPUT: drop + rate limit (0 packets)",
            "iptables table mangle",
            "ip6tables table filter",
            "chain FORWARD: reject (0 packets)",
        ];
        for part in parts {
            assert!(chains.contains(&part), "{part}: {older:?}");
        }
        assert!(older[0].contains("chain OUTPUT: policy drop ("), "{older:?}");
        let ports = "bridges of its own with ports that forward nothing: eth0 of br0 (disabled)";
        assert_eq!(reported("bridged"), [ports], "{}", outcome.describe());
    }
}

/// Programs of the machine's root are root of their node without `user: root`.
#[test]
fn nodes_of_the_machines_root_are_asked_whatever_their_user_is() {
    if !is_root() || is_missing(&["nft"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let rules = node("b", "nft add table ip t && nft add chain ip t c && nft add rule ip t c drop");
    let rules = rules.replace("user: root, ", "");
    let outcome = lab.pass(&format!(
        "nodes:\n{rules}  a: {{after: b, run: 'true'}}\n\
                                     links: [{{between: [a, b]}}]\n"
    ));
    let text = format!("{FILTERS}ip table t, chain c: drop (not counted)");
    assert_eq!(warnings(&outcome, "b"), [text], "{}", outcome.describe());
}
