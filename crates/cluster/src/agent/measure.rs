//! Throughput between agents.
//!
//! Pairs are measured in rounds as in a tournament: in each, every agent is in one pair at the
//! most, and all pairs of the round are measured at the same time. So the time grows with the
//! number of agents, not with that of their pairs, and no two measurements share a machine. Of many
//! agents only some pairs are measured.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::answer::ask;
use crate::carrier::AgentConnectionPool;
use crate::protocol::answers::{AgentAnswer, MeasuredThroughput, TakenBytes, no_answer};
use crate::protocol::{AgentDescription, AgentRequest, Throughput};
use crate::stream;

/// Measures between the agents of `hosts`, of which this one is `own`.
pub(super) async fn all(
    hosts: &[AgentDescription],
    own: &AgentDescription,
    carrier: &AgentConnectionPool,
) -> Vec<Throughput> {
    let began = Instant::now();
    let mut measured = Vec::new();
    for round in rounds(hosts.len(), ROUNDS_MAX) {
        if began.elapsed() >= ALL {
            break;
        }
        let pairs = round.into_iter().map(|(one, other)| {
            let (ends, own, carrier) =
                ((hosts[one].clone(), hosts[other].clone()), own.agent.clone(), carrier.clone());
            tokio::task::spawn_local(async move { both_ways(&ends, &own, &carrier).await })
        });
        // All begin before the first is waited for.
        let pairs: Vec<_> = pairs.collect();
        for pair in pairs {
            measured.extend(pair.await.into_iter().flatten());
        }
    }
    measured.sort_by_key(|it| (it.from, it.to));
    measured
}

/// Two agents, one direction after the other.
async fn both_ways(
    ends: &(AgentDescription, AgentDescription),
    own: &str,
    carrier: &AgentConnectionPool,
) -> [Throughput; 2] {
    let (one, other) = ends;
    let there = one_way(one, other, own, carrier).await;
    [there, one_way(other, one, own, carrier).await]
}

async fn one_way(
    from: &AgentDescription,
    to: &AgentDescription,
    own: &str,
    carrier: &AgentConnectionPool,
) -> Throughput {
    let bit_per_s = if from.agent == own {
        throughput(carrier, to.address).await.ok()
    } else {
        let question = AgentRequest::send(to.address);
        let asked = ask(carrier, from.address, &question, MEASURE_PATIENCE).await;
        asked.ok().map(|MeasuredThroughput(bit_per_s)| bit_per_s)
    };
    Throughput { from: from.address, to: to.address, bit_per_s }
}

/// Which pairs are measured, round by round: each pair once, if that takes no more than `most`
/// rounds; else each agent with as many others as there are rounds, at all distances in the
/// list. One stays in its place and the others go around it (the circle method); of an odd number
/// one rests in each round.
fn rounds(count: usize, most: usize) -> Vec<Vec<(usize, usize)>> {
    let seats = count + count % 2;
    let circle = seats.saturating_sub(1);
    let taken = circle.min(most);
    let round = |number: usize| {
        let turn = number * circle / taken;
        let seat = |at: usize| if at == circle { circle } else { (at + turn) % circle };
        let pairs = (0..seats / 2).map(|at| (seat(at), seat(seats - 1 - at)));
        pairs.filter(|(one, other)| *one < count && *other < count).collect()
    };
    (0..taken).map(round).collect()
}

/// The throughput to another agent over [`MEASURE`], in bit/s.
pub(super) async fn throughput(
    carrier: &AgentConnectionPool,
    to: SocketAddr,
) -> Result<u64, String> {
    let sending = async {
        // A connection of its own: that of the mesh must not wait behind this.
        let connection = carrier.connect(to).await?;
        let sent = send_for(&connection).await.map_err(|error: io::Error| error.to_string());
        connection.close(0_u32.into(), b"measured");
        sent
    };
    let patience = tokio::time::timeout(MEASURE_PATIENCE, sending).await;
    patience.unwrap_or_else(|_| Err("it took too long".to_owned()))
}

async fn send_for(connection: &quinn::Connection) -> io::Result<u64> {
    let (mut to, mut from) = connection.open_bi().await?;
    stream::send(&mut to, AgentRequest::take().message()).await?;
    let (piece, began) = (vec![0; PIECE], Instant::now());
    while began.elapsed() < MEASURE {
        to.write_all(&piece).await?;
    }
    to.finish().map_err(io::Error::other)?;
    let TakenBytes(bytes) =
        TakenBytes::of(stream::receive(&mut from, PIECE).await?).map_err(no_answer)?;
    let nanos = began.elapsed().as_nanos().max(1);
    Ok(u64::try_from(u128::from(bytes) * 8_000_000_000 / nanos).unwrap_or(u64::MAX))
}

/// Rounds at the most; a round takes some 0.7 s: two directions of [`MEASURE`] each, and a
/// connection for each.
const ROUNDS_MAX: usize = 32;
/// No round begins later than this after the first: an agent that does not answer delays its round.
const ALL: Duration = Duration::from_secs(45);
const MEASURE: Duration = Duration::from_millis(300);
const MEASURE_PATIENCE: Duration = Duration::from_secs(5);
const PIECE: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn check(count: usize, most: usize) -> (usize, BTreeSet<(usize, usize)>) {
        let all = rounds(count, most);
        let mut pairs = BTreeSet::new();
        for round in &all {
            let mut busy = BTreeSet::new();
            for (one, other) in round {
                assert!(busy.insert(*one) && busy.insert(*other), "{count}: {round:?}");
                assert!(pairs.insert((*one.min(other), *one.max(other))), "{count}: twice");
            }
        }
        (all.len(), pairs)
    }

    #[test]
    fn each_two_agents_are_measured_once_in_as_many_rounds_as_there_are_others() {
        for count in [0, 1, 2, 3, 4, 7, 12, 30, 33] {
            let (rounds, pairs) = check(count, ROUNDS_MAX + 1);
            assert_eq!(pairs.len(), count * count.saturating_sub(1) / 2, "{count}");
            assert_eq!(rounds, (count + count % 2).saturating_sub(1), "{count}");
        }
    }

    #[test]
    fn of_many_agents_each_is_measured_with_some_in_a_bounded_number_of_rounds() {
        for count in [50, 101, 1000] {
            let (rounds, pairs) = check(count, ROUNDS_MAX);
            assert_eq!(rounds, ROUNDS_MAX);
            for agent in 0..count {
                let with = pairs.iter().filter(|(one, other)| *one == agent || *other == agent);
                // Of an odd number, one rests in each round.
                assert!(with.count() >= ROUNDS_MAX - 1, "{agent} of {count}");
            }
        }
    }
}
