//! One entry to what an init and the kernel say, for fuzzers.

use windtunnel_sys::x_tables::{HOOKS, XtablesFamily, XtablesTable};

use crate::filter::x_tables;
use crate::message::{ExitStatus, NodeInitReply, NodeInitRequest, decode, encode};
use crate::netlink::{answers, bridges, filter};

/// Reads arbitrary bytes as a request to an init, as an init's reply, as the kernel's answers on a
/// netlink socket, and as its tables of packet filters.
///
/// # Panics
/// When reading does, or a message that was taken cannot be written.
pub fn fuzz_one(data: &[u8]) {
    if let Ok(request) = decode::<NodeInitRequest>(data) {
        assert!(encode(&request).is_ok(), "{request:?}");
    }
    if let Ok(reply) = decode::<NodeInitReply>(data) {
        assert!(encode(&reply).is_ok(), "{reply:?}");
        if let NodeInitReply::Exited {
            status: status @ (ExitStatus::Code(_) | ExitStatus::Signal(_)),
            ..
        } = reply
        {
            let _ = status.shell_code();
        }
    }
    // Each answer takes the bytes of a header.
    if let Ok(answers) = answers(data) {
        assert!(answers.len() <= data.len() / 16);
    }
    let _ = (bridges::port(data), filter::read_answer(data).describe());
    let (mut begins, ends) = ([None; HOOKS], [Some(0); HOOKS]);
    begins[1] = Some(0);
    for version in [XtablesFamily::V4, XtablesFamily::V6] {
        let table = XtablesTable { begins, ends, entries: data.to_vec() };
        let _ = x_tables::chains(version, "filter", &table);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use windtunnel_simlab::fuzzing::json::spoil;
    use windtunnel_simlab::fuzzing::replay_seeds;

    use super::*;

    /// An acknowledgement as the kernel sends it (netlink(7)): header, error code, the request's
    /// header.
    fn answer(sequence: u32, code: i32) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(36_u32.to_ne_bytes());
        // NLMSG_ERROR, NLM_F_CAPPED.
        bytes.extend(2_u16.to_ne_bytes());
        bytes.extend(0x100_u16.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend(77_u32.to_ne_bytes());
        bytes.extend(code.to_ne_bytes());
        bytes.extend([0; 16]);
        bytes
    }

    /// `WINDTUNNEL_NODE_CORPUS=write` makes the files again.
    fn seeds() -> Vec<(&'static str, Vec<u8>)> {
        let texts = [
            ("empty", ""),
            (
                "spawn",
                r#"{"spawn":{"id":7,"argv":["ls"],"env":{"A":"b"},"cwd":"/","terminal":true}}"#,
            ),
            ("signal", r#"{"signal":{"id":7,"signal":15,"token":2}}"#),
            ("watch", r#"{"watch":{"token":1,"what":{"tcp":80}}}"#),
            ("echo", r#"{"echo":{"token":1,"address":"10.0.0.1","count":3,"interval_ns":1000}}"#),
            ("supervise", r#"{"supervise":{"library":"/x.so"}}"#),
            ("ready", r#"{"ready":{"notes":["x"]}}"#),
            ("spawned", r#"{"spawned":{"id":7,"pid":3,"at_ns":5}}"#),
            ("signalled", r#"{"signalled":{"token":2,"at_ns":5}}"#),
            ("probed", r#"{"probed":{"token":5,"failure":"refused"}}"#),
            ("exited", r#"{"exited":{"id":7,"status":{"signal":9}}}"#),
            (
                "echo-done",
                r#"{"echo-done":{"token":1,"began_ns":5,"echoes":[[0,1],[9,null]],"error":null}}"#,
            ),
        ];
        let mut seeds: Vec<_> =
            texts.into_iter().map(|(name, text)| (name, text.as_bytes().to_vec())).collect();
        seeds.push(("nf-tables", filter::tests::ANSWER.to_vec()));
        seeds.push(("netlink-done", answer(1, 0)));
        seeds.push(("netlink-refused", [answer(1, -17), answer(2, 0)].concat()));
        seeds
    }

    #[test]
    fn the_kernels_answers_are_read_in_order() {
        let answers = answers(&[answer(1, -17), answer(2, 0)].concat()).unwrap();
        let read: Vec<_> =
            answers.iter().map(|(number, outcome)| (*number, outcome.is_ok())).collect();
        assert_eq!(read, [(1, false), (2, true)]);
    }

    #[test]
    fn every_file_of_the_corpus_is_replayed() {
        replay_seeds(env!("CARGO_MANIFEST_DIR"), "WINDTUNNEL_NODE_CORPUS", &seeds(), fuzz_one);
    }

    #[test]
    fn every_hostile_value_and_every_wrong_byte_is_survived() {
        spoil(&seeds(), 400, |byte| [0x00, 0xff, byte ^ 0x10, 1], fuzz_one);
    }

    proptest! {
        #[test]
        fn random_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            fuzz_one(&bytes);
        }

        #[test]
        fn messages_with_random_edits_are_survived(
            seed: usize,
            edits in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6)
        ) {
            let seeds = seeds();
            let mut bytes = seeds[seed % seeds.len()].1.clone();
            let length = bytes.len().max(1);
            for (at, value) in edits {
                if let Some(byte) = bytes.get_mut(at % length) {
                    *byte = value;
                }
            }
            fuzz_one(&bytes);
        }
    }
}
