//! What waits in the node's UDP sockets, and datagrams that they had no room for, as the kernel
//! counts them. Source:
//! proc_net(5), the kernel's Documentation/networking/snmp_counter.rst.

use std::fs::{self, File};
use std::io::{Read, Seek};

use windtunnel_budget::discard::UdpSocketBacklog;

/// The tables of the node's UDP sockets, which stay open: opening one takes as long as reading it.
#[derive(Debug)]
pub(super) struct UdpSocketTables {
    files: Vec<File>,
    text: String,
}

impl UdpSocketTables {
    /// Those of the calling thread's network namespace. A kernel without IPv6 has only one.
    pub(super) fn open() -> UdpSocketTables {
        let paths = ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"];
        let files = paths.iter().filter_map(|path| File::open(path).ok()).collect();
        UdpSocketTables { files, text: String::new() }
    }

    /// All sockets that live.
    pub(super) fn sockets(&mut self) -> Vec<UdpSocketBacklog> {
        let mut list = Vec::new();
        for file in &mut self.files {
            self.text.clear();
            let read = file.rewind().and_then(|()| file.read_to_string(&mut self.text));
            if read.is_ok() {
                list.extend(self.text.lines().skip(1).filter_map(of_socket));
            }
        }
        list
    }
}

/// `sl: local:port remote:port state sending:receiving …`, and the drops last.
fn of_socket(line: &str) -> Option<UdpSocketBacklog> {
    let mut fields = line.split_ascii_whitespace();
    let (_, port) = fields.nth(1)?.rsplit_once(':')?;
    let (_, queued) = fields.nth(2)?.split_once(':')?;
    let overflowed = fields.next_back()?.parse().ok()?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(UdpSocketBacklog { port, overflowed, queued_bytes: u64::from_str_radix(queued, 16).ok()? })
}

/// So far, at all sockets that there ever were.
pub(super) fn overflowed_in_all() -> u64 {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let v4 = of_table(&read("/proc/thread-self/net/snmp"));
    let v6 = of_list(&read("/proc/thread-self/net/snmp6"));
    v4.saturating_add(v6)
}

/// `Udp: name name …` followed by `Udp: number number …`.
fn of_table(text: &str) -> u64 {
    let mut rows = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (Some(names), Some(numbers)) = (rows.next(), rows.next()) else { return 0 };
    let pairs = names.split_ascii_whitespace().zip(numbers.split_ascii_whitespace());
    let found = pairs.filter(|(name, _)| *name == "RcvbufErrors");
    found.filter_map(|(_, number)| number.parse::<u64>().ok()).sum()
}

/// `name number` in each line.
fn of_list(text: &str) -> u64 {
    let pairs = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
    let found = pairs.filter(|(name, _)| *name == "Udp6RcvbufErrors");
    found.filter_map(|(_, number)| number.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sockets_port_queue_and_drops_are_found() {
        let line = "  425: 00000000:14E9 00000000:0000 07 00000000:00034000 00:00000000 00000000 \
                    65534        0 1234 2 0000000000000000 77";
        let socket =
            |port, overflowed, queued_bytes| UdpSocketBacklog { port, overflowed, queued_bytes };
        assert_eq!(of_socket(line), Some(socket(0x14e9, 77, 0x34000)));
        let six = "1: 00000000000000000000000000000000:0035 \
                   00000000000000000000000000000000:0000 07 0:0 00:0 0 0 0 12 2 0 5";
        assert_eq!(of_socket(six), Some(socket(53, 5, 0)));
        assert_eq!(of_socket(""), None);
    }

    #[test]
    fn sums_are_found_by_their_names() {
        let snmp = "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n\
                    Udp: 1 2 3 4 5 6\nUdpLite: RcvbufErrors\nUdpLite: 99\n";
        assert_eq!(of_table(snmp), 5);
        assert_eq!(of_list("Udp6InErrors \t 8\nUdp6RcvbufErrors                 \t9\n"), 9);
        assert_eq!((of_table(""), of_list("")), (0, 0));
    }
}
