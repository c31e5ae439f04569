//! What an independent client says of emulated NATs: that of Vovida (Debian's `stun-client`), which follows
//! the discovery of RFC 3489, section 10.1.

use super::support::{Lab, is_missing, unprivileged};

/// The server has the two addresses that the discovery needs.
fn network(kind: &str) -> String {
    format!(
        "ipv6: false
nodes:
  server: {{run: [sh, -c, 'set -- $(hostname -I); exec stund -v -h $1 -a $2'], daemon: true, ready: listen}}
  alice: {{after: server, run: stun server -v}}
routers:
  home: {{nat: {kind}}}
  internet:
links:
  - {{between: [alice, home], latency: 1ms}}
  - {{between: [home, internet], latency: 5ms}}
  - {{between: [server, internet], latency: 1ms}}
  - {{between: [server, internet], name: second, latency: 1ms}}
expect:
  - {{node: alice, exit: any}}
"
    )
}

#[test]
fn an_independent_client_finds_the_type_that_was_asked_for() {
    if is_missing(&["stun", "stund", "hostname"]) {
        return;
    }
    let Some(user) = unprivileged() else { return };
    let lab = Lab::new(user);
    for (kind, seen) in [
        ("full-cone", "Independent Mapping, Independent Filter"),
        ("address-restricted", "Independent Mapping, Address Dependent Filter"),
        ("port-restricted", "Independent Mapping, Port Dependent Filter"),
        ("symmetric", "Dependent Mapping"),
    ] {
        let output = lab.run(&network(kind)).output("alice");
        let primary = output.lines().find(|line| line.starts_with("Primary: ")).unwrap_or_default();
        let found = primary.trim_start_matches("Primary: ");
        assert!(found.starts_with(seen), "{kind}: {output}");
    }
}
