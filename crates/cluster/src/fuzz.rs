//! One entry to everything that agents and commands read of each other, for fuzzers.

use windtunnel_control::frame;
use windtunnel_control::fuzz::comes_back;
use windtunnel_routing::Routes;

use crate::agent::AgentResourceLimits;
use crate::hello::AgentHello;
use crate::protocol::exec::{FromCommand, ToCommand};
use crate::protocol::run::{PartCommand, RunMemberMessage, RunSetup};
use crate::protocol::{AgentReply, AgentRequest};

/// Reads arbitrary bytes as each kind of message. A run that is taken can be counted with and
/// routed.
///
/// # Panics
/// When that does, or a message that was taken comes back as another.
pub fn fuzz_one(data: &[u8]) {
    comes_back::<AgentRequest>(data);
    comes_back::<AgentReply>(data);
    comes_back::<PartCommand>(data);
    comes_back::<RunMemberMessage>(data);
    comes_back::<ToCommand>(data);
    comes_back::<FromCommand>(data);
    comes_back::<AgentHello>(data);
    match (frame::decode::<AgentRequest>(data), frame::decode::<AgentReply>(data)) {
        (Ok(AgentRequest::Part { run, member }), _) => use_run(&run, member),
        (_, Ok(AgentReply::Run(run))) => use_run(&run, 0),
        (_, Ok(AgentReply::Hosts(hosts))) => {
            let asked = &hosts.hosts[hosts.asked];
            for host in &hosts.hosts {
                let _ = hosts.rtt_ns(asked, host);
            }
        }
        _ => {}
    }
}

fn use_run(run: &RunSetup, member: u16) {
    assert!(run.plan.nodes.len() == run.placement.len());
    assert!(usize::from(member) < run.members.len());
    let _ = run.nodes_of(member);
    let _ =
        AgentResourceLimits::default().check(run, member, [(run, 0), (run, member)].into_iter());
    let _ = Routes::compute(&run.plan);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use windtunnel_simlab::fuzzing::json::{spoil, with_hostile_values};
    use windtunnel_simlab::fuzzing::replay_seeds;

    use super::*;
    use crate::protocol::valid::tests::run;

    /// One message of each kind that has something in it; `WINDTUNNEL_CLUSTER_CORPUS=write` makes
    /// the files again.
    fn seeds() -> Vec<(&'static str, Vec<u8>)> {
        let card = json!({"agent": "0000000000000001", "host": "a", "address": "10.0.0.1:7447", "labels": ["ssd"],
            "windtunnel": "0.1.0", "kernel": "6.8", "cpus": 8, "load_hundredths": 105, "memory": "16GB",
            "memory_free": "12GB", "uplink": "10gbit", "nodes_max": 10, "cpu_millis_max": 4000,
            "reserved": {"runs": 1, "nodes": 2, "cpu_millis": 3, "memory": "4MB", "up_bit_per_s": 5,
                "down_bit_per_s": 6},
            "peers": [{"agent": "0000000000000002", "address": "10.0.0.2:7447",
                "clock": {"offset_ns": -5, "error_ns": 6, "rtt_ns": 7}}]});
        let with = |tag: &str, kind: &str, mut value: serde_json::Value| {
            value.as_object_mut().unwrap().insert(tag.to_owned(), json!(kind));
            value
        };
        let request = json!({"request": "exec", "node": "a", "argv": ["ls"], "cwd": null, "env": {}, "terminal": false});
        let all = [
            ("ask-card", json!({"ask": "card"})),
            ("ask-part", json!({"ask": "part", "run": run(), "member": 1})),
            ("ask-receive", json!({"ask": "receive", "run": 7, "member": 1})),
            ("ask-send", json!({"ask": "send", "to": "10.0.0.1:7447"})),
            ("ask-exec", json!({"ask": "exec", "run": 7, "request": request, "size": [24, 80]})),
            ("answer-card", with("answer", "card", card.clone())),
            (
                "answer-hosts",
                json!({"answer": "hosts", "asked": 0, "hosts": [card],
                "silent": [{"address": "10.0.0.3:7447", "why": "no"}],
                "throughput": [{"from": "10.0.0.1:1", "to": "10.0.0.2:1", "bit_per_s": 7}]}),
            ),
            ("answer-run", with("answer", "run", run())),
            (
                "answer-runs",
                json!({"answer": "runs", "runs": [{"run": 7, "name": "net", "nodes": 2, "over": false}]}),
            ),
            (
                "answer-file",
                json!({"answer": "file", "path": "nodes/a/stdout", "bytes": 7, "executable": true}),
            ),
            (
                "answer-part",
                json!({"answer": "part", "now_ns": 7, "said": {"from-part": "bound", "port": 7}}),
            ),
            ("order-peers", json!({"order": "peers", "addresses": [null, "10.0.0.2:4000"]})),
            ("order-begin", json!({"order": "begin", "agent": "0000000000000001", "at_ns": 7})),
            ("order-stop", json!({"order": "stop", "why": {"signal": 2}})),
            ("word", json!({"word": "failed", "why": "no"})),
            ("to-command", json!({"to": "signal", "signal": 2})),
            ("input", json!({"to": "input", "bytes": "a\u{ff}"})),
            ("from-command", json!({"from": "reply", "reply": {"reply": "exited", "code": 3}})),
            ("hello", json!({"version": {"protocol": 2, "windtunnel": "0.1.0"}, "host": "a"})),
        ];
        all.into_iter().map(|(name, value)| (name, serde_json::to_vec(&value).unwrap())).collect()
    }

    #[test]
    fn every_seed_is_a_message() {
        for (name, seed) in seeds() {
            let taken = [
                frame::decode::<AgentRequest>(&seed).is_ok(),
                frame::decode::<AgentReply>(&seed).is_ok(),
                frame::decode::<PartCommand>(&seed).is_ok(),
                frame::decode::<RunMemberMessage>(&seed).is_ok(),
                frame::decode::<ToCommand>(&seed).is_ok(),
                frame::decode::<FromCommand>(&seed).is_ok(),
                frame::decode::<AgentHello>(&seed).is_ok(),
            ];
            assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{name}");
        }
    }

    #[test]
    fn every_file_of_the_corpus_is_replayed() {
        replay_seeds(env!("CARGO_MANIFEST_DIR"), "WINDTUNNEL_CLUSTER_CORPUS", &seeds(), fuzz_one);
    }

    #[test]
    fn every_hostile_value_and_every_wrong_byte_is_survived() {
        spoil(&seeds(), 300, |byte| [0x00, 0xff, byte ^ 0x10], fuzz_one);
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
            fuzz_one(&with_hostile_values(bytes, picks.into_iter().take(6)));
        }
    }
}
