//! Which sockets listen in the node, read from /proc and never found by connecting: a connection
//! would be the first that a server sees. Source: proc_pid_net(5).

use std::fs;

use crate::message::ListeningEndpoint;

/// Whether something listens there, at this moment.
pub(super) fn listens(what: &ListeningEndpoint) -> bool {
    let read = |table: &str| fs::read_to_string(table).unwrap_or_default();
    match what {
        ListeningEndpoint::Tcp(port) => ["/proc/net/tcp", "/proc/net/tcp6"]
            .iter()
            .any(|table| tcp_ports(&read(table)).any(|listening| listening == *port)),
        ListeningEndpoint::Any => {
            let tcp = ["/proc/net/tcp", "/proc/net/tcp6"];
            let udp = ["/proc/net/udp", "/proc/net/udp6"];
            tcp.iter().any(|table| tcp_ports(&read(table)).next().is_some())
                || udp.iter().any(|table| udp_is_bound(&read(table)))
        }
        ListeningEndpoint::Unix(path) => {
            unix_paths(&read("/proc/net/unix")).any(|listening| same_socket(path, listening))
        }
    }
}

/// `sl: local_address rem_address st …`, the address as `HEX:PORT`.
fn tcp_ports(table: &str) -> impl Iterator<Item = u16> {
    table.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (_, port) = words.next()?.rsplit_once(':')?;
        let state = words.nth(1)?;
        (state == TCP_LISTEN).then(|| u16::from_str_radix(port, 16).ok())?
    })
}

/// A socket is in this table from when it is bound; one that is connected is a client.
fn udp_is_bound(table: &str) -> bool {
    let words = |line: &str| line.split_ascii_whitespace().nth(3).map(str::to_owned);
    table.lines().any(|line| words(line).is_some_and(|state| state == UDP_UNCONNECTED))
}

/// `Num: RefCount Protocol Flags Type St Inode Path`.
fn unix_paths(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter_map(|line| {
        let mut rest = line;
        let mut words = [""; 7];
        for word in &mut words {
            (*word, rest) = rest.trim_start().split_once(' ')?;
        }
        (words[3] == UNIX_ACCEPTS).then_some(rest)
    })
}

/// A program may have bound a relative path, of which only the end can be compared.
fn same_socket(wanted: &str, listening: &str) -> bool {
    let relative = listening.strip_prefix("./").unwrap_or(listening);
    let within = || wanted.strip_suffix(relative).is_some_and(|folder| folder.ends_with('/'));
    wanted == listening || (!listening.starts_with(['/', '@']) && within())
}

/// `TCP_LISTEN` of the kernel's include/net/tcp_states.h.
const TCP_LISTEN: &str = "0A";

/// `TCP_CLOSE` of include/net/tcp_states.h, which UDP uses for sockets without a peer.
const UDP_UNCONNECTED: &str = "07";

/// `__SO_ACCEPTCON` of the kernel's include/linux/net.h.
const UNIX_ACCEPTS: &str = "00010000";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listening_ports_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n   \
            0: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0\n   \
            1: 0100007F:1F90 0100007F:D2F0 01 00000000:00000000 00:00000000 00000000  0\n   \
            2: 00000000000000000000000000000000:01BB 00000000000000000000000000000000:0000 0A 0:0\n";
        assert_eq!(tcp_ports(table).collect::<Vec<_>>(), [80, 443]);
    }

    #[test]
    fn a_udp_socket_counts_when_it_is_bound_and_has_no_peer() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n";
        let socket = |state| format!("{head}  7: 00000000:0035 00000000:0000 {state} 0:0 00:0\n");
        assert!(udp_is_bound(&socket("07")));
        assert!(!udp_is_bound(&socket("01")));
        assert!(!udp_is_bound(head));
    }

    #[test]
    fn only_listening_sockets_with_a_path_count() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 4242 /tmp/with space\n\
            0000000000000000: 00000002 00000000 00000000 0001 03 4243 /tmp/connected\n\
            0000000000000000: 00000003 00000000 00010000 0001 01 4244\n";
        assert_eq!(unix_paths(table).collect::<Vec<_>>(), ["/tmp/with space"]);
    }

    #[test]
    fn a_relative_path_is_the_end_of_an_absolute_one() {
        assert!(same_socket("/tmp/a.sock", "/tmp/a.sock"));
        assert!(same_socket("/tmp/a.sock", "a.sock"));
        assert!(same_socket("/tmp/a.sock", "./a.sock"));
        assert!(!same_socket("/tmp/ba.sock", "a.sock"));
        assert!(!same_socket("/tmp/a.sock", "/a.sock"));
    }
}
