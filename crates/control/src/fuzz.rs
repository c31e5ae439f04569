//! One entry to everything that reads what other processes say, for fuzzers.

use serde::Serialize;
use serde::de::DeserializeOwned;
use windtunnel_model::valid::Validate;

use crate::frame::{self, FrameDecoder};
use crate::message::{ControlGreeting, ControlReply, ControlRequest};
use crate::part::{FromPart, ToPart};
use crate::version::SoftwareVersion;

/// Reads arbitrary bytes as each kind of message, and as frames in pieces. What is taken can be
/// written and read again.
///
/// # Panics
/// When reading does, or a message that was taken comes back as another.
pub fn fuzz_one(data: &[u8]) {
    comes_back::<ControlRequest>(data);
    comes_back::<ControlReply>(data);
    comes_back::<ControlGreeting>(data);
    comes_back::<ToPart>(data);
    comes_back::<FromPart>(data);
    comes_back::<SoftwareVersion>(data);
    let mut frames = FrameDecoder::default();
    for piece in data.chunks(7) {
        frames.add(piece);
        while let Ok(Some(message)) = frames.take::<FromPart>() {
            assert_eq!(message.validate(), Ok(()), "what is taken is valid");
        }
    }
}

/// What is read as a message of a kind is one after it was written and read again.
pub fn comes_back<T: Serialize + DeserializeOwned + Validate + PartialEq + std::fmt::Debug>(
    data: &[u8],
) {
    let Ok(message) = frame::decode::<T>(data) else { return };
    let Ok(bytes) = frame::encode(&message) else { return };
    match frame::decode::<T>(&bytes[frame::HEAD..]) {
        Ok(again) => assert_eq!(again, message),
        Err(error) => panic!("{error}: {message:?}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use windtunnel_simlab::fuzzing::json::{spoil, with_hostile_values};
    use windtunnel_simlab::fuzzing::replay_seeds;

    use super::*;

    /// One message of each kind; `WINDTUNNEL_CONTROL_CORPUS=write` makes the files again.
    fn seeds() -> Vec<(&'static str, Vec<u8>)> {
        let texts = [
            ("empty", ""),
            ("ps", r#"{"request":"ps"}"#),
            ("links", r#"{"request":"links"}"#),
            (
                "exec",
                r#"{"request":"exec","node":"a","argv":["ls","-l"],"cwd":"/","env":{"A":"b"},"terminal":true}"#,
            ),
            ("signal", r#"{"request":"signal","signal":15}"#),
            (
                "set",
                r#"{"request":"set","link":"a--b","direction":"up","patch":{"latency":"5ms","loss":{"listed":[1,2]},"mtu":1500,"rate":{"to":"1mbit"}}}"#,
            ),
            ("capture", r#"{"request":"capture","place":"a","snap_bytes":96}"#),
            ("capture-end", r#"{"request":"capture-end"}"#),
            ("reply-captured", r#"{"reply":"captured","packets":9,"lost":2,"failure":"full"}"#),
            ("state", r#"{"request":"state","link":"a--b","up":false}"#),
            (
                "do",
                r#"{"request":"do","events":[{"at":"1s","action":{"node":{"nodes":[0],"verb":"kill"}}},{"at":"2s","action":"heal"}]}"#,
            ),
            (
                "record-start",
                r#"{"request":"record-start","layers":["engine"],"nodes":["a"],"flows":["tcp a:80"],"direction":"forward","max":"1GB"}"#,
            ),
            (
                "reply-records",
                r#"{"reply":"records","on":true,"layers":[{"layer":"engine","state":"on","events":3,"records":2,"lost":1,"fill_permille":1,"fill_max_permille":2}],"bytes":1,"kept_bytes":1,"files":1,"removed_events":0,"read":2,"read_ns":9}"#,
            ),
            ("hello", r#"{"version":2,"name":"net"}"#),
            (
                "reply-ps",
                r#"{"reply":"ps","name":"net","elapsed_ns":5,"nodes":[{"node":"a-1","addresses":["10.0.0.1"],"init_pid":7,"programs":[{"argv":["x"],"state":"exited","pid":3,"exit":1}]}]}"#,
            ),
            (
                "reply-links",
                r#"{"reply":"links","name":"net","elapsed_ns":5,"links":[{"link":"a--b","direction":"a-b","state":"up","properties":{"latency":"5ms","rate":null},"changed_from":{"latency":"1ms"}}]}"#,
            ),
            (
                "reply-snapshot",
                r#"{"reply":"snapshot","name":"net","elapsed_ns":5,"nodes":[],"sampled_ns":1,"window_ns":1,"links":[{"link":"a--b","direction":"a-b","state":"up","latency_ns":1,"loss_ppb":0,"offered_bit_per_s":1,"delivered_bit_per_s":1,"delivered_wire_bit_per_s":1,"queue_packets":0,"queue_bytes":0,"recent_queue_max_packets":0,"recent_dropped_packets":0,"recent_marked_packets":0,"recent_lateness_max_ns":0,"offered_packets":1,"delivered_packets":1,"dropped_packets":0,"marked_packets":0,"lateness_max_ns":0}]}"#,
            ),
            ("services", r#"{"request":"services","service":"www"}"#),
            (
                "reply-services",
                r#"{"reply":"services","name":"net","elapsed_ns":5,"pins":1,"pins_max":9,"services":[{"service":"www","addresses":["10.1.0.80"],"ports":["80/tcp"],"policy":"nearest","fail_over":"new","at":["r"],"replicas":[{"replica":"s1","state":"registered","ports":["80/tcp"],"weight":1,"registered_ns":5,"connections":1,"flows":0,"live_connections":1,"live_flows":0,"packets":9,"bytes":900}],"unserved_packets":0,"picked_up":0,"lost_packets":0,"resets":0,"clamped":1,"evicted":0,"expired":0,"table":[{"router":"r","address":"10.1.0.80","port":"80/tcp","replica":"s1"}],"flows":[{"client":"10.0.0.1:4000","service":"10.1.0.80:80","replica":"s1","state":"open","silent_ms":3}]}]}"#,
            ),
            ("reply-error", r#"{"reply":"error","message":"no","hint":"x"}"#),
            ("to-peers", r#"{"to-part":"peers","addresses":[null,"10.0.0.2:7447"]}"#),
            (
                "to-flows",
                r#"{"to-part":"flows","member":1,"changes":[{"source":0,"destination":1,"number":2,"terms":{"rtt_ns":1,"demand":null,"window":3,"since_ns":4},"audience":[0,1]}]}"#,
            ),
            (
                "to-clocks",
                r#"{"to-part":"clocks","clocks":[{"member":1,"ahead_ns":-5,"error_ns":7,"by":"exchanges"}]}"#,
            ),
            ("to-stop", r#"{"to-part":"stop","signal":2}"#),
            ("from-bound", r#"{"from-part":"bound","port":4000}"#),
            ("from-failed", r#"{"from-part":"failed","message":"no","hint":null,"code":5}"#),
            ("version", r#"{"protocol":2,"windtunnel":"0.1.0"}"#),
        ];
        texts.map(|(name, text)| (name, text.as_bytes().to_vec())).into()
    }

    #[test]
    fn every_file_of_the_corpus_is_replayed() {
        replay_seeds(env!("CARGO_MANIFEST_DIR"), "WINDTUNNEL_CONTROL_CORPUS", &seeds(), fuzz_one);
    }

    #[test]
    fn every_hostile_value_and_every_wrong_byte_is_survived() {
        spoil(&seeds(), 400, |byte| [0x00, 0xff, byte ^ 0x10], fuzz_one);
    }

    proptest! {
        #[test]
        fn random_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            fuzz_one(&bytes);
        }

        #[test]
        fn messages_with_hostile_values_are_survived(seed: usize, picks: Vec<usize>) {
            let seeds = seeds();
            let (_, bytes) = &seeds[seed % seeds.len()];
            fuzz_one(&with_hostile_values(bytes, picks.into_iter().take(8)));
        }
    }
}
