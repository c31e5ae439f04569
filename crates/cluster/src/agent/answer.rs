//! What an agent answers.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use quinn::SendStream;

use super::measure;
use crate::carrier::Carrier;
use crate::protocol::{Answer, Ask, Card, Hosts, Silent};
use crate::stream_limit::CountedStream;
use crate::{client, stream};

/// Answers one question. `others` are the agents that are there.
pub(super) async fn answer(
    ask: Ask,
    card: Card,
    others: Vec<SocketAddr>,
    carrier: Carrier,
    to: SendStream,
    rest: CountedStream,
) {
    let answer = match ask {
        Ask::Card => Answer::Card(Box::new(card)),
        Ask::Hosts { measure } => Answer::Hosts(hosts(card, others, &carrier, measure).await),
        Ask::Take => match count(rest).await {
            Ok(bytes) => Answer::Taken { bytes },
            Err(error) => Answer::Error { message: error.to_string() },
        },
        Ask::Send { to } if others.contains(&to) => match measure::throughput(&carrier, to).await {
            Ok(bit_per_s) => Answer::Throughput { bit_per_s },
            Err(message) => Answer::Error { message },
        },
        Ask::Send { to } => Answer::Error { message: format!("no agent is known at {to}") },
        _ => Answer::Error { message: "that is answered elsewhere".to_owned() },
    };
    send(to, answer).await;
}

/// Sends an answer. If that fails, the client has gone.
pub(super) async fn send(mut to: SendStream, answer: Answer) {
    let _ = stream::send(&mut to, &answer).await;
    let _ = to.finish();
}

async fn hosts(own: Card, others: Vec<SocketAddr>, carrier: &Carrier, measure: bool) -> Hosts {
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
            Err(why) => silent.push(Silent { address, why }),
        }
    }
    hosts.sort_by(|a, b| (&a.host, a.address).cmp(&(&b.host, b.address)));
    let asked = hosts.iter().position(|card| card.agent == own.agent).unwrap_or(0);
    let throughput = if measure { measure::all(&hosts, &own, carrier).await } else { Vec::new() };
    Hosts { asked, hosts, silent, throughput }
}

async fn card_of(carrier: &Carrier, address: SocketAddr) -> Result<Card, String> {
    match ask(carrier, address, &Ask::Card, CARD_PATIENCE).await? {
        Answer::Card(card) => Ok(*card),
        _ => Err("something else than was asked".to_owned()),
    }
}

pub(super) async fn ask(
    carrier: &Carrier,
    address: SocketAddr,
    question: &Ask,
    patience: Duration,
) -> Result<Answer, String> {
    let asking = async {
        let connection = carrier.connection(address).await?;
        client::ask(&connection, question).await.map_err(|error| error.to_string())
    };
    match tokio::time::timeout(patience, asking).await {
        Ok(Ok(Answer::Error { message })) => Err(message),
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
