//! Devices, addresses, routes, names and settings, as programs see them.

use windtunnel_model::plan::ProgramUser;
use windtunnel_node::hosts_file;
use windtunnel_sys::netdev;

use crate::Case;
use crate::support::{World, row, star};

pub(crate) const CASES: &[Case] = &[
    ("a node has its addresses and nothing else", addresses),
    ("a node with one link sends everything there", routes),
    ("a node with two links chooses by destination and by source", choices),
    ("a forwarding node forwards and others do not", forwarding),
    ("a node knows all names and its own", names),
    ("a node without IPv6 addresses has no IPv6", without_v6),
    ("an ordinary user binds port 80 and may ping", ports),
    ("a node sees its own processes and devices only", views),
    ("the fabric has a device for each port, up and silent", fabric),
    ("settings of the file are set", settings),
    ("a root node's programs are root over their network", root),
    ("an invoker's programs have the invoker's rights only", invoker),
];

fn addresses() {
    let world = World::new(star(&["a", "b"]));
    let text = world.output(
        "b",
        "cat /proc/net/if_inet6; cat /proc/net/fib_trie; \
        cat /sys/class/net/eth0/address /sys/class/net/eth0/mtu",
    );
    assert!(text.contains("fd000000000000000000000000000002 64 80 00 82     eth0"), "{text}");
    assert!(!text.contains("fe80"), "{text}");
    assert!(text.contains("|-- 10.0.0.2\n"), "{text}");
    assert!(!text.contains("10.0.0.1\n"), "{text}");
    assert!(text.ends_with("02:77:74:00:00:01\n1400\n"), "{text}");
}

fn routes() {
    let world = World::new(star(&["a", "b"]));
    // Destination 0.0.0.0 by the gateway 169.254.1.1, which is 0101FEA9 in memory.
    let v4 = world.output("a", "cat /proc/net/route");
    let lines: Vec<&str> = v4.lines().skip(1).collect();
    assert_eq!(lines.len(), 1, "{v4}");
    assert!(lines[0].starts_with("eth0\t00000000\t0101FEA9\t"), "{v4}");
    let v6 = world.output("a", "cat /proc/net/ipv6_route");
    let default = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
        fe800000000000000000000000000001";
    assert!(v6.lines().any(|line| line.starts_with(default) && line.ends_with("eth0")), "{v6}");
}

fn choices() {
    let world = World::new(row(&["left", "middle", "right"]));
    // middle: eth0 (10.0.0.2) to left (10.0.0.1), eth1 (10.0.0.3) to right (10.0.0.4).
    let leaves = |words: &str| {
        let text = world.output("middle", &format!("ip route get {words}"));
        let mut after = text.split_whitespace().skip_while(|word| *word != "dev");
        after.nth(1).expect("a device").to_string()
    };
    assert_eq!(leaves("10.0.0.1"), "eth0");
    assert_eq!(leaves("10.0.0.4"), "eth1");
    assert_eq!(leaves("fd00::4"), "eth1");
    assert_eq!(leaves("192.0.2.1 from 10.0.0.3"), "eth1");
    assert_eq!(leaves("192.0.2.1 from 10.0.0.2"), "eth0");
    // The right cannot be reached by eth0, whatever the source.
    assert_eq!(leaves("10.0.0.4 from 10.0.0.2"), "eth1");
    assert_eq!(leaves("fd00::4 from fd00::2"), "eth1");
}

fn forwarding() {
    let mut plan = row(&["left", "middle", "right"]);
    plan.nodes[1].forward = true;
    let world = World::new(plan);
    let state = "cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/eth0/forwarding";
    assert_eq!(world.output("middle", state), "1\n1\n");
    assert_eq!(world.output("left", state), "0\n0\n");
}

fn names() {
    let world = World::new(star(&["web", "client-2"]));
    assert_eq!(world.output("web", "cat /etc/hosts"), hosts_file(&world.plan));
    assert_eq!(world.output("client-2", "uname -n; echo $WINDTUNNEL_NODE"), "client-2\nclient-2\n");
    let found = world.output("web", "getent ahostsv4 client-2; getent ahostsv6 hub");
    assert!(found.contains("10.0.0.2"), "{found}");
    assert!(found.contains("fd01::1"), "{found}");
    let localhost = world.output("web", "ping -c1 -w5 localhost && ping -4 -c1 -w5 localhost");
    assert!(localhost.contains("127.0.0.1"), "{localhost}");
    // Unknown names fail at once: a name server that does not answer is asked for seconds.
    let unknown = world.shell("web", "timeout 2 getent hosts unknown.example").1.shell_code();
    assert_eq!(unknown, 2, "getent's code for a name that is not found");
    let written = world.shell("web", "echo x >>/etc/hosts").1.shell_code();
    assert_ne!(written, 0, "no program may write the shared file");
}

