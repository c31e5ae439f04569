//! Questions to an agent, and the answers of agents that do not keep to the protocol.

use std::fs;
use std::io;

use serde_json::{Value, json};
use windtunnel_control::SoftwareVersion;
use windtunnel_control::frame;

use super::{Live, card, key};
use crate::double::FakeAgent;
use crate::hello::AgentHello;
use crate::protocol::{ANSWER_BYTES_MAX, AgentReply, AgentRequest};
use crate::stream_limit::STREAMS_AT_FIRST;
use crate::{AgentClient, AgentClientError, AgentNotice, stream};

/// What a client makes of a fetch that an agent answers with these bytes.
fn fetch(answer: Vec<u8>) -> (Result<(), AgentClientError>, tempfile::TempDir) {
    let (key, home) = (key(), tempfile::tempdir().unwrap());
    let agent = FakeAgent::start(&key, move |_| answer.clone());
    let client = AgentClient::connect(&agent.address().to_string(), &key).unwrap();
    (client.fetch(7, home.path()), home)
}

fn framed(answer: &Value) -> Vec<u8> {
    frame::encode(answer).unwrap()
}

fn file(path: &str, declared: usize, content: &[u8]) -> Vec<u8> {
    let answer =
        json!({"answer": "file", "path": path, "bytes": declared, "executable": path == "x"});
    [framed(&answer), content.to_vec()].concat()
}

fn done() -> Vec<u8> {
    framed(&json!({"answer": "done"}))
}

#[test]
fn an_agent_sends_to_known_agents_only_and_counts_what_it_takes() {
    let key = key();
    let agent = Live::start("a", &key, &[]);
    let client = agent.client(&key).unwrap();
    let to = "10.9.9.9:7".parse().unwrap();
    let error = client.ask(&AgentRequest::send(to)).unwrap_err();
    assert!(error.to_string().ends_with("says: no agent is known at 10.9.9.9:7"), "{error}");
    let taken: Result<AgentReply, _> = client.block_on(async {
        let (mut to, mut from) = client.connection().open_bi().await?;
        stream::send(&mut to, &AgentRequest::Take).await?;
        to.write_all(&vec![7; 200_001]).await?;
        to.finish().map_err(io::Error::other)?;
        stream::receive(&mut from, ANSWER_BYTES_MAX).await
    });
    assert_eq!(taken.unwrap(), AgentReply::Taken { bytes: 200_001 });
}

#[test]
fn an_unreadable_question_gets_no_answer_and_does_not_end_the_connection() {
    let key = key();
    let agent = Live::start("a", &key, &[]);
    let client = agent.client(&key).unwrap();
    let too_long = (u32::MAX.to_be_bytes()).to_vec();
    let wrong = framed(&json!({"ask": "nonsense"}));
    let invalid = framed(&json!({"ask": "receive", "run": 1, "member": 65535}));
    for bytes in [too_long, wrong, invalid] {
        let answer: Result<AgentReply, _> = client.block_on(async {
            let (mut to, mut from) = client.connection().open_bi().await?;
            to.write_all(&bytes).await?;
            to.finish().map_err(io::Error::other)?;
            stream::receive(&mut from, ANSWER_BYTES_MAX).await
        });
        assert!(matches!(answer, Err(AgentClientError::Broken { .. })), "{answer:?}");
    }
    assert_eq!(client.ask(&AgentRequest::runs()).unwrap(), Vec::new());
}

#[test]
fn more_questions_than_streams_at_first_are_all_answered() {
    let key = key();
    let agent = Live::start("a", &key, &[]);
    let client = agent.client(&key).unwrap();
    let count = 8 * STREAMS_AT_FIRST as usize;
    let answers = client.block_on(async {
        let mut open = Vec::new();
        for _ in 0..count {
            // A limit that did not grow would let no stream be opened any more.
            let (mut to, from) = client.connection().open_bi().await?;
            stream::send(&mut to, &AgentRequest::Take).await?;
            open.push((to, from));
        }
        let mut answers = Vec::new();
        for (number, (mut to, mut from)) in open.into_iter().enumerate() {
            to.write_all(&vec![0; number]).await?;
            to.finish().map_err(io::Error::other)?;
            let AgentReply::Taken { bytes } = stream::receive(&mut from, ANSWER_BYTES_MAX).await?
            else {
                return Err(io::Error::other("another answer"));
            };
            answers.push(bytes);
        }
        Ok(answers)
    });
    assert!(answers.unwrap().into_iter().eq(0..count as u64));
}

