//! The environment of a program in its node.

use super::support::{Lab, is_missing, users};

#[test]
fn a_program_finds_its_nodes_name_hosts_folder_and_environment() {
    for user in users() {
        let lab = Lab::new(user);
        lab.write("words.txt", "beside the scenario\n");
        lab.folder("below");
        let outcome = lab.pass(
            "defaults: {node: {env: {COLOUR: blue, SIZE: 1}}}
nodes:
  web:
    env: {SIZE: 2}
    run:
      - {run: [sh, -c, 'echo $WINDTUNNEL_NODE $COLOUR $SIZE; hostname; uname -n; cat words.txt']}
      - {run: [sh, -c, 'pwd; cat /etc/hosts; id -u'], cwd: below}
  other: {}
links: [{between: [web, other]}]
",
        );
        let first = outcome.file("nodes/web/stdout.0");
        assert_eq!(first, "web blue 2\nweb\nweb\nbeside the scenario\n");
        let second = outcome.file("nodes/web/stdout.1");
        assert!(second.starts_with(lab.path().join("below").to_str().unwrap()), "{second}");
        for line in ["127.0.0.1\tlocalhost", "10.0.0.1\tweb", "10.0.0.2\tother"] {
            let words: Vec<&str> = line.split('\t').collect();
            let found = second.lines().any(|line| {
                let mut fields = line.split_whitespace();
                fields.next() == Some(words[0]) && fields.any(|name| name == words[1])
            });
            assert!(found, "{line} in {second}");
        }
        assert!(second.lines().any(|line| line.starts_with("fd00::") && line.contains("other")));
    }
}

#[test]
fn a_node_is_found_by_its_further_names_and_several_by_one() {
    if is_missing(&["getent"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "ipv6: false
nodes:
  a:
    run:
      - sh
      - -c
      - getent ahostsv4 web | cut -d' ' -f1 | sort -u; getent ahostsv4 My_DB.example | cut -d' ' -f1 | sort -u;
        getent hosts 10.0.0.4 | tr -s ' '
  w: {count: 2, aliases: web}
  db: {aliases: [my_db.example, store]}
routers: [r]
links: [{between: [a, r]}, {between: [w, r]}, {between: [db, r]}]
",
        );
        assert_eq!(outcome.output("a"), "10.0.0.2\n10.0.0.3\n10.0.0.4\n10.0.0.4 db\n");
    }
}

#[test]
fn programs_write_in_the_run_folder_where_the_file_asks() {
    for user in users() {
        let lab = Lab::new(user);
        let write = "cd $WINDTUNNEL_RUN/nodes/$WINDTUNNEL_NODE && { echo x > made || echo denied; } 2>/dev/null";
        let outcome = lab.pass(&format!(
            "nodes:
  a: {{run: [sh, -c, '{write}']}}
  b: {{run: [sh, -c, '{write}'], results: true}}
links: [{{between: [a, b]}}]
"
        ));
        assert_eq!(outcome.output("a"), "denied\n");
        assert!(!outcome.path("nodes/a/made").exists());
        assert_eq!((outcome.output("b"), outcome.file("nodes/b/made")), ("".into(), "x\n".into()));
    }
}

#[test]
fn a_program_runs_as_the_user_of_windtunnel_unless_the_file_says_root() {
    for user in users() {
        let lab = Lab::new(user);
        let own = lab.user().number();
        let outcome = lab.pass(
            "nodes:
  a: {run: [sh, -c, 'id -u; touch made-by-a']}
  b: {run: id -u, user: root}
links: [{between: [a, b]}]
",
        );
        assert_eq!(outcome.output("a").trim(), own.to_string());
        assert_eq!(outcome.output("b").trim(), "0");
        assert!(lab.path().join("made-by-a").exists(), "{}", outcome.describe());
    }
}

