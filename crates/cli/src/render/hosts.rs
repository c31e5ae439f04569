//! The machines of a cluster as tables.

use std::net::SocketAddr;

use windtunnel_cluster::protocol::{
    AgentClockOffset, AgentDescription, ClusterHosts, MachineIneligibility,
};
use windtunnel_model::word::NamedState;

use super::quantity;
use super::table::{ColumnAlignment, TextTable};

/// The resources of each machine, and the round-trip times between several.
pub(crate) fn text(hosts: &ClusterHosts) -> String {
    let mut text = machines(hosts).render("");
    if hosts.hosts.len() > 1 {
        text.push_str("\nround trips, from the row to the column\n");
        text.push_str(&matrix(hosts, |from, to| {
            hosts.rtt_ns(from, to).map_or_else(|| "?".to_owned(), quantity::nanos)
        }));
    }
    if !hosts.throughput.is_empty() {
        text.push_str("\nthroughput of one encrypted connection, from the row to the column\n");
        text.push_str(&matrix(hosts, |from, to| {
            throughput(hosts, from.address, to.address)
                .map_or_else(|| "?".to_owned(), quantity::rate)
        }));
    }
    text
}

fn machines(hosts: &ClusterHosts) -> TextTable {
    let mut table = TextTable::new(&[
        ("host", ColumnAlignment::Left),
        ("address", ColumnAlignment::Left),
        ("cpus", ColumnAlignment::Right),
        ("load", ColumnAlignment::Right),
        ("memory", ColumnAlignment::Right),
        ("free", ColumnAlignment::Right),
        ("uplink", ColumnAlignment::Right),
        ("runs", ColumnAlignment::Right),
        ("nodes", ColumnAlignment::Right),
        ("clock", ColumnAlignment::Left),
        ("by", ColumnAlignment::Left),
        ("labels", ColumnAlignment::Left),
    ]);
    let asked = hosts.hosts.get(hosts.asked);
    for host in &hosts.hosts {
        table.row([
            host.host.clone(),
            host.address.to_string(),
            host.cpus.to_string(),
            format!("{}.{:02}", host.load_hundredths / 100, host.load_hundredths % 100),
            quantity::bytes(host.memory.0),
            quantity::bytes(host.memory_free.0),
            host.uplink.map_or_else(String::new, |rate| quantity::rate(rate.bits_per_second())),
            host.reserved.runs.to_string(),
            match host.nodes_max {
                _ if host.unfit.is_some() => "none".to_owned(),
                Some(most) => format!("{} of {most}", host.reserved.nodes),
                None => host.reserved.nodes.to_string(),
            },
            asked.map_or_else(String::new, |asked| clock(asked, host)),
            asked
                .and_then(|asked| clock_of(asked, host))
                .map_or("", |clock| clock.by.word())
                .to_owned(),
            host.labels.iter().cloned().collect::<Vec<_>>().join(","),
        ]);
    }
    table
}

/// How a machine's clock stands to that of the agent that was asked. Clocks that count from the
/// machine's start differ by days: only the uncertainty of the difference matters.
fn clock(asked: &AgentDescription, host: &AgentDescription) -> String {
    if asked.agent == host.agent {
        return "asked".to_owned();
    }
    match clock_of(asked, host) {
        None => "?".to_owned(),
        Some(clock) => {
            let sign = if clock.offset_ns < 0 { '-' } else { '+' };
            let offset = quantity::nanos(clock.offset_ns.unsigned_abs());
            format!("{sign}{offset}, to {}", quantity::nanos(clock.error_ns))
        }
    }
}

fn clock_of(asked: &AgentDescription, host: &AgentDescription) -> Option<AgentClockOffset> {
    asked.peers.iter().find(|peer| peer.agent == host.agent)?.clock
}

fn matrix(
    hosts: &ClusterHosts,
    cell: impl Fn(&AgentDescription, &AgentDescription) -> String,
) -> String {
    let mut columns = vec![("", ColumnAlignment::Left)];
    columns.extend(hosts.hosts.iter().map(|host| (host.host.as_str(), ColumnAlignment::Right)));
    let mut table = TextTable::new(&columns);
    for from in &hosts.hosts {
        let cells = hosts.hosts.iter().map(|to| match from.agent == to.agent {
            true => "-".to_owned(),
            false => cell(from, to),
        });
        table.row(std::iter::once(from.host.clone()).chain(cells));
    }
    table.render("")
}

