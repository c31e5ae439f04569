//! LANs: resolution, broadcast, multicast and DHCP with real programs.

use super::support::{Lab, any_user, is_missing};

/// Two hosts and a router on a LAN, a web server beyond.
const OFFICE: &str = "routers: [r]
lans: {office: {address: [192.168.7.0/24, fd07::/64]}}
links:
  - {between: [a, office], latency: 1ms}
  - {between: [b, office], latency: 2ms}
  - {between: [c, office], latency: 3ms}
  - {between: [r, office]}
  - {between: [r, web], latency: 5ms}
";

/// Waits for one datagram on each of three ways to reach all, and says by which it came.
const LISTEN: &str = "import socket, sys
index = socket.if_nametoindex('eth0')
v4 = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
v4.bind(('', 5353))
v4.setsockopt(0, socket.IP_ADD_MEMBERSHIP, socket.inet_aton('224.0.0.251') + bytes(4))
v6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
v6.setsockopt(41, socket.IPV6_V6ONLY, 1)
v6.bind(('::', 5353))
v6.setsockopt(41, socket.IPV6_JOIN_GROUP,
    socket.inet_pton(socket.AF_INET6, 'ff02::fb') + index.to_bytes(4, sys.byteorder))
print('listening', flush=True)
for one in (v4, v4, v4, v6):
    one.settimeout(20)
    print(one.recv(100).decode(), flush=True)
";

const SHOUT: &str = "import socket
index = socket.if_nametoindex('eth0')
v4 = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
v4.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
v4.sendto(b'limited', ('255.255.255.255', 5353))
v4.sendto(b'directed', ('192.168.7.255', 5353))
v4.sendto(b'group', ('224.0.0.251', 5353))
v6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
v6.sendto(b'group of ipv6', ('ff02::fb', 5353, 0, index))
";

#[test]
fn hosts_on_a_lan_resolve_each_other_and_reach_beyond_the_router() {
    if is_missing(&["ping", "ip", "python3", "curl"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let nodes = "nodes:
  web: {run: 'python3 -m http.server --bind :: 80', daemon: true, ready: tcp:80}
  c: {}
  b: {}
  a:
    after: web
    run:
      - run: [sh, -c, 'ping -4 -c 2 b && ping -6 -c 2 c && ping -4 -c 1 web && ip neigh']
      - run: 'curl -sS -4 -o /dev/null -w %{http_code} http://web/'
";
        let outcome = lab.pass(&format!("{nodes}{OFFICE}"));
        let text = outcome.file("nodes/a/stdout.0");
        // The second of each is without resolution: 2 * (1 ms + 2 ms), and no hop less to live.
        assert!(text.contains("ttl=64") && text.contains("ttl=63"), "{text}");
        for address in ["192.168.7.3 dev eth0 lladdr 02:77:74", "fd07::2 dev eth0 lladdr 02:77:74"]
        {
            assert!(text.contains(address), "{text}");
        }
        assert!(text.contains("192.168.7.1 dev eth0 lladdr 02:77:75"), "the router: {text}");
        assert_eq!(outcome.file("nodes/a/stdout.1"), "200");
        outcome.assert_conserved();
    }
}

#[test]
fn broadcasts_and_multicasts_come_to_all_hosts_of_a_lan() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("listen.py", LISTEN);
        lab.write("shout.py", SHOUT);
        let nodes = "nodes:
  web: {}
  b: {run: python3 listen.py, ready: 'log:listening'}
  c: {run: python3 listen.py, ready: 'log:listening'}
  a: {after: [b, c], run: python3 shout.py}
";
        let outcome = lab.pass(&format!("{nodes}{OFFICE}"));
        for node in ["b", "c"] {
            // The sender's kernel may hand packets for different addresses over in any order.
            let text = outcome.output(node);
            let mut received: Vec<&str> = text.lines().skip(1).collect();
            received.sort_unstable();
            assert_eq!(received, ["directed", "group", "group of ipv6", "limited"]);
        }
        outcome.assert_conserved();
    }
}

#[test]
fn a_lease_from_a_dhcp_server_on_the_lan_works_beyond_the_router() {
    if is_missing(&["busybox", "ip", "ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write(
            "udhcpd.conf",
            "start 192.168.7.100\nend 192.168.7.110\ninterface eth0\nlease_file leases\n\
             pidfile udhcpd.pid\noption subnet 255.255.255.0\noption router 192.168.7.1\n",
        );
        lab.write("leases", "");
        lab.write(
            "bound",
            "#!/bin/sh\n[ \"$1\" = bound ] || exit 0\nip addr add $ip/24 dev $interface\n\
             ip route replace default via $router\necho leased $ip\n",
        );
        let script = "chmod +x bound; ip -4 addr flush dev eth0; \
                      busybox udhcpc -i eth0 -f -q -n -t 10 -s ./bound && ping -4 -c 1 -W 5 web";
        let nodes = format!(
            "nodes:
  web: {{}}
  c: {{}}
  b: {{user: root, run: busybox udhcpd -f udhcpd.conf, daemon: true}}
  a: {{user: root, start: 500ms, run: [sh, -c, '{script}']}}
"
        );
        let outcome = lab.pass(&format!("{nodes}{OFFICE}"));
        let text = outcome.output("a");
        assert!(text.contains("leased 192.168.7.1") && text.contains("ttl=63"), "{text}");
    }
}

#[test]
fn a_partition_parts_hosts_of_one_lan_until_it_heals() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(&format!(
            "nodes:
  web: {{}}
  b: {{}}
  c: {{}}
  a: {{run: [sh, -c, 'ping -4 -c 1 -W 1 b; ping -4 -c 1 -W 1 c && sleep 4; ping -4 -c 1 -W 3 b']}}
events:
  - {{at: 0s, partition: [[a], [b]]}}
  - {{at: 4s, heal: true}}
{OFFICE}"
        ));
        let text = outcome.output("a");
        let answers: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split_once("packets transmitted, "))
            .map(|(_, rest)| &rest[..1])
            .collect();
        assert_eq!(answers, ["0", "1", "1"], "{text}");
        outcome.assert_conserved();
    }
}
