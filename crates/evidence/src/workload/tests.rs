use super::*;
use crate::evidence::tests::{conversation, load};

#[test]
fn waiting_for_the_network_is_not_in_a_workload() {
    let workload = workload(&load(&[conversation()]));
    assert_eq!(workload.problems, Vec::<String>::new());
    let [connection] = workload.connections.as_slice() else {
        panic!("{:?}", workload.connections);
    };
    let step = |action, think_ns| Step { action, think_ns };
    // It connects until 2200, writes at 2300, and reads at once: the answer is awaited there.
    assert_eq!(
        connection.client_steps,
        [step(Action::Write(100), 100), step(Action::Read(200), 0)]
    );
    // It accepts at 2250, reads from 2260 to 2560, and writes at 2700.
    assert_eq!(
        connection.server_steps,
        [step(Action::Read(100), 0), step(Action::Write(200), 140)]
    );
    assert_eq!((connection.client.as_str(), connection.server.as_str()), ("client", "server"));
    assert_eq!((connection.port, connection.start), (80, Start::AtNs(0)));
}

#[test]
fn a_workload_is_read_as_it_was_written() {
    let steps = vec![
        Step { action: Action::Write(10), think_ns: 5 },
        Step { action: Action::ReadEnd(Present), think_ns: 0 },
        Step { action: Action::Close(Present), think_ns: 0 },
    ];
    let connection = Connection {
        connection: 1,
        protocol: Protocol::Tcp,
        client: "a".to_owned(),
        server: "b".to_owned(),
        port: 80,
        start: Start::After { connection: 1, steps: 2, think_ns: 7 },
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
