//! What an agent answers.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use quinn::SendStream;

use super::measure;
use crate::carrier::AgentConnectionPool;
use crate::protocol::{
    AgentDescription, AgentReply, AgentRequest, ClusterHosts, UnresponsiveAgent,
};
use crate::stream_limit::CountedStream;
use crate::{client, stream};

/// Answers one question. `others` are the agents that are there.
pub(super) async fn answer(
    ask: AgentRequest,
    card: AgentDescription,
    others: Vec<SocketAddr>,
    carrier: AgentConnectionPool,
    to: SendStream,
    rest: CountedStream,
) {
    let answer = match ask {
        AgentRequest::Card => AgentReply::Card(Box::new(card)),
        AgentRequest::Hosts { measure } => {
            AgentReply::Hosts(hosts(card, others, &carrier, measure).await)
        }
        AgentRequest::Take => match count(rest).await {
            Ok(bytes) => AgentReply::Taken { bytes },
            Err(error) => AgentReply::Error { message: error.to_string() },
        },
        AgentRequest::Send { to } if others.contains(&to) => {
            match measure::throughput(&carrier, to).await {
                Ok(bit_per_s) => AgentReply::Throughput { bit_per_s },
                Err(message) => AgentReply::Error { message },
            }
        }
        AgentRequest::Send { to } => {
            AgentReply::Error { message: format!("no agent is known at {to}") }
        }
        _ => AgentReply::Error { message: "that is answered elsewhere".to_owned() },
    };
    send(to, answer).await;
}

/// Sends an answer. If that fails, the client has gone.
pub(super) async fn send(mut to: SendStream, answer: AgentReply) {
    let _ = stream::send(&mut to, &answer).await;
    let _ = to.finish();
}

async fn hosts(
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
    match ask(carrier, address, &AgentRequest::Card, CARD_PATIENCE).await? {
        AgentReply::Card(card) => Ok(*card),
        _ => Err("something else than was asked".to_owned()),
    }
}

pub(super) async fn ask(
    carrier: &AgentConnectionPool,
    address: SocketAddr,
    question: &AgentRequest,
    patience: Duration,
) -> Result<AgentReply, String> {
    let asking = async {
        let connection = carrier.connection(address).await?;
        client::ask(&connection, question).await.map_err(|error| error.to_string())
    };
    match tokio::time::timeout(patience, asking).await {
        Ok(Ok(AgentReply::Error { message })) => Err(message),
        Ok(answer) => answer,
        Err(_) => Err(format!("no answer within {} s", patience.as_secs())),
    }
}

async fn count(mut rest: CountedStream) -> io::Result<u64> {
    let mut bytes = 0;
    while let Some(chunk) = rest.read_chunk(usize::MAX, false).await? {
        bytes += u64::try_from(chunk.bytes.len()).unwrap_or(u64::MAX);
    }
    Ok(bytes)
}

const CARD_PATIENCE: Duration = Duration::from_secs(2);
