use proptest::prelude::*;
use windtunnel_simlab::fuzzing::{damage, replay_seeds};

use super::{frames, pairs, payload};
use crate::{build, fuzz_one, tcp, vnet};

/// The corpus as it was first made; `WINDTUNNEL_WIRE_CORPUS=write` makes the files again.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let [(from, to), (from6, to6)] = pairs();
    let plain = vnet::VirtioNetHeader::default();
    let join =
        |(frame, header): (Vec<u8>, vnet::VirtioNetHeader)| [&header.emit()[..], &frame].concat();
    let flags = tcp::ACK | tcp::PSH | tcp::CWR;
    let extended = |frame| {
        let options = [0, 1, 5, 2, 0, 0, 1, 8, 0, 0, 0, 0, 0, 0, 0, 0];
        let frame = build::with_extension(frame, 60, &[0, 0, 1, 4, 0, 0, 0, 0]);
        build::with_extension(frame, 0, &options)
    };
    let (long, header) = build::tcp_train(from6, to6, 9, flags, &payload(700), 300);
    let behind = vnet::VirtioNetHeader { csum_start: 78, hdr_len: 98, ..header };
    let ping = build::echo_request(from.ip(), to.ip(), 1, 2, b"ping");
    let mut divided = build::udp(from, to, &payload(64));
    divided[20..22].copy_from_slice(&[0x20, 0x05]);
    build::refresh(&mut divided);
    vec![
        ("tcp4-train", join(build::tcp_train(from, to, u32::MAX - 99, flags, &payload(999), 250))),
        ("tcp6-train-extended", join((extended(long), behind))),
        ("udp4-train", join(build::udp_train(from, to, &payload(500), 120))),
        ("udp6-partial", join(build::partial(build::udp(from6, to6, b"hello")))),
        ("udp6-extended", join((extended(build::udp(from6, to6, b"hello")), plain))),
        ("echo4", join((ping.clone(), plain))),
        ("echo6", join((build::echo_request(from6.ip(), to6.ip(), 1, 2, b"ping"), plain))),
        ("fragment4", join((divided, plain))),
        ("echo4-cut", join((ping[..37].to_vec(), plain))),
        ("tcp4-train-cut", {
            let whole = join(build::tcp_train(from, to, 1, flags, &payload(99), 20));
            whole[..70].to_vec()
        }),
        ("header-cut", vec![1, 1, 0]),
        ("empty", Vec::new()),
    ]
}

#[test]
fn every_file_of_the_corpus_is_replayed() {
    replay_seeds(env!("CARGO_MANIFEST_DIR"), "WINDTUNNEL_WIRE_CORPUS", &seeds(), fuzz_one);
}

#[test]
fn every_prefix_and_every_wrong_byte_of_the_seeds_is_survived() {
    for (_, bytes) in seeds() {
        damage(&bytes, 160, |byte| [0x00, 0xff, byte ^ 0x10], fuzz_one);
    }
}

proptest! {
    #[test]
    fn random_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        fuzz_one(&bytes);
    }

    #[test]
    fn whole_packets_with_random_headers_and_edits_are_survived(
        frame in frames(),
        gso_type in prop_oneof![Just(1u8), Just(4), Just(5), any::<u8>()],
        numbers in any::<[u16; 4]>(),
        edits in proptest::collection::vec((0..90usize, any::<u8>()), 0..6)
    ) {
        let header = vnet::VirtioNetHeader {
            flags: numbers[0].to_le_bytes()[0] & 3,
            gso_type,
            hdr_len: numbers[1],
            gso_size: numbers[2] % 400,
            csum_start: if numbers[3] % 2 == 0 { 34 } else { numbers[3] % 700 },
            csum_offset: if numbers[3] % 3 == 0 { 16 } else { numbers[0] % 100 },
        };
        let mut bytes = [&header.emit()[..], &frame].concat();
        for (at, value) in edits {
            if let Some(byte) = bytes.get_mut(10 + at) {
                *byte = value;
            }
        }
        fuzz_one(&bytes);
    }
}
