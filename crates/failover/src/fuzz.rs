//! One entry to all code that reads packets, for fuzzers.

use alloc::vec::Vec;

use crate::{ConnectionReplicator, ReplicaId, ReplicationConfig, TransmitDestination};
use windtunnel_model::{Span, Time};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{checksum, vnet};

/// Gives packets to a state machine with three replicas. Each step is two bytes, what happens and
/// how many bytes it has, and those:
///
/// | low three bits | what |
/// | -- | -- |
/// | 0 | a segment of the client: TCP from its sequence number on |
/// | 1, 2, 3 | the same of a replica |
/// | 4 | milliseconds pass, a byte each |
/// | 5, 6 | a frame of the client; one that may be an ICMP error |
/// | 7 | a replica is lost |
///
/// # Panics
/// When the state machine does, or something breaks one of the laws asserted here.
pub fn fuzz_one(data: &[u8]) {
    let mut config = ReplicationConfig::default();
    (config.limits.output, config.limits.output_total) = (20_000, 30_000);
    config.limits.connections = 4;
    config.limits.idle = Span::from_secs(3);
    let mut machine = ConnectionReplicator::new(config);
    let (mut now, mut rest) = (Time::from_nanos(1), data);
    while let Some(([what, length], behind)) = rest.split_first_chunk::<2>() {
        let (bytes, next) = behind.split_at(usize::from(*length).min(behind.len()));
        step(&mut machine, &mut now, *what, bytes);
        look(&mut machine);
        rest = next;
    }
    // All of it ends by itself.
    while let Some(at) = machine.poll_timeout() {
        now = now.max(at);
        machine.handle_timeout(now);
        look(&mut machine);
    }
    assert!(machine.is_empty(), "a connection without a timer");
}

fn step(machine: &mut ConnectionReplicator, now: &mut Time, what: u8, bytes: &[u8]) {
    const ORDER: [ReplicaId; 3] = [ReplicaId(1), ReplicaId(2), ReplicaId(3)];
    // Checksums are said to be right, so that what they cover is read.
    let trusted =
        vnet::VirtioNetHeader { flags: vnet::DATA_VALID, ..vnet::VirtioNetHeader::default() };
    let _refused = match what & 7 {
        0 => machine.handle_client(*now, &trusted, &segment(true, bytes), &ORDER),
        id @ 1..=3 => {
            machine.handle_replica(*now, ReplicaId(id.into()), &trusted, &segment(false, bytes))
        }
        4 => {
            let millis = bytes.iter().map(|byte| u64::from(*byte)).sum();
            *now += Span::from_millis(millis);
            machine.handle_timeout(*now);
            Ok(())
        }
        5 => machine.handle_client(*now, &trusted, bytes, &ORDER),
        6 => machine.handle_icmp(*now, bytes),
        _ => {
            machine.replica_lost(*now, ReplicaId(bytes.first().map_or(1, |id| u32::from(id % 4))));
            Ok(())
        }
    };
}

/// What leaves is whole, and what is kept has bounds.
fn look(machine: &mut ConnectionReplicator) {
    while let Some(transmit) = machine.poll_transmit() {
        assert!(ParsedPacket::parse(&transmit.frame).is_ok(), "what leaves can be read");
        let (mut frame, mut header) = (transmit.frame, transmit.vnet);
        if header.gso_type == vnet::GSO_NONE {
            assert!(checksum::complete(&mut frame, &mut header), "and has a checksum");
        }
        if let TransmitDestination::Replica(ReplicaId(id)) = transmit.to {
            assert!((1..=3).contains(&id));
        }
    }
    while machine.poll_event().is_some() {}
    let keys: Vec<_> = machine.keys().copied().collect();
    assert!(keys.len() <= 4);
    for view in keys.into_iter().filter_map(|key| machine.view(key)) {
        assert!(view.buffered <= 60_000 && view.memory <= 400_000, "{view:?}");
    }
}

