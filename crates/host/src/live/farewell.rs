//! Daemons at the end of a run: one that ends by itself when its clients have gone (`iperf3 -s -1`)
//! gets the time for it.
//!
//! A client's end reaches its server when the last packets do: after the link's latency, and after
//! retransmissions where they were lost. Until then the server's connection to it is open. So
//! daemons get SIGTERM when no connection of theirs to a node is left in which no program runs any
//! more, and they have had a moment since to end by themselves; or after [`FAREWELL_MOST`].

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use windtunnel_model::plan::NodeInterface;
use windtunnel_model::{NodeId, Plan, Span, Time};

use super::context::RunContext;
use crate::supervisor::Supervisor;

/// When daemons have had the time to see that their clients have gone.
#[derive(Debug)]
pub(super) struct DaemonGracePeriod {
    until: Time,
    quiet_since: Option<Time>,
}

impl DaemonGracePeriod {
    pub(super) fn new(now: Time) -> Self {
        DaemonGracePeriod { until: now + FAREWELL_MOST, quiet_since: None }
    }

    /// Whether the time is over, given whether some client is still leaving `now`.
    pub(super) fn is_over(&mut self, now: Time, clients_are_leaving: bool) -> bool {
        if clients_are_leaving {
            self.quiet_since = None;
        }
        let quiet_since = (!clients_are_leaving).then(|| *self.quiet_since.get_or_insert(now));
        now >= self.until || quiet_since.is_some_and(|since| now >= since + MOMENT)
    }
}

/// Whether a daemon of this machine still has a connection to a node without programs.
pub(super) fn clients_are_leaving(cx: &RunContext, supervisor: &Supervisor) -> bool {
    let running = supervisor.programs().filter(|(_, program)| program.life.is_running());
    let busy: BTreeSet<usize> = running.map(|(key, _)| key.node).collect();
    let gone = addresses_of_others(&cx.plan, &busy);
    let inits = busy.iter().filter_map(|node| cx.nodes.inits().pid(NodeId::from_index(*node)));
    inits.into_iter().any(|pid| {
        ["tcp", "tcp6"].iter().any(|family| {
            let table = std::fs::read_to_string(format!("/proc/{pid}/net/{family}"));
            peers(&table.unwrap_or_default()).any(|peer| gone.contains(&peer))
        })
    })
}

/// The addresses of all nodes but the `busy` ones.
fn addresses_of_others(plan: &Plan, busy: &BTreeSet<usize>) -> BTreeSet<IpAddr> {
    let others = plan.nodes.iter().enumerate().filter(|(node, _)| !busy.contains(node));
    others.flat_map(|(_, node)| node.interfaces.iter().flat_map(NodeInterface::addresses)).collect()
}

/// The other ends of open connections in a table of proc_pid_net(5): `sl: local_address rem_address
/// st …`, addresses as words of hexadecimal digits in the machine's byte order.
fn peers(table: &str) -> impl Iterator<Item = IpAddr> {
    table.lines().skip(1).filter_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(2);
        let (address, _) = words.next()?.rsplit_once(':')?;
        let state = words.next()?;
        OPEN.contains(&state).then(|| address_of(address))?
    })
}

fn address_of(text: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(text.get(at * 8..at * 8 + 8)?, 16).ok();
    if text.len() == 8 {
        return Some(Ipv4Addr::from(word(0)?.to_ne_bytes()).into());
    }
    let mut bytes = [0; 16];
    for (at, place) in bytes.chunks_exact_mut(4).enumerate() {
        place.copy_from_slice(&word(at)?.to_ne_bytes());
    }
    // A server of both families has its IPv4 clients here, too.
    Some(Ipv6Addr::from(bytes).to_canonical())
}

/// States of the kernel's include/net/tcp_states.h in which the other end has something to do with
/// this one: established, both kinds of waiting for a FIN, close-wait, last acknowledgement,
/// closing. A connection that was never made, is only remembered (time-wait) or listens is none.
const OPEN: [&str; 6] = ["01", "04", "05", "08", "09", "0B"];
/// What a program needs to end when its last client has gone.
const MOMENT: Span = Span::from_millis(100);
/// The longest wait: a FIN that is lost twice on a path with a round trip of 100 ms has
/// come by then.
const FAREWELL_MOST: Span = Span::from_secs(1);
/// How often connections are looked at.
pub(super) const LOOK_EVERY: Span = Span::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::testing::plan;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn daemons_have_a_moment_after_the_last_client_has_left() {
        let mut farewell = DaemonGracePeriod::new(at(0));
        assert!(!farewell.is_over(at(0), true));
        assert!(!farewell.is_over(at(50), false));
        assert!(!farewell.is_over(at(149), false));
        assert!(farewell.is_over(at(150), false), "100 ms after it was quiet first");
    }

    #[test]
    fn a_connection_that_comes_back_begins_the_moment_anew() {
        let mut farewell = DaemonGracePeriod::new(at(0));
        assert!(!farewell.is_over(at(0), false));
        assert!(!farewell.is_over(at(90), true));
        assert!(!farewell.is_over(at(100), false));
        assert!(!farewell.is_over(at(199), false));
        assert!(farewell.is_over(at(200), false));
    }

    #[test]
    fn clients_that_do_not_leave_are_waited_for_a_second() {
        let mut farewell = DaemonGracePeriod::new(at(0));
        assert!((0..100).all(|tick| !farewell.is_over(at(tick * 10), true)));
        assert!(farewell.is_over(at(1_000), true));
    }

    #[test]
    fn clients_are_the_nodes_without_running_programs_by_all_their_addresses() {
        let plan = plan("nodes: {server: {}, client: {}}\nlinks: [{between: [server, client]}]");
        let of = |node: usize| plan.nodes[node].interfaces[0].addresses().collect::<BTreeSet<_>>();
        assert_eq!(addresses_of_others(&plan, &BTreeSet::from([0])), of(1));
        assert_eq!(addresses_of_others(&plan, &BTreeSet::from([0, 1])), BTreeSet::new());
    }

    #[test]
    fn peers_are_those_of_open_connections_in_both_families() {
        let head =
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n";
        let v4 = "   0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n   \
                  1: 0200000A:1451 0100000A:D2F0 01 00000000:00000000 00:00000000 00000000\n   \
                  2: 0200000A:1451 0300000A:D2F1 06 00000000:00000000 00:00000000 00000000\n   \
                  3: 0200000A:1451 0400000A:D2F2 08 00000000:00000000 00:00000000 00000000\n";
        let seen: Vec<String> =
            peers(&format!("{head}{v4}")).map(|peer| peer.to_string()).collect();
        assert_eq!(seen, ["10.0.0.1", "10.0.0.4"]);
        let v6 = "   0: 000000FD000000000000000002000000:1451 000000FD000000000000000001000000:D2F0 09 0:0\n   \
                  1: 0000000000000000FFFF00000200000A:1451 0000000000000000FFFF00000100000A:D2F0 01 0:0\n";
        let seen: Vec<String> =
            peers(&format!("{head}{v6}")).map(|peer| peer.to_string()).collect();
        assert_eq!(seen, ["fd00::1", "10.0.0.1"]);
    }

    #[test]
    fn text_without_a_table_has_no_peers() {
        for text in [
            "",
            "head\n",
            "head\n 1: x y 01\n",
            "head\n 1: 0:0 zz:1 01\n",
            "head\n 1: 0:0 é0000000:1 01\n",
        ] {
            assert_eq!(peers(text).count(), 0, "{text:?}");
        }
    }
}
