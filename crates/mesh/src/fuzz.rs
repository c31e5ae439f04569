//! One entry to everything, for fuzzers.

use alloc::vec::Vec;
use core::net::SocketAddr;

use windtunnel_model::flow::{ActiveFlow, FlowKey, FlowTerms};
use windtunnel_model::{Bytes, NodeId, Span, Time};

use crate::config::MeshConfiguration;
use crate::id::{AgentId, Identity, PlanHash, RunId};
use crate::mesh::Mesh;
use crate::wire::MessageDecoder;
use crate::wire::message::MeshMessage;
#[cfg(test)]
use crate::wire::message::MessageSender;

const RUN: RunId = RunId(7);

/// Gives arbitrary bytes to an agent in a run with a second one: datagrams, each after its length
/// in two bytes and a time in milliseconds in one.
///
/// # Panics
/// When the mesh panics, sends more than its MTU or a message that it cannot decode itself, or
/// does not come to rest.
pub fn fuzz_one(data: &[u8]) {
    let mut now = Time::from_nanos(1_000_000_000);
    let mut mesh = agent(now);
    let mut reader = MessageDecoder::new(data);
    while let Some((length, millis)) = reader.u16().zip(reader.u8()) {
        let left = reader.left();
        let Some(datagram) = reader.bytes(usize::from(length).min(left)) else { break };
        now += Span::from_millis(u64::from(millis));
        mesh.handle_timeout(now);
        assert!(mesh.poll_timeout().is_none_or(|next| next > now), "work is left over");
        drain(&mut mesh);
        mesh.handle_datagram(now, address(2), datagram);
        drain(&mut mesh);
    }
    for _ in 0..8 {
        let Some(next) = mesh.poll_timeout() else { break };
        now = now.max(next);
        mesh.handle_timeout(now);
        drain(&mut mesh);
    }
}

fn address(last: u8) -> SocketAddr {
    ([10, 0, 0, last], 9000).into()
}

fn identity(last: u8) -> Identity {
    Identity { agent: AgentId(last.into()), epoch: 1, renewal: 0, address: address(last) }
}

/// An agent with two others, in a run with one of them.
fn agent(now: Time) -> Mesh {
    let mut mesh = Mesh::new(MeshConfiguration::new(AgentId(1), 1, address(1)), 42, now);
    for other in [2, 3] {
        let life = identity(other);
        let alive = MeshMessage::Alive { life, incarnation: 0 }.encode();
        mesh.handle_datagram(now, address(other), &alive);
    }
    let members = [AgentId(1), AgentId(2)];
    let joined = mesh.join_run(now, RUN, PlanHash([9; 32]), &members);
    assert_eq!(joined, Ok(()));
    let audience = mesh.audience(RUN, [AgentId(2)]).unwrap_or_else(|error| panic!("{error}"));
    let key = FlowKey { source: NodeId(0), destination: NodeId(1), number: 0 };
    let flow = ActiveFlow {
        terms: FlowTerms::new(Span::from_millis(1)).with_window(Bytes(65_536)),
        since: Time::ZERO,
    };
    let set = mesh.set_flow(now, RUN, key, flow, &audience);
    assert_eq!(set, Ok(()));
    mesh
}

fn drain(mesh: &mut Mesh) -> Vec<Vec<u8>> {
    while mesh.poll_event().is_some() {}
    let payloads: Vec<_> =
        core::iter::from_fn(|| mesh.poll_transmit().map(|transmit| transmit.payload)).collect();
    for payload in &payloads {
        assert!(payload.len() <= 1200, "{} bytes", payload.len());
        assert!(MeshMessage::decode(payload).is_ok(), "{payload:?}");
    }
    payloads
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::message::tests::samples;
    use proptest::prelude::*;
    use windtunnel_simlab::fuzzing::{damage, replay_seeds};

    /// Inputs with all kinds of messages: each alone, and all after each other.
    fn seeds() -> Vec<(String, Vec<u8>)> {
        let framed = |payload: &[u8]| {
            let length = u16::try_from(payload.len()).unwrap();
            [&length.to_be_bytes()[..], &[1], payload].concat()
        };
        let mut own = agent(Time::from_nanos(1_000_000_000));
        let own: Vec<_> = drain(&mut own).iter().map(|payload| framed(payload)).collect();
        let all: Vec<_> = samples().iter().map(|message| framed(&message.encode())).collect();
        let mut seeds = vec![
            ("all".to_owned(), all.concat()),
            ("twice".to_owned(), [all.concat(), all.concat()].concat()),
            ("own".to_owned(), own.concat()),
            ("empty".to_owned(), Vec::new()),
        ];
        let single = all.into_iter().enumerate();
        seeds.extend(single.map(|(number, bytes)| (format!("message-{number:02}"), bytes)));
        seeds
    }

    /// `WINDTUNNEL_MESH_CORPUS=write` writes the seeds anew after the protocol has changed.
    #[test]
    fn every_file_of_the_corpus_is_replayed() {
        replay_seeds(env!("CARGO_MANIFEST_DIR"), "WINDTUNNEL_MESH_CORPUS", &seeds(), fuzz_one);
    }

    #[test]
    fn every_prefix_and_every_wrong_byte_is_survived() {
        let (_, bytes) = seeds().swap_remove(0);
        damage(&bytes, usize::MAX, |byte| [byte ^ 0xff], fuzz_one);
    }

    #[test]
    fn hostile_datagrams_are_counted_and_change_nothing() {
        let mut mesh = agent(Time::from_nanos(1_000_000_000));
        drain(&mut mesh);
        let before = mesh.counters();
        let now = Time::from_nanos(1_000_000_001);
        let garbage: [&[u8]; 5] = [&[], &[9, 1, 2], &[3], &[3, 200], &[3, 13, 0]];
        for bytes in garbage {
            mesh.handle_datagram(now, address(66), bytes);
        }
        mesh.handle_datagram(now, address(66), &vec![3; 20_000]);
        let stranger =
            MeshMessage::Ping { from: MessageSender { agent: AgentId(66), epoch: 1 }, sent: 5 };
        mesh.handle_datagram(now, address(66), &stranger.encode());
        let former =
            MeshMessage::Ping { from: MessageSender { agent: AgentId(2), epoch: 0 }, sent: 5 };
        mesh.handle_datagram(now, address(2), &former.encode());
        let after = mesh.counters();
        assert_eq!(after.other_version - before.other_version, 1);
        assert_eq!(after.malformed - before.malformed, 5);
        assert_eq!(after.strangers - before.strangers, 2);
        assert_eq!((mesh.poll_transmit(), mesh.poll_event()), (None, None));
        assert_eq!(mesh.agents().count(), 2);
    }

    proptest! {
        #[test]
        fn random_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            fuzz_one(&bytes);
        }

        #[test]
        fn messages_with_random_edits_are_survived(
            order in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..12),
            edits in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..4)
        ) {
            let all = samples();
            let mut bytes = Vec::new();
            for (index, millis) in order {
                let payload = all[index % all.len()].encode();
                bytes.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
                bytes.push(millis);
                bytes.extend(payload);
            }
            for (at, value) in edits {
                let length = bytes.len().max(1);
                if let Some(byte) = bytes.get_mut(at % length) {
                    *byte = value;
                }
            }
            fuzz_one(&bytes);
        }
    }
}
