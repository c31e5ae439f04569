//! Requests from outside: `ps`, `snapshot`, `links`, `exec`, `set`, `down`, `up`, `do`, `capture`,
//! `stop`.

use std::os::fd::OwnedFd;

use windtunnel_control::{ConnectionInput, ControlReply, ControlRequest, RecordOrder};
use windtunnel_model::plan::RecordChoice;
use windtunnel_node::ProgramSpawnRequest;
use windtunnel_verdict::evidence::RunEndReason;

use super::limited::LimitRequestOutcome;
use super::reactor::RunReactor;
use super::refusal::{RequestRefusal, find_node};
use windtunnel_dataplane::PacketLoopCommand;

impl RunReactor {
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
            ControlRequest::Ps => {
                return Ok(Some(ControlReply::Ps(Box::new(self.inspector().status()))));
            }
            ControlRequest::Snapshot => {
                return Ok(Some(ControlReply::Snapshot(Box::new(self.inspector().snapshot()))));
            }
            ControlRequest::Links => {
                return Ok(Some(ControlReply::Links(self.inspector().links())));
            }
            ControlRequest::Exec { node, argv, cwd, env, terminal } => {
                let spawn = ProgramSpawnRequest { id, argv, env, cwd, terminal, program: None };
                self.connections.execute(&self.cx, &node, spawn, descriptors)?;
            }
            ControlRequest::Signal { signal: number } => {
                self.connections.signal_command(&self.cx.nodes, id, number);
            }
            ControlRequest::Set { lanes, patch } => self.orders().set(id, &lanes, &patch)?,
            ControlRequest::Limit { who, demand } => {
                return Ok(Some(match self.limit_controller().set(&who, &demand)? {
                    LimitRequestOutcome::Set => ControlReply::Done,
                    LimitRequestOutcome::Elsewhere => ControlReply::Elsewhere,
                    LimitRequestOutcome::ForAll(action) => {
                        self.orders().order_everywhere(action);
                        ControlReply::Done
                    }
                }));
            }
            ControlRequest::Reservations => {
                let parts = self.inspector().reservations();
                return Ok(Some(ControlReply::Reservations { parts }));
            }
            ControlRequest::Services { service } => {
                let list = self.inspector().services().list(service.as_deref())?;
                return Ok(Some(ControlReply::Services(list)));
            }
            ControlRequest::State { lanes, up } => self.orders().set_state(id, &lanes, up)?,
            ControlRequest::Do { events } => self.orders().happen(id, events)?,
            ControlRequest::RecordStart(order) => return self.record(order).map(Some),
            ControlRequest::RecordStop => return Ok(Some(self.stop_recording())),
            ControlRequest::RecordStatus => {
                return Ok(Some(ControlReply::Records(self.records.status())));
            }
            ControlRequest::Capture { place, snap_bytes } => {
                let (captures, source) = self.captures_of();
                captures.start_for_client(source, id, &place, snap_bytes, descriptors)?;
                return Ok(Some(ControlReply::Done));
            }
            ControlRequest::CaptureEnd => self.captures.end_for_client(id, &self.network)?,
            ControlRequest::Stop => {
                self.end.ask(RunEndReason::Stopped);
                return Ok(Some(ControlReply::Done));
            }
            _ => return Err("this run does not know the request".to_owned().into()),
        }
        Ok(None)
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

    fn stop_recording(&mut self) -> ControlReply {
        self.records.stop();
        self.network.record(self.records.packets());
        self.records.flush();
        ControlReply::Records(self.records.status())
    }
}

/// Requests that are answered before the loop looks at everything else again. One takes up to a
/// millisecond (the state of thousands of nodes), and a program or an event that is due waits no
/// longer than all of them.
const REQUESTS_PER_TURN: usize = 8;
