//! The sockets of a node's network namespace, as the kernel lists them. Source: proc_pid_net(5), the
//! kernel's Documentation/networking/proc_net_tcp.rst.

use std::fs;
use std::net::SocketAddr;

use windtunnel_wire::flow::FiveTuple;

/// The sockets of TCP and UDP that a process's network namespace has.
#[derive(Debug, Default)]
pub(super) struct SocketTable {
    rows: Vec<SocketTableEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SocketTableEntry {
    protocol: u8,
    own: SocketAddr,
    peer: SocketAddr,
    inode: u32,
}

impl SocketTable {
    /// Those of the namespace that a process is in, of the protocols that are wanted.
    pub(super) fn of_process(process: u32, is_wanted: impl Fn(u8) -> bool) -> SocketTable {
        let mut table = SocketTable::default();
        let tables = [(TCP, "tcp"), (TCP, "tcp6"), (UDP, "udp"), (UDP, "udp6")];
        for (protocol, name) in tables.into_iter().filter(|(protocol, _)| is_wanted(*protocol)) {
            // Without IPv6 the kernel has no such table.
            let text = fs::read_to_string(format!("/proc/{process}/net/{name}"));
            table.add(protocol, &text.unwrap_or_default());
        }
        table
    }

    fn add(&mut self, protocol: u8, text: &str) {
        self.rows.extend(text.lines().skip(1).filter_map(|line| row(protocol, line)));
    }

    /// The inodes of the sockets that a flow can be of: that of a connection, or all that are bound
    /// to the sender's port.
    pub(super) fn find(&self, key: &FiveTuple) -> Vec<u32> {
        let own = SocketAddr::new(key.source, key.source_port);
        let peer = SocketAddr::new(key.destination, key.destination_port);
        let is_of = |row: &&SocketTableEntry| {
            row.protocol == key.protocol
                && row.inode != 0
                && match row.protocol {
                    TCP => row.own == own && row.peer == peer,
                    _ => {
                        let everywhere = row.own.ip().is_unspecified();
                        row.own.port() == own.port() && (everywhere || row.own.ip() == own.ip())
                    }
                }
        };
        self.rows.iter().filter(is_of).map(|row| row.inode).collect()
    }
}

/// `sl: own peer state queues timer retransmits user timeout inode …`.
fn row(protocol: u8, line: &str) -> Option<SocketTableEntry> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (own, peer) = (address(words.next()?)?, address(words.next()?)?);
    let inode = words.nth(6)?.parse().ok()?;
    Some(SocketTableEntry { protocol, own, peer, inode })
}

/// Of a socket of IPv6 that serves IPv4, the address of IPv4.
fn address(text: &str) -> Option<SocketAddr> {
    let listed = windtunnel_sys::socket::listed(text)?;
    Some(SocketAddr::new(listed.ip().to_canonical(), listed.port()))
}

const TCP: u8 = 6;
const UDP: u8 = 17;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(protocol: u8, source: &str, destination: &str) -> FiveTuple {
        let (source, to): (SocketAddr, SocketAddr) =
            (source.parse().unwrap(), destination.parse().unwrap());
        FiveTuple {
            source: source.ip(),
            destination: to.ip(),
            protocol,
            source_port: source.port(),
            destination_port: to.port(),
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_connection_is_found_by_both_ends_and_a_datagram_by_its_port() {
        let mut table = SocketTable::default();
        table.add(
            TCP,
            "  sl  local_address rem_address   st\n   \
             0: 0100000A:1F90 0200000A:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 77 1\n   \
             1: 0100000A:1F90 0300000A:9C40 06 00000000:00000000 00:00000000 00000000  1000        0 0 1\n",
        );
        table.add(
            UDP,
            "  sl  local_address rem_address   st\n  \
             9: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 88 2 0 0\n",
        );
        assert_eq!(table.find(&key(TCP, "10.0.0.1:8080", "10.0.0.2:40000")), [77]);
        assert_eq!(table.find(&key(TCP, "10.0.0.1:8080", "10.0.0.3:40000")).len(), 0, "closed");
        assert_eq!(table.find(&key(UDP, "10.0.0.1:53", "10.0.0.1:0")), [88]);
        assert_eq!(table.find(&key(UDP, "10.0.0.1:54", "10.0.0.1:0")).len(), 0);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_socket_of_ipv6_that_serves_ipv4_is_found_by_that_address() {
        let mut table = SocketTable::default();
        table.add(
            TCP,
            "  sl  local_address rem_address   st\n   \
             0: 0000000000000000FFFF00000100000A:0050 0000000000000000FFFF00000200000A:1000 01 0:0 0:0 0 0 0 5 1\n   \
             1: 0000000000000000FFFF00000100000A 01\n",
        );
        assert_eq!(table.find(&key(TCP, "10.0.0.1:80", "10.0.0.2:4096")), [5]);
    }

    #[test]
    fn a_socket_of_this_process_is_listed() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let own = socket.local_addr().unwrap().to_string();
        let key = key(UDP, &own, &own);
        assert_eq!(SocketTable::of_process(std::process::id(), |_| true).find(&key).len(), 1);
        assert_eq!(SocketTable::of_process(std::process::id(), |it| it == TCP).find(&key).len(), 0);
    }
}
