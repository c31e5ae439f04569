//! Requests from outside: `ps`, `snapshot`, `links`, `exec`, `set`, `down`, `up`, `do`, `capture`,
//! `stop`.

use std::os::fd::{AsFd, OwnedFd};

use windtunnel_control::{
    ConnectionInput, ControlReply, ControlRequest, LaneChoice, LinkList, RecordOrder,
    ReservationStatus, RunStatus, Sending, Snapshot,
};
use windtunnel_model::plan::{EventAction, LinkChange, RecordChoice};
use windtunnel_model::{Lane, LinkPatch, NetworkVertex};
use windtunnel_node::{NodeInitRequest as NodeRequest, Spawn};
use windtunnel_trace::event::EventLogEntryKind;

use super::refusal::{RequestRefusal, find_lanes, find_node};
use super::state::RunLoop;
use crate::ending::RunEndReason;
use crate::node_limits::NodeLimitChange;
use windtunnel_dataplane::PacketLoopCommand;

impl RunLoop {
    /// Accepts connections and answers requests: a few a turn of the loop, at most one of each
    /// client, so that neither the run nor another client waits for one that asks without end.
    pub(super) fn serve(&mut self) {
        if let Some(shortage) = self.connections.accept(&self.cx.plan.name) {
            self.cx.journal.warn(shortage);
        }
        let mut left = REQUESTS_PER_TURN;
        for id in self.connections.turn() {
            let incoming = self.connections.receive(id);
            left -= usize::from(incoming.is_some());
            match incoming {
                Some(ConnectionInput::Request(request, descriptors)) => {
                    self.answer(id, *request, &descriptors);
                }
                Some(ConnectionInput::Unreadable(message)) => {
                    self.connections.reply(id, &ControlReply::Error { message, hint: None });
                }
                Some(ConnectionInput::Closed) => {
                    self.answers.forget(id);
                    if let Some(number) = self.captures.leave(id) {
                        self.network.order(PacketLoopCommand::EndCapture(number));
                    }
                    self.connections.close(id, &self.cx.nodes);
                }
                None => {}
            }
            if left == 0 {
                return;
            }
        }
    }

    fn answer(&mut self, id: u64, request: ControlRequest, descriptors: &[OwnedFd]) {
        match self.handle(id, request, descriptors) {
            Ok(None) => {}
            Ok(Some(reply)) => self.connections.reply(id, &reply),
            Err(refusal) => self.connections.reply(id, &refusal.into_reply()),
        }
    }

    /// Returns the answer where there is one at once.
    fn handle(
        &mut self,
        id: u64,
        request: ControlRequest,
        descriptors: &[OwnedFd],
    ) -> Result<Option<ControlReply>, RequestRefusal> {
        match request {
            ControlRequest::Ps => return Ok(Some(ControlReply::Ps(Box::new(self.status())))),
            ControlRequest::Snapshot => {
                return Ok(Some(ControlReply::Snapshot(Box::new(self.snapshot()))));
            }
            ControlRequest::Links => return Ok(Some(ControlReply::Links(self.links()))),
            ControlRequest::Exec { node, argv, cwd, env, terminal } => {
                let spawn = Spawn { id, argv, env, cwd, terminal, program: None };
                self.execute(id, &node, spawn, descriptors)?;
            }
            ControlRequest::Signal { signal: number } => self.signal_command(id, number),
            ControlRequest::Set { lanes, patch } => self.set(id, &lanes, &patch)?,
            ControlRequest::SetCpu { node, millis } => {
                return self.set_limit(&node, NodeLimitChange::Processor(millis)).map(Some);
            }
            ControlRequest::SetMemory { node, bytes } => {
                return self.set_limit(&node, NodeLimitChange::Memory(bytes.0)).map(Some);
            }
            ControlRequest::SetPids { node, count } => {
                return self.set_limit(&node, NodeLimitChange::Pids(count)).map(Some);
            }
            ControlRequest::SetDisk { node, rate } => {
                let bytes = rate.bits_per_second() / 8;
                return self.set_limit(&node, NodeLimitChange::Disk(bytes)).map(Some);
            }
            ControlRequest::SetShare { name, min_millis, weight } => {
                return self.set_share(&name, min_millis, weight).map(Some);
            }
            ControlRequest::Reservations => {
                return Ok(Some(ControlReply::Reservations { parts: self.reservations() }));
            }
            ControlRequest::Services { service } => {
                return Ok(Some(ControlReply::Services(self.services(service.as_deref())?)));
            }
            ControlRequest::State { lanes, up } => self.set_state(id, &lanes, up)?,
            ControlRequest::Do { events } => self.happen(id, events)?,
            ControlRequest::RecordStart(order) => return self.record(order).map(Some),
            ControlRequest::RecordStop => {
                self.records.stop();
                self.network.record(self.records.packets());
                self.records.flush();
                return Ok(Some(ControlReply::Records(self.records.status())));
            }
            ControlRequest::RecordStatus => {
                return Ok(Some(ControlReply::Records(self.records.status())));
            }
            ControlRequest::Capture { place, snap_bytes } => {
                self.capture(id, &place, snap_bytes, descriptors)?;
                return Ok(Some(ControlReply::Done));
            }
            ControlRequest::CaptureEnd => self.end_capture(id)?,
            ControlRequest::Stop => {
                self.end.ask(RunEndReason::Stopped);
                return Ok(Some(ControlReply::Done));
            }
            _ => return Err("this run does not know the request".to_owned().into()),
        }
        Ok(None)
    }

