//! Requests from outside: `ps`, `snapshot`, `exec`, `set`, `down`, `up`, `do`, `stop`.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use windtunnel_control::{Connection, Incoming, LaneChoice, Listener, Reply, Request};
use windtunnel_model::plan::LinkChange;
use windtunnel_model::{Direction, Lane, LinkPatch, NodeId, Span, Time};
use windtunnel_node::{Request as NodeRequest, Spawn, Village};
use windtunnel_sys::poll::PollFlags;
use windtunnel_sys::process::Signal;
use windtunnel_trace::event::What;

use super::Live;
use super::orders::Pending;
use crate::dataplane::now;
use crate::verdict::Ending;

/// Commands from outside have numbers from here on; the plan's programs stay below.
pub(super) const EXEC_FIRST: u64 = 1 << 48;

/// Everybody who is connected.
#[derive(Debug)]
pub(crate) struct Connections {
    listener: Listener,
    open: BTreeMap<u64, Open>,
    next: u64,
    /// Commands whose client has gone: SIGKILL at that time.
    abandoned: Vec<(Time, usize, u64)>,
}

#[derive(Debug)]
struct Open {
    connection: Connection,
    /// What it is told when all that it ordered has been done.
    pending: Option<Pending>,
    /// The node and number of the command that runs for it.
    command: Option<(usize, u64)>,
}

impl Connections {
    pub(super) fn new(listener: Listener) -> Self {
        Connections { listener, open: BTreeMap::new(), next: EXEC_FIRST, abandoned: Vec::new() }
    }

    /// To be polled for reading, and for writing where a reply waits for room.
    pub(super) fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let open = self.open.values().map(|open| {
            let mut interest = PollFlags::IN;
            interest.set(PollFlags::OUT, open.connection.is_unsent());
            (open.connection.as_fd(), interest)
        });
        std::iter::once((self.listener.as_fd(), PollFlags::IN)).chain(open)
    }

    pub(super) fn started(&mut self, command: u64, pid: u32) {
        let pid = i32::try_from(pid).unwrap_or(0);
        self.reply(command, &Reply::Started { pid });
    }

    pub(super) fn failed(&mut self, command: u64, message: &str) {
        self.reply(command, &Reply::Error { message: message.to_owned(), hint: None });
        self.forget_command(command);
    }

    pub(super) fn exited(&mut self, command: u64, code: u8) {
        self.abandoned.retain(|(_, _, id)| *id != command);
        self.reply(command, &Reply::Exited { code });
        self.forget_command(command);
    }

    /// Kills commands whose client has been gone for long enough.
    pub(super) fn end_abandoned(&mut self, village: &Village) {
        let time = now();
        let due = self.abandoned.iter().filter(|(at, ..)| *at <= time);
        for (_, node, id) in due {
            signal(village, *node, *id, Signal::KILL);
        }
        self.abandoned.retain(|(at, ..)| *at > time);
    }

    pub(super) fn reply(&mut self, id: u64, reply: &Reply) {
        // Who does not read replies is treated as gone when its connection closes.
        if let Some(open) = self.open.get_mut(&id) {
            let _ = open.connection.reply(reply);
        }
    }

    /// What a client waits for.
    pub(super) fn pending(&mut self, id: u64) -> Option<&mut Option<Pending>> {
        self.open.get_mut(&id).map(|open| &mut open.pending)
    }

    fn forget_command(&mut self, id: u64) {
        if let Some(open) = self.open.get_mut(&id) {
            open.command = None;
        }
    }

    fn accept(&mut self, name: &str) {
        // Descriptor shortage shows again at the next attempt; the run goes on.
        while let Ok(Some(connection)) = self.listener.accept(name) {
            self.open.insert(self.next, Open { connection, pending: None, command: None });
            self.next += 1;
        }
    }
}

impl Live {
    /// Accepts connections and answers requests.
    pub(super) fn serve(&mut self) {
        let name = self.plan.name.clone();
        self.connections.accept(&name);
        let ids: Vec<u64> = self.connections.open.keys().copied().collect();
        for id in ids {
            let Some(open) = self.connections.open.get_mut(&id) else { continue };
            // Who has gone is told by the next line.
            let _ = open.connection.flush();
            for incoming in open.connection.receive() {
                match incoming {
                    Incoming::Request(request, descriptors) => {
                        self.answer(id, *request, &descriptors);
                    }
                    Incoming::Unreadable(message) => {
                        self.connections.reply(id, &Reply::Error { message, hint: None });
                    }
                    Incoming::Closed => self.closed(id),
                }
            }
        }
    }

    fn closed(&mut self, id: u64) {
        let Some(open) = self.connections.open.remove(&id) else { return };
        if let Some((node, command)) = open.command {
            // What a terminal does to its programs when it goes away.
            signal(&self.village, node, command, Signal::HUP);
            self.connections.abandoned.push((now() + ABANDONED_GRACE, node, command));
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
                self.ending.get_or_insert(Ending::Stopped);
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
        let open = self.connections.open.get(&id);
        if open.is_none_or(|open| open.command.is_some()) {
            return Err(("this connection already runs a command".to_owned(), None));
        }
        let run = self.folder.path().to_string_lossy().into_owned();
        spawn.env.entry("WINDTUNNEL_RUN".to_owned()).or_insert(run);
        let argv = spawn.argv.clone();
        let descriptors = [input.as_fd(), output.as_fd(), error.as_fd()];
        self.send(node, &NodeRequest::Spawn(spawn), &descriptors).map_err(|error| (error, None))?;
        if let Some(open) = self.connections.open.get_mut(&id) {
            open.command = Some((node, id));
        }
        self.tell(None, What::Executed { node: self.plan.nodes[node].name.clone(), argv });
        Ok(())
    }

    fn signal_command(&self, id: u64, number: i32) {
        let command = self.connections.open.get(&id).and_then(|open| open.command);
        if let Some((node, command)) = command {
            let request = NodeRequest::Signal { id: Some(command), signal: number };
            // A command that has just ended needs no signal.
            let _ = self.send(node, &request, &[]);
        }
    }

    fn set(&mut self, id: u64, lanes: &LaneChoice, patch: &LinkPatch) -> Result<(), Refusal> {
        let lanes = self.find_lanes(lanes)?;
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

fn signal(village: &Village, node: usize, id: u64, signal: Signal) {
    let request = NodeRequest::Signal { id: Some(id), signal: signal.as_raw() };
    // A node that takes no messages will be ended with the run.
    let _ = village.node(NodeId::from_index(node)).map(|node| node.send(&request, &[]));
}

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
/// Between SIGHUP and SIGKILL for a command whose client has gone.
const ABANDONED_GRACE: Span = Span::from_millis(500);