/// A frame between 10.0.0.7:40000 and 10.1.0.80:80 with the rest of a TCP segment.
fn segment(from_client: bool, rest: &[u8]) -> Vec<u8> {
    let ends: [([u8; 4], u16); 2] = [([10, 0, 0, 7], 40_000), ([10, 1, 0, 80], 80)];
    let [from, to] = if from_client { ends } else { [ends[1], ends[0]] };
    let total = u16::try_from(24 + rest.len()).unwrap_or(u16::MAX);
    let mut frame = alloc::vec![2; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(from.0);
    frame.extend(to.0);
    frame.extend(from.1.to_be_bytes());
    frame.extend(to.1.to_be_bytes());
    frame.extend(rest);
    frame
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// TCP from the sequence number on.
    fn tcp(seq: u32, ack: u32, flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let words = u8::try_from(5 + options.len() / 4).unwrap();
        let mut bytes = seq.to_be_bytes().to_vec();
        bytes.extend(ack.to_be_bytes());
        bytes.extend([words << 4, flags, 0x40, 0, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes.extend(payload);
        bytes
    }

    fn steps(steps: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let one = |(what, bytes): &(u8, Vec<u8>)| {
            let mut step = vec![*what, u8::try_from(bytes.len()).unwrap()];
            step.extend(bytes);
            step
        };
        steps.iter().flat_map(one).collect()
    }

    /// Conversations from which a fuzzer begins.
    fn seeds() -> Vec<(&'static str, Vec<u8>)> {
        const SYN: &[u8] = &[2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7];
        let open = || {
            let mut all = vec![(0, tcp(100, 0, 2, SYN, b""))];
            all.extend((1..=3).map(|id| (id, tcp(u32::from(id) << 28, 101, 0x12, SYN, b""))));
            all
        };
        let said = |id: u8, at: u32, flags, bytes: &[u8]| {
            (id, tcp((u32::from(id) << 28) + 1 + at, 104, flags, &[], bytes))
        };
        let asks = || (0, tcp(101, (1 << 28) + 1, 0x18, &[], b"get"));
        let seed = |more: Vec<(u8, Vec<u8>)>| {
            let all: Vec<_> = open().into_iter().chain([asks()]).chain(more).collect();
            steps(&all)
        };
        vec![
            ("opens", steps(&open())),
            ("answers", seed((1..=3).map(|id| said(id, 0, 0x18, b"page")).collect())),
            (
                "differs",
                seed(vec![
                    said(1, 0, 0x18, b"one"),
                    said(2, 0, 0x18, b"two"),
                    said(3, 0, 0x18, b"one"),
                ]),
            ),
            (
                "dies",
                seed(vec![
                    said(1, 0, 0x18, b"page"),
                    said(2, 0, 0x18, b"page"),
                    (4, vec![250; 8]),
                    (7, vec![1]),
                ]),
            ),
            (
                "finishes",
                seed(vec![
                    said(1, 0, 0x11, b"end"),
                    said(2, 0, 0x11, b"end"),
                    said(3, 0, 0x11, b"end"),
                    (0, tcp(104, (1 << 28) + 5, 0x11, &[], b"")),
                ]),
            ),
            ("resets", seed(vec![said(1, 0, 4, b""), said(2, 0, 4, b""), said(3, 0, 4, b"")])),
            (
                "disorder",
                seed(vec![
                    said(1, 4, 0x18, b"late"),
                    said(2, 0, 0x18, b"soon"),
                    said(2, 4, 0x18, b"late"),
                    said(1, 0, 0x18, b"soon"),
                ]),
            ),
        ]
    }

    #[test]
    fn kept_inputs_break_no_law() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        let seeds = seeds();
        if std::env::var_os("WINDTUNNEL_FAILOVER_CORPUS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            for (name, bytes) in &seeds {
                std::fs::write(folder.join(name), bytes).unwrap();
            }
        }
        let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<_> = files.collect();
        files.sort();
        assert!(files.len() >= seeds.len(), "{files:?}");
        for file in files {
            fuzz_one(&std::fs::read(file).unwrap());
        }
    }

    #[test]
    fn damaged_inputs_break_no_law() {
        for (_, seed) in seeds() {
            for at in 0..seed.len() {
                fuzz_one(&seed[..at]);
                for other in [0, 0xff, seed[at] ^ 0x10, seed[at].wrapping_add(1)] {
                    let mut bytes = seed.clone();
                    bytes[at] = other;
                    fuzz_one(&bytes);
                }
            }
        }
    }
}
