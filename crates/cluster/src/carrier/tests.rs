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
pub(crate) fn carrier(
    key: &ClusterKey,
) -> (AgentConnectionPool, SocketAddr, UnboundedReceiver<CarrierEvent>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let (server, client) = tls::settings(key).unwrap();
    let runtime = Arc::new(TokioRuntime);
    let mut endpoint =
        Endpoint::new(EndpointConfig::default(), Some(server), socket, runtime).unwrap();
    endpoint.set_default_client_config(client);
    let (sender, events) = unbounded_channel();
    let carrier = AgentConnectionPool::new(endpoint, sender, AgentHello::own("here".to_owned()));
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
async fn spoken(events: &mut UnboundedReceiver<CarrierEvent>) -> (u64, RunMemberMessage) {
    loop {
        if let CarrierEvent::Asked { ask: AgentRequest::Receive { run, .. }, mut streams } =
            events.recv().await.unwrap()
        {
            return (run, crate::stream::receive(&mut streams.rest, 1 << 16).await.unwrap());
        }
    }
}

#[test]
fn parts_of_a_thousand_runs_speak_at_the_same_time() {
    let key = ClusterKey::generate().unwrap().0;
    block_on(false, async {
        let (from, ..) = carrier(&key);
        let (_to, address, mut events) = carrier(&key);
        let word = |run| RunMemberMessage::News { news: format!("of run {run}") };
        let speakers: Vec<_> =
            (0..1000).map(|run| watch::speaker(from.clone(), address, run, 0)).collect();
        for (run, speaker) in speakers.iter().enumerate() {
            speaker.send(word(run as u64)).unwrap();
        }
        let mut runs = Vec::new();
        while runs.len() < speakers.len() {
            let (run, said) = spoken(&mut events).await;
            assert!(
                matches!(said, RunMemberMessage::News { news } if news == format!("of run {run}"))
            );
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
            let speaker = watch::speaker(from.clone(), address, run, 0);
            speaker.send(RunMemberMessage::Failed { why: String::new() }).unwrap();
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

#[test]
fn of_datagrams_that_wait_for_a_connection_the_last_are_kept_in_order() {
    let key = ClusterKey::generate().unwrap().0;
    block_on(false, async {
        let (from, ..) = carrier(&key);
        let (_to, address, mut events) = carrier(&key);
        // Nothing else runs meanwhile: the connection is not there yet.
        for number in 0..100_u8 {
            from.send(address, vec![number]);
        }
        for number in 100 - u8::try_from(WAITING_MAX).unwrap()..100 {
            let event = events.recv().await.unwrap();
            assert!(
                matches!(&event, CarrierEvent::Datagram { bytes, .. } if *bytes == [number]),
                "{number}: {event:?}"
            );
        }
        from.drain().await;
    });
}

#[test]
fn all_that_ask_for_a_connection_get_the_same_one_until_it_is_forgotten() {
    let key = ClusterKey::generate().unwrap().0;
    block_on(false, async {
        let (from, ..) = carrier(&key);
        let (_to, address, _events) = carrier(&key);
        let (one, two) = tokio::join!(from.connection(address), from.connection(address));
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one.stable_id(), two.stable_id());
        assert_eq!(from.connection(address).await.unwrap().stable_id(), one.stable_id());
        from.forget(address);
        assert!(one.close_reason().is_some() && from.ways().is_empty());
        let again = from.connection(address).await.unwrap();
        assert!(again.stable_id() != one.stable_id() && again.close_reason().is_none());
        // An address without a connection is forgotten without effect.
        from.forget("127.0.0.1:1".parse().unwrap());
        assert_eq!(from.ways().len(), 1);
    });
}

#[test]
fn all_that_wait_for_a_connection_learn_that_there_is_none() {
    let key = ClusterKey::generate().unwrap().0;
    block_on(true, async {
        let (from, ..) = carrier(&key);
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let (one, two) = tokio::join!(from.connection(address), from.connection(address));
        let why = "no handshake within 5 s".to_owned();
        assert_eq!((one.unwrap_err(), two.unwrap_err()), (why.clone(), why));
        assert!(from.ways().is_empty());
    });
}

#[test]
fn a_carrier_with_another_key_is_refused_and_both_ends_report_it() {
    let (ours, theirs) = (ClusterKey::generate().unwrap().0, ClusterKey::generate().unwrap().0);
    block_on(false, async {
        let (from, _, mut here) = carrier(&theirs);
        let (_to, address, mut there) = carrier(&ours);
        assert_eq!(from.connection(address).await.unwrap_err(), "it has another key");
        let CarrierEvent::RefusedBy { by, why } = here.recv().await.unwrap() else {
            panic!("it is not refused")
        };
        assert_eq!((by, why.as_str()), (address, "it has another key"));
        assert!(matches!(there.recv().await, Some(CarrierEvent::Refused { .. })));
    });
}

#[test]
fn a_message_is_read_up_to_its_limit_and_not_beyond() {
    let key = ClusterKey::generate().unwrap().0;
    block_on(false, async {
        let (from, ..) = carrier(&key);
        let (_to, address, mut events) = carrier(&key);
        let connection = from.connection(address).await.unwrap();
        let failed = |bytes: usize| RunMemberMessage::Failed { why: "x".repeat(bytes) };
        // `{"word":"failed","why":""}` are 26 bytes.
        for (bytes, most, is_read) in [(74, 100, true), (75, 100, false), (70_000, 70_026, true)] {
            let (mut to, _answer) = connection.open_bi().await.unwrap();
            crate::stream::send(&mut to, &AgentRequest::Receive { run: 1, member: 1 })
                .await
                .unwrap();
            crate::stream::send(&mut to, &failed(bytes)).await.unwrap();
            let CarrierEvent::Asked { mut streams, .. } = events.recv().await.unwrap() else {
                panic!("no question")
            };
            // Longer than any reason, and still a message: its own rules come after the limit.
            let word = crate::stream::receive::<RunMemberMessage>(&mut streams.rest, most).await;
            let is_short = bytes <= 64 << 10;
            assert_eq!(word.is_ok(), is_read && is_short, "{bytes} bytes: {word:?}");
        }
    });
}

#[test]
fn a_message_that_breaks_off_is_an_error_that_says_so() {
    let key = ClusterKey::generate().unwrap().0;
    block_on(false, async {
        let (from, ..) = carrier(&key);
        let (_to, address, mut events) = carrier(&key);
        let connection = from.connection(address).await.unwrap();
        for cut in [0, 3, 4, 10] {
            let (mut to, _answer) = connection.open_bi().await.unwrap();
            crate::stream::send(&mut to, &AgentRequest::Take).await.unwrap();
            let word =
                windtunnel_control::frame::encode(&RunMemberMessage::News { news: "x".into() })
                    .unwrap();
            to.write_all(&word[..cut]).await.unwrap();
            to.finish().unwrap();
            let CarrierEvent::Asked { mut streams, .. } = events.recv().await.unwrap() else {
                panic!("no question")
            };
            let error = crate::stream::receive::<RunMemberMessage>(&mut streams.rest, 100)
                .await
                .unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{cut}");
            assert_eq!(error.to_string(), "it broke off");
        }
    });
}
