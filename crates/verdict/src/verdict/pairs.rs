//! What the network between the machines of a run has lost: each machine counts what it sends to
//! each other one and what comes from it, and the two counts of a direction are the same unless
//! something was lost.

use windtunnel_dataplane::{OneWay, PeerTraffic};
use windtunnel_model::Span;

use crate::evidence::PartEvidence;
use crate::text::rounded;

/// Which pairs of machines have lost packets, or may have.
pub(super) fn doubts(hosts: &[PartEvidence<'_>]) -> Vec<String> {
    let mut doubts = Vec::new();
    for to in hosts {
        for peer in &to.evidence.tally.peers {
            doubts.extend(losses(hosts, to, peer));
            doubts.extend(silences(hosts, to, peer));
        }
    }
    doubts
}

fn losses(hosts: &[PartEvidence<'_>], to: &PartEvidence<'_>, came: &PeerTraffic) -> Option<String> {
    let from = hosts.iter().find(|host| host.results.member == came.member);
    let here = to.results.member;
    let sent = from.and_then(|from| {
        from.evidence.tally.peers.iter().find(|peer| peer.member == here).map(|peer| peer.sent)
    });
    let missing = missing(sent, came);
    let (to, name) = (&to.results.host, name(to, came.member));
    (missing > 0).then(|| match sent {
        Some(sent) => format!(
            "{missing} of {} datagrams with packets from host {name} to host {to} were lost between the machines",
            sent.datagrams
        ),
        None => format!(
            "at least {missing} datagrams with packets from host {name} to host {to} were lost between the machines"
        ),
    })
}

/// Datagrams that were sent after the run began and have not come. What the sender says may not be
/// known.
fn missing(sent: Option<OneWay>, came: &PeerTraffic) -> u64 {
    let all = |way: OneWay| way.datagrams_before + way.datagrams;
    let compared = sent.map_or(0, |sent| {
        // Machines do not begin at exactly the same time: what was lost before is not to be
        // counted, but what is only on the other side of the beginning is not lost.
        let before = sent.datagrams_before.saturating_sub(came.received.datagrams_before);
        all(sent).saturating_sub(all(came.received)).saturating_sub(before)
    });
    compared.max(came.overtaken)
}

fn silences(
    hosts: &[PartEvidence<'_>],
    host: &PartEvidence<'_>,
    peer: &PeerTraffic,
) -> Option<String> {
    let (first, more) = peer.silences.split_first()?;
    // A lost machine is reported by itself.
    hosts.iter().find(|other| other.results.member == peer.member)?;
    let span = |(from, to): &(Span, Span)| format!("{} to {}", rounded(*from), rounded(*to));
    let more = match more.len() {
        0 => String::new(),
        more => format!(" and {more} more times"),
    };
    Some(format!(
        "host {} got no answer of host {} from {}{more}: packets between the two may have been lost",
        host.results.host,
        name(host, peer.member),
        span(first)
    ))
}

fn name(host: &PartEvidence<'_>, member: u16) -> String {
    host.members.get(usize::from(member)).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(datagrams: u64, datagrams_before: u64) -> OneWay {
        OneWay { datagrams, datagrams_before, ..OneWay::default() }
    }

    fn came(received: OneWay, overtaken: u64) -> PeerTraffic {
        PeerTraffic { received, overtaken, ..PeerTraffic::default() }
    }

    #[test]
    fn a_datagram_sent_and_not_received_is_missing_even_if_none_has_overtaken_it() {
        assert_eq!(missing(Some(way(100, 0)), &came(way(24, 0), 0)), 76);
        assert_eq!(missing(Some(way(100, 0)), &came(way(100, 0), 0)), 0);
        // Without the sender's count, only the gaps are known.
        assert_eq!(missing(None, &came(way(90, 0), 7)), 7);
    }

    #[test]
    fn datagrams_lost_before_the_run_began_do_not_count() {
        assert_eq!(missing(Some(way(100, 10)), &came(way(100, 7), 0)), 0);
        assert_eq!(missing(Some(way(100, 10)), &came(way(98, 7), 0)), 2);
    }

    #[test]
    fn datagrams_across_the_beginning_of_the_run_are_not_lost() {
        // The receiver began after three datagrams had come.
        assert_eq!(missing(Some(way(100, 10)), &came(way(97, 13), 0)), 0);
        assert_eq!(missing(Some(way(100, 10)), &came(way(96, 13), 0)), 1);
    }
}
