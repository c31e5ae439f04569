//! The control socket of a run over several machines: each request goes to the part that can do it.
//!
//! A machine may take long to answer, or be silent. So each question is asked on a thread of its
//! own, which has the connection of the client meanwhile: what leads the run never waits for it.

mod answers;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use windtunnel_cluster::RunAgents;
use windtunnel_cluster::protocol::run::RunSetup;
use windtunnel_control::{
    ConnectionInput, ControlConnection, ControlListener, ControlReply, ControlRequest,
};
use windtunnel_folder::RunOutputFolder;

use crate::command;
use answers::ControlProxyResponder;

/// The clients of the control socket in the run folder.
pub(crate) struct Proxy {
    listener: ControlListener,
    open: Vec<ControlConnection>,
    answers: Arc<ControlProxyResponder>,
    /// Connections whose questions are with the machines.
    away: usize,
    /// Such connections come back here, unless the client has gone.
    back: (Sender<Option<ControlConnection>>, Receiver<Option<ControlConnection>>),
}

/// Whether a part can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartReachability {
    /// It lives.
    There,
    /// It has not been received for a while, and may be back.
    Silent,
    /// It is over, or its machine is lost.
    Gone,
}

impl Proxy {
    pub(crate) fn open(folder: &RunOutputFolder, setup: &RunSetup) -> io::Result<Self> {
        let names = setup.plan.nodes.iter().map(|node| node.name.clone());
        let answers = ControlProxyResponder {
            name: setup.plan.name.clone(),
            nodes: names.zip(setup.placement.iter().copied()).collect(),
        };
        Ok(Proxy::new(ControlListener::open(folder.path())?, answers))
    }

    fn new(listener: ControlListener, answers: ControlProxyResponder) -> Self {
        let answers = Arc::new(answers);
        Proxy { listener, open: Vec::new(), answers, away: 0, back: channel() }
    }

    /// Answers what has been asked, now or when the machines have answered. `present` has
    /// each member's part.
    pub(crate) fn serve(&mut self, agents: &RunAgents, present: &[PartReachability]) {
        while let Ok(back) = self.back.1.try_recv() {
            self.away -= 1;
            self.open.extend(back);
        }
        while self.open.len() + self.away < CONNECTIONS_MAX {
            let Ok(Some(connection)) = self.listener.accept(&self.answers.name) else { break };
            self.open.push(connection);
        }
        let open = std::mem::take(&mut self.open);
        let served = open.into_iter().filter_map(|one| self.serve_one(one, agents, present));
        self.open = served.collect();
    }

    /// The run is over: clients get the answers that machines are about to give.
    pub(crate) fn close(mut self) {
        let until = Instant::now() + FAREWELL;
        while self.away > 0
            && let Some(left) = until.checked_duration_since(Instant::now())
            && self.back.1.recv_timeout(left).is_ok()
        {
            self.away -= 1;
        }
    }

    /// Returns the connection if it is still there, and no thread has it.
    fn serve_one(
        &mut self,
        mut connection: ControlConnection,
        agents: &RunAgents,
        present: &[PartReachability],
    ) -> Option<ControlConnection> {
        // A client that has gone shows in the next lines.
        let _ = connection.flush();
        for _ in 0..REQUESTS_A_STEP {
            if connection.is_behind() {
                break;
            }
            let Some(incoming) = connection.receive() else { break };
            let reply = match incoming {
                ConnectionInput::Request(request, ends) => match self.place_of(&request, present) {
                    Some(Ok(member)) => {
                        command::start(agents.runner(member), connection, *request, ends);
                        return None;
                    }
                    Some(Err(reply)) => reply,
                    None => {
                        self.ask(*request, connection, agents.clone(), present.to_vec());
                        return None;
                    }
                },
                ConnectionInput::Unreadable(message) => ControlReply::Error { message, hint: None },
                ConnectionInput::Closed => return None,
            };
            connection.reply(&reply).ok()?;
        }
        Some(connection)
    }

    /// Asks the machines, and answers the client when they have answered.
    fn ask(
        &mut self,
        request: ControlRequest,
        mut connection: ControlConnection,
        agents: RunAgents,
        present: Vec<PartReachability>,
    ) {
        let (answers, back) = (Arc::clone(&self.answers), self.back.0.clone());
        self.away += 1;
        thread::spawn(move || {
            let reply = answers.answer(request, &agents, &present);
            let is_there = connection.reply(&reply).is_ok();
            // The run may be over, and the connection is served no more.
            let _ = back.send(is_there.then_some(connection));
        });
    }

