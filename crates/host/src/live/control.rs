//! Requests from outside: `ps`, `snapshot`, `exec`, `set`, `down`, `up`, `do`, `stop`.

use std::os::fd::{AsFd, OwnedFd};

use windtunnel_control::{Incoming, LaneChoice, Reply, Request};
use windtunnel_model::plan::LinkChange;
use windtunnel_model::{Direction, Lane, LinkPatch, NodeId};
use windtunnel_node::{Request as NodeRequest, Spawn};
use windtunnel_trace::event::What;

use super::Live;
use crate::ending::Ending;

impl Live {
    /// Accepts connections and answers requests: a few a turn of the loop, at most one of each
    /// client, so that neither the run nor another client waits for one that asks without end.
    pub(super) fn serve(&mut self) {
        if let Some(shortage) = self.connections.accept(&self.plan.name) {
            self.warn(shortage);
        }
        let mut left = REQUESTS_PER_TURN;
        for id in self.connections.turn() {
            let incoming = self.connections.receive(id);
            left -= usize::from(incoming.is_some());
            match incoming {
                Some(Incoming::Request(request, descriptors)) => {
                    self.answer(id, *request, &descriptors);
                }
                Some(Incoming::Unreadable(message)) => {
                    self.connections.reply(id, &Reply::Error { message, hint: None });
                }
                Some(Incoming::Closed) => self.connections.close(id, &self.village),
                None => {}
            }
            if left == 0 {
                return;
            }
        }
    }

    fn answer(&mut self, id: u64, request: Request, descriptors: &[OwnedFd]) {
        let answered = match request {
            Request::Ps => Ok(Some(Reply::Ps(self.status()))),
            Request::Snapshot => Ok(Some(Reply::Snapshot(self.snapshot()))),
            Request::Exec { node, argv, cwd, env, terminal } => {
                let spawn = Spawn { id, argv, env, cwd, terminal };
                self.execute(id, &node, spawn, descriptors).map(|()| None)
            }
            Request::Signal { signal: number } => {
                self.signal_command(id, number);
                Ok(None)
            }
            Request::Set { lanes, patch } => self.set(id, &lanes, &patch).map(|()| None),
            Request::State { lanes, up } => self.set_state(id, &lanes, up).map(|()| None),
            Request::Do { events } => self.happen(id, events).map(|()| None),
            Request::Stop => {
                self.end.ask(Ending::Stopped);
                Ok(Some(Reply::Done))
            }
            _ => Err(("this run does not know the request".to_owned(), None)),
        };
        match answered {
            Ok(None) => {}
            Ok(Some(reply)) => self.connections.reply(id, &reply),
            Err((message, hint)) => self.connections.reply(id, &Reply::Error { message, hint }),
        }
    }

    fn execute(
        &mut self,
        id: u64,
        node: &str,
        mut spawn: Spawn,
        descriptors: &[OwnedFd],
    ) -> Result<(), Refusal> {
        let [input, output, error] = descriptors else {
            return Err(("exec needs three descriptors".to_owned(), None));
        };
        let node = self.find_node(node)?.index();
        if self.connections.command_of(id).is_some() {
            return Err(("this connection already runs a command".to_owned(), None));
        }
        let run = self.folder.path().to_string_lossy().into_owned();
        spawn.env.entry("WINDTUNNEL_RUN".to_owned()).or_insert(run);
        let argv = spawn.argv.clone();
        let descriptors = [input.as_fd(), output.as_fd(), error.as_fd()];
        self.send(node, &NodeRequest::Spawn(spawn), &descriptors).map_err(|error| (error, None))?;
        self.connections.runs(id, node);
        self.tell(None, What::Executed { node: self.plan.nodes[node].name.clone(), argv });
        Ok(())
    }

    fn signal_command(&self, id: u64, number: i32) {
        if let Some((node, command)) = self.connections.command_of(id) {
            let request = NodeRequest::Signal { id: Some(command), signal: number };
            // A command that has just ended needs no signal.
            let _ = self.send(node, &request, &[]);
        }
    }

    fn set(&mut self, id: u64, lanes: &LaneChoice, patch: &LinkPatch) -> Result<(), Refusal> {
        let lanes = self.find_lanes(lanes)?;
        patch.validate(&self.plan).map_err(|error| (error.to_string(), None))?;
        let patches = lanes.into_iter().map(|lane| (lane, patch.clone())).collect();
        self.change(id, LinkChange { patches, state: Vec::new() });
        Ok(())
    }

    fn set_state(&mut self, id: u64, lanes: &LaneChoice, up: bool) -> Result<(), Refusal> {
        let lanes = self.find_lanes(lanes)?;
        let state = lanes.into_iter().map(|lane| (lane, up)).collect();
        self.change(id, LinkChange { patches: Vec::new(), state });
        Ok(())
    }

    fn find_node(&self, name: &str) -> Result<NodeId, Refusal> {
        self.plan.node_named(name).ok_or_else(|| {
            let names = self.plan.nodes.iter().map(|node| node.name.as_str());
            (format!("no node is called {name}"), Some(list("the nodes are", names)))
        })
    }

    fn find_lanes(&self, choice: &LaneChoice) -> Result<Vec<Lane>, Refusal> {
        let link = self.plan.link_named(&choice.link).ok_or_else(|| {
            let names = self.plan.links.iter().map(|link| link.name.as_str());
            (format!("no link is called {}", choice.link), Some(list("the links are", names)))
        })?;
        let both = Direction::BOTH.map(|direction| Lane { link, direction });
        let Some(asked) = &choice.direction else { return Ok(both.to_vec()) };
        let named =
            |lane: &Lane| lane.direction.name() == asked || self.plan.lane_name(*lane) == *asked;
        both.iter().find(|lane| named(lane)).map(|lane| vec![*lane]).ok_or_else(|| {
            let names = both.map(|lane| self.plan.lane_name(lane));
            let hint = list(
                "the directions are",
                ["up", "down"].into_iter().chain(names.iter().map(String::as_str)),
            );
            (format!("link {} has no direction {asked}", choice.link), Some(hint))
        })
    }
}

/// Why a request is refused, and what can be done about it.
pub(super) type Refusal = (String, Option<String>);

/// Enough names to help, not a wall of text.
fn list<'a>(intro: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names.iter().take(NAMES_LISTED).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(NAMES_LISTED) {
        None | Some(0) => format!("{intro} {shown}"),
        Some(more) => format!("{intro} {shown} and {more} more"),
    }
}

const NAMES_LISTED: usize = 12;
/// Requests that are answered before the loop looks at everything else again. One takes up to a
/// millisecond (the state of thousands of nodes), and a program or an event that is due waits no
/// longer than all of them.
const REQUESTS_PER_TURN: usize = 8;