    fn status(&self) -> RunStatus {
        let mut nodes = self.programs.statuses(&self.cx);
        for (node, limits) in self.limits.statuses() {
            nodes[node].limits = limits;
        }
        let name = self.cx.plan.name.clone();
        let services = self.service_statuses();
        let nats = self.nat_statuses();
        RunStatus { name, elapsed_ns: self.elapsed().as_nanos(), nodes, services, nats }
    }

    /// The same with what links are like and do.
    fn snapshot(&self) -> Snapshot {
        let (at, window, did) = self.cx.journal.recent().lanes();
        Snapshot {
            links: self.network.links.statuses(&self.cx.plan, did),
            sampled_ns: at.as_nanos(),
            window_ns: window.as_nanos(),
            status: self.status(),
        }
    }

    /// What is reserved, and what nodes send of what their links carry.
    fn reservations(&self) -> Vec<ReservationStatus> {
        let plan = &self.cx.plan;
        let (_, _, did) = self.cx.journal.recent().lanes();
        let lanes = self.network.links.statuses(plan, did);
        let mut parts = self.limits.reservations(plan);
        for part in parts.iter_mut().filter(|part| part.node) {
            let node = plan.nodes.iter().position(|node| node.name == part.name);
            let is_own = |lane: usize| match plan.lane_start(Lane::from_index(lane)) {
                NetworkVertex::Node(start) => Some(start.index()) == node,
                NetworkVertex::Router(_) | NetworkVertex::Lan(_) => false,
            };
            let own = lanes.iter().enumerate().filter(|(lane, _)| is_own(*lane));
            part.sending = Some(Sending::of(own.map(|(_, lane)| lane)));
        }
        parts
    }

    fn links(&self) -> LinkList {
        LinkList {
            name: self.cx.plan.name.clone(),
            elapsed_ns: self.elapsed().as_nanos(),
            links: self.network.links.properties(&self.cx.plan),
        }
    }

    fn execute(
        &mut self,
        id: u64,
        node: &str,
        mut spawn: Spawn,
        descriptors: &[OwnedFd],
    ) -> Result<(), RequestRefusal> {
        let [input, output, error] = descriptors else {
            return Err("exec needs three descriptors".to_owned().into());
        };
        let node = find_node(&self.cx.plan, node)?.index();
        if self.connections.command_of(id).is_some() {
            return Err("this connection already runs a command".to_owned().into());
        }
        if self.cx.plan.nodes[node].root.is_none() {
            let run = self.cx.folder.path().to_string_lossy().into_owned();
            spawn.env.entry("WINDTUNNEL_RUN".to_owned()).or_insert(run);
        }
        let argv = spawn.argv.clone();
        let descriptors = [input.as_fd(), output.as_fd(), error.as_fd()];
        self.cx.nodes.send(node, &NodeRequest::Spawn(spawn), &descriptors)?;
        self.connections.runs(id, node);
        let node = self.cx.nodes.name(node).to_owned();
        self.cx.journal.log(None, EventLogEntryKind::Executed { node, argv });
        Ok(())
    }

    /// Records what is asked for from now on.
    fn record(&mut self, order: RecordOrder) -> Result<ControlReply, RequestRefusal> {
        let RecordOrder { layers, nodes, flows, direction, max } = order;
        let plan = &self.cx.plan;
        let mut chosen = Vec::new();
        for name in &nodes {
            let members = plan.nodes_named(name);
            // One that is no group has to be a node.
            let members = if members.is_empty() { vec![find_node(plan, name)?] } else { members };
            chosen.extend(members);
        }
        let choice = RecordChoice { layers, nodes: chosen, flows, direction };
        choice.validate(plan).map_err(|error| error.to_string())?;
        let choice = (choice != RecordChoice::default()).then_some(choice);
        self.records.start(choice, max)?;
        self.network.record(self.records.packets());
        Ok(ControlReply::Records(self.records.status()))
    }

    fn signal_command(&self, id: u64, number: i32) {
        if let Some((node, command)) = self.connections.command_of(id) {
            // A command that has just ended needs no signal.
            let _ = self.cx.nodes.signal_one(node, command, number);
        }
    }

    fn set(
        &mut self,
        id: u64,
        lanes: &LaneChoice,
        patch: &LinkPatch,
    ) -> Result<(), RequestRefusal> {
        let lanes = find_lanes(&self.cx.plan, lanes)?;
        let patches = lanes.into_iter().map(|lane| (lane, patch.clone())).collect();
        let change = LinkChange { patches, state: Vec::new() };
        let action = EventAction::Link(change.clone());
        self.cx.plan.validate_action(&action).map_err(|error| error.to_string())?;
        self.change_links(id, change);
        Ok(())
    }

    fn set_state(&mut self, id: u64, lanes: &LaneChoice, up: bool) -> Result<(), RequestRefusal> {
        let lanes = find_lanes(&self.cx.plan, lanes)?;
        let state = lanes.into_iter().map(|lane| (lane, up)).collect();
        self.change_links(id, LinkChange { patches: Vec::new(), state });
        Ok(())
    }
}

/// Requests that are answered before the loop looks at everything else again. One takes up to a
/// millisecond (the state of thousands of nodes), and a program or an event that is due waits no
/// longer than all of them.
const REQUESTS_PER_TURN: usize = 8;
