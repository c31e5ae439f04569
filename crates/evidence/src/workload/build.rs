//! From records to a workload.

use windtunnel_model::record::kind::Call;

use super::{
    ConnectionStart, PresenceMarker, WAKING_NS, WorkloadAction, WorkloadConnection,
    WorkloadProtocol, WorkloadStep,
};
use crate::evidence::RecordedRun;
use crate::explain::index::FlowIndex;
use crate::flows::{GlobalFlow, TCP, UDP};
use crate::history::{
    self, CallSpan, EndpointRole, FlowHistory, FlowSocketType, is_read, is_write,
};

/// Connections, and what could not become one.
#[derive(Debug, Clone, Default)]
pub struct Workload {
    pub connections: Vec<WorkloadConnection>,
    /// Which flows are left out, and why.
    pub problems: Vec<String>,
}

/// What the programs of a run did.
#[must_use]
pub fn workload(evidence: &RecordedRun) -> Workload {
    let (_, lanes) = history::lanes(evidence);
    let mut found = Workload::default();
    let mut played = Vec::new();
    for history in history::histories(evidence) {
        let flow = &evidence.flows()[history.flow as usize];
        let mut calls = history.calls.iter().flatten();
        let moves = calls.any(|call| is_read(call.call) || is_write(call.call));
        if !matches!(flow.protocol, TCP | UDP) || (flow.is_unconnected() && !moves) {
            continue;
        }
        match ConnectionTimeline::new(evidence, flow, &history, &lanes) {
            Ok(one) => played.push(one),
            Err(why) => found.problems.push(format!("flow {}: {why}", history.flow)),
        }
    }
    played.sort_by_key(|one| one.begin);
    let origin = played.first().map_or(0, |one| one.begin);
    for at in 0..played.len() {
        let start = start(&played[..at], &played[at], origin);
        let mut connection = played[at].connection.clone();
        connection.connection = number(at);
        connection.start = start;
        found.connections.push(connection);
    }
    found
}

fn number(at: usize) -> u32 {
    u32::try_from(at + 1).unwrap_or(u32::MAX)
}

/// A connection, and when its client did what.
struct ConnectionTimeline {
    connection: WorkloadConnection,
    process: Option<u32>,
    begin: u64,
    /// When the client had connected, and when each of its steps ended.
    ends: Vec<u64>,
}

impl ConnectionTimeline {
    fn new(
        evidence: &RecordedRun,
        flow: &GlobalFlow,
        history: &FlowHistory,
        lanes: &[history::DirectedLinkEnds],
    ) -> Result<ConnectionTimeline, String> {
        let (Some(from), Some(to)) = (&flow.from, &flow.to) else {
            return Err("its ends are not known".to_owned());
        };
        let name = |end: &crate::flows::FlowEndpoint| {
            let name = end.node.and_then(|node| evidence.name_of(node));
            name.map(str::to_owned).ok_or_else(|| format!("{end} is no node's"))
        };
        let missing =
            EndpointRole::BOTH.into_iter().find(|side| !history.calls_recorded[side.index()]);
        if let Some(side) = missing {
            return Err(format!("the calls of its {} are not recorded", side.name()));
        }
        let index = FlowIndex::new(history, lanes).map_err(|why| why.to_string())?;
        let protocol = match history.transport {
            FlowSocketType::Stream => WorkloadProtocol::Tcp,
            FlowSocketType::Datagrams => WorkloadProtocol::Udp,
        };
        let (client_steps, mut ends) = steps(&index, EndpointRole::Client);
        let (server_steps, _) = steps(&index, EndpointRole::Server);
        let calls = &history.calls[EndpointRole::Client.index()];
        let connect = calls.iter().find(|call| call.call == Call::Connect);
        let begin = connect.or(calls.first()).map_or(flow.begin_ns, |call| call.begin);
        ends.insert(0, connected(&index).unwrap_or(begin));
        let process = flow.parts.iter().filter(|part| !part.flipped).find_map(|part| part.process);
        Ok(ConnectionTimeline {
            connection: WorkloadConnection {
                connection: 0,
                protocol,
                client: name(from)?,
                server: name(to)?,
                port: to.port,
                start: ConnectionStart::AtNs(0),
                client_steps,
                server_steps,
            },
            process: process.map(|(pid, _)| pid),
            begin,
            ends,
        })
    }

    fn end(&self) -> u64 {
        self.ends.last().copied().unwrap_or(self.begin)
    }
}

/// When the client could use the connection.
fn connected(index: &FlowIndex<'_>) -> Option<u64> {
    let calls = index.history.calls[EndpointRole::Client.index()].iter();
    let connect = calls.clone().find(|call| call.call == Call::Connect)?;
    let answered = index.handshakes[EndpointRole::Server.index()].first_arrived(0);
    Some(if connect.result < 0 { answered?.max(connect.end) } else { connect.end })
}

