//! The names that programs find: the text of `/etc/hosts`, the same for every node.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use windtunnel_model::Plan;

/// The text of `/etc/hosts` (hosts(5)): localhost, then every node with its first interface's
/// addresses, then the further interfaces, the routers, the services, and further names of nodes, which
/// several may have. A lookup of a name returns the first interface first, because resolvers keep the
/// order; one of an address returns the node's own name, because that comes first.
#[must_use]
pub fn hosts_file(plan: &Plan) -> String {
    let mut text = String::from("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n");
    for node in &plan.nodes {
        let first = node.interfaces.first();
        first.into_iter().for_each(|i| add(&mut text, i.v4, i.v6, &node.name));
    }
    for node in &plan.nodes {
        let further = node.interfaces.iter().skip(1);
        further.for_each(|i| add(&mut text, i.v4, i.v6, &node.name));
    }
    for router in &plan.routers {
        router.interfaces.iter().for_each(|i| add(&mut text, i.v4, i.v6, &router.name));
    }
    for service in &plan.services {
        add(&mut text, service.v4, service.v6, &service.name);
    }
    let first = plan.nodes.iter().flat_map(|it| it.interfaces.first().map(|i| (it, i)));
    let further =
        plan.nodes.iter().flat_map(|it| it.interfaces.iter().skip(1).map(move |i| (it, i)));
    for (node, interface) in first.chain(further) {
        for alias in &node.aliases {
            add(&mut text, interface.v4, interface.v6, alias);
        }
    }
    // The machine itself, through the node that stands for its outside.
    for internet in plan.nodes.iter().filter_map(|node| node.internet.as_ref()) {
        add(&mut text, internet.host_v4, internet.host_v6, "host");
    }
    text
}

fn add(text: &mut String, v4: Option<Ipv4Addr>, v6: Option<Ipv6Addr>, name: &str) {
    for address in v4.map(IpAddr::V4).into_iter().chain(v6.map(IpAddr::V6)) {
        writeln!(text, "{address}\t{name}").expect("a string grows without errors");
    }
}

/// The text of `/etc/resolv.conf` (resolv.conf(5)) of nodes that get to the machine's outside, which
/// answers for names at these addresses: with the domains that are searched and the options of the
/// machine's own.
pub(crate) fn resolv_conf(servers: impl Iterator<Item = IpAddr>, machine: &str) -> String {
    let mut text = String::from("# written by windtunnel: other names come from /etc/hosts\n");
    for server in servers {
        writeln!(text, "nameserver {server}").expect("a string grows without errors");
    }
    let said = |keys: &'static [&'static str]| {
        let lines = machine.lines().map(str::trim_start);
        lines.filter(|line| keys.contains(&line.split_whitespace().next().unwrap_or_default()))
    };
    // Of `domain` and `search` the last line counts; of `options`, each.
    for line in said(&["domain", "search"]).next_back().into_iter().chain(said(&["options"])) {
        let line = line.split(['#', ';']).next().unwrap_or_default().trim_end();
        writeln!(text, "{line}").expect("a string grows without errors");
    }
    text
}

/// The text of `/etc/resolv.conf` of other nodes: without a name server, libraries ask the node itself,
/// where nothing listens, so that an unknown name fails at once.
pub(crate) const RESOLV_CONF: &str = "# written by windtunnel: names come from /etc/hosts only\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::two_homed_plan;

    #[test]
    fn nodes_search_the_domains_of_the_machine_with_its_options() {
        let machine = "# of systemd\nnameserver 192.0.2.53\ndomain old.example\noptions edns0 trust-ad\n\
                       search corp.example example # two\n  options ndots:2\nsortlist 10.0.0.0/8\n";
        let own = "10.0.0.3".parse().unwrap();
        let expected = "# written by windtunnel: other names come from /etc/hosts\nnameserver 10.0.0.3\n\
                        search corp.example example\noptions edns0 trust-ad\noptions ndots:2\n";
        assert_eq!(resolv_conf([own].into_iter(), machine), expected);
        let alone =
            "# written by windtunnel: other names come from /etc/hosts\nnameserver 10.0.0.3\n";
        assert_eq!(resolv_conf([own].into_iter(), ""), alone);
    }

    #[test]
    fn every_interface_has_its_owners_name_and_first_interfaces_come_first() {
        let expected = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n\
            10.0.0.1\ta\nfd00::1\ta\n10.0.0.3\tb\nfd00::3\tb\n10.0.0.5\tc\nfd00::5\tc\n\
            10.0.0.2\ta\nfd00::2\ta\n10.0.0.6\tr\nfd00::6\tr\n10.0.0.7\tr\nfd00::7\tr\n";
        assert_eq!(hosts_file(&two_homed_plan()), expected);
    }

    #[test]
    fn further_names_come_last_and_lead_to_all_nodes_that_have_them() {
        let mut plan = two_homed_plan();
        let own = hosts_file(&plan);
        plan.nodes[0].aliases = vec!["db".into(), "Db.example".into()];
        plan.nodes[2].aliases = vec!["db".into()];
        let text = hosts_file(&plan);
        let expected = "10.0.0.1\tdb\nfd00::1\tdb\n10.0.0.1\tDb.example\nfd00::1\tDb.example\n\
            10.0.0.5\tdb\nfd00::5\tdb\n\
            10.0.0.2\tdb\nfd00::2\tdb\n10.0.0.2\tDb.example\nfd00::2\tDb.example\n";
        assert_eq!(text.strip_prefix(&own), Some(expected));
    }
}