fn throughput(hosts: &ClusterHosts, from: SocketAddr, to: SocketAddr) -> Option<u64> {
    let measured = hosts.throughput.iter().find(|one| (one.from, one.to) == (from, to))?;
    measured.bit_per_s
}

/// Machines that can have no nodes, with the reasons.
pub(crate) fn unfit(hosts: &ClusterHosts) -> Vec<String> {
    let some = hosts.hosts.iter().filter_map(|host| Some((host, host.unfit.as_ref()?)));
    let text = |(host, unfit): (&AgentDescription, &MachineIneligibility)| {
        let hint = unfit.hint.as_ref().map_or_else(String::new, |hint| format!("\nhint: {hint}"));
        format!("warning: {} can have no nodes: {}{hint}", host.host, unfit.why)
    };
    some.map(text).collect()
}

/// Machines at which something knocks that is of no run there.
pub(crate) fn refused(hosts: &ClusterHosts) -> Vec<String> {
    let some = hosts.hosts.iter().filter(|host| host.refused_datagrams > 0);
    let text = |host: &AgentDescription| {
        format!(
            "warning: ports of runs on {} have refused {} since its agent began: of another sender or \
             run, not whole, or sent twice",
            host.host,
            quantity::count(
                usize::try_from(host.refused_datagrams).unwrap_or(usize::MAX),
                "datagram"
            )
        )
    };
    some.map(text).collect()
}

#[cfg(test)]
mod tests {
    use windtunnel_cluster::protocol::Throughput;
    use windtunnel_lead::sample::{card, knows};
    use windtunnel_model::word::ClockSource;

    use super::*;

    #[test]
    fn machines_are_rows_and_what_is_between_them_is_a_matrix() {
        let mut cards = [card("a", 0), card("b", 1)];
        knows(&mut cards, 0, 1, 80_000);
        knows(&mut cards, 1, 0, 80_000);
        let clocks = cards[0].peers.iter_mut().filter_map(|peer| peer.clock.as_mut());
        clocks.for_each(|clock| {
            (clock.offset_ns, clock.by) = (-1_500_000, ClockSource::Synchronised);
        });
        cards.iter_mut().for_each(|card| (card.reserved.runs, card.reserved.nodes) = (1, 3));
        cards[1].nodes_max = Some(10);
        let [a, b] = cards;
        let throughput =
            vec![Throughput { from: a.address, to: b.address, bit_per_s: Some(940_000_000) }];
        let hosts = ClusterHosts { asked: 0, hosts: vec![a, b], silent: Vec::new(), throughput };
        let expected = "\
host  address        cpus  load  memory  free  uplink  runs    nodes  clock            by            labels
a     10.0.0.0:7447     8  1.05    16GB  12GB             1        3  asked                          ssd
b     10.0.0.1:7447     8  1.05    16GB  12GB             1  3 of 10  -1.5ms, to 40us  synchronised  ssd

round trips, from the row to the column
      a     b
a     -  80us
b  80us     -

throughput of one encrypted connection, from the row to the column
   a        b
a  -  940mbit
b  ?        -
";
        assert_eq!(text(&hosts), expected);
    }

    #[test]
    fn machines_that_can_have_no_nodes_are_marked_and_named_with_the_reason() {
        let mut cards = [card("a", 0), card("b", 1)];
        let why = "cannot make a user namespace".to_owned();
        cards[1].unfit = Some(MachineIneligibility { why, hint: Some("allow it".to_owned()) });
        let hosts = ClusterHosts {
            asked: 0,
            hosts: cards.into(),
            silent: Vec::new(),
            throughput: Vec::new(),
        };
        let lines: Vec<String> = machines(&hosts).lines();
        assert!(!lines[1].contains("none") && lines[2].contains("none"), "{lines:?}");
        assert_eq!(
            unfit(&hosts),
            ["warning: b can have no nodes: cannot make a user namespace\nhint: allow it"]
        );
    }

    #[test]
    fn machines_whose_ports_refuse_datagrams_are_named_with_how_many() {
        let mut cards = [card("a", 0), card("b", 1)];
        cards[1].refused_datagrams = 562;
        let hosts = ClusterHosts {
            asked: 0,
            hosts: cards.into(),
            silent: Vec::new(),
            throughput: Vec::new(),
        };
        assert_eq!(
            refused(&hosts),
            ["warning: ports of runs on b have refused 562 datagrams since its agent began: of \
              another sender or run, not whole, or sent twice"]
        );
    }
}
