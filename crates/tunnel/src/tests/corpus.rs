//! The corpus of the fuzzer, replayed.

use proptest::prelude::*;
use windtunnel_simlab::fuzzing::{damage, replay_seeds};

use super::{End, frame, ms};
use crate::fuzz_one;
use crate::setup::Security;

/// One input: datagrams of member 0 of run 7, as it sends them, each after its two bytes.
fn input(late: u8, datagrams: &[Vec<u8>]) -> Vec<u8> {
    let whole = datagrams.iter().map(|datagram| {
        let shown = &datagram[..datagram.len().min(255)];
        [&[late, u8::try_from(shown.len()).unwrap()], shown].concat()
    });
    whole.collect::<Vec<_>>().concat()
}

/// The corpus as it was first made; `WINDTUNNEL_TUNNEL_CORPUS=write` makes the files again.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let sent = |security, size| End::new(0, security).send(ms(1), &frame(1, size));
    let mut side = End::new(0, Security::Plain);
    side.members.handle_timeout(ms(1), &mut side.wire);
    let probe: Vec<_> = side.wire.datagrams.drain(..).collect();
    vec![
        ("empty", Vec::new()),
        ("plain", input(2, &sent(Security::Plain, 60))),
        ("plain-twice", input(3, &[sent(Security::Plain, 60), sent(Security::Plain, 9)].concat())),
        ("plain-cut", input(2, &sent(Security::Plain, 5000))),
        ("sealed", input(2, &sent(super::SEALED, 60))),
        ("probe", input(2, &probe)),
        ("late", input(60, &sent(Security::Plain, 5000))),
    ]
}

#[test]
fn every_file_of_the_corpus_is_replayed() {
    replay_seeds(env!("CARGO_MANIFEST_DIR"), "WINDTUNNEL_TUNNEL_CORPUS", &seeds(), fuzz_one);
}

#[test]
fn every_wrong_byte_of_the_seeds_is_survived() {
    for (_, bytes) in seeds() {
        damage(&bytes, 90, |byte| [0x00, 0xff, byte ^ 0x10], fuzz_one);
    }
}

proptest! {
    #[test]
    fn random_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        fuzz_one(&bytes);
    }
}
