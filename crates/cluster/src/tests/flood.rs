use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use quinn::Endpoint;

use super::{Live, key};
use crate::admission::{HALF_OPEN_MAX, HALF_OPEN_OF_ADDRESS_MAX};
use crate::carrier::CarrierEvent;
use crate::carrier::tests::carrier;
use crate::key::NAME;
use crate::{AgentClient, AgentNotice, tls};

/// Between a client and an agent: proves the client's address (passes Retry packets back), and lets
/// nothing else of the agent's through, so that the client repeats its beginning and the handshake
/// is never finished.
async fn hold(agent: SocketAddr, address: [u8; 4], began: Rc<AtomicUsize>) {
    let front = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let back = tokio::net::UdpSocket::bind((std::net::IpAddr::from(address), 0)).await.unwrap();
    // A key of its own: it would be refused, if it got so far.
    let (_, settings) = tls::settings(&key()).unwrap();
    let mut endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    endpoint.set_default_client_config(settings);
    let _connecting = endpoint.connect(front.local_addr().unwrap(), NAME).unwrap();
    let (mut out, mut back_in) = ([0; 2048], [0; 2048]);
    let mut client = None;
    loop {
        tokio::select! {
            Ok((length, from)) = front.recv_from(&mut out) => {
                client = Some(from);
                back.send_to(&out[..length], agent).await.unwrap();
            }
            Ok((length, _)) = back.recv_from(&mut back_in) => {
                // A long header of type Retry (RFC 9000, 17.2.5).
                if back_in[0] & 0xf0 == 0xf0 {
                    if let Some(client) = client {
                        front.send_to(&back_in[..length], client).await.unwrap();
                    }
                } else {
                    began.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

#[test]
fn handshakes_that_are_held_open_are_bounded_and_keep_no_member_out() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let key = key();
        let (carrier, address, mut events) = carrier(&key);
        let began = Rc::new(AtomicUsize::new(0));
        // Of three addresses more than one may have, together fewer than all may.
        for number in 0..3 * (HALF_OPEN_OF_ADDRESS_MAX + 16) {
            let from = [127, 0, 0, u8::try_from(2 + number % 3).unwrap()];
            tokio::task::spawn_local(hold(address, from, Rc::clone(&began)));
        }
        // One is refused: an address has as many as it gets.
        let refused = loop {
            match events.recv().await {
                Some(CarrierEvent::Refused { from, why }) => break (from, why),
                Some(_) => {}
                None => panic!("the carrier is gone"),
            }
        };
        assert_eq!(refused.1, "too many of its handshakes are not finished");
        let most = carrier.admission().half_open();
        assert!(most >= HALF_OPEN_OF_ADDRESS_MAX, "{most} are held");
        assert!(most <= 3 * HALF_OPEN_OF_ADDRESS_MAX, "{most} are held");
        // A member of another address comes in while they are held.
        let is_in = Arc::new(AtomicBool::new(false));
        let (done, client_key) = (Arc::clone(&is_in), key.clone());
        let member = std::thread::spawn(move || {
            AgentClient::connect(&address.to_string(), &client_key).unwrap();
            done.store(true, Ordering::Relaxed);
        });
        while !is_in.load(Ordering::Relaxed) && !member.is_finished() {
            let held = carrier.admission().half_open();
            assert!(held <= HALF_OPEN_MAX, "{held} are held");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        member.join().unwrap();
        // None is held for ever: each is refused as late.
        loop {
            match events.recv().await {
                Some(CarrierEvent::Refused { why, .. }) if why.contains("within 5 s") => break,
                Some(_) => {}
                None => panic!("the carrier is gone"),
            }
        }
    });
}

#[test]
fn many_refusals_are_a_few_lines_and_a_number() {
    let (ours, theirs) = (key(), key());
    let agent = Live::start("here", &ours, &[]);
    let tries = 40;
    for _ in 0..tries {
        AgentClient::connect(&agent.address.to_string(), &theirs).unwrap_err();
    }
    let mut lines = 0_u64;
    let more = loop {
        match agent.notices.recv().expect("the agent lives") {
            AgentNotice::Refused { .. } => lines += 1,
            AgentNotice::MoreRefused { refusals, addresses, .. } => break (refusals, addresses),
            _ => {}
        }
    };
    assert!(lines <= 5, "{lines} lines");
    assert_eq!((lines + more.0, more.1), (tries, 1));
}
