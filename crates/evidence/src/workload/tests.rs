use windtunnel_model::record::kind::Call;
use windtunnel_model::record::{EventRecord, Kind, flag};

use super::*;
use crate::evidence::tests::{
    CLIENT, ENGINE, SERVER, call, conversation, define, file, header, load, packet,
};
use crate::explain::report::{LatencyBreakdown, RequestSelection};
use crate::statistics::Statistics;

const A: ([u8; 4], u16) = ([10, 0, 0, 1], 4000);
const B: ([u8; 4], u16) = ([10, 0, 0, 2], 80);

fn defined(
    time: u64,
    from: ([u8; 4], u16),
    to: ([u8; 4], u16),
    calls: &[EventRecord],
) -> Vec<EventRecord> {
    [&define(time, 1, 6, from, to), calls].concat()
}

#[test]
fn waiting_for_the_network_is_not_in_a_workload() {
    let workload = workload(&load(&[conversation()]));
    assert_eq!(workload.problems, Vec::<String>::new());
    let [connection] = workload.connections.as_slice() else {
        panic!("{:?}", workload.connections);
    };
    let step = |action, think_ns| WorkloadStep { action, think_ns };
    // It connects until 2200, writes at 2300, and reads at once: the answer is awaited there.
    assert_eq!(
        connection.client_steps,
        [step(WorkloadAction::Write(100), 100), step(WorkloadAction::Read(200), 0)]
    );
    // It accepts at 2250, reads from 2260 to 2560, and writes at 2700.
    assert_eq!(
        connection.server_steps,
        [step(WorkloadAction::Read(100), 0), step(WorkloadAction::Write(200), 140)]
    );
    assert_eq!((connection.client.as_str(), connection.server.as_str()), ("client", "server"));
    assert_eq!((connection.port, connection.start), (80, ConnectionStart::AtNs(0)));
}

#[test]
fn a_workload_is_read_as_it_was_written() {
    let steps = vec![
        WorkloadStep { action: WorkloadAction::Write(10), think_ns: 5 },
        WorkloadStep { action: WorkloadAction::ReadEnd(PresenceMarker), think_ns: 0 },
        WorkloadStep { action: WorkloadAction::Close(PresenceMarker), think_ns: 0 },
    ];
    let connection = WorkloadConnection {
        connection: 1,
        protocol: WorkloadProtocol::Tcp,
        client: "a".to_owned(),
        server: "b".to_owned(),
        port: 80,
        start: ConnectionStart::After { connection: 1, steps: 2, think_ns: 7 },
        client_steps: steps.clone(),
        server_steps: steps,
    };
    let workload = Workload { connections: vec![connection], problems: Vec::new() };
    let lines = workload.to_lines();
    assert!(
        lines.contains(r#"{"write":10,"think_ns":5},{"read_end":true},{"close":true}"#),
        "{lines}"
    );
    assert_eq!(parse(&lines).unwrap(), workload.connections);
    let error = parse(&format!("{lines}\nnonsense")).unwrap_err().to_string();
    assert!(error.starts_with("line 3: "), "{error}");
}

#[test]
fn a_server_that_closes_its_copy_of_the_socket_has_not_ended_the_connection() {
    let client = defined(
        2000,
        A,
        B,
        &[
            call(1900, 1, Call::Connect, false, [0, 0, 0, 300]),
            call(2300, 1, Call::Write, false, [0, 100, 100, 20]),
        ],
    );
    // The child reads after its parent has closed.
    let server = defined(
        2250,
        B,
        A,
        &[
            call(1500, 1, Call::Accept, false, [0, 0, 9, 750]),
            call(2255, 1, Call::Close, false, [0, 0, 0, 1]),
            call(2260, 1, Call::Read, true, [0, 4096, 100, 300]),
            call(2600, 1, Call::Read, true, [100, 4096, 0, 10]),
            call(2620, 1, Call::Read, true, [100, 4096, 0, 10]),
            call(2700, 1, Call::Close, false, [0, 0, 0, 1]),
        ],
    );
    let workload = workload(&load(&[file(header(), &[(CLIENT, client), (SERVER, server)])]));
    assert_eq!(workload.problems, Vec::<String>::new());
    let actions = workload.connections[0].server_steps.iter().map(|step| step.action);
    let expected = [
        WorkloadAction::Read(100),
        WorkloadAction::ReadEnd(PresenceMarker),
        WorkloadAction::Close(PresenceMarker),
    ];
    assert!(actions.eq(expected), "{:?}", workload.connections[0].server_steps);
}

#[test]
fn a_socket_that_only_listened_is_no_connection() {
    let nowhere = ([0, 0, 0, 0], 0);
    let calls = [call(2000, 1, Call::Close, false, [0, 0, 0, 1])];
    let evidence = load(&[file(header(), &[(SERVER, defined(1000, nowhere, nowhere, &calls))])]);
    let workload = workload(&evidence);
    assert_eq!((workload.connections.len(), workload.problems.len()), (0, 0));
    assert_eq!(Statistics::of(&evidence, evidence.records().iter()).flows, []);
}

#[test]
fn a_refused_connection_is_one_that_recording_saw_from_the_beginning() {
    let calls = [
        call(1900, 1, Call::Connect, false, [0, 0, u32::MAX - 110, 500]),
        call(2500, 1, Call::Close, false, [0, 0, 0, 1]),
    ];
    let mut engine = defined(1950, A, B, &[]);
    // The reset of a closed port has no place in any stream.
    let reset = flag::REVERSE | flag::RST | flag::ACK | flag::OFFSET_UNKNOWN;
    for (at, flags, lane) in [(1950, flag::SYN, 0), (2150, reset, 1)] {
        engine.push(packet(Kind::Offered, at, 1, flags, [0, 0, lane, 0]));
        engine.push(packet(Kind::Delivered, at + 100, 1, flags, [0, 0, lane, 100]));
    }
    let files = [file(header(), &[(CLIENT, defined(1900, A, B, &calls)), (ENGINE, engine)])];
    let report = LatencyBreakdown::of(&load(&files), RequestSelection::All, None);
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(report.requests.len(), 1);
    assert_eq!(report.requests[0].duration_ns, 500);
}