fn without_v6() {
    let mut plan = star(&["a", "b"]);
    plan.nodes[0].interfaces[0].v6 = None;
    let world = World::new(plan);
    assert_eq!(world.output("a", "cat /proc/net/if_inet6"), "");
    assert_ne!(world.output("b", "cat /proc/net/if_inet6"), "");
}

fn ports() {
    let world = World::new(star(&["a"]));
    let bind =
        "import socket; s = socket.socket(); s.bind(('10.0.0.1', 80)); print(s.getsockname()[1])";
    assert_eq!(world.output("a", &format!("/usr/bin/env python3 -c \"{bind}\"")), "80\n");
    let ping = world.output("a", "ping -n -c1 -w5 10.0.0.1 && ping -n -c1 -w5 fd00::1");
    assert_eq!(ping.matches("1 received").count(), 2, "{ping}");
}

fn views() {
    let world = World::new(star(&["a"]));
    let processes = world.output("a", "ls -d /proc/[0-9]* | wc -l; cat /proc/1/comm");
    // init, the shell, ls and wc; the shell may run ls in its own place.
    let (count, init) = processes.split_once('\n').expect("two lines");
    assert!((3..=4).contains(&count.parse::<u32>().expect("a number")), "{processes}");
    assert_eq!(init, "wt:a\n");
    assert_eq!(world.output("a", "ls /sys/class/net"), "eth0\nlo\n");
    assert_eq!(world.output("a", "ls -d /sys/fs/cgroup"), "/sys/fs/cgroup\n");
}

fn fabric() {
    let world = World::new(row(&["left", "middle", "right"]));
    let indices = world.node_set.fabric();
    assert_eq!(indices.len(), 4);
    for (port, index) in (0_u32..).zip(indices) {
        let name = format!("wt{port}");
        assert_eq!(netdev::index_of(&name).expect("it is there"), *index);
        assert_eq!(world.node_set.port(*index).map(|port| port.0), Some(port));
        let own = std::fs::read_to_string("/proc/net/if_inet6").expect("IPv6 is there");
        assert!(!own.contains(&name), "{own}");
    }
    assert_eq!(world.node_set.port(999), None);
    assert_eq!(world.node_set.port(1004), None);
}

fn settings() {
    let mut plan = star(&["a"]);
    let settings =
        [("net.ipv4.tcp_rmem", "4096 65536 1048576"), ("net.ipv4.conf.eth0.rp_filter", "2")];
    let settings = settings.map(|(key, value)| (key.to_string(), value.to_string()));
    plan.nodes[0].sysctl.extend(settings);
    let world = World::new(plan);
    let text =
        world.output("a", "cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/conf/eth0/rp_filter");
    assert_eq!(text, "4096\t65536\t1048576\n2\n");
}

fn root() {
    let mut plan = star(&["a", "b"]);
    plan.nodes[0].user = ProgramUser::Root;
    let world = World::new(plan);
    assert_eq!(world.output("a", "id -u"), "0\n");
    let text =
        world.output("a", "ip link add dummy0 type veth peer name dummy1 && ls /sys/class/net");
    assert!(text.contains("dummy1"), "{text}");
}

fn invoker() {
    let world = World::new(star(&["a"]));
    let invoker = world.namespaces.invoker();
    assert_eq!(world.output("a", "id -u; id -g"), format!("{}\n{}\n", invoker.uid, invoker.gid));
    let allowed = world.shell("a", "ip link set eth0 mtu 1300").1.shell_code() == 0;
    assert_eq!(allowed, invoker.uid == 0, "only root keeps its rights");
    if invoker.uid != 0 {
        let sets = world.output("a", "grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status");
        assert_eq!(sets.matches("0000000000000000").count(), 4, "{sets}");
    }
}
