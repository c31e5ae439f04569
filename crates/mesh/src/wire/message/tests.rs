//! Messages there and back, cut, and as literal bytes.

use windtunnel_model::flow::{ActiveFlow, FlowChange, FlowKey, FlowTerms};
use windtunnel_model::{Bytes, NodeId, Rate, Span, Time};

use super::*;

/// The second agent of [`crate::fuzz_one`].
const FROM: MessageSender = MessageSender { agent: AgentId(2), epoch: 1 };

fn identity(last: u8) -> Identity {
    Identity {
        agent: AgentId(u64::from(last)),
        epoch: 1,
        renewal: 0,
        address: ([10, 0, 0, last], 9000).into(),
    }
}

fn flow_entry(version: u64, flow: bool) -> FlowTableEntry {
    let key = FlowKey { source: NodeId(3), destination: NodeId(200), number: 1 };
    let flow = flow.then_some(ActiveFlow {
        terms: FlowTerms {
            rtt: Span::from_millis(40),
            demand: Rate::from_bits_per_second(1_000_000),
            window: Some(Bytes(65_536)),
        },
        since: Time::ZERO + Span::from_secs(86_400),
    });
    FlowTableEntry { version, change: FlowChange { key, flow } }
}

/// One of each kind.
pub(crate) fn samples() -> Vec<MeshMessage<'static>> {
    let run = RunId(7);
    let flows = Fingerprint { count: 3, sum: u64::MAX };
    vec![
        MeshMessage::Swim(b"anything"),
        MeshMessage::Join(identity(1)),
        MeshMessage::Here(identity(2)),
        MeshMessage::Outdated { epoch: 12 },
        MeshMessage::Suspected { from: identity(1), life: identity(3), incarnation: 7 },
        MeshMessage::Alive { life: identity(3), incarnation: 8 },
        MeshMessage::Leave(identity(4)),
        MeshMessage::Lost { from: identity(2), life: identity(1) },
        MeshMessage::RosterSum { from: FROM, agents: flows, answer: true },
        MeshMessage::RosterAsk { from: FROM, after: Some(AgentId(5)) },
        MeshMessage::RosterAsk { from: FROM, after: None },
        MeshMessage::Roster { from: FROM, more: false, agents: vec![identity(5), identity(6)] },
        MeshMessage::Run(
            FROM,
            RunState {
                run,
                plan: PlanHash([9; 32]),
                members: crate::run::members::members_sum(&[AgentId(1), AgentId(2)]),
                received: true,
                ask: false,
                page: 0,
                lost: vec![0b100],
            },
        ),
        MeshMessage::RunLeft(FROM, run),
        MeshMessage::Delta(
            FROM,
            FlowTableDelta {
                run,
                prev: 0,
                top: 14,
                full: true,
                entries: vec![flow_entry(12, true), flow_entry(14, false)],
            },
        ),
        MeshMessage::Digest(FROM, FlowTableDigest { run, top: 14, flows, lost: 1 }),
        MeshMessage::Want { from: FROM, run, have: 11 },
        MeshMessage::Ping { from: FROM, sent: 1 },
        MeshMessage::Pong { from: FROM, sent: 1, came: 2, left: 3, ahead: u64::MAX, error: 4 },
        MeshMessage::Probe {
            from: identity(2),
            incarnation: 3,
            to: AgentId(1),
            number: 4,
            origin: Some(AgentId(3)),
        },
        MeshMessage::ProbeAck { from: identity(2), incarnation: 3, number: 4, origin: None },
        MeshMessage::ProbeFor { from: FROM, target: AgentId(3), number: 5 },
        MeshMessage::Meet {
            from: FROM,
            run,
            node: NodeId(300),
            agents: vec![AgentId(3), AgentId(4)],
        },
        MeshMessage::AckFor { from: FROM, target: AgentId(3), number: 5 },
    ]
}

#[test]
fn every_message_comes_back() {
    for message in samples() {
        assert_eq!(MeshMessage::decode(&message.encode()), Ok(message.clone()), "{message:?}");
    }
}

#[test]
fn a_message_cut_anywhere_or_with_a_byte_too_many_is_malformed_or_another_message() {
    for message in samples() {
        let bytes = message.encode();
        for length in 0..bytes.len() {
            assert_ne!(MeshMessage::decode(&bytes[..length]), Ok(message.clone()));
        }
        let longer = [&bytes[..], &[0xff]].concat();
        assert_ne!(MeshMessage::decode(&longer), Ok(message));
    }
}

#[test]
fn other_versions_and_unknown_kinds_are_distinguished() {
    assert_eq!(MeshMessage::decode(&[]), Err(MeshDecodeError::Malformed));
    assert_eq!(MeshMessage::decode(&[VERSION + 1, 1]), Err(MeshDecodeError::Version));
    assert_eq!(MeshMessage::decode(&[VERSION, 99]), Err(MeshDecodeError::Malformed));
}

#[test]
fn the_start_of_a_flow_takes_23_bytes_beside_the_head_and_its_end_6() {
    assert_eq!(entry_len(&flow_entry(12, true), 10), 1 + 1 + (1 + 2 + 1) + (4 + 3 + 3 + 7));
    assert_eq!(entry_len(&flow_entry(14, false), 12), 1 + 1 + (1 + 2 + 1));
}

#[test]
fn the_bytes_of_a_delta_are_these() {
    let delta = FlowTableDelta {
        run: RunId(77),
        prev: 10,
        top: 14,
        full: false,
        entries: vec![flow_entry(14, false)],
    };
    let expected = [
        &[3, 12][..],
        &[0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0, 0, 0, 0, 0, 0, 0, 77],
        &[10, 4, 0],
        &[4, 0, 3, 0xc8, 0x01, 1],
    ];
    assert_eq!(MeshMessage::Delta(FROM, delta).encode(), expected.concat());
}

#[test]
fn entries_out_of_order_or_beyond_the_range_are_malformed() {
    let head = |prev: u8, length: u8| {
        let mut bytes = vec![VERSION, 12];
        bytes.extend([0; 24]);
        bytes.extend([prev, length, 0]);
        bytes
    };
    let entry = |step: u8| [step, 0, 1, 1, 1];
    let case = |step: u8| MeshMessage::decode(&[&head(5, 2)[..], &entry(step)].concat()).is_ok();
    assert!(!case(0) && case(1) && case(2) && !case(3));
}

#[test]
fn messages_have_the_greatest_sizes_that_constants_state() {
    let key = FlowKey { source: NodeId(u32::MAX), destination: NodeId(u32::MAX), number: u32::MAX };
    let flow = ActiveFlow {
        terms: FlowTerms {
            rtt: Span::from_nanos(u64::MAX),
            demand: Rate::from_bits_per_second(u64::MAX - 1),
            window: Some(Bytes(u64::MAX)),
        },
        since: Time::from_nanos(u64::MAX),
    };
    let entry = FlowTableEntry { version: u64::MAX, change: FlowChange { key, flow: Some(flow) } };
    assert_eq!(entry_len(&entry, 0), ENTRY_MAX);
    let delta =
        FlowTableDelta { run: RunId(1), prev: 0, top: u64::MAX, full: true, entries: Vec::new() };
    assert!(MeshMessage::Delta(FROM, delta).encode().len() <= DELTA_HEAD_MAX);
    let widest = Identity { renewal: u32::MAX, address: "[::1]:1".parse().unwrap(), ..identity(1) };
    let roster = MeshMessage::Roster { from: FROM, more: true, agents: vec![widest] };
    assert_eq!(roster.encode().len(), ROSTER_HEAD + IDENTITY_MAX);
}