#[test]
fn an_agent_joins_another_when_it_is_asked_to() {
    let key = key();
    let (a, b) = (Live::start("a", &key, &[]), Live::start("b", &key, &[]));
    a.client(&key).unwrap().ask(&AgentRequest::join(b.address)).unwrap();
    a.until(|notice| *notice == AgentNotice::Joined(b.address));
    b.until(|notice| *notice == AgentNotice::Joined(a.address));
    let peers = card(&a, &key).peers;
    assert_eq!((peers.len(), peers[0].address), (1, b.address));
}

#[test]
fn the_memory_of_a_card_is_the_least_of_all_limits() {
    let key = key();
    let agent = Live::start_with("a", &key, &[], |agent| {
        agent.memory = Some("3MB".parse().unwrap());
        agent.limits.resources.memory = Some(2_000_000);
        agent.limits.resources.cpu_millis = Some(1500);
        agent.uplink = None;
    });
    let card = card(&agent, &key);
    assert_eq!((card.memory.0, card.memory_free.0), (2_000_000, 2_000_000));
    assert_eq!((card.cpu_millis_max, card.nodes_max, card.uplink), (Some(1500), None, None));
}

#[test]
fn fetched_files_have_exactly_the_bytes_that_were_announced() {
    let answer = [file("a/b", 3, b"abc"), file("empty", 0, b""), file("x", 1, b"y"), done()];
    let (fetched, home) = fetch(answer.concat());
    fetched.unwrap();
    let read = |name: &str| fs::read(home.path().join(name)).unwrap();
    assert_eq!((read("a/b"), read("empty"), read("x")), (b"abc".to_vec(), vec![], vec![b'y']));
}

#[test]
fn a_fetch_of_files_that_break_off_come_twice_or_are_something_else_fails() {
    let short = file("a", 10, b"abc");
    let twice = [file("a", 1, b"1"), file("a", 1, b"2"), done()].concat();
    let below_a_file = [file("a", 1, b"1"), file("a/b", 1, b"2"), done()].concat();
    let unfinished = file("a", 1, b"1");
    let other = framed(&json!({"answer": "taken", "bytes": 1}));
    for answer in [short, twice, below_a_file, unfinished, other] {
        let (fetched, home) = fetch(answer);
        assert!(matches!(fetched, Err(AgentClientError::Broken { .. })), "{fetched:?}");
        // What was written first is never replaced.
        let first = fs::read(home.path().join("a")).unwrap_or_default();
        assert!([&b""[..], b"1", b"abc"].contains(&&first[..]), "{first:?}");
    }
    let (fetched, _) = fetch(framed(&json!({"answer": "error", "message": "it is tired"})));
    let source = std::error::Error::source(&fetched.unwrap_err()).unwrap().to_string();
    assert_eq!(source, "it is tired");
}

#[test]
fn an_answer_to_another_question_is_an_error() {
    let key = key();
    let agent = FakeAgent::start(&key, |_| done());
    let client = AgentClient::connect(&agent.address().to_string(), &key).unwrap();
    let error = client.hosts(false).unwrap_err();
    let text = "says: something else than was asked";
    assert!(error.to_string().ends_with(text), "{error}");
    let error = client.control(7, &windtunnel_control::ControlRequest::Stop).unwrap_err();
    assert!(matches!(error, AgentClientError::Broken { .. }), "{error:?}");
}

#[test]
fn a_hello_that_names_no_machine_is_refused_before_any_question() {
    let key = key();
    for host in ["", "\u{1b}[2J", "a\nb", &"x".repeat(5000)] {
        let hello = AgentHello { version: SoftwareVersion::own(), host: host.to_owned() };
        let agent = FakeAgent::start_as(&key, hello, |_| done());
        let error = AgentClient::connect(&agent.address().to_string(), &key).unwrap_err();
        assert!(matches!(error, AgentClientError::Broken { .. }), "{host:?}: {error:?}");
    }
}
