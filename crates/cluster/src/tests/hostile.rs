use std::fs;

use serde_json::{Value, json};
use windtunnel_control::frame;

use super::key;
use crate::double::FakeAgent;
use crate::protocol::AgentRequest;
use crate::protocol::answers::WatchedRunMessage;
use crate::protocol::valid::tests::run;
use crate::{AgentClient, AgentClientError};

/// What a command makes of an agent's answer to [`AgentRequest::Watch`].
fn watch(answer: Vec<u8>) -> Result<WatchedRunMessage, AgentClientError> {
    let key = key();
    let agent = FakeAgent::start(&key, move |_| answer.clone());
    AgentClient::connect(&agent.address().to_string(), &key).unwrap().ask(&AgentRequest::watch(7))
}

fn framed(answer: &Value) -> Vec<u8> {
    frame::encode(answer).unwrap()
}

/// The run of [`run`] as an answer, with a change.
fn answer(path: &str, value: Value) -> Vec<u8> {
    let mut run = run();
    *run.pointer_mut(path).unwrap() = value;
    run.as_object_mut().unwrap().insert("answer".to_owned(), json!("run"));
    framed(&run)
}

#[test]
fn an_agents_answer_that_names_nodes_outside_the_run_folder_is_not_taken() {
    let run = watch(answer("/plan/nodes/0/name", json!("a")));
    assert!(matches!(run, Ok(WatchedRunMessage::Run(_))));
    let error = watch(answer("/plan/nodes/0/name", json!("../../.ssh"))).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("`../../.ssh` cannot name a node"), "{source}");
}

#[test]
fn lengths_that_do_not_come_true_and_lines_of_nothing_are_errors() {
    // A gigabyte is more than an answer has; 60 megabytes never come, and no memory is taken for
    // them.
    let broken: [&[u8]; 5] =
        [&[], &[0], &[0xff; 4], &[3, 0x93, 0x87, 0, b'{'], &[0, 0, 0, 2, b'{', b']']];
    for bytes in broken {
        assert!(matches!(watch(bytes.to_vec()), Err(AgentClientError::Broken { .. })), "{bytes:?}");
    }
}

#[test]
fn numbers_beyond_everything_are_errors() {
    for (path, value) in [
        ("/placement", json!([0, 65535])),
        ("/plan/nodes/0/interfaces/0/port", json!(u32::MAX)),
        ("/plan/links/0/ends/0/interface", json!(u32::MAX)),
        ("/members/0/agent", json!("ffffffffffffffffff")),
        ("/members", json!([])),
    ] {
        assert!(watch(answer(path, value)).is_err(), "{path}");
    }
}

#[test]
fn files_of_another_machine_go_into_their_folder_and_nowhere_else() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("runs/net/.parts/0");
    for path in ["../../../.ssh", "nodes/../../../../../.ssh", "/tmp/x", "a\0b", ""] {
        let key = key();
        let file = json!({"answer": "file", "path": path, "bytes": 3, "executable": false});
        let bytes = [framed(&file), b"key".to_vec(), framed(&json!({"answer": "done"}))].concat();
        let agent = FakeAgent::start(&key, move |_| bytes.clone());
        let client = AgentClient::connect(&agent.address().to_string(), &key).unwrap();
        client.fetch(7, &folder).unwrap_err();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{path:?}");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "{path:?}");
    }
}