    /// On which member a command is to run, if that is what is asked for.
    fn place_of(
        &self,
        request: &ControlRequest,
        present: &[PartReachability],
    ) -> Option<Result<u16, ControlReply>> {
        let ControlRequest::Exec { node, .. } = request else { return None };
        let error = |message: String, hint| Err(ControlReply::Error { message, hint });
        let Some((_, member)) = self.answers.nodes.iter().find(|(name, _)| name == node) else {
            let names = self.answers.nodes.iter().map(|(name, _)| name.as_str()).take(NAMES_LISTED);
            let names = names.collect::<Vec<_>>().join(", ");
            let hint = Some(format!("the nodes are {names}"));
            return Some(error(format!("no node is called {node}"), hint));
        };
        Some(match present.get(usize::from(*member)) {
            Some(PartReachability::There | PartReachability::Silent) => Ok(*member),
            _ => error(format!("the machine of node {node} is not there any more"), None),
        })
    }
}

const NAMES_LISTED: usize = 12;
/// What one client may ask in one step: others wait, too.
const REQUESTS_A_STEP: usize = 8;
/// Further ones wait in the socket's queue.
const CONNECTIONS_MAX: usize = 256;
/// How long answers are waited for when the run is over: not as long as a silent machine may be.
const FAREWELL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use windtunnel_cluster::PartSessions;
    use windtunnel_control::ControlClient;

    use super::PartReachability::{Gone, There};
    use super::*;
    use crate::tests::{key, setup};

    fn proxy(folder: &std::path::Path) -> Proxy {
        let nodes = [("a", 0), ("b", 1), ("c", 1)].map(|(name, member)| (name.to_owned(), member));
        let answers = ControlProxyResponder { name: "net".to_owned(), nodes: nodes.into() };
        Proxy::new(ControlListener::open(folder).unwrap(), answers)
    }

    /// The answers to requests of one client, while these members live.
    fn answers(present: &[PartReachability], requests: Vec<ControlRequest>) -> Vec<ControlReply> {
        let home = tempfile::tempdir().unwrap();
        let mut proxy = proxy(home.path());
        let parts = PartSessions::watch(&RunSetup { members: Vec::new(), ..setup() }, &key());
        let folder = home.path().to_owned();
        let client = thread::spawn(move || {
            let mut client = ControlClient::connect(&folder).unwrap();
            assert_eq!(client.name(), "net");
            let ask = |request| {
                client.send(request, &[]).unwrap();
                client.receive().unwrap()
            };
            requests.iter().map(ask).collect::<Vec<_>>()
        });
        while !client.is_finished() {
            proxy.serve(parts.agents(), present);
            thread::yield_now();
        }
        client.join().unwrap()
    }

    fn error(message: &str, hint: Option<&str>) -> ControlReply {
        ControlReply::Error { message: message.to_owned(), hint: hint.map(str::to_owned) }
    }

    fn exec(node: &str) -> ControlRequest {
        ControlRequest::Exec {
            node: node.to_owned(),
            argv: vec!["ls".to_owned()],
            cwd: None,
            env: BTreeMap::new(),
            terminal: false,
        }
    }

    #[test]
    fn a_run_without_a_living_part_is_over() {
        let requests = vec![
            ControlRequest::Ps,
            ControlRequest::Snapshot,
            ControlRequest::Links,
            ControlRequest::Stop,
        ];
        let over = error("the run is over", None);
        assert_eq!(answers(&[Gone, Gone], requests), vec![over; 4]);
    }

    #[test]
    fn a_command_needs_a_node_that_exists_on_a_machine_that_lives() {
        let seen = answers(&[There, Gone], vec![exec("z"), exec("b")]);
        let expected = [
            error("no node is called z", Some("the nodes are a, b, c")),
            error("the machine of node b is not there any more", None),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_capture_is_refused_with_the_reason() {
        let request = ControlRequest::Capture { place: "b".to_owned(), snap_bytes: 0 };
        let message = "frames of b cannot be captured: the run is over several machines, and a \
                       capture is written on the machine of its node";
        assert_eq!(
            answers(&[There, There], vec![request]),
            [error(message, Some(answers::HEADERS))]
        );
    }
}