#[test]
fn only_root_of_a_node_may_change_its_network() {
    if is_missing(&["ip"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.run(
            "nodes:
  a: {run: ip link set eth0 down}
  b: {run: [sh, -c, 'ip addr add 10.9.9.9/32 dev eth0 && ip -o addr show eth0'], user: root}
links: [{between: [a, b]}]
expect: [{node: a, exit: any}, {node: b, exit: 0}]
",
        );
        outcome.assert_code(0);
        assert!(outcome.output("b").contains("10.9.9.9/32"), "{}", outcome.describe());
        if lab.user().number() != 0 {
            assert_ne!(outcome.program("a")["exit"], 0);
            assert!(outcome.file("nodes/a/stderr").contains("not permitted"));
        }
    }
}

#[test]
fn localhost_works_in_a_node_and_ends_there() {
    if is_missing(&["ping", "python3", "curl"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        lab.write("hello.txt", "hello");
        let server = "run: python3 -m http.server 80, daemon: true, ready: tcp:80";
        let outcome = lab.pass(&format!(
            "nodes:
  a: {{run: [{{{server}}}, {{run: [sh, -c, 'until curl -sS http://localhost/hello.txt; do :; done']}}]}}
  b: {{run: [{{run: ping -4 -c 1 localhost}}, {{run: ping -6 -c 1 localhost}}]}}
  c: {{run: curl -sS http://localhost/hello.txt, after: a}}
links: [{{between: [a, b]}}, {{between: [b, c]}}]
allow-unreachable: true
expect: [{{node: c, exit: 7}}]
",
        ));
        assert_eq!(outcome.file("nodes/a/stdout.1"), "hello");
    }
}

#[test]
fn an_unknown_name_is_refused_at_once() {
    if is_missing(&["getent"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes: {a: {run: [getent, ahosts, no.such.name.example]}, b: {}}
links: [{between: [a, b]}]
expect: [{node: a, exit: 2}]
",
        );
        // A resolver that waits for a name server gives up after 5 s at the earliest.
        assert!(outcome.report()["elapsed_ns"].as_u64().unwrap() < 5_000_000_000);
    }
}

#[test]
fn settings_hold_before_the_programs_start() {
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes:
  a: {run: [cat, /proc/sys/net/ipv4/tcp_sack, /proc/sys/net/ipv4/ip_default_ttl], sysctl: {net.ipv4.tcp_sack: 0, net.ipv4.ip_default_ttl: 33}}
  b: {run: [cat, /proc/sys/net/ipv4/tcp_sack]}
links: [{between: [a, b]}]
",
        );
        assert_eq!((outcome.output("a"), outcome.output("b")), ("0\n33\n".into(), "1\n".into()));
    }
}

#[test]
fn a_setting_that_the_kernel_refuses_ends_the_run_before_programs_start() {
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.run(
            "nodes: {a: {run: touch started, sysctl: {net.ipv4.tcp_rmem: nonsense}}, b: {}}
links: [{between: [a, b]}]
",
        );
        outcome.assert_code(4);
        assert!(outcome.stderr.contains("net.ipv4.tcp_rmem"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("nonsense"), "{}", outcome.stderr);
        assert!(!lab.path().join("started").exists());
        assert!(!outcome.folder.exists(), "nothing is worth keeping");
    }
}

#[test]
fn a_congestion_control_that_does_not_exist_is_refused_with_those_that_do() {
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.run(
            "nodes: {a: {run: touch started, sysctl: {net.ipv4.tcp_congestion_control: nosuch}}, b: {}}
links: [{between: [a, b]}]
",
        );
        outcome.assert_code(4);
        assert!(outcome.stderr.contains("hint: available: "), "{}", outcome.stderr);
        assert!(!lab.path().join("started").exists());
    }
}

#[test]
fn a_network_of_one_protocol_has_addresses_of_that_only() {
    if is_missing(&["ping", "getent"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        for (off, address) in [("ipv4", "fd00::2"), ("ipv6", "10.0.0.2")] {
            let outcome = lab.pass(&format!(
                "{off}: false
nodes: {{a: {{run: [{{run: ping -c 1 b}}, {{run: getent ahosts b}}]}}, b: {{}}}}
links: [{{between: [a, b], latency: 1ms}}]
"
            ));
            let names = outcome.file("nodes/a/stdout.1");
            assert!(names.lines().all(|line| line.starts_with(address)), "{names}");
            assert!(outcome.file("nodes/a/stdout.0").contains("1 received"));
        }
    }
}
