//! Agents to look for, by their names: a name may mean something later, and something else later
//! still.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use crate::carrier::CarrierEvent;
use crate::client;

/// Looks names up again and again, and sends each address once. `found` is what they mean now.
pub(super) async fn seek(
    names: Vec<String>,
    listen: SocketAddr,
    mut found: AgentNameResolution,
    events: UnboundedSender<CarrierEvent>,
) {
    let mut sent = BTreeSet::new();
    while !names.is_empty() {
        found.known.retain(|address| sent.insert(*address));
        if !found.known.is_empty() && events.send(CarrierEvent::Seek(found.known)).is_err() {
            return;
        }
        tokio::time::sleep(if found.unknown.is_empty() { LATER } else { SOON }).await;
        found = resolve_all(&names, listen).await;
    }
}

/// What names mean.
#[derive(Debug, Default)]
pub(super) struct AgentNameResolution {
    /// Addresses, as far as they can be reached from where this agent listens.
    pub(super) known: Vec<SocketAddr>,
    /// Names that mean nothing, with what the system says.
    pub(super) unknown: Vec<(String, String)>,
}

/// Looks up what names mean.
pub(super) async fn resolve_all(names: &[String], listen: SocketAddr) -> AgentNameResolution {
    let mut found = AgentNameResolution::default();
    for name in names {
        let asked = name.clone();
        let resolved = tokio::task::spawn_blocking(move || client::resolve(&asked)).await;
        match resolved {
            Ok(Ok(addresses)) => found.known.extend(reached(addresses, listen)),
            Ok(Err(error)) => found.unknown.push((name.clone(), cause(&error))),
            Err(error) => found.unknown.push((name.clone(), error.to_string())),
        }
    }
    found
}

/// An agent that listens on IPv4 only sends with it only.
fn reached(mut addresses: Vec<SocketAddr>, listen: SocketAddr) -> Vec<SocketAddr> {
    if listen.is_ipv4() {
        addresses.retain(SocketAddr::is_ipv4);
    }
    addresses
}

fn cause(error: &client::AgentClientError) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// How soon names are looked up again of which some mean nothing yet.
const SOON: Duration = Duration::from_secs(2);
/// How soon otherwise: machines come back with other addresses.
const LATER: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_family_that_the_agent_does_not_use_are_left_out() {
        let all: Vec<SocketAddr> =
            ["[::1]:1", "127.0.0.1:1"].map(|address| address.parse().unwrap()).into();
        let from = |listen: &str| reached(all.clone(), listen.parse().unwrap());
        assert_eq!((from("0.0.0.0:1"), from("[::]:1")), (all[1..].to_vec(), all.clone()));
    }

    #[test]
    fn a_name_that_means_something_is_sent_once_and_looked_up_again_later() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let listen = "127.0.0.1:1".parse().unwrap();
            let names = vec!["127.0.0.1:7".to_owned(), "no such host".to_owned()];
            let found = resolve_all(&names, listen).await;
            assert_eq!(found.known, ["127.0.0.1:7".parse().unwrap()]);
            assert_eq!(found.unknown.len(), 1);
            assert_eq!(found.unknown[0].0, "no such host");
            let (events, mut received) = tokio::sync::mpsc::unbounded_channel();
            let seeking = tokio::spawn(seek(names, listen, found, events));
            let Some(CarrierEvent::Seek(addresses)) = received.recv().await else {
                panic!("no address")
            };
            assert_eq!(addresses, ["127.0.0.1:7".parse().unwrap()]);
            // A minute of further look-ups sends nothing new.
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert!(received.try_recv().is_err() && !seeking.is_finished());
        });
    }

    #[test]
    fn without_names_there_is_nothing_to_seek() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (events, mut received) = tokio::sync::mpsc::unbounded_channel();
        let listen = "127.0.0.1:1".parse().unwrap();
        runtime.block_on(seek(Vec::new(), listen, AgentNameResolution::default(), events));
        assert!(received.try_recv().is_err());
    }
}
