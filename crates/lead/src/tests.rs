//! Agents that the tests play, and a run over machines.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use windtunnel_cluster::protocol::run::{RunMember, RunSetup};
use windtunnel_cluster::protocol::{AgentDescription, AgentReply, AgentRequest, ClusterHosts};
use windtunnel_cluster::{ClusterKey, FakeAgent};
use windtunnel_control::frame;
use windtunnel_host::{Observer, ObserverNotice, RunOptions};

use crate::progress::ClusterRunObserver;
use crate::sample::{card, plan};

/// A run of the nodes a, b and c, each on a machine of its own: one, two and three.
pub(crate) fn setup() -> RunSetup {
    let member = |(host, last): (&str, u8)| RunMember {
        agent: format!("{last:016x}"),
        host: host.to_owned(),
        address: ([10, 0, 0, last], 7447).into(),
        has: Default::default(),
    };
    RunSetup {
        run: 7,
        plan: plan("nodes: {a: {run: x}, b: {run: x}, c: {run: x}}\nlinks: [{between: [a, b]}]\n"),
        plan_hash: "0".repeat(64),
        members: [("one", 1), ("two", 2), ("three", 3)].map(member).into(),
        placement: vec![0, 1, 2],
        key: None,
        base_dir: "/".into(),
        shared: RunOptions::new("/".into(), "/".into()).shared(),
        by: "ann@here".to_owned(),
    }
}

pub(crate) fn key() -> ClusterKey {
    ClusterKey::generate().expect("there is randomness").0
}

/// The card of a machine whose agent has a number.
pub(crate) fn numbered(name: &str, last: u8) -> AgentDescription {
    AgentDescription { agent: format!("{last:016x}"), ..card(name, last) }
}

/// An agent that gives this card, and knows these agents, of which it is the first.
pub(crate) fn agent(key: &ClusterKey, known: Vec<AgentDescription>) -> FakeAgent {
    FakeAgent::start(key, move |ask| {
        let answer = match ask {
            AgentRequest::Card => AgentReply::Card(Box::new(known[0].clone())),
            AgentRequest::Hosts { .. } => AgentReply::Hosts(ClusterHosts {
                asked: 0,
                hosts: known.clone(),
                silent: Vec::new(),
                throughput: Vec::new(),
            }),
            AgentRequest::Join { .. } => AgentReply::Done,
            _ => AgentReply::Error { message: "it is not asked that".to_owned() },
        };
        frame::encode(&answer).expect("an answer")
    })
}

/// A port on which no process listens.
pub(crate) fn unused() -> SocketAddr {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("there is loopback");
    socket.local_addr().expect("it is bound")
}

/// Keeps what it is notified of.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// What has come since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, text: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
}

impl Observer for Recorder {
    fn notice(&self, notice: &ObserverNotice<'_>) {
        self.add(format!("{notice:?}"));
    }
}

impl ClusterRunObserver for Recorder {
    fn warn(&self, text: &str) {
        self.add(text.to_owned());
    }
}
