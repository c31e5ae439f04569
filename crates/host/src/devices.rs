//! What the kernel's devices dropped between a node and the engine: /proc/PID/net/dev (proc_pid_net(5)).

use std::fs;

use windtunnel_node::Village;

/// Packets that devices of the nodes and of the fabric have failed to hand over, since they were made.
///
/// A veth device counts a packet as dropped on transmission when the other end's backlog is full
/// (`net.core.netdev_max_backlog`): neither program nor engine would notice otherwise.
pub(crate) fn transmit_drops(village: &Village) -> u64 {
    let fabric = drops_in("/proc/thread-self/net/dev");
    let nodes = village.nodes().iter().map(|n| drops_in(&format!("/proc/{}/net/dev", n.pid())));
    fabric + nodes.sum::<u64>()
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

#[cfg(test)]
mod tests {
    use super::*;

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
