//! What the kernel's devices dropped between a node and the engine: /proc/PID/net/dev
//! (proc_pid_net(5)).

use std::fs;

use serde::{Deserialize, Serialize};

/// Packets that were lost at the devices between nodes and engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceDrops {
    /// Of this run: what its devices have failed to hand over.
    pub packets: u64,
    /// What the backlogs of the machine's processors dropped meanwhile, whose ever it was.
    pub backlog_packets: u64,
}

impl DeviceDrops {
    /// What was dropped until now, by devices of the fabric and of the nodes with these inits,
    /// since they were made.
    ///
    /// A veth device counts a packet as dropped on transmission when the processor's backlog is
    /// full (`net.core.netdev_max_backlog`), or the other end is down: neither program nor
    /// engine would notice otherwise.
    pub fn until_now(inits: &[u32]) -> Self {
        let fabric = drops_in("/proc/thread-self/net/dev");
        let nodes = inits.iter().map(|pid| drops_in(&format!("/proc/{pid}/net/dev")));
        let backlogs = fs::read_to_string("/proc/net/softnet_stat");
        DeviceDrops {
            packets: fabric + nodes.sum::<u64>(),
            backlog_packets: backlogs.map_or(0, |table| sum_backlog_drops(&table)),
        }
    }

    /// What was dropped since a look before.
    pub fn since(self, before: DeviceDrops) -> Self {
        DeviceDrops {
            packets: self.packets.saturating_sub(before.packets),
            backlog_packets: self.backlog_packets.saturating_sub(before.backlog_packets),
        }
    }

    /// Adds what another machine has seen.
    pub fn add(&mut self, other: DeviceDrops) {
        self.packets = self.packets.saturating_add(other.packets);
        self.backlog_packets = self.backlog_packets.saturating_add(other.backlog_packets);
    }

    /// What was lost and, as far as it is known, why.
    pub fn text(self) -> Option<String> {
        let DeviceDrops { packets, backlog_packets } = self;
        if packets == 0 {
            return None;
        }
        let lost = match packets {
            1 => "1 packet was lost".to_owned(),
            many => format!("{many} packets were lost"),
        };
        let lost = format!("{lost} at the devices between nodes and engine");
        Some(if backlog_packets >= packets {
            format!(
                "{lost}: the kernel's backlog was full, which this run shares with all that the \
                 machine does"
            )
        } else {
            format!("{lost}: it is not known why, the kernel's backlog was not full")
        })
    }
}

fn drops_in(path: &str) -> u64 {
    fs::read_to_string(path).map_or(0, |table| sum_transmit_drops(&table))
}

/// Sums the twelfth column (transmit: bytes, packets, errs, drop) of every device but loopback.
fn sum_transmit_drops(table: &str) -> u64 {
    const RECEIVE_COLUMNS: usize = 8;
    const DROP: usize = RECEIVE_COLUMNS + 3;
    let rows = table.lines().filter_map(|line| line.split_once(':'));
    rows.filter(|(device, _)| device.trim() != "lo")
        .filter_map(|(_, columns)| columns.split_ascii_whitespace().nth(DROP)?.parse::<u64>().ok())
        .sum()
}

/// Sums the second column (hexadecimal: packets, drops, …) of all processors.
fn sum_backlog_drops(table: &str) -> u64 {
    let columns = table.lines().filter_map(|line| line.split_ascii_whitespace().nth(1));
    columns.filter_map(|column| u64::from_str_radix(column, 16).ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backlog_is_named_only_where_it_dropped_as_many() {
        let drops = |packets, backlog_packets| DeviceDrops { packets, backlog_packets }.text();
        assert_eq!(drops(0, 9), None);
        let shared = drops(3, 3).unwrap();
        assert!(shared.starts_with("3 packets were lost at the devices"), "{shared}");
        assert!(shared.contains("shares with all that the machine does"), "{shared}");
        let unknown = drops(1, 0).unwrap();
        assert!(unknown.starts_with("1 packet was lost"), "{unknown}");
        assert!(unknown.contains("not known why"), "{unknown}");
        for text in [shared, unknown] {
            assert!(!text.contains("rate is too high"), "{text}");
        }
    }

    #[test]
    fn drops_of_the_backlogs_are_summed_over_processors() {
        let table = "0000aaaa 0000000b 00000000 00000000\n0000bbbb 00000010 00000000 00000000\n";
        assert_eq!(sum_backlog_drops(table), 0xb + 0x10);
    }

    #[test]
    fn transmit_drops_are_summed_over_devices_other_than_loopback() {
        let table = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 1 1 0 5 0 0 0 0 1 1 0 9 0 0 0 0
  eth0: 10 1 0 2 0 0 0 0 10 1 0 3 0 0 0 0
  eth1:10 1 0 2 0 0 0 0 10 1 0 4 0 0 0 0
";
        assert_eq!(sum_transmit_drops(table), 7);
    }
}