/// When a connection begins: after what its process did last; else after the last one of its node,
/// if none was open; else at its time.
fn start(before: &[ConnectionTimeline], one: &ConnectionTimeline, origin: u64) -> ConnectionStart {
    let of_node =
        before.iter().enumerate().filter(|(_, it)| it.connection.client == one.connection.client);
    let last_step = |it: &ConnectionTimeline| it.ends.iter().rposition(|end| *end <= one.begin);
    let of_process = of_node
        .clone()
        .filter(|(_, it)| it.process.is_some() && it.process == one.process)
        .filter_map(|(at, it)| Some((at, last_step(it)?, it)));
    let is_open = of_node.clone().any(|(_, it)| it.end() > one.begin);
    let closed = of_node.map(|(at, it)| (at, it.ends.len() - 1, it)).filter(|_| !is_open);
    let by_time = |(_, step, it): &(usize, usize, &ConnectionTimeline)| it.ends[*step];
    let anchor = of_process.max_by_key(by_time).or_else(|| closed.max_by_key(by_time));
    match anchor {
        Some((at, steps, it)) => ConnectionStart::After {
            connection: number(at),
            steps,
            think_ns: one.begin - it.ends[steps],
        },
        None => ConnectionStart::AtNs(one.begin - origin),
    }
}

/// A side's steps, and when each ended.
fn steps(index: &FlowIndex<'_>, side: EndpointRole) -> (Vec<WorkloadStep>, Vec<u64>) {
    let (mut steps, mut ends): (Vec<WorkloadStep>, Vec<u64>) = (Vec::new(), Vec::new());
    let calls = &index.history.calls[side.index()];
    let begin = match side {
        EndpointRole::Client => connected(index),
        EndpointRole::Server => {
            calls.iter().find(|call| call.call == Call::Accept).map(|call| call.end)
        }
    };
    let mut before = begin.or(calls.first().map(|call| call.begin)).unwrap_or(0);
    let mut is_full = false;
    let last_move = calls.iter().rposition(|call| is_read(call.call) || is_write(call.call));
    for (at, call) in calls.iter().enumerate() {
        if call.call == Call::Close && last_move.is_some_and(|last| at < last) {
            // Another process has the socket, too, as the child that serves a connection.
            continue;
        }
        if is_write(call.call) && call.result < 0 {
            is_full = true;
            continue;
        }
        let Some(action) = action(index.history.transport, call) else { continue };
        let since = call.begin.saturating_sub(before);
        let think_ns = match action {
            WorkloadAction::Write(_) if is_full => 0,
            WorkloadAction::Read(_) if !is_late(index, side, call, before) => 0,
            WorkloadAction::ReadEnd(_) => 0,
            _ => since,
        };
        let is_again = matches!(action, WorkloadAction::ReadEnd(_))
            && steps.last().is_some_and(|step| step.action == action);
        if is_again {
            continue;
        }
        is_full = is_write(call.call) && call.result.unsigned_abs() < call.asked;
        before = before.max(call.end);
        steps.push(WorkloadStep { action, think_ns });
        ends.push(call.end);
        if matches!(action, WorkloadAction::Close(_)) {
            break;
        }
    }
    (steps, ends)
}

fn action(transport: FlowSocketType, call: &CallSpan) -> Option<WorkloadAction> {
    let is_data = is_read(call.call) || is_write(call.call);
    if is_data && call.result < 0 {
        return None;
    }
    let bytes = call.result.unsigned_abs();
    Some(match call.call {
        Call::Close => WorkloadAction::Close(PresenceMarker),
        Call::Shutdown if call.result == 0 => WorkloadAction::Shutdown(PresenceMarker),
        it if is_write(it) => WorkloadAction::Write(bytes),
        it if is_read(it)
            && bytes == 0
            && transport == FlowSocketType::Stream
            && call.asked > 0 =>
        {
            WorkloadAction::ReadEnd(PresenceMarker)
        }
        it if is_read(it) => WorkloadAction::Read(bytes),
        _ => return None,
    })
}

/// Whether a read came later than its bytes, because the program did something else.
fn is_late(index: &FlowIndex<'_>, side: EndpointRole, call: &CallSpan, before: u64) -> bool {
    let byte = match index.history.transport {
        FlowSocketType::Stream => Some(call.offset),
        // Numbers of reads are not those of packets: see `explain::datagrams`.
        FlowSocketType::Datagrams => {
            let calls = &index.programs[side.index()].calls;
            calls.iter().find(|it| !it.is_write && it.begin == call.begin).map(|it| it.from)
        }
    };
    let came = byte.and_then(|byte| index.readable(side.peer(), byte));
    came.is_some_and(|(came, _)| came <= before || call.begin > came + WAKING_NS)
}

impl Workload {
    /// As JSON lines.
    #[must_use]
    pub fn to_lines(&self) -> String {
        let mut text = String::new();
        for connection in &self.connections {
            // A connection holds numbers and texts only.
            text.push_str(&serde_json::to_string(connection).unwrap_or_default());
            text.push('\n');
        }
        text
    }
}
