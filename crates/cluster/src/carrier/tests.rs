//! Connections between two agents on loopback, and the streams of runs over them.

use std::net::UdpSocket;

use quinn::{EndpointConfig, TokioRuntime};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::agent::watch;
use crate::key::ClusterKey;
use crate::stream_limit::STREAMS_MAX;
use crate::tls::{self, IDLE_MS};

/// A carrier that listens, its address, and its events.
pub(crate) fn carrier(key: &ClusterKey) -> (Carrier, SocketAddr, UnboundedReceiver<CarrierEvent>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let (server, client) = tls::settings(key).unwrap();
    let runtime = Arc::new(TokioRuntime);
    let mut endpoint =
        Endpoint::new(EndpointConfig::default(), Some(server), socket, runtime).unwrap();
    endpoint.set_default_client_config(client);
    let (sender, events) = unbounded_channel();
    let carrier = Carrier::new(endpoint, sender, Hello::own("here".to_owned()));
    tokio::task::spawn_local(carrier.clone().accept());
    (carrier, address, events)
}

fn block_on(paused: bool, test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(paused)
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

/// The next run of which another agent's part begins to speak, with the word that it says.
async fn spoken(events: &mut UnboundedReceiver<CarrierEvent>) -> (u64, Word) {
    loop {
        if let CarrierEvent::Asked { ask: Ask::Receive { run, .. }, mut rest, .. } =
            events.recv().await.unwrap()
        {
            return (run, crate::stream::receive(&mut rest, 1 << 16).await.unwrap());
        }
    }
}

#[test]
fn parts_of_a_thousand_runs_speak_at_the_same_time() {
    let key = ClusterKey::generate().unwrap().0;
    block_on(false, async {
        let (from, ..) = carrier(&key);
        let (_to, address, mut events) = carrier(&key);
        let word = |run| Word::News { news: format!("of run {run}") };
        let speakers: Vec<_> =
            (0..1000).map(|run| watch::speaker(from.clone(), address, (run, 0))).collect();
        for (run, speaker) in speakers.iter().enumerate() {
            speaker.send(word(run as u64)).unwrap();
        }
        let mut runs = Vec::new();
        while runs.len() < speakers.len() {
            let (run, said) = spoken(&mut events).await;
            assert!(matches!(said, Word::News { news } if news == format!("of run {run}")));
            runs.push(run);
        }
        runs.sort_unstable();
        assert!(runs.into_iter().eq(0..1000), "each once");
    });
}

#[test]
fn the_streams_of_runs_that_are_over_are_free_for_others() {
    let key = ClusterKey::generate().unwrap().0;
    block_on(false, async {
        let (from, ..) = carrier(&key);
        let (_to, address, mut events) = carrier(&key);
        // More than there may be at a time.
        for run in 0..u64::from(STREAMS_MAX) + 100 {
            let speaker = watch::speaker(from.clone(), address, (run, 0));
            speaker.send(Word::Failed { why: String::new() }).unwrap();
            drop(speaker);
            assert_eq!(spoken(&mut events).await.0, run);
        }
    });
}

#[test]
fn a_connection_without_traffic_ends_by_itself_and_is_made_again() {
    let key = ClusterKey::generate().unwrap().0;
    block_on(true, async {
        let (from, ..) = carrier(&key);
        let (to, address, mut events) = carrier(&key);
        for round in 0..2_u8 {
            from.send(address, vec![round]);
            let event = events.recv().await.unwrap();
            assert!(matches!(event, CarrierEvent::Datagram { bytes, .. } if bytes == [round]));
            assert_eq!((from.ways().len(), to.ways().len()), (1, 1));
            tokio::time::sleep(Duration::from_millis(u64::from(IDLE_MS) * 2)).await;
            assert_eq!((from.ways().len(), to.ways().len()), (0, 0));
        }
    });
}
