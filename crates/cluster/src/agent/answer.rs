//! What an agent answers.

use std::net::SocketAddr;
use std::time::Duration;

use super::measure;
use crate::carrier::AgentConnectionPool;
use crate::client;
use crate::protocol::answers::{AgentAnswer, MeasuredThroughput, TakenBytes, no_answer};
use crate::protocol::questions::AgentQuestion;
use crate::protocol::{AgentDescription, AgentRequest, ClusterHosts, UnresponsiveAgent};
use crate::stream_limit::CountedStream;

/// Sends bytes to another agent, which has to be one of `others`.
pub(super) async fn send(
    carrier: &AgentConnectionPool,
    others: &[SocketAddr],
    to: SocketAddr,
) -> Result<MeasuredThroughput, String> {
    if !others.contains(&to) {
        return Err(format!("no agent is known at {to}"));
    }
    measure::throughput(carrier, to).await.map(MeasuredThroughput)
}

/// All agents. `others` are those that are there.
pub(super) async fn hosts(
    own: AgentDescription,
    others: Vec<SocketAddr>,
    carrier: &AgentConnectionPool,
    measure: bool,
) -> ClusterHosts {
    let (mut hosts, mut silent) = (vec![own.clone()], Vec::new());
    let asked = others.into_iter().map(|address| {
        let carrier = carrier.clone();
        (address, tokio::task::spawn_local(async move { card_of(&carrier, address).await }))
    });
    // All are asked before the first answer is waited for.
    let asked: Vec<_> = asked.collect();
    for (address, asking) in asked {
        match asking.await.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(card) => hosts.push(card),
            Err(why) => silent.push(UnresponsiveAgent { address, why }),
        }
    }
    hosts.sort_by(|a, b| (&a.host, a.address).cmp(&(&b.host, b.address)));
    let asked = hosts.iter().position(|card| card.agent == own.agent).unwrap_or(0);
    let throughput = if measure { measure::all(&hosts, &own, carrier).await } else { Vec::new() };
    ClusterHosts { asked, hosts, silent, throughput }
}

async fn card_of(
    carrier: &AgentConnectionPool,
    address: SocketAddr,
) -> Result<AgentDescription, String> {
    ask(carrier, address, &AgentRequest::card(), CARD_PATIENCE).await
}

pub(super) async fn ask<A: AgentAnswer>(
    carrier: &AgentConnectionPool,
    address: SocketAddr,
    question: &AgentQuestion<A>,
    patience: Duration,
) -> Result<A, String> {
    let asking = async {
        let connection = carrier.connection(address).await?;
        client::ask(&connection, question).await.map_err(|error| error.to_string())
    };
    match tokio::time::timeout(patience, asking).await {
        Ok(Ok(answer)) => answer.map_err(|reply| no_answer(reply).to_string()),
        Ok(Err(why)) => Err(why),
        Err(_) => Err(format!("no answer within {} s", patience.as_secs())),
    }
}

/// Counts the bytes that come.
pub(super) async fn take(rest: &mut CountedStream) -> Result<TakenBytes, String> {
    let mut bytes = 0;
    while let Some(chunk) =
        rest.read_chunk(usize::MAX, false).await.map_err(|error| error.to_string())?
    {
        bytes += u64::try_from(chunk.bytes.len()).unwrap_or(u64::MAX);
    }
    Ok(TakenBytes(bytes))
}

const CARD_PATIENCE: Duration = Duration::from_secs(2);
