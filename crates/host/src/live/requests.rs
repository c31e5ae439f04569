//! Requests from outside: `ps`, `snapshot`, `links`, `exec`, `set`, `down`, `up`, `do`, `capture`,
//! `stop`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::os::fd::OwnedFd;

use windtunnel_control::{
    CaptureResult, CommandProgress, ConnectionInput, ControlRequestHandler, EventInjectionResult,
    LaneChoice, LinkList, RecordOrder, RecordStatus, RequestAnswer, ReservationStatus, RunStatus,
    ServiceList, Snapshot,
};
use windtunnel_model::LinkPatch;
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::{RecordChoice, ScheduledEvent};
use windtunnel_node::ProgramSpawnRequest;
use windtunnel_verdict::evidence::RunEndReason;

use super::limited::LimitRequestOutcome;
use super::outcome::{AnswerPromise, RequestOutcome};
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
                    let descriptors = &descriptors;
                    let mut client = ClientRequestHandler { run: self, client: id, descriptors };
                    request.dispatch(&mut client);
                }
                Some(ConnectionInput::Unreadable(message)) => {
                    self.connections.refuse(id, message.into());
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

    /// Records what is asked for from now on.
    fn record(&mut self, order: RecordOrder) -> Result<RecordStatus, RequestRefusal> {
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
        Ok(self.records.status())
    }

    fn stop_recording(&mut self) -> RecordStatus {
        self.records.stop();
        self.network.record(self.records.packets());
        self.records.flush();
        self.records.status()
    }
}

/// Does what one client asks.
struct ClientRequestHandler<'a> {
    run: &'a mut RunReactor,
    client: u64,
    /// Those that the request carried.
    descriptors: &'a [OwnedFd],
}

impl ControlRequestHandler for ClientRequestHandler<'_> {
    type Outcome<A: RequestAnswer> = Result<RequestOutcome<A>, RequestRefusal>;
    type Conclusion = ();

    fn conclude<A: RequestAnswer>(&mut self, outcome: Self::Outcome<A>) {
        let connections = &mut self.run.connections;
        match outcome {
            Ok(RequestOutcome::Answered(answer)) => connections.answer(self.client, answer),
            Ok(RequestOutcome::Deferred(_)) => {}
            Ok(RequestOutcome::Elsewhere) => connections.refer_elsewhere(self.client),
            Err(refusal) => connections.refuse(self.client, refusal),
        }
    }

    fn ps(&mut self) -> Self::Outcome<RunStatus> {
        Ok(self.run.inspector().status().into())
    }

    fn snapshot(&mut self) -> Self::Outcome<Snapshot> {
        Ok(self.run.inspector().snapshot().into())
    }

    fn links(&mut self) -> Self::Outcome<LinkList> {
        Ok(self.run.inspector().links().into())
    }

    fn exec(
        &mut self,
        node: String,
        argv: Vec<String>,
        cwd: Option<String>,
        env: BTreeMap<String, String>,
        terminal: bool,
    ) -> Self::Outcome<CommandProgress> {
        let RunReactor { cx, connections, .. } = &mut *self.run;
        let id = self.client;
        let spawn = ProgramSpawnRequest { id, argv, env, cwd, terminal, program: None };
        connections.execute(cx, &node, spawn, self.descriptors).map(RequestOutcome::Deferred)
    }

    fn signal(&mut self, signal: i32) -> Self::Outcome<Infallible> {
        self.run.connections.signal_command(&self.run.cx.nodes, self.client, signal);
        // Nothing answers it.
        Ok(RequestOutcome::Deferred(AnswerPromise::new()))
    }

    fn set(&mut self, lanes: LaneChoice, patch: Box<LinkPatch>) -> Self::Outcome<()> {
        self.run.orders().set(self.client, &lanes, &patch).map(RequestOutcome::Deferred)
    }

    fn limit(&mut self, who: String, demand: Demand) -> Self::Outcome<()> {
        Ok(match self.run.limit_controller().set(&who, &demand)? {
            LimitRequestOutcome::Set => RequestOutcome::Answered(()),
            LimitRequestOutcome::Elsewhere => RequestOutcome::Elsewhere,
            LimitRequestOutcome::ForAll(action) => {
                self.run.orders().order_everywhere(action);
                RequestOutcome::Answered(())
            }
        })
    }

    fn reservations(&mut self) -> Self::Outcome<Vec<ReservationStatus>> {
        Ok(self.run.inspector().reservations().into())
    }

    fn services(&mut self, service: Option<String>) -> Self::Outcome<ServiceList> {
        Ok(self.run.inspector().services().list(service.as_deref())?.into())
    }

    fn state(&mut self, lanes: LaneChoice, up: bool) -> Self::Outcome<()> {
        self.run.orders().set_state(self.client, &lanes, up).map(RequestOutcome::Deferred)
    }

    fn inject(&mut self, events: Vec<ScheduledEvent>) -> Self::Outcome<EventInjectionResult> {
        self.run.orders().happen(self.client, events).map(RequestOutcome::Deferred)
    }

    fn record_start(&mut self, order: RecordOrder) -> Self::Outcome<RecordStatus> {
        Ok(self.run.record(order)?.into())
    }

    fn record_stop(&mut self) -> Self::Outcome<RecordStatus> {
        Ok(self.run.stop_recording().into())
    }

    fn record_status(&mut self) -> Self::Outcome<RecordStatus> {
        Ok(self.run.records.status().into())
    }

    fn capture(&mut self, place: String, snap_bytes: u32) -> Self::Outcome<()> {
        let (captures, source) = self.run.captures_of();
        captures.start_for_client(source, self.client, &place, snap_bytes, self.descriptors)?;
        Ok(RequestOutcome::Answered(()))
    }

    fn capture_end(&mut self) -> Self::Outcome<CaptureResult> {
        let RunReactor { captures, network, .. } = &mut *self.run;
        captures.end_for_client(self.client, network).map(RequestOutcome::Deferred)
    }

    fn stop(&mut self) -> Self::Outcome<()> {
        self.run.end.ask(RunEndReason::Stopped);
        Ok(RequestOutcome::Answered(()))
    }
}

/// Requests that are answered before the loop looks at everything else again. One takes up to a
/// millisecond (the state of thousands of nodes), and a program or an event that is due waits no
/// longer than all of them.
const REQUESTS_PER_TURN: usize = 8;
