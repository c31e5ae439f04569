//! The parts that read what others have written, fed with any bytes.

use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::tcp;

use crate::flows::{ProxiedConnectionKey, step};
use crate::names;
use crate::reassembly::FragmentReassembler;

/// Takes the input as frames, each behind its length in one byte (times eight), as a message of the
/// domain name system, and as the machine's `resolv.conf`.
pub fn fuzz_one(input: &[u8]) {
    let mut reassembly = FragmentReassembler::default();
    let mut rest = input;
    while let Some((length, behind)) = rest.split_first() {
        let (frame, behind) = behind.split_at(behind.len().min(usize::from(*length) * 8));
        rest = behind;
        let Ok(packet) = ParsedPacket::parse(frame) else { continue };
        let info = &packet.info;
        if info.is_fragment
            && let Some(whole) = reassembly.push(0, &packet)
        {
            let info = ParsedPacket::parse(&whole).expect("what is put together is a packet").info;
            assert!(!info.is_fragment || info.is_later_fragment || whole.len() >= frame.len());
        }
        if let Some(key) = ProxiedConnectionKey::of(&packet)
            && let Ok(view) = tcp::TcpSegment::parse(packet.payload())
        {
            assert_eq!(key.client.ip(), info.source);
            let _ = step(None, view.flags());
        }
    }
    names::read_question(input);
    let _ = names::resolvers(&String::from_utf8_lossy(input));
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use proptest::prelude::*;
    use windtunnel_simlab::fuzzing::{damage, replay_seeds};
    use windtunnel_wire::build;

    use super::*;
    use crate::frames::{self, Fragmentation};

    /// Frames, each behind its length.
    fn joined(frames: &[Vec<u8>]) -> Vec<u8> {
        let one = |frame: &Vec<u8>| {
            let eighths = frame.len().div_ceil(8);
            let mut bytes = vec![u8::try_from(eighths).expect("a short frame")];
            bytes.extend(frame);
            bytes.resize(1 + eighths * 8, 0);
            bytes
        };
        frames.iter().flat_map(one).collect()
    }

    /// The corpus as it was first made; `WINDTUNNEL_GATEWAY_CORPUS=write` makes the files again.
    fn seeds() -> Vec<(&'static str, Vec<u8>)> {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let (from, to) = (at("10.0.0.1:4000"), at("192.0.2.1:80"));
        let (from6, to6) = (at("[fd00::1]:4000"), at("[2001:db8::1]:80"));
        let question = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x01b\0\0\x01\0\x01";
        let cut = Fragmentation { mtu: 300, identification: 5 };
        vec![
            ("syn4", joined(&[build::tcp(from, to, 1, tcp::SYN, b"")])),
            ("syn6", joined(&[build::tcp(from6, to6, 1, tcp::SYN, b"")])),
            ("reset4", joined(&[build::tcp(from, to, 1, tcp::RST, b"")])),
            ("fragments4", joined(&frames::datagram(from, to, &[7; 900], cut))),
            ("fragments6", joined(&frames::datagram(from6, to6, &[7; 900], cut))),
            ("echo4", joined(&[build::echo_request(from.ip(), to.ip(), 1, 2, b"ping")])),
            ("question", question.to_vec()),
            ("resolvers", b"nameserver 192.0.2.53\nnameserver ::1\n".to_vec()),
            ("empty", Vec::new()),
        ]
    }

    #[test]
    fn every_file_of_the_corpus_is_replayed() {
        replay_seeds(env!("CARGO_MANIFEST_DIR"), "WINDTUNNEL_GATEWAY_CORPUS", &seeds(), fuzz_one);
    }

    #[test]
    fn every_prefix_and_every_wrong_byte_of_the_seeds_is_survived() {
        for (_, bytes) in seeds() {
            damage(&bytes, 160, |byte| [0x00, 0xff, byte ^ 0x10], fuzz_one);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_stop_the_gateway(input in prop::collection::vec(any::<u8>(), 0..600)) {
            fuzz_one(&input);
        }
    }
}
