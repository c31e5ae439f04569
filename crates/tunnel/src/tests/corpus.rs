//! The corpus of the fuzzer, replayed.

use std::path::Path;

use proptest::prelude::*;

use super::{Side, frame, ms};
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
    let sent = |security, size| Side::new(0, security).send(ms(1), &frame(1, size));
    let mut side = Side::new(0, Security::Plain);
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    if std::env::var("WINDTUNNEL_TUNNEL_CORPUS").is_ok_and(|value| value == "write") {
        for (name, bytes) in seeds() {
            std::fs::write(folder.join(name), bytes).unwrap();
        }
    }
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        fuzz_one(&std::fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count >= seeds().len(), "{count} files");
}

#[test]
fn every_wrong_byte_of_the_seeds_is_survived() {
    for (_, bytes) in seeds() {
        for at in 0..bytes.len().min(90) {
            fuzz_one(&bytes[..at]);
            for value in [0x00, 0xff, bytes[at] ^ 0x10] {
                let mut changed = bytes.clone();
                changed[at] = value;
                fuzz_one(&changed);
            }
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        fuzz_one(&bytes);
    }
}
